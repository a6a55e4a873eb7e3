#include <criterion/criterion.h>
#include <string.h>

#include "protocol/desc.h"
#include "protocol/message.h"
#include "protocol/rows.h"
#include "protocol/rows_request.h"

#define ALL 0xfu

static ad_arena arena;
static ad_reader *reader;
static ad_bytes bytes;
static ad_fault fault;

static void set_up(void) {
    cr_assert_eq(ad__reader_new(&reader), 0);
    fault = (ad_fault){0};
}

static void tear_down(void) {
    ad__reader_free(reader);
    ad__arena_free(&arena);
    ad__bytes_free(&bytes);
}

TestSuite(message, .init = set_up, .fini = tear_down);

/* The one message of what has been encoded. */
static ad_message decode_message(void) {
    ad_message m = {0}, more;

    cr_assert_eq(ad__reader_begin(reader, bytes.data, bytes.size, &fault), 0, "%s", fault.text);
    cr_assert_eq(ad__reader_next(reader, &arena, ALL, &m, &fault), 1, "%s", fault.text);
    cr_expect_eq(m.size, bytes.size);
    cr_expect_eq(ad__reader_next(reader, &arena, ALL, &more, &fault), 0);
    memset(bytes.data, 0xc1, bytes.size); /* nothing may point into the block */
    bytes.size = 0;
    return m;
}

static bool is_text(ad_string s, const char *text) {
    return s.size == strlen(text) && memcmp(s.data, text, s.size) == 0;
}

static void expect_desc(const ad_desc *a, const ad_desc *b) {
    cr_expect(a->buffer == b->buffer && a->dtype == b->dtype && a->form == b->form && a->ndim == b->ndim);
    if (a->form == AD_SIZED) return;
    cr_expect_eq(a->form == AD_VIEW ? a->offset : 0, b->offset);
    for (int i = 0; i < a->ndim; i++) {
        cr_expect_eq(a->shape[i], b->shape[i]);
        if (a->form == AD_VIEW && a->shape[i] > 1) cr_expect_eq(a->strides[i], b->strides[i]);
    }
}

static bool scalars_equal(const ad_scalar *a, const ad_scalar *b) {
    if (a->kind != b->kind) return false;
    switch (a->kind) {
    case AD_SCALAR_NIL: return true;
    case AD_SCALAR_BOOL: return a->as.b == b->as.b;
    case AD_SCALAR_COMPLEX: return memcmp(a->as.c, b->as.c, sizeof a->as.c) == 0;
    default: return a->as.u == b->as.u; /* bit by bit, NaN too */
    }
}

static const ad_scalar scalars[] = {
    {.kind = AD_SCALAR_NIL},
    {.kind = AD_SCALAR_BOOL, .as.b = true},
    {.kind = AD_SCALAR_BOOL, .as.b = false},
    {.kind = AD_SCALAR_INT, .as.i = 0},
    {.kind = AD_SCALAR_INT, .as.i = INT64_MIN},
    {.kind = AD_SCALAR_INT, .as.i = INT64_MAX},
    {.kind = AD_SCALAR_INT, .as.i = -33},
    {.kind = AD_SCALAR_UINT, .as.u = UINT64_MAX},
    {.kind = AD_SCALAR_UINT, .as.u = (uint64_t)INT64_MAX + 1},
    {.kind = AD_SCALAR_FLOAT, .as.f = -0.0},
    {.kind = AD_SCALAR_FLOAT, .as.f = 1e308},
    {.kind = AD_SCALAR_FLOAT, .as.f = __builtin_nan("7")},
    {.kind = AD_SCALAR_FLOAT, .as.f = -__builtin_inf()},
    {.kind = AD_SCALAR_COMPLEX, .as.c = {1.5, __builtin_nan("")}},
};
enum { NSCALAR = sizeof scalars / sizeof *scalars };

static const int64_t shape3[] = {2, 1, 4}, packed3[] = {16, 0, 4}, strided3[] = {-32, 99, 8};

