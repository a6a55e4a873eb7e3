/* The bin of a histogram that an element falls into, for both backends.
 *
 * Where the edges lie at nearly equal distances, the bin is computed. An element's distance from the first edge in
 * widths of a bin is rounded, but it never falls as the element grows. So an element whose distance lies between those
 * that the same steps give for two edges lies between these edges itself. guess::sure leaves out what is too near to an
 * edge to tell; such elements, and edges at any distances, take a search. */
#ifndef AD_KERNELS_HISTOGRAM_H
#define AD_KERNELS_HISTOGRAM_H

#include "kernels/types.h"

namespace ad {
inline namespace AD_ISA {

/* Search for the bin of x: -1 outside of all, as NaN is. The last bin holds its right edge. */
template <class T> AD_HD int64_t find_bin(T x, const T *edge, int64_t bins) {
    if (!(x >= edge[0] && x <= edge[bins])) return -1;
    if (x == edge[bins]) return bins - 1;
    int64_t low = 0, high = bins;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (edge[middle] <= x) low = middle;
        else high = middle;
    }
    return low;
}

/* The product (x - low) * scale, each step rounded: a device would join them. */
AD_HD float rounded_distance(float x, float low, float scale) {
#ifdef __CUDA_ARCH__
    return __fmul_rn(__fsub_rn(x, low), scale);
#else
    return (x - low) * scale;
#endif
}
AD_HD double rounded_distance(double x, double low, double scale) {
#ifdef __CUDA_ARCH__
    return __dmul_rn(__dsub_rn(x, low), scale);
#else
    return (x - low) * scale;
#endif
}

/* The first edge, bins for each unit, the number of bins, and how far from the middle of a bin an element is in it
 * surely; negative where no element is. */
template <class T> struct bin_guess {
    static constexpr T MAGIC = sizeof(T) == 4 ? T(0x1.8p23) : T(0x1.8p52); /* a sum with it is a whole number */
    T low, scale, bins, sure;

    AD_HD bin_guess(const T *edge, int64_t n) : low(edge[0]), scale(T(n) / (edge[n] - edge[0])), bins(T(n)), sure(0) {}

    /* Bin b is at b - 0.5 to b + 0.5; all that lies far below is at -2, as NaN is. */
    AD_HD T place(T x) const {
        const T d = rounded_distance(x, low, scale), high = bins + T(1.5);
        return (d > T(-1.5) ? d < high ? d : high : T(-1.5)) - T(0.5);
    }
    /* How far edge i is from where it would be; 1 where that is far. */
    AD_HD T error(T edge, int64_t i) const {
        const T off = place(edge) - (T(i) - T(0.5)), size = off < 0 ? -off : off;
        return size < T(0.25) ? size : T(1);
    }
    AD_HD void trust(T greatest_error) { sure = T(0.5) - greatest_error - T(0x1p-20); }

    /* True: *bin is x's, or outside of the bins where x is. For up to 2^22 bins. */
    AD_HD bool guess(T x, int64_t *bin) const {
        const T at = place(x), moved = at + MAGIC, whole = moved - MAGIC, off = at - whole;
#ifdef __CUDA_ARCH__ /* A conversion takes four times a sum's time. */
        if constexpr (sizeof(T) == 4) *bin = __float_as_int(moved) - __float_as_int(MAGIC);
        else *bin = __double2loint(moved);
#else
        *bin = int64_t(whole);
#endif
        return off < sure && -off < sure;
    }
};

} // namespace AD_ISA
} // namespace ad
#endif
