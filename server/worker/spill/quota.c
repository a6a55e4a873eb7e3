#include "server/worker/spill/quota.h"

#include <inttypes.h>

#include "server/worker/spill/spill.h"

/* A principal whose memory is limited may have one part in so many of it in windows. Windows are for copies to
 * arrays and from them: with more, nothing would be left to copy to. */
#define WINDOW_PART 4

/* ---- limits of the session ---- */

uint64_t ad__quota_held(const ad_worker_session *s) {
    return s->held.buffer_bytes + s->held.workspace_bytes + s->windows.bytes;
}

static int report_over_limit(const ad_worker_session *s, uint64_t size, uint64_t limit, const char *whose,
                             ad_fault *fault) {
    char want[16], most[16], uses[AD_USES_TEXT];
    const uint64_t used[AD_USES] = {s->held.buffer_bytes, s->held.workspace_bytes, s->windows.bytes};
    ad__bytes_text(size, want);
    ad__bytes_text(limit, most);
    ad__uses_text(used, uses);
    return ad__fault(fault, AD_E_MEMORY,
                     "out of memory: %s more are above the limit of %s that this session %s; it has %s in %" PRIu64
                     " arrays",
                     want, most, whose, uses, s->buffers.count);
}

static int check_limits(const ad_worker_session *s, uint64_t size, ad_fault *fault) {
    uint64_t own = s->held.buffer_limit, given = s->grants.each, used = s->held.buffer_bytes + s->held.workspace_bytes;
    if (own && (size > own || used > own - size)) return report_over_limit(s, size, own, "has set itself", fault);
    if (given && (size > given || ad__quota_held(s) > given - size))
        return report_over_limit(s, size, given, "was given (grant memory-each)", fault);
    return 0;
}

bool ad__quota_has_room(const ad_worker_session *s, uint64_t size) { return !check_limits(s, size, NULL); }

/* ---- memory of slabs ---- */

typedef int take_block(ad_stream_arena *e, uint64_t size, ad_block *out, ad_fault *fault);

/* Take a block. If memory is short, free what was deferred, move buffers to host memory, and only then give up what
 * another worker would need if this one were killed before the next checkpoint. */
static int take_or_make_room(ad_worker_session *s, ad_stream_queue *queue, uint64_t size, take_block *get,
                             ad_block *out, ad_fault *fault) {
    const ad_checkpoint_hooks *told = s->worker->hooks.checkpoint;
    char mine[16], moved[AD_SPILL_TEXT];
    ad_fault why;
    why.code = 0;
    why.text[0] = 0;
    ad__spill_stir(s->worker, queue);
    int status = get(queue->stream_arena, size, out, &why);
    while (status == AD_E_MEMORY && told->free_all_deferred(s)) status = get(queue->stream_arena, size, out, &why);
    while (status == AD_E_MEMORY &&
           (ad__spill_make_room(s->worker, queue, size) || told->move_deferred_to_host(s, queue)))
        status = get(queue->stream_arena, size, out, &why);
    while (status == AD_E_MEMORY && told->give_released_memory(s)) status = get(queue->stream_arena, size, out, &why);
    if (status == AD_E_MEMORY && told->drop_deferred(s)) status = get(queue->stream_arena, size, out, &why);
    if (!status) return 0;
    if (status != AD_E_MEMORY) return ad__session_status(s, ad__fault(fault, status, "%s", why.text), &why);
    s->held.refused++;
    ad__bytes_text(s->held.buffer_bytes, mine);
    ad__spill_text(s->worker, moved);
    return ad__fault(fault, status, "%s (this session: %s in %" PRIu64 " arrays)%s", why.text, mine, s->buffers.count,
                     moved);
}

