/* A session: a client's socket, what it has sent, its buffers, and what it is still to be told. */
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

#define AD_OUTPUT_HIGH (4u << 20) /* a read waits while so much is queued for its client */
#define AD_CHEAP 5000             /* ns: after what costs more the clock is looked at each time */

/* A read whose reply is being sent in parts, or goes to a window as a whole. */
typedef struct ad_reading {
    uint64_t request, total, offset, part; /* part: size of the one at hand */
    const char *from;
    char *to;               /* in a window; NULL: to the socket */
    bool direct;            /* the device writes there */
    bool from_host;         /* `from` is where the buffer has been moved */
    ad_output_block *block; /* that takes the part */
    ad_buffer *buffer;
    ad_stream_queue *stream_queue;
    ad_block copy;          /* of a view that was not contiguous */
    void *staging;          /* pinned memory that the next part is on its way to */
    bool active, under_way; /* there is one; the part has been asked for */
} ad_reading;

/* What a session waits for before it goes on. */
typedef enum ad_wait_for {
    AD_WAIT_NONE,
    AD_WAIT_STREAM, /* until the stream queue is idle */
    AD_WAIT_ALL,    /* until all are */
    AD_WAIT_ROOM,   /* until the stream queue has come a little further */
    AD_WAIT_EVENT,  /* until the event is reached */
    /* no device */
    AD_WAIT_COMPILER,   /* until a module has been compiled */
    AD_WAIT_MIGRATION,  /* until it is clear where its principal goes on (migrate/migration.h) */
    AD_WAIT_BACKGROUND, /* until a session is back from in the background (engine/background.h) */
} ad_wait_for;

typedef struct ad_wait {
    ad_wait_for kind;
    ad_stream_queue *stream_queue;
    ad_event *event;
    int64_t since;
    uint64_t returns; /* of the engine, until then */
} ad_wait;

/* Whether its principal gets a worker of its own (migrate/migration.h). */
typedef enum ad_session_migration { AD_SESSION_STAYS, AD_SESSION_MIGRATES, AD_SESSION_REFUSED } ad_session_migration;

/* Where a session's messages go as text, besides standard error (trace.c). */
typedef struct ad_tracer {
    atomic_bool on;
    int fd;               /* 0: none */
    unsigned long missed; /* lines that the pipe did not take */
} ad_tracer;

struct ad_session {
    ad_worker *worker;
    uint64_t id;
    char principal[AD_PRINCIPAL_SIZE], client[AD_FAULT_TEXT];
    ad_grants grants; /* what the principal may do */
    bool may_run_kernels;
    bool must_migrate;     /* but not here: its principal gets a worker of its own for that (migrate/migration.h) */
    atomic_uint migration; /* ad_session_migration: it waits for that */
    uint64_t migrates_at;  /* with the message after so many */
    char migration_refusal[AD_FAULT_TEXT];
    atomic_bool halted;   /* another worker is about to go on with it */
    bool migrated;        /* it does */
    int64_t kernel_limit; /* ns that one may take; 0: any time */

    ad_tracer tracer;

    /* the I/O thread's */
    ad_session *next, *prev;
    uv_poll_t poll;
    int fd, events;
    ad_input input;
    bool paused;    /* not read: too much is queued */
    bool lingering; /* bye was sent: reading away until the client closes */
    bool closing;
    int64_t linger_until;
    ad_comeback comeback;
    ad_checkpoint checkpoint;
    ad_fault refusal; /* of the frame that is none; read by the runner once it has been marked in the queue */
    ad_output output;
    atomic_bool ends_after_forks; /* its client has gone, and what it has sent is executed up to the last fork */

    /* under the engine's lock */
    ad_input_queue queue;
    ad_share turn;
    ad_session *next_attention;
    bool attended;
    bool want_room;     /* paused, and to be told when the queue is short */
    uint64_t put_off;   /* times that it was paused */
    bool stalled;       /* waits for its output to shrink */
    bool over;          /* nothing more is executed */
    bool dropped;       /* its buffers are freed: the I/O thread may let it go */
    bool hangup;        /* close at once, without waiting for output */
    bool in_background; /* its operation is in the background (engine/background.h) */

