/* Messages drawn from the tables, and a mutator of libFuzzer that puts them among others' bytes: each row of request.def
 * by its fields, operations by their own row's operands, and extents at which arithmetic is special. */
#ifndef ARRAYD_TESTS_FUZZ_ROWS_H
#define ARRAYD_TESTS_FUZZ_ROWS_H

#include <msgpack.h>
#include <string.h>

#include "protocol/rows_request.h"
#include "protocol/tables.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

typedef struct draw {
    msgpack_sbuffer bytes;
    msgpack_packer out;
    uint64_t state;
} draw;

/* The next of a series of numbers (xorshift64*), below `below`. */
static uint64_t draw_below(draw *d, uint64_t below) {
    d->state ^= d->state >> 12;
    d->state ^= d->state << 25;
    d->state ^= d->state >> 27;
    return (d->state * 2685821657736338717u >> 11) % below;
}

static uint64_t draw_number(draw *d) {
    static const uint64_t special[] = {0,          1,          2,           3,           7,         8,         31,       32,
                                       33,         127,        128,         255,         256,       65535,     65536,    1u << 20,
                                       0x7fffffff, 0x80000000, 0xffffffff,  1ull << 32,  1ull << 40, 1ull << 61, 1ull << 62,
                                       INT64_MAX,  1ull << 63, UINT64_MAX - 1, UINT64_MAX};
    return draw_below(d, 2) ? draw_below(d, 10) : special[draw_below(d, sizeof special / sizeof *special)];
}

static void pack_words(draw *d, size_t most) {
    static const char words[] = "arrayd <int>::f*[]\xc3\xbc%s\n-./0123456789_abcdefghijklmnopqrstuvwxyz";
    const size_t from = draw_below(d, sizeof words - 1), n = draw_below(d, most);
    msgpack_pack_str_with_body(&d->out, words + from, n < sizeof words - 1 - from ? n : sizeof words - 1 - from);
}

static void pack_bytes(draw *d, size_t n) {
    static const char bytes[64] = "sixteen bytes or more";
    msgpack_pack_bin_with_body(&d->out, bytes, n);
}

static void pack_scalar(draw *d) {
    switch (draw_below(d, 6)) {
    case 0: msgpack_pack_nil(&d->out); return;
    case 1: draw_below(d, 2) ? msgpack_pack_true(&d->out) : msgpack_pack_false(&d->out); return;
    case 2: msgpack_pack_int64(&d->out, (int64_t)draw_number(d)); return;
    case 3: msgpack_pack_double(&d->out, (double)draw_number(d) / 3); return;
    case 4: msgpack_pack_ext_with_body(&d->out, "\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\xf8\x7f", 16, 1); return;
    default: msgpack_pack_uint64(&d->out, draw_number(d));
    }
}

static void pack_numbers(draw *d, size_t n) {
    msgpack_pack_array(&d->out, n);
    while (n--) msgpack_pack_int64(&d->out, (int64_t)draw_number(d));
}

/* An array description in one of its four forms. */
static void pack_description(draw *d) {
    const uint64_t form = draw_below(d, 4), ndim = draw_below(d, 8) ? draw_below(d, 5) : draw_below(d, 34);
    msgpack_pack_array(&d->out, form < 2 ? 5 - form : 3);
    msgpack_pack_uint64(&d->out, draw_below(d, 5));
    msgpack_pack_uint64(&d->out, draw_below(d, AD_NDTYPE + 1));
    if (form < 2) msgpack_pack_uint64(&d->out, draw_number(d));
    if (form == 3) msgpack_pack_nil(&d->out);
    else pack_numbers(d, ndim);
    if (form == 0) pack_numbers(d, ndim);
}

static void pack_field(draw *d, char kind) {
    switch (kind) {
    case 'u': msgpack_pack_uint64(&d->out, draw_number(d)); return;
    case 's': pack_words(d, 80); return;
    case 't': pack_words(d, 200); return;
    case 'y': pack_bytes(d, draw_below(d, 40)); return;
    case 'k': pack_bytes(d, draw_below(d, 8) ? 16 : draw_below(d, 40)); return;
    case 'm': msgpack_pack_map(&d->out, 0); return;
    case 'F': pack_description(d); return;
    case 'D':
        if (draw_below(d, 3)) pack_description(d);
        else pack_scalar(d);
        return;
    default: pack_scalar(d);
    }
}

