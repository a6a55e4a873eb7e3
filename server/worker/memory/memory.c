#include "server/worker/memory/memory.h"

#include <stdlib.h>

#include "kernels/redzone.h"
#include "server/common/os.h"

#define OWN_GRAIN (2u << 20)  /* bytes; own slabs are multiples of it, so that they fit other arrays */
#define FIRST_SLAB (2u << 20) /* bytes of a stream arena's first cut slab; the next ones are larger */
#define PIECES 16             /* pieces of a divided slab, which has FIRST_SLAB bytes */
#define PIECE (FIRST_SLAB / PIECES)
#define EMPTIES 4 /* cut slabs without arrays that a stream arena keeps */

/* The spare own slabs of a stream arena may have one part in so many of all memory. The first touch of a page costs
 * several times what it costs to compute with it: on an H100 additions with a new slab for each result took 2.2 times
 * as long. A session that lacks memory gets the spare slabs of all arenas. */
#define SPARE_PART 4

struct ad_slab {
    ad_slab *next, *prev; /* neighbours in the stream arena's list of cut, spare or doomed slabs */
    ad_slab_map map;
    uint64_t id;
    uint64_t fresh;        /* bytes at the beginning that were never handed out, so that they are zero */
    ad_chunk *whole;       /* cut slab: the chunk that is all of it, while it holds nothing */
    ad_slab *parent;       /* piece: the divided slab around it; block that is leaving: the adopted slab around it */
    unsigned place;        /* piece: its number in that slab */
    bool exposed;          /* own slab: other processes have its descriptor or handle */
    bool plain;            /* own slab: it has a handle instead of a descriptor */
    uint32_t taken, dirty; /* divided slab: bits of the pieces that are in use, and that were at any time */
    ad_account *account; /* account that the slab is counted in; NULL: it is a piece, and the divided slab is counted */
    bool adopted;        /* another worker has made the slab */
    bool recovering;     /* adopted, and more blocks of the worker before may be found in it */
    uint64_t blocks;     /* blocks of an adopted slab that are in use */
};

struct ad_stream_arena {
    ad_stream_arena *next;
    ad_memory *memory;
    ad_heap *heap;
    ad_stream *stream;
    ad_slab *cut;      /* slabs that are cut into blocks */
    ad_slab *spare;    /* own slabs without an array, to be used again */
    ad_slab *doomed;   /* slabs to close once the stream has passed; `passed` is not recorded for them yet */
    ad_slab *expected; /* slabs to close once the stream has passed `passed` */
    ad_event *passed;
    unsigned empty; /* number of cut slabs that hold nothing */
    uint64_t spare_bytes, cut_bytes, bytes;
    ad_account *account;
};

static void link_slab(ad_slab **list, ad_slab *s) {
    s->prev = NULL;
    s->next = *list;
    if (*list) (*list)->prev = s;
    *list = s;
}

static void unlink_slab(ad_slab **list, ad_slab *s) {
    if (s->next) s->next->prev = s->prev;
    if (s->prev) s->prev->next = s->next;
    else *list = s->next;
}

/* ---- red zones: of memory that the host can touch ---- */

static void close_range(const ad_memory *m, void *address, uint64_t size) {
    if (!m->backend->asynchronous) AD_REDZONE_CLOSE(address, size);
}

static void open_range(const ad_memory *m, void *address, uint64_t size) {
    if (!m->backend->asynchronous) AD_REDZONE_OPEN(address, size);
}

/* ---- slabs ---- */

static void free_slab(ad_memory *m, ad_slab *s) {
    m->slab_bytes -= s->map.size;
    m->slabs--;
    s->account->slab_bytes -= s->map.size;
    m->announce(m->user, s->account->principal, s->id, s->map.size, -1);
    open_range(m, s->map.base, s->map.size);
    m->backend->slab_close(m->device, &s->map);
    ad__account_close(s->account);
    free(s);
}

static void free_piece(ad_memory *m, ad_slab *piece) {
    ad_slab *parent = piece->parent;
    parent->taken &= ~(1u << piece->place);
    if (!parent->taken) {
        unlink_slab(&m->divided, parent);
        free_slab(m, parent);
    }
    free(piece);
}