    /* any thread's */
    int cancelled;                    /* AD_CANCEL_...: why the operation in the background is to be given up; atomic */
    _Atomic int64_t background_since; /* when that began; 0: there is none */

    /* the runner's */
    ad_reader *reader;
    ad_arena arena;
    ad_message message;
    bool has_message, in_frame, payload_used;
    int64_t cost; /* estimate for message, ns */
    ad_input_frame frame;
    size_t frame_used;
    ad_buffers buffers;
    ad_stream_queue *stream_queues[AD_STREAM_QUEUES], *stream_queue; /* all; the current one, or NULL */
    unsigned nstream_queues;
    ad_fusion_queue fusion;
    ad_deferred_checks deferred_checks;
    ad_events recorded;
    ad_windows windows;
    ad_modules modules;
    ad_wait wait;
    ad_session *next_busy; /* sessions with something under way */
    bool busy;
    bool busy_device;  /* uses much of the device: low priority */
    int64_t share;     /* ns that it has been estimated to use since share_since */
    ad_pace pace;      /* what such estimates are worth */
    int64_t turn_ns;   /* of a device, in this turn */
    int64_t device_ns; /* of devices that it has used, altogether */
    int64_t share_since;
    ad_poison *pending; /* the first failure that no buffer carries */
    ad_reading reading;
    struct ad_allocation *allocations; /* of its client, that are mapped here (sharing/imports.h) */
    struct ad_exported *exporting;     /* the export that waits for what came before it; NULL: none does */
    uint64_t done, complete, told;     /* operations executed; complete; the last that the client knows of */
    uint64_t bytes_done, bytes_told;   /* the same for bytes of frames */
    uint64_t forked_at;                /* the last operation that was a fork */
    uint64_t shares;                   /* buffers whose memory others hold, too */
    struct ad_shared *pays;            /* such memory that counts in buffer_bytes (sharing/sharing.h) */
    uint64_t capabilities;             /* that it has made and that are not over */
    bool dropping;                     /* nothing of it is under way, and nothing will be */
    bool forked;                       /* begun by the parent of its client: arrayd does not know of it yet */
    bool failed_start, begun;          /* and not as it should be; its socket is watched */
    int64_t active;                    /* when its last turn began */
    uint64_t failed, requests, bytes_in, buffer_bytes, buffer_limit; /* limit 0: none */
    uint64_t workspace_bytes, refused;                               /* refused: times there was no memory for it */
    uint64_t moved_bytes;                                            /* of buffer_bytes: in host memory */
};

/* I/O thread: take over a client's socket (closed on failure). AD_E_MEMORY, AD_E_SYSTEM. */
int ad__session_open(ad_worker *w, const ad_note *note, int fd);
/* Its two halves. The first any thread may call (the socket is taken over, NULL: no memory, and it is closed); when the
 * second fails, the session must be ended. */
ad_session *ad__session_new(ad_worker *w, const ad_note *note, int fd);
int ad__session_begin(ad_session *s);
/* I/O thread: nobody will come back to it: end it, but let those begin that its client has forked. */
void ad__session_end_after_forks(ad_session *s);
/* I/O thread: give what has been received to the engine, without reading. */
void ad__session_go_on(ad_session *s);
/* I/O thread: look at the session again after the runner has changed something. */
void ad__session_attend(ad_session *s);
/* I/O thread: watch its socket for these events of libuv's (0: none). */
void ad__session_watch(ad_session *s, int events);
/* I/O thread: let the clock tick (ad__sessions_tick). */
void ad__sessions_watch(ad_worker *w);
/* Any thread: send bye, as far as the socket takes it. */
void ad__session_say_bye(ad_session *s, int code, const char *text);
/* I/O thread: say bye and end it. */
void ad__session_bye(ad_session *s, int code, const char *text);
/* I/O thread, now and then: time-outs. True while some session must be watched. */
bool ad__sessions_tick(ad_worker *w);
/* I/O thread. NULL: there is none. */
ad_session *ad__session_find(ad_worker *w, uint64_t id);

/* Runner: why a turn ended. */
typedef enum ad_turn {
    AD_TURN_EMPTY,
    AD_TURN_MORE,
    AD_TURN_HEAVY,
    AD_TURN_STALLED, /* its client must read */
    AD_TURN_WAITING, /* s->wait */
    AD_TURN_OVER
} ad_turn;
/* Runner: execute the session's operations for about budget ns; operations estimated above limit ns are left, and end
 * the turn. */