static void pack_list(draw *d, char kind, size_t n) {
    msgpack_pack_array(&d->out, n);
    while (n--) pack_field(d, kind);
}

/* Set how many outputs and inputs a row of the operation's table has. */
static void find_operands(draw *d, uint64_t opcode, uint64_t row, size_t *nout, size_t *nin) {
    const ad_ufunc_row *ufunc = opcode == AD_REQ_UFUNC ? ad__ufunc(row) : NULL;
    const ad_call_row *call = opcode == AD_REQ_CALL || opcode == AD_REQ_QUERY ? ad__call(row) : NULL;
    *nout = *nin = 1;
    if (ufunc) *nout = ufunc->nout, *nin = ufunc->nin + draw_below(d, 2);
    if (call) *nout = call->nout, *nin = call->nin_min + draw_below(d, (uint64_t)(call->nin_max - call->nin_min) + 1);
    if (!draw_below(d, 10)) *nout = draw_below(d, 5);
    if (!draw_below(d, 10)) *nin = draw_below(d, 10);
}

/* The fields of a message one by one. Operations have a row, a type, and lists that are as long as the row says. */
static void pack_fields(draw *d, uint64_t opcode, const ad_request_row *row) {
    const uint64_t of = draw_below(d, 220);
    size_t nout, nin, list = 0;
    int number = 0;
    find_operands(d, opcode, of, &nout, &nin);
    for (const char *f = row->fields; *f; f++) {
        const bool operation = row->check == AD_CHECK_OPERATION;
        if (*f == '[') {
            const size_t n = operation && list < 2 ? (list ? nin : nout) : draw_below(d, 6);
            pack_list(d, f[1], n);
            list++;
            f += 2;
        } else if (operation && *f == 'u' && (number += 1) >= 1 + (opcode == AD_REQ_QUERY)) {
            msgpack_pack_uint64(&d->out, number == 1 + (opcode == AD_REQ_QUERY) ? of : draw_below(d, AD_NDTYPE + 1));
        } else {
            pack_field(d, *f);
        }
    }
}

static size_t count_fields(const char *fields) {
    size_t n = 0;
    for (const char *f = fields; *f; f++, n++)
        if (*f == '[') f += 2;
    return n;
}

static void pack_message(draw *d) {
    uint64_t opcode = draw_below(d, AD_REQUEST_LIMIT);
    while (!ad__request(opcode)) opcode = draw_below(d, AD_REQUEST_LIMIT);
    if (!draw_below(d, 3)) opcode = (uint64_t[]){AD_REQ_UFUNC, AD_REQ_REDUCE, AD_REQ_CALL, AD_REQ_QUERY}[draw_below(d, 4)];
    const ad_request_row *row = ad__request(opcode);
    msgpack_pack_array(&d->out, 1 + count_fields(row->fields));
    msgpack_pack_uint64(&d->out, opcode);
    pack_fields(d, opcode, row);
}

/* Half of the time libFuzzer changes the bytes; else a drawn message takes their place, or stands before or behind them. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    draw d = {.state = 0x9e3779b97f4a7c15u ^ ((uint64_t)seed << 20 | 1)};
    if (draw_below(&d, 2)) return LLVMFuzzerMutate(data, size, most);
    const uint64_t place = draw_below(&d, 3);
    msgpack_sbuffer_init(&d.bytes);
    msgpack_packer_init(&d.out, &d.bytes, msgpack_sbuffer_write);
    pack_message(&d);
    const size_t n = d.bytes.size;
    if (place == 0) size = 0;
    if (size + n <= most) {
        if (place == 2) memmove(data + n, data, size);
        memcpy(place == 2 ? data : data + size, d.bytes.data, n);
        size += n;
    }
    msgpack_sbuffer_destroy(&d.bytes);
    return size ? size : LLVMFuzzerMutate(data, 1, most);
}

#endif
