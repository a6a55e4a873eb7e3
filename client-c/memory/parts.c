/* Parts of windows: handing them out and taking them back. Drawings: windows.h, and ad_host in client.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client-c/memory/windows.h"

#define GRAIN 256            /* sizes and offsets of parts are multiples of it */
#define LOOK_NS 10000000000u /* time between two searches for idle windows */
#define IDLE_NS 60000000000u /* time after which an idle window is given back */

pthread_mutex_t ad__pools_lock = PTHREAD_MUTEX_INITIALIZER;
ad_pool *ad__pools;

uint8_t *ad__host_base(const ad_host *h) { return h->window->base + h->offset; }
uint64_t ad__host_window(const ad_host *h) { return h->window->id; }
void *ad_host_data(const ad_host *host) { return ad__host_base(host); }

/* ---- lists ---- */

static void add_to_list(ad_host **list, ad_host *h) {
    h->next = *list;
    h->link = list;
    if (h->next) h->next->link = &h->next;
    *list = h;
}

static void remove_from_list(ad_host *h) {
    *h->link = h->next;
    if (h->next) h->next->link = h->link;
}

/* ---- parts ---- */

static void merge_parts(ad_host *h, ad_host *after) {
    h->size += after->size;
    h->after = after->after;
    if (h->after) h->after->before = h;
    free(after);
}

/* Free a part, and merge it with free neighbours. */
static void free_part(ad_host *h) {
    h->state = AD_HOST_FREE;
    h->asked = false;
    h->until = 0;
    if (--h->window->used == 0) h->window->idle_since = ad__now();
    if (h->after && h->after->state == AD_HOST_FREE) {
        remove_from_list(h->after);
        merge_parts(h, h->after);
    }
    if (h->before && h->before->state == AD_HOST_FREE) {
        h = h->before;
        remove_from_list(h);
        merge_parts(h, h->after);
    }
    add_to_list(&h->pool->free, h);
}

/* Make a free part of what is beyond size. */
static void split_part(ad_host *h, size_t size) {
    ad_host *rest = h->size > size ? calloc(1, sizeof *rest) : NULL;
    if (!rest) return;
    rest->pool = h->pool;
    rest->window = h->window;
    rest->offset = h->offset + size;
    rest->size = h->size - size;
    rest->before = h;
    rest->after = h->after;
    if (rest->after) rest->after->before = rest;
    h->after = rest;
    h->size = size;
    add_to_list(&h->pool->free, rest);
}

static ad_host *take_part(ad_pool *pool, size_t size) {
    ad_host *best = NULL;
    for (ad_host *h = pool->free; h; h = h->next)
        if (h->size >= size && (!best || h->size < best->size)) best = h;
    if (!best) return NULL;
    remove_from_list(best);
    split_part(best, size);
    best->state = AD_HOST_LIVE;
    best->window->live++;
    best->window->used++;
    return best;
}

void ad__pool_add(ad_pool *pool, ad_host_window *w, ad_host *whole) {
    *whole = (ad_host){.pool = pool, .window = w, .size = w->size};
    w->first = whole;
    w->next = pool->windows;
    w->idle_since = ad__now();
    pool->windows = w;
    pool->bytes += w->size;
    add_to_list(&pool->free, whole);
}

ad_host_window *ad__pool_take_idle(ad_pool *pool, uint64_t since) {
    for (ad_host_window **p = &pool->windows; *p; p = &(*p)->next) {
        ad_host_window *w = *p;
        if (w->used || w->idle_since > since) continue;
        *p = w->next;
        remove_from_list(w->first); /* an idle window is one free part */
        pool->bytes -= w->size;
        return w;
    }
    return NULL;
}

void ad__window_free(ad_host_window *w) {
    for (ad_host *h = w->first, *after; h; h = after) {
        after = h->after;
        free(h);
    }
    munmap(w->base, w->size);
    free(w);
}

/* ---- pools ---- */

