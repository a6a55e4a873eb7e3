/* The live view: what each session has done since the last report. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "server/ctl/ctl.h"

#define LINES_ABOVE 6 /* lines above the table's rows */

typedef struct active {
    const json_t *session;
    double ops, chains, device, in, out; /* values per second; device: seconds of device time */
} active;

static const json_t *find_session(const json_t *sessions, const char *name) {
    for (size_t i = 0; i < json_array_size(sessions); i++) {
        const json_t *s = json_array_get(sessions, i);
        if (!strcmp(ad__json_text(s, "session"), name)) return s;
    }
    return NULL;
}

static double compute_rate(const json_t *now, const json_t *before, const char *counter, double passed) {
    double more = ad__json_counter(now, counter) - ad__json_counter(before, counter);
    return passed > 0 && more > 0 ? more / passed : 0;
}

static int compare_by_use(const void *a, const void *b) {
    const active *x = a, *y = b;
    if (x->device != y->device) return (x->device < y->device) - (x->device > y->device);
    return (x->ops < y->ops) - (x->ops > y->ops);
}

static size_t count_terminal_rows(void) {
    struct winsize w;
    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) || w.ws_row <= LINES_ABOVE) return 0;
    return w.ws_row - LINES_ABOVE;
}

static void print_sessions(active *list, size_t n) {
    static const char *const head[] = {"SESSION",       "WHO",       "PROGRAM",   ">MEMORY",
                                       ">OPERATIONS/S", ">CHAINS/S", ">DEVICE %", ">IN/S",
                                       ">OUT/S",        ">IDLE",     NULL};
    ad_table t;
    ad__table_begin(&t, head);
    for (size_t i = 0; i < n; i++) {
        const json_t *s = list[i].session;
        ad__table_session(&t, s);
        ad__table_add(&t, "%s", ad__json_text(s, "principal"));
        ad__table_add(&t, "%s", ad__json_text(s, "client"));
        ad__table_bytes(&t, ad__json_counter(s, "buffer_bytes"));
        ad__table_add(&t, "%.0f", list[i].ops);
        ad__table_add(&t, "%.0f", list[i].chains);
        ad__table_add(&t, "%.1f", list[i].device * 100);
        ad__table_bytes(&t, list[i].in);
        ad__table_bytes(&t, list[i].out);
        ad__table_seconds(&t, ad__json_number(s, "idle_seconds"));
    }
    ad__table_end(&t, count_terminal_rows());
}

static void print_totals(const json_t *now, const active *list, size_t n) {
    double ops = 0, memory = 0;
    char text[16];
    const json_t *a = json_object_get(now, "arrayd");
    for (size_t i = 0; i < n; i++) {
        ops += list[i].ops;
        memory += ad__json_counter(list[i].session, "buffer_bytes");
    }
    ad__ctl_bytes_text(memory, text);
    printf("arrayd %s, process %.0f: %zu sessions, %.0f operations a second, %s in arrays\n\n",
           ad__json_text(a, "version"), ad__json_number(a, "pid"), n, ops, text);
}

static int print_changes(const ad_ctl *c, const json_t *now, const json_t *before) {
    const json_t *sessions = json_object_get(now, "sessions"), *old = json_object_get(before, "sessions");
    size_t n = json_array_size(sessions);
    double passed = ad__json_number(json_object_get(now, "arrayd"), "uptime_seconds") -
                    ad__json_number(json_object_get(before, "arrayd"), "uptime_seconds");
    active *list = calloc(n + 1, sizeof *list);
    if (!list) return ad__ctl_error(c, AD_CTL_BAD, "out of memory");
    for (size_t i = 0; i < n; i++) {
        const json_t *s = json_array_get(sessions, i), *b = find_session(old, ad__json_text(s, "session"));
        list[i] = (active){s,
                           compute_rate(s, b, "ops_done", passed),
                           compute_rate(s, b, "fused_chains", passed),
                           compute_rate(s, b, "device_us", passed) / 1e6,
                           compute_rate(s, b, "bytes_in", passed),
                           compute_rate(s, b, "bytes_out", passed)};
    }
    qsort(list, n, sizeof *list, compare_by_use);
    if (isatty(STDOUT_FILENO)) fputs("\033[H\033[J", stdout);
    print_totals(now, list, n);
    print_sessions(list, n);
    if (!isatty(STDOUT_FILENO)) putchar('\n');
    free(list);
    return fflush(stdout) ? ad__ctl_error(c, AD_CTL_BAD, "cannot write to standard output") : AD_CTL_GOOD;
}

static void sleep_seconds(double seconds) {
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&t, NULL);
}

int ad__ctl_top(ad_ctl *c) {
    double interval = c->interval > 0 ? c->interval : 2;
    json_t *before = NULL, *now = NULL;
    int status = ad__ctl_alone(c);
    if (!status) status = ad__ctl_ask(c, "status\n", -1, &before);
    for (uint64_t i = 0; !status && (!c->count || i < c->count); i++) {
        sleep_seconds(interval);
        status = ad__ctl_ask(c, "status\n", -1, &now);
        if (status) break;
        status = c->json ? ad__ctl_print(c, now) : print_changes(c, now, before);
        json_decref(before);
        before = now;
    }
    json_decref(before);
    return status;
}