static ad_operand make_array(uint64_t buffer, int form, const int64_t *strides) {
    return (ad_operand){.desc = {buffer, form == AD_VIEW ? 64 : 0, form == AD_SIZED ? NULL : shape3, strides,
                                 AD_FLOAT32, form == AD_SIZED ? 0 : 3, (uint8_t)form}};
}

Test(message, hello) {
    cr_expect_eq(ad__encode_hello(&bytes, 1, UINT64_MAX, 5, "a client \xe2\x82\xac", "a token", 77), 0);
    ad_message m = decode_message();
    cr_expect(m.opcode == AD_REQ_HELLO && m.u[0] == 1 && m.u[1] == UINT64_MAX && m.u[2] == 5 && m.u[3] == 77);
    cr_expect(is_text(m.s[0], "a client \xe2\x82\xac"));
    cr_expect(is_text(m.s[1], "a token"));
    char line[200];
    ad__message_text(&m, line, sizeof line);
    cr_expect_null(strstr(line, "a token"), "a trace must not show it: %s", line);
    cr_expect_eq(ad__encode_hello(&bytes, 1, 1, 0, "a client", NULL, 0), 0);
    m = decode_message();
    cr_expect(m.s[1].size == 0 && m.u[3] == 0);
}

Test(message, resume) {
    const uint64_t numbers[] = {1, UINT64_MAX, 3, 1ull << 40};
    uint8_t secret[AD_SECRET];
    char line[200];
    memcpy(secret, "0123456789abcdef", AD_SECRET);
    cr_expect_eq(ad__encode_resume(&bytes, numbers, secret, "a token", 77), 0);
    ad_message m = decode_message();
    cr_expect(m.opcode == AD_REQ_RESUME && memcmp(m.u, numbers, sizeof numbers) == 0 && m.u[4] == 77);
    cr_expect(m.s[0].size == AD_SECRET && memcmp(m.s[0].data, secret, AD_SECRET) == 0);
    cr_expect(is_text(m.s[1], "a token"));
    ad__message_text(&m, line, sizeof line);
    cr_expect(!strstr(line, "a token") && !strstr(line, "0123"), "a trace must not show them: %s", line);
    cr_expect_eq(ad__encode_resume(&bytes, numbers, secret, NULL, 0), 0);
    m = decode_message();
    cr_expect(m.s[1].size == 0 && m.u[4] == 0);
    cr_expect_eq(ad__encode_resumed(&bytes, secret, 99), 0);
    m = decode_message();
    cr_expect(m.opcode == AD_REQ_RESUMED && m.u[0] == 99 && memcmp(m.s[0].data, secret, AD_SECRET) == 0);
    ad__message_text(&m, line, sizeof line);
    cr_expect_null(strstr(line, "0123"));
    cr_expect_eq(ad__encode_fork(&bytes, AD_FORK_KEY | 5, secret), 0);
    m = decode_message();
    cr_expect(m.opcode == AD_REQ_FORK && m.u[0] == 0 && m.u[1] == (AD_FORK_KEY | 5));
    cr_expect_eq(memcmp(m.s[0].data, secret, AD_SECRET), 0);
    ad__message_text(&m, line, sizeof line);
    cr_expect_null(strstr(line, "0123"));
}

Test(message, welcome) {
    const ad_welcome w = {1, 2,          3,          "0123456789abcde", 4,  5,  6,  7,        8,       "cpu",
                          9, UINT64_MAX, "a device", "a server",        10, 11, 12, "a name", "uid:1", "b,c"};

    cr_expect_eq(ad__encode_welcome(&bytes, &w), 0);
    ad_message m = decode_message();
    cr_assert_not_null(m.welcome);
    cr_expect_eq(memcmp(m.welcome, &w, sizeof w), 0);
}

