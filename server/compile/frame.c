/* Frames of arrayd-compile, written and read: see frame.h. */
#include "server/compile/frame.h"

#include <stdlib.h>
#include <string.h>

#define REQUEST_MAGIC 0x314a4441u /* "ADJ1" */
#define RESULT_MAGIC 0x31524441u  /* "ADR1" */

/* ---- writing ---- */

static void append_number(ad_bytes *b, uint32_t n) {
    uint8_t bytes[4] = {(uint8_t)n, (uint8_t)(n >> 8), (uint8_t)(n >> 16), (uint8_t)(n >> 24)};
    ad__bytes_append(b, bytes, sizeof bytes);
}

static void append_bytes(ad_bytes *b, const void *data, size_t size) {
    append_number(b, (uint32_t)size);
    ad__bytes_append(b, data, size);
    ad__bytes_append(b, "", 1);
}

static void append_word(ad_bytes *b, const char *word) { append_bytes(b, word, strlen(word)); }

static void append_list(ad_bytes *b, const char *const *list, size_t n) {
    append_number(b, (uint32_t)n);
    for (size_t i = 0; i < n; i++) append_word(b, list[i]);
}

int ad__compile_put_request(ad_bytes *b, const ad_compile_request *r) {
    const ad_compile_job *job = &r->job;
    append_number(b, REQUEST_MAGIC);
    append_number(b, job->target);
    append_number(b, (r->open ? 1 : 0) | (job->own ? 2 : 0));
    append_number(b, r->seconds);
    append_number(b, (uint32_t)r->memory);
    append_number(b, (uint32_t)(r->memory >> 32));
    append_word(b, r->nvrtc ? r->nvrtc : "");
    append_word(b, job->arch ? job->arch : "");
    append_bytes(b, job->prelude.data, job->prelude.size);
    append_bytes(b, job->source.data, job->source.size);
    append_list(b, job->options, job->noptions);
    append_list(b, job->own_options, job->nown_options);
    append_list(b, job->names, job->nnames);
    append_number(b, (uint32_t)job->nheaders);
    for (size_t i = 0; i < job->nheaders; i++) {
        append_word(b, job->headers[i].name);
        append_bytes(b, job->headers[i].text.data, job->headers[i].text.size);
    }
    return b->failed ? AD_E_MEMORY : 0;
}

int ad__compile_put_result(ad_bytes *b, const ad_compile_result *r) {
    append_number(b, RESULT_MAGIC);
    append_number(b, r->kind);
    append_number(b, (uint32_t)-r->code);
    append_word(b, r->binary.log ? r->binary.log : "");
    append_bytes(b, r->binary.data, r->binary.data ? r->binary.size : 0);
    append_list(b, r->binary.lowered, r->binary.nlowered);
    return b->failed ? AD_E_MEMORY : 0;
}

/* ---- reading ---- */

typedef struct reader {
    const uint8_t *p, *end;
    ad_fault *fault;
    int status; /* of the first error; from there on all that is read is empty */
} reader;

static void reject_frame(reader *r, int status, const char *what) {
    if (!r->status) r->status = ad__fault(r->fault, status, "not a frame of arrayd-compile: %s", what);
    r->p = r->end;
}

static uint32_t read_number(reader *r) {
    if (r->end - r->p < 4) {
        reject_frame(r, AD_E_PROTOCOL, "it ends too early");
        return 0;
    }
    r->p += 4;
    return r->p[-4] | (uint32_t)r->p[-3] << 8 | (uint32_t)r->p[-2] << 16 | (uint32_t)r->p[-1] << 24;
}

static ad_text read_counted_bytes(reader *r, size_t most, const char *what) {
    uint32_t size = read_number(r);
    if (!r->status && size > most) reject_frame(r, AD_E_LIMIT, what);
    if (!r->status && (size_t)(r->end - r->p) < (size_t)size + 1) reject_frame(r, AD_E_PROTOCOL, "it ends too early");
    if (!r->status && r->p[size]) reject_frame(r, AD_E_PROTOCOL, "a text does not end");
    if (r->status) return (ad_text){"", 0};
    r->p += size + 1;
    return (ad_text){(const char *)r->p - size - 1, size};
}

static const char *read_word(reader *r, size_t most, const char *what) {
    ad_text t = read_counted_bytes(r, most, what);
    if (strlen(t.data) != t.size) reject_frame(r, AD_E_PROTOCOL, "a NUL within a word");
    return r->status ? "" : t.data;
}

static size_t read_list_count(reader *r, size_t most, const char *what) {
    uint32_t n = read_number(r);
    if (n > most) reject_frame(r, AD_E_LIMIT, what);
    return r->status ? 0 : n;
}

