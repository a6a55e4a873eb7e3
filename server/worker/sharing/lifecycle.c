/* How sharing begins, what it frees from time to time, and how it ends. */
#include <stdlib.h>
#include <sys/random.h>

#include "server/common/os.h"
#include "server/worker/sharing/exports.h"
#include "server/worker/sharing/imports.h"
#include "server/worker/sharing/leases.h"
#include "server/worker/sharing/sharing.h"

int ad__sharing_open(ad_worker *w) {
    w->sharing = ad__os.calloc(1, sizeof *w->sharing);
    if (!w->sharing) return AD_E_MEMORY;
    w->sharing->due = INT64_MAX;
    if (getrandom(&w->sharing->number, sizeof w->sharing->number, 0) != (ssize_t)sizeof w->sharing->number)
        return AD_E_SYSTEM;
    w->sharing->number >>= 1; /* integers in replies are signed */
    return 0;
}

/* Close retired orphans whose streams have passed. False: some are left. */
static bool close_orphans(ad_worker *w, bool wait) {
    ad_stream_queue **at = &w->sharing->going;
    while (*at) {
        ad_stream_queue *queue = *at;
        if (wait) w->backend->stream_wait(queue->stream, NULL);
        if (!wait && w->backend->event_done(queue->fence, NULL) == 0) {
            at = &queue->next;
            continue;
        }
        *at = queue->next;
        ad__stream_queue_close(w->backend, queue);
    }
    return !w->sharing->going;
}

/* Close slabs of orphans whose streams have passed all that used them. False: some are left. */
static bool reap_orphans(const ad_worker *w) {
    bool left = false;
    for (const ad_stream_queue *queue = w->sharing->orphan; queue; queue = queue->next)
        left |= ad__stream_arena_reap(queue->stream_arena);
    return !left;
}

void ad__sharing_sweep(ad_worker *w) {
    ad__leases_sweep(w);
    if (w->sharing->due == INT64_MAX) return;
    const int64_t now = ad__os_now();
    if (now < w->sharing->due) return;
    w->sharing->due = INT64_MAX;
    int64_t next = ad__capabilities_expire(w, now);
    const bool orphans_gone = close_orphans(w, false), slabs_gone = reap_orphans(w),
               imports_gone = ad__imports_settle(w);
    if (!(orphans_gone && slabs_gone && imports_gone))
        next = next < now + AD_SHARING_LOOK ? next : now + AD_SHARING_LOOK;
    if (next < w->sharing->due) w->sharing->due = next;
}

int64_t ad__sharing_due(const ad_worker *w) { return w->sharing->ended ? 0 : w->sharing->due; }

void ad__sharing_end(ad_worker_session *s) {
    ad__imports_end(s);
    ad__exports_end(s);
    ad__capabilities_end(s->worker, s);
    ad__holders_forget(s->worker, s);
    ad__paying_end(s);
}

void ad__sharing_close(ad_worker *w) {
    if (!w->sharing) return;
    ad__holders_forget(w, NULL);
    ad__capabilities_end(w, NULL);
    ad__names_close(w);
    ad__exports_close(w);
    close_orphans(w, true);
    free(w->sharing);
    w->sharing = NULL;
}

const ad_component ad__component_sharing = {.name = "sharing", .drop = ad__sharing_end};
const ad_sharing_hooks ad__sharing_hooks = {.uses = ad__shared_uses,
                                            .leave = ad__shared_leave,
                                            .may_part = ad__paying_may_part,
                                            .leave_moved = ad__shared_leave_moved,
                                            .orphan = ad__sharing_orphan,
                                            .import_order = ad__import_order,
                                            .import_check_write = ad__import_check_write,
                                            .imports_meet = ad__imports_meet,
                                            .import_gone = ad__import_gone};
