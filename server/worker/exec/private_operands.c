/* Private operands: copies in scratch memory of inputs that the outputs overlap, and of operands that other sessions
 * may write meanwhile.
 *
 *     a[1:] = cumsum(a[:-1])    input ──copy──▶ scratch ──operation──▶ output
 *     guarded output            output ──copy──▶ scratch ──operation──▶ scratch ──copy──▶ output
 *
 * A kernel that checks an index and then uses it reads it twice: without a copy another session could change it in
 * between. */
#include <string.h>

#include "protocol/desc.h"
#include "protocol/infer.h"
#include "protocol/rows_request.h"
#include "protocol/rows_ufunc.h"
#include "server/worker/engine/background.h"
#include "server/worker/exec/job.h"
#include "server/worker/memory/shared.h"
#include "server/worker/device/cost.h"

static int64_t get_item_size(const ad_operand *o) { return ad__dtypes[o->desc.dtype].size; }

/* Copy between views of the same dtype and shape. The flags that the operation has set in j->run stay. */
static int copy_view(job *j, const ad_operand *to, const ad_operand *from) {
    const ad_backend *backend = j->s->worker->backend;
    const ad_run own = j->run;
    ad_operand operand[2] = {*to, *from};
    ad_op op = {.opcode = AD_REQ_UFUNC,
                .loop = from->desc.dtype,
                .nout = 1,
                .nin = 1,
                .row = AD_UFUNC_copy,
                .operand = operand};
    const bool in_background = ad__background_begin(j->s, ad__op_cost(&op));
    if (in_background) j->run.cancelled = &j->s->turns.cancelled;
    int status = backend->run(j->stream_queue->stream, &op, &j->run, &j->fault);
    if (in_background) ad__background_end(j->s);
    j->run = own;
    return ad__session_status(j->s, ad__job_explain_status(j, status), &j->fault);
}

int ad__job_pack(job *j, const ad_operand *from, void *to) {
    int64_t strides[AD_MAX_NDIM];
    ad_operand packed = {.desc = from->desc, .data = to};
    ad__strides_contiguous(from->desc.ndim, from->desc.shape, get_item_size(from), strides);
    packed.desc.strides = strides;
    packed.desc.offset = 0;
    return copy_view(j, &packed, from);
}

/* Drop the view's repetitions: axes of stride 0 get one element. */
static void drop_repetitions(const ad_operand *view, ad_operand *once, int64_t *shape) {
    *once = *view;
    for (int i = 0; i < view->desc.ndim; i++)
        shape[i] = view->desc.strides[i] || !view->desc.shape[i] ? view->desc.shape[i] : 1;
    once->desc.shape = shape;
}

/* Replace the operand by contiguous scratch memory; repeated axes stay repeated. filled: with a copy of the operand's
 * elements. */
static int move_to_scratch(job *j, ad_operand *o, bool filled) {
    const int ndim = o->desc.ndim;
    int64_t shape[AD_MAX_NDIM], *strides = ad__arena_alloc(&j->s->messages.arena, (ndim + 1u) * sizeof *strides);
    ad_operand from, to;
    uint64_t size;
    if (!strides) return ad__fault(&j->fault, AD_E_MEMORY, "out of host memory");
    drop_repetitions(o, &from, shape);
    int status = ad__fresh_size(&from.desc, &size, &j->fault);
    if (status) return status;
    to = from;
    if (!(to.data = ad__job_scratch(j, size))) return ad__job_explain_status(j, AD_E_MEMORY);
    ad__strides_contiguous(ndim, shape, get_item_size(o), strides);
    to.desc.strides = strides;
    to.desc.offset = 0;
    if (filled && (status = copy_view(j, &to, &from))) return status;
    for (int i = 0; i < ndim; i++)
        if (!o->desc.strides[i]) strides[i] = 0;
    o->desc.strides = strides;
    o->desc.offset = 0;
    o->data = to.data;
    return 0;
}

/* ---- inputs that outputs overlap ---- */

/* Set how many bytes the input begins behind the output, if both are pieces of one allocation of the client. */
static bool do_imports_meet(const job *j, int output, int input, int64_t *distance) {
    const ad_buffer *a = j->buffer[output], *b = j->buffer[input];
    return a && b && a->import && b->import && j->s->worker->hooks.sharing->imports_meet(a, b, distance);
}

/* Tell whether an input must be copied, because the output overlaps it. An input copied already has no buffer. */
static bool must_separate(const job *j, int output, int input) {
    const ad_op *op = j->op;
    const ad_desc *out = &op->operand[output].desc;
    ad_desc in = op->operand[input].desc;
    int64_t distance;
    if (!in.buffer) return false;
    if (out->buffer != in.buffer && do_imports_meet(j, output, input, &distance)) {
        in.offset += distance;
        in.buffer = out->buffer;
    }
    if (out->buffer != in.buffer || !ad__desc_overlap(out, &in)) return false;
    return op->opcode != AD_REQ_UFUNC || out->dtype != in.dtype || !ad__desc_same(out, &in);
}

int ad__job_separate_inputs(job *j) {
    const ad_op *op = j->op;
    if (j->launch) return 0; /* a user's kernel gets its operands as they are */
    for (int o = 0; o < op->nout; o++) {
        const ad_desc *out = &op->operand[o].desc;
        if (out->form != AD_VIEW) continue;
        for (int i = op->nout; i < op->nout + op->nin; i++) {
            ad_operand *in = &op->operand[i];
            if (in->is_scalar || !must_separate(j, o, i)) continue;
            int status = move_to_scratch(j, in, true);
            if (status) return status;
            in->desc.buffer = 0;
        }
    }
    return 0;
}

/* ---- operands that other sessions write ---- */

/* Tell whether operand i is guarded, by its letter in the row. The last letter holds for all further operands. */
static bool is_guarded(const ad_op *op, int i) {
    const char *guard = ad__call(op->row)->guard;
    const int last = (int)strlen(guard) - 1;
    return guard[i < last ? i : last] == 'g';
}

/* Replace an output by scratch memory. Only updates read its old elements, so only those copy them. */
static int redirect_output(job *j, int i) {
    ad_operand *o = &j->op->operand[i];
    const ad_operand own = *o;
    int status = move_to_scratch(j, o, ad__op_updates(j->op));
    if (status) return status;
    j->written[j->nbehind] = i;
    j->behind[j->nbehind++] = own;
    return 0;
}

int ad__job_guard_operands(job *j) {
    const ad_op *op = j->op;
    const int n = op->opcode == AD_REQ_CALL || op->opcode == AD_REQ_QUERY ? op->nout + op->nin : 0;
    for (int i = 0; i < n; i++) {
        const ad_buffer *b = j->buffer[i];
        if (!b || !ad__shared_is_open(b) || !is_guarded(op, i)) continue;
        ad_operand *o = &op->operand[i];
        if (o->desc.form != AD_VIEW || !o->desc.buffer) continue; /* new memory, or a copy already */
        int status = i < op->nout ? redirect_output(j, i) : move_to_scratch(j, o, true);
        if (status) return status;
    }
    return 0;
}

/* After a failure no written element is visible, unless another existing output was written directly. */
int ad__job_put_back(job *j, int status) {
    int existing = 0;
    if (!j->nbehind) return status;
    for (int i = 0; i < j->op->nout; i++) existing += j->op->operand[i].desc.form == AD_VIEW;
    if (status && existing == j->nbehind) j->run.wrote = false;
    for (int i = 0; i < j->nbehind && !status; i++) {
        j->run.wrote = true;
        status = copy_view(j, &j->behind[i], &j->op->operand[j->written[i]]);
    }
    return status;
}
