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

static void put(line *l, char c) {
    if (l->size < LINE - 1) l->text[l->size++] = c;
}

static void put_text(line *l, const char *text) {
    while (*text) put(l, *text++);
}

/* A value as logfmt: bare where it can be, else quoted; bytes that are no printable ASCII as \xNN. Names come from
 * clients, so nothing in them may end the line or look like another pair. */
static void put_value(line *l, const char *text) {
    bool bare = *text != 0;
    for (const char *p = text; *p; p++) bare = bare && *p > ' ' && *p < 127 && *p != '"' && *p != '=' && *p != '\\';
    if (bare) {
        put_text(l, text);
        return;
    }
    put(l, '"');
    for (const char *p = text; *p; p++) {
        char hex[8];
        if (*p == '"' || *p == '\\') put(l, '\\');
        if (*p >= ' ' && *p < 127) {
            put(l, *p);
        } else {
            snprintf(hex, sizeof hex, "\\x%02x", (unsigned char)*p);
            put_text(l, hex);
        }
    }
    put(l, '"');
}

/* One conversion, p after its percent sign; where it ends. */
static const char *put_conversion(line *l, const char *p, va_list *args) {
    char number[32];
    bool wide = false;
    for (; *p == 'l' || *p == 'z'; p++) wide = true;
    if (*p == 's') {
        const char *value = va_arg(*args, const char *);
        put_value(l, value ? value : "");
        return p;
    }
    if (*p == 'd') snprintf(number, sizeof number, "%lld", wide ? (long long)va_arg(*args, long) : va_arg(*args, int));
    else
        snprintf(number, sizeof number, *p == 'x' ? "%llx" : "%llu",
                 wide ? (unsigned long long)va_arg(*args, unsigned long) : va_arg(*args, unsigned));
    put_text(l, number);
    return p;
}

static void put_head(line *l, ad_log_level level, const char *event) {
    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    char date[32];
    size_t n = strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &tm);
    l->size = (size_t)snprintf(l->text, LINE, "time=%.*s.%03ldZ level=%s in=%s pid=%d event=", (int)n, date,
                               now.tv_nsec / 1000000, level_names[level], log_component, (int)getpid());
    put_value(l, event);
}

/* A pipe whose reader is stuck keeps nobody waiting: it takes a line whenever it says that it does. */
static bool takes_a_line(void) {
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&p, 1, 0) == 1 && p.revents & POLLOUT;
}

/* One write, so that lines of two processes do not mix. What is lost for want of a reader is counted; of a full disk
 * there is nobody to tell. */
static void emit(const line *l) {
    if (!takes_a_line()) {
        atomic_fetch_add(&lines_lost, 1);
        return;
    }
    ssize_t written = write(STDERR_FILENO, l->text, l->size);
    (void)written;
    unsigned long lost = atomic_exchange(&lines_lost, 0);
    if (lost) ad__log(AD_LOG_WARN, "log lines lost", "lines=%lu", lost);
}

void ad__log(ad_log_level level, const char *event, const char *pairs, ...) {
    line l;
    va_list args;
    if ((int)level > atomic_load_explicit(&log_limit, memory_order_relaxed)) return;
    put_head(&l, level, event);
    if (*pairs) put(&l, ' ');
    va_start(args, pairs);
    for (const char *p = pairs; *p; p++) {
        if (*p == '%' && p[1]) p = put_conversion(&l, p + 1, &args);
        else put(&l, *p);
    }
    va_end(args);
    l.text[l.size++] = '\n';
    emit(&l);
}
