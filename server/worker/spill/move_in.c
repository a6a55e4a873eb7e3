/* Buffers that come back from host memory. The device may be full, so that others leave it for them. */
#include "server/worker/exec/job.h"
#include "server/worker/spill/inside.h"
#include "server/worker/spill/quota.h"

static int copy_in(ad_worker *w, ad_stream_queue *queue, const ad_buffer *b, void *to, ad_fault *fault) {
    ad_moved *m = b->moving.to;
    int status = m->event && queue != b->home ? w->backend->stream_follow(queue->stream, m->event, fault) : 0;
    return status ? status : w->backend->upload_pinned(queue->stream, to, m->block.address, b->size, fault);
}

/* Take device memory for a buffer that comes back. Host memory may exceed its limit meanwhile: a buffer that makes
 * room needs host memory before this one has left its own. */
static int take_device_memory(ad_worker_session *s, ad_stream_queue *queue, uint64_t size, ad_block *out,
                              ad_fault *fault) {
    ad_memory *host = &s->worker->spill->host;
    const uint64_t limit = s->worker->spill->limit, more = 2 * size + host->slab_size;
    host->limit = limit > UINT64_MAX - more ? UINT64_MAX : limit + more;
    int status = ad__quota_return(s, queue, size, out, fault);
    host->limit = limit;
    return status;
}

/* Bring a buffer back to its device, on the given stream queue if that is of this device, else on its home. */
static int move_in(ad_worker_session *s, ad_stream_queue *queue, ad_buffer *b, bool contents, ad_fault *fault) {
    ad_worker *w = s->worker;
    ad_moved *m = b->moving.to;
    ad_block block;
    ad_account *home = ad__stream_arena_account(b->home->stream_arena);
    if (queue->gpu != b->home->gpu) queue = b->home;
    ad__account_return(home, AD_USE_MOVED, b->size);
    int status = take_device_memory(s, queue, b->size, &block, fault);
    if (status) goto stay;
    if (contents && (status = copy_in(w, queue, b, block.address, fault))) goto give_block;
    if (contents) ad__spill_end_copy(w, s, queue, m);
    if (contents) w->spill->moved_in += b->size;
    ad__spill_set_place(s, b, m, &block);
    ad__spill_leave_host(w, b);
    b->block = block;
    b->address = block.address;
    b->home = b->order.writer = queue;
    b->order.written = queue->sequence;
    b->order.readers = 0;
    return 0;

give_block:
    ad__memory_give(queue->stream_arena, &block);
stay:
    ad__account_charge(home, AD_USE_MOVED, b->size);
    return ad__session_status(s, status, fault);
}

int ad__spill_begin(ad_worker_session *s, ad_stream_queue *queue, ad_buffer *const *buffer, int n, ad_fault *fault) {
    const ad_spill *all = s->worker->spill;
    int status = 0;
    if (!all) return 0;
    for (int i = 0; i < n; i++) {
        if (!buffer[i]) continue;
        buffer[i]->in_use = true;
        ad__spill_remove(buffer[i]);
    }
    for (int i = 0; i < n && !status; i++)
        if (buffer[i] && buffer[i]->is_moved) status = move_in(s, queue, buffer[i], true, fault);
    return status;
}

int ad__spill_renew(ad_worker_session *s, ad_stream_queue *queue, ad_buffer *b, ad_fault *fault) {
    return b->is_moved ? move_in(s, queue, b, false, fault) : 0;
}
