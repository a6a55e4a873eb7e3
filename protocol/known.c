/* Known messages: see known.h. */
#include "protocol/known.h"
#include "protocol/arena.h"
#include "protocol/check.h"
#include "protocol/cursor.h"
#include "protocol/rows_request.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    MESSAGES = 255,               /* known at a time, so that a byte says which; 0 is none */
    BYTES = 128,                  /* of a known message at most */
    WORD = 8,                     /* bytes that are compared at a time */
    OPERANDS = AD_FACTS_OPERANDS, /* of a known message at most */
    HOLES = 2 * OPERANDS,
    PLAN = 1024,  /* messages of a block that may be known */
    SLOTS = 1024, /* predictions of a kind */
    BUCKETS = 256,
    IN_VAIN = 32 /* operations among which none is learned after one made way that was never recognised */
};

/* The first byte of an operation: its opcode and five fields. */
#define OPERATION_HEAD 0x96

/* A number that may be another one in each message. */
typedef struct hole {
    uint8_t at;    /* place of its first byte */
    uint8_t width; /* in bytes; 0: seven bits of one byte */
    bool is_size;  /* it is at most INT64_MAX */
    bool is_fresh; /* it is not 0 */
    uint16_t to;   /* place of the number in the image */
} hole;

typedef struct known {
    ad_facts facts;
    ad_op op;          /* pointers are set in the copy */
    uint64_t hash;     /* of bytes and mask */
    uint32_t elements; /* objects in its containers, as the scan counts them */
    uint16_t nimage, params;
    uint8_t size, nholes;
    uint8_t next;  /* in the bucket */
    bool is_found; /* it has been recognised */
    hole holes[HOLES];
    uint8_t *bytes, *mask, *image; /* bytes are 0 where the mask is; operands' shapes are places in the image */
} known;

struct ad_known {
    known *at[MESSAGES + 1];
    uint8_t bucket[BUCKETS];                     /* the first one of those with such hashes */
    uint8_t after_many[SLOTS], after_few[SLOTS]; /* what came after such eight messages, after such two */
    uint8_t plan[PLAN];                          /* what the scan has recognised */
    unsigned planned, read;                      /* messages of the block: in the plan; read */
    uint64_t past;                               /* the latest eight operations, a byte each */
    unsigned latest;                             /* known message that was learned last */
    unsigned in_vain;                            /* operations among which none is learned */
    bool stale;                                  /* a message has made way since the scan began */
    ad_arena arena;                              /* of what is learned, while a block is scanned */
    size_t memory;
};

int ad__known_new(ad_known **out) {
    *out = calloc(1, sizeof **out);
    return *out ? 0 : AD_E_MEMORY;
}

void ad__known_free(ad_known *k) {
    for (int i = 1; k && i <= MESSAGES; i++) free(k->at[i]);
    free(k);
}

/* ---- predicting and comparing ---- */

static inline bool is_operation(const uint8_t *at, size_t left) {
    return left >= WORD && at[0] == OPERATION_HEAD &&
           (at[1] == AD_REQ_UFUNC || at[1] == AD_REQ_REDUCE || at[1] == AD_REQ_CALL);
}

