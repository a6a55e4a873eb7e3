/* Shared memory: memory that several sessions of a worker hold.
 *
 *     session A ── buffer ──┐
 *     session B ── buffer ──┼──▶ ad_shared ──▶ block, in memory of the home stream queue
 *     capability ───────────┤       │
 *     name ─────────────────┤       └ snapshot: a holder that writes gets a copy first
 *     lease (export) ───────┘         common: all holders write into the same memory
 *
 * A buffer becomes shared when its session makes a capability of it, publishes it, exports it or forks. Nothing is
 * copied. The block stays in the stream arena of its home stream queue, which outlives its session if need be (an
 * orphan). Each holder among sessions has a buffer of its own for it.
 *
 * Shared memory is a snapshot, or it is common. Holders of a snapshot never see each other's writes. Common memory
 * was published to be written: operations on it take effect one after another in the order in which they came, from
 * whatever session. The memory is given back when the last holder is gone.
 *
 * Runner: all functions, unless one says otherwise. */
#ifndef AD_SERVER_WORKER_SHARING_SHARING_H
#define AD_SERVER_WORKER_SHARING_SHARING_H

#include "server/worker/sharing/holders.h"
#include "server/worker/session.h"

struct ad_report_name;

/* A capability. Sessions of its principal that know its 128 bits may attach the memory. */
typedef struct ad_issued_capability ad_issued_capability;
struct ad_issued_capability {
    ad_holder holder;
    ad_issued_capability *next;
    uint64_t half[2];
    ad_worker_session *owner; /* session that made it; NULL: that is over */
    bool readonly;
    uint64_t uses;           /* uses left; 0: any number */
    int64_t expires, linger; /* ns: time of its end, INT64_MAX: never; time that it outlives the owner */
};

/* ns after which the streams of orphans and of leaving imports are checked again */
#define AD_SHARING_LOOK 1000000
#define AD_CAPABILITY_BUCKETS 1024
#define AD_CAPABILITIES 65536 /* capabilities that a session may have */
#define AD_FORK_BUFFERS 65536 /* buffers that a fork passes on, which takes some 100 ms */

typedef struct ad_name ad_name;

typedef struct ad_sharing {
    uint64_t number; /* random number of this worker, by which a client sees that a capability is its server's */
    ad_issued_capability *capability[AD_CAPABILITY_BUCKETS];
    ad_name *names;
    ad_holder *over; /* capabilities and names that messages have ended, until checkpoints have these */
    uint64_t capabilities, published, count, bytes, orphans;
    ad_stream_queue *orphan;     /* list of orphans whose memory others hold */
    ad_stream_queue *going;      /* retired orphans, which nothing needs, until their streams have passed */
    int64_t due;                 /* ns: time of the next ad__sharing_sweep; INT64_MAX: never */
    uint64_t forked;             /* number of sessions that forks have begun */
    ad_worker_session *births;   /* sessions begun by forks, for the I/O thread; under the engine's lock */
    struct ad_exported *out;     /* leases of exports (exports.h) */
    struct ad_import_use *in;    /* imports (imports.h) */
    struct ad_held_lease *ended; /* leases whose other end was closed; under the engine's lock */
    uint64_t exports, exported, exported_so_far; /* leases, their bytes; number of leases so far */
    uint64_t imports, imported;                  /* imported buffers, their bytes */
} ad_sharing;

int ad__sharing_open(ad_worker *w);   /* Set w->sharing. AD_E_MEMORY, AD_E_SYSTEM. */
void ad__sharing_close(ad_worker *w); /* Free w->sharing, after the last session. */
/* Get the time (ns) at which ad__sharing_sweep has something to do; INT64_MAX: never. Under the engine's lock. */
int64_t ad__sharing_due(const ad_worker *w);
/* Free what has expired, and what streams have passed by now. */
void ad__sharing_sweep(ad_worker *w);
/* Let ad__sharing_sweep check soon whether a stream has passed. */
void ad__sharing_due_soon(ad_worker *w);
/* End the capabilities, exports and imports of a session that is over and has no buffers. */
void ad__sharing_end(ad_worker_session *s);

extern const ad_component ad__component_sharing;
extern const ad_sharing_hooks ad__sharing_hooks;

/* ---- sharing.c ---- */
/* Get the shared memory of a buffer, which becomes shared if it is not. NULL: no memory. */
ad_shared *ad__shared_of(ad_worker_session *s, ad_buffer *b);
/* Get the shared memory of a buffer for another holder, and hold it once. Imported memory is copied. The new holder
 * waits for what has been done to it so far. Of a buffer that has failed it gets the error alone. NULL with a fault. */
