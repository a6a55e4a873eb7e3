/* Memory that several sessions of a worker hold.
 *
 * A buffer becomes shared when its session makes a capability of it, publishes it or forks. Nothing is copied: its
 * block stays where it is, in the stream arena of the stream queue that it came from (which outlives its session while
 * that is so), and each holder has a buffer of its own that means it. The holders of a snapshot, which is the rule,
 * never see each other's writes: who writes while others hold it gets a copy first. What was published to be written is
 * common: whoever holds it writes into the same memory, and operations on it take effect one after another in the order
 * in which they came, from whatever session.
 *
 * Capabilities and names are holders, too. The memory goes back when the last holder has gone. Only whoever runs the
 * engine calls these, unless it says otherwise. */
#ifndef AD_SERVER_WORKER_SHARING_SHARING_H
#define AD_SERVER_WORKER_SHARING_SHARING_H

#include "server/worker/net/session.h"

struct ad_report_name;

typedef struct ad_shared ad_shared;
struct ad_shared {
    uint64_t holders; /* buffers, capabilities and names ... */
    uint64_t paying;  /* ... and how many of them are of the principal to whom the block is charged */
    ad_buffer *buffers;
    bool common;
    uint64_t size;
    void *address;
    ad_block block;
    ad_stream_queue *home; /* whose memory it is; NULL: it has none */
    ad_session *payer;     /* in whose bytes it is counted; NULL: that one is over, and no session has a buffer */
    ad_shared *paid_next, **paid_link; /* of those that it pays */
    ad_poison *poison;                 /* why there are no contents */
    /* How far the last write is: on a stream queue of a session that holds it, or at an event, or complete (neither).
     */
    uint64_t version;
    ad_stream_queue *writer;
    ad_event *ready;
    ad_gpu *ready_gpu;
    bool recorded;
};

/* A permission to attach, which whoever knows its 128 bits may use if it is of the same principal. */
typedef struct ad_capability ad_capability;
struct ad_capability {
    ad_capability *next;
    uint64_t half[2];
    ad_shared *shared;
    ad_session *owner; /* NULL: it has gone */
    bool readonly;
    uint32_t place;          /* in the journal; 0: it is not there */
    uint64_t uses;           /* left; 0: any number */
    int64_t expires, linger; /* at a time, INT64_MAX: never; ns that it outlives the owner */
    char principal[AD_PRINCIPAL_SIZE];
};

#define AD_CAPABILITY_BUCKETS 1024
#define AD_CAPABILITIES 65536 /* of a session */

typedef struct ad_name ad_name;

typedef struct ad_sharing {
    uint64_t number; /* of this worker, at random: who gets a capability sees whether it is for its own server */
    ad_capability *capability[AD_CAPABILITY_BUCKETS];
    ad_name *names;
    uint64_t capabilities, published, count, bytes, orphans;
    ad_stream_queue *going;  /* orphans that nobody needs, until their streams have passed */
    int64_t due;             /* when ad__sharing_sweep has something to do; INT64_MAX: never */
    uint64_t forked;         /* sessions begun by a fork */
    ad_session *births;      /* under the engine's lock: those that the I/O thread has to take over */
    struct ad_exported *out; /* what other processes have of it (exports.h) */
    struct ad_import *in;    /* what is memory of its clients (imports.h) */
    struct ad_lease *ended;  /* under the engine's lock: those whose socket has been closed */
    uint64_t exports, exported, exported_so_far; /* leases, bytes; leases there ever were */
    uint64_t imports, imported;                  /* buffers, bytes */
} ad_sharing;

int ad__sharing_open(ad_worker *w);   /* AD_E_MEMORY, AD_E_SYSTEM */
void ad__sharing_close(ad_worker *w); /* after the last session */
/* Whether there is anything for that; under the engine's lock. */
static inline bool ad__sharing_due(const ad_worker *w) { return w->sharing->due != INT64_MAX || w->sharing->ended; }
/* Drop what is over. */
void ad__sharing_sweep(ad_worker *w);
/* There will be something for that when a stream has passed. */
void ad__sharing_due_soon(ad_worker *w);
/* The session, which has no buffers any more, is over. */
void ad__sharing_end(ad_session *s);
uint64_t ad__sharing_counter(ad_worker *w, int index);
/* FORK, REVOKE; and SHARE ... NAMES: false: the session must wait, call again. */
int ad__sharing_op(ad_session *s, const ad_message *m, ad_fault *fault);
bool ad__sharing_ask(ad_session *s, const ad_message *m);

/* ---- sharing.c ---- */
/* What the buffer means; NULL: no memory. */
ad_shared *ad__shared_of(ad_session *s, ad_buffer *b);
/* The same for others, and held once for them: where it is memory of the client, a copy. They wait for what has been
 * done to it so far. NULL with a fault. */
ad_shared *ad__shared_give(ad_session *s, ad_buffer *b, ad_fault *fault);
/* Somebody else may write its memory while an operation runs: another process at any time, if it has been exported,
 * even if that is over, or is the client's own; other sessions, if it was published for that. Those write in turn, but
 * no kernel is to depend on it. */
