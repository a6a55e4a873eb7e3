/* A session: a client's socket, the operations that it has sent, its buffers, and its replies. */
#ifndef AD_SERVER_WORKER_NET_SESSION_H
#define AD_SERVER_WORKER_NET_SESSION_H

#include "server/worker/memory/buffers.h"
#include "server/worker/fusion/queue.h"
#include "server/worker/net/input.h"
#include "server/worker/modules/modules.h"
#include "server/worker/net/output.h"
#include "server/worker/engine/pace.h"
#include "server/worker/net/resume.h"
#include "server/worker/engine/streams.h"
#include "server/worker/journal/checkpoint.h"
#include "server/worker/exec/deferred_check.h"
#include "server/worker/net/windows.h"
#include "server/worker/worker.h"

#define AD_OUTPUT_HIGH (4u << 20) /* bytes of queued output above which a read waits */
#define AD_CHEAP 5000             /* ns of a message after which the clock is always checked */

/* A read: its reply is sent in parts, or goes to a window as a whole. */
typedef struct ad_reading {
    uint64_t request, total, offset, part; /* part: bytes of the current part */
    const char *from;
    char *to;               /* destination in a window; NULL: the socket */
    bool direct;            /* the device writes to the window itself */
    bool from_host;         /* `from` is host memory, where the buffer has been moved */
    ad_output_block *block; /* block of the output for the part */
    ad_buffer *buffer;
    ad_stream_queue *stream_queue;
    ad_block copy;          /* contiguous copy of a view */
    void *staging;          /* pinned memory that the current part is downloaded to */
    bool active, under_way; /* active: there is a read; under_way: the part has been requested */
} ad_reading;

/* Reasons for which a session waits. */
typedef enum ad_wait_for {
    AD_WAIT_NONE,
    AD_WAIT_STREAM, /* until one stream queue is idle */
    AD_WAIT_ALL,    /* until all stream queues are idle */
    AD_WAIT_ROOM,   /* until one stream queue has reached a mark */
    AD_WAIT_EVENT,  /* until an event is reached */
    /* reasons without a device */
    AD_WAIT_COMPILER,   /* until a module has been compiled */
    AD_WAIT_MIGRATION,  /* until the principal's migration has succeeded or failed (migrate/migration.h) */
    AD_WAIT_BACKGROUND, /* until some background operation has ended (engine/background.h) */
} ad_wait_for;

typedef struct ad_wait {
    ad_wait_for kind;
    ad_stream_queue *stream_queue;
    ad_event *event;
    int64_t since;
    uint64_t returns; /* ad_engine.returns when the wait began */
} ad_wait;

/* Progress of the migration of a session's principal (migrate/migration.h). */
typedef enum ad_session_migration { AD_SESSION_STAYS, AD_SESSION_MIGRATES, AD_SESSION_REFUSED } ad_session_migration;

/* Trace of a session's messages as text, besides standard error (trace.c). */
typedef struct ad_tracer {
    atomic_bool on;
    int fd;               /* 0: no pipe */
    unsigned long missed; /* lines that the pipe did not take */
} ad_tracer;

struct ad_session {
    ad_worker *worker;
    uint64_t id;
    char principal[AD_PRINCIPAL_SIZE], client[AD_FAULT_TEXT];
    ad_grants grants; /* limits and permissions of the principal */
    bool may_run_kernels;
    bool must_migrate;     /* it may run kernels only in a worker of its own (migrate/migration.h) */
    atomic_uint migration; /* ad_session_migration; the session waits while it migrates */
    uint64_t migrates_at;  /* migration begins with the message after so many operations */
    char migration_refusal[AD_FAULT_TEXT];
    atomic_bool halted;   /* another worker is about to continue the session */
    bool migrated;        /* another worker continues the session */
    int64_t kernel_limit; /* most ns of a user's kernel; 0: no limit */

    ad_tracer tracer;

    /* owned by the I/O thread */
    ad_session *next, *prev;
    uv_poll_t poll;
    int fd, events;
    ad_input input;
    bool paused;    /* the socket is not read: too much is queued */
    bool lingering; /* bye was sent: input is discarded until the client closes */
    bool closing;
    int64_t linger_until;
    ad_comeback comeback;
    ad_checkpoint checkpoint;
    ad_fault refusal; /* error of an invalid frame; the runner reads it when it finds the empty frame */
    ad_output output;
    atomic_bool ends_after_forks; /* the client is gone: operations are executed up to the last fork */

