/* Stream queues: the streams of a session, what is under way on them, and the order between them.
 *
 * Operations of a session take effect in the order in which they came. On one stream queue the stream sees to that;
 * between two, a stream queue waits for another one before it uses a buffer which that one writes, or writes one which
 * it uses. How far a stream queue has come is known from marks: events after every so many operations, looked at when
 * somebody runs the engine. A backend whose operations are complete when they return needs none of this. Only whoever
 * runs the engine calls these. */
#ifndef AD_SERVER_WORKER_ENGINE_STREAM_QUEUE_H
#define AD_SERVER_WORKER_ENGINE_STREAM_QUEUE_H

#include "server/worker/engine/devices.h"
#include "server/worker/engine/watchdog.h"

struct ad_session;
struct ad_buffer;

#define AD_STREAM_QUEUES 64 /* of a session */
#define AD_MARKS 8          /* of a stream queue, not reached yet */
#define AD_MARKS_LOW 2      /* of one whose principal has low priority */
#define AD_MARK_OPS 64      /* operations between two marks, or fewer ... */
#define AD_MARK_NS \
    200000 /* ... that are expected to take so long: room for more comes in small pieces, not in bursts */
#define AD_OWN_STREAMS AD_DEVICES /* ids below are the default streams of the devices */
#define AD_HIDDEN_STREAM UINT64_MAX

typedef struct ad_mark {
    uint64_t first;    /* operation number since the mark before */
    uint64_t sequence; /* the stream queue's */
    ad_event *event;
    int64_t expected; /* ns, as estimated; 0: it holds more than computations */
    int64_t asked;
} ad_mark;

typedef struct ad_stream_queue ad_stream_queue;
struct ad_stream_queue {
    uint64_t id;
    ad_stream_queue
        *low; /* of a default stream: the stream queue of low priority that takes its place while the session is busy */
    uint32_t place;  /* of a stream that a client has opened: its row's in the journal; 0: it has none */
    bool open, high; /* a dropped one is kept for the next that is alike */
    unsigned slot;
    ad_gpu *gpu;
    ad_stream *stream;
    ad_stream_arena *stream_arena;
    ad_mark mark[AD_MARKS]; /* a ring */
    unsigned first_mark, nmarks, most_marks;
    int64_t reached;                     /* when the last one was seen to be */
    unsigned unmarked;                   /* operations since the last mark ... */
    uint64_t unmarked_first;             /* ... the number of the first ... */
    int64_t unmarked_ns;                 /* ... and what they are expected to take ... */
    int64_t estimate;                    /* ... before that is corrected by what was measured ... */
    unsigned estimated;                  /* ... of so many of them */
    uint64_t sequence;                   /* counts what was enqueued, */
    uint64_t passed;                     /* ... so much of it is complete, as far as marks tell, */
    uint64_t awaited;                    /* ... and must be before the coming state is valid (journal/checkpoint.h) */
    ad_flight flight;                    /* the kernel of a user that is under way */
    uint64_t followed[AD_STREAM_QUEUES]; /* sequence of each other stream queue that this one waits for */
    ad_event *fence;
    struct ad_session *session;   /* NULL: it is over */
    struct ad_spill_owner *owner; /* of buffers that could be moved (memory/spill/spill.h); NULL: none are */
    uint64_t keeps;               /* pieces of its memory that others hold, too (sharing/sharing.h) */
    ad_stream_queue *next;        /* orphans that are about to go */
};

/* The stream queue of a stream's id; default streams are opened when first used. NULL with a fault. */
ad_stream_queue *ad__stream_queue_find(struct ad_session *s, uint64_t id, ad_fault *fault);
/* The same, after all that any stream queue in its place holds. */
ad_stream_queue *ad__stream_queue_join(struct ad_session *s, uint64_t id, ad_fault *fault);
/* The stream queue of what comes now; NULL with a fault. Default streams run before others, so that who uses a device
 * little need not wait for who uses it much; a session that does (ad__stream_queue_charge) goes on with one of low
 * priority. */
ad_stream_queue *ad__stream_queue_current(struct ad_session *s, ad_fault *fault);
/* The session is about to use the device for about `estimate` ns; by what was measured it will be the result. */
int64_t ad__stream_queue_charge(struct ad_session *s, int64_t estimate);
/* An operation that was charged goes to this stream queue; corrected: that result. */
void ad__stream_queue_expect(ad_stream_queue *queue, int64_t ns, int64_t corrected);
/* The device, if the session may use it; NULL with a fault. */
ad_gpu *ad__session_gpu(struct ad_session *s, uint64_t device, ad_fault *fault);
ad_stream_queue *ad__stream_queue_known(struct ad_session *s, uint64_t id); /* NULL: there is none */
int ad__stream_queue_open(struct ad_session *s, uint64_t id, uint64_t device, bool high, ad_fault *fault);
int ad__stream_queue_drop(struct ad_session *s, uint64_t id, ad_fault *fault);
/* All of them, once they are idle. */
void ad__stream_queues_close(struct ad_session *s);

/* A stream queue of no session, for memory that only others hold; NULL with a fault. */
ad_stream_queue *ad__stream_queue_alone(struct ad_worker *w, uint64_t device, const char *principal, ad_fault *fault);
/* One that has become an orphan, once its stream has passed. */
void ad__stream_queue_close(const ad_backend *b, ad_stream_queue *queue);
/* What comes on a stream queue waits for what another one, of whatever session, holds now. */
int ad__stream_queue_after(const ad_backend *b, ad_stream_queue *queue, ad_stream_queue *other, ad_fault *fault);

/* The stream queue is about to read or write a buffer: make it wait for others that use it. One that others hold, too,
 * may get memory of its own for that: its address is not to be taken before. */
int ad__stream_queue_uses(struct ad_session *s, ad_stream_queue *queue, struct ad_buffer *b, bool writes,
                          ad_fault *fault);
/* The buffer's memory is about to be given back to the stream queue that it came from: make that one wait. */
int ad__stream_queue_frees(struct ad_session *s, struct ad_buffer *b, ad_fault *fault);
/* Operation `number` was enqueued. */
int ad__stream_queue_enqueued(struct ad_session *s, ad_stream_queue *queue, uint64_t number, ad_fault *fault);
/* Record a mark for what has none yet, on all stream queues. */
int ad__stream_queues_mark(struct ad_session *s, ad_fault *fault);
/* Look at the marks: sets s->complete. AD_E_DEVICE and the like. */
int ad__stream_queues_poll(struct ad_session *s, ad_fault *fault);
/* Sets s->complete by what is known without looking: also what was never enqueued is complete. */
void ad__stream_queues_settle(struct ad_session *s);
/* Wait for all that has been enqueued. */
int ad__stream_queues_wait(struct ad_session *s, ad_fault *fault);
bool ad__stream_queue_idle(const ad_stream_queue *queue);
bool ad__stream_queues_idle(const struct ad_session *s);
/* So much is under way that the session must wait. */
static inline bool ad__stream_queue_full(const ad_stream_queue *queue) { return queue->nmarks >= queue->most_marks; }

#endif