/* End a block of an adopted slab, which goes with its last one once recovery is over. */
static void end_adopted_block(ad_memory *m, ad_slab *s) {
    if (!--s->blocks && !s->recovering) free_slab(m, s);
}

static void close_slab(ad_stream_arena *e, ad_slab *s) {
    e->bytes -= s->map.size;
    if (s->parent && s->parent->adopted) {
        end_adopted_block(e->memory, s->parent);
        free(s);
    } else if (s->parent) {
        free_piece(e->memory, s);
    } else {
        free_slab(e->memory, s);
    }
}

static void close_slabs(ad_stream_arena *e, ad_slab **list) {
    for (ad_slab *s = *list, *next; s; s = next) {
        next = s->next;
        close_slab(e, s);
    }
    *list = NULL;
}

/* Record the point in the stream after which the doomed slabs are unused. False: the backend cannot. */
static bool record_passed(ad_stream_arena *e) {
    const ad_backend *b = e->memory->backend;
    if (!e->passed && b->event_open(e->memory->device, false, &e->passed, NULL)) return false;
    if (b->event_record(e->passed, e->stream, NULL)) return false;
    e->expected = e->doomed;
    e->doomed = NULL;
    return true;
}

bool ad__stream_arena_reap(ad_stream_arena *e) {
    if (e->expected && e->memory->backend->event_done(e->passed, NULL) == 1) close_slabs(e, &e->expected);
    if (e->doomed && !e->expected) record_passed(e);
    return e->expected || e->doomed;
}

/* Close a slab that is in no list, once the stream has passed all that uses it. */
static void retire_slab(ad_stream_arena *e, ad_slab *s) {
    if (e->stream && e->memory->backend->asynchronous) {
        link_slab(&e->doomed, s);
        ad__stream_arena_reap(e);
    } else {
        close_slab(e, s);
    }
}

static void unlink_spare(ad_stream_arena *e, ad_slab *s) {
    unlink_slab(&e->spare, s);
    e->spare_bytes -= s->map.size;
    open_range(e->memory, s->map.base, s->map.size);
}

static void drop_spare(ad_stream_arena *e, ad_slab *s) {
    unlink_spare(e, s);
    retire_slab(e, s);
}

static void drop_empty(ad_stream_arena *e, ad_slab *s) {
    unlink_slab(&e->cut, s);
    ad__heap_remove(e->heap, s->whole);
    e->empty--;
    e->cut_bytes -= s->map.size;
    retire_slab(e, s);
}

void ad__stream_arena_trim(ad_stream_arena *e) {
    while (e->spare) drop_spare(e, e->spare);
    for (ad_slab *s = e->cut, *next; s && e->empty; s = next) {
        next = s->next;
        if (s->whole) drop_empty(e, s);
    }
}

void ad__stream_arena_count(const ad_stream_arena *e, uint64_t *bytes, uint64_t *free_blocks) {
    *bytes = e->bytes;
    *free_blocks = e->empty;
    for (const ad_slab *s = e->spare; s; s = s->next) ++*free_blocks;
}

/* True if the account may have a slab of so many bytes more. */
static bool has_slab_room(const ad_memory *m, const ad_account *a, uint64_t size) {
    uint64_t room = ad__account_room(a, m->limit);
    return size <= room && a->slab_bytes <= room - size;
}

/* Close spare slabs of all stream arenas until `size` bytes fit. Waiting for the device is better than failing. */
static void trim_all_arenas(ad_memory *m, const ad_account *a, uint64_t size) {
    for (ad_stream_arena *e = m->arenas; e && !has_slab_room(m, a, size); e = e->next) {
        ad__stream_arena_trim(e);
        if (!e->doomed && !e->expected) continue;
        if (m->backend->stream_wait(e->stream, NULL)) continue; /* the next operation on a lost device reports it */
        close_slabs(e, &e->expected);
        close_slabs(e, &e->doomed);
    }
}