    /* guarded by the engine's lock */
    ad_input_queue queue;
    ad_share turn;
    ad_session *next_attention;
    bool attended;
    bool want_room;     /* paused: the runner requests attention when the queue is short */
    uint64_t put_off;   /* times that the session was paused */
    bool stalled;       /* the session waits for its output to shrink */
    bool over;          /* nothing more is executed */
    bool dropped;       /* its buffers are freed: the I/O thread may close it */
    bool hangup;        /* the session is closed without waiting for its output */
    bool in_background; /* it has a background operation (engine/background.h) */

    /* any thread */
    int cancelled;                    /* AD_CANCEL_...: why its background operation is cancelled; atomic */
    _Atomic int64_t background_since; /* when its background operation began; 0: none */

    /* owned by the runner */
    ad_reader *reader;
    ad_arena arena;
    ad_message message;
    bool has_message, in_frame, payload_used;
    int64_t cost; /* estimated ns of message */
    ad_input_frame frame;
    size_t frame_used;
    ad_buffers buffers;
    ad_stream_queue *stream_queues[AD_STREAM_QUEUES], *stream_queue; /* all; current: the client's choice, or NULL */
    unsigned nstream_queues;
    ad_fusion_queue fusion;
    ad_deferred_checks deferred_checks;
    ad_events recorded;
    ad_windows windows;
    ad_modules modules;
    ad_wait wait;
    ad_session *next_busy; /* list of sessions with something under way */
    bool busy;
    bool busy_device;  /* it uses the device much, so it has low priority */
    int64_t share;     /* estimated ns of a device since share_since */
    ad_pace pace;      /* measured correction of such estimates */
    int64_t turn_ns;   /* ns of a device in this turn */
    int64_t device_ns; /* ns of devices so far */
    int64_t share_since;
    ad_poison *pending; /* first failure that belongs to no buffer */
    ad_reading reading;
    struct ad_allocation *allocations; /* memory of the client that is mapped here (sharing/imports.h) */
    struct ad_exported *exporting;     /* an export that waits for earlier operations; NULL: none */
    uint64_t done, complete, told;     /* operations: executed; complete; acknowledged */
    uint64_t bytes_done, bytes_told;   /* bytes of frames: executed; acknowledged */
    uint64_t forked_at;                /* number of the latest fork */
    uint64_t shares;                   /* number of buffers with shared memory */
    struct ad_shared *pays;            /* list of shared memory that counts in buffer_bytes (sharing/sharing.h) */
    uint64_t capabilities;             /* number of its capabilities that are still valid */
    bool dropping;                     /* nothing of it is under way any more */
    bool forked;                       /* a fork begun by its parent: arrayd does not know of it yet */
    bool failed_start, begun;          /* failed_start: its start has failed; begun: its socket is watched */
    int64_t active;                    /* when its latest turn began */
    uint64_t failed, requests, bytes_in, buffer_bytes, buffer_limit; /* buffer_limit 0: no limit */
    uint64_t workspace_bytes, refused;                               /* refused: times that memory was refused */
    uint64_t moved_bytes;                                            /* part of buffer_bytes in host memory */
};

/* I/O thread: open a session on a client's socket, which it owns from here on; closed on failure. AD_E_MEMORY,
 * AD_E_SYSTEM. */
int ad__session_open(ad_worker *w, const ad_note *note, int fd);
/* The two halves of ad__session_open. Any thread may call the first; NULL: no memory, and the socket is closed. The I/O
 * thread calls the second; after its failure the session must be ended. */
ad_session *ad__session_new(ad_worker *w, const ad_note *note, int fd);
int ad__session_begin(ad_session *s);
/* I/O thread: end a session whose client is gone, after the forks that it has sent. */
void ad__session_end_after_forks(ad_session *s);
/* I/O thread: queue received frames for the engine, without reading the socket. */
void ad__session_go_on(ad_session *s);
/* I/O thread: look at a session after the runner has changed something. */
void ad__session_attend(ad_session *s);
/* I/O thread: watch the socket for these events of libuv's; 0: none. */
void ad__session_watch(ad_session *s, int events);
/* I/O thread: start the clock that calls ad__sessions_tick. */
void ad__sessions_watch(ad_worker *w);
/* Any thread: send bye, as far as the socket takes it. */
void ad__session_say_bye(ad_session *s, int code, const char *text);
/* I/O thread: send bye and end the session. */
void ad__session_bye(ad_session *s, int code, const char *text);
/* I/O thread, periodically: handle time-outs. True: some session must be watched further. */
bool ad__sessions_tick(ad_worker *w);
/* I/O thread: find a session by id; NULL: none. */
ad_session *ad__session_find(ad_worker *w, uint64_t id);

