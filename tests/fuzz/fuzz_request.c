/* Control blocks, all the way: scan, reader, checker, ad__check_op, text; and what was read, encoded and read again, is
 * the same. */
#include "protocol/desc.h"
#include "protocol/infer.h"
#include "protocol/message.h"
#include "protocol/rows_request.h"
#include "tests/fuzz/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same_desc(const ad_desc *a, const ad_desc *b) {
    if (a->buffer != b->buffer || a->dtype != b->dtype || a->form != b->form || a->ndim != b->ndim ||
        a->offset != b->offset)
        return false;
    if (a->ndim > 0 && memcmp(a->shape, b->shape, a->ndim * sizeof *a->shape) != 0) return false;
    if (ad__is_contiguous(a) != ad__is_contiguous(b)) return false;
    for (int i = 0; i < a->ndim && !ad__is_contiguous(a); i++)
        if (a->shape[i] != 1 && a->strides[i] != b->strides[i]) return false;
    return true;
}

static bool same_scalar(const ad_scalar *a, const ad_scalar *b) {
    if (a->kind != b->kind) return false;
    switch (a->kind) {
    case AD_SCALAR_NIL: return true;
    case AD_SCALAR_BOOL: return a->as.b == b->as.b;
    case AD_SCALAR_COMPLEX: return memcmp(a->as.c, b->as.c, sizeof a->as.c) == 0;
    default: return a->as.u == b->as.u;
    }
}

static bool same_operand(const ad_operand *a, const ad_operand *b) {
    if (a->is_scalar != b->is_scalar) return false;
    return a->is_scalar ? same_scalar(&a->scalar, &b->scalar) : same_desc(&a->desc, &b->desc);
}

static bool same_op(const ad_op *a, const ad_op *b) {
    if (a->opcode != b->opcode || a->loop != b->loop || a->row != b->row || a->nout != b->nout || a->nin != b->nin ||
        a->nparam != b->nparam)
        return false;
    for (int i = 0; i < a->nout + a->nin; i++)
        if (!same_operand(&a->operand[i], &b->operand[i])) return false;
    for (int i = 0; i < a->nparam; i++)
        if (!same_scalar(&a->param[i], &b->param[i])) return false;
    return true;
}

static bool same_message(const ad_message *a, const ad_message *b) {
    if (a->opcode != b->opcode || memcmp(a->u, b->u, sizeof a->u) != 0 || a->nids != b->nids ||
        a->nvalues != b->nvalues)
        return false;
    if (a->nids > 0 && memcmp(a->ids, b->ids, a->nids * sizeof *a->ids) != 0) return false;
    for (size_t i = 0; i < a->nvalues; i++)
        if (!same_scalar(&a->values[i], &b->values[i])) return false;
    return same_operand(&a->operand, &b->operand) && same_op(&a->op, &b->op);
}

/* False: nothing was encoded (messages with texts, which the encoder takes as C strings). */
static bool encode_message(ad_bytes *b, const ad_message *m) {
    const uint64_t *u = m->u;

    switch (m->opcode) {
    case AD_REQ_NEW:
    case AD_REQ_EMPTY: ad__encode_new(b, &m->operand.desc, m->opcode == AD_REQ_NEW); return true;
    case AD_REQ_FREE: ad__encode_free(b, m->nids, m->ids); return true;
    case AD_REQ_WRITE: ad__encode_write(b, u[0], u[1]); return true;
    case AD_REQ_UFUNC:
    case AD_REQ_REDUCE:
    case AD_REQ_CALL: ad__encode_op(b, &m->op); return true;
    case AD_REQ_QUERY: ad__encode_query(b, u[0], &m->op); return true;
    case AD_REQ_READ: ad__encode_read(b, u[0], &m->operand.desc); return true;
    case AD_REQ_SYNC: ad__encode_sync(b, u[0]); return true;
    case AD_REQ_STAT: ad__encode_stat(b, u[0]); return true;
    case AD_REQ_REPLY: ad__encode_reply(b, u[0], u[1], m->nvalues, m->values); return true;
    case AD_REQ_ACK: ad__encode_ack(b, u[0]); return true;
    case AD_REQ_RESUME:
        if (m->s[1].size) return false;
        ad__encode_resume(b, u, (const uint8_t *)m->s[0].data, NULL, u[4]);
        return true;
    case AD_REQ_FORK:
        if (u[0]) return false;
        ad__encode_fork(b, u[1], (const uint8_t *)m->s[0].data);
        return true;
    case AD_REQ_RESUMED: ad__encode_resumed(b, (const uint8_t *)m->s[0].data, u[0]); return true;
    default: return false;
    }
}

