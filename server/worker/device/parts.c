#include "server/worker/device/parts.h"

#include "server/common/os.h"
#include "server/common/rights.h"
#include "server/worker/session.h"

#define DECIDE 100000 /* ns between two decisions */
#define LARGEST 8     /* the part of a device of which no more is reserved: an eighth */

static bool is_recent(const ad_parts_user *u, int64_t now) { return u->session && now - u->at < AD_PARTS_HOLD; }

/* Tell whether a heavy session has work under way on the device. It may have enqueued that long ago. */
static bool is_heavy_under_way(const ad_worker *w, const ad_gpu *g) {
    for (const ad_worker_session *s = w->engine.under_way; s; s = s->turns.next_busy) {
        if (!s->usage.heavy) continue;
        for (unsigned i = 0; i < s->streams.count; i++) {
            const ad_stream_queue *queue = s->streams.queues[i];
            if (queue->gpu == g && (queue->nmarks || queue->unmarked)) return true;
        }
    }
    return false;
}

/* Record that the session enqueues an operation of its kind. A session that has changed its kind would otherwise be
 * confined for fear of itself. */
static void note_user(ad_parts_user *mine, ad_parts_user *others, const ad_worker_session *s, int64_t now) {
    *mine = (ad_parts_user){s, now};
    if (others->session == s) others->session = NULL;
}

/* Record an operation of a light session whose share is above 0. Sessions with different shares get the largest. */
static void note_light(ad_parts *p, const ad_worker_session *s, int share, int64_t now) {
    if (share > p->wanted || !is_recent(&p->light, now)) p->wanted = share;
    note_user(&p->light, &p->heavy, s, now);
}

/* Limit a share, so that a small device is not taken from those that use it much. */
static int limit_share(const ad_gpu *g, int share) {
    const int most = g->info.multiprocessors / LARGEST;
    return share < most ? share : most;
}

static void decide_parts(const ad_worker *w, ad_gpu *g, int64_t now) {
    ad_parts *p = &g->parts;
    const bool needed = is_recent(&p->light, now) && (is_recent(&p->heavy, now) || is_heavy_under_way(w, g));
    const int wanted = needed ? limit_share(g, p->wanted) : 0;
    p->decided = now;
    if (wanted == p->asked) return;
    p->asked = wanted;
    p->reserved = wanted ? w->parts->device_split(g->device, wanted, NULL) : 0;
    if (p->reserved < 0) p->reserved = 0;
    p->begun |= p->reserved > 0;
}

void ad__parts_prepare(const ad_worker *w, ad_gpu *g) {
    const int share = limit_share(g, ad__sm_share(&w->config, &(ad_grants){0}));
    if (w->parts && share && !w->embedded) w->parts->device_split(g->device, share, NULL);
}

void ad__parts_choose(ad_worker_session *s, ad_stream_queue *queue) {
    ad_parts *p = &queue->gpu->parts;
    const ad_part_table *table = s->worker->parts;
    const int share = ad__sm_share(&s->worker->config, &s->grants);
    if (!table || (!share && !p->wanted)) return; /* nobody has a share */
    const int64_t now = ad__session_turn_time(s);
    const bool is_served = share && !s->usage.heavy;
    if (s->usage.heavy) note_user(&p->heavy, &p->light, s, now);
    else if (is_served) note_light(p, s, share, now);
    if (now - p->decided >= DECIDE) decide_parts(s->worker, queue->gpu, now);
    if (p->begun && table->stream_confine(queue->stream, is_served ? 0 : p->reserved, NULL)) p->reserved = 0;
}

int ad__parts_reserved(const ad_gpu *g, int64_t now) {
    const ad_parts *p = &g->parts;
    return is_recent(&p->light, now) && now - p->decided < AD_PARTS_HOLD ? p->reserved : 0;
}
