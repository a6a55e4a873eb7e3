/* Items of lists, and their launch. */
#include "kernels/cuda/list/list.h"

#include <new>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/infer.h"
#include "protocol/rows_call.h"
#include "protocol/rows_request.h"
#include "protocol/rows_ufunc.h"

namespace {

constexpr int64_t MOST_ELEMENTS = 2048;      /* of an elementwise item: eight for each thread */
constexpr int64_t MOST_FOLDED = 4096;        /* elements that an item reduces */
constexpr int64_t MOST_GROUPS = 4;           /* of its outputs, one after the other */
constexpr int64_t MOST_SIDE = 64;            /* rows, columns or terms of a product */
constexpr int64_t MOST_PRODUCTS = 16 * 1024; /* multiplications of a product */

/* ---- the list ---- */

/* Enqueue the list's kernel. It may begin before the kernel ahead of it has ended, and waits by itself, as in
 * ad_ufunc_launch. */
int enqueue(ad_stream *stream, ad_fault *fault) {
    void *arguments[] = {stream->list};
    cudaLaunchAttribute early;
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1);
    config.blockDim = dim3(AD_FOLD_THREADS);
    config.stream = stream->cuda;
    config.attrs = &early;
    config.numAttrs = stream->device->major >= 9 ? 1 : 0;
    const int status = ad_cuda_enter(stream->device, fault);
    return status ? status
                  : ad_cuda_status(cudaLaunchKernelExC(&config, ad_cuda_list_kernel(), arguments), "launching a list",
                                   fault);
}

/* Launch the list. Its operations were reported as enqueued, so none of them can fail any more: without a launch the
 * device is lost, and another worker executes them again. */
int launch(ad_stream *stream, ad_fault *fault) {
    ad_fault why = {};
    if (enqueue(stream, &why)) return ad__fault(fault, AD_E_DEVICE_LOST, "%s", why.text);
    stream->list->bytes = stream->list->items = 0;
    return 0;
}

/* Get room for an item; NULL: none is taken now, or *status says why not. */
ad_list_head *get_room(ad_stream *stream, size_t bytes, ad_fault *fault, int *status) {
    *status = 0;
    if (!stream->list) stream->list = new (std::nothrow) ad_list();
    ad_list *l = stream->list;
    if (!l) return nullptr;
    if (l->bytes + bytes > AD_LIST_BYTES && (*status = launch(stream, fault))) return nullptr;
    return reinterpret_cast<ad_list_head *>(l->data + l->bytes);
}

/* Add the item that was written into the room. Returns 1, or the status of a launch. */
int add_item(ad_stream *stream, ad_list_head *h, int kind, int type, size_t bytes, ad_fault *fault) {
    ad_list *l = stream->list;
    h->kind = uint8_t(kind);
    h->type = uint8_t(type);
    h->bytes = uint16_t(bytes);
    l->bytes += uint32_t(bytes);
    const int status = ++l->items >= uint32_t(stream->device->lists) ? launch(stream, fault) : 0;
    return status ? status : 1;
}

/* Tell whether the first launch of the operation at hand can be an item. True once. */
bool takes_item(ad_stream *stream) {
    const bool takes = stream->listing;
    stream->listing = false;
    return takes;
}

bool fits_int32(int64_t x) { return x == int32_t(x); }

/* ---- elementwise ---- */

bool is_copy(const ad_ufunc_plan *p) {
    return p->row == AD_UFUNC_copy || ad_cuda_ufunc_table(p->loop)->width[p->row] == 0;
}

/* The integer type of a copied element's size. -1: lists do not copy such elements. */
int word_of(int dtype) {
    switch (ad_ufunc_size(dtype)) {
    case 1: return AD_INT8;
    case 2: return AD_INT16;
    case 4: return AD_INT32;
    case 8: return AD_INT64;
    default: return -1;
    }
}

/* The type that the kernel has for the row. -1: none. */
int type_of(const ad_ufunc_plan *p) {
    if (is_copy(p))
        return p->dtype[0] == p->loop && (!p->walk.base[1] || p->dtype[1] == p->loop) ? word_of(p->loop) : -1;
    for (int k = 0; k < p->nop; k++) {
        const bool truth = k == 0 && p->want[k] == AD_BOOL;
        if (p->dtype[k] != p->want[k] || (p->want[k] != p->loop && !truth)) return -1;
    }
    return ad_cuda_list_has(p->row, p->loop) ? p->loop : -1;
}