/* Return the bytes of memory that this process can have: the machine's, or its container's. */
static size_t find_memory_size(void) {
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size_t all = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : (size_t)8 << 30;
    unsigned long long limit;
    FILE *file = fopen("/sys/fs/cgroup/memory.max", "re");
    if (!file) return all;
    if (fscanf(file, "%llu", &limit) == 1 && limit < all) all = (size_t)limit;
    fclose(file);
    return all;
}

/* Return the limit of a pool's bytes. The server has a limit of its own, and refuses more. */
static size_t find_pool_limit(void) {
    const char *set = getenv("ARRAYD_PINNED");
    char *end;
    if (set && *set) {
        unsigned long long n = strtoull(set, &end, 10);
        const char *unit = *end ? strchr("KMGT", *end) : NULL;
        return (size_t)(unit ? n << 10 * (unit - "KMGT" + 1) : n);
    }
    return find_memory_size() / 8;
}

ad_pool *ad__pool_of(ad_session *s) {
    ad_pool *pool = atomic_load_explicit(&s->memory.pool, memory_order_acquire);
    if (pool || ad__is_remote(&s->connection.address)) return pool;
    pthread_mutex_lock(&ad__pools_lock);
    pool = atomic_load_explicit(&s->memory.pool, memory_order_relaxed);
    if (!pool && (pool = calloc(1, sizeof *pool))) {
        pool->session = s;
        pool->limit = find_pool_limit();
        pool->next = ad__pools;
        ad__pools = pool;
        atomic_store_explicit(&s->memory.pool, pool, memory_order_release);
    }
    pthread_mutex_unlock(&ad__pools_lock);
    return pool;
}

void ad__pool_tidy(ad_pool *pool) {
    ad_host_window **p = &pool->windows;
    while (*p) {
        ad_host_window *w = *p;
        if (w->live) {
            p = &w->next;
            continue;
        }
        *p = w->next;
        ad__window_free(w);
    }
    if (pool->windows || !pool->detached) return;
    for (ad_pool **q = &ad__pools; *q; q = &(*q)->next)
        if (*q == pool) {
            *q = pool->next;
            break;
        }
    free(pool);
}

void ad__pool_detach(ad_session *s) {
    ad_pool *pool = atomic_load_explicit(&s->memory.pool, memory_order_acquire);
    if (!pool) return;
    pthread_mutex_lock(&ad__pools_lock);
    pool->session = NULL;
    pool->detached = true;
    pool->free = pool->draining = NULL; /* no part is handed out any more */
    ad__pool_tidy(pool);
    pthread_mutex_unlock(&ad__pools_lock);
}

/* ---- parts that the server uses ---- */

bool ad__host_idle(const ad_session *s, const ad_host *h) {
    return (!h->asked || h->slot.done) && h->until <= s->window.acked;
}

void ad__host_sweep(ad_session *s) {
    ad_pool *pool = atomic_load_explicit(&s->memory.pool, memory_order_acquire);
    if (!pool) return;
    pthread_mutex_lock(&s->lock);
    pthread_mutex_lock(&ad__pools_lock);
    for (ad_host *h = pool->draining, *next; h; h = next) {
        next = h->next;
        if (s->dead || !ad__host_idle(s, h)) continue;
        remove_from_list(h);
        pool->draining_bytes -= h->size;
        free_part(h);
    }
    pthread_mutex_unlock(&ad__pools_lock);
    pthread_mutex_unlock(&s->lock);
}

size_t ad__pool_draining_bytes(ad_session *s) {
    ad_pool *pool = atomic_load_explicit(&s->memory.pool, memory_order_acquire);
    if (!pool) return 0;
    pthread_mutex_lock(&ad__pools_lock);
    size_t bytes = pool->draining_bytes;
    pthread_mutex_unlock(&ad__pools_lock);
    return bytes;
}

/* Find the window that has the memory. False: there is none. The caller holds ad__pools_lock. */
static bool find_window(const ad_pool *pool, const void *data, size_t size, uint64_t *window, uint64_t *offset) {
    const uintptr_t at = (uintptr_t)data;
    for (const ad_host_window *w = pool->windows; w; w = w->next) {
        const uintptr_t base = (uintptr_t)w->base;
        if (at < base || at - base > w->size || size > w->size - (at - base)) continue;
        *window = w->id;
        *offset = at - base;
        return true;
    }
    return false;
}

