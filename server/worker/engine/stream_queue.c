#include "server/worker/engine/stream_queue.h"

#include <inttypes.h>
#include <stdlib.h>

#include "protocol/size.h"
#include "server/common/os.h"
#include "server/worker/sharing/imports.h"
#include "server/worker/net/session.h"
#include "server/worker/sharing/sharing.h"
#include "server/worker/memory/spill/spill.h"

#define SHARE_WINDOW 20000000 /* ns: a session that uses a device ... */
#define NEGLIGIBLE 500        /* ns of a device, which are not counted there */
#define SHARE_MOST 2000000    /* ... for more than this of them has low priority */

static const ad_backend *backend_of(const ad_session *s) { return s->worker->backend; }

/* ---- opening and closing ---- */

/* As the backend counts it: below 0 before others. Default streams of the usual priority run before what is low, and
 * before those of who uses the device much. */
static int stream_priority(const ad_session *s, bool high) {
    if (s->grants.priority < AD_PRIORITY_NORMAL) return 0;
    return -(int)high - (s->grants.priority > AD_PRIORITY_NORMAL);
}

static int lane_new(ad_session *s, unsigned slot, ad_gpu *gpu, bool high, ad_fault *fault) {
    ad_lane *lane = ad__os.calloc(1, sizeof *lane);
    if (!lane) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    int status = backend_of(s)->stream_open(gpu->device, stream_priority(s, high), &lane->stream, fault);
    ad__session_status(s, status, fault);
    if (status) goto free_lane;
    if (!(lane->stream_arena = ad__stream_arena_open(&gpu->memory, s->principal, lane->stream))) {
        status = ad__fault(fault, AD_E_MEMORY, "out of host memory");
        goto close_stream;
    }
    ad__account_grant(ad__stream_arena_account(lane->stream_arena), &s->grants);
    lane->session = s;
    lane->slot = slot;
    lane->gpu = gpu;
    lane->high = high;
    lane->most_marks = s->grants.priority < AD_PRIORITY_NORMAL ? AD_MARKS_LOW : AD_MARKS;
    if (ad__spill_lane(s->worker, lane)) {
        status = ad__fault(fault, AD_E_MEMORY, "out of host memory");
        goto close_stream_arena;
    }
    s->lanes[slot] = lane;
    if (slot >= s->nlanes) s->nlanes = slot + 1;
    return 0;

close_stream_arena:
    ad__stream_arena_close(lane->stream_arena);
close_stream:
    backend_of(s)->stream_close(lane->stream);
free_lane:
    free(lane);
    return status;
}

static ad_lane *find(ad_session *s, uint64_t id) {
    for (unsigned i = 0; i < s->nlanes; i++)
        if (s->lanes[i]->open && s->lanes[i]->id == id) return s->lanes[i];
    return NULL;
}

/* What is not to be used is not opened either: that costs memory of the device. */
ad_gpu *ad__session_gpu(ad_session *s, uint64_t device, ad_fault *fault) {
    if (device >= AD_DEVICES || s->grants.devices >> device & 1) return ad__gpu_get(s->worker, device, fault);
    ad__fault(fault, AD_E_DENIED, "%s may not use device %" PRIu64 " (grant devices)", s->principal, device);
    return NULL;
}

int ad__lane_open(ad_session *s, uint64_t id, uint64_t device, bool high, ad_fault *fault) {
    ad_gpu *gpu = ad__session_gpu(s, device, fault);
    ad_lane *lane = NULL;
    if (!gpu) return ad__session_status(s, fault->code, fault);
    if (find(s, id)) return ad__fault(fault, AD_E_VALUE, "stream %" PRIu64 " exists already", id);
    for (unsigned i = 0; !lane && i < s->nlanes; i++) {
        ad_lane *old = s->lanes[i];
        if (!old->open && old->gpu == gpu && old->high == high) lane = old;
    }
    if (!lane) {
        if (s->nlanes == AD_LANES) return ad__fault(fault, AD_E_LIMIT, "a session has at most %d streams", AD_LANES);
        int status = lane_new(s, s->nlanes, gpu, high, fault);
        if (status) return status;
        lane = s->lanes[s->nlanes - 1];
    }
    lane->id = id;
    lane->open = true;
    return 0;
}

