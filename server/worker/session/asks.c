/* Answer messages of class ASK. */
#include <stddef.h>
#include <unistd.h>

#include "server/worker/checkpoint/blame.h"
#include "server/worker/sharing/exports.h"
#include "server/worker/sharing/imports.h"
#include "server/worker/exec/job.h"
#include "server/worker/migrate/migration.h"
#include "server/worker/spill/quota.h"
#include "server/worker/sharing/sharing.h"
#include "server/worker/spill/spill.h"
#include "server/worker/session/session.h"
#include "server/worker/io/reply.h"
#include "server/worker/exec/exec.h"

/* ---- stat ---- */

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

static uint64_t get_compile_counter(const ad_worker *w, int index) {
    ad_compile_counts c = {0};
    ad__compile_counts(w->compiler, &c);
    switch (index) {
    case AD_COUNTER_compiled: return c.compiled;
    case AD_COUNTER_compile_failures: return c.failures;
    case AD_COUNTER_compile_hits_memory: return c.hits_memory;
    case AD_COUNTER_compile_hits_disk: return c.hits_disk;
    default: return c.waiting;
    }
}

static uint64_t sum_slab_bytes(const ad_session *s) {
    uint64_t sum = 0, bytes, unused;
    for (unsigned i = 0; i < s->streams.count; i++) {
        ad__stream_arena_count(s->streams.queues[i]->stream_arena, &bytes, &unused);
        sum += bytes;
    }
    return sum;
}

static uint64_t get_counter(ad_session *s, int index) {
    ad_worker *w = s->worker;
    switch (index) {
    case AD_COUNTER_ops_done: return s->progress.complete;
    case AD_COUNTER_ops_failed: return s->progress.failed;
    case AD_COUNTER_requests: return s->progress.requests;
    case AD_COUNTER_bytes_in: return s->progress.bytes_in;
    case AD_COUNTER_bytes_out: return atomic_load(&s->output.total);
    case AD_COUNTER_buffers: return s->buffers.count;
    case AD_COUNTER_buffer_bytes: return s->held.buffer_bytes;
    case AD_COUNTER_used_bytes: return sum_devices(w, offsetof(ad_memory, used));
    case AD_COUNTER_slab_bytes: return sum_devices(w, offsetof(ad_memory, slab_bytes));
    case AD_COUNTER_slabs: return sum_devices(w, offsetof(ad_memory, slabs));
    case AD_COUNTER_sessions: return atomic_load(&w->nsessions);
    case AD_COUNTER_worker_pid: return (uint64_t)getpid();
    case AD_COUNTER_fft_plans: return sum_plans(w).count;
    case AD_COUNTER_fft_plans_most: return sum_plans(w).most;
    case AD_COUNTER_fft_plan_bytes: return sum_plans(w).bytes;
    case AD_COUNTER_fused_chains: return s->fusion.chains;
    case AD_COUNTER_fused_ops: return s->fusion.chained;
    case AD_COUNTER_unfused_chains: return s->fusion.apart;
    case AD_COUNTER_temporaries: return s->fusion.unwritten;
    case AD_COUNTER_ops_unneeded: return s->fusion.dropped;
    case AD_COUNTER_compiled:
    case AD_COUNTER_compile_failures:
    case AD_COUNTER_compile_hits_memory:
    case AD_COUNTER_compile_hits_disk:
    case AD_COUNTER_compile_waiting: return get_compile_counter(w, index);
    case AD_COUNTER_resumes: return s->comeback.count;
    case AD_COUNTER_modules: return s->modules.count;
    case AD_COUNTER_launches: return s->modules.launches;
    case AD_COUNTER_turns: return s->turns.share.turns;
    case AD_COUNTER_turns_waited: return s->turns.share.waited;
    case AD_COUNTER_device_us: return (uint64_t)(s->usage.device_ns / 1000);
    case AD_COUNTER_held_bytes:
    case AD_COUNTER_window_bytes:
    case AD_COUNTER_memory_refused:
    case AD_COUNTER_session_limit:
    case AD_COUNTER_principal_bytes:
    case AD_COUNTER_principal_limit:
    case AD_COUNTER_principal_reserved: return ad__quota_counter(s, index);
    case AD_COUNTER_queued_bytes:
    case AD_COUNTER_principal_queued_bytes:
    case AD_COUNTER_put_off: return ad__engine_counter(s, index);
    case AD_COUNTER_held_slab_bytes: return sum_slab_bytes(s);
    case AD_COUNTER_moved_out:
    case AD_COUNTER_moved_in:
    case AD_COUNTER_host_bytes: return ad__spill_counter(w, index);
    default: return ad__sharing_counter(w, index);
    }
}