/* Write an operand of the walk. False: it does not fit. */
bool put_operand(const ad_ufunc_plan *p, int k, ad_list_ufunc *l) {
    const ad_loop *w = &p->walk;
    const int missing = AD_LIST_DIMS - w->ndim;
    uint64_t bits = reinterpret_cast<uintptr_t>(w->base[k]);
    int64_t span = 0;
    l->base[k] = bits;
    for (int d = 0; d < missing; d++) l->stride[k][d] = 0;
    for (int d = 0; d < w->ndim; d++) {
        const int64_t stride = w->stride[k][d];
        if (!fits_int32(stride)) return false;
        bits |= uint64_t(stride);
        span += llabs(stride) * (w->shape[d] - 1);
        l->stride[k][missing + d] = int32_t(stride);
    }
    if (w->base[k]) return fits_int32(span) && bits % uint64_t(ad_ufunc_size(p->dtype[k])) == 0;
    memcpy(&l->base[k], p->value[k], 8);
    l->scalars |= uint8_t(1 << k);
    return k > 0;
}

bool put_ufunc(const ad_ufunc_plan *p, ad_list_ufunc *l) {
    const ad_loop *w = &p->walk;
    l->count = uint32_t(ad_loop_count(w));
    l->row = uint16_t(is_copy(p) ? AD_UFUNC_copy : p->row);
    l->nin = uint8_t(p->nop - 1);
    l->scalars = 0;
    l->truth = l->row != AD_UFUNC_copy && p->want[0] == AD_BOOL && p->loop != AD_BOOL;
    for (int d = 1; d < AD_LIST_DIMS; d++) {
        const int from = d - (AD_LIST_DIMS - w->ndim);
        l->dim[d - 1] = ad_ufunc_divider_of(from < 0 ? 1 : uint32_t(w->shape[from]));
    }
    for (int k = 0; k < p->nop; k++)
        if (!put_operand(p, k, l)) return false;
    return true;
}

int add_ufunc(const ad_ufunc_plan *p) {
    const int type = p->masked || p->nout != 1 || p->nop > 3 || p->walk.ndim > AD_LIST_DIMS ? -1 : type_of(p);
    int status;
    if (type < 0 || ad_loop_count(&p->walk) > MOST_ELEMENTS) return 0;
    ad_list_head *h = get_room(p->stream, sizeof(ad_list_ufunc), p->fault, &status);
    if (!h || !put_ufunc(p, reinterpret_cast<ad_list_ufunc *>(h))) return status;
    return add_item(p->stream, h, AD_LIST_UFUNC, type, sizeof(ad_list_ufunc), p->fault);
}

/* ---- products ---- */

bool is_small(const ad_cuda_product *p) {
    const ad_cuda_matrix *const all[] = {&p->a, &p->b, &p->c};
    const uint64_t size = uint64_t(ad_ufunc_size(p->dtype));
    if (p->dtype != AD_FLOAT32 && p->dtype != AD_FLOAT64) return false;
    if (p->batch.count != 1 || p->c.rows > MOST_SIDE || p->c.columns > MOST_SIDE || p->a.columns > MOST_SIDE ||
        p->c.rows * p->c.columns * p->a.columns > MOST_PRODUCTS)
        return false;
    for (const ad_cuda_matrix *m : all) {
        if (!fits_int32(m->row_step) || !fits_int32(m->column_step)) return false;
        if ((reinterpret_cast<uintptr_t>(m->data) | uint64_t(m->row_step) | uint64_t(m->column_step)) % size)
            return false;
    }
    return true;
}

int add_product(ad_stream *stream, const ad_cuda_product *p, ad_fault *fault) {
    int status = 0;
    ad_list_head *h = is_small(p) ? get_room(stream, sizeof(ad_list_product), fault, &status) : nullptr;
    if (!h) return status;
    ad_list_product *l = reinterpret_cast<ad_list_product *>(h);
    *l = {{0, 0, 0},
          int32_t(p->c.rows),
          int32_t(p->c.columns),
          int32_t(p->a.columns),
          int32_t(p->c.row_step),
          int32_t(p->c.column_step),
          int32_t(p->a.row_step),
          int32_t(p->a.column_step),
          int32_t(p->b.row_step),
          int32_t(p->b.column_step),
          p->c.data,
          p->a.data,
          p->b.data};
    return add_item(stream, h, AD_LIST_PRODUCT, p->dtype, sizeof *l, fault);
}