ad_lane *ad__lane_known(ad_session *s, uint64_t id) { return find(s, id); }

ad_lane *ad__lane_find(ad_session *s, uint64_t id, ad_fault *fault) {
    ad_lane *lane = find(s, id);
    if (lane && id != AD_HIDDEN_STREAM) return lane;
    if (id >= AD_OWN_STREAMS) {
        ad__fault(fault, AD_E_STALE, "there is no stream %" PRIu64, id);
        return NULL;
    }
    return ad__lane_open(s, id, id, true, fault) ? NULL : find(s, id);
}

/* The lane of low priority beside a default stream. */
static ad_lane *low_lane(ad_session *s, ad_lane *lane, ad_fault *fault) {
    if (lane->low || s->nlanes == AD_LANES) return lane->low ? lane->low : lane;
    if (lane_new(s, s->nlanes, lane->gpu, false, fault)) return NULL;
    lane->low = s->lanes[s->nlanes - 1];
    lane->low->open = true;
    lane->low->id = AD_HIDDEN_STREAM;
    return lane->low;
}

ad_lane *ad__lane_current(ad_session *s, ad_fault *fault) {
    if (!s->lane && !(s->lane = ad__lane_find(s, 0, fault))) return NULL;
    if (!s->busy_device || s->lane->id >= AD_OWN_STREAMS) return s->lane;
    return low_lane(s, s->lane, fault);
}

int64_t ad__lane_charge(ad_session *s, int64_t estimate) {
    const double paced = (double)estimate * ad__pace(&s->pace);
    const int64_t ns = paced < (double)INT64_MAX ? (int64_t)paced : INT64_MAX;
    s->turn_ns = ad__size_sum(s->turn_ns, ns);
    s->device_ns = ad__size_sum(s->device_ns, ns);
    if (ns <= NEGLIGIBLE) return ns;
    int64_t now = ad__os_now();
    if (now - s->share_since > SHARE_WINDOW) {
        s->busy_device = s->share > SHARE_MOST;
        s->share = 0;
        s->share_since = now;
    }
    s->share = ad__size_sum(s->share, ns);
    if (s->share > SHARE_MOST) s->busy_device = true;
    return ns;
}

void ad__lane_expect(ad_lane *lane, int64_t ns, int64_t corrected) {
    lane->unmarked_ns = ad__size_sum(lane->unmarked_ns, corrected);
    lane->estimate = ad__size_sum(lane->estimate, ns);
    lane->estimated++;
}

int ad__lane_drop(ad_session *s, uint64_t id, ad_fault *fault) {
    ad_lane *lane = id == AD_HIDDEN_STREAM ? NULL : find(s, id);
    if (!lane || id < AD_OWN_STREAMS) return ad__fault(fault, AD_E_STALE, "there is no stream %" PRIu64 " to drop", id);
    if (s->lane == lane) s->lane = NULL;
    lane->open = false;
    return 0;
}

static void close_marks(const ad_backend *b, ad_lane *lane) {
    for (unsigned i = 0; i < AD_MARKS; i++)
        if (lane->mark[i].event) b->event_close(lane->mark[i].event);
}

ad_lane *ad__lane_alone(ad_worker *w, uint64_t device, const char *principal, ad_fault *fault) {
    ad_gpu *gpu = ad__gpu_get(w, device, fault);
    ad_lane *lane = gpu ? ad__os.calloc(1, sizeof *lane) : NULL;
    if (!lane) {
        if (gpu) ad__fault(fault, AD_E_MEMORY, "out of host memory");
        return NULL;
    }
    if (w->backend->stream_open(gpu->device, 0, &lane->stream, fault)) goto free_lane;
    lane->gpu = gpu;
    if ((lane->stream_arena = ad__stream_arena_open(&gpu->memory, principal, lane->stream))) return lane;
    ad__fault(fault, AD_E_MEMORY, "out of host memory");
    w->backend->stream_close(lane->stream);
free_lane:
    free(lane);
    return NULL;
}

