/* Device memory: slabs, cut into blocks for the arrays of one stream.
 *
 *     account of a principal on a device
 *     ├── divided slab   ├─ piece ─┼─ piece ─┼─ ... ─┤   one piece for each stream arena
 *     └── stream arena of one stream
 *         ├── piece of a divided slab  ┐
 *         ├── cut slab                 ├─ cut into blocks by the heap
 *         ├── cut slab, twice as large ┘
 *         └── own slab   one block, for an array above slab_size / 4
 *
 * A stream arena is the memory of one stream of one session. Memory that is given back to it is used again in the
 * stream's order, so nothing waits for the device. The price is that two streams share no memory.
 *
 * A slab belongs to one principal, and arrayd is sent its descriptor. A stream arena begins with a piece of a slab
 * that stream arenas of its principal have in common, so many small clients take little. Then it makes slabs of its
 * own, each as large as all before, up to slab_size.
 *
 * Runner: all functions here. */
#ifndef AD_SERVER_WORKER_MEMORY_MEMORY_H
#define AD_SERVER_WORKER_MEMORY_MEMORY_H

#include "kernels/backend.h"
#include "server/worker/memory/account.h"
#include "server/worker/memory/heap.h"

typedef struct ad_slab ad_slab;
typedef struct ad_stream_arena ad_stream_arena;

/* The memory of one device in this worker. */
typedef struct ad_memory {
    const ad_backend *backend;
    ad_device *device;
    uint64_t slab_size, limit;
    uint64_t slab_bytes, slabs, used; /* bytes of slabs, number of slabs, bytes of blocks */
    uint64_t *next_id;                /* the last id of a slab, in common for all devices */
    ad_stream_arena *arenas;
    ad_account *accounts;
    ad_slab *divided; /* slabs that are divided into pieces */
    /* Tell arrayd that a slab was made (fd: a duplicate that the callee owns) or given back (fd -1). */
    void (*announce)(void *user, const char *principal, uint64_t id, uint64_t size, int fd);
    void *user;
} ad_memory;

/* A piece of device memory. */
typedef struct ad_block {
    ad_slab *slab;
    ad_chunk *chunk; /* chunk of a cut slab; NULL: the block is a whole slab, or in an adopted one */
    void *address;
    uint64_t size; /* bytes that are charged */
    bool clean;    /* the memory was all zero when it was handed out */
    bool open;     /* others may have its slab, and write there */
    ad_use use;
    ad_account *payer; /* account that it is charged to */
} ad_block;

/* Open a stream arena of a principal for a stream. stream NULL: nothing that uses it outlives a call. NULL: no
 * memory. */
ad_stream_arena *ad__stream_arena_open(ad_memory *m, const char *principal, ad_stream *stream);
/* Get the account of the stream arena's principal on this device. */
ad_account *ad__stream_arena_account(const ad_stream_arena *e);
bool ad__stream_arena_is_of(const ad_stream_arena *e, const ad_memory *m);
/* Close a stream arena, whose stream has passed all that used it. */
void ad__stream_arena_close(ad_stream_arena *e);
/* Close retired slabs that the stream has passed by now. True: some are left. */
bool ad__stream_arena_reap(ad_stream_arena *e);
/* Give back slabs that hold no array. */
void ad__stream_arena_trim(ad_stream_arena *e);
/* Count the bytes of slabs, and the slabs that hold nothing. */
void ad__stream_arena_count(const ad_stream_arena *e, uint64_t *bytes, uint64_t *free_blocks);
/* Take a block of `size` bytes (not 0) for a buffer, aligned to 64 bytes at least. AD_E_MEMORY: the fault names the
 * limit, and who holds what; AD_E_DEVICE and others of the backend. */
int ad__memory_take(ad_stream_arena *e, uint64_t size, ad_block *out, ad_fault *fault);
/* Take a block that an operation needs besides its buffers. Errors as for ad__memory_take. */
int ad__memory_borrow(ad_stream_arena *e, uint64_t size, ad_block *out, ad_fault *fault);
/* Take a block for a buffer with a slab of its own, no larger than needed and all zero. Errors as for
 * ad__memory_take. */
int ad__memory_take_apart(ad_stream_arena *e, uint64_t size, ad_block *out, ad_fault *fault);
/* Take such a block of memory with a handle instead of a descriptor. AD_E_UNSUPPORTED: the backend has no such
 * memory. */
int ad__memory_take_plain(ad_stream_arena *e, uint64_t size, ad_block *out, ad_fault *fault);
/* True if the block was taken by ad__memory_take_plain; its handle. */
bool ad__memory_is_plain(const ad_block *b);
int ad__memory_handle(const ad_stream_arena *e, const ad_block *b, uint8_t handle[AD_SLAB_HANDLE], ad_fault *fault);
/* True if the block is a whole slab, whichever function took it. */
bool ad__memory_is_apart(const ad_block *b);
/* Mark the slab of a block as seen by other processes: it is never used again for another block. */
void ad__memory_expose(ad_block *b);
bool ad__memory_is_exposed(const ad_block *b);
/* Get the slab's descriptor, which the slab keeps. -1: it has a handle. */
int ad__memory_descriptor(const ad_block *b);
void ad__memory_give(ad_stream_arena *e, ad_block *b);
/* Get where the block is: its slab's id, and the offset in that slab. */
void ad__memory_place(const ad_block *b, uint64_t *slab, uint64_t *offset);
/* Adopt a slab that another worker made. It is not cut further (but see ad__memory_cut), and goes with its last
 * block. NULL: no memory. */
ad_slab *ad__memory_adopt(ad_memory *m, const char *principal, uint64_t id, const ad_slab_map *map);
/* Take a block of an adopted slab where another worker had handed it out. AD_E_EXTENT: it leaves the slab. */
int ad__memory_restore(ad_stream_arena *e, ad_slab *s, uint64_t offset, uint64_t size, ad_block *out);
/* Cut an adopted slab, so that the gaps between its blocks can be handed out. The n blocks are all that are in use,
 * in the order of their addresses. The slab stays as it is if that is not possible. */
void ad__memory_cut(ad_stream_arena *e, ad_block *const *block, size_t n);
/* Say that no more blocks of an adopted slab are to be restored: it goes with its last one, and at once if it has none.
 */
void ad__memory_adopted(ad_memory *m, ad_slab *s);
/* Charge a block to another account from now on. */
void ad__memory_charge(ad_block *b, ad_account *payer);

#endif
