/* More than fits: buffers that have not been used for longest lie in host memory while a device is full.
 *
 * Who takes memory and finds none has the coldest buffers of the device moved out (ad__spill_make_room), whosever they
 * are. The copy runs on the stream whose memory it is, after all that has used the buffer, and the memory goes back to
 * that stream's stream arena: so everything stays in stream order, and nothing waits but who needs memory of another
 * stream. Who uses a buffer brings it back first, on its own stream. In between the buffer has no address; its id, its
 * error, and what its contents depend on stay as they are.
 *
 * Host memory consists of slabs, too: memory files, whose descriptors arrayd has, so that another worker can go on with
 * what is moved. Where a written state has the buffer, the memory that it leaves on either side is used again only when
 * the copy is complete and that is written down (journal/checkpoint.h): then who needs it waits for the copy.
 *
 * Whatever takes a buffer's address encloses that between ad__spill_begin and ad__spill_end: what is in use is not
 * moved. Nor is memory that others hold, too (sharing/sharing.h), nor a module's variable; what is small, only when
 * nothing else is left. Only whoever runs the engine calls these; all of them may be called where nothing is moved
 * (option host-memory is 0). */
#ifndef AD_SERVER_WORKER_MEMORY_SPILL_SPILL_H
#define AD_SERVER_WORKER_MEMORY_SPILL_SPILL_H

#include "server/worker/net/session.h"

#define AD_SPILL_LEAST (64u << 10) /* bytes; what is smaller goes when nothing else is left */

#define AD_SPILL_NOBODY "" /* the principal that slabs of host memory belong to; no session's */

typedef struct ad_moved ad_moved; /* a buffer's bytes in host memory */

typedef struct ad_spill {
    ad_backend table; /* how its own memory is allocated: in slabs, as that of devices is */
    ad_memory host;
    ad_stream_arena *stream_arena;
    uint64_t limit; /* of it, as the configuration has it */
    uint64_t least;
    uint64_t every, takes;        /* for tests: the coldest buffer goes at each so many requests for memory */
    uint64_t moved_out, moved_in; /* bytes, so far */
    uint64_t bytes;               /* of buffers that are moved now */
    ad_moved *under_way;          /* with memory that a copy may still read or write, or another worker */
    ad_moved *spare;              /* without a block */
} ad_spill;

/* Sets w->spill, or leaves it NULL where nothing is to be moved. AD_E_MEMORY. */
int ad__spill_open(ad_worker *w, ad_fault *fault);
void ad__spill_close(ad_worker *w);
/* A stream queue is opened: for buffers that will lie in its memory. AD_E_MEMORY. */
int ad__spill_stream_queue(ad_worker *w, ad_stream_queue *queue);

/* These buffers (NULL: none) are about to be used on the stream queue: they come back if they were moved, and stay.
 * Also after a failure ad__spill_end is called. */
int ad__spill_begin(ad_session *s, ad_stream_queue *queue, ad_buffer *const *buffer, int n, ad_fault *fault);
/* They have been used, or been made. */
void ad__spill_end(ad_session *s, ad_buffer *const *buffer, int n);
/* The buffer is about to be written as a whole: it need not come back as it was. */
int ad__spill_renew(ad_session *s, ad_stream_queue *queue, ad_buffer *b, ad_fault *fault);
/* The buffer gives up its memory, wherever that is. */
void ad__spill_forget(ad_worker *w, ad_buffer *b);
/* Where the bytes of a moved buffer are once its home stream queue is idle, until it is used otherwise. */
const char *ad__spill_bytes_of(const ad_buffer *b);
/* The memory that has them. */
const ad_block *ad__spill_block_of(const ad_buffer *b);

/* A request for so many bytes of the stream queue's device has failed: move something out. False: there is nothing that
 * would help, or no room for it. */
bool ad__spill_make_room(ad_worker *w, ad_stream_queue *queue, uint64_t size);
/* For tests: ARRAYD_SPILL_EVERY. */
void ad__spill_stir(ad_worker *w, ad_stream_queue *queue);
/* What the session has brought back is complete, and another worker would find it there. */
int ad__spill_arrive(ad_session *s, ad_fault *fault);
/* Look which copies are complete by now. */
void ad__spill_look(ad_worker *w);
/* A copy in host memory of a block of this stream queue's device that nothing changes any more; false: there is none.
 */
bool ad__spill_copy(ad_worker *w, ad_stream_queue *queue, const ad_stream_arena *home, const ad_block *from,
                    ad_block *to);
/* The session ends, and its streams are idle: nothing of it is under way any more. */
void ad__spill_over(ad_session *s);
/* The bytes of a buffer of this stream queue are where another worker has left them, in a slab of host memory.
 * AD_E_MEMORY, AD_E_EXTENT. */
int ad__spill_take_up(ad_worker *w, ad_stream_queue *queue, ad_buffer *b, ad_slab *slab, const ad_journal_row *row);
/* All that was left is taken up: what is free in between can be used. */
void ad__spill_recovered(ad_worker *w);
/* Map a slab that another worker has made. */
int ad__spill_attach(ad_worker *w, int fd, uint64_t size, ad_slab_map *out, ad_fault *fault);
/* Give host memory back that holds nothing; settle: if nothing is moved at all. */
void ad__spill_trim(ad_worker *w);
void ad__spill_settle(ad_worker *w);

#define AD_SPILL_TEXT 80
/* What an error about memory adds; "": nothing. */
void ad__spill_text(const ad_worker *w, char out[AD_SPILL_TEXT]);
uint64_t ad__spill_counter(const ad_worker *w, int index);

#endif
