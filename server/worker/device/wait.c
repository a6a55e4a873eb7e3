#include "server/worker/device/wait.h"

#include <stdio.h>

#include "protocol/infer.h"
#include "protocol/size.h"
#include "server/common/os.h"
#include "server/worker/session.h"

int64_t ad__session_turn_time(const ad_worker_session *s) { return s->turns.since ? s->turns.since : ad__os_now(); }

void ad__session_await(ad_worker_session *s, ad_wait_for kind, ad_stream_queue *queue, ad_event *event) {
    s->wait = (ad_wait){.kind = kind,
                        .stream_queue = queue,
                        .event = event,
                        .since = ad__os_now(),
                        .returns = s->worker->engine.returns};
    if (kind != AD_WAIT_ROOM && kind < AD_WAIT_MORE && s->worker->backend->asynchronous)
        s->worker->engine.hurried = s->wait.since;
}

void ad__session_await_more(ad_worker_session *s, int64_t ns) {
    ad__session_await(s, AD_WAIT_MORE, NULL, NULL);
    s->wait.until = ad__size_sum(s->wait.since, ns);
}

static const char *name_message(const ad_message *m) { return m->op.opcode ? ad__op_name(&m->op) : m->row->name; }

int ad__session_status(ad_worker_session *s, int status, const ad_fault *fault) {
    char why[AD_FAULT_TEXT + 400], kernels[256];
    if (status != AD_E_DEVICE_LOST) return status;
    ad__watchdog_names(&s->worker->device.watchdog, kernels, sizeof kernels);
    snprintf(why, sizeof why, "%s%s%s (seen at operation %lu, %s)", fault ? fault->text : "device lost",
             *kernels ? "; kernels under way: " : "", kernels, (unsigned long)s->progress.done + 1,
             s->messages.at_hand ? name_message(&s->messages.message) : "none");
    s->worker->device.watchdog.on_lost(s->worker->device.watchdog.user, why);
    return status; /* not reached */
}
