/* A session: a client's socket, the operations that it has sent, its buffers, and its replies. */
#ifndef AD_SERVER_WORKER_SESSION_H
#define AD_SERVER_WORKER_SESSION_H

#include "server/worker/base/phase.h"
#include "server/worker/device/pace.h"
#include "server/worker/device/wait.h"
#include "server/worker/checkpoint/deferred_check.h"
#include "server/worker/fusion/queue.h"
#include "server/worker/io/input.h"
#include "server/worker/io/output.h"
#include "server/worker/checkpoint/checkpoint.h"
#include "server/worker/memory/buffers.h"
#include "server/worker/modules/modules.h"
#include "server/worker/session/resume.h"
#include "server/worker/session/streams.h"
#include "server/worker/session/windows.h"
#include "server/worker/worker.h"

#define AD_OUTPUT_HIGH (4u << 20) /* bytes of queued output above which a read waits */
#define AD_CHEAP 5000             /* ns up to which a message is cheap */

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

/* Progress of the migration of a session's principal (migrate/migration.h). */
typedef enum ad_session_migration { AD_SESSION_STAYS, AD_SESSION_MIGRATES, AD_SESSION_REFUSED } ad_session_migration;

/* Trace of a session's messages as text, besides standard error (trace.c). */
typedef struct ad_tracer {
    atomic_bool on;
    int fd;               /* 0: no pipe */
    unsigned long missed; /* lines that the pipe did not take */
    ad_secret_requests secret;
} ad_tracer;

/* The rights of a session. */
typedef struct ad_session_rights {
    bool may_run_kernels;
    bool must_migrate;    /* it may run kernels only in a worker of its own (migrate/migration.h) */
    int64_t kernel_limit; /* most ns of a user's kernel; 0: no limit */
} ad_session_rights;

/* The move of the session's principal to a worker of its own. */
typedef struct ad_session_move {
    atomic_uint state; /* ad_session_migration; the session waits while it migrates */
    uint64_t at;       /* migration begins with the message after so many operations */
    char refusal[AD_FAULT_TEXT];
    atomic_bool halted; /* another worker is about to continue the session */
    bool done;          /* another worker continues the session */
} ad_session_move;

/* The socket. I/O thread. */
typedef struct ad_session_socket {
    uv_poll_t poll;
    int fd, events;
    ad_socket_phase phase;        /* changed by ad__socket_enter alone */
    bool paused;                  /* the socket is not read: too much is queued */
    bool forked;                  /* a fork begun by its parent: arrayd does not know of it yet */
    bool failed_start;            /* its start has failed */
    int64_t linger_until;         /* time until which the client may read bye */
    ad_fault refusal;             /* error of an invalid frame; the runner reads it when it finds the empty frame */
    atomic_bool ends_after_forks; /* the client is gone: operations are executed up to the last fork */
} ad_session_socket;

/* The ring of the session's connection (session/rings.h). I/O thread; the writer: whoever has the output's lock. */
typedef struct ad_session_ring {
    ad_ring_memory *memory; /* NULL: there is none */
    ad_ring_reader reader;
    ad_ring_writer writer;
    bool refused;            /* none could be made: it is not tried again over this connection */
    bool listed;             /* the reader is awake, and the session in the worker's list of those */
    bool starved;            /* the next bytes come over the socket, and are not there yet */
    int64_t heard;           /* when the latest bytes came by the ring */
    ad_worker_session *next; /* the list */
} ad_session_ring;

/* The session's turns. Guarded by the engine's lock, except where a comment says otherwise. */
typedef struct ad_session_turns {
    ad_input_queue queue;
    ad_share share;
    ad_worker_session *next_attention;
    atomic_uint phase; /* ad_run_phase, changed by ad__run_enter alone; the runner reads it without the lock */
    bool attended;
    bool want_room;     /* paused: the runner requests attention when the queue is short */
    bool hangup;        /* the session is closed without waiting for its output */
    bool in_background; /* it has a background operation (engine/background.h) */
    uint64_t put_off;   /* times that the session was paused */
    /* any thread */
    int cancelled;                     /* AD_CANCEL_...: why its background operation is cancelled; atomic */
    _Atomic int64_t background_since;  /* when its background operation began; 0: none */
    _Atomic(const char *) doing;       /* what that is, while background_since is set */
    _Atomic uint64_t cancelled_before; /* computations before this place of the stream are not begun any more */
    /* runner */
    ad_worker_session *next_busy; /* list of sessions with something under way */
    bool busy;
    bool goes_on;     /* its latest turn ended for lack of time, so that another one comes */
    int64_t since;    /* when its latest turn began */
    unsigned dropped; /* components that are dropped: the first ones of the table */
} ad_session_turns;

