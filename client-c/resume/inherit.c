/* Forks: a child goes on with its parent's arrays, in a session of its own that the parent begins for it.
 *
 *   parent                               server                          child
 *     socket pair (a, b)
 *     fork message with b  ------------>   begins a session over b
 *     fork()  -------------------------------------------------------->   has a: renew_session
 *     close(a)                             welcome  ------------------>   uses the arrays
 *
 * The message is ordered behind all operations so far; the fork does not wait for its execution. Buffers that are
 * released and not yet freed are the child's, too: both ends send their free messages after the fork. Where that cannot
 * be, as with a server on another machine or in a sandbox that passes no descriptors, the child cannot use the session,
 * and opens another. */
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "client-c/interop/lend.h"
#include "client-c/interop/ranges.h"
#include "client-c/memory/windows.h"

#define PATIENCE 2000000000u /* time in ns that a fork waits for the server to receive what was sent */

atomic_int ad__generation;
_Thread_local uint64_t ad__fork_deadline;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list of sessions, and is held during a fork */
static ad_session *sessions;

void ad__sessions_add(ad_session *s) {
    pthread_mutex_lock(&lock);
    s->child.fd = -1;
    s->among_all.next = sessions;
    s->among_all.link = &sessions;
    if (s->among_all.next) s->among_all.next->among_all.link = &s->among_all.next;
    sessions = s;
    pthread_mutex_unlock(&lock);
}

void ad__sessions_remove(ad_session *s) {
    pthread_mutex_lock(&lock);
    *s->among_all.link = s->among_all.next;
    if (s->among_all.next) s->among_all.next->among_all.link = s->among_all.link;
    pthread_mutex_unlock(&lock);
}

bool ad_session_usable(const ad_session *s) { return !ad__is_foreign(s); }

/* ---- before ---- */

/* Tell whether arrays refer to the session. The program's handle and modules refer to it, too, and a child has no use
 * for these. */
static bool has_arrays(const ad_session *s) {
    return atomic_load(&s->references.all) > 1 + atomic_load(&s->references.modules);
}

static bool needs_child_session(const ad_session *s) {
    return s->handshake.welcomed && !s->dead && has_arrays(s) && !ad__is_remote(&s->connection.address) &&
           !atomic_load(&s->connection.passes_nothing) && s->encoded.ops - s->window.acked < s->window.ops;
}

/* Tell whether all output has been sent, and no thread writes. */
static bool is_all_sent(const ad_session *s) {
    return !s->resume.lost && !s->output.writing && s->output.gathered_pass.fd < 0 && !ad__has_unsent(s) &&
           s->output.gathered.size == 0;
}

/* Tell whether the connection was lost so lately that another one is likely to be there soon, as behind a migration. */
static bool is_coming_back(const ad_session *s) {
    const uint64_t lost_at = s->resume.deadline - s->welcome.resume * 1000000u;
    return s->resume.lost && ad__now() < lost_at + PATIENCE;
}

/* Send all output. A lost connection is waited for: a parent that ends behind the fork would not send its message
 * again. True: the output has been sent, or will be sent over another connection. */
static bool flush_before_fork(ad_session *s) {
    while (!is_all_sent(s) && !s->dead && ad__now() < ad__fork_deadline) {
        if (s->output.writing || is_coming_back(s)) ad__wait_changed(s);
        else if (s->resume.lost || (ad__push_output(s) && !s->resume.lost)) break;
    }
    return (is_all_sent(s) || s->resume.enabled) && !s->dead;
}

/* Make room for a descriptor in the gathered output. A descriptor that waits for another connection moves to the
 * unacknowledged bytes. */
static bool make_descriptor_room(ad_session *s) {
    if (!flush_before_fork(s)) return false;
    if (s->output.gathered_pass.fd >= 0 && s->resume.lost && !s->output.writing) ad__save_gathered(s);
    return s->output.gathered_pass.fd < 0;
}

