/* What the files of libarrayd share. Private: programs include arrayd.h. */
#ifndef AD_CLIENT_H
#define AD_CLIENT_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "arrayd.h"
#include "client-c/resume/unacknowledged.h"
#include "protocol/desc.h"
#include "protocol/infer.h"
#include "protocol/message.h"

#define AD_LIKELY(x) __builtin_expect(!!(x), 1)

/* ---- error.c: the calling thread's last error ---- */
int ad__fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3))); /* returns code */
int ad__fail_fault(const ad_fault *fault);
int ad__fail_memory(void);
int ad__fail_remote(int code, uint64_t number, const char *name, const char *text);

/* ---- net/url.c: where the server is ---- */
typedef enum ad_transport { AD_URL_UNIX, AD_URL_TCP, AD_URL_TLS, AD_URL_EMBEDDED } ad_transport;
typedef struct ad_server_address {
    ad_transport transport;
    char url[256];  /* as shown to the user */
    char host[128]; /* path, host or backend */
    char port[16];
} ad_server_address;
int ad__url_parse(const char *url, ad_server_address *out);
/* The places to try, in order, when no URL was given, and how many. The last is embedded. */
#define AD_URL_CANDIDATES 3
int ad__url_candidates(ad_server_address out[AD_URL_CANDIDATES]);

/* Whether it may lie beyond this machine: no memory is shared with it. */
static inline bool ad__is_remote(const ad_server_address *a) {
    return a->transport == AD_URL_TCP || a->transport == AD_URL_TLS;
}

/* ---- net/credentials.c: what shows the server who we are ---- */
#define AD_TOKEN_SIZE 257
typedef struct ad_credentials {
    char token[AD_TOKEN_SIZE]; /* "": none */
    char ca[1024], cert[1024], key[1024];
} ad_credentials;
/* From the options (NULL: none) and, for what they leave out, from the environment and the user's file. Only what the
 * address needs is looked for. AD_E_VALUE, AD_E_SYSTEM, AD_E_DENIED: the file may be read by others; no message shows
 * the token. */
int ad__credentials_find(const ad_server_address *address, const ad_connection *options, ad_credentials *out);
void ad__credentials_forget(ad_credentials *c);

/* ---- net/secure.c: TLS ---- */
typedef struct ad_secure ad_secure;
/* Shake hands over *fd, which must stay where it is. AD_E_TLS, AD_E_TIMEOUT, AD_E_CONNECTION. */
int ad__secure_open(const ad_server_address *address, const ad_credentials *c, uint64_t deadline, const int *fd,
                    ad_secure **out);
void ad__secure_close(ad_secure *s);
/* As recv and sendmsg, by any thread, and without a signal; on failure ad__secure_error tells. */
ssize_t ad__secure_receive(ad_secure *s, void *data, size_t size, int flags);
ssize_t ad__secure_send(ad_secure *s, const struct iovec *part);
void ad__secure_error(ad_secure *s, char *out, size_t size);

/* ---- net/connect.c, net/denied.c, net/embedded.c: sockets ---- */
/* What there is of an embedded server besides its connection. */
typedef struct ad_embedded {
    pid_t pid; /* 0: it is none, or the parent's child */
    int door;  /* a socket by which it gets other connections; -1: none */
} ad_embedded;
/* A connected socket, close-on-exec, not yet greeted. An embedded server is started unless there is a door. deadline:
 * ad__now's time. */
int ad__connect(const ad_server_address *address, uint64_t deadline, int *fd, ad_embedded *embedded);
/* AD_E_DENIED for a Unix socket that may not be opened, with whose it is and the way out. error: connect's. */
int ad__fail_denied(const ad_server_address *address, int error);
/* backend: "auto" is what ARRAYD_BACKEND says, else the GPU's where there is one. */
int ad__embedded_start(const char *backend, int *fd, ad_embedded *out);
/* Another connection to one that runs. AD_E_CONNECTION: it has gone. */
int ad__embedded_connect(const ad_embedded *e, int *fd);
/* Wait for an embedded server whose socket has been shut down; kill it when it does not go. */
void ad__embedded_reap(ad_embedded *e);
/* "; the embedded arrayd exited with status 1" and the like; "" when it still runs two seconds later. */
void ad__embedded_describe_exit(pid_t pid, char *text, size_t size);

