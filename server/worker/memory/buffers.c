#include "server/worker/memory/buffers.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "server/common/os.h"

_Alignas(64) char ad__no_bytes[64];

#define FIRST_SLOTS 128
#define FOUR 4
#define BATCH 64
#define PREFETCHED 16

typedef struct ad_buffer_slot slot;

/* Header of a batch of buffers. The buffers follow, each at the beginning of a cache line. */
struct ad_buffer_batch {
    struct ad_buffer_batch *next;
};
#define EACH ((sizeof(ad_buffer) + AD_LINE - 1) / AD_LINE * AD_LINE)

void ad__buffers_init(ad_buffers *t, uint64_t most) { *t = (ad_buffers){.most = most}; }

/* Compute where probing for an id begins: Fibonacci hashing of groups of four. Clients count ids upwards, so four
 * ids in a row share a cache line, and the multiplication spreads the groups over the table. */
static uint64_t compute_slot(const ad_buffers *t, uint64_t id) {
    return ((id / FOUR * 0x9e3779b97f4a7c15u) >> t->shift) * FOUR + id % FOUR;
}

static slot *find_slot(const ad_buffers *t, uint64_t id) {
    uint64_t i = compute_slot(t, id);
    while (t->slots[i].id && t->slots[i].id != id) i = (i + 1) & t->mask;
    return &t->slots[i];
}

ad_buffer *ad__buffers_find(const ad_buffers *t, uint64_t id) {
    if (!t->slots || !id) return NULL;
    return find_slot(t, id)->buffer;
}

void ad__buffers_prefetch(const ad_buffers *t, const uint64_t *id, size_t n) {
    const ad_buffer *b[PREFETCHED];
    size_t found = 0;
    if (!t->slots || n < 2) return;
    if (n > PREFETCHED) n = PREFETCHED;
    for (size_t i = 0; i < n; i++) __builtin_prefetch(&t->slots[compute_slot(t, id[i])], 1);
    for (size_t i = 0; i < n; i++) {
        const slot *s = &t->slots[compute_slot(t, id[i])]; /* a buffer that is only near this slot is not prefetched */
        if (!s->buffer || s->id != id[i]) continue;
        b[found++] = s->buffer;
        for (size_t at = 0; at < AD_BUFFER_CLEARED; at += AD_LINE) __builtin_prefetch((const char *)s->buffer + at, 1);
    }
    for (size_t i = 0; i < found; i++) {
        __builtin_prefetch(b[i]->block.chunk, 1);
        __builtin_prefetch(b[i]->address, 1);
    }
}

static int resize_table(ad_buffers *t, uint64_t slots) {
    ad_buffers old = *t;
    slot *fresh = ad__os.calloc(slots, sizeof *fresh);
    if (!fresh) return AD_E_MEMORY;
    t->slots = fresh;
    t->mask = slots - 1;
    t->shift = 64 - (unsigned)__builtin_ctzll(slots / FOUR);
    for (uint64_t i = 0; old.slots && i <= old.mask; i++)
        if (old.slots[i].id) *find_slot(t, old.slots[i].id) = old.slots[i];
    free(old.slots);
    return 0;
}

/* Add memory for more buffers. AD_E_LIMIT, AD_E_MEMORY. */
static int add_batch(ad_buffers *t, ad_fault *fault) {
    ad_buffer_total *total = t->total;
    const uint64_t most = total ? atomic_load(&total->most) : 0;
    if (most && total->room + BATCH > most)
        return ad__fault(fault, AD_E_LIMIT,
                         "all sessions of %s have room for %" PRIu64 " buffers, and no more are allowed (option "
                         "buffers-each); free arrays, or end sessions",
                         total->principal, total->room);
    struct ad_buffer_batch *b = ad__os.malloc(sizeof *b + AD_LINE + BATCH * EACH);
    if (!b) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    b->next = t->batches;
    t->batches = b;
    if (total) total->room += BATCH;
    char *first = ad__os_line(b + 1);
    for (size_t i = BATCH; i-- > 0;) ad__buffers_recycle(t, (ad_buffer *)(void *)(first + i * EACH));
    return 0;
}

int ad__buffers_add(ad_buffers *t, uint64_t id, ad_buffer **out, ad_fault *fault) {
    if (!id) return ad__fault(fault, AD_E_VALUE, "a buffer's id must not be 0");
    if (t->count >= t->most)
        return ad__fault(fault, AD_E_LIMIT, "the session holds %" PRIu64 " buffers, and no more are allowed", t->count);
    /* The table is at most a quarter full: removal looks at all slots behind the gap, and groups of four stand
     * together. */
    if ((!t->slots || 4 * t->count > t->mask) && resize_table(t, t->slots ? 2 * (t->mask + 1) : FIRST_SLOTS))
        return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    slot *s = find_slot(t, id);
    if (s->id) return ad__fault(fault, AD_E_VALUE, "buffer id %" PRIu64 " is in use", id);
    int status = t->spare ? 0 : add_batch(t, fault);
    if (status) return status;
    ad_buffer *b = t->spare;
    t->spare = b->next;
    memset(b, 0, AD_BUFFER_CLEARED);
    b->id = id;
    *s = (slot){id, b};
    t->count++;
    __builtin_prefetch(&t->slots[compute_slot(t, id + 2 * FOUR)], 1); /* the cache cannot hold all tables */
    *out = b;
    return 0;
}

/* Close the gap at a slot: move back what probing would no longer find beyond it. */
static void close_gap(ad_buffers *t, uint64_t gap) {
    for (uint64_t i = (gap + 1) & t->mask; t->slots[i].id; i = (i + 1) & t->mask) {
        uint64_t walked = (i - compute_slot(t, t->slots[i].id)) & t->mask;
        if (walked < ((i - gap) & t->mask)) continue;
        t->slots[gap] = t->slots[i];
        gap = i;
    }
    t->slots[gap] = (slot){0};
}

void ad__buffers_detach(ad_buffers *t, ad_buffer *b) {
    close_gap(t, (uint64_t)(find_slot(t, b->id) - t->slots));
    t->count--;
}

void ad__buffers_recycle(ad_buffers *t, ad_buffer *b) {
    b->next = t->spare;
    t->spare = b;
}

void ad__buffers_remove(ad_buffers *t, ad_buffer *b) {
    ad__buffers_detach(t, b);
    ad__buffers_recycle(t, b);
}

void ad__buffers_each(const ad_buffers *t, void (*visit)(void *user, ad_buffer *b), void *user) {
    for (uint64_t i = 0; t->slots && i <= t->mask; i++)
        if (t->slots[i].id) visit(user, t->slots[i].buffer);
}

bool ad__buffers_clear_part(ad_buffers *t, uint64_t slots, void (*visit)(void *user, ad_buffer *b), void *user) {
    if (!t->slots) return false;
    const uint64_t end = slots < t->mask + 1 - t->cleared ? t->cleared + slots : t->mask + 1;
    for (; t->cleared < end; t->cleared++) {
        slot *one = &t->slots[t->cleared];
        if (!one->id) continue;
        visit(user, one->buffer);
        *one = (slot){0};
        t->count--;
    }
    return t->cleared <= t->mask;
}

void ad__buffers_clear(ad_buffers *t, void (*visit)(void *user, ad_buffer *b), void *user) {
    ad__buffers_clear_part(t, UINT64_MAX, visit, user);
    while (t->batches) {
        struct ad_buffer_batch *b = t->batches;
        t->batches = b->next;
        if (t->total) t->total->room -= BATCH;
        free(b);
    }
    free(t->slots);
    *t = (ad_buffers){.most = t->most, .total = t->total};
}