void ad__session_counters(ad_session *s, int64_t values[AD_NCOUNTER]) {
    for (int i = 0; i < AD_NCOUNTER; i++) values[i] = (int64_t)get_counter(s, i);
}

static bool answer_stat(ad_session *s, ad_message *m) {
    int64_t values[AD_NCOUNTER];
    _Static_assert(AD_NCOUNTER <= AD_REPLY_INTS, "a reply has room for all counters");
    ad__session_counters(s, values);
    ad__reply_ints(s, m->u[0], AD_NCOUNTER, values);
    return true;
}

/* ---- query ---- */

/* Answer a query. The result's size depends on the data, which the host must read: all that came before must be
 * complete. */
static bool answer_query(ad_session *s, ad_message *m) {
    int64_t values[8];
    int n = 0;
    if (!ad__checkpoint_await_commit(s)) return false;
    ad_poison *p = ad__exec_query(s, m, values, &n);
    if (p) {
        if (p == s->progress.pending) {
            ad__poison_release(p);
            s->progress.pending = NULL;
            ad__count_told_failure(s);
        }
        ad__reply_fail(s, m->u[0], p);
        ad__poison_release(p);
        return true;
    }
    ad__reply_ints(s, m->u[0], (size_t)n, values);
    return true;
}

static bool answer_sync(ad_session *s, ad_message *m) {
    if (!ad__checkpoint_await_commit(s)) return false;
    if (!ad__reply_pending_failure(s, m->u[0])) ad__reply_values(s, m->u[0], 0, NULL);
    return true;
}

/* The requests of class ASK as an enumeration: a switch over it that leaves one out does not compile (-Wswitch). */
#define ASK_HELLO(NAME)
#define ASK_OP(NAME)
#define ASK_TELL(NAME)
#define ASK_ASK(NAME) ASK_##NAME = AD_REQ_##NAME,
typedef enum ask {
#define AD_REQUEST(id, NAME, name, cls, fields, doc) ASK_##cls(NAME)
#include "protocol/request.def"
#undef AD_REQUEST
} ask;

static bool answer_request(ad_session *s, ad_message *m) {
    ad_fault fault = {0};
    switch ((ask)m->opcode) {
    case ASK_READ:
    case ASK_FETCH: return ad__read(s, m);
    case ASK_STAT: return answer_stat(s, m);
    case ASK_QUERY: return answer_query(s, m);
    case ASK_SYNC: return answer_sync(s, m);
    case ASK_BUILD:
    case ASK_KERNEL:
    case ASK_GLOBAL: return ad__modules_ask(s, m);
    case ASK_SHARE:
    case ASK_ATTACH:
    case ASK_PUBLISH:
    case ASK_ATTACH_NAME:
    case ASK_UNPUBLISH:
    case ASK_NAMES: return ad__sharing_ask(s, m);
    case ASK_EXPORT: return ad__export(s, m);
    case ASK_IMPORT: ad__import(s, m); return true;
    case ASK_WAIT:
    case ASK_DONE:
    case ASK_ELAPSED:
    case ASK_POOL:
    case ASK_DEVICE: return ad__streams_ask(s, m);
    }
    ad__reply_fault(s, m->u[0], ad__ask_unsupported(m, &fault), &fault);
    return true;
}

/* Answer a request that is left out with an error that says so. */
static void answer_left_out(ad_session *s, const ad_message *m) {
    ad_fault fault = {0};
    const int status = ad__blame_check(s, m->row->name, &fault);
    if (m->opcode == AD_REQ_EXPORT || m->opcode == AD_REQ_IMPORT) ad__descriptor_skip(s);
    s->checkpoint.resumed.read = 0;
    s->progress.failed++;
    ad__reply_fault(s, m->u[0], status, &fault);
}

bool ad__ask(ad_session *s, ad_message *m) {
    if (s->checkpoint.suspect.left_out && m->opcode != AD_REQ_QUERY) { /* a query's outputs get the error instead */
        answer_left_out(s, m);
        return true;
    }
    /* An error that was reported before the worker was replaced is known again when all that came before is committed.
     */
    if (s->checkpoint.resumed.silent && s->checkpoint.resumed.untold && !ad__checkpoint_await_commit(s)) return false;
    if (s->rights.must_migrate) {
        ad_fault refused = {0};
        if (s->worker->hooks.migration->must_wait(s, m, &refused)) return false;
        if (refused.code) {
            ad__reply_fault(s, m->u[0], refused.code, &refused);
            return true;
        }
    }
    return answer_request(s, m);
}
