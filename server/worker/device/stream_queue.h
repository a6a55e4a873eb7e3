/* Stream queues: the streams of a session, what is under way on them, and the order between them.
 *
 * Progress of a stream queue is known from marks, events that the runner polls:
 *
 *     operations   1 2 3 4 5 6 7 8 9 10 11 12 13 ...
 *     marks              ▲       ▲            (unmarked)
 *                        reached, so 1 to 4 are complete
 *     fence                            ▲      a point that others wait for where no mark comes after what they need
 *
 * Operations of a session take effect in the order in which they were sent. Within a stream queue its stream ensures
 * that. A stream queue waits for another one before it reads a buffer that the other writes. It also waits before it
 * writes a buffer that the other uses. A synchronous backend needs none of this. Runner only. */
#ifndef AD_SERVER_WORKER_DEVICE_STREAM_QUEUE_H
#define AD_SERVER_WORKER_DEVICE_STREAM_QUEUE_H

#include "server/worker/device/devices.h"
#include "server/worker/device/watchdog.h"

struct ad_worker_session;
struct ad_buffer;

#define AD_STREAM_QUEUES 64 /* most stream queues of a session */
#define AD_MARKS 8          /* marks of a stream queue that are not reached yet */
#define AD_MARKS_LOW 2      /* same limit for a principal of low priority */
#define AD_MARK_OPS 64      /* most operations between two marks */
#define AD_MARK_NS 200000   /* most expected ns between two marks: small pieces make room steadily, not in bursts */
#define AD_OWN_STREAMS AD_DEVICES /* smaller ids are default streams of devices */
#define AD_HIDDEN_STREAM UINT64_MAX

typedef struct ad_mark {
    uint64_t first;    /* number of the first operation since the previous mark */
    uint64_t sequence; /* ad_stream_queue.sequence when it was recorded */
    ad_event *event;
    int64_t expected; /* estimated ns; 0: some of its operations have no estimate */
    int64_t asked;
} ad_mark;

/* Work that a device is expected to have with operations. */
typedef struct ad_expected {
    int64_t ns, estimate; /* corrected by ad_pace, and not */
    unsigned count;       /* operations that have an estimate */
} ad_expected;

typedef struct ad_stream_queue ad_stream_queue;
struct ad_stream_queue {
    uint64_t id;
    ad_stream_queue *low; /* of a default stream: its low-priority replacement while the session uses the device much */
    uint32_t place;       /* journal row of a stream that a client has opened; 0: none */
    unsigned lost;   /* number of the stream's device, from 1, if that is lost: it refuses operations; 0: it is not */
    bool open, high; /* a dropped stream queue is reused by the next with the same device and priority */
    unsigned slot;
    ad_gpu *gpu;
    ad_stream *stream;
    ad_stream_arena *stream_arena;
    ad_mark mark[AD_MARKS]; /* a ring buffer */
    unsigned first_mark, nmarks, most_marks;
    int64_t reached;         /* when the latest reached mark was noticed */
    unsigned unmarked;       /* operations since the latest mark */
    uint64_t unmarked_first; /* number of the first operation since the latest mark */
    ad_expected expected;    /* work of the unmarked operations */
    ad_expected coming;      /* work of the operation that is about to be enqueued */
    uint64_t sequence;       /* operations enqueued so far */
    uint64_t passed;         /* operations that are known from marks to be complete */
    uint64_t awaited;        /* operations that must be complete before the pending checkpoint is committed */
    ad_flight flight;        /* a user's kernels that are under way */
    uint64_t followed[AD_STREAM_QUEUES]; /* per slot: sequence of the other stream queue up to which this one waits */
    ad_event *fence;                     /* a point that other stream queues wait for; NULL: none was needed yet */
    uint64_t fenced;                     /* `sequence` when it was recorded */
    struct ad_worker_session *session;   /* NULL: the session is over */
    struct ad_spill_owner *owner;        /* of buffers that could be moved to host memory (spill/spill.h); NULL: none */
    uint64_t keeps;                      /* blocks of its memory that other sessions still hold (sharing/sharing.h) */
    ad_stream_queue *next;               /* list of orphans (sharing/sharing.h): their session is over */
};

/* Find the stream queue of a stream id; default streams are opened on first use. NULL with a fault. */
ad_stream_queue *ad__stream_queue_find(struct ad_worker_session *s, uint64_t id, ad_fault *fault);
/* Find a stream queue, and make it wait for its low-priority replacement. NULL with a fault. */
ad_stream_queue *ad__stream_queue_join(struct ad_worker_session *s, uint64_t id, ad_fault *fault);
/* Get the stream queue for the next operation; NULL with a fault. Default streams have priority, so that light users
 * need not wait for heavy users. A heavy user (ad__stream_queue_charge) continues on a low-priority stream queue. */
