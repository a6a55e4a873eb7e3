/* Type and shape rules of distances and neighbours of points. */
#include "protocol/infer_call.h"

#include <inttypes.h>

#include "protocol/points.h"

#define MOST_POINTS (INT64_C(1) << 31) /* fewer points than this have pairs that can be counted */

/* Check that input i is a float64 array of points, one in each row. AD_E_TYPE, AD_E_VALUE. */
static int check_points(const ad_op *op, int i, const ad_desc **out, ad_fault *fault) {
    int status = ad__typed_input(op, i, AD_FLOAT64, out, fault);

    if (!status && op->loop != AD_FLOAT64)
        status = ad__fault(fault, AD_E_TYPE, "%s: there is no loop for %s, only for float64", ad__op_name(op),
                           ad__dtypes[op->loop].name);
    if (!status && (*out)->ndim != 2) status = ad__bad_shape(op, i, "must have two dimensions", fault);
    if (!status && (*out)->shape[0] >= MOST_POINTS) status = ad__bad_shape(op, i, "has more than 2^31 - 1 rows", fault);
    return status;
}

/* Check two inputs whose rows are points with as many coordinates. AD_E_TYPE, AD_E_VALUE. */
static int check_both(const ad_op *op, const ad_desc **x, const ad_desc **y, ad_fault *fault) {
    int status = check_points(op, 0, x, fault);

    if (!status) status = check_points(op, 1, y, fault);
    if (!status && (*y)->shape[1] != (*x)->shape[1])
        status = ad__bad_shape(op, 1, "must have as many columns as input 0", fault);
    return status;
}

int ad__infer_pair_distances(const ad_op *op, ad_result *result, ad_fault *fault) {
    const int64_t metric = op->param[0].as.i;
    const ad_desc *x, *y = NULL;
    int status = op->nin > 1 ? check_both(op, &x, &y, fault) : check_points(op, 0, &x, fault);

    if (!status && (metric < 0 || metric >= AD_NPAIR_METRICS))
        status = ad__fault(fault, AD_E_VALUE, "pair_distances: no such metric: %" PRId64, metric);
    if (!status && metric == AD_PAIRS_minkowski && !(ad__param_number(&op->param[1]) > 0))
        status = ad__fault(fault, AD_E_VALUE, "pair_distances: p must be above 0");
    if (status) return status;
    const int64_t m = x->shape[0];
    if (y) ad__set_result(result, AD_FLOAT64, 2, (const int64_t[]){m, y->shape[0]});
    else ad__set_result(result, AD_FLOAT64, 1, (const int64_t[]){m > 0 ? m * (m - 1) / 2 : 0});
    return 0;
}

int ad__infer_nearest_points(const ad_op *op, ad_result *result, ad_fault *fault) {
    const int64_t k = op->param[0].as.i;
    const double p = ad__param_number(&op->param[1]);
    const ad_desc *points, *queries;
    int status = check_both(op, &points, &queries, fault);

    if (!status && (k < 1 || k > AD_MOST_NEAREST))
        status = ad__fault(fault, AD_E_VALUE, "nearest_points: %" PRId64 " neighbours; it must be 1 to %d", k,
                           AD_MOST_NEAREST);
    if (!status && !(p >= 1)) status = ad__fault(fault, AD_E_VALUE, "nearest_points: p must be 1 or more");
    if (!status && ad__param_number(&op->param[2]) != ad__param_number(&op->param[2]))
        status = ad__fault(fault, AD_E_VALUE, "nearest_points: the bound must be a number");
    if (status) return status;
    ad__set_result(&result[0], AD_FLOAT64, 2, (const int64_t[]){queries->shape[0], k});
    ad__set_result(&result[1], AD_INT64, 2, (const int64_t[]){queries->shape[0], k});
    return 0;
}

/* Find how many points have so many pairs, or a few pairs less. */
static int64_t find_count(int64_t pairs) {
    int64_t least = 1, most = MOST_POINTS;

    while (least < most) {
        const int64_t middle = least + (most - least) / 2;
        if (middle * (middle - 1) / 2 < pairs) least = middle + 1;
        else most = middle;
    }
    return least;
}

int ad__infer_squareform(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_desc *x;
    int status = ad__array_input(op, 0, &x, fault);

    if (status) return status;
    if (x->ndim != 1) return ad__bad_shape(op, 0, "must have one dimension", fault);
    const int64_t n = find_count(x->shape[0]);
    if (n * (n - 1) / 2 != x->shape[0])
        return ad__bad_shape(op, 0, "must have n * (n - 1) / 2 elements for some number n of points", fault);
    ad__set_result(result, op->loop, 2, (const int64_t[]){n, n});
    return 0;
}