static int make_child_sockets(int end[2]) {
    const struct timeval step = {.tv_usec = AD_WAIT_STEP_US};
    const int room = AD_SEND_BUFFER, on = 1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, end)) return -1;
    setsockopt(end[0], SOL_SOCKET, SO_RCVTIMEO, &step, sizeof step);
    setsockopt(end[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    setsockopt(end[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on); /* the server learns the child's process id */
    return 0;
}

static bool draw_child_key(ad_session *s) {
    if (getrandom(&s->child.key, sizeof s->child.key, 0) != sizeof s->child.key ||
        getrandom(s->child.secret, AD_SECRET, 0) != AD_SECRET)
        return false;
    s->child.key |= AD_FORK_KEY;
    return true;
}

/* Clear the failure of a fork message that went without its descriptor, of which the program need not hear. A failure
 * of the program's own may come before it, once. */
static void retract_fork(ad_session *s) {
    const uint64_t number = s->child.operation;
    s->child.operation = 0;
    pthread_mutex_unlock(&s->lock);
    for (int i = 0; i < 2 && !ad_settle(s); i++) {}
    pthread_mutex_lock(&s->lock);
    if (s->input.deferred.number == number) s->input.deferred.status = 0;
}

/* Send the fork message, and nothing behind it that the child must send as well. */
static bool send_fork(ad_session *s, int fd) {
    s->frees.held = true;
    const bool sent = ad__pass_fork(s, fd, s->child.key, s->child.secret) == 0 && flush_before_fork(s);
    s->frees.held = false;
    return sent && !atomic_load(&s->connection.passes_nothing);
}

/* Begin a session for the child. The caller holds the session's lock until the fork. */
static void prepare_child(ad_session *s) {
    int end[2];
    if (!needs_child_session(s) || !make_descriptor_room(s) || !draw_child_key(s) || make_child_sockets(end) != 0)
        return;
    if (send_fork(s, end[1])) {
        s->child.fd = end[0];
        return;
    }
    close(end[0]); /* the server finds the other end closed */
    if (atomic_load(&s->connection.passes_nothing)) retract_fork(s);
}

static void prepare_fork(void) {
    pthread_mutex_lock(&lock);
    ad__fork_deadline = ad__now() + PATIENCE;
    for (ad_session *s = sessions; s; s = s->among_all.next) {
        pthread_mutex_lock(&s->lock);
        prepare_child(s);
    }
    ad__fork_deadline = 0;
    ad__pools_before_fork();
    ad__lend_before_fork();
    ad__ranges_before_fork();
}

/* ---- after ---- */

static void close_child_socket(ad_session *s) {
    if (s->child.fd >= 0) close(s->child.fd);
    s->child.fd = -1;
}

static void continue_parent(void) {
    ad__ranges_forked();
    ad__lend_forked(false);
    ad__pools_forked();
    for (ad_session *s = sessions; s; s = s->among_all.next) {
        if (s->child.fd >= 0 && s->resume.enabled)
            ad__flusher_wake(s); /* the flusher sends the message again if the connection breaks */
        close_child_socket(s);
        pthread_mutex_unlock(&s->lock);
    }
    pthread_mutex_unlock(&lock);
}

/* Reset the receiver. A thread of the parent may have been using it. */
static void reset_input(ad_session *s) {
    ad_receiver fresh = {0};
    if (s->input.reading) {
        s->input.receiver = fresh;
        if (ad__receiver_open(&s->input.receiver) != 0) s->dead = true;
    }
    s->input.receiver.begin = s->input.receiver.end = 0;
    s->input.receiver.left = 0;
    s->input.receiver.closed = false;
    s->input.receiver.spin_credit = 0;
}

/* Close the child's copies of the parent's descriptors, so that the end of the parent's connection is seen. */
static void close_descriptors(ad_session *s) {
    close(s->connection.fd);
    if (s->output.gathered_pass.fd >= 0) close(s->output.gathered_pass.fd);
    if (s->output.sending_pass.fd >= 0) close(s->output.sending_pass.fd);
    s->connection.fd = s->output.gathered_pass.fd = s->output.sending_pass.fd = -1;
}

static void renew_session(ad_session *s) {
    close_descriptors(s);
    s->connection.fd = s->child.fd;
    s->child.fd = -1;
    s->connection.embedded.pid = 0; /* it is the parent's child process */
    s->generation = atomic_load(&ad__generation);
    s->serial = ad__session_next_serial();
    reset_input(s);
    s->output.gathered.size = s->output.sending.size = s->output.frame = s->output.sent = s->frees.end = 0;
    s->output.writing = s->output.recheck = s->input.reading = false;
    s->encoded.ops = s->encoded.bytes = s->output.loaded = s->output.place = s->child.operation = 0;
    ad__resume_renew(s);
    s->input.received = s->input.reported = s->input.replied = 0;
    s->window.acked = s->window.acked_bytes = 0;
    s->window.first = s->window.count = 0;
    s->input.slots = NULL;
    s->waiting.threads = 0;
    s->stream.current = 0;
    s->stream.used = false;
    s->input.deferred.status = 0;
    s->flusher.runs = s->flusher.asleep = false;
    s->handshake.inherited = true;
    if (s->memory.pool) s->memory.pool->detached = true;
    s->memory.pool = NULL;
}

static void disown_session(ad_session *s) {
    close_descriptors(s);
    ad__resume_disown(s);
    s->dead = true;
}

/* Renew or disown the sessions. The forking thread holds the locks, and is the only thread of the child. */
static void continue_child(void) {
    atomic_fetch_add_explicit(&ad__generation, 1, memory_order_relaxed);
    for (ad_session *s = sessions; s; s = s->among_all.next) {
        ad__session_init_conditions(s);
        ad__ring_forget(s);
        ad__mirrors_drop(s);
        if (s->child.fd >= 0) renew_session(s);
        else if (s->connection.fd >= 0) disown_session(s);
        pthread_mutex_unlock(&s->lock);
    }
    ad__ranges_forked();
    ad__lend_forked(true);
    ad__pools_in_child();
    pthread_mutex_unlock(&lock);
}

static void register_fork_handlers(void) { pthread_atfork(prepare_fork, continue_parent, continue_child); }

void ad_watch_forks(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_fork_handlers);
}
