/* The session and what it consists of. Included by client.h, which has the functions. */
#ifndef AD_CLIENT_C_NET_SESSION_H
#define AD_CLIENT_C_NET_SESSION_H

#include <pthread.h>
#include <stdatomic.h>

#include "arrayd.h"
#include "client-c/net/connect.h"
#include "client-c/resume/unacknowledged.h"
#include "protocol/message.h"
#include "protocol/ring.h"

/* A request whose reply is waited for. Owner: the waiting call, usually on its stack; the session's list refers to it
 * until it is done. */
#define AD_SLOT_VALUES 64
typedef struct ad_slot {
    struct ad_slot *next;
    uint64_t request;   /* the request's id */
    uint8_t *data;      /* destination of the reply's payload; NULL: the reply has none */
    uint64_t size, got; /* bytes of the payload that are expected, and that have come */
    bool done;          /* the reply has come */
    bool receiving;     /* the reading thread writes into data: the slot must stay */
    bool persistent;    /* the slot outlives the call that waits: an interrupt leaves it in the list */
    bool variable;      /* the payload comes in one frame, and may be shorter than size */
    bool internal;      /* the library asked: failures of earlier operations are deferred to the program's next call */
    int status, nvalues;
    double real;     /* the first value, where that is a float */
    uint64_t number; /* number of the operation that failed, whose name is `name`; 0: none */
    int64_t values[AD_SLOT_VALUES];
    char name[64], text[AD_FAULT_TEXT];
} ad_slot;

/* The decoder of frames from the server. Owner: the thread that has set session->input.reading. */
typedef struct ad_receiver {
    uint8_t *data; /* buffer: bytes from `begin` to `end` have come and are not decoded */
    size_t capacity, begin, end;
    ad_frame frame;           /* header of the frame that is being decoded */
    bool closed;              /* the connection has ended */
    int spin_credit;          /* above 0: spinning has paid lately, see net/replies.c */
    uint64_t left;            /* bytes of the frame's payload that are still to come */
    uint64_t request, offset; /* request whose payload it is, and the next byte's place in its data */
    ad_reader *reader;
    ad_arena arena;
} ad_receiver;

/* The flow-control window: limits of what may be sent and not acknowledged, and how much of it is.
 * Each mark says that operations up to `op` end at byte `bytes` of the stream. */
#define AD_WINDOW_MARKS 128
typedef struct ad_send_window {
    uint64_t ops, bytes;         /* limits that the server has set */
    uint64_t acked, acked_bytes; /* operations and bytes that the server has executed */
    struct {
        uint64_t op, bytes;
    } mark[AD_WINDOW_MARKS]; /* ring of `count` marks from `first` on */
    unsigned first, count;
} ad_send_window;

/* A copy of a small buffer, or a count of the reads before there is one. */
typedef struct ad_mirror {
    uint64_t buffer, stamp; /* 0: unused */
    int64_t reads;          /* since an operation may have written it */
    uint8_t *bytes;         /* NULL: there is no copy yet */
} ad_mirror;

/* A failure of the program's operation that came as the answer to an internal request. The program's next call that
 * waits reports it. */
typedef struct ad_deferred {
    int status; /* 0: there is none */
    uint64_t number;
    char name[64], text[AD_FAULT_TEXT];
} ad_deferred;

typedef struct ad_pool ad_pool;
typedef struct ad_lent ad_lent;

/* State of resuming a session over another connection, see resume/resume.c. */
typedef struct ad_resume {
    bool enabled;            /* the session can be resumed */
    bool lost;               /* the connection is gone, and the flusher makes another one */
    bool confirm;            /* the server has to get a frame that shows that its answer has come */
    bool direct;             /* the server's process is the Unix socket's peer: no proxy stands between */
    uint64_t deadline;       /* while lost: the time after which the server has given the session up */
    uint64_t leave_deadline; /* while closing: the time until which output may be sent; 0: not closing */
    int place[2];  /* descriptors of connections: place[next] is the one in the making; TLS refers to their addresses */
    unsigned next; /* 0 or 1 */
    ad_credentials *credentials;
    char why[AD_FAULT_TEXT];      /* reason of the loss */
    atomic_bool windows_doubtful; /* another worker may have taken over, without some of them (ad__pool_check) */
} ad_resume;

#define AD_MIRRORS 16             /* mirrors of a session (memory/mirror.c) */
#define AD_MIRROR_MOST (16 << 10) /* bytes of an array that may have one */
#define AD_FREES 512              /* buffer ids in one free message, at most */
#define AD_FREES_GATHER 8 /* released buffers that gather before they are sent: few, so that memory is reused soon */
#define AD_FREE_BYTES (1 << 20) /* bytes of released buffers that gather before they are sent */
#define AD_TYPE_CODES 18        /* dtypes and the three weak types */

#define AD_WAIT_STEP_US 50000    /* longest time that a read blocks before the interrupt is checked */
#define AD_SEND_BUFFER (1 << 20) /* size of the socket's send buffer, for large uploads */
#define AD_RECEIPT_BYTES                                                                        \
    (256u << 10) /* received bytes after which the server gets a receipt, and may free its copy \
                  */

/* The lock guards every member that says nothing else; members that are set before the session is handed out need none.
 */
struct ad_session {
    struct {
        ad_session *next, **link;
    } among_all; /* place in the list of all sessions of this process; resume/inherit.c has its lock */
    struct {
        atomic_uint all;     /* the caller's handle, each array and each module */
        atomic_uint modules; /* those of modules */
    } references;
    int generation;  /* generation of the process that opened the session, see ad__is_foreign */
    uint64_t serial; /* number among all sessions of this process */
    bool dead;       /* nothing can be sent or received any more, for the reason in `why` */
    char why[AD_FAULT_TEXT];

