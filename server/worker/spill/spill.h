/* Buffers that have not been used for longest lie in host memory while a device is full.
 *
 *     device memory                             host memory
 *     ┌──────────────┐  ad__spill_make_room    ┌──────────────┐
 *     │  listed:     │ ──────────────────────▶ │  moved:      │
 *     │  can leave   │   copy on its home      │  no address  │
 *     └──────────────┘                         └──────────────┘
 *        ▲        │ ad__spill_begin                  │
 *        │        ▼                                  │ ad__spill_begin: copy on the
 *        │     in use: stays  ◀──────────────────────┘ stream that uses the buffer
 *        └────────┘ ad__spill_end
 *
 * A request that finds no device memory moves out the coldest buffers of the device, of any principal. The copy runs on
 * the stream whose memory it is, after all that has used the buffer. The memory goes back to that stream's arena. So
 * everything stays in stream order, and only a request for memory of another stream waits. An operation brings its
 * buffers back first, on its own stream. A moved buffer has no address; its id, its poison and its dependencies stay.
 *
 * Host memory consists of slabs, too: memory files, whose descriptors arrayd has, so that another worker finds moved
 * buffers. A buffer's memory may be in a checkpoint. Then it is used again only when the copy is complete and the
 * journal says so (checkpoint/checkpoint.h).
 *
 * Code that takes a buffer's address does so between ad__spill_begin and ad__spill_end. Variables of modules are never
 * moved, and neither is shared memory (sharing/sharing.h) that more than sessions' buffers hold. Other shared memory and
 * small buffers are moved when nothing else is left.
 *
 * Runner: all functions here. They do nothing where buffers are not moved (option host-memory is 0). */
#ifndef AD_SERVER_WORKER_SPILL_SPILL_H
#define AD_SERVER_WORKER_SPILL_SPILL_H

#include "server/worker/session.h"

#define AD_SPILL_LEAST (64u << 10) /* bytes; smaller buffers leave when nothing else is left */

#define AD_SPILL_NOBODY "" /* principal of slabs of host memory; no session has it */

typedef struct ad_moved ad_moved; /* a buffer's bytes in host memory */

typedef struct ad_spill {
    ad_backend table; /* functions that allocate slabs of host memory, as a backend's do for a device */
    ad_memory host;
    ad_stream_arena *stream_arena;
    uint64_t limit; /* bytes of host memory, as configured */
    uint64_t least;
    uint64_t every, takes;        /* for tests: the coldest buffer leaves at every `every`th request for memory */
    uint64_t moved_out, moved_in; /* bytes so far */
    uint64_t bytes;               /* bytes of buffers that are moved now */
    ad_moved *under_way;          /* objects with memory that a copy may still use, or another worker would need */
    ad_moved *spare;              /* objects without a block */
} ad_spill;

/* Set w->spill, or leave it NULL where buffers are not moved. AD_E_MEMORY. */
int ad__spill_open(ad_worker *w, ad_fault *fault);
void ad__spill_close(ad_worker *w);

/* Begin to use buffers (NULL: none) on the stream queue: moved ones come back, and all stay. ad__spill_end is called
 * also after a failure. */
int ad__spill_begin(ad_worker_session *s, ad_stream_queue *queue, ad_buffer *const *buffer, int n, ad_fault *fault);
/* End the use of buffers. */
void ad__spill_end(ad_worker_session *s, ad_buffer *const *buffer, int n);
/* Give a moved buffer device memory, without its bytes: it is about to be written as a whole. */
int ad__spill_renew(ad_worker_session *s, ad_stream_queue *queue, ad_buffer *b, ad_fault *fault);
/* Give up the buffer's place in the list, and its host memory if it has any. */
void ad__spill_forget(ad_worker *w, ad_buffer *b);
/* Get the address of a moved buffer's bytes. They are there once its home stream queue is idle, until the buffer is
 * used. */
const char *ad__spill_bytes_of(const ad_buffer *b);
/* Get the block with a moved buffer's bytes. */
const ad_block *ad__spill_block_of(const ad_buffer *b);

/* Move buffers out, after a request for `size` bytes of the stream queue's device has failed. False: no buffer can
 * leave, or host memory is full. */
bool ad__spill_make_room(ad_worker *w, ad_stream_queue *queue, uint64_t size);
/* Count a request for memory, for tests (ARRAYD_SPILL_EVERY). */
void ad__spill_stir(ad_worker *w, ad_stream_queue *queue);
/* Wait until what the session has brought back is complete, so that another worker would find it on the device. */
int ad__spill_arrive(ad_worker_session *s, ad_fault *fault);
/* Check which copies are complete by now. */
void ad__spill_look(ad_worker *w);
/* Copy a block of the stream queue's device, which nothing changes any more, to host memory. False: no memory, or
 * the copy failed. */
bool ad__spill_copy(ad_worker *w, ad_stream_queue *queue, const ad_stream_arena *home, const ad_block *from,
                    ad_block *to);
extern const ad_component ad__component_spill;
/* Restore a buffer whose bytes another worker has left in a slab of host memory. AD_E_MEMORY, AD_E_EXTENT. */
int ad__spill_take_up(ad_worker *w, ad_stream_queue *queue, ad_buffer *b, ad_slab *slab, const ad_journal_row *row);
/* Cut adopted slabs, when all that another worker has left is restored. */
void ad__spill_recovered(ad_worker *w);
/* Map a slab of host memory that another worker has made. */
int ad__spill_attach(ad_worker *w, int fd, uint64_t size, ad_slab_map *out, ad_fault *fault);
/* Give back host memory that holds nothing. settle: only if no buffer is moved. */
void ad__spill_trim(ad_worker *w);
void ad__spill_settle(ad_worker *w);

#define AD_SPILL_TEXT 80
/* Write what an error for lack of memory adds; "": nothing. */
void ad__spill_text(const ad_worker *w, char out[AD_SPILL_TEXT]);

#endif
