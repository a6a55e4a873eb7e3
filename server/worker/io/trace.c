/* Trace of a session's messages as text: to standard error with the option trace, and to a pipe that an administrator
 * reads. Slow readers delay nothing: lines that the pipe does not take are counted and left out. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "server/worker/session.h"
#include "server/worker/io/trace.h"

#define LINE 1200 /* below PIPE_BUF, so that a line is written as a whole or not at all */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the tracers of all sessions */

static void stop_trace(ad_tracer *t) {
    if (t->fd > 0) close(t->fd);
    t->fd = 0;
    t->missed = 0;
    atomic_store(&t->on, false);
}

void ad__trace_to(ad_worker_session *s, int fd) {
    ad_tracer *t = &s->tracer;
    int flags = fd > 0 ? fcntl(fd, F_GETFL) : -1;
    pthread_mutex_lock(&lock);
    stop_trace(t);
    if (flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0) {
        t->fd = fd;
        atomic_store(&t->on, true);
    } else if (fd > 0) {
        close(fd);
    }
    pthread_mutex_unlock(&lock);
}

/* Write a line to the pipe, or count it as missed. False: the pipe has no reader. */
static bool write_line(ad_tracer *t, const char *line, size_t size) {
    char note[64];
    if (t->missed) {
        int n = snprintf(note, sizeof note, "... %lu left out\n", t->missed);
        if (write(t->fd, note, (size_t)n) == n) t->missed = 0;
    }
    if (!t->missed && write(t->fd, line, size) == (ssize_t)size) return true;
    if (errno != EAGAIN && errno != EINTR) return false;
    t->missed++;
    return true;
}

static void trace_line(ad_worker_session *s, const char *direction, const char *text) {
    char line[LINE];
    int n = snprintf(line, sizeof line, "%s %s\n", direction, text);
    pthread_mutex_lock(&lock);
    if (s->tracer.fd > 0 && !write_line(&s->tracer, line, (size_t)n)) stop_trace(&s->tracer);
    pthread_mutex_unlock(&lock);
}

void ad__trace(ad_worker_session *s, const char *direction, const uint8_t *control, size_t size) {
    ad_reader *r = NULL;
    ad_arena arena = AD_ARENA_INIT;
    ad_message m;
    char text[1024];
    if (ad__reader_new(&r) || ad__reader_begin(r, control, size, NULL)) size = 0;
    while (size && ad__reader_next(r, &arena, ~0u, &m, NULL) > 0) {
        ad__message_hide(&m, &s->tracer.secret);
        ad__message_text(&m, text, sizeof text);
        if (s->worker->config.trace)
            fprintf(stderr, "arrayd-worker %lu %s %s\n", (unsigned long)s->id, direction, text);
        if (atomic_load_explicit(&s->tracer.on, memory_order_relaxed)) trace_line(s, direction, text);
        ad__arena_reset(&arena);
    }
    ad__arena_free(&arena);
    ad__reader_free(r);
}

static void close_trace(ad_worker_session *s) { ad__trace_to(s, -1); }

const ad_component ad__component_trace = {.name = "trace", .close = close_trace};