static inline uint64_t load_word(const uint8_t *p) {
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

static inline uint64_t mix_bits(uint64_t h) { return (h ^ h >> 29) * UINT64_C(0x9e3779b97f4a7c15); }

static inline uint8_t *predict_by_many(ad_known *k) { return &k->after_many[mix_bits(k->past) >> 54]; }

static inline uint8_t *predict_by_few(ad_known *k) { return &k->after_few[mix_bits(k->past & 0xffff) >> 54]; }

/* Tell whether the bytes are those of the known message, but for its holes. The last word overlaps the one before. */
static inline bool is_message(const known *t, const uint8_t *at, size_t left) {
    uint64_t differs;
    size_t i = 0;

    if (!t || t->size > left) return false;
    do differs = (load_word(at + i) & load_word(t->mask + i)) ^ load_word(t->bytes + i);
    while (!differs && (i += WORD) + WORD <= t->size);
    if (differs) return false;
    i = t->size - (size_t)WORD;
    return (load_word(at + i) & load_word(t->mask + i)) == load_word(t->bytes + i);
}

/* Find the known message that comes next. 0: it is none. */
static unsigned find_next(ad_known *k, const uint8_t *at, size_t left) {
    const unsigned likely = *predict_by_many(k), second = *predict_by_few(k);

    if (is_message(k->at[likely], at, left)) return likely;
    return second != likely && is_message(k->at[second], at, left) ? second : 0;
}

/* ---- learning ---- */

/* A message that may become known. */
typedef struct candidate {
    known t;
    const uint8_t *from, *at; /* its first byte, the next object */
    _Alignas(WORD) uint8_t mask[BYTES];
} candidate;

/* Make the number that comes next a hole, if it is a whole number in one of the plain encodings, or a double. */
static void add_hole(candidate *c, size_t to, bool is_size, bool is_fresh) {
    const uint8_t head = *c->at;
    const ad_head *h = &ad__heads[head];
    const uint8_t place = (uint8_t)(c->at - c->from);
    const bool small = head < 0x80, real = head == 0xcb;

    if (small || real || (h->kind == AD_KIND_UNSIGNED && (!is_size || ad__get_be(c->at + 1, h->width) <= INT64_MAX))) {
        c->t.holes[c->t.nholes++] =
            (hole){(uint8_t)(place + !small), h->width, is_size && !real, is_fresh, (uint16_t)to};
        if (small) c->mask[place] = 0x80;
        else memset(c->mask + place + 1, 0, h->width);
    }
    ad__object_skip(&c->at);
}

/* False, here and below: the message is not built as an operation is, or has many operands. */
static bool add_holes_of_desc(candidate *c, size_t operand, uint32_t least) {
    uint32_t size = 0;

    if (!ad__object_array(&c->at, &size) || size < least || size > 5) return false;
    add_hole(c, operand + offsetof(ad_operand, desc.buffer), false, size == 3);
    ad__object_skip(&c->at);
    if (size > 3) add_hole(c, operand + offsetof(ad_operand, desc.offset), true, false);
    for (uint32_t i = size > 3 ? 3 : 2; i < size; i++) ad__object_skip(&c->at);
    return true;
}

static bool add_holes_of_inputs(candidate *c, size_t operand, uint32_t n) {
    const bool is_ufunc = c->from[1] == AD_REQ_UFUNC; /* estimates of calls depend on their scalars */

    for (uint32_t i = 0; i < n; i++, operand += sizeof(ad_operand)) {
        if (!ad__object_is(c->at, AD_KIND_ARRAY)) {
            if (is_ufunc) add_hole(c, operand + offsetof(ad_operand, scalar.as), true, false);
            else ad__object_skip(&c->at);
        } else if (!add_holes_of_desc(c, operand, 4)) return false;
    }
    return true;
}

/* Find what may differ between messages: buffers, offsets, and the scalars of ufuncs. The message has been scanned. */
static bool find_holes(candidate *c) {
    uint32_t nout = 0, nin = 0;

    c->at = c->from + 1;
    for (int i = 0; i < 3; i++) ad__object_skip(&c->at);
    if (!ad__object_array(&c->at, &nout) || nout > OPERANDS) return false;
    for (uint32_t i = 0; i < nout; i++)
        if (!add_holes_of_desc(c, i * sizeof(ad_operand), 3)) return false;
    if (!ad__object_array(&c->at, &nin) || nin > OPERANDS - nout) return false;
    return add_holes_of_inputs(c, nout * sizeof(ad_operand), nin);
}

static size_t round_up(size_t size) { return (size + WORD - 1) & ~(size_t)(WORD - 1); }

/* Count the image's bytes: operands, shapes and strides, parameters. */
static size_t size_image(const ad_op *op) {
    const int n = op->nout + op->nin;
    size_t size = (size_t)n * sizeof *op->operand + op->nparam * sizeof *op->param;

    for (int i = 0; i < n; i++) size += 2 * sizeof(int64_t) * op->operand[i].desc.ndim;
    return size;
}

static void put_image(known *t, const ad_op *op) {
    const int n = op->nout + op->nin;
    ad_operand *own = (ad_operand *)(void *)t->image;
    size_t at = (size_t)n * sizeof *own;

    for (int i = 0; i < n; i++) {
        const ad_desc *d = &op->operand[i].desc;
        const size_t half = d->ndim * sizeof(int64_t);
        own[i] = op->operand[i];
        own[i].desc.shape = (const int64_t *)(uintptr_t)at; /* a place in the image */
        if (half) {
            memcpy(t->image + at, d->shape, half);
            memcpy(t->image + at + half, d->strides, half);
        }
        at += 2 * half;
    }
    t->params = (uint16_t)at;
    if (op->nparam) memcpy(t->image + at, op->param, op->nparam * sizeof *op->param);
}

static uint64_t hash_candidate(const candidate *c) {
    const size_t last = c->t.size - (size_t)WORD;
    uint64_t h = c->t.size;

    for (size_t i = 0; i <= last; i = i < last && i + WORD > last ? last : i + WORD) {
        const uint64_t mask = load_word(c->mask + i);
        h = mix_bits(mix_bits(h ^ mask) ^ (load_word(c->from + i) & mask));
    }
    return h;
}

static bool is_candidate(const known *t, const candidate *c) {
    return t->hash == c->t.hash && t->size == c->t.size && !memcmp(t->mask, c->mask, t->size) &&
           is_message(t, c->from, t->size);
}

static unsigned find_candidate(const ad_known *k, const candidate *c) {
    unsigned i = k->bucket[c->t.hash % BUCKETS];
    while (i && !is_candidate(k->at[i], c)) i = k->at[i]->next;
    return i;
}

static size_t size_known(size_t size, size_t image) { return sizeof(known) + 2 * round_up(size) + image; }

/* Let a known message make way. */
static void forget_message(ad_known *k, unsigned i) {
    known *t = k->at[i];
    uint8_t *link;

    if (!t) return;
    link = &k->bucket[t->hash % BUCKETS];
    while (*link != i) link = &k->at[*link]->next;
    *link = t->next;
    if (!t->is_found) k->in_vain = IN_VAIN;
    k->memory -= size_known(t->size, t->nimage);
    k->at[i] = NULL;
    k->stale = true;
    free(t);
}

/* The largest message leaves room for others: each byte is at most one dimension or one parameter. */
_Static_assert(sizeof(known) + 2 * BYTES + OPERANDS * sizeof(ad_operand) + BYTES * sizeof(ad_scalar) <=
                       AD_KNOWN_MEMORY / 32 &&
                   2 * sizeof(int64_t) <= sizeof(ad_scalar),
               "a known message is too large");

/* Keep the candidate. Returns its number; 0: there is no memory. */
static unsigned keep_message(ad_known *k, candidate *c, const ad_op *op) {
    const size_t image = size_image(op), size = size_known(c->t.size, image), place = round_up(c->t.size);
    const unsigned i = k->latest % MESSAGES + 1;
    known *t = malloc(size);

    if (!t) return 0;
    forget_message(k, i);
    for (unsigned next = i; k->memory + size > AD_KNOWN_MEMORY;) forget_message(k, next = next % MESSAGES + 1);
    *t = c->t;
    t->op = *op;
    t->nimage = (uint16_t)image;
    t->bytes = (uint8_t *)(t + 1);
    t->mask = t->bytes + place;
    t->image = t->mask + place;
    for (size_t b = 0; b < t->size; b++) t->bytes[b] = c->from[b] & c->mask[b];
    memcpy(t->mask, c->mask, t->size);
    put_image(t, op);
    t->next = k->bucket[t->hash % BUCKETS];
    k->bucket[t->hash % BUCKETS] = (uint8_t)i;
    k->memory += size;
    k->at[k->latest = i] = t;
    return i;
}

/* Make a message known that is not, if it is right. 0: it is not, or there is no memory. */
static unsigned learn_message(ad_known *k, candidate *c) {
    const uint8_t *at = c->from;
    ad_message m;
    unsigned i = 0;

    if (!ad__check_message(&at, &k->arena, AD_BIT(AD_CLASS_OP), &m, NULL)) i = keep_message(k, c, &m.op);
    ad__arena_reset(&k->arena);
    return i;
}

/* Find the known message that was not expected, or make it known. 0: it remains unknown. */
static unsigned find_or_learn(ad_known *k, const uint8_t *at, size_t size, uint32_t elements) {
    candidate c = {.t = {.size = (uint8_t)size, .elements = elements}, .from = at};
    unsigned i;

    if (size > BYTES || size < WORD) return 0;
    memset(c.mask, 0xff, size);
    if (!find_holes(&c)) return 0;
    c.t.hash = hash_candidate(&c);
    i = find_candidate(k, &c);
    if (i) k->at[i]->is_found = true;
    else if (!k->in_vain) i = learn_message(k, &c);
    return i;
}

/* ---- scanning ---- */

/* Plan the operation that comes next in a scan. Returns its bytes; 0: it is damaged. */
static size_t plan_operation(ad_known *k, const uint8_t *at, size_t left, uint32_t *elements) {
    unsigned i = find_next(k, at, left);
    size_t size;

    k->in_vain -= k->in_vain > 0;
    if (i) {
        size = k->at[i]->size;
        *elements = k->at[i]->elements;
        k->at[i]->is_found = true;
    } else {
        size = ad__scan_one(at, left, elements);
        if (!size) return 0;
        i = find_or_learn(k, at, size, *elements);
    }
    if (i) *predict_by_many(k) = *predict_by_few(k) = (uint8_t)i;
    k->past = k->past << 8 | i;
    k->plan[k->planned++] = (uint8_t)i;
    return size;
}

/* Recognise the message that comes next in a scan. Returns its bytes; 0: the scan must look at it. */
static size_t recognise_message(void *of, const uint8_t *at, size_t left, uint64_t *elements) {
    ad_known *k = of;
    uint32_t own = 0;
    size_t size;

    if (k->planned == PLAN) return 0;
    if (!is_operation(at, left)) {
        k->plan[k->planned++] = 0;
        return 0;
    }
    size = plan_operation(k, at, left, &own);
    *elements += own;
    return size;
}

int ad__known_scan(ad_known *k, const uint8_t *data, size_t size, ad_fault *fault) {
    int status;

    k->planned = k->read = 0;
    k->stale = false;
    status = ad__scan_with(data, size, recognise_message, k, fault);
    ad__arena_free(&k->arena);
    return status;
}

/* ---- reading ---- */

static uint64_t read_hole(const hole *h, const uint8_t *message) {
    const uint8_t *p = message + h->at;
    return h->width ? ad__get_be(p, h->width) : *p & 0x7f;
}

/* Put the numbers of the holes into the copy of the image. False: one of them is wrong. */
static bool fill_holes(const known *t, const uint8_t *message, uint8_t *image) {
    for (unsigned i = 0; i < t->nholes; i++) {
        const hole *h = &t->holes[i];
        const uint64_t value = read_hole(h, message);
        if ((h->is_size && value > INT64_MAX) || (h->is_fresh && !value)) return false;
        memcpy(image + h->to, &value, sizeof value);
    }
    return true;
}

/* Make the message of the known one. False: a number in it is wrong, or there is no memory. */
static bool make_message(known *t, const uint8_t *at, ad_arena *arena, ad_message *m) {
    uint8_t *image = ad__arena_take(arena, t->nimage);
    ad_operand *operand = (ad_operand *)(void *)image;

    if (!image) return false;
    memcpy(image, t->image, t->nimage);
    if (!fill_holes(t, at, image)) return false;
    for (int i = 0; i < t->op.nout + t->op.nin; i++) {
        ad_desc *d = &operand[i].desc;
        d->shape = (const int64_t *)(const void *)(image + (uintptr_t)d->shape);
        d->strides = d->shape + d->ndim;
    }
    memset(m, 0, sizeof *m);
    m->opcode = t->op.opcode;
    m->row = ad__request(m->opcode);
    m->u[0] = t->op.row;
    m->u[1] = t->op.loop;
    m->op = t->op;
    m->op.operand = operand;
    m->op.param = (ad_scalar *)(void *)(image + t->params);
    m->facts = &t->facts;
    m->size = t->size;
    return true;
}

bool ad__known_read(ad_known *k, const uint8_t *at, const uint8_t *end, ad_arena *arena, ad_message *m) {
    const unsigned n = k->read++, i = n < k->planned ? k->plan[n] : 0;

    if (!i || (k->stale && !is_message(k->at[i], at, (size_t)(end - at)))) return false;
    return make_message(k->at[i], at, arena, m);
}