static bool ensure_room(ad_memory *m, const ad_account *a, uint64_t size) {
    if (!has_slab_room(m, a, size)) trim_all_arenas(m, a, size);
    return has_slab_room(m, a, size);
}

static int report_full(const ad_stream_arena *e, uint64_t size, ad_fault *fault) {
    return ad__account_full(e->account, size, e->memory->limit, fault);
}

static ad_slab *create_slab(ad_stream_arena *e, uint64_t size, bool plain, ad_fault *fault) {
    ad_memory *m = e->memory;
    if (size > m->limit || !ensure_room(m, e->account, size)) {
        report_full(e, size, fault);
        return NULL;
    }
    ad_slab *s = ad__os.calloc(1, sizeof *s);
    if (!s) {
        ad__fault(fault, AD_E_MEMORY, "out of host memory");
        return NULL;
    }
    ad_fault why = {0};
    int (*create)(ad_device *, uint64_t, ad_slab_map *, ad_fault *) =
        plain ? m->backend->slab_create_plain : m->backend->slab_create;
    int status = create(m->device, size, &s->map, &why);
    if (status == AD_E_MEMORY) { /* another process may have taken what the limit left */
        trim_all_arenas(m, e->account, m->limit + 1);
        status = create(m->device, size, &s->map, &why);
    }
    if (status) {
        free(s);
        if (status == AD_E_MEMORY) ad__account_full(e->account, size, 0, fault);
        else ad__fault(fault, status, "%s", *why.text ? why.text : ad__error_text(status));
        return NULL;
    }
    s->id = ++*m->next_id;
    s->fresh = s->map.size;
    s->plain = plain;
    s->account = e->account;
    s->account->users++;
    s->account->slab_bytes += s->map.size;
    m->slab_bytes += s->map.size;
    m->slabs++;
    int fd = plain ? -1 : ad__os.dup(s->map.fd);
    if (fd >= 0) m->announce(m->user, s->account->principal, s->id, s->map.size, fd);
    return s;
}

/* Find a divided slab of this principal with a free piece, or make one. NULL with a fault. */
static ad_slab *find_divided_slab(ad_stream_arena *e, ad_fault *fault) {
    ad_memory *m = e->memory;
    ad_slab *s = m->divided;
    while (s && (s->taken == (1u << PIECES) - 1 || s->account != e->account)) s = s->next;
    if (s || !(s = create_slab(e, FIRST_SLAB, false, fault))) return s;
    link_slab(&m->divided, s);
    return s;
}

/* Make the piece of a divided slab that a stream arena begins with. NULL with a fault. */
static ad_slab *create_piece(ad_stream_arena *e, ad_fault *fault) {
    ad_slab *piece = ad__os.calloc(1, sizeof *piece), *parent = piece ? find_divided_slab(e, fault) : NULL;
    if (!parent) {
        if (!piece) ad__fault(fault, AD_E_MEMORY, "out of host memory");
        free(piece);
        return NULL;
    }
    unsigned place = (unsigned)__builtin_ctz(~parent->taken);
    piece->parent = parent;
    piece->place = place;
    piece->map = (ad_slab_map){.base = (char *)parent->map.base + place * PIECE, .size = PIECE, .fd = -1};
    piece->fresh = parent->dirty >> place & 1 ? 0 : PIECE;
    parent->taken |= 1u << place;
    parent->dirty |= 1u << place;
    return piece;
}

/* ---- blocks ---- */

static void charge_block(ad_stream_arena *e, ad_use use, ad_block *b) {
    b->use = use;
    b->payer = e->account;
    ad__account_charge(e->account, use, b->size);
    e->memory->used += b->size;
}

void ad__memory_charge(ad_block *b, ad_account *payer) {
    ad_account *before = b->payer;
    if (!b->slab || payer == before) return;
    ad__account_charge(payer, b->use, b->size);
    b->payer = payer;
    ad__account_return(before, b->use, b->size);
}

/* Find the smallest spare slab with `size` bytes that is at most a quarter larger, and that the principal may have.
 * NULL: there is none. */