Test(message, operations) {
    ad_operand operand[4] = {make_array(7, AD_FRESH, NULL),
                             make_array(UINT64_MAX, AD_VIEW, strided3),
                             make_array(1, AD_VIEW, packed3),
                             {.is_scalar = 1}};
    ad_scalar param[3] = {{.kind = AD_SCALAR_INT, .as.i = 3}, {0}, {.kind = AD_SCALAR_FLOAT, .as.f = 0.5}};
    const ad_op ops[] = {
        {AD_REQ_UFUNC, AD_FLOAT32, 1, 3, 0, AD_UFUNC_add, operand, NULL},
        {AD_REQ_REDUCE, AD_FLOAT64, 1, 2, 3, AD_REDUCTION_var, operand, param},
        {AD_REQ_CALL, AD_FLOAT16, 1, 2, 1, AD_CALL_scatter, operand, param},
        {AD_REQ_CALL, AD_INT64, 1, 0, 2, AD_CALL_iota, operand, param},
        {AD_REQ_UFUNC, AD_BOOL, 0, 0, 0, AD_UFUNC_add, operand, NULL},
    };

    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
        operand[3].scalar = scalars[1 + k];
        cr_expect_eq(ad__encode_op(&bytes, &ops[k]), 0);
        ad_message m = decode_message();
        cr_expect(m.opcode == ops[k].opcode && m.op.opcode == ops[k].opcode && m.op.row == ops[k].row &&
                  m.op.loop == ops[k].loop);
        cr_assert(m.op.nout == ops[k].nout && m.op.nin == ops[k].nin && m.op.nparam == ops[k].nparam);
        for (int i = 0; i < m.op.nout + m.op.nin; i++) {
            cr_assert_eq(m.op.operand[i].is_scalar, operand[i].is_scalar);
            if (operand[i].is_scalar) cr_expect(scalars_equal(&operand[i].scalar, &m.op.operand[i].scalar));
            else expect_desc(&operand[i].desc, &m.op.operand[i].desc);
        }
        for (int i = 0; i < m.op.nparam; i++) cr_expect(scalars_equal(&param[i], &m.op.param[i]));
    }
}

Test(message, query) {
    ad_operand operand[2] = {make_array(7, AD_SIZED, NULL), make_array(1, AD_VIEW, strided3)};
    const ad_op op = {AD_REQ_QUERY, AD_FLOAT32, 1, 1, 0, AD_CALL_nonzero, operand, NULL};

    cr_expect_eq(ad__encode_query(&bytes, 99, &op), 0);
    ad_message m = decode_message();
    cr_expect(m.opcode == AD_REQ_QUERY && m.u[0] == 99 && m.op.opcode == AD_REQ_QUERY && m.op.row == AD_CALL_nonzero);
    expect_desc(&operand[0].desc, &m.op.operand[0].desc);
    expect_desc(&operand[1].desc, &m.op.operand[1].desc);
}

Test(message, new_and_read) {
    const ad_operand fresh = make_array(7, AD_FRESH, NULL), whole = make_array(7, AD_VIEW, packed3),
                     part = make_array(7, AD_VIEW, strided3);

    cr_expect_eq(ad__encode_new(&bytes, &fresh.desc, true), 0);
    ad_message m = decode_message();
    cr_expect_eq(m.opcode, AD_REQ_NEW);
    expect_desc(&fresh.desc, &m.operand.desc);
    cr_expect(ad__is_contiguous(&m.operand.desc), "a fresh description has its strides");
    cr_expect_eq(ad__encode_read(&bytes, 12, &whole.desc), 0);
    size_t packed = bytes.size;
    m = decode_message();
    cr_expect(m.opcode == AD_REQ_READ && m.u[0] == 12);
    expect_desc(&whole.desc, &m.operand.desc);
    cr_expect_eq(ad__encode_read(&bytes, 12, &part.desc), 0);
    cr_expect_gt(bytes.size, packed);
    m = decode_message();
    expect_desc(&part.desc, &m.operand.desc);
    cr_expect_eq(m.operand.desc.strides[1], 0, "a stride that is never walked is sent as 0");
}

