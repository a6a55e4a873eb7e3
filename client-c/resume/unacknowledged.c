#include "client-c/resume/unacknowledged.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK ((size_t)64 << 10)
#define SPARE 8
#define SPARE_LARGE 4
#define GROUP ((uint64_t)32 << 10) /* bytes that share a mark */

struct ad_kept_block {
    ad_kept_block *next;
    uint64_t base;
    size_t size, capacity;
    uint8_t data[];
};

/* From a list of spare ones, the first that is large enough; NULL: none is. */
static ad_kept_block *take_spare_block(ad_kept_block **list, unsigned *count, size_t size) {
    while (*list && (*list)->capacity < size) list = &(*list)->next;
    ad_kept_block *b = *list;
    if (!b) return NULL;
    *list = b->next;
    --*count;
    return b;
}

static bool store_spare_block(ad_kept_block **list, unsigned *count, unsigned most, ad_kept_block *b) {
    if (*count >= most) return false;
    b->next = *list;
    *list = b;
    ++*count;
    return true;
}

static void free_spare_blocks(ad_kept_block **list, unsigned *count) {
    while (*list) {
        ad_kept_block *b = *list;
        *list = b->next;
        free(b);
    }
    *count = 0;
}

static ad_kept_block *append_block(ad_kept *k, size_t size) {
    const bool large = size > BLOCK;
    size_t capacity = large ? size : BLOCK;
    ad_kept_block *b =
        large ? take_spare_block(&k->large, &k->nlarge, size) : take_spare_block(&k->spare, &k->nspare, size);
    if (b) capacity = b->capacity;
    else if (!(b = malloc(sizeof *b + capacity))) return NULL;
    *b = (ad_kept_block){.base = k->end, .capacity = capacity};
    if (k->last) k->last->next = b;
    else k->first = b;
    return k->last = b;
}

int ad__kept_add(ad_kept *k, const void *data, size_t size) {
    ad_kept_block *b = k->last;
    if (!size) return 0;
    if ((!b || b->capacity - b->size < size) && !(b = append_block(k, size))) return AD_E_MEMORY;
    memcpy(b->data + b->size, data, size);
    b->size += size;
    k->end += size;
    return 0;
}

const uint8_t *ad__kept_last(const ad_kept *k, size_t size) { return k->last->data + k->last->size - size; }

void ad__kept_mark(ad_kept *k, uint64_t ops, uint64_t requests) {
    unsigned last = (k->first_mark + k->marks - 1) % AD_KEPT_MARKS, before = (last + AD_KEPT_MARKS - 1) % AD_KEPT_MARKS;
    uint64_t start = k->marks > 1 ? k->mark[before].end : k->begin;
    if (!k->marks || (k->mark[last].end - start > GROUP && k->marks < AD_KEPT_MARKS))
        last = (k->first_mark + k->marks++) % AD_KEPT_MARKS;
    k->mark[last] = (ad_kept_mark){k->end, ops, requests};
}

int ad__kept_pass(ad_kept *k, uint64_t at, int fd) {
    const int own = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (own < 0 && fd >= 0) return AD_E_SYSTEM;
    if (k->npassed == k->capacity) {
        unsigned more = k->capacity ? 2 * k->capacity : 4;
        ad_kept_descriptor *list = realloc(k->passed, more * sizeof *list);
        if (!list) {
            if (own >= 0) close(own);
            return AD_E_MEMORY;
        }
        k->passed = list;
        k->capacity = more;
    }
    k->passed[k->npassed].at = at;
    k->passed[k->npassed++].fd = own;
    return 0;
}

/* ---- letting go ---- */

static void remove_first_block(ad_kept *k) {
    ad_kept_block *b = k->first;
    k->first = b->next;
    if (!k->first) k->last = NULL;
    bool kept = b->capacity == BLOCK ? store_spare_block(&k->spare, &k->nspare, SPARE, b)
                                     : store_spare_block(&k->large, &k->nlarge, SPARE_LARGE, b);
    if (!kept) free(b);
}

static void close_passed_descriptors(ad_kept *k, uint64_t before) {
    unsigned n = 0;
    while (n < k->npassed && k->passed[n].at < before) {
        if (k->passed[n].fd >= 0) close(k->passed[n].fd);
        n++;
    }
    if (!n) return;
    k->npassed -= n;
    memmove(k->passed, k->passed + n, k->npassed * sizeof *k->passed);
}

void ad__kept_release(ad_kept *k, uint64_t ops, uint64_t requests) {
    const uint64_t before = k->begin;
    while (k->marks && (ops > k->mark[k->first_mark].ops || requests > k->mark[k->first_mark].requests)) {
        k->begin = k->mark[k->first_mark].end;
        k->first_mark = (k->first_mark + 1) % AD_KEPT_MARKS;
        k->marks--;
    }
    if (k->begin == before) return;
    while (k->first && k->first->base + k->first->size <= k->begin) remove_first_block(k);
    if (!k->first) free_spare_blocks(&k->large, &k->nlarge);
    close_passed_descriptors(k, k->begin);
}

void ad__kept_clear(ad_kept *k) {
    while (k->first) remove_first_block(k);
    close_passed_descriptors(k, UINT64_MAX);
    free_spare_blocks(&k->spare, &k->nspare);
    free_spare_blocks(&k->large, &k->nlarge);
    free(k->passed);
    *k = (ad_kept){0};
}

/* ---- sending again ---- */

size_t ad__kept_read(const ad_kept *k, uint64_t from, uint64_t to, ad_bytes *out) {
    const ad_kept_block *b = k->first;
    while (b && from >= b->base + b->size) b = b->next;
    if (!b || from < b->base || from >= to) return 0;
    const size_t at = (size_t)(from - b->base), left = b->size - at;
    const size_t n = to - from < left ? (size_t)(to - from) : left;
    ad__bytes_append(out, b->data + at, n);
    return out->failed ? 0 : n;
}

int ad__kept_next(const ad_kept *k, uint64_t from) {
    for (unsigned i = 0; i < k->npassed; i++)
        if (k->passed[i].at >= from) return (int)i;
    return -1;
}
