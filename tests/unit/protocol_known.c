/* Operations that come again: a reader that remembers them reads what a reader without memory does. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/known.h"
#include "protocol/rows_call.h"
#include "protocol/rows_reduction.h"
#include "protocol/rows_request.h"
#include "protocol/rows_ufunc.h"

#define CALLS(X)                                   \
    X(malloc, void *, (size_t size), (size), NULL) \
    X(calloc, void *, (size_t n, size_t size), (n, size), NULL)
#include "tests/unit/failing_calls.h"

static bool must_fail(call c) { return is_due(c); }

#define ALL 0xfu

static ad_arena arena, plain_arena;
static ad_reader *reader, *plain;
static ad_bytes bytes;
static ad_fault fault;

static void set_up(void) {
    cr_assert(!ad__reader_new(&reader) && !ad__reader_new(&plain) && !ad__reader_remember(reader));
    cr_assert_eq(ad__reader_remember(reader), 0, "asking twice changes nothing");
    fault = (ad_fault){0};
}

static void tear_down(void) {
    ad__reader_free(reader);
    ad__reader_free(plain);
    ad__arena_free(&arena);
    ad__arena_free(&plain_arena);
    ad__bytes_free(&bytes);
    bytes = (ad_bytes)AD_BYTES_INIT;
}

TestSuite(known, .init = set_up, .fini = tear_down);

static const int64_t SIDES[] = {3, 5, 7}, STEPS[] = {280, 56, 8};

static ad_operand make_view(uint64_t buffer, int64_t offset, int ndim) {
    return (ad_operand){.desc = {buffer, offset, SIDES, STEPS, AD_FLOAT64, (uint8_t)ndim, AD_VIEW}};
}

static ad_operand make_fresh(uint64_t buffer, int ndim) {
    return (ad_operand){.desc = {buffer, 0, SIDES, STEPS, AD_FLOAT64, (uint8_t)ndim, AD_FRESH}};
}

static ad_operand make_scalar(ad_scalar value) { return (ad_operand){.is_scalar = 1, .scalar = value}; }

/* Append `out = row(a[offset], scalar)`. */
static void add_ufunc(int row, uint64_t out, uint64_t a, int64_t offset, ad_scalar scalar) {
    ad_operand operands[] = {make_fresh(out, 2), make_view(a, offset, 2), make_scalar(scalar)};
    ad_op op = {
        .opcode = AD_REQ_UFUNC, .loop = AD_FLOAT64, .nout = 1, .nin = 2, .row = (uint16_t)row, .operand = operands};
    cr_assert_eq(ad__encode_op(&bytes, &op), 0);
}

static ad_scalar as_int(int64_t i) { return (ad_scalar){.kind = AD_SCALAR_INT, .as.i = i}; }
static ad_scalar as_float(double f) { return (ad_scalar){.kind = AD_SCALAR_FLOAT, .as.f = f}; }

static bool is_same_scalar(const ad_scalar *a, const ad_scalar *b) {
    return a->kind == b->kind && !memcmp(&a->as, &b->as, sizeof a->as);
}

static bool is_same_operand(const ad_operand *a, const ad_operand *b) {
    const ad_desc *x = &a->desc, *y = &b->desc;
    const size_t n = x->ndim * sizeof *x->shape;
    return a->is_scalar == b->is_scalar && x->buffer == y->buffer && x->offset == y->offset && x->dtype == y->dtype &&
           x->ndim == y->ndim && x->form == y->form && (!n || !memcmp(x->shape, y->shape, n)) &&
           (!n || !memcmp(x->strides, y->strides, n)) && is_same_scalar(&a->scalar, &b->scalar);
}

static bool is_same_message(const ad_message *a, const ad_message *b) {
    bool same = a->opcode == b->opcode && a->row == b->row && a->size == b->size && a->u[0] == b->u[0] &&
                a->u[1] == b->u[1] && a->op.opcode == b->op.opcode && a->op.loop == b->op.loop &&
                a->op.row == b->op.row && a->op.nout == b->op.nout && a->op.nin == b->op.nin &&
                a->op.nparam == b->op.nparam && a->nids == b->nids;
    for (int i = 0; same && i < a->op.nout + a->op.nin; i++)
        same = is_same_operand(&a->op.operand[i], &b->op.operand[i]);
    for (int i = 0; same && i < a->op.nparam; i++) same = is_same_scalar(&a->op.param[i], &b->op.param[i]);
    return same;
}

/* Read the block with both readers. Returns how many messages it had; *again: how many had come before, as their facts
 * say, which are written down here. */
