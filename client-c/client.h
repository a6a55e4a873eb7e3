/* Declarations that the files of libarrayd share. Private: programs include arrayd.h.
 *
 *   a program's threads                          flusher (one thread of each session, net/flusher.c)
 *     ad__begin, encode, ad__commit                |  sends what has gathered, reconnects
 *          |                                       |
 *          v              seal, send               v
 *      output.gathered ---------------> output.sending ----> socket ----> server
 *                                          | copy
 *                                          v
 *                                       unacked: is sent again when the session is resumed
 *
 *      slots (one of each request that waits for a reply) <---- input.receiver <---- socket <---- server */
#ifndef AD_CLIENT_H
#define AD_CLIENT_H

#include <sys/socket.h>

#include "arrayd.h"
#include "client-c/net/session.h"
#include "protocol/desc.h"
#include "protocol/infer.h"

#define AD_LIKELY(x) __builtin_expect(!!(x), 1)

/* ---- error.c: the calling thread's last error ---- */
/* Each of these sets the error, and returns its code. */
int ad__fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
int ad__fail_fault(const ad_fault *fault);
int ad__fail_memory(void);
/* Set the error that the server reported. number, name: the operation that failed; number 0: no operation did. */
int ad__fail_remote(int code, uint64_t number, const char *name, const char *text);

/* ---- net/session.c ---- */
/* Return the monotonic time in nanoseconds. */
uint64_t ad__now(void);
/* Number of forks between the first process and this one. */
extern atomic_int ad__generation;
/* Tell whether the session was opened in an ancestor of this process, and has not been renewed for it. */
static inline bool ad__is_foreign(const ad_session *s) {
    return s->generation != atomic_load_explicit(&ad__generation, memory_order_relaxed);
}
int ad__fail_foreign(void);
/* Fail because operands of one operation are arrays of these two sessions. AD_E_VALUE, or why one of them is over. */
int ad__fail_strangers(ad_session *a, ad_session *b);
/* Initialise the condition variables. Called again in a fork's child. */
void ad__session_init_conditions(ad_session *s);
uint64_t ad__session_next_serial(void);
/* Open a session of a server that takes connections by this socket, which the session owns. name: of this program. */
int ad__session_open_by_door(int door, const char *name, ad_session **out);
ad_session *ad__session_retain(ad_session *s);
void ad__session_release(ad_session *s);
/* End the session's connection for good. The reason of the first call stays. */
void ad__kill_session(ad_session *s, const char *text);
/* As ad__kill_session; the caller holds the lock. */
void ad__kill_session_locked(ad_session *s, const char *text);
/* Fail with the reason for which the session is dead. The caller holds the lock.
 * AD_E_CONNECTION, or the status that the server's bye gave. */
int ad__fail_dead(const ad_session *s);
/* Set the socket's timeout and buffer size. */
void ad__tune_socket(const ad_session *s, int fd);
/* Return the id of this process for a server on the same machine, which takes it as a sign of life; else 0. */
uint64_t ad__get_own_process(const ad_session *s);
/* Check that a token may be sent over the socket. AD_E_DENIED. */
int ad__check_confidential(const ad_session *s, int fd, const ad_secure *secure);

/* ---- resume/inherit.c: forks ---- */
/* Add to or remove from the list of this process's sessions. */
void ad__sessions_add(ad_session *s);
void ad__sessions_remove(ad_session *s);
/* Time until which the calling thread, which is about to fork, waits for servers; 0: the thread does not fork. */
extern _Thread_local uint64_t ad__fork_deadline;

/* ---- resume/resume.c: another connection for a session whose connection broke ---- */
/* Record that the connection is gone. The flusher then resumes the session; one that cannot be resumed is dead.
 * The caller does not hold the lock. */
