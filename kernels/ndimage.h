/* Elements beyond the edges of an array, for the filters of images on both backends. */
#ifndef AD_KERNELS_NDIMAGE_H
#define AD_KERNELS_NDIMAGE_H

#include "kernels/types.h"

/* As call.def numbers them. */
enum { AD_EDGE_REFLECT, AD_EDGE_CONSTANT, AD_EDGE_NEAREST, AD_EDGE_MIRROR, AD_EDGE_WRAP };
enum { AD_WINDOW_SUM, AD_WINDOW_MIN, AD_WINDOW_MAX };

/* Offsets are cut off here, so that a place and an offset can be added. */
constexpr int64_t AD_FARTHEST = int64_t(1) << 61;

namespace ad {
inline namespace AD_ISA {

/* The place within a period. A division takes a GPU longer than a window does, and next to the period needs none. */
AD_HD int64_t wrap_place(int64_t i, int64_t period) {
    if (i < 0 && i + period >= 0) return i + period;
    if (i >= period && i - period < period) return i - period;
    const int64_t rest = i % period;
    return rest < 0 ? rest + period : rest;
}

/* The element that stands at place i, any number, of a line of n elements; -1: the constant does. */
AD_HD int64_t find_edge(int64_t i, int64_t n, int mode) {
    if (uint64_t(i) < uint64_t(n)) return i;
    switch (mode) {
    case AD_EDGE_REFLECT:
        i = wrap_place(i, 2 * n);
        return i < n ? i : 2 * n - 1 - i;
    case AD_EDGE_NEAREST: return i < 0 ? 0 : n - 1;
    case AD_EDGE_MIRROR:
        if (n == 1) return 0;
        i = wrap_place(i, 2 * n - 2);
        return i < n ? i : 2 * n - 2 - i;
    case AD_EDGE_WRAP: return wrap_place(i, n);
    default: return -1;
    }
}

AD_HD int64_t limit_offset(int64_t i) { return i > AD_FARTHEST ? AD_FARTHEST : i < -AD_FARTHEST ? -AD_FARTHEST : i; }

} // namespace AD_ISA
} // namespace ad
#endif