void ad__lane_close(const ad_backend *b, ad_lane *lane) {
    if (lane->fence) b->event_close(lane->fence);
    ad__spill_owner_close(lane->owner);
    ad__stream_arena_close(lane->stream_arena);
    b->stream_close(lane->stream);
    free(lane);
}

void ad__lanes_close(ad_session *s) {
    for (unsigned i = 0; i < s->nlanes; i++) {
        close_marks(backend_of(s), s->lanes[i]);
        if (s->lanes[i]->keeps) ad__sharing_orphan(s->worker, s->lanes[i]);
        else ad__lane_close(backend_of(s), s->lanes[i]);
    }
    s->nlanes = 0;
    s->lane = NULL;
}

/* ---- order between lanes ---- */

int ad__lane_after(const ad_backend *b, ad_lane *lane, ad_lane *other, ad_fault *fault) {
    if (lane == other) return 0;
    int status = other->fence ? 0 : b->event_open(other->gpu->device, false, &other->fence, fault);
    if (!status) status = b->event_record(other->fence, other->stream, fault);
    return status ? status : b->stream_follow(lane->stream, other->fence, fault);
}

/* `lane` waits for all that `other` holds now, unless it does so already up to `sequence`. */
static int follow(ad_session *s, ad_lane *lane, ad_lane *other, uint64_t sequence, ad_fault *fault) {
    if (lane == other || lane->followed[other->slot] >= sequence) return 0;
    int status = ad__lane_after(backend_of(s), lane, other, fault);
    if (!status) lane->followed[other->slot] = other->sequence;
    return ad__session_status(s, status, fault);
}

static int follow_readers(ad_session *s, ad_lane *lane, ad_buffer *b, ad_fault *fault) {
    for (uint64_t left = b->readers; left; left &= left - 1) {
        ad_lane *reader = s->lanes[__builtin_ctzll(left)];
        int status = follow(s, lane, reader, reader->sequence, fault);
        if (status) return status;
    }
    return 0;
}

int ad__lane_uses(ad_session *s, ad_lane *lane, ad_buffer *b, bool writes, ad_fault *fault) {
    if (b->import) b = ad__import_order(b);
    if (!b->home) b->home = lane; /* without memory */
    if (!ad__gpu_reaches(lane->gpu, b->home->gpu))
        return ad__fault(fault, AD_E_VALUE,
                         "an array lies on device %d, which device %d cannot reach: copy it by the host",
                         b->home->gpu->index, lane->gpu->index);
    if (!b->writer) { /* used only while there was one lane: by whatever that has done so far */
        b->writer = b->home;
        b->written = b->home->sequence;
    }
    int status = b->shared ? ad__shared_uses(s, lane, b, writes, fault) : 0;
    if (status) return status;
    status = follow(s, lane, b->writer, b->written, fault);
    if (!writes) {
        b->readers |= 1ull << lane->slot;
        return status;
    }
    if (!status) status = follow_readers(s, lane, b, fault);
    b->readers = 0;
    b->writer = lane;
    b->written = lane->sequence + 1; /* the operation that is about to be enqueued */
    return status;
}

int ad__lane_frees(ad_session *s, ad_buffer *b, ad_fault *fault) {
    ad_buffer *used = b->import ? ad__import_order(b) : b;
    if (s->nlanes < 2 || !b->home) return 0;
    int status = used->writer ? follow(s, b->home, used->writer, used->written, fault) : 0;
    return status ? status : follow_readers(s, b->home, used, fault);
}

ad_lane *ad__lane_join(ad_session *s, uint64_t id, ad_fault *fault) {
    ad_lane *lane = ad__lane_find(s, id, fault);
    if (!lane || !lane->low || lane->followed[lane->low->slot] >= lane->low->sequence) return lane;
    if (ad__lanes_mark(s, fault) || ad__lanes_poll(s, fault)) return NULL;
    if (ad__lane_idle(lane->low)) return lane;
    int status = follow(s, lane, lane->low, lane->low->sequence, fault);
    if (!status) status = ad__session_enqueued(s, lane, fault);
    return status ? NULL : lane;
}

/* ---- progress ---- */