/* ---- session ---- */
/* Somebody who waits for a reply; lives on the waiter's stack and in the session's list until it is done. */
#define AD_SLOT_VALUES 64
typedef struct ad_slot {
    struct ad_slot *next;
    uint64_t request;
    uint8_t *data; /* READ: where the payload goes, size bytes of it, got so far; else NULL */
    uint64_t size, got;
    bool done, receiving; /* receiving: the reading thread holds data */
    bool persistent;      /* outlives the call that waits: an interrupt leaves it in the list */
    bool variable;        /* data has room for size bytes; how many come, in one frame, its payload says */
    bool internal;        /* of this library's: the failure of an earlier operation is put off for the program's next */
    int status, nvalues;
    double real;     /* the first value, where that is a float */
    uint64_t number; /* of the operation to blame, with its name */
    int64_t values[AD_SLOT_VALUES];
    char name[64], text[AD_FAULT_TEXT];
} ad_slot;

/* Frames that come in. Belongs to the thread that set session->input.reading. */
typedef struct ad_receiver {
    uint8_t *data;
    size_t capacity, begin, end;
    ad_frame frame;
    bool closed;              /* nothing more will come */
    int spin_credit;          /* of waiting awake: see net/replies.c */
    uint64_t left;            /* of the current payload */
    uint64_t request, offset; /* whose payload it is and where it goes */
    ad_reader *reader;
    ad_arena arena;
} ad_receiver;

/* Bytes sent but not acknowledged, by frames or groups of them. */
#define AD_WINDOW_MARKS 128
typedef struct ad_send_window {
    uint64_t ops, bytes;         /* limits */
    uint64_t acked, acked_bytes; /* operations, bytes that the server has done with */
    struct {
        uint64_t op, bytes;
    } mark[AD_WINDOW_MARKS]; /* up to operation op, bytes in all had been sent */
    unsigned first, count;
} ad_send_window;

/* A failure that was reported to a request of this library's own. */
typedef struct ad_deferred {
    int status;
    uint64_t number;
    char name[64], text[AD_FAULT_TEXT];
} ad_deferred;

typedef struct ad_pool ad_pool;
typedef struct ad_lent ad_lent;

/* How a session whose connection broke is taken up again: resume/resume.c. */
typedef struct ad_resume {
    bool enabled;      /* it can be */
    bool lost;         /* the connection is gone, and the flusher looks for another one */
    bool confirm;      /* the server is to hear something, to know that its answer has come */
    bool direct;       /* the server's process is at the other end of the Unix socket, and no other that passes it on */
    uint64_t deadline; /* while lost: when the server gives the session up */
    uint64_t leave_deadline; /* closing: until when what is left may be sent; 0: not */
    int place[2];            /* connections' descriptors, where TLS looks for them; the one in use and the next one */
    unsigned next;
    ad_credentials *credentials;
    char why[AD_FAULT_TEXT];
} ad_resume;

#define AD_FREES 512 /* buffer ids in one free message */
#define AD_FREES_GATHER \
    8 /* that wait for others: few, so that the server knows of temporaries while it can do without */
#define AD_FREE_BYTES (1 << 20) /* released memory that waits for the next message at the most */
#define AD_TYPE_CODES 18        /* dtypes and the three weak types */

#define AD_WAIT_STEP_US 50000         /* how long a read blocks before the interrupt is asked */
#define AD_SEND_BUFFER (1 << 20)      /* fewer turns for a large upload */
#define AD_RECEIPT_BYTES (256u << 10) /* received bytes that the server keeps until it is told */

/* The lock guards every member that says nothing else; members that are set before the session is handed out need none.
 */
