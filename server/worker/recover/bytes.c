/* Recovering the bytes of a session's connection: those from its client to execute, and those to send to it. */
#include <stdlib.h>
#include <string.h>

#include "server/common/os.h"
#include "server/worker/recover/inside.h"

/* Call visit for each block in the list that begins at `first`. Later blocks hold later bytes, or the same ones
 * again. */
static int visit_blocks(const ad_recovery *r, ad_at first,
                        int (*visit)(void *user, const ad_journal_block *b, const uint8_t *data), void *user) {
    uint64_t most = r->memory / sizeof(ad_journal_block);
    for (ad_at at = first; at && most; most--) {
        const ad_journal_block *b = ad__recovery_get(r, at, sizeof *b);
        const uint8_t *data = b && b->size ? ad__recovery_get(r, b->data / 8 * 8, b->size + 8) : (const uint8_t *)"";
        if (!b || !data) return AD_E_PROTOCOL;
        int status = b->size ? visit(user, b, data + b->data % 8) : 0;
        if (status) return status;
        at = b->next;
    }
    return 0;
}

typedef struct stream {
    uint8_t *bytes;            /* bytes from begin to end */
    uint64_t begin, end, from; /* places in the stream; from: of the first byte that was found */
} stream;

static int copy_block(void *user, const ad_journal_block *b, const uint8_t *data) {
    stream *t = user;
    uint64_t begin = b->base > t->begin ? b->base : t->begin, end = b->base + b->size;
    if (end > t->end) end = t->end;
    if (end <= begin) return 0;
    if (t->from == UINT64_MAX) t->from = begin;
    memcpy(t->bytes + (begin - t->begin), data + (begin - b->base), (size_t)(end - begin));
    return 0;
}

int ad__recovery_restore_input(ad_worker_session *s, const ad_journal_session *at, const ad_journal_checkpoint *state,
                               ad_fault *fault) {
    const ad_recovery *r = s->worker->before.left;
    stream t = {.begin = state->frame, .end = at->received, .from = UINT64_MAX};
    if (t.begin > t.end || t.end - t.begin > r->memory)
        return ad__fault(fault, AD_E_PROTOCOL, "its bytes are not there");
    s->input.received = s->checkpoint.frame_end = t.begin;
    s->checkpoint.resumed.skip = state->used;
    if (t.begin == t.end) {
        if (s->checkpoint.at) ad__journal_store(&s->checkpoint.at->received, t.begin);
        return 0;
    }
    if (!(t.bytes = ad__os.malloc(t.end - t.begin))) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    int status = visit_blocks(r, at->input, copy_block, &t);
    if (!status && t.from != t.begin) status = AD_E_PROTOCOL;
    if (!status) status = ad__input_put(&s->input, t.bytes, t.end - t.begin);
    free(t.bytes);
    return status ? ad__fault(fault, status, "its bytes are not there") : 0;
}

typedef struct answers {
    ad_output *to;
    uint64_t end, next; /* where the answers end; where the last block ended, 0: there was none */
} answers;

static int put_back_block(void *user, const ad_journal_block *b, const uint8_t *data) {
    answers *a = user;
    if (b->base >= a->end) return 0;
    uint64_t size = b->base + b->size > a->end ? a->end - b->base : b->size;
    if (a->next && b->base != a->next) return AD_E_PROTOCOL;
    a->next = b->base + size;
    return ad__output_put(a->to, b->base, data, size);
}

int ad__recovery_restore_output(ad_worker_session *s, const ad_journal_session *at, const ad_journal_checkpoint *state,
                                ad_fault *fault) {
    answers a = {.to = &s->output, .end = state->appended};
    int status = visit_blocks(s->worker->before.left, at->output, put_back_block, &a);
    if (!status && a.next && a.next != a.end) status = AD_E_PROTOCOL;
    if (!a.next) status = ad__output_put(&s->output, state->appended, "", 0);
    return status ? ad__fault(fault, status, "its answers are not there") : 0;
}