static inline bool ad__shared_is_open(const ad_buffer *b) {
    return b->import || b->block.open || (b->shared && (b->shared->common || b->shared->block.open));
}
/* In whose memory it lies; NULL: it has none. */
const char *ad__shared_owner(const ad_shared *shared);
bool ad__shared_is_of(const ad_shared *shared, const char *principal);
/* A new buffer of the session that means it. */
int ad__shared_join(ad_session *s, ad_shared *shared, uint64_t id, bool readonly, ad_fault *fault);
/* The stream queue is about to read or write a shared buffer. */
int ad__shared_uses(ad_session *s, ad_stream_queue *queue, ad_buffer *b, bool writes, ad_fault *fault);
/* The buffer gives up what it shares: it has no memory any more. */
void ad__shared_leave(ad_session *s, ad_buffer *b);
/* Its memory goes back in the order of its home's stream, after what that stream queue holds now. */
void ad__shared_home_waits(const ad_backend *backend, ad_stream_queue *home, ad_stream_queue *queue);
/* Memory of its own with the same contents instead. */
int ad__shared_detach(ad_session *s, ad_buffer *b, ad_fault *fault);
/* Memory of another worker that no session has: the block is the result's. NULL: no memory. */
ad_shared *ad__shared_restore(ad_worker *w, ad_stream_queue *home, const ad_block *block, uint64_t size);
/* A holder of a principal comes and goes; buffers do that by join and leave. */
void ad__shared_hold(ad_shared *shared, const char *principal);
void ad__shared_release(ad_worker *w, ad_shared *shared, const char *principal);
/* Of a descriptor that a client has passed. */
bool ad__is_stream_socket(int fd);
/* A stream queue of a session that is over has memory that others hold. */
void ad__sharing_orphan(ad_worker *w, ad_stream_queue *queue);
/* The buffer that a request names, once nothing can turn out wrong about its contents. NULL with a fault, or *waiting.
 */
ad_buffer *ad__shared_buffer(ad_session *s, uint64_t id, const char *what, bool *waiting, ad_fault *fault);

/* ---- memory/charge.c ---- */
/* The session counts it from now on; NULL: no session does. */
void ad__shared_pay(ad_shared *shared, ad_session *payer);
/* The session is over: none of what others keep is counted in its bytes. */
void ad__paying_end(ad_session *s);
/* Before a holder of this principal is taken off: if it was the last one of who pays, another one does. */
void ad__paying_release(const ad_worker *w, ad_shared *shared, const char *principal);

/* A capability or a name of a principal, and what it means. */
typedef void (*ad_holder_visit)(void *user, const char *principal, ad_shared *shared);

/* ---- capabilities.c ---- */
void ad__capabilities_holders(const ad_worker *w, ad_holder_visit visit, void *user);
/* The principal's are another worker's. */
void ad__capabilities_part(ad_worker *w, const char *principal);
/* One that another worker had. AD_E_MEMORY. */
int ad__capability_restore(ad_worker *w, const ad_journal_holder *h, ad_shared *shared);
/* How many capabilities of *who mean it; *who NULL: it becomes that of the first. */
uint64_t ad__capabilities_holding(const ad_worker *w, const ad_shared *shared, const char **who);
/* What is written of those that mean it is not so any more. */
void ad__capabilities_moved(ad_worker *w, const ad_shared *shared);
int ad__capability_share(ad_session *s, const ad_message *m, bool *waiting, ad_fault *fault);
int ad__capability_attach(ad_session *s, const ad_message *m, ad_fault *fault);
void ad__capability_revoke(ad_session *s, const ad_message *m);
/* A session (NULL: every one) is over. */
void ad__capabilities_end(ad_worker *w, ad_session *s);
/* Drop those that have expired; when the next one does. */
int64_t ad__capabilities_expire(ad_worker *w, int64_t now);

/* ---- names.c ---- */
void ad__names_holders(const ad_worker *w, ad_holder_visit visit, void *user); /* the same two of names */
void ad__names_part(ad_worker *w, const char *principal);
uint64_t ad__names_holding(const ad_worker *w, const ad_shared *shared, const char **who); /* the same of names */
/* One that another worker had; grant is text. AD_E_MEMORY. */
int ad__name_restore(ad_worker *w, const ad_journal_holder *h, const char *grant, ad_shared *shared);
void ad__names_moved(ad_worker *w, const ad_shared *shared); /* the same of names */
int ad__publish(ad_session *s, const ad_message *m, bool *waiting, ad_fault *fault);
int ad__attach_name(ad_session *s, const ad_message *m, ad_fault *fault);
int ad__unpublish(ad_session *s, const ad_message *m, ad_fault *fault);
int ad__names(ad_session *s, const ad_message *m, ad_fault *fault);
/* Describe each to the visitor. */
void ad__names_each(const ad_worker *w, void (*visit)(void *user, const struct ad_report_name *row), void *user);
void ad__names_close(ad_worker *w);

/* ---- fork.c ---- */
int ad__fork(ad_session *s, const ad_message *m, ad_fault *fault);
/* I/O thread: take over the sessions that forks have begun. */
void ad__fork_births(ad_worker *w);
/* I/O thread: arrayd is to know of one. */
void ad__fork_tell(ad_session *s);

#endif