static int read_both(int *again) {
    int n = 0, status;
    ad_message a, b;

    cr_assert_eq(ad__reader_begin(reader, bytes.data, bytes.size, &fault),
                 ad__reader_begin(plain, bytes.data, bytes.size, NULL));
    while ((status = ad__reader_next(plain, &plain_arena, ALL, &a, NULL)) > 0) {
        cr_assert_eq(ad__reader_next(reader, &arena, ALL, &b, &fault), 1);
        cr_expect(is_same_message(&a, &b), "message %d", n);
        cr_expect_null(a.facts);
        if (b.facts) {
            *again += b.facts->checked;
            b.facts->checked = true;
        }
        n++;
    }
    cr_expect_eq(ad__reader_next(reader, &arena, ALL, &b, &fault), status);
    ad__arena_reset(&arena);
    ad__arena_reset(&plain_arena);
    bytes.size = 0;
    return n;
}

Test(known, numbers_differ_and_are_read) {
    int again = 0;

    for (int turn = 0; turn < 300; turn++) {
        add_ufunc(AD_UFUNC_multiply, 1000000 + (uint64_t)turn, 70000 - (uint64_t)turn, 1 << 20 | turn,
                  as_float(0.5 * turn));
        add_ufunc(AD_UFUNC_add, 2000000 + (uint64_t)turn, 3, turn, as_int(turn - 20));
        add_ufunc(AD_UFUNC_add, 4000000 + (uint64_t)turn, 300, 128,
                  (ad_scalar){.kind = AD_SCALAR_BOOL, .as.b = turn & 1});
        cr_assert_eq(read_both(&again), 3);
    }
    cr_expect_gt(again, 3 * 300 - 120, "%d", again); /* each width of a number is another message */
}

Test(known, frees_and_other_messages_between_them) {
    const uint64_t ids[] = {70001, 70002};
    int again = 0;

    for (uint64_t turn = 0; turn < 100; turn++) {
        for (uint64_t i = 0; i < 80; i++) {
            add_ufunc(i % 3 ? AD_UFUNC_multiply : AD_UFUNC_add, 80000 + 100 * turn + i, 70000 + i, 0, as_float(1.5));
            if ((i + turn) % 7 == 0) cr_assert_eq(ad__encode_free(&bytes, 1 + turn % 2, ids), 0);
        }
        cr_assert_geq(read_both(&again), 80);
    }
    cr_expect_gt(again, 99 * 80, "%d", again);
}

static void add_reduction(uint64_t out, uint64_t a, int64_t axes, ad_scalar initial) {
    ad_operand operands[] = {make_fresh(out, 1), make_view(a, 0, 2)};
    ad_scalar params[] = {as_int(axes), {.kind = AD_SCALAR_NIL}, initial};
    ad_op op = {.opcode = AD_REQ_REDUCE,
                .loop = AD_FLOAT64,
                .nout = 1,
                .nin = 1,
                .nparam = 3,
                .row = AD_REDUCTION_sum,
                .operand = operands,
                .param = params};
    cr_assert_eq(ad__encode_op(&bytes, &op), 0);
}

Test(known, parameters_are_part_of_a_message) {
    int again = 0;

    for (int turn = 0; turn < 20; turn++)
        for (int axes = 1; axes < 4; axes++) {
            add_reduction(70000, 80000, axes, as_float(turn % 4));
            cr_assert_eq(read_both(&again), 1);
        }
    cr_expect_eq(again, 48); /* four values of three axes came for the first time */
}

/* Put a message, whose second one is damaged by `damage`, before the readers. */
static void expect_refused(void (*damage)(uint8_t *second, size_t size), int good) {
    int again = 0;

    for (int turn = 0; turn < 3; turn++) {
        for (uint64_t i = 0; i < 3; i++)
            add_ufunc(AD_UFUNC_add, 70000 + i, UINT64_C(1) << 40, INT64_C(1) << 40, as_int(INT64_C(1) << 40));
        cr_assert_eq(read_both(&again), 3);
    }
    for (uint64_t i = 0; i < 3; i++)
        add_ufunc(AD_UFUNC_add, 70000 + i, UINT64_C(1) << 40, INT64_C(1) << 40, as_int(INT64_C(1) << 40));
    damage(bytes.data + bytes.size / 3, bytes.size / 3);
    cr_expect_eq(read_both(&again), good);
    cr_expect_eq(fault.code, good < 3 ? AD_E_PROTOCOL : 0);
}

/* Set the n-th number of eight bytes. */
static void set_number(uint8_t *at, size_t size, int n, uint8_t first) {
    size_t i = 0;
    for (;; i++) {
        cr_assert_lt(i, size);
        if (at[i] == 0xcf && n-- == 0) break;
    }
    at[i + 1] = first;
}