static ad_slab *find_spare(ad_stream_arena *e, uint64_t size) {
    ad_slab *best = NULL;
    for (ad_slab *s = e->spare; s; s = s->next)
        if (s->map.size >= size && s->map.size - size <= size / 4 && (!best || s->map.size < best->map.size)) best = s;
    return best && ad__account_has_room(e->account, best->map.size) ? best : NULL;
}

/* Create a slab for one block alone. The device may round its size up, and the account pays for all of it. */
static ad_slab *create_own_slab(ad_stream_arena *e, uint64_t size, bool plain, ad_fault *fault) {
    ad_slab *s = create_slab(e, size, plain, fault);
    if (!s) return NULL;
    const uint64_t all = s->map.size;
    e->bytes += all;
    if (ad__account_has_room(e->account, all)) return s;
    close_slab(e, s);
    ad__account_refuse(e->account, all, fault);
    return NULL;
}

/* size: a multiple of OWN_GRAIN. */
static int take_own_slab(ad_stream_arena *e, uint64_t size, ad_block *out, ad_fault *fault) {
    ad_fault why = {0};
    ad_slab *s = find_spare(e, size);
    if (s) unlink_spare(e, s);
    else if (!(s = create_own_slab(e, size, false, &why))) return ad__fault(fault, why.code, "%s", why.text);
    *out = (ad_block){.slab = s, .address = s->map.base, .size = s->map.size, .clean = s->fresh == s->map.size};
    s->fresh = 0;
    return 0;
}

/* Add a cut slab with room for `size` bytes. */
static int add_cut_slab(ad_stream_arena *e, uint64_t size, ad_fault *fault) {
    ad_fault why = {0};
    uint64_t bytes = FIRST_SLAB;
    while (bytes < 2 * size || bytes < e->cut_bytes) bytes *= 2;
    if (bytes > e->memory->slab_size) bytes = e->memory->slab_size;
    bool first = !e->cut_bytes && size <= PIECE / 4 && e->memory->slab_size >= FIRST_SLAB;
    ad_slab *s = first ? create_piece(e, &why) : create_slab(e, bytes, false, &why);
    if (!s) return ad__fault(fault, why.code, "%s", why.text);
    e->bytes += s->map.size;
    if (ad__heap_add(e->heap, s, s->map.size)) {
        close_slab(e, s);
        return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    }
    link_slab(&e->cut, s);
    e->cut_bytes += s->map.size;
    close_range(e->memory, s->map.base, s->map.size);
    return 0;
}

static void fill_block(ad_stream_arena *e, ad_chunk *c, ad_block *out) {
    ad_slab *s = c->range;
    if (s->whole) {
        s->whole = NULL;
        e->empty--;
    }
    *out = (ad_block){.slab = s,
                      .chunk = c,
                      .address = (char *)s->map.base + c->offset,
                      .size = c->size - AD_REDZONE,
                      .clean = c->offset + c->size <= s->fresh};
    if (c->offset < s->fresh) s->fresh = c->offset;
}

static int take_chunk(ad_stream_arena *e, uint64_t size, ad_block *out, ad_fault *fault) {
    ad_chunk *c = ad__heap_take(e->heap, size + AD_REDZONE);
    if (!c) {
        int status = add_cut_slab(e, size, fault);
        if (status) return status;
        c = ad__heap_take(e->heap, size + AD_REDZONE);
        if (!c) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    }
    fill_block(e, c, out);
    open_range(e->memory, out->address, out->size);
    return 0;
}

static int take_block(ad_stream_arena *e, uint64_t size, ad_use use, ad_block *out, ad_fault *fault) {
    const bool own = size > e->memory->slab_size / 4, possible = size <= AD_HEAP_MOST;
    const uint64_t grain = own ? OWN_GRAIN : AD_HEAP_GRAIN,
                   rounded = possible ? (size + grain - 1) / grain * grain : size;
    if (!ad__account_has_room(e->account, rounded)) return ad__account_refuse(e->account, size, fault);
    if (!possible) return report_full(e, size, fault);
    const int status = (own ? take_own_slab : take_chunk)(e, rounded, out, fault);
    if (!status) charge_block(e, use, out);
    return status;
}

