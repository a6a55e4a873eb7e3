/* Extents of operands. Those of an operation that comes again (ad_facts) are computed once, and its offsets and buffers
 * are checked against them each time.
 *
 *     shape, strides, type     the same bytes in each message        low, high, unaligned: kept
 *     buffer, offset           may differ in each message            0 <= offset + low, offset + high <= size */
#include "protocol/desc.h"
#include "server/worker/exec/job.h"

const char *ad__job_operand_name(const job *j, int i) {
    static const char *const inputs[] = {"input 1", "input 2", "input 3"};
    const int nout = j->op->nout;
    if (i < nout) return i ? "output 2" : "output";
    return i - nout < 3 ? inputs[i - nout] : "an input";
}

/* Keep the extent of a view that is valid. */
static void keep_extent(ad_facts *f, int i, const ad_desc *d) {
    const ad_dtype_row *row = &ad__dtypes[d->dtype];
    int64_t low, high;
    if (ad__desc_extent(d, &low, &high, NULL)) return;
    f->extent[i].low = low - d->offset;
    f->extent[i].high = high - d->offset;
    f->extent[i].unaligned = (uint8_t)((row->kind == 'c' ? row->size / 2 : row->size) - 1);
    f->extent[i].known = true;
}

/* Tell whether a view whose extent is known lies in a buffer of so many bytes, and is aligned. low is not above 0, and
 * an offset is not below it. */
static bool is_inside(const ad_facts *f, int i, const ad_desc *d, int64_t size) {
    return f->extent[i].known && d->offset >= -f->extent[i].low && d->offset <= size - f->extent[i].high &&
           !(d->offset & f->extent[i].unaligned);
}

int ad__job_check_view(job *j, int i, const ad_buffer *b) {
    const ad_desc *d = &j->op->operand[i].desc;
    if (j->facts && is_inside(j->facts, i, d, (int64_t)b->size)) return 0;
    const int status = ad__desc_check(d, (int64_t)b->size, ad__job_operand_name(j, i), &j->fault);
    if (!status && j->facts) keep_extent(j->facts, i, d);
    return status;
}

ad_extent ad__job_extent(const job *j, int i) {
    const ad_desc *d = &j->op->operand[i].desc;
    const ad_facts *f = j->facts;
    if (!f || !f->extent[i].known) return ad__checkpoint_extent(d);
    return (ad_extent){(uint64_t)(d->offset + f->extent[i].low), (uint64_t)(d->offset + f->extent[i].high)};
}

int ad__fresh_size(const ad_desc *d, uint64_t *size, ad_fault *fault) {
    int64_t count;
    int status = ad__shape_count(d->ndim, d->shape, d->dtype, &count, fault);
    if (!status) *size = (uint64_t)count * ad__dtypes[d->dtype].size;
    return status;
}

int ad__job_fresh_size(job *j, int i, uint64_t *size) {
    ad_facts *f = j->facts;
    if (f && f->extent[i].known) {
        *size = (uint64_t)f->extent[i].high;
        return 0;
    }
    const int status = ad__fresh_size(&j->op->operand[i].desc, size, &j->fault);
    if (status || !f) return status;
    f->extent[i].high = (int64_t)*size;
    f->extent[i].known = true;
    return 0;
}
