/* Sums of products along lines. Some vectors of sums stay in registers while all taps are added to them. */
#include "kernels/cpu/isa/filter.h"
#include "kernels/cpu/isa/isa.h"
#include "kernels/accumulate.h"

#include <string.h>

namespace ad {
inline namespace AD_ISA {

constexpr int TOGETHER = 8; /* vectors of sums */

template <class V> inline V load_sums(const void *from) {
    V v;
    memcpy(&v, from, sizeof v);
    return v;
}

template <class T> void add_taps(T *sum, int64_t n, const T *x, int64_t step, const T *w, int64_t taps) {
    using V = vec<T>;
    constexpr int64_t LANES = sizeof(V) / sizeof(T), BLOCK = TOGETHER * LANES;
    int64_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        V part[TOGETHER];
        for (int v = 0; v < TOGETHER; v++) part[v] = load_sums<V>(sum + i + v * LANES);
        for (int64_t j = 0; j < taps; j++)
            for (int v = 0; v < TOGETHER; v++) part[v] += w[j] * load_sums<V>(x + i + j * step + v * LANES);
        memcpy(sum + i, part, sizeof part);
    }
    for (int64_t j = 0; j < taps; j++)
        for (int64_t k = i; k < n; k++) sum[k] = sum[k] + w[j] * x[j * step + k];
}

extern const ad_filter_kernels filter_kernels;
const ad_filter_kernels filter_kernels = {add_taps<float>, add_taps<double>};

} // namespace AD_ISA
} // namespace ad
