/* The choice of an instruction set's kernels. AD_ISAS: X(name, what the processor must have), best last (flags.mk). */
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/special/special.h"

#include <atomic>
#include <pthread.h>
#include <string.h>

#define X(name, condition) void ad_cpu_kernels_fill_##name(ad_cpu_kernels *k);
AD_ISAS
#undef X

namespace {

enum {
#define X(name, condition) ISA_##name,
    AD_ISAS
#undef X
        ISAS
};

ad_cpu_kernels tables[ISAS];
ad_ufunc_kernel rows[ISAS][AD_NDTYPE][AD_UFUNC_LIMIT];
std::atomic<const ad_cpu_kernels *> chosen{nullptr};
pthread_once_t once = PTHREAD_ONCE_INIT;

#ifdef __x86_64__
[[maybe_unused]] bool has_v2() { return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt"); }
[[maybe_unused]] bool has_v3() {
    return has_v2() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi2");
}
[[maybe_unused]] bool has_v4() {
    return has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512cd");
}
#endif

bool runs_here(int isa) {
    switch (isa) {
#define X(name, condition) \
    case ISA_##name: return condition;
        AD_ISAS
#undef X
    default: return false;
    }
}

/* The rows of an instruction set, and those that have no form for it. */
void join_rows(int isa) {
    for (int loop = 0; loop < AD_NDTYPE; loop++) {
        memcpy(rows[isa][loop], tables[isa].ufunc[loop], sizeof rows[isa][loop]);
        ad_cpu_special_add(loop, rows[isa][loop]);
        tables[isa].ufunc[loop] = rows[isa][loop];
    }
}

void choose() {
#define X(name, condition) ad_cpu_kernels_fill_##name(&tables[ISA_##name]);
    AD_ISAS
#undef X
    for (int isa = 0; isa < ISAS; isa++) join_rows(isa);
    int best = 0;
    for (int i = 1; i < ISAS; i++)
        if (runs_here(i)) best = i;
    chosen.store(&tables[best], std::memory_order_release);
}

} // namespace

const ad_cpu_kernels *ad_cpu_kernels_get(void) {
    const ad_cpu_kernels *k = chosen.load(std::memory_order_acquire);
    if (k) return k;
    pthread_once(&once, choose);
    return chosen.load(std::memory_order_acquire);
}

bool ad_cpu_kernels_select(const char *name) {
    ad_cpu_kernels_get();
    for (int i = 0; i < ISAS; i++) {
        if (strcmp(tables[i].name, name) != 0 || !runs_here(i)) continue;
        chosen.store(&tables[i], std::memory_order_release);
        return true;
    }
    return false;
}
