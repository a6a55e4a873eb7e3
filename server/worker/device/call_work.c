/* Products of an array's elements with another operand's, or with the size of a window: each element of the array takes
 * part so many times. */
#include "server/worker/device/call_work.h"

#include "protocol/base.h"
#include "protocol/desc.h"
#include "protocol/message.h"
#include "protocol/points.h"
#include "protocol/rows_call.h"
#include "protocol/size.h"
#include "protocol/tables.h"

#include <math.h>

#define LONG_NS 10000000   /* of what cannot be told apart from a long operation */
#define BLOCK_OF_POINTS 32 /* points that take as long as one of them */
#define SHORT_LINE 16      /* elements of a line, below which a window's elements are read for few results */

/* Get input i, or NULL where there is none or it is a scalar. */
static const ad_desc *find_input(const ad_op *op, int i) {
    const ad_operand *o = i < op->nin ? &op->operand[op->nout + i] : NULL;
    return o && !o->is_scalar && o->desc.form == AD_VIEW ? &o->desc : NULL;
}

/* Get parameter i, or 0 where it is no integer. */
static int64_t find_number(const ad_op *op, int i) {
    return i < op->nparam && op->param[i].kind == AD_SCALAR_INT ? op->param[i].as.i : 0;
}

static int64_t count_input(const ad_op *op, int i) {
    const ad_desc *d = find_input(op, i);
    return d ? ad__desc_count(d) : 1;
}

/* Multiply, and divide by a number above 0. */
static int64_t estimate_product(int64_t elements, int64_t times, int64_t by) {
    const int64_t product = ad__size_product(elements, times);
    return product == INT64_MAX ? product : product / by;
}

/* A window along axis (parameter 0) that has `size` elements goes over lines of n. Lines have its elements in common,
 * so short ones take longest. */
static int64_t estimate_window(const ad_op *op, int64_t size) {
    const ad_desc *x = find_input(op, 0);
    const int64_t axis = find_number(op, 0);
    if (!x || axis < 0 || axis >= x->ndim || x->shape[axis] < 1 || size < 0) return 0;
    return estimate_product(ad__desc_count(x), ad__size_product(SHORT_LINE, size), x->shape[axis]);
}

/* The window is input 1. */
static int64_t estimate_line(const ad_op *op) { return estimate_window(op, count_input(op, 1)); }

/* The window has as many elements as parameter 2 says. Long lines take a pass for every 64 of them. */
static int64_t estimate_running(const ad_op *op) {
    const int64_t size = find_number(op, 2);
    const int64_t passes = size < 0 ? 0 : estimate_product(count_input(op, 0), size, 8);
    return ad__size_sum(passes, estimate_window(op, size));
}

/* Each element of input 0 finds its places in the window by the offsets of input 1, axis by axis. */
static int64_t estimate_offsets(const ad_op *op) { return estimate_product(count_input(op, 0), count_input(op, 1), 1); }

/* To join elements, or to choose one of them, takes some four times as long as to add them. */
static int64_t estimate_choices(const ad_op *op) { return ad__size_product(4, estimate_offsets(op)); }

/* Each element of input 0 passes through all sections of input 1. */
static int64_t estimate_sections(const ad_op *op) {
    return estimate_product(count_input(op, 0), count_input(op, 1), 2);
}

/* Each entry of the first sparse matrix meets a row of the second one, inputs 3 to 5. How long rows are only the server
 * sees later. A row may have all entries. So what could take long counts as long, and else rows of equal length. */
static int64_t estimate_sparse_product(const ad_op *op) {
    const int64_t entries = count_input(op, 0), others = count_input(op, 3), rows = count_input(op, 5),
                  most = ad__size_product(entries, others),
                  usual = ad__size_product(20, estimate_product(entries, others, rows > 0 ? rows : 1));
    const int64_t least = most < LONG_NS ? most : LONG_NS;
    return usual > least ? usual : least;
}

