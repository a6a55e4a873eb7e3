#include "kernels/run.h"

#define EMBED(name, files)                                                                                     \
    asm(".section .rodata\n.global ad_runtext_" #name "\n.hidden ad_runtext_" #name "\n"                       \
        "ad_runtext_" #name ":\n" files ".global ad_runtext_" #name "_end\n.hidden ad_runtext_" #name "_end\n" \
        "ad_runtext_" #name "_end: .byte 0\n.previous\n");                                                     \
    extern "C" const char ad_runtext_##name[], ad_runtext_##name##_end[];
#define FILE_OF(path) ".incbin \"kernels/run/" path "\"\n"

EMBED(prelude,
      FILE_OF("abi.h") FILE_OF("host.h") FILE_OF("host_math.h") FILE_OF("host_special.h") FILE_OF("constants.h"))
EMBED(complex, FILE_OF("complex.h"))
EMBED(half, FILE_OF("half.h"))
EMBED(stdint, FILE_OF("stdint.h"))
EMBED(limits, FILE_OF("limits.h"))
EMBED(groups, FILE_OF("groups.h"))
EMBED(algorithm, FILE_OF("algorithm.h"))
EMBED(collective, FILE_OF("collective.h"))
EMBED(carray, FILE_OF("carray.h"))
EMBED(float16, FILE_OF("float16.h"))
EMBED(atomics, FILE_OF("atomics.h"))
EMBED(constants, FILE_OF("constants.h"))
EMBED(tuple, FILE_OF("tuple.h"))
EMBED(dispatcher, FILE_OF("dispatcher.h"))
EMBED(traits, FILE_OF("traits.h"))
EMBED(texture, FILE_OF("texture.h"))
EMBED(mdspan, FILE_OF("mdspan.h"))

namespace {

#define TEXT(name) \
    { ad_runtext_##name, size_t(ad_runtext_##name##_end - ad_runtext_##name) }
const ad_text nothing = {"\n", 1};

/* A header of CUDA's C++ library, for the host: what the host's own has. */
#define STD_TEXT(name) "#include <" name ">\nnamespace cuda { namespace std { using namespace ::std; } }\n"
#define STD(name)                                                        \
    {                                                                    \
        "cuda/std/" name, { STD_TEXT(name), sizeof(STD_TEXT(name)) - 1 } \
    }

/* The functions of the host's prelude, which has them in no namespace, with their overloads for float. */
#define CMATH_TEXT                                                                                              \
    "namespace cuda { namespace std { using namespace ::std; "                                                  \
    "using ::abs; using ::acos; using ::acosh; using ::asin; using ::asinh; using ::atan; using ::atan2; "      \
    "using ::atanh; using ::cbrt; using ::ceil; using ::copysign; using ::cos; using ::cosh; using ::erf; "     \
    "using ::erfc; using ::exp; using ::exp2; using ::expm1; using ::fabs; using ::floor; using ::fma; "        \
    "using ::fmax; using ::fmin; using ::fmod; using ::hypot; using ::isfinite; using ::isinf; using ::isnan; " \
    "using ::lgamma; using ::log; using ::log10; using ::log1p; using ::log2; using ::pow; using ::rint; "      \
    "using ::round; using ::signbit; using ::sin; using ::sinh; using ::sqrt; using ::tan; using ::tanh; "      \
    "using ::tgamma; using ::trunc; "                                                                           \
    "} }\n"

/* CUDA's brings the macros of <climits>, too. */
#define LIMITS_TEXT "#include <climits>\n" STD_TEXT("limits")

/* Headers for sources. Those of the first part are for every target; where CUDA's folders have a header, too, it comes
 * from there. */
const ad_compile_header headers[] = {
    {"cupy/complex.cuh", TEXT(complex)},
    {"cupy/carray.cuh", TEXT(carray)},
    {"cupy/float16.cuh", TEXT(float16)},
    {"cupy/bfloat16.cuh", TEXT(float16)},
    {"cupy/atomics.cuh", TEXT(atomics)},
    {"cupy/math_constants.h", TEXT(constants)},
    {"cupy/tuple.cuh", TEXT(tuple)},
    {"cupy/type_dispatcher.cuh", TEXT(dispatcher)},
    {"cupy/cuda_workaround.h", TEXT(traits)},
    {"arrayd/algorithm.cuh", TEXT(algorithm)},
    {"arrayd/collective.cuh", TEXT(collective)},
    {"arrayd/texture.cuh", TEXT(texture)},
    {"cuda_fp16.h", TEXT(half)},
    {"cuda_bf16.h", TEXT(half)},
    {"stdint.h", TEXT(stdint)},
    {"cstdint", TEXT(stdint)},
    {"limits.h", TEXT(limits)},
    {"climits", TEXT(limits)},
    {"float.h", TEXT(limits)},
    {"cfloat", TEXT(limits)},
    {"thrust/complex.h", TEXT(complex)},
    /* NVRTC and the host's prelude have what is in these. */
    {"math.h", nothing},
    {"cmath", nothing},
    {"stddef.h", nothing},
    {"cstddef", nothing},
    {"string.h", nothing},
    {"cstring", nothing},
    {"stdio.h", nothing},
    {"cstdio", nothing},
    {"stdlib.h", nothing},
    {"cstdlib", nothing},
    {"assert.h", nothing},
    {"cassert", nothing},
    /* The GPU's are CUDA's own. */
    {"cooperative_groups.h", TEXT(groups)},
    /* The host's prelude has what is in these. */
    {"cooperative_groups/memcpy_async.h", nothing},
    {"cuda/std/mdspan", TEXT(mdspan)},
    STD("array"),
    STD("cfloat"),
    STD("climits"),
    {"cuda/std/cmath", {CMATH_TEXT, sizeof CMATH_TEXT - 1}},
    STD("cstddef"),
    STD("cstdint"),
    {"cuda/std/limits", {LIMITS_TEXT, sizeof LIMITS_TEXT - 1}},
    STD("tuple"),
    STD("type_traits"),
    STD("utility"),
    {"math_constants.h", TEXT(constants)},
    {"cuda_runtime.h", nothing},
    {"device_launch_parameters.h", nothing},
    {"vector_types.h", nothing},
    {"vector_functions.h", nothing},
};
constexpr size_t COMMON = 33;

} // namespace

ad_text ad_run_prelude() { return TEXT(prelude); }

const ad_compile_header *ad_run_headers(bool host, size_t *n) {
    *n = host ? sizeof headers / sizeof *headers : COMMON;
    return headers;
}
