/* For tests/wire: control blocks in and out of the library through plain buffers. */
#include "protocol/message.h"
#include "protocol/rows_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int arrayd_test_text(const uint8_t *block, size_t size, uint32_t allowed, char *out, size_t room);
long arrayd_test_again(const uint8_t *block, size_t size, uint8_t *out, size_t room);

typedef void visit_message(const ad_message *m, void *argument);

static int visit_block(const uint8_t *block, size_t size, uint32_t allowed, visit_message *visit, void *argument,
                       ad_fault *fault) {
    ad_arena arena = AD_ARENA_INIT;
    ad_reader *reader = NULL;
    ad_message m;
    int status = ad__reader_new(&reader);

    if (status == 0) status = ad__reader_begin(reader, block, size, fault);
    while (status == 0 && (status = ad__reader_next(reader, &arena, allowed, &m, fault)) == 1) {
        visit(&m, argument);
        status = 0;
        if (m.size == 0) status = ad__fault(fault, AD_E_INTERNAL, "a message of no bytes");
    }
    ad__reader_free(reader);
    ad__arena_free(&arena);
    return status;
}

typedef struct text {
    char *at;
    size_t room;
} text;

static void add_line(const ad_message *m, void *argument) {
    text *t = argument;
    size_t used;

    if (t->room < 2) return;
    ad__message_text(m, t->at, t->room - 1);
    used = strlen(t->at);
    t->at[used++] = '\n';
    t->at[used] = '\0';
    t->at += used;
    t->room -= used;
}

/* The messages, a line each; the fault's text when the block is refused. */
int arrayd_test_text(const uint8_t *block, size_t size, uint32_t allowed, char *out, size_t room) {
    text t = {out, room};
    ad_fault fault = {0};
    int status;

    out[0] = '\0';
    status = visit_block(block, size, allowed, add_line, &t, &fault);
    if (status != 0) snprintf(out, room, "%s", fault.text);
    return status;
}

static void encode_string(char *to, size_t room, const ad_string *s) {
    snprintf(to, room, "%.*s", (int)s->size, s->data);
}

static void launch_again(const ad_message *m, ad_bytes *b) {
    char name[65536];
    uint8_t kind[AD_MAX_ARGUMENTS];
    ad_launch_text launch = {.module = m->u[0],
                             .kernel = name,
                             .nparams = m->nids - 7,
                             .kind = kind,
                             .op = &m->op,
                             .value = m->list[0].item,
                             .nvalues = m->list[0].n};

    encode_string(name, sizeof name, &m->s[0]);
    for (int i = 0; i < 7; i++) launch.numbers[i] = m->ids[i];
    for (size_t i = 0; i < launch.nparams; i++) kind[i] = (uint8_t)m->ids[7 + i];
    ad__encode_launch(b, &launch);
}

/* The texts of a list; to be freed with the memory behind them. */
static const char **texts_of(const ad_message *m, int list, char **memory) {
    const size_t n = m->list[list].n;
    const char **texts = calloc(n + 1, sizeof *texts);
    size_t size = 1;

    for (size_t i = 0; i < n; i++) size += m->list[list].item[i].size + 1;
    char *to = *memory = calloc(1, size);
    for (size_t i = 0; i < n; i++) {
        const ad_string *item = &m->list[list].item[i];
        texts[i] = memcpy(to, item->data, item->size);
        to += item->size + 1;
    }
    return texts;
}

static void build_again(const ad_message *m, ad_bytes *b) {
    char *memory[2];
    const char **options = texts_of(m, 0, &memory[0]), **names = texts_of(m, 1, &memory[1]);

    ad__encode_build(b, m->u[0], m->u[1], m->s[0].data, m->s[0].size, m->list[0].n, options, m->list[1].n, names);
    free(options);
    free(names);
    free(memory[0]);
    free(memory[1]);
}

