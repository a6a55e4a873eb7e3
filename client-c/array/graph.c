/* Graphs: operations that are kept instead of sent, and sent as often as the graph is launched.
 *
 * An operation of a graph writes the same buffers at each launch: what it makes is made when it is recorded. So a graph
 * holds the buffers of its operations: their frees wait for its end. */
#include "client-c/client.h"
#include "protocol/rows_call.h"
#include "protocol/rows_request.h"

#include <stdlib.h>

_Thread_local ad_graph *ad__recording;

struct ad_graph {
    ad_session *session; /* retained */
    ad_graph *next;      /* of the session's, guarded by its lock as what follows is */
    ad_bytes tape;       /* messages, one after another */
    ad_bytes ends;       /* numbers: where each message ends */
    ad_bytes held;       /* numbers: buffers that its operations use; sorted: they ascend */
    ad_bytes freed;      /* numbers: those of them that nobody else needs */
    bool sorted;
};

/* ---- lists of numbers ---- */

static int append_number(ad_bytes *list, uint64_t value) {
    ad__bytes_append(list, &value, sizeof value);
    if (!list->failed) return 0;
    list->failed = false;
    return ad__fail_memory();
}

static size_t count_numbers(const ad_bytes *list) { return list->size / sizeof(uint64_t); }

static uint64_t *get_numbers(const ad_bytes *list) { return (uint64_t *)(void *)list->data; }