/* ---- reductions ---- */

int add_fold(ad_stream *stream, const ad_fold *f, int family, int way, int input, int64_t groups, ad_fault *fault) {
    constexpr size_t HEAD = offsetof(ad_fold, keep);
    const size_t keep = (f->nkeep ? f->nkeep : 1) * sizeof *f->keep, over = (f->nover ? f->nover : 1) * sizeof *f->over;
    const size_t bytes = sizeof(ad_list_fold) + HEAD + keep + over;
    int status = 0;
    if ((family != AD_FOLD_SUMS && family != AD_FOLD_TOPS) || (input != AD_FLOAT32 && input != AD_FLOAT64) ||
        way == AD_FOLD_MASKED || f->blocks != 1 || groups > MOST_GROUPS || f->outputs > MOST_FOLDED ||
        f->reduced > MOST_FOLDED || f->outputs * f->reduced > MOST_FOLDED)
        return 0;
    ad_list_head *h = get_room(stream, bytes, fault, &status);
    if (!h) return status;
    ad_list_fold *l = reinterpret_cast<ad_list_fold *>(h);
    char *to = reinterpret_cast<char *>(l + 1);
    l->family = uint8_t(family);
    l->way = uint8_t(way);
    l->groups = uint32_t(groups);
    memcpy(to, static_cast<const void *>(f), HEAD);
    memcpy(to + HEAD, f->keep, keep);
    memcpy(to + HEAD + keep, f->over, over);
    return add_item(stream, h, AD_LIST_FOLD, input, bytes, fault);
}

/* ---- which operations may be items ---- */

/* Tell whether an operation's operands are arrays of the type that it computes in, so that nothing is converted. */
bool is_plain(const ad_op *op) {
    for (int k = 0; k < op->nout + op->nin; k++)
        if (op->operand[k].is_scalar || op->operand[k].desc.dtype != op->loop) return false;
    return true;
}

/* Tell whether a product's elements are sums of anything. */
bool has_terms(const ad_op *op) {
    const ad_desc *a = &op->operand[1].desc;
    return a->ndim > 0 && a->shape[a->ndim - 1] > 0;
}

bool may_be_item(const ad_op *op) {
    switch (op->opcode) {
    case AD_REQ_UFUNC: return true;
    case AD_REQ_REDUCE: return op->nin == 1 && is_plain(op) && op->operand[1].desc.ndim <= AD_FOLD_DIMS;
    case AD_REQ_CALL: return op->row == AD_CALL_matmul && is_plain(op) && has_terms(op);
    default: return false;
    }
}

/* Launch the list where the operation has not become an item, as its caller launches it next. */
int launch_before(ad_stream *stream, int added, ad_fault *fault) {
    return added ? added : ad_cuda_list_flush(stream, fault);
}

} // namespace

int ad_cuda_list_flush(ad_stream *stream, ad_fault *fault) {
    return stream->list && stream->list->items ? launch(stream, fault) : 0;
}

int ad_cuda_list_begin(ad_stream *stream, const ad_op *op, ad_fault *fault) {
    stream->listing = stream->device->lists > 0 && may_be_item(op);
    return stream->listing ? 0 : ad_cuda_list_flush(stream, fault);
}

int ad_cuda_list_ufunc(const ad_ufunc_plan *p) {
    return launch_before(p->stream, takes_item(p->stream) ? add_ufunc(p) : 0, p->fault);
}

int ad_cuda_list_product(ad_call *c, const ad_cuda_product *p) {
    return launch_before(c->stream, takes_item(c->stream) ? add_product(c->stream, p, c->fault) : 0, c->fault);
}

int ad_cuda_list_fold(ad_call *c, const ad_fold *f, int family, int way, int input, int64_t groups) {
    const int added = takes_item(c->stream) ? add_fold(c->stream, f, family, way, input, groups, c->fault) : 0;
    return launch_before(c->stream, added, c->fault);
}