struct ad_session {
    ad_session *next, **link; /* list of all sessions of this process; resume/inherit.c has its lock */
    atomic_uint refs;         /* references: the caller's handle, each array and each module */
    atomic_uint modules;      /* references that are modules' */
    int generation;           /* generation of the process that opened the session, see ad__is_foreign */
    uint64_t serial;          /* number among all sessions of this process */
    bool closing;             /* ad_session_close has been called */
    bool dead;                /* nothing can be sent or received any more, for the reason in `why` */
    char why[AD_FAULT_TEXT];

    pthread_mutex_t lock;
    pthread_cond_t changed; /* signalled after a reply, an acknowledgement, the end of a read or write, and death */
    int waiters;            /* threads that wait for `changed` */

    struct {
        int fd;
        ad_secure *secure; /* TLS over fd; NULL: bytes go over fd as they are */
        ad_server_address address;
        ad_embedded embedded;
    } connection;
    struct {
        bool welcomed;
        bool inherited; /* a fork's child has yet to be welcomed; its session's id is child.key until then */
        int refused;    /* status of a bye that came before welcome, or that says that the device is lost; else 0 */
    } handshake;
    ad_welcome welcome;

    /* Operations encoded, and bytes of sealed frames, since welcome. */
    uint64_t ops, bytes;
    struct {
        ad_bytes gathered; /* frames that gather; the last one is open and begins at `frame` */
        size_t frame;
        ad_bytes sending; /* frames on their way; bytes before `sent` have been sent */
        size_t sent;
        uint64_t loaded; /* bytes of the stream that have been in `sending`; below s->bytes some are to be sent again */
        uint64_t sent_at; /* ad__now's time of the last send */
        bool writing;     /* a thread writes to the connection */
        bool recheck;     /* that thread must look for more to send before it stops */
        struct ad_pass {
            int fd;    /* descriptor that goes with the byte at offset `at`; -1: none */
            size_t at; /* offset in gathered or sending */
            bool once; /* the descriptor must not be sent again over another connection */
        } gathered_pass, sending_pass;
    } output;
    struct {
        uint64_t ops, requests;               /* counts at the end of the frame that was sealed last ... */
        uint64_t before_ops, before_requests; /* ... and before it */
    } sealed;
    struct {
        uint64_t buffer, request, stream, event, window, module;
    } next_id;
    struct {
        uint64_t *ids; /* buffers that are released, and whose free message has not been encoded */
        size_t count, capacity;
        int64_t bytes; /* size of these buffers */
        size_t end;    /* up to this offset output.gathered holds nothing but free messages */
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
    ad_pool *_Atomic pool; /* memory shared with the server; NULL: none yet */

