/* Execute one operation: find its operands, check them, make its outputs, run it, and record its failure.
 *
 *     ad__job_begin ─▶ ad__job_run ─┬─ 0 ──────▶ ad__job_end
 *                                   └─ AD_E_... ▶ ad__job_fail (poisons the outputs) ─▶ ad__job_end */
#include <inttypes.h>
#include <string.h>

#include "protocol/desc.h"
#include "protocol/infer.h"
#include "protocol/rows_request.h"
#include "protocol/rows_ufunc.h"
#include "server/worker/engine/background.h"
#include "server/worker/checkpoint/blame.h"
#include "server/worker/exec/job.h"
#include "server/worker/spill/quota.h"
#include "server/worker/spill/spill.h"
#include "server/worker/exec/exec.h"
#include "server/worker/device/cost.h"
#include "server/worker/checkpoint/buffer_free.h"

/* ---- operands ---- */

static int check_import_write(job *j, const ad_buffer *b) {
    return b->import ? j->s->worker->hooks.sharing->import_check_write(b, &j->fault) : 0;
}

/* Note that the operation reads an operand. A user's kernel may read all of the buffer. */
static void note_read(job *j, int i) {
    if (!j->s->checkpoint.late || (i < j->op->nout && !j->launch)) return;
    ad__checkpoint_note_read(j->s, j->buffer[i], j->launch ? (ad_extent){0, UINT64_MAX} : ad__job_extent(j, i));
}

static int find_view(job *j, int i, const ad_desc *d) {
    ad_buffer *b = j->buffer[i] = ad__buffers_find(&j->s->buffers, d->buffer);
    if (!b) return ad__fault(&j->fault, AD_E_STALE, "%s: there is no buffer %" PRIu64, ad__op_name(j->op), d->buffer);
    if (b->poison) {
        j->inherited = b->poison;
        return b->poison->code;
    }
    int status = i < j->op->nout ? check_import_write(j, b) : 0;
    if (!status) status = ad__job_check_view(j, i, b);
    if (!status) note_read(j, i);
    if (!status && b->filling) ad__checkpoint_end_filling(j->s, b);
    return status;
}

static int find_operands(job *j) {
    const ad_op *op = j->op;
    bool query = op->opcode == AD_REQ_QUERY;
    for (int i = 0; i < op->nout + op->nin; i++) {
        const ad_operand *o = &op->operand[i];
        int status = 0;
        j->buffer[i] = NULL;
        if (o->is_scalar) continue; /* ad__check_op refuses a scalar output */
        if (o->desc.form == AD_VIEW && !(query && i < op->nout)) status = find_view(j, i, &o->desc);
        else if (i >= op->nout || o->desc.form != (query ? AD_SIZED : AD_FRESH))
            status = ad__fault(&j->fault, AD_E_VALUE, "%s: %s has the wrong form", ad__op_name(j->op),
                               ad__job_operand_name(j, i));
        if (status) return status;
    }
    return 0;
}

static int check_kind(job *j) {
    const ad_op *op = j->op;
    if (op->opcode != AD_REQ_CALL && op->opcode != AD_REQ_QUERY) return 0;
    const ad_call_row *row = ad__call(op->row);
    if (row && (row->kind == AD_CALL_ASK) == (op->opcode == AD_REQ_QUERY)) return 0;
    return ad__fault(&j->fault, AD_E_VALUE, "%s must %s", ad__op_name(j->op),
                     op->opcode == AD_REQ_QUERY ? "be called, not queried" : "be queried");
}

static int make_outputs(job *j) {
    int status = 0;
    for (int i = 0; i < j->op->nout && !status; i++)
        if (j->op->operand[i].desc.form != AD_VIEW) status = ad__job_make_output(j, i);
    return status;
}

static void set_addresses(job *j) {
    const ad_op *op = j->op;
    for (int i = 0; i < op->nout + op->nin; i++) {
        ad_operand *o = &op->operand[i];
        if (!j->buffer[i]) continue;
        uint64_t offset = o->desc.form == AD_VIEW ? (uint64_t)o->desc.offset : 0;
        o->data = (void *)((uintptr_t)j->buffer[i]->address + offset);
    }
}

/* Order this operation after the users of its buffers on other stream queues and in other sessions. */
static int order_after_users(job *j) {
    const ad_op *op = j->op;
    if (j->s->streams.count == 1 && !j->s->sharing.shares) return 0;
    int status = 0;
    /* Inputs come first: an input may be the output as well. */
    for (int i = op->nout + op->nin - 1; i >= 0 && !status; i--) {
        if (!j->buffer[i]) continue;
        status = ad__stream_queue_uses(j->s, j->stream_queue, j->buffer[i], i < op->nout, &j->fault);
        if (!status) ad__stream_queue_count_peer(j->s, j->stream_queue, j->buffer[i], &op->operand[i].desc);
    }
    return status;
}