static void encode_again(const ad_message *m, void *argument) {
    char name[128], words[1024], long_name[65536];
    ad_bytes *b = argument;
    const uint64_t *u = m->u;

    encode_string(name, sizeof name, &m->s[0]);
    encode_string(words, sizeof words, &m->s[1]);
    encode_string(long_name, sizeof long_name, &m->s[0]);
    switch (m->opcode) {
    case AD_REQ_HELLO: ad__encode_hello(b, u[0], u[1], u[2], name, m->s[1].size ? words : NULL, u[3]); break;
    case AD_REQ_RESUME:
        ad__encode_resume(b, u, (const uint8_t *)m->s[0].data, m->s[1].size ? words : NULL, u[4]);
        break;
    case AD_REQ_RESUMED: ad__encode_resumed(b, (const uint8_t *)m->s[0].data, u[0]); break;
    case AD_REQ_FORK: ad__encode_fork(b, u[1], (const uint8_t *)m->s[0].data); break;
    case AD_REQ_WELCOME: ad__encode_welcome(b, m->welcome); break;
    case AD_REQ_NEW:
    case AD_REQ_EMPTY: ad__encode_new(b, &m->operand.desc, m->opcode == AD_REQ_NEW); break;
    case AD_REQ_FREE: ad__encode_free(b, m->nids, m->ids); break;
    case AD_REQ_WRITE: ad__encode_write(b, u[0], u[1]); break;
    case AD_REQ_READ: ad__encode_read(b, u[0], &m->operand.desc); break;
    case AD_REQ_SYNC: ad__encode_sync(b, u[0]); break;
    case AD_REQ_STAT: ad__encode_stat(b, u[0]); break;
    case AD_REQ_QUERY: ad__encode_query(b, u[0], &m->op); break;
    case AD_REQ_REPLY: ad__encode_reply(b, u[0], u[1], m->nvalues, m->values); break;
    case AD_REQ_FAIL: ad__encode_fail(b, u[0], u[1], -(int)u[2], u[3], name, words); break;
    case AD_REQ_ACK: ad__encode_ack(b, u[0]); break;
    case AD_REQ_BYE: ad__encode_bye(b, -(int)u[0], name); break;
    case AD_REQ_FETCH: ad__encode_fetch(b, u[0], &m->operand.desc, u[1], u[2]); break;
    case AD_REQ_LAUNCH: launch_again(m, b); break;
    case AD_REQ_BUILD: build_again(m, b); break;
    case AD_REQ_KERNEL_SET:
        ad__encode_kernel_set(b, u[0], long_name, (int64_t)(u[1] - 1), (int64_t)(u[2] - 1), (int)u[3] - 1);
        break;
    case AD_REQ_KERNEL: ad__encode_kernel(b, u[0], u[1], long_name); break;
    case AD_REQ_GLOBAL: ad__encode_global(b, u[0], u[1], long_name, u[2]); break;
    case AD_REQ_PUBLISH: ad__encode_publish(b, u[0], &m->operand.desc, u[1] == 1, name, words); break;
    case AD_REQ_ATTACH_NAME: ad__encode_named(b, m->opcode, 2, u, 2, (const char *const[]){name, words}); break;
    case AD_REQ_PULL: ad__encode_named(b, m->opcode, 4, u, 2, (const char *const[]){name, words}); break;
    case AD_REQ_IMPORT: ad__encode_named(b, m->opcode, 7, u, 1, (const char *const[]){long_name}); break;
    case AD_REQ_UNPUBLISH: ad__encode_named(b, m->opcode, 1, u, 1, (const char *const[]){name}); break;
    case AD_REQ_UFUNC:
    case AD_REQ_REDUCE:
    case AD_REQ_CALL: ad__encode_op(b, &m->op); break;
    default: /* nothing but numbers */ ad__encode_numbers(b, m->opcode, strlen(m->row->fields), u); break;
    }
}

/* The block decoded and encoded again: its size, or a negative status. */
long arrayd_test_again(const uint8_t *block, size_t size, uint8_t *out, size_t room) {
    ad_bytes b = AD_BYTES_INIT;
    ad_fault fault = {0};
    long status = visit_block(block, size, 0xf, encode_again, &b, &fault);

    if (status == 0 && (b.failed || b.size > room)) status = AD_E_MEMORY;
    if (status == 0 && b.size > 0) {
        memcpy(out, b.data, b.size);
        status = (long)b.size;
    }
    ad__bytes_free(&b);
    return status;
}