Test(message, free_and_write) {
    uint64_t ids[1000];

    for (size_t n = 0; n <= 1000; n += 250) {
        for (size_t i = 0; i < n; i++) ids[i] = UINT64_MAX >> (i % 64);
        cr_expect_eq(ad__encode_free(&bytes, n, ids), 0);
        ad_message m = decode_message();
        cr_assert(m.opcode == AD_REQ_FREE && m.nids == n);
        cr_expect(n == 0 || memcmp(m.ids, ids, n * sizeof *ids) == 0);
    }
    cr_expect_eq(ad__encode_write(&bytes, 5, UINT64_MAX), 0);
    ad_message m = decode_message();
    cr_expect(m.opcode == AD_REQ_WRITE && m.u[0] == 5 && m.u[1] == UINT64_MAX);
}

Test(message, short_ones) {
    cr_expect_eq(ad__encode_sync(&bytes, 1), 0);
    ad_message m = decode_message();
    cr_expect(m.opcode == AD_REQ_SYNC && m.u[0] == 1);
    cr_expect_eq(ad__encode_stat(&bytes, 2), 0);
    m = decode_message();
    cr_expect(m.opcode == AD_REQ_STAT && m.u[0] == 2);
    cr_expect_eq(ad__encode_ack(&bytes, 3), 0);
    m = decode_message();
    cr_expect(m.opcode == AD_REQ_ACK && m.u[0] == 3);
    cr_expect_eq(ad__encode_bye(&bytes, AD_E_PROTOCOL, "because"), 0);
    m = decode_message();
    cr_expect(m.opcode == AD_REQ_BYE && m.u[0] == 9 && is_text(m.s[0], "because"));
    cr_expect_eq(ad__encode_fail(&bytes, 4, 5, AD_E_INDEX, 6, "gather", ""), 0);
    m = decode_message();
    cr_expect(m.opcode == AD_REQ_FAIL && m.u[0] == 4 && m.u[1] == 5 && m.u[2] == 4 && m.u[3] == 6);
    cr_expect(is_text(m.s[0], "gather") && is_text(m.s[1], ""));
}

Test(message, numbers) {
    const uint64_t u[8] = {UINT64_MAX, 1, 0, 1u << 31, 255, 256, 7, 8};
    static const int opcodes[] = {AD_REQ_STREAM,     AD_REQ_STREAM_DROP, AD_REQ_ON,     AD_REQ_EVENT,
                                  AD_REQ_EVENT_DROP, AD_REQ_AFTER,       AD_REQ_WINDOW, AD_REQ_WINDOW_DROP,
                                  AD_REQ_LOAD,       AD_REQ_WAIT,        AD_REQ_DONE,   AD_REQ_ELAPSED,
                                  AD_REQ_POOL,       AD_REQ_DEVICE};

    for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes; i++) {
        size_t n = strlen(ad__request((uint64_t)opcodes[i])->fields);
        cr_expect_eq(ad__encode_numbers(&bytes, opcodes[i], n, u), 0);
        ad_message m = decode_message();
        cr_expect_eq(m.opcode, opcodes[i]);
        cr_expect_eq(memcmp(m.u, u, n * sizeof *u), 0);
        cr_expect(n == 8 || m.u[n] == 0);
    }
}

Test(message, fetch) {
    const ad_operand part = make_array(7, AD_VIEW, strided3);

    cr_expect_eq(ad__encode_fetch(&bytes, 12, &part.desc, 3, UINT64_MAX), 0);
    ad_message m = decode_message();
    cr_expect(m.opcode == AD_REQ_FETCH && m.u[0] == 12 && m.u[1] == 3 && m.u[2] == UINT64_MAX);
    expect_desc(&part.desc, &m.operand.desc);
}

Test(message, reply) {
    cr_expect_eq(ad__encode_reply(&bytes, 8, 9, NSCALAR, scalars), 0);
    ad_message m = decode_message();
    cr_assert(m.opcode == AD_REQ_REPLY && m.u[0] == 8 && m.u[1] == 9 && m.nvalues == NSCALAR);
    for (int i = 0; i < NSCALAR; i++) cr_expect(scalars_equal(&scalars[i], &m.values[i]), "value %d", i);
}

