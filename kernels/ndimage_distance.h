/* The nearest zero of every element, on both backends, one axis after another. On each element of a lane stands a
 * parabola, as high as the element's squared distance so far. Their lower envelope has the distances. */
#ifndef AD_KERNELS_NDIMAGE_DISTANCE_H
#define AD_KERNELS_NDIMAGE_DISTANCE_H

#include "kernels/ndimage.h"

namespace ad {
inline namespace AD_ISA {

/* A lane of n elements: squares of distances and places of the nearest zeros (-1: none yet), before and after this
 * axis. The scratch memory has as many parabolas, and where each begins to be the lowest. Steps are in elements. */
struct distance_lane {
    const double *square;
    const int64_t *nearest;
    double *new_square;
    int64_t *new_nearest;
    int32_t *parabola;
    double *start;
    int64_t n, step;
    double weight; /* square of the distance of neighbours */
};

/* Find where the parabola of j, further on, gets below that of i. */
AD_HD double cross_parabolas(const distance_lane &l, int64_t i, int64_t j) {
    const double a = l.square[i * l.step], b = l.square[j * l.step];
    return ((b - a) / l.weight + double(j - i) * double(j + i)) / (2.0 * double(j - i));
}

AD_HD void find_nearest(const distance_lane &l) {
    int64_t most = -1;
    for (int64_t i = 0; i < l.n; i++) {
        if (l.nearest[i * l.step] < 0) continue;
        double start = -1;
        while (most >= 0) {
            start = cross_parabolas(l, l.parabola[most * l.step], i);
            if (start > l.start[most * l.step]) break;
            most--;
            start = -1;
        }
        most++;
        l.parabola[most * l.step] = int32_t(i);
        l.start[most * l.step] = most > 0 ? start : -1;
    }
    for (int64_t i = 0, k = 0; i < l.n; i++) {
        while (k < most && l.start[(k + 1) * l.step] < double(i)) k++;
        const int64_t at = most < 0 ? 0 : l.parabola[k * l.step];
        const double far = double(i - at);
        l.new_square[i * l.step] = most < 0 ? 0 : l.square[at * l.step] + l.weight * far * far;
        l.new_nearest[i * l.step] = most < 0 ? -1 : l.nearest[at * l.step];
    }
}

} // namespace AD_ISA
} // namespace ad
#endif