/* Get the checks that an output depends on. all: those of the inputs and of this operation. */
static uint64_t suspects_of_output(const job *j, int i, uint64_t all) {
    if (ad__job_makes_states(j, i)) return ad__deferred_checks_of(j->s, j->buffer[j->op->nout]);
    return j->made[i] && !j->queued ? all : all | ad__deferred_checks_of(j->s, j->buffer[i]);
}

/* Make the outputs depend on all unfinished checks of the inputs and of this operation. */
static void spread_suspects(job *j) {
    const ad_op *op = j->op;
    uint64_t all = 0;
    if (j->run.checked) {
        bool kept = ad__op_updates(op);
        uint64_t bit = ad__deferred_checks_add(j->s, j->number, ad__op_name(j->op), kept);
        all = kept ? 0 : bit;
    }
    if (!j->s->deferred_checks.count) return;
    for (int i = op->nout; i < op->nout + op->nin; i++)
        if (j->buffer[i]) all |= ad__deferred_checks_of(j->s, j->buffer[i]);
    for (int i = 0; i < op->nout; i++)
        if (j->buffer[i]) ad__deferred_checks_set(j->s, j->buffer[i], suspects_of_output(j, i, all));
}

/* Find what the operation costs where it is complete when it returns: the message at hand has been estimated. */
static int64_t find_cost(const job *j) {
    if (j->s->worker->backend->asynchronous) return 0;
    return j->op == &j->s->messages.message.op ? j->s->messages.cost : ad__op_cost(j->op);
}

static int start_job(job *j) {
    if (j->launch) return ad__launch_run(j->s, j->stream_queue, j->launch, j->op, j->number, &j->run, &j->fault);
    const bool in_background = ad__background_begin(j->s, find_cost(j));
    if (in_background || j->s->checkpoint.suspect.careful) j->run.cancelled = &j->s->turns.cancelled;
    int status = j->s->worker->backend->run(j->stream_queue->stream, j->op, &j->run, &j->fault);
    if (in_background) ad__background_end(j->s);
    return ad__job_put_back(j, ad__session_status(j->s, ad__job_explain_status(j, status), &j->fault));
}

/* Bring the operands back from host memory, where they stay until the job ends. */
static int bring_operands(job *j) {
    j->using = j->op->nout + j->op->nin;
    return ad__spill_begin(j->s, j->stream_queue, j->buffer, j->using, &j->fault);
}

/* Tell whether an operation reads nothing of its outputs but what it names as inputs. On a device that completes
 * operations later, what calls have read is known as well. */
static bool only_writes(const job *j) {
    const ad_op *op = j->op;
    if (op->opcode == AD_REQ_CALL) return j->s->checkpoint.late && !ad__op_updates(op);
    return op->opcode == AD_REQ_UFUNC && !ad__op_needs_zeros(op);
}

/* Tell whether a repetition would give another result, because the operation reads its output. */
static bool is_unrepeatable(const job *j, int output) {
    const ad_op *op = j->op;
    if (!only_writes(j)) return true;
    for (int i = op->nout; i < op->nout + op->nin; i++)
        if (j->buffer[i] == j->buffer[output]) return true;
    return false;
}

/* Get the bytes of an output's buffer that are written: all of a new one. */
static ad_extent get_extent(const job *j, int output) {
    const ad_desc *d = &j->op->operand[output].desc;
    return d->form == AD_VIEW ? ad__job_extent(j, output) : (ad_extent){0, UINT64_MAX};
}

static void announce_writes(job *j) {
    const ad_op *op = j->op;
    if (!j->s->checkpoint.at) return;
    for (int i = 0; i < (j->launch ? op->nout + op->nin : op->nout); i++) /* a kernel may write any of its operands */
        if (j->buffer[i] && (j->launch || is_unrepeatable(j, i) ||
                             !ad__checkpoint_is_repeatable_write(j->s, j->buffer[i], get_extent(j, i))))
            ad__checkpoint_before_write(j->s, j->buffer[i], j->number, ad__op_name(op));
}

static int enqueue_job(job *j) {
    if (!j->s->worker->backend->asynchronous) return start_job(j);
    int status = ad__deferred_checks_find_place(j->s, &j->run.check, &j->fault);
    if (status) return status;
    status = start_job(j);
    int counted = ad__session_enqueued(j->s, j->stream_queue,
                                       &j->fault); /* a failed operation may have enqueued something, too */
    spread_suspects(j);
    return status ? status : counted;
}

