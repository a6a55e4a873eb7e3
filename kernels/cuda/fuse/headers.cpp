/* The headers of kernels that are compiled at run time, as text in this object, and what is to be compiled. */
#include "kernels/cuda/fuse/fuse.h"

#include <string.h>

/* kernels/flags.mk says on which files this object depends. */
#define AD_EMBED(symbol, path)                        \
    asm(".pushsection .rodata\n"                      \
        ".global ad_text_" #symbol "\n"               \
        ".hidden ad_text_" #symbol "\n"               \
        "ad_text_" #symbol ": .incbin \"" path "\"\n" \
        ".global ad_text_end_" #symbol "\n"           \
        ".hidden ad_text_end_" #symbol "\n"           \
        "ad_text_end_" #symbol ": .byte 0\n"          \
        ".popsection\n");                             \
    extern "C" const char ad_text_##symbol[], ad_text_end_##symbol[];

#define AD_EMBEDDED(X)                          \
    X(types, "kernels/types.h")                 \
    X(math, "kernels/math.h")                   \
    X(math_libm, "kernels/math_libm.h")         \
    X(math_complex, "kernels/math_complex.h")   \
    X(special, "kernels/special.h")             \
    X(special_gpu, "kernels/special_gpu.h")     \
    X(dtypes, "protocol/dtype.def")             \
    X(vector, "kernels/cuda/ufunc/vector.cuh")  \
    X(divide, "kernels/cuda/backend/divide.h")  \
    X(argument, "kernels/cuda/fuse/argument.h") \
    X(device, "kernels/cuda/fuse/device.cuh")
#define AD_EMBEDDED_FOR_RANDOM(X)                 \
    X(distributions, "protocol/distribution.def") \
    X(random, "kernels/random.h")                 \
    X(random_block, "kernels/random_block.h")     \
    X(fuse_random, "kernels/cuda/fuse/random.cuh")
#define AD_EMBEDDED_FOR_ENDS(X)                 \
    X(accumulate, "kernels/accumulate.h")       \
    X(reduce, "kernels/cuda/reduce/reduce.h")   \
    X(fold, "kernels/cuda/reduce/fold.cuh")     \
    X(states, "kernels/cuda/reduce/states.cuh") \
    X(end, "kernels/cuda/fuse/fold.cuh")
#define AD_EMBEDDED_FOR_SCANS(X)                      \
    X(scan, "kernels/cuda/call/scan/scan.h")          \
    X(scan_parts, "kernels/cuda/call/scan/parts.cuh") \
    X(scan_end, "kernels/cuda/fuse/scan.cuh")

AD_EMBEDDED(AD_EMBED)
AD_EMBEDDED_FOR_RANDOM(AD_EMBED)
AD_EMBEDDED_FOR_ENDS(AD_EMBED)
AD_EMBEDDED_FOR_SCANS(AD_EMBED)

namespace {

/* Headers that the compiler at run time lacks: the C library's, and short forms of ours that include too much. */
const char stdint_text[] = "#pragma once\n"
                           "typedef signed char int8_t;\n"
                           "typedef short int16_t;\n"
                           "typedef int int32_t;\n"
                           "typedef long long int64_t;\n"
                           "typedef unsigned char uint8_t;\n"
                           "typedef unsigned short uint16_t;\n"
                           "typedef unsigned int uint32_t;\n"
                           "typedef unsigned long long uint64_t, uintptr_t;\n"
                           "#define INT32_MIN (-2147483647 - 1)\n"
                           "#define INT64_MIN (-9223372036854775807ll - 1)\n";
const char base_text[] = "#pragma once\n"
                         "enum {\n"
                         "#define AD_DTYPE(id, NAME, name, size, kind, letter) AD_##NAME = (id),\n"
                         "#include \"protocol/dtype.def\"\n"
                         "#undef AD_DTYPE\n"
                         "};\n";

const char distribution_text[] = "#pragma once\n"
                                 "enum {\n"
                                 "#define AD_DISTRIBUTION(id, name, ...) AD_RANDOM_##name = (id),\n"
                                 "#include \"protocol/distribution.def\"\n"
                                 "#undef AD_DISTRIBUTION\n"
                                 "};\n";

#define AD_COUNT(symbol, path) +1
constexpr size_t USUAL = 4 AD_EMBEDDED(AD_COUNT), RANDOM = USUAL + 1 AD_EMBEDDED_FOR_RANDOM(AD_COUNT),
                 ENDS = RANDOM AD_EMBEDDED_FOR_ENDS(AD_COUNT), TEXTS = ENDS AD_EMBEDDED_FOR_SCANS(AD_COUNT);
#undef AD_COUNT

struct headers {
    ad_compile_header all[TEXTS];
    headers()
        : all{{"stdint.h", {stdint_text, sizeof stdint_text - 1}},
              {"math.h", {"", 0}},
              {"string.h", {"", 0}},
              {"protocol/base.h", {base_text, sizeof base_text - 1}},
#define AD_HEADER(symbol, path) {path, {ad_text_##symbol, size_t(ad_text_end_##symbol - ad_text_##symbol)}},
              AD_EMBEDDED(AD_HEADER){"protocol/distribution.h", {distribution_text, sizeof distribution_text - 1}},
              AD_EMBEDDED_FOR_RANDOM(AD_HEADER) AD_EMBEDDED_FOR_ENDS(AD_HEADER) AD_EMBEDDED_FOR_SCANS(AD_HEADER)
#undef AD_HEADER
          } {
    }
};

/* Each operation rounds by itself, as those compiled by nvcc do (kernels/flags.mk). */
const char *const options[] = {"-w", "-std=c++17", "-default-device", "-fmad=false", "-DAD_ISA=gpu"};

} // namespace

const ad_compile_header *ad_fuse_headers(int includes, size_t *count) {
    static const headers h;
    *count = includes & AD_FUSE_WITH_SCAN     ? TEXTS
             : includes & AD_FUSE_WITH_END    ? ENDS
             : includes & AD_FUSE_WITH_RANDOM ? RANDOM
                                              : USUAL;
    return h.all;
}

void ad_fuse_job(const char *source, size_t size, const char *arch, int includes, ad_compile_job *job) {
    memset(job, 0, sizeof *job);
    job->target = AD_COMPILE_CUDA;
    job->arch = arch;
    job->source = {source, size};
    job->own_options = options;
    job->nown_options = sizeof options / sizeof *options;
    job->headers = ad_fuse_headers(includes, &job->nheaders);
    job->own = true;
}
