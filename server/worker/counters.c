/* The values of counters: the expressions of counter.def, and what they call. */
#include "server/worker/counters.h"

#include <stddef.h>
#include <unistd.h>

#include "server/common/os.h"
#include "server/worker/handlers.h"
#include "server/worker/io/reply.h"
#include "server/worker/spill/quota.h"
#include "server/worker/spill/spill.h"
#include "server/worker/sharing/sharing.h"

/* Sum up a member of the memory of all devices. */
static uint64_t sum_devices(const ad_worker *w, size_t member) {
    uint64_t sum = 0;
    for (int i = 0; i < w->device.count && i < AD_DEVICES; i++)
        sum += *(const uint64_t *)(const void *)((const char *)&w->device.gpu[i].memory + member);
    return sum;
}

static ad_plans sum_plans(const ad_worker *w) {
    ad_plans sum = {0};
    for (int i = 0; i < w->device.count && i < AD_DEVICES; i++) {
        ad_plans of = {0};
        if (w->device.gpu[i].device) w->backend->device_plans(w->device.gpu[i].device, &of);
        sum.count += of.count;
        sum.most += of.most;
        sum.bytes += of.bytes;
    }
    return sum;
}

static ad_compile_counts count_compiled(const ad_worker *w) {
    ad_compile_counts c = {0};
    ad__compile_counts(w->compiler, &c);
    return c;
}

static uint64_t sum_slab_bytes(const ad_worker_session *s) {
    uint64_t sum = 0, bytes, unused;
    for (unsigned i = 0; i < s->streams.count; i++) {
        ad__stream_arena_count(s->streams.queues[i]->stream_arena, &bytes, &unused);
        sum += bytes;
    }
    return sum;
}

/* Sum up the time of devices that a session has used, with that of the operation that is under way beside the engine:
 * it is added only at the end of its turn, which may be long from now. */
static int64_t sum_device_ns(ad_worker_session *s) {
    const bool computes = !s->worker->backend->asynchronous && atomic_load(&s->turns.background_since);
    return s->usage.device_ns + (computes ? ad__os_now() - s->turns.since : 0);
}

void ad__counters_get(ad_worker_session *s, int64_t values[AD_NCOUNTER]) {
    ad_worker *w = s->worker;
    ad__sharing_sweep(w);
#define AD_COUNTER(index, name, scope, kind, metric, scale, value, doc) values[index] = (int64_t)(value);
#include "protocol/counter.def"
#undef AD_COUNTER
}

int ad__handle_stat(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    int64_t values[AD_NCOUNTER];
    _Static_assert(AD_NCOUNTER <= AD_REPLY_INTS, "a reply has room for all counters");
    (void)fault;
    ad__counters_get(s, values);
    ad__reply_ints(s, m->u[0], AD_NCOUNTER, values);
    return 0;
}