static int mark(ad_session *s, ad_lane *lane, ad_fault *fault) {
    const ad_backend *b = backend_of(s);
    ad_mark *m = &lane->mark[(lane->first_mark + lane->nmarks) % AD_MARKS];
    if (!lane->unmarked || ad__lane_full(lane)) return 0;
    int status = m->event ? 0 : b->event_open(lane->gpu->device, false, &m->event, fault);
    if (!status) status = b->event_record(m->event, lane->stream, fault);
    if (status) return ad__session_status(s, status, fault);
    m->first = lane->unmarked_first;
    m->sequence = lane->sequence;
    m->expected = lane->estimated == lane->unmarked ? lane->estimate : 0;
    m->asked = ad__os_now();
    lane->nmarks++;
    lane->unmarked = lane->estimated = 0;
    lane->unmarked_ns = lane->estimate = 0;
    return 0;
}

int ad__lane_enqueued(ad_session *s, ad_lane *lane, uint64_t number, ad_fault *fault) {
    lane->sequence++;
    if (!backend_of(s)->asynchronous) return 0;
    if (!lane->unmarked++) lane->unmarked_first = number;
    return lane->unmarked >= AD_MARK_OPS || lane->unmarked_ns > AD_MARK_NS ? mark(s, lane, fault) : 0;
}

int ad__lanes_mark(ad_session *s, ad_fault *fault) {
    for (unsigned i = 0; i < s->nlanes; i++) {
        int status = mark(s, s->lanes[i], fault);
        if (status) return status;
    }
    return 0;
}

/* Sessions that have something under way on a device. */
static unsigned users_of(const ad_worker *w) {
    unsigned n = 0;
    for (const ad_session *s = w->engine.under_way; s; s = s->next_busy) n += s->wait.kind < AD_WAIT_COMPILER;
    return n;
}

static int lane_poll(ad_session *s, ad_lane *lane, ad_fault *fault) {
    while (lane->nmarks) {
        const ad_mark *m = &lane->mark[lane->first_mark];
        int done = backend_of(s)->event_done(m->event, fault);
        if (done < 0) return ad__session_status(s, done, fault);
        if (!done) return 0;
        int64_t now = ad__os_now();
        ad__pace_note(&s->pace, (double)m->expected, m->asked, lane->reached, now, users_of(s->worker));
        lane->reached = now;
        lane->passed = m->sequence;
        lane->first_mark = (lane->first_mark + 1) % AD_MARKS;
        lane->nmarks--;
    }
    ad__stream_arena_reap(lane->stream_arena);
    return 0;
}

/* Number of the first operation that may not be complete. */
static uint64_t first_open(const ad_lane *lane) {
    if (lane->nmarks) return lane->mark[lane->first_mark].first;
    return lane->unmarked ? lane->unmarked_first : UINT64_MAX;
}

int ad__lanes_wait(ad_session *s, ad_fault *fault) {
    int status = 0;
    for (unsigned i = 0; i < s->nlanes && !status; i++)
        status = s->worker->backend->stream_wait(s->lanes[i]->stream, fault);
    return status;
}

void ad__lanes_settle(ad_session *s) {
    uint64_t complete = s->held.count ? s->held.first - 1 : s->done;
    for (unsigned i = 0; i < s->nlanes; i++) {
        uint64_t first = first_open(s->lanes[i]);
        if (first <= complete) complete = first - 1;
    }
    /* What may be executed again needs what its client keeps until it hears that it is complete. */
    if (ad__survives_late(s) && complete > s->survival.committed) complete = s->survival.committed;
    if (complete > s->complete) s->complete = complete;
}

int ad__lanes_poll(ad_session *s, ad_fault *fault) {
    for (unsigned i = 0; i < s->nlanes; i++) {
        int status = lane_poll(s, s->lanes[i], fault);
        if (status) return status;
        ad__flight_moved(&s->worker->watchdog, &s->lanes[i]->flight, first_open(s->lanes[i]) - 1);
    }
    ad__lanes_settle(s);
    return 0;
}

bool ad__lane_idle(const ad_lane *lane) { return !lane->nmarks && !lane->unmarked; }

bool ad__lanes_idle(const ad_session *s) {
    for (unsigned i = 0; i < s->nlanes; i++)
        if (!ad__lane_idle(s->lanes[i])) return false;
    return true;
}