static void damage_offset(uint8_t *at, size_t size) { set_number(at, size, 1, 0x80); }
static void enlarge_scalar(uint8_t *at, size_t size) { set_number(at, size, 2, 0x80); }
static void damage_buffer(uint8_t *at, size_t size) {
    (void)size;
    for (int i = 0; i < 16; i++)
        if (at[i] == 0xce) memset(at + i + 1, 0, 4);
}
static void damage_row(uint8_t *at, size_t size) { at[size > 2 ? 2 : 0] = 0x7f; }
static void damage_last(uint8_t *at, size_t size) { at[size - 1] = 0xc1; }

Test(known, an_offset_is_checked_each_time) { expect_refused(damage_offset, 1); }
Test(known, a_new_buffer_has_a_number) { expect_refused(damage_buffer, 1); }
Test(known, a_scalar_above_int64_is_unsigned) { expect_refused(enlarge_scalar, 3); }
Test(known, another_row_is_not_known) { expect_refused(damage_row, 1); }
Test(known, a_damaged_block_is_refused_as_a_whole) { expect_refused(damage_last, 0); }

Test(known, memory_is_bounded_and_the_oldest_make_way) {
    ad_known *k;
    int again = 0, last = 0;

    cr_assert_eq(ad__known_new(&k), 0);
    ad__known_free(k);
    ad__known_free(NULL);
    for (int turn = 0; turn < 8; turn++) {
        last = again;
        for (int i = 0; i < 600; i++) add_reduction(70000, 80000, 1, as_float(i));
        cr_assert_eq(read_both(&again), 600);
    }
    cr_expect_lt(again - last, 256, "no more than 255 are known");
    for (int turn = 0; turn < 60; turn++) {
        last = again;
        for (int i = 0; i < 20; i++) add_reduction(70000, 80000, 1, as_float(-1 - i));
        cr_assert_eq(read_both(&again), 20);
    }
    cr_expect_eq(again - last, 20, "new ones are learned although others fill the memory");
}

Test(known, large_messages_are_read_as_ever) {
    ad_operand operands[8];
    ad_op op = {.opcode = AD_REQ_CALL, .loop = AD_FLOAT64, .nout = 1, .row = AD_CALL_gather, .operand = operands};
    int again = 0;

    operands[0] = make_fresh(70000, 3);
    for (int turn = 0; turn < 6; turn++) {
        op.nin = turn % 2 ? 7 : 5; /* many operands; and fewer of more bytes than a known message has */
        for (int i = 1; i < 8; i++)
            operands[i] = turn % 2 ? make_view(5, 0, 1) : make_view(UINT64_C(1) << 40, INT64_C(1) << 40, 3);
        cr_assert_eq(ad__encode_op(&bytes, &op), 0);
        cr_assert_eq(read_both(&again), 1);
    }
    cr_expect_eq(again, 0);
}

/* ---- messages that are not learned ---- */

Test(known, operands_are_lists_of_descriptions) {
    enum { OP = 0x96, UFUNC = AD_REQ_UFUNC, ADD = AD_UFUNC_add, F8 = AD_FLOAT64 };
    static const struct {
        uint8_t size, bytes[20];
    } odd[] = {
        {7, {OP, UFUNC, ADD, F8, 5, 5, 5}}, /* the shortest: nothing is a list */
        {9, {OP, UFUNC, ADD, F8, 5, 0x91, 5, 0x90}},
        {15, {OP, UFUNC, ADD, F8, 0x97, 5, 5, 5, 5, 5, 5, 5, 0x91, 5, 0x90}},     /* outputs: more than can be known */
        {9, {OP, UFUNC, ADD, F8, 0x91, 5, 0x91, 5, 0x90}},                        /* no description */
        {11, {OP, UFUNC, ADD, F8, 0x91, 0x92, 5, F8, 0x91, 5, 0x90}},             /* one that is too short */
        {15, {OP, UFUNC, ADD, F8, 0x91, 0x96, 5, F8, 5, 5, 5, 5, 0x91, 5, 0x90}}, /* or too long */
        {13, {OP, UFUNC, ADD, F8, 0x91, 0x93, 5, F8, 0x91, 8, 5, 0x90}},          /* inputs that are no list */
        {18, {OP, UFUNC, ADD, F8, 0x91, 0x93, 5, F8, 0x91, 8, 0x91, 0x93, 5, F8, 0x91, 8, 0x90}}, /* as an output */
    };
    int again = 0;

    for (int turn = 0; turn < 2; turn++)
        for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
            ad__bytes_append(&bytes, odd[i].bytes, odd[i].size);
            for (int nils = 0; nils < 8; nils++) ad__bytes_append(&bytes, "\xc0", 1); /* compared by words of eight */
            cr_expect_eq(read_both(&again), 0, "%zu", i);
            cr_expect_eq(fault.code, AD_E_PROTOCOL, "%zu", i);
            fault = (ad_fault){0};
        }
    cr_expect_eq(again, 0);
}

