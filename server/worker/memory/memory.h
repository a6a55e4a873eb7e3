/* Device memory: slabs, cut into blocks for the arrays of one stream.
 *
 * A stream arena is what one stream of one session has. Memory that it gives back is taken again in the stream's order,
 * so nothing ever waits for the device; the price is that two streams share no memory. A slab belongs to one principal
 * and is announced to arrayd with its descriptor. What a stream arena needs first is a share of a slab that it has in
 * common with others of its principal, so that many small clients take little; then come slabs of its own, each larger
 * than the last, up to slab_size. Arrays larger than a quarter of that have one to themselves. Only whoever runs the
 * engine calls these. */
#ifndef AD_SERVER_WORKER_MEMORY_MEMORY_H
#define AD_SERVER_WORKER_MEMORY_MEMORY_H

#include "kernels/backend.h"
#include "server/worker/memory/account.h"
#include "server/worker/memory/heap.h"

typedef struct ad_slab ad_slab;
typedef struct ad_stream_arena ad_stream_arena;

/* The memory of one worker and device. */
typedef struct ad_memory {
    const ad_backend *backend;
    ad_device *device;
    uint64_t slab_size, limit;
    uint64_t slab_bytes, slabs, used; /* now */
    uint64_t *next_id;                /* the last id of a slab; shared by all devices */
    ad_stream_arena *arenas;
    ad_account *accounts;
    ad_slab *shared; /* slabs that are divided into shares */
    /* Tell arrayd: a slab was made (fd is the callee's, a duplicate) or given back (fd -1). */
    void (*announce)(void *user, const char *principal, uint64_t id, uint64_t size, int fd);
    void *user;
} ad_memory;

/* A piece of device memory. */
typedef struct ad_block {
    ad_slab *slab;
    ad_chunk *chunk; /* NULL: the whole slab */
    void *address;
    uint64_t size; /* bytes charged */
    bool clean;    /* known to be all zero when it was handed out */
    bool open;     /* others may have its slab, and write there */
    ad_use use;
    ad_account *payer; /* to whom it is charged */
} ad_block;

/* A stream arena of a principal, for what runs on stream (NULL: nothing that outlives a call). NULL: no memory. */
ad_stream_arena *ad__stream_arena_open(ad_memory *m, const char *principal, ad_stream *stream);
/* Its principal's on this device. */
ad_account *ad__stream_arena_account(const ad_stream_arena *e);
bool ad__stream_arena_is_of(const ad_stream_arena *e, const ad_memory *m);
/* Its stream has passed all that used it. */
void ad__stream_arena_close(ad_stream_arena *e);
/* Give slabs back that the stream has passed by now; true: some are left that it has not. */
bool ad__stream_arena_reap(ad_stream_arena *e);
/* Give back whatever holds no array. */
void ad__stream_arena_trim(ad_stream_arena *e);
/* Bytes in slabs, and the pieces of them that hold nothing. */
void ad__stream_arena_count(const ad_stream_arena *e, uint64_t *bytes, uint64_t *free_blocks);
/* A block of size bytes (not 0), at least 64-byte aligned, for a buffer. AD_E_MEMORY, with a fault that names the limit
 * and says who holds what; AD_E_DEVICE and others of the backend. */
int ad__memory_take(ad_stream_arena *e, uint64_t size, ad_block *out, ad_fault *fault);
/* The same for what an operation needs besides. */
int ad__memory_borrow(ad_stream_arena *e, uint64_t size, ad_block *out, ad_fault *fault);
/* A block for a buffer that has a slab to itself, of no more than it needs and all zero. */
int ad__memory_take_apart(ad_stream_arena *e, uint64_t size, ad_block *out, ad_fault *fault);
/* The same, of memory that has a handle instead of a descriptor. AD_E_UNSUPPORTED: the backend has none such. */
int ad__memory_take_plain(ad_stream_arena *e, uint64_t size, ad_block *out, ad_fault *fault);
/* Such a block's. */
bool ad__memory_is_plain(const ad_block *b);
int ad__memory_handle(const ad_stream_arena *e, const ad_block *b, uint8_t handle[AD_SLAB_HANDLE], ad_fault *fault);
/* It has a slab to itself, however it came to that. */
bool ad__memory_is_apart(const ad_block *b);
/* The slab of such a block is about to be seen by others: it is never used for another one, and open for good. */
void ad__memory_expose(ad_block *b);
bool ad__memory_is_exposed(const ad_block *b);
/* Its descriptor, which stays the slab's; -1: it is plain. */
int ad__memory_descriptor(const ad_block *b);
void ad__memory_give(ad_stream_arena *e, ad_block *b);
/* Where it is: a slab's id, and the offset in that. */
void ad__memory_place(const ad_block *b, uint64_t *slab, uint64_t *offset);
/* A slab that another worker made. It is not cut any further (but ad__memory_cut), and goes with the last block in it.
 * NULL: no memory. */
ad_slab *ad__memory_adopt(ad_memory *m, const char *principal, uint64_t id, const ad_slab_map *map);
/* A block of it that another worker has handed out. AD_E_EXTENT. */
int ad__memory_restore(ad_stream_arena *e, ad_slab *s, uint64_t offset, uint64_t size, ad_block *out);
/* n blocks in the order of their addresses, which are all that is in use of an adopted slab: what is between them may
 * be handed out from now on. Otherwise it stays as it is. */
void ad__memory_cut(ad_stream_arena *e, ad_block *const *block, size_t n);
/* Give an adopted slab back unless there are blocks in it. */
void ad__memory_adopted(ad_memory *m, ad_slab *s);
/* Somebody else pays for a block from now on. */
void ad__memory_charge(ad_block *b, ad_account *payer);

#endif