/* Each entry meets the shorter one of two rows; that is the root of the number of entries at most, on the average. */
static int64_t estimate_sparse_factors(const ad_op *op) {
    const int64_t entries = count_input(op, 0);
    int64_t root = 1;
    while (root < entries / root) root *= 2;
    return ad__size_product(entries, root);
}

/* Each element of a sparse matrix meets all columns of the dense operand, input 3. */
static int64_t estimate_sparse(const ad_op *op) {
    const ad_desc *x = find_input(op, 3);
    if (op->nin > 4) return estimate_sparse_product(op);
    if (op->nin < 4) return estimate_sparse_factors(op);
    return x && x->ndim == 2 ? estimate_product(count_input(op, 0), x->shape[1], 2) : 0;
}

/* Find the metric: parameter 0 of pair_distances, or that of the exponent of nearest_points, parameter 1. Powers of 1,
 * 2 and infinity take no more than products. */
static int64_t find_metric(const ad_op *op) {
    if (op->row == AD_CALL_pair_distances) return find_number(op, 0);
    const double p = op->nparam > 1 ? ad__param_number(&op->param[1]) : 0;
    return p == 1 || p == 2 || p == INFINITY ? AD_PAIRS_euclidean : AD_PAIRS_minkowski;
}

/* Get the ns of a coordinate of two points. */
static int64_t find_pair_ns(const ad_op *op) {
    static const int64_t ns_of[AD_NPAIR_METRICS] = {
#define X(name, ns) ns,
        AD_PAIR_METRICS(X)
#undef X
    };
    const int64_t metric = find_metric(op);
    return metric >= 0 && metric < AD_NPAIR_METRICS ? ns_of[metric] : 1;
}

/* Each row of input 0 meets each row of input 1, or half of its own, column by column and block by block. */
static int64_t estimate_pairs(const ad_op *op) {
    const ad_desc *x = find_input(op, 0), *y = find_input(op, 1);
    if (!x || x->ndim != 2) return 0;
    const int64_t rows = y && y->ndim == 2 ? y->shape[0] : x->shape[0] / 2,
                  pairs = ad__size_product(ad__desc_count(x), rows > BLOCK_OF_POINTS ? rows : BLOCK_OF_POINTS);
    return ad__size_product(find_pair_ns(op), pairs);
}

/* Few pairs of points are a block of a GPU's threads, which goes through the coordinates of a tile of pairs, or of all
 * points for a query, while the rest of the GPU has nothing to do. So the time is that of many. */
#define LEAST_PAIRS (1 << 19)
#define LEAST_QUERIES 128

int64_t ad__call_least_on_device(const ad_op *op) {
    const ad_desc *x = find_input(op, 0);
    if (ad__call(op->row)->work != AD_WORK_PAIRS || !x || x->ndim != 2) return 0;
    const int64_t tile = ad__size_product(x->shape[1], LEAST_PAIRS),
                  query = ad__size_product(ad__desc_count(x), LEAST_QUERIES);
    return tile > query ? tile : query;
}

int64_t ad__call_more_work(const ad_op *op) {
    static int64_t (*const estimates[])(const ad_op *op) = {[AD_WORK_LINE] = estimate_line,
                                                            [AD_WORK_RUNNING] = estimate_running,
                                                            [AD_WORK_OFFSETS] = estimate_offsets,
                                                            [AD_WORK_CHOICES] = estimate_choices,
                                                            [AD_WORK_NEIGHBOURS] = estimate_choices,
                                                            [AD_WORK_SECTIONS] = estimate_sections,
                                                            [AD_WORK_SPARSE] = estimate_sparse,
                                                            [AD_WORK_PAIRS] = estimate_pairs,
                                                            [AD_WORK_MATRIX] = NULL};
    int64_t (*const estimate)(const ad_op *op) = estimates[ad__call(op->row)->work];

    return estimate ? estimate(op) : 0;
}