/* Reasons why a turn ended. */
typedef enum ad_turn {
    AD_TURN_EMPTY,
    AD_TURN_MORE,
    AD_TURN_HEAVY,
    AD_TURN_STALLED, /* the client must read its output first */
    AD_TURN_WAITING, /* the session waits for s->wait */
    AD_TURN_OVER
} ad_turn;
/* Runner: execute operations for about `budget` ns. An operation estimated above `limit` ns ends the turn and is not
 * executed. */
ad_turn ad__session_turn(ad_session *s, int64_t budget, int64_t limit);
/* Runner: free all that the session holds. False: something is still under way, and the session waits for it. */
bool ad__session_drop(ad_session *s);
/* Runner: let the session wait; then the message at hand is executed again. */
void ad__session_await(ad_session *s, ad_wait_for kind, ad_stream_queue *stream_queue, ad_event *event);
/* Runner: poll what is under way, and acknowledge what is complete. True: the session has nothing to wait for. */
bool ad__session_poll(ad_session *s);

/* ---- exec/exec.c, asks.c, reply.c; runner only ---- */
/* Estimate the ns of a message; INT64_MAX: too long to count. */
int64_t ad__exec_cost(const ad_session *s, const ad_message *m);
/* Execute an operation (class OP). Its failure is recorded in the session. False: earlier operations need more than
 * this turn; call it again. */
bool ad__exec_op(ad_session *s, ad_message *m);
/* Execute a query, whose outputs are sized; values has 8 places. NULL: done; otherwise the failure, owned by the
 * caller. */
ad_poison *ad__exec_query(ad_session *s, ad_message *m, int64_t *values, int *nvalues);
/* Copy a view into a contiguous block of scratch memory. */
int ad__exec_contiguous(ad_session *s, ad_stream_queue *stream_queue, const ad_operand *view, uint64_t size,
                        ad_block *out, ad_fault *fault);
/* Answer a request (class ASK). False: the session waits; call it again. */
bool ad__ask(ad_session *s, ad_message *m);
/* Report a request that this server does not know. AD_E_UNSUPPORTED. */
int ad__ask_unsupported(const ad_message *m, ad_fault *fault);
/* Get all counters of a session, as stat replies them. */
void ad__session_counters(ad_session *s, int64_t values[AD_NCOUNTER]);
/* Answer READ or FETCH. False: the session waits; call it again. */
bool ad__read(ad_session *s, ad_message *m);
/* Give back the memory that a read holds; no effect without a read. */
void ad__reading_end(ad_session *s);
/* Answer a request with a failure of its own. */
void ad__reply_fault(ad_session *s, uint64_t request, int status, ad_fault *fault);
/* Count a failure reported to the client at a synchronisation. */
void ad__count_told_failure(ad_session *s);
/* Answer a request with the session's pending failure, once. False: there is none. */
bool ad__reply_pending_failure(ad_session *s, uint64_t request);
/* Record that the current operation, or the next one, was enqueued on a stream queue. */
int ad__session_enqueued(ad_session *s, ad_stream_queue *stream_queue, ad_fault *fault);
/* Check a status of the backend, and return it. AD_E_DEVICE_LOST ends the process. */
int ad__session_status(ad_session *s, int status, const ad_fault *fault);

void ad__reply_values(ad_session *s, uint64_t request, size_t n, const ad_scalar *values);
#define AD_REPLY_INTS 64 /* most values of ad__reply_ints */
void ad__reply_ints(ad_session *s, uint64_t request, size_t n, const int64_t *values);
void ad__reply_part(ad_session *s, uint64_t request, uint64_t total, uint64_t offset, uint32_t flags,
                    ad_output_block *part); /* part: NULL without payload */
/* Reply values, with a text as payload. */
void ad__reply_text(ad_session *s, uint64_t request, size_t n, const ad_scalar *values, const char *text, size_t size);
void ad__reply_fail(ad_session *s, uint64_t request, const ad_poison *why);
/* Acknowledge complete operations, if enough have gathered. idle: nothing is queued. */
void ad__reply_ack(ad_session *s, bool idle);
/* Runner: append a bye. */
void ad__reply_bye(ad_session *s, int code, const char *text);

/* ---- trace.c ---- */
static inline bool ad__is_traced(const ad_session *s) {
    return s->worker->config.trace || atomic_load_explicit(&s->tracer.on, memory_order_relaxed);
}
/* Print the messages of a traced session's block. direction: "<-" or "->". Any thread. */
void ad__trace(ad_session *s, const char *direction, const uint8_t *control, size_t size);
/* Trace the session to this pipe from now on, which is owned here; -1: stop. Any thread. */
void ad__trace_to(ad_session *s, int fd);

#endif