int ad__memory_take(ad_stream_arena *e, uint64_t size, ad_block *out, ad_fault *fault) {
    return take_block(e, size, AD_USE_BUFFER, out, fault);
}

int ad__memory_borrow(ad_stream_arena *e, uint64_t size, ad_block *out, ad_fault *fault) {
    return take_block(e, size, AD_USE_WORKSPACE, out, fault);
}

static int take_apart(ad_stream_arena *e, uint64_t size, bool plain, ad_block *out, ad_fault *fault) {
    ad_fault why = {0};
    int status = size > AD_HEAP_MOST ? report_full(e, size, fault) : ad__account_check(e->account, size, fault);
    if (status) return status;
    ad_slab *s = create_own_slab(e, size, plain, &why);
    if (!s) return ad__fault(fault, why.code, "%s", why.text);
    s->fresh = 0;
    *out = (ad_block){.slab = s, .address = s->map.base, .size = s->map.size, .clean = true};
    charge_block(e, AD_USE_BUFFER, out);
    return 0;
}

int ad__memory_take_apart(ad_stream_arena *e, uint64_t size, ad_block *out, ad_fault *fault) {
    return take_apart(e, size, false, out, fault);
}

int ad__memory_take_plain(ad_stream_arena *e, uint64_t size, ad_block *out, ad_fault *fault) {
    return take_apart(e, size, true, out, fault);
}

bool ad__memory_is_plain(const ad_block *b) { return b->slab->plain; }

int ad__memory_handle(const ad_stream_arena *e, const ad_block *b, uint8_t handle[AD_SLAB_HANDLE], ad_fault *fault) {
    return e->memory->backend->slab_handle(e->memory->device, &b->slab->map, handle, fault);
}

bool ad__memory_is_apart(const ad_block *b) { return !b->chunk && b->size == b->slab->map.size; }

void ad__memory_expose(ad_block *b) { b->slab->exposed = b->open = true; }

bool ad__memory_is_exposed(const ad_block *b) { return b->slab->exposed; }

int ad__memory_descriptor(const ad_block *b) { return b->slab->map.fd; }

/* Close the spare slabs that have waited longest, until one of `size` bytes may be kept. False: it is too large. A
 * program that goes on to arrays of another size would else have a slab made for each of them. */
static bool make_spare_room(ad_stream_arena *e, uint64_t size) {
    const uint64_t most = e->memory->limit / SPARE_PART;
    if (size > most) return false;
    while (e->spare_bytes + size > most) {
        ad_slab *oldest = e->spare;
        while (oldest->next) oldest = oldest->next;
        drop_spare(e, oldest);
    }
    return true;
}

static void give_own_slab(ad_stream_arena *e, ad_slab *s) {
    if (s->exposed || !make_spare_room(e, s->map.size)) {
        retire_slab(e, s);
        return;
    }
    link_slab(&e->spare, s);
    e->spare_bytes += s->map.size;
    close_range(e->memory, s->map.base, s->map.size);
}

/* End a block of an adopted slab, once the stream has passed all that uses it. Meanwhile an object without memory is
 * among the stream arena's doomed slabs in its place. */
static void retire_adopted_block(ad_stream_arena *e, ad_slab *s) {
    const ad_backend *b = e->memory->backend;
    ad_slab *leaving = e->stream && b->asynchronous ? ad__os.calloc(1, sizeof *leaving) : NULL;
    if (leaving) {
        leaving->parent = s;
        retire_slab(e, leaving);
        return;
    }
    if (e->stream && b->asynchronous) b->stream_wait(e->stream, NULL);
    end_adopted_block(e->memory, s);
}

void ad__memory_give(ad_stream_arena *e, ad_block *b) {
    if (!b->slab) return;
    ad__account_return(b->payer, b->use, b->size);
    e->memory->used -= b->size;
    if (b->slab->adopted) {
        retire_adopted_block(e, b->slab);
    } else if (!b->chunk) {
        give_own_slab(e, b->slab);
    } else {
        close_range(e->memory, b->address, b->size);
        ad_chunk *whole = ad__heap_give(e->heap, b->chunk);
        if (whole) {
            b->slab->whole = whole;
            if (++e->empty > EMPTIES) drop_empty(e, b->slab);
        }
    }
    b->slab = NULL;
}