    struct {
        int (*check)(void *argument);
        void *argument;
    } interrupt;
    struct {
        void (*report)(void *argument, uint64_t done, uint64_t total, bool up);
        void *argument;
    } progress;
    struct {
        bool on;
        ad_reader *reader;
        ad_arena arena;
    } tracing; /* AD_TRACE: messages that are sent are decoded again and printed */
    struct {
        uint64_t round_trips;
        atomic_uint_fast64_t lent, copied; /* arrays made by ad_lend; copies by ad_write_device */
    } counts;
    /* Loop of a ufunc for the types of its inputs, plus 1; 0: not resolved yet. Any thread, without the lock. */
    _Atomic uint8_t loops[AD_UFUNC_LIMIT][AD_TYPE_CODES][AD_TYPE_CODES];
};

uint64_t ad__now(void); /* monotonic nanoseconds */
/* Generation of this process: a fork's child has another than its parent. */
extern atomic_int ad__generation;
/* True when the session was opened by the process that this one was forked from. */
static inline bool ad__is_foreign(const ad_session *s) {
    return s->generation != atomic_load_explicit(&ad__generation, memory_order_relaxed);
}
int ad__fail_foreign(void);
void ad__session_init_conditions(ad_session *s); /* make them, anew in a child */
uint64_t ad__session_next_serial(void);
/* ---- resume/inherit.c: forks ---- */
void ad__sessions_add(ad_session *s);
void ad__sessions_remove(ad_session *s);
/* Until when the calling thread, which is about to fork, waits for a server; 0: it is not. */
extern _Thread_local uint64_t ad__fork_deadline;
ad_session *ad__session_retain(ad_session *s);
void ad__session_release(ad_session *s);
/* Mark the connection as gone; the first reason stays. */
void ad__kill_session(ad_session *s, const char *text);
void ad__kill_session_locked(ad_session *s, const char *text);
int ad__fail_dead(const ad_session *s); /* AD_E_CONNECTION, or what bye said, with the reason; the lock is held */

/* ---- resume/resume.c ---- */
/* The connection is gone: it is to be taken up again, or the session is dead. The lock is not held. */
void ad__lose_connection(ad_session *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* After welcome; takes the credentials over. The lock is held. */
void ad__resume_begin(ad_session *s, ad_credentials *credentials);
/* The flusher's: connect again and again until it succeeds, the time is over, or the session is closed. The lock is
 * held (and let go meanwhile). */
void ad__reconnect(ad_session *s);
/* The flusher's, now and then: has the connection ended while nobody reads? The lock is held (and let go meanwhile). */
void ad__resume_check(ad_session *s);
/* Tell the server that the session will not be taken up again, as far as it takes that. */
void ad__send_leave(ad_session *s);
void ad__resume_end(ad_session *s);
/* In a fork's child: a connection that the parent was making is the parent's. */
void ad__resume_disown(ad_session *s);
/* What the parent could do a child that has a connection of its own can as well. */
void ad__resume_renew(ad_session *s);
/* Enough has come that the server should be told, so that it need not keep that. */
static inline bool ad__must_send_receipt(const ad_session *s) {
    return s->resume.enabled &&
           (s->resume.confirm ||
            atomic_load_explicit(&s->input.received, memory_order_relaxed) - s->input.reported >= AD_RECEIPT_BYTES);
}
/* A child may wait for the message with which its session begins, which is lost if the connection is. */
static inline bool ad__has_pending_fork(const ad_session *s) {
    return s->resume.enabled && s->child.operation > s->window.acked;
}
/* net/session.c: what is set on a socket; whether a token may be sent over it. */
void ad__tune_socket(const ad_session *s, int fd);
uint64_t ad__get_own_process(const ad_session *s);
int ad__check_confidential(const ad_session *s, int fd, const ad_secure *secure);

/* ---- resume/resend.c: what is kept; the lock is held ---- */
#define AD_UNACKED_PAYLOAD                                                                    \
    (256u << 10) /* payloads of which copies are kept: small, so that these stay in the cache \
                  */
/* A frame has been sealed, and all that has been encoded is in it or before it. */
void ad__frame_sealed(ad_session *s);
/* Append the note that says how much has come. */
void ad__append_receipt(ad_session *s);
/* Keep a copy of sending and a payload, which are about to go. */
void ad__save_unacked(ad_session *s, const void *payload, size_t size);
/* The next bytes that have to be sent again become sending. */
void ad__load_unacked(ad_session *s);
/* Hear what the server has done with; the lock is let go meanwhile. */
void ad__read_acks(ad_session *s);

/* ---- net/stream.c: output ---- */
/* Something is on its way, or to be sent again. */
static inline bool ad__has_unsent(const ad_session *s) {
    return s->output.sent < s->output.sending.size || s->output.loaded < s->bytes;
}
/* Begin a message: checks the session, waits for room, locks. On success append one request to s->output.gathered. */
int ad__begin(ad_session *s);
/* The same for a request with a reply: what has been released is freed before it. */
int ad__begin_ask(ad_session *s);
/* The same in a frame of its own, for a long request. */
int ad__begin_alone(ad_session *s);
/* End an operation begun so (status of the encoder); mark: size of s->output.gathered before it. Sends or leaves it.
 * Unlocks. */
int ad__commit(ad_session *s, size_t mark, int status);
/* Send what has gathered, without waiting for the server. The lock is held (and let go meanwhile). */
int ad__push_output(ad_session *s);
/* While the connection is lost and nobody writes: what has gathered is kept to be sent again, as if it had been sent.
 */
void ad__save_gathered(ad_session *s);
/* A window message, whose first byte takes fd along (over a Unix socket), which is closed then. *number: its
 * operation's. */
int ad__pass_window(ad_session *s, uint64_t window, uint64_t size, int fd, uint64_t *number);
/* The same of a request: waits for its reply, as ad__ask_numbers. buffer: of one that makes a buffer, whose id comes
 * before the other fields and is put there; else NULL. text: its last field, NULL: there is none. */
int ad__pass_ask(ad_session *s, int opcode, size_t n, const uint64_t *fields, const char *text, int fd, ad_slot *slot,
                 uint64_t *buffer);
/* The same of a fork message; the lock is held, and nothing else is on its way. */
int ad__pass_fork(ad_session *s, int fd, uint64_t key, const uint8_t secret[AD_SECRET]);
/* Store bytes of host memory in a buffer, by write messages; copied or sent when it returns. */
int ad__send_bytes(ad_session *s, uint64_t buffer, uint64_t offset, const uint8_t *data, size_t size);
/* Queue a buffer's free; never fails, never waits. */
void ad__queue_free(ad_session *s, uint64_t buffer, int64_t size);
void ad__record_ack(ad_session *s, uint64_t done); /* the lock is held */

/* ---- net/flusher.c ---- */
bool ad__flusher_wake(ad_session *s); /* the lock is held; false: there is no thread to be had */
void ad__flusher_stop(ad_session *s);

/* ---- net/input.c, net/replies.c: input ---- */
int ad__receiver_open(ad_receiver *in);
void ad__receiver_close(ad_receiver *in);
/* Receive once and act on what came. s->input.reading is ours, the lock is not held. flags: of recv.
 * 1: something came; 0: nothing; the session is dead afterwards where the connection is. */
int ad__receiver_run(ad_session *s, int flags);
void ad__trace_messages(ad_session *s, const char *arrow, ad_reader *reader, ad_arena *arena, const uint8_t *control,
                        size_t size);
void ad__slot_init(ad_slot *slot, void *data, uint64_t size);
ad_slot *ad__slot_find(ad_session *s, uint64_t request);
void ad__slot_add(ad_session *s, ad_slot *slot); /* gives it a request id; the lock is held */
/* Where a lost session goes on, too, waits for that. */
/* Wait a little for the server or for another thread's work on this connection. The lock is held (and let go
 * meanwhile). AD_E_INTERRUPTED, or 0 when the caller shall look again. *checked: when the interrupt was last asked. */
int ad__wait(ad_session *s, uint64_t *checked);
/* The same where another thread's write is waited for, not the server. */
int ad__wait_writer(ad_session *s, uint64_t *checked);
/* After ad__begin, ad__slot_add and encoding: sends, waits for the reply, unlocks. status: of the encoder. */
int ad__commit_ask(ad_session *s, size_t mark, int status, ad_slot *slot);
/* The same without waiting; ad__await_ask waits. */
int ad__commit_ask_async(ad_session *s, size_t mark, int status, ad_slot *slot);
int ad__await_ask(ad_session *s, ad_slot *slot);
/* An operation, or a request with a reply, all of whose fields are numbers. */
int ad__send_numbers(ad_session *s, int opcode, size_t n, const uint64_t *fields);
int ad__ask_numbers(ad_session *s, int opcode, size_t n, const uint64_t *fields, ad_slot *slot);
void ad__wake_all(ad_session *s); /* the lock is held */
/* Another thread works on the connection: waits a little for what it finds. The lock is held (and let go meanwhile). */
void ad__wait_changed(ad_session *s);
/* Takes in what has come, without waiting: once, or all of it. Nobody reads; the lock is held (and let go meanwhile).
 */
void ad__read_now(ad_session *s, bool all);

/* ---- array/devices.c: streams ---- */
/* The stream that the calling thread has chosen, of one session; the others' is 0. */
typedef struct ad_stream_choice {
    uint64_t serial, stream;
} ad_stream_choice;
extern _Thread_local ad_stream_choice ad__stream_choice;
/* Tells the server when it is another than before. The lock is held, a frame is open. */
void ad__switch_stream(ad_session *s);
#define AD_SWITCH_SIZE 11 /* bytes of that message at the most */
/* The device of the thread's stream: the number that a stream's id leaves on division. */
static inline uint8_t ad__current_device(ad_session *s) {
    if (AD_LIKELY(!atomic_load_explicit(&s->stream.used, memory_order_relaxed))) return 0;
    return (uint8_t)(ad_stream_current(s) % AD_DEFAULT_STREAMS);
}

/* ---- memory/windows.c, memory/parts.c: memory shared with the server ---- */
#define AD_SHARED_LEAST (64 << 10) /* bytes from which arrays are moved through it */
/* Part of a window. */
struct ad_host {
    ad_pool *pool;
    struct ad_host_window *window;
    size_t offset, size;
    ad_host *before, *after; /* in the window */
    ad_host *next, **link;   /* in the pool's list of free parts, or of those that the server may still use */
    enum { AD_HOST_FREE, AD_HOST_LIVE, AD_HOST_DRAINING } state;
    bool asked;     /* slot is in the session's list until the server has done with this memory */
    uint64_t until; /* the operation that reads it; 0: none */
    ad_slot slot;
};
/* Whether the server has done with it; the session's lock is held. */
bool ad__host_idle(const ad_session *s, const ad_host *h);
/* Window and offset of memory that lies in one of the session's; false: it does not. */
bool ad__host_find(ad_session *s, const void *data, size_t size, uint64_t *window, uint64_t *offset);
uint8_t *ad__host_base(const ad_host *h);
uint64_t ad__host_window(const ad_host *h);
void ad__pool_detach(ad_session *s); /* the session ends; what is in use stays mapped */
/* Bytes that the server may still use although nobody else does. */
size_t ad__pool_draining_bytes(ad_session *s);
void ad__host_sweep(ad_session *s); /* locks */

/* ---- memory/transfer.c: moving arrays through it ---- */
/* Store bytes of host memory in a buffer; copied or sent when it returns. */
int ad__upload_bytes(ad_session *s, uint64_t buffer, uint64_t offset, const uint8_t *data, size_t size);
/* For arrays of more bytes the program is told how far it is. */
#define AD_PROGRESS_LEAST ((uint64_t)1 << 30)
void ad__report_progress(ad_session *s, uint64_t done, uint64_t total, bool up);
/* Bytes of a contiguous array, as an array. */
typedef struct ad_byte_view {
    int64_t size, step;
    ad_desc desc;
} ad_byte_view;
const ad_desc *ad__describe_bytes(const ad_array *a, uint64_t at, uint64_t size, ad_byte_view *part);
/* An array into memory of the program's. AD_E_UNSUPPORTED: nothing was asked for, a read will do it. */
int ad__download_through_windows(const ad_array *a, void *data, size_t size);

/* ---- memory/copy.c: large copies by several threads ---- */
typedef struct ad_copier ad_copier;
ad_copier *ad__copier_open(size_t size); /* for copies of so many bytes in all; NULL: this thread does it alone */
void ad__copier_copy(ad_copier *c, void *to, const void *from, size_t size);
void ad__copier_close(ad_copier *c);
int ad__populate(void *memory, size_t size); /* let its pages be there; AD_E_MEMORY */

/* ---- arrays ---- */
struct ad_array {
    atomic_uint refs;
    uint8_t dtype, ndim, device;
    bool contiguous, f_contiguous, readonly;
    int64_t offset, count;
    int64_t *shape, *strides; /* in dims */
    ad_array *base;           /* of a view: the array that owns the buffer, retained; NULL: this one */
    ad_session *session;      /* retained by owners */
    ad_lent *lent;            /* of an owner: it is memory of this process (interop/lend.h); else NULL */
    uint64_t buffer;          /* 0: an owner without one yet */
    int64_t size;             /* of the buffer; of owners only */
    int64_t dims[];
};
/* A contiguous owner of a buffer yet to be named; until it is, its release sends nothing. AD_E_VALUE, AD_E_MEMORY. */
int ad__array_new(ad_session *s, int dtype, int ndim, const int64_t *shape, ad_array **out);
/* Gives it its buffer. The session's lock is held. */
static inline void ad__array_name(ad_array *a) { a->buffer = a->session->next_id.buffer++; }
/* A view of a's buffer; nothing is checked. */
int ad__array_view(const ad_array *a, int dtype, int64_t offset, int ndim, const int64_t *shape, const int64_t *strides,
                   ad_array **out);
static inline ad_desc ad__array_desc(const ad_array *a) {
    return (ad_desc){.buffer = a->buffer,
                     .offset = a->offset,
                     .shape = a->shape,
                     .strides = a->strides,
                     .dtype = a->dtype,
                     .ndim = a->ndim,
                     .form = AD_VIEW};
}
/* As an output that the operation creates. */
static inline ad_desc ad__fresh_desc(const ad_array *a) {
    ad_desc d = ad__array_desc(a);
    d.form = AD_FRESH;
    return d;
}
/* ValueError for one that somebody else has published. */
int ad__check_writable(const ad_array *a, const char *what);
int ad__dtype_check(int dtype);
/* Is there such a dtype, and such a shape of it? */
int ad__shape_check(int ndim, const int64_t *shape, int dtype);
/* Copies in (broadcast) into out, which is fresh when made. */
int ad__copy(ad_array *out, const ad_in *in, int casting, bool made);

/* ---- interop/sharing.c ---- */
/* An array of a buffer that others have made; size below 0: it has no value. The buffer goes if that fails. */
int ad__lay_out(ad_session *s, uint64_t buffer, int64_t size, uint8_t device, bool readonly, const ad_layout *l,
                ad_array **out);

/* ---- array/order.c: the order in which the dimensions of results lie in memory ---- */
/* axes: the dimensions of a result from the outermost to the innermost, by the strides of the inputs; false: that is
 * row-major. */
bool ad__find_order(const ad_op *op, int ndim, int *axes);
/* The inputs with ndim dimensions in that order, which lie in storage: shape and strides of each. */
void ad__permute_inputs(ad_op *op, int ndim, const int *axes, int64_t storage[][2][AD_MAX_NDIM]);
/* A new array that nobody else has seen, made with its dimensions in that order: they are put back. */
void ad__array_permute(ad_array *a, const int *axes);
/* A new array that nobody else has seen: its dimensions in reverse. */
void ad__array_reverse(ad_array *a);

/* ---- array/operand.c: inputs ---- */
/* What an input is called in promotion: a dtype or AD_WEAK_*. */
int ad__in_type(const ad_in *in);
/* The dtype of a value by itself: a weak integer is int64 (uint64 where it must be), a float float64 ... */
int ad__value_dtype(const ad_value *v);
int ad__value_scalar(const ad_value *v, ad_scalar *out);
/* *type: ad__in_type's. *s: the session of the arrays so far, NULL: none. */
int ad__in_operand(const ad_in *in, ad_operand *out, uint8_t *type, ad_session **s);
/* -1, 0, 1: a weak integer below, within, above an integer dtype; 0 for everything else. */
int ad__value_side(const ad_value *v, int dtype);
int ad__fail_bounds(const ad_value *v, int dtype); /* OverflowError */
const char *ad__casting_name(int casting);

/* ---- array/ufunc.c: sending operations ---- */
/* Names the fresh outputs, encodes op and commits. made: the arrays behind op's fresh outputs, NULL for the others. */
int ad__send_op(ad_session *s, ad_op *op, ad_array *const *made);
/* made[k] becomes outs[k] on success, and is released on failure. */
int ad__hand_out(int status, int n, ad_array *const *made, ad_array **outs);

#endif
