/* Replies, acknowledgements and byes. */
#include <stdio.h>
#include <stdlib.h>

#include "server/common/rights.h"
#include "server/worker/session.h"
#include "server/worker/io/reply.h"
#include "server/worker/io/trace.h"

#define ACK_IDLE 64               /* operations that an idle server leaves unacknowledged */
#define ACK_IDLE_BYTES (1u << 20) /* unacknowledged bytes that an idle server lets the client hold */
#define SMALL_PART 4096

static ad_bytes *begin_message(ad_worker_session *s) {
    ad_bytes *b = &s->worker->engine.scratch;
    b->size = 0;
    b->failed = false;
    return b;
}

/* Append the message in b and a copy of a payload. A failure breaks the output, and the session ends with this turn. */
static void send_message(ad_worker_session *s, const ad_bytes *b, uint32_t flags, const void *payload, size_t size) {
    if (b->failed) {
        atomic_store(&s->output.broken, true);
        return;
    }
    if (ad__is_traced(s)) ad__trace(s, "->", b->data, b->size);
    ad__output_frame(&s->output, b->data, b->size, flags, payload, size);
}

/* Append the message in b with a payload that the output owns from here on. A small payload is copied in behind its
 * control block, to be sent as one piece. */
static void send_part(ad_worker_session *s, const ad_bytes *b, uint32_t flags, ad_output_block *part) {
    if (b->failed || part->own.size <= SMALL_PART) {
        send_message(s, b, flags, part->data, part->own.size);
        ad__output_block_free(&s->output, part);
        return;
    }
    if (ad__is_traced(s)) ad__trace(s, "->", b->data, b->size);
    ad__output_chunk(&s->output, b->data, b->size, flags, part);
}

static void mark_told(ad_worker_session *s) {
    s->progress.told = s->progress.complete;
    s->progress.bytes_told = s->progress.bytes_done;
}

void ad__reply_ints(ad_worker_session *s, uint64_t request, size_t n, const int64_t *values) {
    ad_scalar scalars[AD_REPLY_INTS];
    for (size_t i = 0; i < n; i++) scalars[i] = (ad_scalar){.kind = AD_SCALAR_INT, .as.i = values[i]};
    ad__reply_values(s, request, n, scalars);
}

void ad__reply_values(ad_worker_session *s, uint64_t request, size_t n, const ad_scalar *values) {
    if (s->checkpoint.resumed.silent) return;
    ad_bytes *b = begin_message(s);
    ad__encode_reply(b, request, s->progress.complete, n, values);
    mark_told(s);
    send_message(s, b, 0, NULL, 0);
}

void ad__reply_text(ad_worker_session *s, uint64_t request, size_t n, const ad_scalar *values, const char *text,
                    size_t size) {
    if (s->checkpoint.resumed.silent) return;
    ad_bytes *b = begin_message(s);
    ad__encode_reply(b, request, s->progress.complete, n, values);
    mark_told(s);
    send_message(s, b, 0, text, size);
}

void ad__reply_part(ad_worker_session *s, uint64_t request, uint64_t total, uint64_t offset, uint32_t flags,
                    ad_output_block *part) {
    ad_bytes *b = begin_message(s);
    ad_scalar values[2] = {{.kind = AD_SCALAR_INT, .as.i = (int64_t)total},
                           {.kind = AD_SCALAR_INT, .as.i = (int64_t)offset}};
    ad__encode_reply(b, request, s->progress.complete, 2, values);
    mark_told(s);
    if (part) send_part(s, b, flags, part);
    else send_message(s, b, flags, NULL, 0);
}

void ad__reply_fail(ad_worker_session *s, uint64_t request, const ad_poison *why) {
    if (s->checkpoint.resumed.silent) return;
    ad_bytes *b = begin_message(s);
    ad__encode_fail(b, request, s->progress.complete, why->code, why->number, why->name, why->text);
    mark_told(s);
    send_message(s, b, 0, NULL, 0);
}

void ad__reply_ack(ad_worker_session *s, bool idle) {
    const uint64_t ops = s->progress.complete - s->progress.told;
    if (!ops) return;
    const uint64_t window_ops = ad__window_ops(&s->worker->config, &s->grants);
    const uint64_t window_bytes = ad__window_bytes(&s->worker->config, &s->grants);
    uint64_t bytes = s->progress.bytes_done - s->progress.bytes_told;
    bool awaited = s->progress.told <
                   s->sharing.forked_at; /* before that the client checks again and again whether the fork is lost */
    bool much = idle && (ops > ACK_IDLE || bytes > ACK_IDLE_BYTES || awaited);
    if (ops < window_ops / 32 && bytes < window_bytes / 16 && !much) return;
    ad_bytes *b = begin_message(s);
    ad__encode_ack(b, s->progress.complete);
    mark_told(s);
    send_message(s, b, 0, NULL, 0);
}

void ad__reply_bye(ad_worker_session *s, int code, const char *text) {
    ad_bytes *b = begin_message(s);
    ad__encode_bye(b, code, text);
    send_message(s, b, 0, NULL, 0);
}

/* ---- failures ---- */

void ad__reply_fault(ad_worker_session *s, uint64_t request, int status, ad_fault *fault) {
    fault->code = status;
    ad_poison *p = ad__poison_new(fault, 0, "");
    ad__reply_fail(s, request, p);
    ad__poison_release(p);
}

void ad__count_told_failure(ad_worker_session *s) {
    ad_checkpoint *v = &s->checkpoint;
    if (v->resumed.silent && v->resumed.untold) v->resumed.untold--;
    else v->told++;
}

bool ad__reply_pending_failure(ad_worker_session *s, uint64_t request) {
    ad_poison *p = s->progress.pending;
    if (!p || (s->checkpoint.resumed.silent && !s->checkpoint.resumed.untold)) return false;
    s->progress.pending = NULL;
    ad__count_told_failure(s);
    ad__reply_fail(s, request, p);
    ad__poison_release(p);
    return true;
}

int ad__ask_unsupported(const ad_message *m, ad_fault *fault) {
    return ad__fault(fault, AD_E_UNSUPPORTED, "%s: this server does not support the request", m->row->name);
}