Test(message, a_run_of_them) {
    ad_message m;
    uint64_t i;

    for (i = 1; i <= 1000; i++) ad__encode_sync(&bytes, i * 1000);
    for (int round = 0; round < 2; round++) { /* a reader is used for many blocks */
        size_t size = 0;
        cr_assert_eq(ad__reader_begin(reader, bytes.data, bytes.size, &fault), 0);
        for (i = 1; ad__reader_next(reader, &arena, ALL, &m, &fault) == 1; i++) {
            cr_expect_eq(m.u[0], i * 1000);
            size += m.size;
        }
        cr_expect(i == 1001 && size == bytes.size);
        ad__arena_reset(&arena);
    }
}

Test(message, failed_bytes_stay_failed) {
    ad__encode_sync(&bytes, 1);
    cr_expect_eq(ad__bytes_reserve(&bytes, SIZE_MAX), AD_E_MEMORY);
    cr_expect_eq(ad__encode_sync(&bytes, 2), AD_E_MEMORY);
    cr_expect_eq(ad__encode_ack(&bytes, 2), AD_E_MEMORY);
}

static int read_block(const char *data, size_t size, uint32_t allowed) {
    ad_message m;
    int status;

    ad__arena_reset(&arena);
    status = ad__reader_begin(reader, (const uint8_t *)data, size, &fault);
    while (status == 0 && (status = ad__reader_next(reader, &arena, allowed, &m, &fault)) == 1) status = 0;
    if (status != 0) {
        cr_expect_eq(fault.code, status);
        cr_expect_eq(ad__reader_next(reader, &arena, allowed, &m, &fault), 0, "nothing comes after a bad message");
    }
    return status;
}
#define BLOCK(text) read_block(text, sizeof(text) - 1, ALL)

