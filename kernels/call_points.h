/* Operands of the calls about points, on both backends. */
#ifndef AD_KERNELS_CALL_POINTS_H
#define AD_KERNELS_CALL_POINTS_H

#include "kernels/call.h"

namespace ad {
inline namespace AD_ISA {

/* Get the operands of pair_distances. Where points are joined with each other, y is x. AD_E_MEMORY. */
inline int get_pairs(ad_call *c, array *x, array *y, array *out) {
    int status = ad_call_input_packed(c, 0, AD_FLOAT64, x);
    if (!status) status = ad_call_output(c, 0, AD_FLOAT64, out);
    *y = *x;
    return status || c->op->nin == 1 ? status : ad_call_input_packed(c, 1, AD_FLOAT64, y);
}

/* Get the operands of nearest_points: what is found are distances and places. AD_E_MEMORY. */
inline int get_nearest(ad_call *c, array *points, array *queries, array *distances, array *places) {
    int status = ad_call_input_packed(c, 0, AD_FLOAT64, points);
    if (!status) status = ad_call_input_packed(c, 1, AD_FLOAT64, queries);
    if (!status) status = ad_call_output(c, 0, AD_FLOAT64, distances);
    return status ? status : ad_call_output(c, 1, AD_INT64, places);
}

} // namespace AD_ISA
} // namespace ad
#endif