static const char *const *read_word_list(reader *r, size_t *count, const char **room, size_t most, const char *what) {
    size_t n = read_list_count(r, most, what);
    for (size_t i = 0; i < n && !r->status; i++) room[i] = read_word(r, AD_COMPILE_LOWERED, "a word is too long");
    *count = r->status ? 0 : n;
    return room;
}

static void read_headers(reader *r, ad_compile_job *job, ad_compile_header *room) {
    size_t n = read_list_count(r, AD_COMPILE_HEADERS, "too many headers");
    for (size_t i = 0; i < n && !r->status; i++) {
        room[i].name = read_word(r, AD_COMPILE_WORD, "a header's name is too long");
        room[i].text = read_counted_bytes(r, AD_COMPILE_GIVEN, "a header is too long");
    }
    job->headers = room;
    job->nheaders = r->status ? 0 : n;
}

static void require_condition(reader *r, bool holds, const char *what) {
    if (!holds) reject_frame(r, AD_E_PROTOCOL, what);
}

typedef struct request_lists {
    const char *options[AD_COMPILE_OPTIONS], *own_options[AD_COMPILE_OPTIONS], *names[AD_COMPILE_NAMES];
    ad_compile_header headers[AD_COMPILE_HEADERS];
} request_lists;

static void read_job_members(reader *r, ad_compile_job *job, request_lists *l) {
    job->arch = read_word(r, 64, "the architecture's name is too long");
    job->prelude = read_counted_bytes(r, AD_COMPILE_GIVEN, "the prelude is too long");
    job->source = read_counted_bytes(r, AD_COMPILE_SOURCE, "the source is longer than 1 MiB");
    job->options = read_word_list(r, &job->noptions, l->options, AD_COMPILE_OPTIONS, "too many options");
    job->own_options = read_word_list(r, &job->nown_options, l->own_options, AD_COMPILE_OPTIONS, "too many options");
    job->names = read_word_list(r, &job->nnames, l->names, AD_COMPILE_NAMES, "more than 256 names");
    read_headers(r, job, l->headers);
}

int ad__compile_get_request(const void *data, size_t size, ad_compile_request *out, void **lists, ad_fault *fault) {
    reader r = {data, (const uint8_t *)data + size, fault, 0};
    *out = (ad_compile_request){0};
    if (!(*lists = calloc(1, sizeof(request_lists)))) return ad__fault(fault, AD_E_MEMORY, "out of memory");
    require_condition(&r, read_number(&r) == REQUEST_MAGIC, "not a job");
    uint32_t target = read_number(&r), flags = read_number(&r);
    require_condition(&r, target <= AD_COMPILE_HOST && flags < 4, "an unknown target or flag");
    out->job.target = (ad_compile_target)target;
    out->open = flags & 1;
    out->job.own = flags & 2;
    out->seconds = read_number(&r);
    out->memory = read_number(&r);
    out->memory |= (uint64_t)read_number(&r) << 32;
    out->nvrtc = read_word(&r, AD_COMPILE_WORD, "a path is too long");
    read_job_members(&r, &out->job, *lists);
    require_condition(&r, r.status || r.p == r.end, "it is longer than its job");
    return r.status;
}

int ad__compile_get_result(const void *data, size_t size, ad_compile_result *out, void **lists, ad_fault *fault) {
    reader r = {data, (const uint8_t *)data + size, fault, 0};
    const char **room = calloc(AD_COMPILE_NAMES, sizeof *room);
    *out = (ad_compile_result){0};
    *lists = (void *)room;
    if (!room) return ad__fault(fault, AD_E_MEMORY, "out of memory");
    require_condition(&r, read_number(&r) == RESULT_MAGIC, "not a result");
    uint32_t kind = read_number(&r), code = read_number(&r);
    require_condition(&r, kind < AD_NCOMPILE_KIND && code < 1000, "an unknown kind");
    out->kind = (ad_compile_kind)kind;
    out->code = r.status ? 0 : -(int)code;
    out->binary.log = read_word(&r, AD_COMPILE_LOG + 1024, "the log is too long");
    ad_text made = read_counted_bytes(&r, AD_COMPILE_BINARY, "the binary is longer than 64 MiB");
    out->binary.lowered = read_word_list(&r, &out->binary.nlowered, room, AD_COMPILE_NAMES, "too many names");
    require_condition(&r, r.status || r.p == r.end, "it is longer than its result");
    require_condition(&r, r.status || (made.size > 0) == (kind == AD_COMPILE_MADE),
                      "a binary where there is none, or none");
    require_condition(&r, r.status || (code > 0) == (kind == AD_COMPILE_REFUSED),
                      "a code where there is none, or none");
    if (!r.status && made.size) {
        out->binary.data = (const uint8_t *)made.data;
        out->binary.size = made.size;
    }
    return r.status;
}