Test(message, hostile_blocks) {
    const int bad = AD_E_PROTOCOL;

    cr_expect_eq(BLOCK(""), 0);
    cr_expect_eq(BLOCK("\x92\x42\x01"), 0); /* ack */
    cr_expect_eq(BLOCK("\x90"), bad);       /* no id */
    cr_expect_eq(BLOCK("\x91\xc0"), bad);   /* an id that is no number */
    cr_expect_eq(BLOCK("\x91\xff"), bad);   /* a negative one */
    cr_expect_eq(BLOCK("\x92\x00\x01"), bad);
    cr_expect_eq(BLOCK("\x92\xcf\x01\x00\x00\x00\x00\x00\x00\x42\x01"), bad); /* an id that ends like ack's */
    cr_expect_eq(BLOCK("\x91\x42"), bad);
    cr_expect_eq(BLOCK("\x93\x42\x01\x01"), bad);
    cr_expect_eq(BLOCK("\x92\x42\xff"), bad);
    cr_expect_eq(BLOCK("\x92\x42\xca\x00\x00\x00\x00"), bad);                                 /* 0.0 */
    cr_expect_eq(BLOCK("\x92\x31\x00"), bad);                                                 /* request 0 */
    cr_expect_eq(BLOCK("\x92\x11\x81\x01\x02"), bad);                                         /* free of a map */
    cr_expect_eq(BLOCK("\x92\x11\x92\x01\xc0"), bad);                                         /* of nil */
    cr_expect_eq(BLOCK("\x92\x10\x93\x01\x0b\x90"), 0);                                       /* new, 0-d */
    cr_expect_eq(BLOCK("\x92\x10\x93\x00\x0b\x90"), bad);                                     /* buffer 0 */
    cr_expect_eq(BLOCK("\x92\x10\x93\x01\x0f\x90"), bad);                                     /* dtype 15 */
    cr_expect_eq(BLOCK("\x92\x10\x93\x01\x0b\xc0"), bad);                                     /* sized */
    cr_expect_eq(BLOCK("\x92\x10\x94\x01\x0b\x00\x90"), bad);                                 /* a view */
    cr_expect_eq(BLOCK("\x92\x10\x93\x01\x0b\x91\xff"), bad);                                 /* -1 elements */
    cr_expect_eq(BLOCK("\x92\x10\x93\x01\x0b\x80"), bad);                                     /* a map as shape */
    cr_expect_eq(BLOCK("\x92\x10\xc4\x03\x01\x0b\x90"), bad);                                 /* bytes as description */
    cr_expect_eq(BLOCK("\x92\x10\x93\x01\x0b\x91\xcf\x80\x00\x00\x00\x00\x00\x00\x00"), bad); /* 2^63 */
    cr_expect_eq(BLOCK("\x93\x30\x01\x94\x01\x0b\xff\x90"), bad);                             /* offset -1 */
    cr_expect_eq(BLOCK("\x93\x30\x01\x95\x01\x0b\x00\x91\x02\x90"), bad);                     /* fewer strides */
    cr_expect_eq(BLOCK("\x93\x30\x01\x95\x01\x0b\x00\x91\x02\xc0"), bad);                     /* none */
    cr_expect_eq(BLOCK("\x93\x30\x01\x01"), bad);                                             /* read of a scalar */
    cr_expect_eq(BLOCK("\x95\x34\x01\x01\x01\x00"), bad);                                     /* fetch of one */
    cr_expect_eq(BLOCK("\x95\x34\x00\x94\x01\x0b\x00\x90\x01\x00"), bad);                     /* request 0 */
    cr_expect_eq(BLOCK("\x95\x34\x01\x93\x01\x0b\x90\x01\x00"), bad);                         /* a fresh one */
    cr_expect_eq(BLOCK("\x96\x1e\x01\x02\x03\x04\xff"), bad);                                 /* load of -1 bytes */
    cr_expect_eq(BLOCK("\x93\x43\x09\xa2\xc3\x28"), bad);                                     /* not UTF-8 */
    cr_expect_eq(BLOCK("\x93\x43\x09\xc4\x01x"), bad);                                        /* bytes as text */
    cr_expect_eq(BLOCK("\x96\x01\x01\x01\x00\xa1x\x81\xa1y\x93\x01\x02\x03"), 0);             /* an unknown option */
    cr_expect_eq(BLOCK("\x96\x01\x01\x01\x00\xa1x\x81\x05\x01"), bad);                        /* of a number as name */
    cr_expect_eq(BLOCK("\x96\x01\x01\x01\x00\xa1x\x90"), bad);
    cr_expect_eq(BLOCK("\x94\x40\x01\x01\x91\xd4\x01x"), bad);                        /* an ext of another size */
    cr_expect_eq(BLOCK("\x94\x40\x01\x01\x91\xd8\x02xxxxxxxxxxxxxxxx"), bad);         /* or type */
    cr_expect_eq(BLOCK("\x96\x13\x01\x0b\x91\x93\x07\x0b\x90\x92\x01\x02\x90"), 0);   /* add of scalars */
    cr_expect_eq(BLOCK("\x96\x13\x00\x0b\x91\x93\x07\x0b\x90\x92\x01\x02\x90"), bad); /* no row 0 */
    cr_expect_eq(BLOCK("\x96\x13\x01\x0f\x91\x93\x07\x0b\x90\x92\x01\x02\x90"), bad); /* no dtype 15 */
    cr_expect_eq(BLOCK("\x96\x13\xcd\x01\x01\x0b\x91\x93\x07\x0b\x90\x92\x01\x02\x90"), bad); /* row 257 */
    cr_expect_eq(BLOCK("\x96\x13\x01\x0b\x91\x01\x92\x01\x02\x90"), bad);                     /* a scalar as output */
    cr_expect_eq(BLOCK("\x96\x13\x01\x0b\x91\x93\x07\x0b\xc0\x92\x01\x02\x90"), bad);         /* sized */
    cr_expect_eq(BLOCK("\x96\x13\x01\x0b\x91\x93\x07\x0b\x90\x92\x01\xc0\x90"), bad);         /* nil as input */
    cr_expect_eq(BLOCK("\x96\x13\x01\x0b\x91\x93\x07\x0b\x90\x94\x01\x01\x01\x01\x90"), bad);
    cr_expect_eq(BLOCK("\x96\x13\x01\x0b\x91\x93\x07\x0b\x90\xc0\x90"), bad); /* inputs that are no list */
    cr_expect_eq(BLOCK("\x96\x13\x01\x0b\x91\x93\x07\x0b\x90\x92\x01\x02\x91\x01"), bad);
    cr_expect_eq(BLOCK("\x96\x15\x0d\x0b\x91\x93\x07\x0b\x90\x91\x94\x01\x0b\x00\x90\x90"), bad); /* call of a query */
    cr_expect_eq(BLOCK("\x97\x33\x01\x08\x0b\x91\x93\x07\x0b\xc0\x91\x94\x01\x0b\x00\x90\x91\x00"), bad);
}

