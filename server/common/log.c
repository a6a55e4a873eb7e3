/* The log: one logfmt line on standard error for each event. See log.h. */
#include "server/common/log.h"

#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE 2048

typedef struct event_row {
    const char *name;
    ad_log_level level, other;
} event_row;

static const event_row events[AD_NEVENT] = {
#define AD_EVENT(id, level, other, event, pairs, doc) {event, AD_LOG_##level, AD_LOG_##other},
#include "server/common/event.def"
#undef AD_EVENT
};
static const char *const level_names[] = {"error", "warn", "info", "debug"};
static atomic_int log_limit = AD_LOG_INFO;
static const char *log_component = "arrayd";
static atomic_ulong lines_lost;

typedef struct line {
    char text[LINE];
    size_t size;
} line;

int ad__log_level(const char *name) {
    for (int i = 0; i < 4; i++)
        if (!strcmp(name, level_names[i])) return i;
    return -1;
}

void ad__log_set(int level) { atomic_store(&log_limit, level); }

void ad__log_name(const char *component) { log_component = component; }

static void put_char(line *l, char c) {
    if (l->size < LINE - 1) l->text[l->size++] = c;
}

static void put_chars(line *l, const char *text) {
    while (*text) put_char(l, *text++);
}

/* Append a value as logfmt: bare where possible, else quoted, with \xNN for bytes that are not printable ASCII.
 * Values come from clients, so that nothing in one may end the line or look like another pair. */
static void put_quoted_value(line *l, const char *text) {
    bool bare = *text != 0;
    for (const char *p = text; *p; p++) bare = bare && *p > ' ' && *p < 127 && *p != '"' && *p != '=' && *p != '\\';
    if (bare) {
        put_chars(l, text);
        return;
    }
    put_char(l, '"');
    for (const char *p = text; *p; p++) {
        char hex[8];
        if (*p == '"' || *p == '\\') put_char(l, '\\');
        if (*p >= ' ' && *p < 127) {
            put_char(l, *p);
        } else {
            snprintf(hex, sizeof hex, "\\x%02x", (unsigned char)*p);
            put_chars(l, hex);
        }
    }
    put_char(l, '"');
}

/* Append the argument of one conversion; p points behind its percent sign. Return where the conversion ends. */
static const char *put_argument(line *l, const char *p, va_list *args) {
    char number[32];
    bool wide = false;
    for (; *p == 'l' || *p == 'z'; p++) wide = true;
    if (*p == 's') {
        const char *value = va_arg(*args, const char *);
        put_quoted_value(l, value ? value : "");
        return p;
    }
    if (*p == 'd') snprintf(number, sizeof number, "%lld", wide ? (long long)va_arg(*args, long) : va_arg(*args, int));
    else
        snprintf(number, sizeof number, *p == 'x' ? "%llx" : "%llu",
                 wide ? (unsigned long long)va_arg(*args, unsigned long) : va_arg(*args, unsigned));
    put_chars(l, number);
    return p;
}

/* Append time, level, component, process and event. */
static void put_line_head(line *l, ad_log_level level, const char *event) {
    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    char date[32];
    size_t n = strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &tm);
    l->size = (size_t)snprintf(l->text, LINE, "time=%.*s.%03ldZ level=%s in=%s pid=%d event=", (int)n, date,
                               now.tv_nsec / 1000000, level_names[level], log_component, (int)getpid());
    put_quoted_value(l, event);
}

/* Tell whether standard error takes a line now. A pipe whose reader is stuck takes none, and nobody waits for it. */
static bool can_take_line(void) {
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&p, 1, 0) == 1 && p.revents & POLLOUT;
}

/* Write the line with one call, so that lines of two processes do not mix. Lines without a reader are counted; an
 * error of a full disk is ignored, as nobody can be told. */
static void write_line(const line *l) {
    if (!can_take_line()) {
        atomic_fetch_add(&lines_lost, 1);
        return;
    }
    ssize_t written = write(STDERR_FILENO, l->text, l->size);
    (void)written;
    unsigned long lost = atomic_exchange(&lines_lost, 0);
    if (lost) ad__log(log_lines_lost, lost);
}

void ad__log_event(ad_log_event event, bool is_other, const char *pairs, ...) {
    const ad_log_level level = is_other ? events[event].other : events[event].level;
    line l;
    va_list args;
    if ((int)level > atomic_load_explicit(&log_limit, memory_order_relaxed)) return;
    put_line_head(&l, level, events[event].name);
    if (*pairs) put_char(&l, ' ');
    va_start(args, pairs);
    for (const char *p = pairs; *p; p++) {
        if (*p == '%' && p[1]) p = put_argument(&l, p + 1, &args);
        else put_char(&l, *p);
    }
    va_end(args);
    l.text[l.size++] = '\n';
    write_line(&l);
}