static int compare_ids(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool holds_buffer(ad_graph *g, uint64_t buffer) {
    const size_t n = count_numbers(&g->held);
    if (!n) return false;
    if (!g->sorted) qsort(get_numbers(&g->held), n, sizeof buffer, compare_ids);
    g->sorted = true;
    return bsearch(&buffer, get_numbers(&g->held), n, sizeof buffer, compare_ids) != NULL;
}

static int hold_buffer(ad_graph *g, uint64_t buffer) {
    g->sorted = false;
    return append_number(&g->held, buffer);
}

bool ad__graphs_take_free(ad_session *s, uint64_t buffer) {
    ad_graph *g = s->frees.graphs;
    while (g && !holds_buffer(g, buffer)) g = g->next;
    if (g) append_number(&g->freed, buffer); /* without memory for the list the buffer stays until the session ends */
    return g != NULL;
}

/* ---- recording ---- */

int ad_graph_new(ad_session *s, ad_graph **out) {
    ad_graph *g = calloc(1, sizeof *g);
    if (!g) return ad__fail_memory();
    g->session = ad__session_retain(s);
    pthread_mutex_lock(&s->lock);
    g->next = s->frees.graphs;
    s->frees.graphs = g;
    pthread_mutex_unlock(&s->lock);
    *out = g;
    return 0;
}

void ad_graph_record(ad_graph *g) { ad__recording = g; }

size_t ad_graph_size(const ad_graph *g) { return count_numbers(&g->ends); }

int ad__check_not_recording(const char *what) {
    if (AD_LIKELY(!ad__recording)) return 0;
    return ad__fail(AD_E_DEVICE, "cudaErrorStreamCaptureUnsupported: %s is not possible while the stream is capturing",
                    what);
}

/* Keep the message that has been encoded behind the others, and the buffers of its operands. */
static int keep_message(ad_graph *g, const ad_op *op, size_t begin, int status) {
    if (!status && g->tape.failed) status = ad__fail_memory();
    for (int k = 0; k < op->nout + op->nin && !status; k++)
        if (!op->operand[k].is_scalar) status = hold_buffer(g, op->operand[k].desc.buffer);
    if (!status) status = append_number(&g->ends, g->tape.size);
    if (status) {
        g->tape.size = begin;
        g->tape.failed = false;
    }
    return status;
}

static int check_session(ad_session *s) {
    return ad__recording->session == s ? 0 : ad__fail_strangers(ad__recording->session, s);
}

/* Make the buffers that an operation is to make: at each launch it writes them. */
static int make_outputs(ad_graph *g, ad_op *op, ad_array *const *made) {
    int status = 0;
    ad__recording = NULL;
    for (int k = 0; k < op->nout && !status; k++) {
        if (!made[k]) continue;
        status = ad__send_new(made[k], false);
        op->operand[k].desc = ad__array_desc(made[k]);
    }
    ad__recording = g;
    return status;
}

int ad__record_op(ad_session *s, ad_op *op, ad_array *const *made) {
    ad_graph *g = ad__recording;
    int status = check_session(s);
    if (!status && op->opcode == AD_REQ_CALL && (op->row == AD_CALL_random || op->row == AD_CALL_curand))
        status =
            ad__fail(AD_E_UNSUPPORTED, "a graph would draw the same random numbers (in CuPy by cuRAND) at each launch");
    if (!status) status = make_outputs(g, op, made);
    if (status) return status;
    pthread_mutex_lock(&s->lock);
    const size_t begin = g->tape.size;
    status = keep_message(g, op, begin, ad__encode_op(&g->tape, op));
    pthread_mutex_unlock(&s->lock);
    return status;
}

int ad__record_launch(ad_session *s, const ad_launch_text *launch) {
    ad_graph *g = ad__recording;
    int status = check_session(s);
    if (status) return status;
    pthread_mutex_lock(&s->lock);
    const size_t begin = g->tape.size;
    status = keep_message(g, launch->op, begin, ad__encode_launch(&g->tape, launch));
    pthread_mutex_unlock(&s->lock);
    return status;
}

/* An array that is made while a graph records: it is there at once, and zeros are written at each launch. */
int ad__record_new(ad_array *a, bool zero) {
    ad_graph *g = ad__recording;
    int status = check_session(a->session);
    if (status) return status;
    ad__recording = NULL;
    status = ad__send_new(a, zero);
    ad__recording = g;
    if (status) return status;
    pthread_mutex_lock(&a->session->lock);
    status = hold_buffer(g, a->buffer);
    pthread_mutex_unlock(&a->session->lock);
    const ad_in nothing = {.value = {.kind = AD_VALUE_BOOL, .dtype = -1}};
    return status || !zero || !a->count ? status : ad__copy(a, &nothing, AD_CAST_UNSAFE, false);
}

/* ---- reading ---- */

static int decode_text(const uint8_t *message, size_t message_size, size_t size, char *text) {
    ad_reader *reader;
    ad_arena arena = {0};
    ad_message m;
    if (ad__reader_new(&reader)) return ad__fail_memory();
    int status = ad__reader_begin(reader, message, message_size, NULL);
    if (!status && ad__reader_next(reader, &arena, ~0u, &m, NULL) != 1) status = AD_E_MEMORY;
    if (!status) ad__message_text(&m, text, size);
    ad__reader_free(reader);
    ad__arena_free(&arena);
    return status ? ad__fail_memory() : 0;
}

int ad_graph_text(ad_graph *g, size_t i, size_t size, char *text) {
    const uint64_t *end = get_numbers(&g->ends);
    if (i >= ad_graph_size(g))
        return ad__fail(AD_E_VALUE, "i: a graph of %zu operations has no operation %zu", ad_graph_size(g), i);
    const size_t begin = i ? end[i - 1] : 0;
    return decode_text(g->tape.data + begin, end[i] - begin, size, text);
}

/* ---- launching ---- */

int ad_graph_launch(ad_graph *g, size_t first, size_t n) {
    ad_session *s = g->session;
    const size_t all = ad_graph_size(g);
    const uint64_t *end = get_numbers(&g->ends);
    int status = ad__check_not_recording("the launch of a graph");
    if (!status && (first > all || n > all - first))
        status = ad__fail(AD_E_VALUE, "a graph of %zu operations has none from %zu to %zu", all, first, first + n);
    for (size_t i = first; i < first + n && !status; i++) {
        const size_t begin = i ? end[i - 1] : 0;
        status = ad__begin(s);
        if (status) return status;
        const size_t mark = s->output.gathered.size;
        ad__bytes_append(&s->output.gathered, g->tape.data + begin, end[i] - begin);
        status = ad__commit(s, mark, 0);
    }
    return status;
}

void ad_graph_release(ad_graph *g) {
    if (!g) return;
    ad_session *s = g->session;
    pthread_mutex_lock(&s->lock);
    ad_graph **at = &s->frees.graphs;
    while (*at != g) at = &(*at)->next;
    *at = g->next;
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; i < count_numbers(&g->freed); i++)
        ad__queue_free(s, get_numbers(&g->freed)[i], 0); /* another graph may hold it */
    if (ad__recording == g) ad__recording = NULL;
    ad__session_release(s);
    ad__bytes_free(&g->tape);
    ad__bytes_free(&g->ends);
    ad__bytes_free(&g->held);
    ad__bytes_free(&g->freed);
    free(g);
}