/* ---- messages whose hashes are the same ---- */

static uint64_t mix_bits(uint64_t h) { return (h ^ h >> 29) * UINT64_C(0x9e3779b97f4a7c15); }

static void add_iota(uint64_t out, int64_t length, double start, double step) {
    ad_operand operand = {.desc = {out, 0, &length, STEPS + 2, AD_FLOAT64, 1, AD_FRESH}};
    ad_scalar params[] = {as_float(start), as_float(step)};
    ad_op op = {.opcode = AD_REQ_CALL,
                .loop = AD_FLOAT64,
                .nout = 1,
                .nparam = 2,
                .row = AD_CALL_iota,
                .operand = &operand,
                .param = params};
    cr_assert_eq(ad__encode_op(&bytes, &op), 0);
}

/* Hash all words but the last one, as known.c does. The number of the output is a hole. */
static uint64_t hash_words(const uint8_t *at, size_t size) {
    uint64_t h = size;

    for (size_t i = 0; i + 8 < size; i += 8) {
        uint64_t word, mask = UINT64_MAX;
        memcpy(&word, at + i, 8);
        if (!i && at[6] < 0x80) ((uint8_t *)&mask)[6] = 0x80;
        else if (!i) ((uint8_t *)&mask)[7] = 0;
        else if (i == 8 && at[6] == 0xcd) ((uint8_t *)&mask)[0] = 0;
        h = mix_bits(mix_bits(h ^ mask) ^ (word & mask));
    }
    return h;
}

/* Make an iota whose hash is that of iota(5, 1000, 0, 0.5): the step, its last word, is chosen for that. */
static void add_with_same_hash(uint64_t out, int64_t length, double start) {
    const size_t from = bytes.size;
    uint64_t step, wanted;
    size_t size;

    add_iota(5, 1000, 0, 0.5);
    size = bytes.size - from;
    cr_assert_eq(size, 32, "words do not overlap");
    memcpy(&step, bytes.data + bytes.size - 8, 8);
    wanted = mix_bits(hash_words(bytes.data + from, size) ^ UINT64_MAX) ^ step;
    bytes.size = from;
    add_iota(out, length, start, 0);
    size = bytes.size - from;
    cr_assert_eq(size % 8, 0);
    step = wanted ^ mix_bits(hash_words(bytes.data + from, size) ^ UINT64_MAX);
    memcpy(bytes.data + bytes.size - 8, &step, 8);
}

Test(known, those_of_one_hash_are_told_apart) {
    int again = 0;

    for (int turn = 0; turn < 3; turn++) {
        add_iota(5, 1000, 0, 0.5);
        add_with_same_hash(5, 1000, 1.5);              /* another start */
        add_with_same_hash(1000, 5, 0);                /* as many bytes, and the hole is elsewhere */
        add_with_same_hash(1000, INT64_C(1) << 40, 0); /* eight more bytes */
        cr_expect_eq(read_both(&again), 4);
    }
    cr_expect_eq(again, 8);
}

/* ---- no memory ---- */

Test(known, a_reader_without_memory_remembers_nothing) {
    ad_reader *other;

    cr_assert_eq(ad__reader_new(&other), 0);
    arm_failure(CALL_calloc, ENOMEM, 1);
    cr_expect_eq(ad__reader_remember(other), AD_E_MEMORY);
    disarm_failure();
    ad__reader_free(other);
}

/* Read a message of which the n-th allocation fails. Returns what the reader says. */
static int read_with_failure(int n, ad_message *m) {
    int status;

    add_ufunc(AD_UFUNC_add, 70000, 80000, 0, as_float(n));
    arm_failure(CALL_malloc, ENOMEM, n);
    cr_assert_eq(ad__reader_begin(reader, bytes.data, bytes.size, &fault), 0);
    status = ad__reader_next(reader, &arena, ALL, m, &fault);
    disarm_failure();
    bytes.size = 0;
    ad__arena_free(&arena);
    return status;
}

Test(known, what_cannot_be_learned_is_read_as_ever) {
    ad_message m;
    int again = 0;

    cr_expect_eq(read_with_failure(1, &m), 1, "no memory for reading it once more");
    cr_expect_null(m.facts);
    cr_expect_eq(read_with_failure(2, &m), 1, "none for keeping it");
    cr_expect_null(m.facts);
    cr_expect_eq(read_with_failure(3, &m), 1, "a copy has no memory, and the message has it");
    cr_expect_null(m.facts);
    cr_expect_eq(read_with_failure(4, &m), 1);
    cr_expect_not_null(m.facts);
    add_ufunc(AD_UFUNC_add, 70001, 80001, 0, as_float(1));
    cr_expect_eq(read_both(&again), 1);
}
