#include "kernels/cpu/backend/blas_core.h"

#include <cblas.h>
#include <stdlib.h>
#include <string.h>

/* OpenBLAS chooses when it is loaded, and again when it is told to; only where it has kernels for several processors.
 */
extern "C" {
__attribute__((weak)) void gotoblas_dynamic_init(void);
__attribute__((weak)) void gotoblas_dynamic_quit(void);
}

namespace {

constexpr const char *CORE = "OPENBLAS_CORETYPE";

/* OpenBLAS's names of processors without AVX2. */
constexpr const char *OLD[] = {"Katmai",  "Coppermine", "Northwood",  "Prescott",  "Banias",      "Atom",
                               "Core2",   "Penryn",     "Dunnington", "Nehalem",   "Sandybridge", "Athlon",
                               "Opteron", "Barcelona",  "Bobcat",     "Bulldozer", "Piledriver",  "Nano"};

bool is_old(const char *name) {
    for (const char *old : OLD)
        if (strncasecmp(name, old, strlen(old)) == 0) return true; /* "Opteron_SSE3" as well */
    return false;
}

ad_blas_processor this_one() {
    __builtin_cpu_init();
    return {__builtin_cpu_is("amd") != 0, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"),
            __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512vl")};
}

} // namespace

const char *ad_cpu_blas_core(const char *found, ad_blas_processor has) {
    if (!has.avx2 || !is_old(found)) return nullptr;
    return has.amd ? "Zen" : has.avx512 ? "SkylakeX" : "Haswell";
}

void ad_cpu_blas_open(void) {
    if (getenv(CORE) || !gotoblas_dynamic_init || !gotoblas_dynamic_quit) return;
    const char *core = ad_cpu_blas_core(openblas_get_corename(), this_one());
    if (!core) return;
    setenv(CORE, core, 1);
    gotoblas_dynamic_quit();
    gotoblas_dynamic_init();
    unsetenv(CORE); /* what this process starts chooses for itself */
}