void ad__lose_connection(ad_session *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Enable resuming after welcome, and copy the credentials. The caller holds the lock. */
void ad__resume_begin(ad_session *s, ad_credentials *credentials);
/* Connect until that succeeds, the time is over or the session is closed.
 * Flusher. The caller holds the lock, which is released meanwhile. */
void ad__reconnect(ad_session *s);
/* Find out whether the connection has ended while no thread reads.
 * Flusher. The caller holds the lock, which is released meanwhile. */
void ad__resume_check(ad_session *s);
/* Send what is left, and tell the server that the session will not be resumed. Gives up after a second. */
void ad__send_leave(ad_session *s);
/* Free what resuming needs. */
void ad__resume_end(ad_session *s);
/* Disable resuming in a fork's child, and close its copy of a connection that the parent was making. */
void ad__resume_disown(ad_session *s);
/* Enable resuming in a fork's child, for the session that the parent has begun for it. */
void ad__resume_renew(ad_session *s);
/* Tell whether so many bytes have come that the server must get a receipt. */
static inline bool ad__must_send_receipt(const ad_session *s) {
    return s->resume.enabled &&
           (s->resume.confirm ||
            atomic_load_explicit(&s->input.received, memory_order_relaxed) - s->input.reported >= AD_RECEIPT_BYTES);
}
/* Tell whether a fork message is not acknowledged. If the connection breaks it must be sent again, as the child's
 * session begins with it. */
static inline bool ad__has_pending_fork(const ad_session *s) {
    return s->resume.enabled && s->child.operation > s->window.acked;
}

/* ---- resume/resend.c: copies of sent bytes; the caller holds the lock ---- */
#define AD_UNACKED_PAYLOAD (256u << 10) /* payload bytes of one frame, at most: their copy stays in the cache */
/* Record the counts of operations and requests at the end of a frame that has been sealed. */
void ad__frame_sealed(ad_session *s);
/* Append a note: a frame that is a flag and a number. No frame is open. */
void ad__append_note(ad_session *s, uint32_t flag, uint64_t number);
/* Append a receipt: a note that says how many bytes have been received. */
void ad__append_receipt(ad_session *s);
/* Copy output.sending and a payload into the unacknowledged bytes. Without memory or a descriptor for that the session
 * cannot be resumed any more. */
void ad__save_unacked(ad_session *s, const void *payload, size_t size);
/* Load the next bytes that must be sent again, with one descriptor at the most, into output.sending. */
void ad__load_unacked(ad_session *s);
/* Read acknowledgements where many bytes are unacknowledged, to free these. The lock is released meanwhile. */
void ad__read_acks(ad_session *s);

/* ---- net/stream.c: output ---- */
/* Tell whether bytes are on their way or must be sent again. */
static inline bool ad__has_unsent(const ad_session *s) {
    return s->output.sent < s->output.sending.size || s->output.loaded < s->encoded.bytes;
}
/* Begin an operation: check the session, wait for room in the window, take the lock. The caller then appends one
 * message to output.gathered and calls ad__commit. On failure the lock is not held. */
int ad__begin(ad_session *s);
/* As ad__begin, for an operation that writes no buffer but new ones, and those that the caller drops the mirrors of. */
int ad__begin_telling(ad_session *s);
/* As ad__begin_ask, for a request that writes no buffer. */
int ad__begin_reading(ad_session *s);
/* Begin a request with a reply, behind the free messages of what has been released. The caller ends it by
 * ad__slot_add, encoding, and ad__commit_ask. */
int ad__begin_ask(ad_session *s);
/* As ad__begin_ask, in a frame of its own, for a long request. */
int ad__begin_alone(ad_session *s);
/* End an operation: send it or leave it to the flusher, and release the lock. status: the encoder's. mark: size of
 * output.gathered before the message. AD_E_MEMORY, AD_E_CONNECTION, AD_E_INTERRUPTED, the encoder's errors. */
int ad__commit(ad_session *s, size_t mark, int status);
/* Begin a frame, unless one is open. The caller holds the lock. */
static inline void ad__open_frame(ad_session *s) {
    if (s->output.gathered.size == s->output.frame)
        ad__bytes_append(&s->output.gathered, (uint8_t[AD_FRAME_HEADER]){0}, AD_FRAME_HEADER);
}
/* Remove a message that could not be encoded, and release the lock. Returns the error. */
int ad__roll_back(ad_session *s, size_t mark, int status);
/* Complete the open frame's header. payload: size of the payload that follows the frame. The caller holds the lock. */
void ad__seal_frame(ad_session *s, uint64_t payload);
/* Send what has gathered, without waiting for the server. The caller holds the lock, which is released meanwhile. */
int ad__push_output(ad_session *s);
/* Move what has gathered to the unacknowledged bytes as if it had been sent. The caller holds the lock; the connection
 * is lost, and no thread writes. */
void ad__save_gathered(ad_session *s);
/* Store host memory in a buffer by write messages. The memory has been copied or sent when this returns. */
int ad__send_bytes(ad_session *s, uint64_t buffer, uint64_t offset, const uint8_t *data, size_t size);
/* Queue a buffer's free message. Never fails, never waits for the server. size: bytes that the buffer takes, 0:
 * unknown.
 */
void ad__queue_free(ad_session *s, uint64_t buffer, int64_t size);
/* Record that the server has executed the first `done` operations. The caller holds the lock. */
void ad__record_ack(ad_session *s, uint64_t done);

/* ---- net/passing.c: descriptors, which go with the first byte of a frame ---- */
/* Send a window message with a descriptor. fd is closed also on failure. *number: the operation's number. */
int ad__pass_window(ad_session *s, uint64_t window, uint64_t size, int fd, uint64_t *number);
/* Send a request with a descriptor, and wait for its reply. fd is closed also on failure. buffer: gets the id of the
 * buffer that the request makes, which is put before the other fields. NULL: it makes none. text: the last field.
 * NULL: there is none. */
int ad__pass_ask(ad_session *s, int opcode, size_t n, const uint64_t *fields, const char *text, int fd, ad_slot *slot,
                 uint64_t *buffer);
/* Send a fork message with a descriptor. fd is closed also on failure. The caller holds the lock, and no other
 * descriptor is on its way. */
int ad__pass_fork(ad_session *s, int fd, uint64_t key, const uint8_t secret[AD_SECRET]);

/* ---- memory/mirror.c: copies of small arrays that are read element by element ---- */
typedef enum ad_mirror_state {
    AD_MIRROR_NONE,  /* ask the server */
    AD_MIRROR_FETCH, /* ask it for all of the buffer, and keep that by ad__mirror_keep */
    AD_MIRROR_READ,  /* the elements are in `data` */
} ad_mirror_state;
/* Read the elements of an array from its mirror. *stamp: for ad__mirror_keep, where the answer is AD_MIRROR_FETCH. */
ad_mirror_state ad__mirror_read(const ad_array *a, void *data, size_t size, uint64_t *stamp);
/* Keep all bytes of an array's buffer, which are freed in the end, unless something may have written it since. */
void ad__mirror_keep(const ad_array *a, uint8_t *bytes, uint64_t stamp);
/* Drop the mirror of a buffer that is about to be written. The caller holds the lock. */
void ad__mirror_drop(ad_session *s, uint64_t buffer);
/* Drop all mirrors. The caller holds the lock. */
void ad__mirrors_drop(ad_session *s);

/* ---- net/flusher.c ---- */
/* Start or wake the flusher. The caller holds the lock. False: no thread can be started. */
bool ad__flusher_wake(ad_session *s);
/* End the flusher and wait for it. */
void ad__flusher_stop(ad_session *s);

/* ---- net/input.c, net/replies.c: input ---- */
int ad__receiver_open(ad_receiver *in);
void ad__receiver_close(ad_receiver *in);
/* Receive once, and handle the messages that have come. flags: recv's. Returns 1 when bytes came, else 0; where the
 * connection has ended it is lost afterwards. The caller has set input.reading, and does not hold the lock. */
int ad__receiver_run(ad_session *s, int flags);
/* Print the messages of a control block to stderr. */
void ad__trace_messages(ad_session *s, const char *arrow, ad_reader *reader, ad_arena *arena, const uint8_t *control,
                        size_t size);
void ad__slot_init(ad_slot *slot, void *data, uint64_t size);
/* Find the slot of a request; NULL: its caller has given up. The caller holds the lock. */
ad_slot *ad__slot_find(ad_session *s, uint64_t request);
/* Add a slot to the list, and give it a request id. The caller holds the lock. */
void ad__slot_add(ad_session *s, ad_slot *slot);
/* Remove a slot from the list, where it is in it: a fork's child has none of its parent's. The caller holds the lock.
 */
void ad__slot_remove(ad_session *s, ad_slot *slot);
/* Wait a little for the server, for another thread's work on the connection, or for another connection. The caller then
 * looks again. *checked: time of the last check of the interrupt. AD_E_INTERRUPTED.
 * The caller holds the lock, which is released meanwhile. */
int ad__wait(ad_session *s, uint64_t *checked);
/* As ad__wait, for the end of another thread's write. */
int ad__wait_writer(ad_session *s, uint64_t *checked);
/* End a request: send it, wait for its reply, release the lock. status: the encoder's; mark: size of output.gathered
 * before the message. AD_E_INTERRUPTED, AD_E_CONNECTION, AD_E_MEMORY, and what the server answers. */
int ad__commit_ask(ad_session *s, size_t mark, int status, ad_slot *slot);
/* Tell whether the server has made, or will make, what a request asks for that did not succeed here: the failure of an
 * earlier operation was told in its place, or the program has not waited for the reply. */
static inline bool ad__slot_is_made(const ad_slot *slot, int status) {
    return slot->done ? slot->status == 0 : status == AD_E_INTERRUPTED;
}
/* As ad__commit_ask, without waiting; ad__await_ask waits. */
int ad__commit_ask_async(ad_session *s, size_t mark, int status, ad_slot *slot);
int ad__await_ask(ad_session *s, ad_slot *slot);
/* Send an operation whose fields are all numbers. */
int ad__send_numbers(ad_session *s, int opcode, size_t n, const uint64_t *fields);
/* Send a request whose fields are all numbers, and wait for its reply. */
int ad__ask_numbers(ad_session *s, int opcode, size_t n, const uint64_t *fields, ad_slot *slot);
/* Wake the threads that wait for `changed`. The caller holds the lock. */
void ad__wake_all(ad_session *s);
/* Wait for `changed`, 50 ms at the most. The caller holds the lock, which is released meanwhile. */
void ad__wait_changed(ad_session *s);
/* Receive what has come without waiting, once or (all) until nothing is left. No thread reads. The caller holds the
 * lock, which is released meanwhile. */
void ad__read_now(ad_session *s, bool all);

/* ---- net/ring.c: memory through which a server on this machine exchanges bytes with this process ---- */
/* Receive as recv does, by the ring or over the socket. The reading thread. */
ssize_t ad__ring_receive(ad_session *s, void *data, size_t size, int flags);
/* Look at the ring again and again, until something has come. False: others should have the processor for a moment. The
 * reading thread. */
bool ad__ring_await(ad_session *s);
/* Tell whether something has come that no look at the socket would show. The reading thread, or while there is none. */
bool ad__ring_has_input(const ad_session *s);
/* Put all of a message into the ring. False: it must go over the socket, and has been announced. The writing thread. */
bool ad__ring_send(ad_session *s, const struct msghdr *m);
/* Count bytes that the socket has taken. The writing thread. */
void ad__ring_count_socket(ad_session *s, uint64_t size);
/* Give the ring up with its connection. No thread reads or writes. */
void ad__ring_leave(ad_session *s);
/* As ad__ring_leave in a fork's child, which does not have the memory. */
void ad__ring_forget(ad_session *s);

/* ---- array/devices.c: streams ---- */
/* The stream that the calling thread has chosen in the session of that serial; in other sessions it uses stream 0. */
typedef struct ad_stream_choice {
    uint64_t serial, stream;
} ad_stream_choice;
extern _Thread_local ad_stream_choice ad__stream_choice;
/* Append a message that changes the stream, where the thread uses another one than the last operation. The caller holds
 * the lock, and a frame is open. */
void ad__switch_stream(ad_session *s);
#define AD_SWITCH_SIZE 11 /* bytes of that message, at most */
/* Return the device of the thread's stream: a stream's id modulo AD_DEFAULT_STREAMS. */
static inline uint8_t ad__current_device(ad_session *s) {
    if (AD_LIKELY(!atomic_load_explicit(&s->stream.used, memory_order_relaxed))) return 0;
    return (uint8_t)(ad_stream_current(s) % AD_DEFAULT_STREAMS);
}

/* ---- memory/windows.c, memory/parts.c: memory shared with the server ---- */
#define AD_SHARED_LEAST (64 << 10) /* bytes from which on arrays are moved through shared memory */
/* A part of a window. States:
 *
 *   FREE --ad_host_alloc--> LIVE --ad_host_release--> FREE
 *                                         |             ^
 *                   the server may use it v             | the server has finished, or is gone
 *                                       DRAINING -------+
 */
struct ad_host {
    ad_pool *pool;
    struct ad_host_window *window;
    size_t offset, size;
    ad_host *before, *after; /* neighbours in the window */
    ad_host *next, **link;   /* neighbours in the pool's list of free or of draining parts */
    enum { AD_HOST_FREE, AD_HOST_LIVE, AD_HOST_DRAINING } state;
    bool asked;     /* slot waits for the server's word that it has finished with the part */
    uint64_t until; /* number of the operation that reads the part; 0: none */
    ad_slot slot;
};
/* Tell whether the server has finished with a part. The caller holds the session's lock. */
bool ad__host_idle(const ad_session *s, const ad_host *h);
/* Find the window and the offset of memory in a window of the session. found: false where it lies in none that can be
 * used. AD_E_INTERRUPTED, AD_E_CONNECTION, AD_E_MEMORY. */
int ad__host_find(ad_session *s, const void *data, size_t size, uint64_t *window, uint64_t *offset, bool *found);
uint8_t *ad__host_base(const ad_host *h);
uint64_t ad__host_window(const ad_host *h);
/* Free the parts with which the server has finished. Takes the locks. */
void ad__host_sweep(ad_session *s);
/* Separate the pool from a session that ends. Parts in use stay mapped. */
void ad__pool_detach(ad_session *s);
/* Return the bytes of released parts that the server may still use. */
size_t ad__pool_draining_bytes(ad_session *s);

/* ---- memory/transfer.c: moving arrays through shared memory ---- */
/* Store host memory in a buffer, through windows where that is possible. The memory has been copied or sent when this
 * returns. */
int ad__upload_bytes(ad_session *s, uint64_t buffer, uint64_t offset, const uint8_t *data, size_t size);
#define AD_PROGRESS_LEAST ((uint64_t)1 << 30) /* transfers of more bytes report their progress */
/* Report progress to the program. */
void ad__report_progress(ad_session *s, uint64_t done, uint64_t total, bool up);
/* A range of bytes of a contiguous array, as an array of uint8. */
typedef struct ad_byte_view {
    int64_t size, step;
    ad_desc desc;
} ad_byte_view;
const ad_desc *ad__describe_bytes(const ad_array *a, uint64_t at, uint64_t size, ad_byte_view *part);
/* Ask for bytes of a contiguous array over the socket, without waiting. Where that succeeds the caller calls
 * ad__await_ask before the slot and the memory go. */
int ad__ask_bytes(const ad_array *a, uint64_t at, void *data, size_t size, ad_slot *slot);
/* Copy an array into host memory through windows. AD_E_UNSUPPORTED: nothing has been asked for, and the caller must
 * read over the socket. */
int ad__download_through_windows(const ad_array *a, void *data, size_t size);

/* ---- memory/copy.c: large copies by several threads ---- */
typedef struct ad_copier ad_copier;
/* Start threads for copies of `size` bytes in all. NULL: the calling thread copies alone. */
ad_copier *ad__copier_open(size_t size);
void ad__copier_copy(ad_copier *c, void *to, const void *from, size_t size);
void ad__copier_close(ad_copier *c);
/* Allocate the pages of mapped memory. AD_E_MEMORY. */
int ad__populate(void *memory, size_t size);

/* ---- arrays ---- */
/* Owners have a buffer; views refer to the owner of theirs. */
struct ad_array {
    atomic_uint refs;
    uint8_t dtype, ndim, device;
    bool contiguous, f_contiguous, readonly;
    atomic_bool own; /* owner: the server made the buffer for this session, and nobody else may write it */
    int64_t offset, count;
    int64_t *shape, *strides; /* both lie in dims */
    ad_array *base;           /* view: the owner, retained; NULL: this array is an owner */
    ad_session *session;      /* retained by owners only */
    ad_lent *lent;            /* owner of memory that this process has lent (interop/lend.h); else NULL */
    uint64_t buffer;          /* 0: an owner whose buffer has no id yet */
    int64_t size;             /* owner: bytes of the buffer */
    int64_t dims[];
};
/* Make a contiguous owner without a buffer id. Its release then sends nothing. AD_E_VALUE, AD_E_MEMORY. */
int ad__array_new(ad_session *s, int dtype, int ndim, const int64_t *shape, ad_array **out);
/* Give an owner its buffer id. The caller holds the session's lock. */
static inline void ad__array_name(ad_array *a) {
    a->buffer = a->session->next_id.buffer++;
    atomic_store_explicit(&a->own, true, memory_order_relaxed);
}
/* Return the array that has the buffer: the base of a view, or the array itself. */
static inline ad_array *ad__array_owner(const ad_array *a) { return a->base ? a->base : (ad_array *)(uintptr_t)a; }
/* Record that others than this session's operations may write the buffer from now on. */
static inline void ad__array_disown(const ad_array *a) { atomic_store(&ad__array_owner(a)->own, false); }
/* Make a view of a's buffer, unchecked. AD_E_VALUE, AD_E_MEMORY. */
int ad__array_view(const ad_array *a, int dtype, int64_t offset, int ndim, const int64_t *shape, const int64_t *strides,
                   ad_array **out);
/* Describe an array as an operand. */
static inline ad_desc ad__array_desc(const ad_array *a) {
    return (ad_desc){.buffer = a->buffer,
                     .offset = a->offset,
                     .shape = a->shape,
                     .strides = a->strides,
                     .dtype = a->dtype,
                     .ndim = a->ndim,
                     .form = AD_VIEW};
}
/* Describe an array as an output that the operation makes. */
static inline ad_desc ad__fresh_desc(const ad_array *a) {
    ad_desc d = ad__array_desc(a);
    d.form = AD_FRESH;
    return d;
}
/* Check that an array may be written. AD_E_VALUE. */
int ad__check_writable(const ad_array *a, const char *what);
/* AD_E_TYPE. */
int ad__dtype_check(int dtype);
/* Check a dtype and a shape. AD_E_TYPE, AD_E_VALUE. */
int ad__shape_check(int ndim, const int64_t *shape, int dtype);
/* Copy `in`, broadcast, into `out`. made: the operation makes out's buffer. */
int ad__copy(ad_array *out, const ad_in *in, int casting, bool made);

/* ---- interop/sharing.c ---- */
/* Make an array of a buffer that another session has made. size below 0: the buffer is poisoned. On failure the buffer
 * is freed. */
int ad__lay_out(ad_session *s, uint64_t buffer, int64_t size, uint8_t device, bool readonly, const ad_layout *l,
                ad_array **out);
/* Attach all bytes of a buffer, as uint8. One whose computation has failed is one byte, and a read of that reports why.
 */
int ad__capability_attach_bytes(ad_session *s, const ad_capability *c, ad_array **out);

/* ---- array/order.c: the order of a result's dimensions in memory ---- */
/* Find the order of a result's dimensions from the outermost to the innermost, by the strides of the inputs. False: it
 * is row-major. */
bool ad__find_order(const ad_op *op, int ndim, int *axes);
/* Permute the dimensions of all inputs. storage: place for the shape and the strides of each. */
void ad__permute_inputs(ad_op *op, int ndim, const int *axes, int64_t storage[][2][AD_MAX_NDIM]);
/* Undo the permutation of a new array, which no other thread has seen. */
void ad__array_permute(ad_array *a, const int *axes);
/* Reverse the dimensions of a new array, which no other thread has seen. */
void ad__array_reverse(ad_array *a);

/* ---- array/operand.c: inputs ---- */
/* Return an input's type for promotion: a dtype or AD_WEAK_*. */
int ad__in_type(const ad_in *in);
/* Return the dtype of a value by itself: a weak integer's is int64 (uint64 for large ones), a weak float's float64. */
int ad__value_dtype(const ad_value *v);
/* AD_E_TYPE: the value is of no known kind. */
int ad__value_scalar(const ad_value *v, ad_scalar *out);
/* Convert an input to an operand. *type: as ad__in_type. *s: session of the arrays so far, NULL: none.
 * AD_E_VALUE: the array belongs to another session; AD_E_TYPE. */
int ad__in_operand(const ad_in *in, ad_operand *out, uint8_t *type, ad_session **s);
/* Return -1, 0 or 1 for a weak integer that is below, within or above the range of an integer dtype; else 0. */
int ad__value_side(const ad_value *v, int dtype);
/* AD_E_OVERFLOW. */
int ad__fail_bounds(const ad_value *v, int dtype);
const char *ad__casting_name(int casting);

/* ---- array/ufunc.c: sending operations ---- */
/* Give the new outputs their buffer ids, encode op and send it. made: the arrays of op's new outputs, NULL for given
 * ones. */
int ad__send_op(ad_session *s, ad_op *op, ad_array *const *made);
/* Make the buffer of an owner that has none. */
int ad__send_new(ad_array *a, bool zero);

/* ---- array/graph.c: operations that are kept instead of sent ---- */
extern _Thread_local ad_graph *ad__recording; /* what the thread's operations go to; NULL: the server */
/* ad__send_op, ad__send_new and ad_launch do this while a graph records. */
int ad__record_op(ad_session *s, ad_op *op, ad_array *const *made);
int ad__record_new(ad_array *a, bool zero);
int ad__record_launch(ad_session *s, const ad_launch_text *launch);
/* AD_E_DEVICE while the thread records: what cannot be kept. */
int ad__check_not_recording(const char *what);
/* Keep a buffer that is to be freed as long as a graph needs it. False: none does. The caller holds the lock. */
bool ad__graphs_take_free(ad_session *s, uint64_t buffer);
/* Move made[k] to outs[k] when status is 0, else release them. Returns status. */
int ad__hand_out(int status, int n, ad_array *const *made, ad_array **outs);

#endif