ad_shared *ad__shared_give(ad_worker_session *s, ad_buffer *b, ad_fault *fault);
/* Get the principal that the memory belongs to. NULL: there is no memory. */
const char *ad__shared_owner(const ad_shared *shared);
bool ad__shared_is_of(const ad_shared *shared, const char *principal);
/* Tell whether anybody but its owner's sessions, names and leases holds the memory. */
bool ad__shared_has_strangers(const ad_shared *shared);
/* Make a buffer of the session for shared memory. */
int ad__shared_join(ad_worker_session *s, ad_shared *shared, uint64_t id, bool readonly, ad_fault *fault);
/* Let the stream queue, which is about to read or write a shared buffer, wait for others. */
int ad__shared_uses(ad_worker_session *s, ad_stream_queue *queue, ad_buffer *b, bool writes, ad_fault *fault);
/* True if shared memory of the principal, which the session has given up, waits to be released. */
bool ad__sharing_has_deferred_of(const ad_worker_session *s, const char *principal);
/* End the buffer's hold. The buffer has no memory afterwards. */
void ad__shared_leave(ad_worker_session *s, ad_buffer *b);
/* Let the home queue, in whose order memory is given back, wait for what is in the other stream queue now. */
void ad__shared_home_waits(const ad_backend *backend, ad_stream_queue *home, ad_stream_queue *queue);
/* Tell whether each holder of the memory may have a copy of its own, which counts as much as on the device. */
bool ad__paying_may_part(const ad_shared *m);
/* End the hold of a buffer whose bytes are in host memory by now: nobody else has held the memory. */
void ad__shared_leave_moved(ad_worker_session *s, ad_buffer *b);
/* Give the buffer memory of its own with the same contents. */
int ad__shared_detach(ad_worker_session *s, ad_buffer *b, ad_fault *fault);
/* Make shared memory of a block that no session has. The result owns the block. NULL: no memory. */
ad_shared *ad__shared_restore(ad_worker *w, ad_stream_queue *home, const ad_block *block, uint64_t size);
/* Make shared memory of no elements. NULL with a fault. */
ad_shared *ad__shared_without_memory(ad_worker *w, ad_fault *fault);
/* Count a holder of a principal, and end that. Buffers do so by join and leave. */
void ad__shared_hold(ad_shared *shared, const char *principal);
void ad__shared_release(ad_worker *w, ad_shared *shared, const char *principal);
/* Make a stream queue an orphan: its session is over, and others hold its memory. */
void ad__sharing_orphan(ad_worker *w, ad_stream_queue *queue);
/* Begin SHARE, ATTACH, PUBLISH, ATTACH_NAME, UNPUBLISH or NAMES, which needs the grant (0: none). AD_E_DENIED, or
 * AD_WAITS (handlers.h). */
int ad__sharing_begin(ad_worker_session *s, const ad_message *m, unsigned grant, ad_fault *fault);
/* Find the buffer that a request names, once all checks on its contents are read. AD_E_..., or AD_WAITS. */
int ad__shared_buffer(ad_worker_session *s, uint64_t id, const char *what, ad_buffer **out, ad_fault *fault);

/* ---- sharing/charge.c ---- */
/* Count the memory in a session's bytes from now on, and in no other's. NULL: in no session's. */
void ad__shared_pay(ad_shared *shared, ad_worker_session *payer);
/* Count the memory that a session pays for in its bytes no longer: it is over. */
void ad__paying_end(ad_worker_session *s);
/* End the charge of one holder of a principal, before it is released. If it was the last one that is charged, charge
 * another holder's principal. */
void ad__paying_release(ad_shared *shared, const char *principal);

/* Visitor of capabilities or names: the principal, and the memory that it holds. */
typedef void (*ad_holder_visit)(void *user, const char *principal, ad_shared *shared);

/* ---- capabilities.c ---- */
void ad__capabilities_holders(const ad_worker *w, ad_holder_visit visit, void *user);
/* Drop the capabilities of a principal that has migrated. */
void ad__capabilities_part(ad_worker *w, const char *principal);
/* Restore a capability of another worker. AD_E_MEMORY. */
int ad__capability_restore(ad_worker *w, const ad_journal_holder *h, ad_shared *shared);
/* End the capabilities of a session that is over (NULL: of all). */
void ad__capabilities_end(ad_worker *w, ad_worker_session *s);
/* Drop capabilities that have expired. Returns when the next one expires. */
int64_t ad__capabilities_expire(ad_worker *w, int64_t now);

/* ---- names.c ---- */
void ad__names_holders(const ad_worker *w, ad_holder_visit visit, void *user); /* Visit all names. */
/* Let nobody find the names of a principal while it is not known whether another worker has it by now. */
void ad__names_move(ad_worker *w, const char *principal, bool moving);
void ad__names_part(ad_worker *w, const char *principal);
/* Restore a name of another worker, with the principals that may attach it. AD_E_MEMORY. */
int ad__name_restore(ad_worker *w, const ad_journal_holder *h, const char *grant, ad_shared *shared);
/* Call visit with a description of each name. */
void ad__names_each(const ad_worker *w, void (*visit)(void *user, const struct ad_report_name *row), void *user);
void ad__names_close(ad_worker *w);

/* ---- fork.c ---- */
/* I/O thread: take over the sessions that forks have begun. */
void ad__fork_births(ad_worker *w);
/* I/O thread: tell arrayd that a fork has begun the session. */
void ad__fork_tell(ad_worker_session *s);

#endif