static int take_within_limits(ad_worker_session *s, ad_stream_queue *queue, uint64_t size, take_block *get,
                              ad_block *out, ad_fault *fault) {
    int status = check_limits(s, size, fault);
    if (status && s->worker->hooks.checkpoint->give_released_memory(s)) status = check_limits(s, size, fault);
    s->held.refused += status != 0;
    return status ? status : take_or_make_room(s, queue, size, get, out, fault);
}

int ad__quota_take(ad_worker_session *s, ad_stream_queue *queue, uint64_t size, ad_block *out, ad_fault *fault) {
    return take_within_limits(s, queue, size, ad__memory_take, out, fault);
}

int ad__quota_take_apart(ad_worker_session *s, ad_stream_queue *queue, uint64_t size, bool plain, ad_block *out,
                         ad_fault *fault) {
    return take_within_limits(s, queue, size, plain ? ad__memory_take_plain : ad__memory_take_apart, out, fault);
}

int ad__quota_return(ad_worker_session *s, ad_stream_queue *queue, uint64_t size, ad_block *out, ad_fault *fault) {
    return take_or_make_room(s, queue, size, ad__memory_take, out, fault);
}

int ad__quota_borrow(ad_worker_session *s, ad_stream_queue *queue, uint64_t size, ad_block *out, ad_fault *fault) {
    int status = take_within_limits(s, queue, size, ad__memory_borrow, out, fault);
    if (!status) s->held.workspace_bytes += out->size;
    return status;
}

void ad__quota_repay(ad_worker_session *s, ad_stream_queue *queue, ad_block *b) {
    if (!b->slab) return;
    s->held.workspace_bytes -= b->size;
    ad__memory_give(queue->stream_arena, b);
}

/* ---- other memory ---- */

int ad__quota_adopt(ad_worker_session *s, ad_stream_queue *queue, ad_use use, uint64_t size, ad_fault *fault) {
    ad_account *a = ad__stream_arena_account(queue->stream_arena);
    int status = check_limits(s, size, fault);
    if (!status) status = ad__account_check(a, size, fault);
    if (status) s->held.refused++;
    else ad__account_charge(a, use, size);
    return status;
}

void ad__quota_leave(ad_stream_queue *queue, ad_use use, uint64_t size) {
    ad__account_return(ad__stream_arena_account(queue->stream_arena), use, size);
}

/* A client that is refused a window asks for a smaller one, or does without. */
int ad__quota_window(ad_worker_session *s, uint64_t size, ad_fault *fault) {
    ad_memory *m = &s->worker->device.gpu[0].memory; /* the device that windows are pinned for */
    ad_fault why = {0};
    if (check_limits(s, size, &why)) return ad__fault(fault, AD_E_LIMIT, "window: %s", why.text);
    ad_account *a = ad__account_open(&m->accounts, s->principal);
    if (!a) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    ad__account_grant(a, &s->grants);
    int status = ad__account_check(a, size, &why);
    if (status) {
        status = ad__fault(fault, AD_E_LIMIT, "window: %s", why.text);
    } else if (a->most && a->used[AD_USE_WINDOW] + size > a->most / WINDOW_PART) {
        status = ad__fault(fault, AD_E_LIMIT,
                           "window: %" PRIu64 " bytes more are above a quarter of what %s may have (grant memory)",
                           size, s->principal);
    } else {
        ad__account_charge(a, AD_USE_WINDOW, size);
    }
    ad__account_close(a);
    return status;
}

void ad__quota_window_gone(ad_worker_session *s, uint64_t size) {
    ad_account *a = ad__account_find(s->worker->device.gpu[0].memory.accounts, s->principal);
    if (a) ad__account_return(a, AD_USE_WINDOW, size);
}

/* ---- what is told ---- */

const ad_account *ad__quota_account(const ad_worker_session *s) {
    static const ad_account none;
    const ad_gpu *gpu = s->streams.current ? s->streams.current->gpu : &s->worker->device.gpu[0];
    const ad_account *a = ad__account_find(gpu->memory.accounts, s->principal);
    return a ? a : &none;
}