/* The message at hand. Runner. */
typedef struct ad_session_messages {
    ad_reader *reader;
    ad_arena arena;
    ad_message message;
    bool at_hand, in_frame, payload_used;
    bool cancelled; /* it was when its execution began; the client may cancel it at any time */
    int64_t cost;   /* estimated ns of message */
    uint64_t place; /* place of the message in the client's stream; at no message: of the last one */
    ad_input_frame frame;
    size_t frame_used;
} ad_session_messages;

/* Stream queues. Runner. */
typedef struct ad_session_streams {
    ad_stream_queue *queues[AD_STREAM_QUEUES];
    ad_stream_queue *current; /* the client's choice, or NULL */
    unsigned count;
    uint64_t unrecorded; /* operations of the first one before there was a second: nothing is known of their buffers */
    ad_events events;    /* those that the client has recorded */
} ad_session_streams;

/* Use of devices. Runner. */
typedef struct ad_session_usage {
    bool heavy;         /* it uses the device much, so it has low priority */
    int64_t recent;     /* estimated ns of a device since recent_since */
    ad_pace pace;       /* measured correction of such estimates */
    int64_t turn_ns;    /* ns of a device in this turn */
    int64_t device_ns;  /* ns of devices so far */
    int64_t peer_bytes; /* bytes of operands on other devices than their operations */
    int64_t recent_since;
} ad_session_usage;

/* Progress of the session. Runner. */
typedef struct ad_session_progress {
    ad_poison *pending;              /* first failure that belongs to no buffer */
    uint64_t done, complete, told;   /* operations: executed; complete; acknowledged */
    uint64_t bytes_done, bytes_told; /* bytes of frames: executed; acknowledged */
    uint64_t failed, requests, bytes_in;
    uint64_t cancelled; /* operations that the client has cancelled */
} ad_session_progress;

/* Memory that the session holds, in bytes. Runner. */
typedef struct ad_session_held {
    uint64_t buffer_bytes, buffer_limit; /* buffer_limit 0: no limit */
    uint64_t workspace_bytes;
    uint64_t refused;     /* times that memory was refused */
    uint64_t moved_bytes; /* part of buffer_bytes in host memory */
} ad_session_held;

typedef enum ad_pull_state {
    AD_PULL_NONE,
    AD_PULL_ASKED,
    AD_PULL_ANSWERING, /* the I/O thread writes the answer */
    AD_PULL_ANSWERED
} ad_pull_state;

/* An array of another server that the session waits for (sharing/pull.h). The state is atomic; whoever changes it may
 * write the rest. */
typedef struct ad_session_pull {
    atomic_uint state;       /* ad_pull_state */
    _Atomic uint64_t place;  /* of its message in the client's stream */
    int code;                /* why it has not come; 0: it has */
    char why[AD_FAULT_TEXT]; /* the same in words */
    uint64_t half[2];        /* a capability of it */
} ad_session_pull;

/* Memory that the session has in common with others (sharing/). Runner. */
typedef struct ad_session_sharing {
    struct ad_allocation *allocations; /* memory of the client that is mapped here (sharing/imports.h) */
    struct ad_exported *exporting;     /* an export that waits for earlier operations; NULL: none */
    uint64_t forked_at;                /* number of the latest fork */
    uint64_t shares;                   /* number of buffers with shared memory */
    struct ad_shared *pays;            /* list of shared memory that counts in buffer_bytes (sharing/sharing.h) */
    uint64_t capabilities;             /* number of its capabilities that are still valid */
    ad_session_pull pull;
} ad_session_sharing;

struct ad_worker_session {
    ad_worker *worker;
    uint64_t id;
    char principal[AD_PRINCIPAL_SIZE], client[AD_FAULT_TEXT];
    ad_grants grants; /* limits and permissions of the principal */
    ad_session_rights rights;
    ad_session_move move;
    ad_tracer tracer;
    ad_worker_session *next, *prev; /* list of the worker's sessions */
    ad_session_socket socket;
    ad_session_ring ring;
    ad_input input;
    ad_comeback comeback;
    ad_checkpoint checkpoint;
    ad_output output;
    ad_session_turns turns;
    ad_session_messages messages;
    ad_buffers buffers;
    ad_session_streams streams;
    ad_fusion_queue fusion;
    ad_deferred_checks deferred_checks;
    ad_windows windows;
    ad_modules modules;
    ad_wait wait;
    ad_session_usage usage;
    ad_reading reading;
    ad_session_progress progress;
    ad_session_sharing sharing;
    ad_session_held held;
};

#endif