static void check_encoding(const ad_message *m) {
    ad_reader *reader = NULL;
    ad_arena arena = AD_ARENA_INIT;
    ad_bytes b = AD_BYTES_INIT;
    ad_message back;

    if (encode_message(&b, m)) {
        if (ad__reader_new(&reader)) abort();
        if (ad__reader_begin(reader, b.data, b.size, NULL) || ad__reader_next(reader, &arena, ~0u, &back, NULL) != 1 ||
            !same_message(m, &back) || back.size != b.size)
            abort();
    }
    ad__reader_free(reader);
    ad__arena_free(&arena);
    ad__bytes_free(&b);
}

static bool is_op(const ad_message *m) {
    return m->opcode == AD_REQ_UFUNC || m->opcode == AD_REQ_REDUCE || m->opcode == AD_REQ_CALL ||
           m->opcode == AD_REQ_QUERY;
}

/* Do a server's arithmetic with an operation. */
static void check_op(const ad_op *op) {
    ad_result result[AD_MAX_OUT];
    ad_fault fault = {0};
    int64_t low, high;

    for (int i = 0; i < op->nout + op->nin; i++) {
        const ad_desc *d = &op->operand[i].desc;
        if (!op->operand[i].is_scalar && ad__desc_extent(d, &low, &high, &fault) == 0 && (low < 0 || low > high))
            abort();
        if (!op->operand[i].is_scalar && ad__desc_check(d, 1000, "x", &fault) == 0 && high > 1000) abort();
    }
    fault.code = 0;
    if (ad__check_op(op, &fault) == 0) {
        if (ad__infer(op, result, &fault) || op->nout == 0) abort();
        for (int i = 0; i < op->nout; i++)
            if (result[i].dtype >= AD_NDTYPE || result[i].ndim > AD_MAX_NDIM) abort();
    } else if (fault.code == 0 || fault.text[0] == '\0') {
        abort();
    }
}

/* Read a block with a reader that remembers operations and with one that does not. */
static void compare_readers(ad_reader *remembering, ad_reader *plain, const uint8_t *data, size_t size) {
    ad_arena a = AD_ARENA_INIT, b = AD_ARENA_INIT;
    ad_message m, known;
    int status = ad__reader_begin(plain, data, size, NULL);

    if (ad__reader_begin(remembering, data, size, NULL) != status) abort();
    while (status == 0 && (status = ad__reader_next(plain, &a, ~0u, &m, NULL)) == 1) {
        if (ad__reader_next(remembering, &b, ~0u, &known, NULL) != 1 || !same_message(&m, &known) ||
            known.size != m.size)
            abort();
        status = 0;
    }
    if (ad__reader_next(remembering, &b, ~0u, &known, NULL) > 0) abort();
    ad__arena_free(&a);
    ad__arena_free(&b);
}

/* Let messages come again: as they are, and with one byte after another changed. */
static void check_known(const uint8_t *data, size_t size) {
    ad_reader *remembering = NULL, *plain = NULL;
    uint8_t *copy = malloc(size + 1);

    if (!copy || ad__reader_new(&remembering) || ad__reader_new(&plain) || ad__reader_remember(remembering)) abort();
    for (int i = 0; i < 3; i++) compare_readers(remembering, plain, data, size);
    for (size_t i = 0; i < size && i < 300; i++) {
        memcpy(copy, data, size);
        copy[i] ^= (uint8_t)(data[size - 1 - i] | 1);
        compare_readers(remembering, plain, copy, size);
    }
    ad__reader_free(remembering);
    ad__reader_free(plain);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ad_reader *reader = NULL;
    ad_arena arena = AD_ARENA_INIT;
    ad_fault fault = {0};
    char text[300];
    ad_message m;
    int status;

    check_known(data, size);
    if (ad__reader_new(&reader)) return 0;
    status = ad__reader_begin(reader, data, size, &fault);
    while (status == 0 && (status = ad__reader_next(reader, &arena, ~0u, &m, &fault)) == 1) {
        ad__message_text(&m, text, sizeof text);
        if (text[0] == '\0' || m.size == 0 || m.size > size) abort();
        if (is_op(&m)) check_op(&m.op);
        check_encoding(&m);
        status = 0;
    }
    if (status && (status != AD_E_PROTOCOL || fault.code != status || fault.text[0] == '\0')) abort();
    ad__reader_free(reader);
    ad__arena_free(&arena);
    return 0;
}