int ad__host_find(ad_session *s, const void *data, size_t size, uint64_t *window, uint64_t *offset, bool *found) {
    ad_pool *pool = atomic_load_explicit(&s->memory.pool, memory_order_acquire);
    *found = false;
    if (!pool) return 0;
    const int status = ad__pool_check(s, pool);
    if (status) return status;
    pthread_mutex_lock(&ad__pools_lock);
    *found = !pool->refused && find_window(pool, data, size, window, offset);
    pthread_mutex_unlock(&ad__pools_lock);
    return 0;
}

/* ---- the program's calls ---- */

static int fail_unsupported(void) { return ad__fail(AD_E_UNSUPPORTED, "no memory is shared with this server"); }

static ad_host *try_take_part(ad_pool *pool, size_t size) {
    pthread_mutex_lock(&ad__pools_lock);
    ad_host *h = take_part(pool, size);
    pthread_mutex_unlock(&ad__pools_lock);
    return h;
}

static int shrink_idle_windows(ad_session *s, ad_pool *pool) {
    uint64_t now = ad__now(), last = atomic_load_explicit(&pool->searched, memory_order_relaxed);
    if (now - last < LOOK_NS || !atomic_compare_exchange_strong(&pool->searched, &last, now)) return 0;
    return ad__pool_shrink(s, pool, now > IDLE_NS ? now - IDLE_NS : 0);
}

int ad_host_alloc(ad_session *s, size_t size, ad_host **host) {
    if (ad__is_foreign(s)) return ad__fail_foreign();
    ad_pool *pool = ad__pool_of(s);
    int status = pool ? ad__pool_check(s, pool) : 0;
    if (status) return status;
    if (!pool || pool->refused || size > pool->limit) return fail_unsupported();
    size = size ? (size + GRAIN - 1) & ~(size_t)(GRAIN - 1) : GRAIN;
    ad__host_sweep(s);
    status = shrink_idle_windows(s, pool);
    if (status) return status;
    ad_host *h = try_take_part(pool, size);
    for (int i = 0; !h && i < 2; i++) { /* another thread may take the new part first */
        status = ad__pool_grow(s, pool, size);
        if (status) return status;
        h = try_take_part(pool, size);
    }
    if (!h) return fail_unsupported();
    *host = h;
    return 0;
}

void ad_host_release(ad_host *h) {
    if (!h) return;
    pthread_mutex_lock(&ad__pools_lock);
    ad_pool *pool = h->pool;
    h->window->live--;
    if (!pool->session) {
        h->state = AD_HOST_DRAINING;
        ad__pool_tidy(pool);
    } else if (h->asked || h->until) {
        h->state = AD_HOST_DRAINING;
        add_to_list(&pool->draining, h);
        pool->draining_bytes += h->size;
    } else {
        free_part(h);
    }
    pthread_mutex_unlock(&ad__pools_lock);
}

void ad_host_count(ad_session *s, uint64_t *free_blocks, uint64_t *bytes) {
    ad_pool *pool = atomic_load_explicit(&s->memory.pool, memory_order_acquire);
    *free_blocks = *bytes = 0;
    if (!pool || ad__is_foreign(s)) return;
    ad__host_sweep(s);
    pthread_mutex_lock(&ad__pools_lock);
    for (const ad_host *h = pool->free; h; h = h->next) ++*free_blocks;
    *bytes = pool->bytes;
    pthread_mutex_unlock(&ad__pools_lock);
}

int ad_host_trim(ad_session *s) {
    if (ad__is_foreign(s)) return ad__fail_foreign();
    ad_pool *pool = atomic_load_explicit(&s->memory.pool, memory_order_acquire);
    if (!pool) return 0;
    ad__host_sweep(s);
    return ad__pool_shrink(s, pool, UINT64_MAX);
}