/* Refuse operations that were under way when the previous worker died. AD_E_DEVICE_LOST. */
static int check_blamed(job *j) {
    if (j->number > j->s->checkpoint.resumed.blamed) return 0;
    j->run.wrote = true; /* the contents of its arrays are unknown */
    return ad__fault(&j->fault, AD_E_DEVICE_LOST, "the worker died: %s", j->s->worker->before.died_of);
}

static int find_launch(job *j) {
    int status = check_blamed(j);
    if (status) return status;
    status = ad__launch_find(j->s, j->launch->message, j->stream_queue, j->launch, &j->fault);
    if (status && j->launch->lost) j->run.wrote = true; /* its results are missing */
    return status;
}

/* True if an output has more elements than the device has bytes, so that its allocation fails. */
static bool has_larger_output(const job *j) {
    const ad_op *op = j->op;
    const uint64_t most = j->s->worker->device.gpu[0].info.memory;
    for (int i = 0; i < op->nout; i++)
        if (op->operand[i].desc.form != AD_SIZED && most && (uint64_t)ad__desc_count(&op->operand[i].desc) > most)
            return true;
    return false;
}

/* Refuse calls with more elements than the device has bytes. A device cannot be interrupted, and views of little memory
 * can have any number of elements. AD_E_LIMIT. */
static int check_elements(job *j) {
    const ad_op *op = j->op;
    const uint64_t most = j->s->worker->device.gpu[0].info.memory, n = (uint64_t)ad__op_elements(op);
    if (op->opcode == AD_REQ_REDUCE || !most || n <= most) return 0;
    return ad__fault(&j->fault, AD_E_LIMIT,
                     "%s of %" PRIu64 " elements: a GPU takes at most as many as it has bytes of memory, %" PRIu64
                     "; use smaller operands",
                     ad__op_name(op), n, most);
}

/* Refuse operations that would exceed operation-time and cannot be cancelled: all on an asynchronous device, and
 * library calls. Elementwise operations are short enough unless they iterate. An output that is larger than the memory
 * is left to its allocation, which names who holds the memory. AD_E_LIMIT. */
static int check_length(job *j) {
    const bool later = j->s->worker->backend->asynchronous;
    const bool is_ufunc = j->op->opcode == AD_REQ_UFUNC;
    const double limit = j->s->worker->config.operation_time;
    if (has_larger_output(j) || (is_ufunc && !ad__op_iterates(j->op))) return 0;
    if (later && !is_ufunc && check_elements(j)) return j->fault.code;
    if (limit <= 0 || !(later || ad__op_decomposes(j->op))) return 0;
    const double seconds = 1e-9 * (double)(later ? ad__cost_on_device(j->s, j->op) : ad__op_cost(j->op));
    if (seconds <= limit) return 0;
    return ad__fault(
        &j->fault, AD_E_LIMIT,
        "%s would take some %.0f s with these operands, and an operation may take %g s on this server: use "
        "smaller ones, or have the option operation-time raised",
        ad__op_name(j->op), seconds, limit);
}

/* Kind, types, shapes and length of a message that comes again are checked the first time only. */
int ad__job_check(job *j) {
    const bool checked = j->facts && j->facts->checked;
    int status = checked ? 0 : check_kind(j);
    if (!status) status = find_operands(j);
    if (status || checked) return status;
    if (j->launch) return find_launch(j);
    status = ad__check_op(j->op, &j->fault);
    if (!status) status = check_length(j);
    if (j->facts) j->facts->checked = !status;
    return status;
}

int ad__job_run(job *j) {
    int status = ad__blame_check(j->s, "", &j->fault);
    if (status) {
        j->run.wrote = true; /* the contents of its outputs are unknown */
        return status;
    }
    int64_t cost = ad__cost_on_device(j->s, j->op), corrected = 0;
    if (cost > 0) corrected = ad__stream_queue_charge(j->s, cost);
    if (!(j->stream_queue = ad__stream_queue_current(j->s, &j->fault))) return j->fault.code;
    ad__stream_queue_expect(j->stream_queue, cost, corrected);
    if ((status = ad__job_check(j))) return status;
    if ((status = bring_operands(j))) return status;
    if ((status = make_outputs(j))) return status;
    if ((status = order_after_users(j))) return status;
    announce_writes(j);
    set_addresses(j);
    if ((status = ad__job_separate_inputs(j))) return status;
    if ((status = ad__job_guard_operands(j))) return status;
    return enqueue_job(j);
}

