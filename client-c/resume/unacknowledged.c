#include "client-c/resume/unacknowledged.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK ((size_t)64 << 10)
#define SPARE 8
#define SPARE_LARGE 4
#define GROUP ((uint64_t)32 << 10) /* bytes from which on a new mark begins */

struct ad_unacked_block {
    ad_unacked_block *next;
    uint64_t base;
    size_t size, capacity;
    uint8_t data[];
};

/* Take the first spare block that is large enough; NULL: none is. */
static ad_unacked_block *take_spare_block(ad_unacked_block **list, unsigned *count, size_t size) {
    while (*list && (*list)->capacity < size) list = &(*list)->next;
    ad_unacked_block *b = *list;
    if (!b) return NULL;
    *list = b->next;
    --*count;
    return b;
}

static bool store_spare_block(ad_unacked_block **list, unsigned *count, unsigned most, ad_unacked_block *b) {
    if (*count >= most) return false;
    b->next = *list;
    *list = b;
    ++*count;
    return true;
}

static void free_spare_blocks(ad_unacked_block **list, unsigned *count) {
    while (*list) {
        ad_unacked_block *b = *list;
        *list = b->next;
        free(b);
    }
    *count = 0;
}

static ad_unacked_block *append_block(ad_unacked *u, size_t size) {
    const bool large = size > BLOCK;
    size_t capacity = large ? size : BLOCK;
    ad_unacked_block *b =
        large ? take_spare_block(&u->large, &u->nlarge, size) : take_spare_block(&u->spare, &u->nspare, size);
    if (b) capacity = b->capacity;
    else if (!(b = malloc(sizeof *b + capacity))) return NULL;
    *b = (ad_unacked_block){.base = u->end, .capacity = capacity};
    if (u->last) u->last->next = b;
    else u->first = b;
    return u->last = b;
}

int ad__unacked_add(ad_unacked *u, const void *data, size_t size) {
    ad_unacked_block *b = u->last;
    if (!size) return 0;
    if ((!b || b->capacity - b->size < size) && !(b = append_block(u, size))) return AD_E_MEMORY;
    memcpy(b->data + b->size, data, size);
    b->size += size;
    u->end += size;
    return 0;
}

const uint8_t *ad__unacked_last(const ad_unacked *u, size_t size) { return u->last->data + u->last->size - size; }

void ad__unacked_mark(ad_unacked *u, uint64_t ops, uint64_t requests) {
    unsigned last = (u->first_mark + u->marks - 1) % AD_UNACKED_MARKS,
             before = (last + AD_UNACKED_MARKS - 1) % AD_UNACKED_MARKS;
    uint64_t start = u->marks > 1 ? u->mark[before].end : u->begin;
    if (!u->marks || (u->mark[last].end - start > GROUP && u->marks < AD_UNACKED_MARKS))
        last = (u->first_mark + u->marks++) % AD_UNACKED_MARKS;
    u->mark[last] = (ad_unacked_mark){u->end, ops, requests};
}

int ad__unacked_pass(ad_unacked *u, uint64_t at, int fd) {
    const int own = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (own < 0 && fd >= 0) return AD_E_SYSTEM;
    if (u->npassed == u->capacity) {
        unsigned more = u->capacity ? 2 * u->capacity : 4;
        ad_unacked_descriptor *list = realloc(u->passed, more * sizeof *list);
        if (!list) {
            if (own >= 0) close(own);
            return AD_E_MEMORY;
        }
        u->passed = list;
        u->capacity = more;
    }
    u->passed[u->npassed].at = at;
    u->passed[u->npassed++].fd = own;
    return 0;
}

/* ---- releasing ---- */

static void remove_first_block(ad_unacked *u) {
    ad_unacked_block *b = u->first;
    u->first = b->next;
    if (!u->first) u->last = NULL;
    bool stored = b->capacity == BLOCK ? store_spare_block(&u->spare, &u->nspare, SPARE, b)
                                       : store_spare_block(&u->large, &u->nlarge, SPARE_LARGE, b);
    if (!stored) free(b);
}

static void close_passed_descriptors(ad_unacked *u, uint64_t before) {
    unsigned n = 0;
    while (n < u->npassed && u->passed[n].at < before) {
        if (u->passed[n].fd >= 0) close(u->passed[n].fd);
        n++;
    }
    if (!n) return;
    u->npassed -= n;
    memmove(u->passed, u->passed + n, u->npassed * sizeof *u->passed);
}

void ad__unacked_release(ad_unacked *u, uint64_t ops, uint64_t requests) {
    const uint64_t before = u->begin;
    while (u->marks && (ops > u->mark[u->first_mark].ops || requests > u->mark[u->first_mark].requests)) {
        u->begin = u->mark[u->first_mark].end;
        u->first_mark = (u->first_mark + 1) % AD_UNACKED_MARKS;
        u->marks--;
    }
    if (u->begin == before) return;
    while (u->first && u->first->base + u->first->size <= u->begin) remove_first_block(u);
    if (!u->first) free_spare_blocks(&u->large, &u->nlarge);
    close_passed_descriptors(u, u->begin);
}

void ad__unacked_clear(ad_unacked *u) {
    while (u->first) remove_first_block(u);
    close_passed_descriptors(u, UINT64_MAX);
    free_spare_blocks(&u->spare, &u->nspare);
    free_spare_blocks(&u->large, &u->nlarge);
    free(u->passed);
    *u = (ad_unacked){0};
}

/* ---- sending again ---- */

size_t ad__unacked_read(const ad_unacked *u, uint64_t from, uint64_t to, ad_bytes *out) {
    const ad_unacked_block *b = u->first;
    while (b && from >= b->base + b->size) b = b->next;
    if (!b || from < b->base || from >= to) return 0;
    const size_t at = (size_t)(from - b->base), left = b->size - at;
    const size_t n = to - from < left ? (size_t)(to - from) : left;
    ad__bytes_append(out, b->data + at, n);
    return out->failed ? 0 : n;
}

int ad__unacked_next_descriptor(const ad_unacked *u, uint64_t from) {
    for (unsigned i = 0; i < u->npassed; i++)
        if (u->passed[i].at >= from) return (int)i;
    return -1;
}