/* ---- what another worker has left ---- */

void ad__memory_place(const ad_block *b, uint64_t *slab, uint64_t *offset) {
    const ad_slab *s = b->slab->parent ? b->slab->parent : b->slab;
    *slab = s->id;
    *offset = (uint64_t)((const char *)b->address - (const char *)s->map.base);
}

ad_slab *ad__memory_adopt(ad_memory *m, const char *principal, uint64_t id, const ad_slab_map *map) {
    ad_slab *s = ad__os.calloc(1, sizeof *s);
    if (!s) return NULL;
    *s = (ad_slab){.map = *map, .id = id, .adopted = true, .recovering = true};
    if (!(s->account = ad__account_open(&m->accounts, principal))) {
        free(s);
        return NULL;
    }
    s->account->slab_bytes += map->size;
    m->slab_bytes += map->size;
    m->slabs++;
    return s;
}

int ad__memory_restore(ad_stream_arena *e, ad_slab *s, uint64_t offset, uint64_t size, ad_block *out) {
    if (offset > s->map.size || size > s->map.size - offset) return AD_E_EXTENT;
    *out = (ad_block){.slab = s, .address = (char *)s->map.base + offset, .size = size};
    s->blocks++;
    charge_block(e, AD_USE_BUFFER, out);
    return 0;
}

void ad__memory_cut(ad_stream_arena *e, ad_block *const *block, size_t n) {
    ad_slab *s = block[0]->slab;
    if (!s->adopted || s->account != e->account || s->blocks != n || (n == 1 && block[0]->size == s->map.size)) return;
    ad_piece *piece = ad__os.calloc(n, sizeof *piece);
    if (!piece) return;
    for (size_t i = 0; i < n; i++) {
        piece[i].offset = (uint64_t)((const char *)block[i]->address - (const char *)s->map.base);
        piece[i].size = block[i]->size;
    }
    if (!ad__heap_add_used(e->heap, s, s->map.size, piece, n)) {
        close_range(e->memory, s->map.base, s->map.size);
        for (size_t i = 0; i < n; i++) {
            block[i]->chunk = piece[i].chunk;
            open_range(e->memory, block[i]->address, block[i]->size);
        }
        s->adopted = false;
        link_slab(&e->cut, s);
        e->cut_bytes += s->map.size;
        e->bytes += s->map.size;
    }
    free(piece);
}

void ad__memory_adopted(ad_memory *m, ad_slab *s) {
    s->recovering = false;
    if (!s->blocks) free_slab(m, s);
}

/* ---- arenas ---- */

ad_stream_arena *ad__stream_arena_open(ad_memory *m, const char *principal, ad_stream *stream) {
    ad_stream_arena *e = ad__os.calloc(1, sizeof *e);
    if (!e) return NULL;
    if (!(e->heap = ad__heap_new())) goto free_stream_arena;
    if (!(e->account = ad__account_open(&m->accounts, principal))) goto free_heap;
    e->memory = m;
    e->stream = stream;
    e->next = m->arenas;
    m->arenas = e;
    return e;

free_heap:
    ad__heap_free(e->heap);
free_stream_arena:
    free(e);
    return NULL;
}

bool ad__stream_arena_is_of(const ad_stream_arena *e, const ad_memory *m) { return e->memory == m; }

ad_account *ad__stream_arena_account(const ad_stream_arena *e) { return e->account; }

void ad__stream_arena_close(ad_stream_arena *e) {
    ad__stream_arena_trim(e);
    close_slabs(e, &e->expected);
    close_slabs(e, &e->doomed);
    if (e->passed) e->memory->backend->event_close(e->passed);
    ad_stream_arena **at = &e->memory->arenas;
    while (*at != e) at = &(*at)->next;
    *at = e->next;
    ad__heap_free(e->heap);
    ad__account_close(e->account);
    free(e);
}