static int provide_outputs(job *j, ad_provide *provide) {
    for (int i = 0; i < j->op->nout; i++) {
        int status = provide(j->s, j->stream_queue, j->buffer[i], &j->fault);
        if (status) return j->made[i] ? ad__fresh_refused(&j->op->operand[i].desc, status, &j->fault) : status;
    }
    return 0;
}

void ad__job_set_queued(job *j, ad_stream_queue *queue, ad_buffer *const *buffer) {
    j->stream_queue = queue;
    j->queued = true;
    for (int i = 0; i < j->op->nout + j->op->nin; i++) {
        j->buffer[i] = buffer[i];
        if (i < j->op->nout) j->made[i] = j->op->operand[i].desc.form != AD_VIEW;
        if (buffer[i] && buffer[i]->poison && !j->inherited) j->inherited = buffer[i]->poison;
    }
}

int ad__job_run_queued(job *j, ad_provide *provide) {
    int status;
    int64_t cost = ad__cost_on_device(j->s, j->op);
    if (cost > 0) ad__stream_queue_expect(j->stream_queue, cost, ad__stream_queue_charge(j->s, cost));
    if (j->inherited) return j->inherited->code;
    if ((status = bring_operands(j))) return status;
    if ((status = provide_outputs(j, provide))) return status;
    if ((status = order_after_users(j))) return status;
    set_addresses(j);
    if ((status = ad__job_guard_operands(j))) return status;
    return enqueue_job(j);
}

/* ---- failing ---- */

static void poison_buffer(ad_worker_session *s, ad_buffer *b, ad_poison *p, bool release) {
    if (release) ad__buffer_give_memory(s, b);
    ad__checkpoint_mark_buffer(s, b);
    if (!b->poison) b->poison = ad__poison_hold(p);
}

static void poison_output(job *j, int i, ad_poison *p) {
    const ad_operand *o = &j->op->operand[i];
    ad_worker_session *s = j->s;
    ad_buffer *b;
    if (o->is_scalar) {
        ad__session_keep_failure(s, p);
    } else if (o->desc.form != AD_VIEW) {
        if (j->made[i]) poison_buffer(s, j->buffer[i], p, true);
        else if (!ad__buffers_add(&s->buffers, o->desc.buffer, &b, NULL)) poison_buffer(s, b, p, true);
        else ad__session_keep_failure(s, p);
    } else {
        b = j->queued ? j->buffer[i] : ad__buffers_find(&s->buffers, o->desc.buffer);
        if (b && (j->inherited || j->run.wrote || b->promised)) poison_buffer(s, b, p, b->promised);
        else ad__session_keep_failure(s, p);
    }
}

ad_poison *ad__job_fail(job *j, int status) {
    ad_poison *p;
    if (j->inherited) {
        p = ad__poison_hold(j->inherited);
    } else {
        j->fault.code = status;
        p = ad__poison_new(&j->fault, j->number, ad__op_name(j->op));
    }
    /* The first output has given its memory back when the second one's turn comes. */
    for (int i = 0; i < j->op->nout; i++)
        if (!ad__job_carry_states(j, i)) poison_output(j, i, p);
    if (!j->op->nout) ad__session_keep_failure(j->s, p);
    j->s->progress.failed++;
    return p;
}

ad_poison *ad__exec_query(ad_worker_session *s, ad_message *m, int64_t *values, int *nvalues) {
    job j;
    ad_poison *p = NULL;
    ad__job_begin(&j, s, &m->op, 0);
    j.run.values = values;
    int status = 0;
    if (s->progress.pending) {
        j.inherited = s->progress.pending;
        status = s->progress.pending->code;
    }
    if (!status) status = ad__job_run(&j);
    if (status) p = ad__job_fail(&j, status);
    *nvalues = j.run.nvalues;
    ad__job_end(&j);
    return p;
}

int ad__exec_contiguous(ad_worker_session *s, ad_stream_queue *queue, const ad_operand *view, uint64_t size,
                        ad_block *out, ad_fault *fault) {
    job j;
    ad_op none = {.opcode = AD_REQ_UFUNC, .row = AD_UFUNC_copy};
    ad__job_begin(&j, s, &none, 0);
    j.stream_queue = queue;
    int status = ad__quota_borrow(s, queue, size, out, &j.fault);
    if (!status && (status = ad__job_pack(&j, view, out->address))) ad__quota_repay(s, queue, out);
    ad__job_end(&j);
    return status ? ad__fault(fault, status, "%s", j.fault.text) : 0;
}