Test(message, classes) {
    const struct {
        const char *block;
        size_t size;
        int cls;
    } cases[] = {
        {"\x96\x01\x01\x01\x00\xa1x\x80", 8, AD_CLASS_HELLO},
        {"\x92\x10\x93\x01\x0b\x90", 6, AD_CLASS_OP},
        {"\x92\x31\x01", 3, AD_CLASS_ASK},
        {"\x92\x42\x01", 3, AD_CLASS_TELL},
    };

    for (size_t i = 0; i < 4; i++)
        for (uint32_t allowed = 0; allowed < 16; allowed++) {
            int status = read_block(cases[i].block, cases[i].size, allowed);
            cr_expect_eq(status, allowed & AD_BIT(cases[i].cls) ? 0 : AD_E_PROTOCOL);
        }
}

Test(message, text_is_cut) {
    ad_operand operand[3] = {make_array(7, AD_FRESH, NULL), make_array(1, AD_VIEW, strided3), {.is_scalar = 1}};
    const ad_op op = {AD_REQ_UFUNC, AD_FLOAT32, 1, 2, 0, AD_UFUNC_add, operand, NULL};
    const char *whole = "ufunc add float32 -> #7 f4[2,1,4] <- #1 f4[2,1,4]@64{-32,0,8}, 2.5";
    char text[200];

    operand[2].scalar = (ad_scalar){.kind = AD_SCALAR_FLOAT, .as.f = 2.5};
    ad__encode_op(&bytes, &op);
    ad_message m = decode_message();
    ad__message_text(&m, text, sizeof text);
    cr_expect_str_eq(text, whole);
    for (size_t size = 1; size < strlen(whole); size++) {
        memset(text, 'x', sizeof text);
        ad__message_text(&m, text, size);
        cr_expect(strlen(text) < size && text[size] == 'x');
        cr_expect(strncmp(text, whole, strcspn(text, ".")) == 0, "%zu: %s", size, text); /* "..." may stand there */
    }
}

Test(message, replies_to_secret_requests_are_hidden) {
    const ad_scalar half = {.kind = AD_SCALAR_INT, .as.i = 123456789};
    ad_secret_requests secret = {0};
    char text[200];
    for (uint64_t request = 3; request <= 5; request++) {
        ad__encode_numbers(&bytes, request == 4 ? AD_REQ_WAIT : AD_REQ_SHARE, request == 4 ? 3 : 5,
                           (uint64_t[]){request, 7, 1, 0, 0});
        ad_message m = decode_message();
        ad__message_hide(&m, &secret);
    }
    cr_expect(secret.first == 3 && secret.last == 5);
    for (uint64_t request = 2; request <= 6; request++) {
        ad__encode_reply(&bytes, request, 9, 1, &half);
        ad_message m = decode_message();
        ad__message_hide(&m, &secret);
        ad__message_text(&m, text, sizeof text);
        const bool is_hidden = request >= 3 && request <= 5;
        cr_expect_eq(strstr(text, "123456789") == NULL, is_hidden, "%s", text);
    }
    cr_expect(secret.first == 0 && secret.last == 0, "all are answered");
}