    pthread_mutex_t lock;
    struct {
        pthread_cond_t changed; /* signalled after a reply, an acknowledgement, the end of a read or write, and death */
        int threads;            /* threads that wait for `changed` */
    } waiting;

    struct {
        int fd;
        ad_secure *secure; /* TLS over fd; NULL: bytes go over fd as they are */
        ad_server_address address;
        ad_embedded embedded;
        atomic_bool passes_nothing; /* the system lets no descriptor through, as a sandbox may: found with the first */
    } connection;
    struct {
        ad_ring_memory *_Atomic memory; /* NULL: the server has offered none over this connection */
        ad_ring_reader reader;          /* the reading thread's */
        ad_ring_writer writer;          /* the writing thread's */
        bool joined;                    /* the writer is in use */
        ad_ring_patience patience;      /* the reading thread's */
    } ring;                             /* net/ring.c */
    struct {
        bool welcomed;
        bool inherited; /* a fork's child has yet to be welcomed; its session's id is child.key until then */
        int refused;    /* status of a bye that came before welcome, or that says that the device is lost; else 0 */
    } handshake;
    ad_welcome welcome;

    struct {
        uint64_t ops, bytes; /* operations, and bytes of sealed frames, since welcome */
    } encoded;
    struct {
        ad_bytes gathered; /* frames that gather; the last one is open and begins at `frame` */
        size_t frame;
        ad_bytes sending; /* frames on their way; bytes before `sent` have been sent */
        size_t sent;
        uint64_t loaded;  /* bytes of the stream that have been in `sending`; below s->encoded.bytes some are to be sent
                             again */
        uint64_t sent_at; /* ad__now's time of the last send */
        bool writing;     /* a thread writes to the connection */
        uint64_t place;   /* bytes of the stream that the connection has taken; the writing thread's */
        bool recheck;     /* that thread must look for more to send before it stops */
        struct ad_pass {
            int fd;    /* descriptor that goes with the byte at offset `at`; -1: none */
            size_t at; /* offset in gathered or sending */
            bool once; /* the descriptor must not be sent again over another connection */
        } gathered_pass, sending_pass;
    } output;
    struct {
        uint64_t ops, requests;               /* counts at the end of the frame that was sealed last */
        uint64_t before_ops, before_requests; /* counts before that frame */
    } sealed;
    struct {
        uint64_t buffer, request, stream, event, window, module;
    } next_id;
    struct {
        uint64_t *ids; /* buffers that are released, and whose free message has not been encoded */
        size_t count, capacity;
        int64_t bytes;    /* size of these buffers */
        size_t end;       /* up to this offset output.gathered holds nothing but free messages */
        ad_graph *graphs; /* those that there are: each keeps what its operations use, see array/graph.c */
        bool held;        /* a fork is under way: the child has these buffers, too, and both free them */
    } frees;
    ad_send_window window;
    ad_unacked unacked; /* empty where the session cannot be resumed */
    ad_resume resume;

    struct {
        bool reading;                  /* a thread reads from the connection, and owns the receiver */
        atomic_uint_fast64_t received; /* bytes of the stream from the server */
        uint64_t reported;             /* bytes of that stream that the server knows to have been received */
        uint64_t replied;              /* highest request that has been answered */
        ad_receiver receiver;
        ad_slot *slots; /* requests that wait for replies */
        ad_deferred deferred;
    } input;
    struct {
        atomic_bool used; /* a thread has chosen another stream than 0; read without the lock */
        uint64_t current; /* stream of the operations that were encoded last */
    } stream;

    struct {
        pthread_t thread;
        pthread_cond_t work; /* signalled when the sleeping flusher has something to do */
        bool runs, asleep;
    } flusher;
    struct {
        int fd;       /* socket of the child while the process forks; -1: the child gets no session */
        uint64_t key; /* key and secret resume the child's session when its socket breaks before welcome */
        uint8_t secret[AD_SECRET];
        uint64_t operation; /* number of the last operation that was a fork */
    } child;
    struct {
        ad_pool *_Atomic pool;        /* shared with the server; NULL: none yet */
        ad_mirror mirror[AD_MIRRORS]; /* each buffer has one place */
        uint64_t stamps;              /* mirrors that have been begun */
        bool mirrored;                /* some place is taken */
    } memory;                         /* memory/parts.c, memory/mirror.c */

    struct {
        struct {
            int (*check)(void *argument);
            void *argument;
        } interrupt;
        struct {
            void (*report)(void *argument, uint64_t done, uint64_t total, bool up);
            void *argument;
        } progress; /* the program sets it between transfers, without the lock */
    } calls;        /* functions of the program */
    struct {
        bool on;
        ad_reader *reader;
        ad_arena arena;
        ad_secret_requests secret;
    } tracing; /* AD_TRACE: messages that are sent are decoded again and printed */
    struct {
        uint64_t round_trips;
        uint64_t frees;                    /* of encoded.ops */
        atomic_uint_fast64_t lent, copied; /* arrays made by ad_lend; copies by ad_write_device */
    } counts;
    /* Loop of a ufunc for the types of its inputs, plus 1; 0: not resolved yet. Any thread, without the lock. */
    _Atomic uint8_t loops[AD_UFUNC_LIMIT][AD_TYPE_CODES][AD_TYPE_CODES];
};

#endif
