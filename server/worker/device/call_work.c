/* Products of an array's elements with another operand's, or with the size of a window: each element of the array takes
 * part so many times. */
#include "server/worker/device/call_work.h"

#include "protocol/base.h"
#include "protocol/desc.h"
#include "protocol/message.h"
#include "protocol/rows_call.h"
#include "protocol/size.h"

#define SHORT_LINE 16 /* elements of a line, below which a window's elements are read for few results */

/* Get input i, or NULL where there is none or it is a scalar. */
static const ad_desc *find_input(const ad_op *op, int i) {
    const ad_operand *o = i < op->nin ? &op->operand[op->nout + i] : NULL;
    return o && !o->is_scalar && o->desc.form == AD_VIEW ? &o->desc : NULL;
}

/* Parameter i, or 0 where it is no integer. */
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

/* A window along axis (parameter 0) that has `size` elements goes over lines of n. Lines have its elements in common, so
 * short ones take longest. */
static int64_t estimate_window(const ad_op *op, int64_t size) {
    const ad_desc *x = find_input(op, 0);
    const int64_t axis = find_number(op, 0);
    if (!x || axis < 0 || axis >= x->ndim || x->shape[axis] < 1 || size < 0) return 0;
    return estimate_product(ad__desc_count(x), ad__size_product(SHORT_LINE, size), x->shape[axis]);
}

static int64_t estimate_correlate1d(const ad_op *op) { return estimate_window(op, count_input(op, 1)); }

/* Long lines take a pass for each 64 elements of the window and more. */
static int64_t estimate_window1d(const ad_op *op) {
    const int64_t size = find_number(op, 2);
    const int64_t passes = size < 0 ? 0 : estimate_product(count_input(op, 0), size, 8);
    return ad__size_sum(passes, estimate_window(op, size));
}

/* For each element, places are found by offsets, axis by axis. */
static int64_t estimate_offsets(const ad_op *op) { return estimate_product(count_input(op, 0), count_input(op, 1), 1); }

/* They are joined or chosen from then, which takes longer than to add what is there. */
static int64_t estimate_choices(const ad_op *op) { return ad__size_product(4, estimate_offsets(op)); }

/* Each element passes through all sections. */
static int64_t estimate_iir(const ad_op *op) { return estimate_product(count_input(op, 0), count_input(op, 1), 2); }

/* Each element of a sparse matrix meets all columns of the dense operand, input 3. */
static int64_t estimate_sparse(const ad_op *op) {
    const ad_desc *x = find_input(op, 3);
    return x && x->ndim == 2 ? estimate_product(count_input(op, 0), x->shape[1], 2) : 0;
}

int64_t ad__call_more_work(const ad_op *op) {
    static int64_t (*const estimates[AD_CALL_LIMIT])(const ad_op *op) = {
        [AD_CALL_correlate1d] = estimate_correlate1d, [AD_CALL_window1d] = estimate_window1d,
        [AD_CALL_correlate] = estimate_offsets,       [AD_CALL_grey_filter] = estimate_offsets,
        [AD_CALL_rank_filter] = estimate_choices,     [AD_CALL_label] = estimate_choices,
        [AD_CALL_iir] = estimate_iir,                 [AD_CALL_spmm] = estimate_sparse,
        [AD_CALL_sptrsm] = estimate_sparse};

    return estimates[op->row] ? estimates[op->row](op) : 0;
}