ad_stream_queue *ad__stream_queue_current(struct ad_worker_session *s, ad_fault *fault);
/* Charge the session for `estimate` ns of a device. Returns the estimate corrected by its pace. */
int64_t ad__stream_queue_charge(struct ad_worker_session *s, int64_t estimate);
/* Add the estimate of a charged operation to its stream queue, and choose the multiprocessors that it has (parts.h).
 * corrected: result of ad__stream_queue_charge. */
void ad__stream_queue_expect(ad_stream_queue *queue, int64_t ns, int64_t corrected);
/* Get a device that the session may use; NULL with a fault: AD_E_DENIED and others. */
ad_gpu *ad__session_gpu(struct ad_worker_session *s, uint64_t device, ad_fault *fault);
/* Find an open stream, without opening one; NULL: none. */
ad_stream_queue *ad__stream_queue_known(struct ad_worker_session *s, uint64_t id);
/* Open a stream of a client under a new id. AD_E_VALUE, AD_E_LIMIT, AD_E_MEMORY. */
int ad__stream_queue_open(struct ad_worker_session *s, uint64_t id, uint64_t device, bool high, ad_fault *fault);
/* Get the device itself if the session can use it, otherwise the first that it can use; none: the device. */
uint64_t ad__session_usable_device(struct ad_worker_session *s, uint64_t device);
/* Open a stream that was open in another worker. If its device is lost, the stream can be dropped, and operations on it
 * fail. NULL with a fault. */
ad_stream_queue *ad__stream_queue_restore(struct ad_worker_session *s, uint64_t id, uint64_t device, bool high,
                                          ad_fault *fault);
/* Drop a stream; its stream queue is reused. AD_E_STALE. */
int ad__stream_queue_drop(struct ad_worker_session *s, uint64_t id, ad_fault *fault);
/* Close all stream queues of a session, which must be idle. */
void ad__stream_queues_close(struct ad_worker_session *s);

/* Open a stream queue without a session, for memory that only other sessions hold. NULL with a fault. */
ad_stream_queue *ad__stream_queue_alone(struct ad_worker *w, uint64_t device, const char *principal, ad_fault *fault);
/* Close an orphan whose stream has completed everything. */
void ad__stream_queue_close(const ad_backend *b, ad_stream_queue *queue);
/* Make a stream queue wait for what another one, of any session, holds now. */
int ad__stream_queue_after(const ad_backend *b, ad_stream_queue *queue, ad_stream_queue *other, ad_fault *fault);

/* Make a stream queue wait for all users of a buffer that it is about to read or write. A buffer with shared memory may
 * get its own copy: read its address only afterwards. */
int ad__stream_queue_uses(struct ad_worker_session *s, ad_stream_queue *queue, struct ad_buffer *b, bool writes,
                          ad_fault *fault);
/* Count the bytes of an operand, if it lies on another device than the stream queue on which its operation runs. */
void ad__stream_queue_count_peer(struct ad_worker_session *s, ad_stream_queue *queue, const struct ad_buffer *b,
                                 const ad_desc *operand);
/* True if an operand has much memory on another device than the stream queue. */
bool ad__stream_queue_is_far(const ad_stream_queue *queue, const struct ad_buffer *b, const ad_desc *operand);
/* Make a buffer's home stream queue wait for all users of its memory, which is about to be freed. */
int ad__stream_queue_frees(struct ad_worker_session *s, struct ad_buffer *b, ad_fault *fault);
/* Record that the current operation, or the next one, was enqueued on a stream queue. */
int ad__session_enqueued(struct ad_worker_session *s, ad_stream_queue *queue, ad_fault *fault);
/* Record a mark on every stream queue that has unmarked operations. */
int ad__stream_queues_mark(struct ad_worker_session *s, ad_fault *fault);
/* Poll the marks and set s->complete. AD_E_DEVICE and others. */
int ad__stream_queues_poll(struct ad_worker_session *s, ad_fault *fault);
/* Set s->complete without polling. Operations that enqueued nothing are complete, too. */
void ad__stream_queues_settle(struct ad_worker_session *s);
/* Block until the device has completed all that was enqueued. */
int ad__stream_queues_wait(struct ad_worker_session *s, ad_fault *fault);
bool ad__stream_queue_idle(const ad_stream_queue *queue);
bool ad__stream_queues_idle(const struct ad_worker_session *s);
/* Estimate how long the device still works on what is marked, in ns. 0: nothing is marked, or there is no estimate. */
int64_t ad__stream_queue_ahead(const struct ad_worker_session *s, const ad_stream_queue *queue);
/* Tell whether so many marks are outstanding that the session must wait. */
static inline bool ad__stream_queue_full(const ad_stream_queue *queue) { return queue->nmarks >= queue->most_marks; }

#endif
