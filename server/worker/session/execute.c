/* Executing a message: what the flags of its row demand, then its handler. */
#include "server/worker/checkpoint/blame.h"
#include "server/worker/exec/job.h"
#include "server/worker/handlers.h"
#include "server/worker/io/reply.h"
#include "server/worker/session/session.h"
#include "server/worker/io/cancel.h"

/* Record a failure of an operation without an output to carry it. */
static void record_failure(ad_worker_session *s, const ad_fault *fault, const char *name) {
    ad_poison *p = ad__poison_new(fault, s->progress.done + 1, name);
    ad__session_keep_failure(s, p);
    ad__poison_release(p);
    s->progress.failed++;
}

/* Report a failure to the client: at once where it waits for an answer. */
static void report_failure(ad_worker_session *s, const ad_message *m, int status, ad_fault *fault) {
    fault->code = status;
    if (m->row->cls == AD_CLASS_ASK) ad__reply_fault(s, m->u[0], status, fault);
    else record_failure(s, fault, m->row->name);
}

/* Leave out a message that has no outputs to carry the error. */
static void leave_out(ad_worker_session *s, const ad_message *m, ad_fault *fault) {
    const bool is_ask = m->row->cls == AD_CLASS_ASK;
    const int status = ad__blame_check(s, is_ask ? m->row->name : "", fault);
    if (m->row->flags & AD_R_DESCRIPTOR) ad__descriptor_skip(s);
    if (is_ask) {
        s->checkpoint.resumed.read = 0;
        s->progress.failed++;
    }
    report_failure(s, m, status, fault);
}

/* Prepare for an answer. AD_WAITS; negative: the request is refused. */
static int prepare_answer(ad_worker_session *s, const ad_message *m, ad_fault *fault) {
    /* An error that was reported before the worker was replaced is known again when all that came before is committed.
     */
    if (s->checkpoint.resumed.silent && s->checkpoint.resumed.untold && !ad__checkpoint_await_commit(s))
        return AD_WAITS;
    if (!s->rights.must_migrate) return 0;
    return s->worker->hooks.migration->must_wait(s, m, fault) ? AD_WAITS : fault->code;
}

bool ad__execute(ad_worker_session *s, ad_message *m) {
    const unsigned flags = m->row->flags;
    const bool is_ask = m->row->cls == AD_CLASS_ASK;
    s->messages.cancelled = ad__cancel_covers_message(s);
    const bool left_out = s->checkpoint.suspect.left_out || s->messages.cancelled;
    ad_fault fault;
    fault.code = 0;
    fault.text[0] = 0;
    if (left_out && !(flags & AD_R_OUTPUT)) {
        leave_out(s, m, &fault);
        return true;
    }
    int status = is_ask ? prepare_answer(s, m, &fault) : 0;
    if (!status && flags & AD_R_MODULE && !left_out && !ad__modules_ready(s, m->u[is_ask])) return false;
    if (!status) status = ad__handlers[m->opcode](s, m, &fault);
    if (status == AD_WAITS) return false;
    s->progress.cancelled += s->messages.cancelled;
    if (status) report_failure(s, m, status, &fault);
    return true;
}

int ad__handle_sync(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    (void)fault;
    if (!ad__checkpoint_await_commit(s)) return AD_WAITS;
    if (!ad__reply_pending_failure(s, m->u[0])) ad__reply_values(s, m->u[0], 0, NULL);
    return 0;
}