ad_turn ad__session_turn(ad_session *s, int64_t budget, int64_t limit);
/* Runner: free all that the session holds. False: something is still under way, and the session waits for it. */
bool ad__session_drop(ad_session *s);
/* Runner: wait for something; the message at hand is executed again when that has come. */
void ad__session_await(ad_session *s, ad_wait_for kind, ad_stream_queue *stream_queue, ad_event *event);
/* Runner: look at what is under way, and tell the client how far it has come. True: there is nothing to wait for. */
bool ad__session_poll(ad_session *s);

/* ---- exec/exec.c, asks.c, reply.c: the runner's ---- */
/* Estimated ns of the message at hand; INT64_MAX stands for more. */
int64_t ad__exec_cost(const ad_session *s, const ad_message *m);
/* Execute an operation (class OP). What goes wrong is recorded in the session. False: what must come before it takes
 * more than this turn; call it again. */
bool ad__exec_op(ad_session *s, ad_message *m);
/* The same for the operation of a query, whose outputs are sized; values has 8 places. A failure is returned, owned by
 * the caller; NULL: done. */
ad_poison *ad__exec_query(ad_session *s, ad_message *m, int64_t *values, int *nvalues);
/* Copy a view into a contiguous block. */
int ad__exec_contiguous(ad_session *s, ad_stream_queue *stream_queue, const ad_operand *view, uint64_t size,
                        ad_block *out, ad_fault *fault);
/* Answer a request (class ASK); false: output must shrink first, call again. */
bool ad__ask(ad_session *s, ad_message *m);
/* AD_E_UNSUPPORTED: what is answered where nobody knows the request. */
int ad__ask_unsupported(const ad_message *m, ad_fault *fault);
/* Runner: all counters, as stat replies them. */
void ad__session_counters(ad_session *s, int64_t values[AD_NCOUNTER]);
/* READ and FETCH; the same. */
bool ad__read(ad_session *s, ad_message *m);
/* Give back what a read has, when there is one. */
void ad__reading_end(ad_session *s);
/* A failure of this request, and of no operation before it. */
void ad__reply_fault(ad_session *s, uint64_t request, int status, ad_fault *fault);
/* That has been told, of what waited for a synchronisation. */
void ad__count_told_failure(ad_session *s);
/* The session's pending error answers the request instead, once. */
bool ad__reply_pending_failure(ad_session *s, uint64_t request);
/* Operation (or, with the next number, whatever else) was enqueued on a stream queue. */
int ad__session_enqueued(ad_session *s, ad_stream_queue *stream_queue, ad_fault *fault);
/* A status from the backend: leaves the process when the device is lost. Returns status. */
int ad__session_status(ad_session *s, int status, const ad_fault *fault);

void ad__reply_values(ad_session *s, uint64_t request, size_t n, const ad_scalar *values);
#define AD_REPLY_INTS 64 /* at most */
void ad__reply_ints(ad_session *s, uint64_t request, size_t n, const int64_t *values);
void ad__reply_part(ad_session *s, uint64_t request, uint64_t total, uint64_t offset, uint32_t flags,
                    ad_output_block *part); /* part may be NULL: no payload */
/* With a text as payload. */
void ad__reply_text(ad_session *s, uint64_t request, size_t n, const ad_scalar *values, const char *text, size_t size);
void ad__reply_fail(ad_session *s, uint64_t request, const ad_poison *why);
/* Acknowledge when it is time to; idle: nothing is queued. */
void ad__reply_ack(ad_session *s, bool idle);
/* Runner: bye. */
void ad__reply_bye(ad_session *s, int code, const char *text);

/* ---- trace.c ---- */
static inline bool ad__is_traced(const ad_session *s) {
    return s->worker->config.trace || atomic_load_explicit(&s->tracer.on, memory_order_relaxed);
}
/* Print the messages of a block, once it is traced. direction: "<-" or "->". Any thread. */
void ad__trace(ad_session *s, const char *direction, const uint8_t *control, size_t size);
/* Write them to this pipe from now on; fd is taken over. -1: no more. Any thread. */
void ad__trace_to(ad_session *s, int fd);

#endif
