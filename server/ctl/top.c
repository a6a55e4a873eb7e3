/* The live view: what each session has done since the last report, and what it does now. On a terminal keys choose the
 * order and end sessions (ctl/keys.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "server/ctl/ctl.h"
#include "server/ctl/keys.h"

#define LINES_AROUND                                                                                           \
    5 /* lines around the table's rows, beside those of texts: its head, what is left out, two empty ones, the \
         cursor's */

typedef struct active {
    const json_t *session;
    double ops, chains, device, in, out; /* values per second; device: seconds of device time */
    double memory;
} active;

/* ---- orders ---- */

static int compare_numbers(double a, double b) { return (a < b) - (a > b); }

static int compare_by_device(const void *a, const void *b) {
    const active *x = a, *y = b;
    const int by_device = compare_numbers(x->device, y->device);
    return by_device ? by_device : compare_numbers(x->ops, y->ops);
}

static int compare_by_memory(const void *a, const void *b) {
    return compare_numbers(((const active *)a)->memory, ((const active *)b)->memory);
}

static int compare_by_ops(const void *a, const void *b) {
    return compare_numbers(((const active *)a)->ops, ((const active *)b)->ops);
}

static int compare_by_who(const void *a, const void *b) {
    const active *x = a, *y = b;
    const int by_name = strcmp(ad__json_text(x->session, "principal"), ad__json_text(y->session, "principal"));
    return by_name ? by_name : compare_by_device(a, b);
}

static const struct {
    const char *name;
    int (*compare)(const void *, const void *);
} orders[] = {{"device time", compare_by_device},
              {"memory", compare_by_memory},
              {"operations", compare_by_ops},
              {"principal", compare_by_who}};
#define NORDER (sizeof orders / sizeof *orders)

/* ---- figures ---- */

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

static active compute_activity(const json_t *s, const json_t *b, double passed) {
    return (active){.session = s,
                    .ops = compute_rate(s, b, "ops_done", passed),
                    .chains = compute_rate(s, b, "fused_chains", passed),
                    .device = compute_rate(s, b, "device_us", passed) / 1e6,
                    .in = compute_rate(s, b, "bytes_in", passed),
                    .out = compute_rate(s, b, "bytes_out", passed),
                    .memory = ad__json_counter(s, "buffer_bytes")};
}

/* ---- printing ---- */

/* Break a text between words into lines that fit on the screen, and print it where out is given. Returns the number of
 * lines. */
static size_t wrap_text(const char *text, const ad_screen *screen, FILE *out) {
    size_t lines = 1, used = 0;
    while (*text) {
        const size_t n = strcspn(text, " ");
        const bool fits = !used || !screen->columns || used + 1 + n <= screen->columns;
        if (out && used) putc(fits ? ' ' : '\n', out);
        if (out) fwrite(text, 1, n, out);
        used = fits && used ? used + 1 + n : n;
        lines += !fits;
        text += n + (text[n] == ' ');
    }
    if (out) putc('\n', out);
    return lines;
}

/* Choose a colour for a principal: the same in every view. */
static int choose_colour(const char *who) {
    static const int colours[] = {31, 32, 33, 34, 35, 36, 91, 92, 94, 95, 96};
    unsigned hash = 5381;
    for (; *who; who++) hash = hash * 33 + (unsigned char)*who;
    return colours[hash % (sizeof colours / sizeof *colours)];
}

/* Say what a session does: a long operation, or why it does nothing. */
static void add_doing(ad_table *t, const active *a) {
    const json_t *s = a->session;
    const char *what = ad__json_text(s, "executing"), *state = ad__json_text(s, "state");
    if (*what) ad__table_add(t, "%s for %.1f s", what, ad__json_number(s, "executing_seconds"));
    else if (!strcmp(state, "waiting")) ad__table_add(t, "its client is away");
    else if (ad__json_counter(s, "queued_bytes") > 0) ad__table_add(t, "waits for its turn");
    else ad__table_add(t, a->ops > 0 ? "computes" : "nothing");
}

/* lines: of texts above and below the table */
static void print_sessions(const active *list, size_t n, const ad_screen *screen, size_t lines) {
    static const char *const head[] = {"SESSION", "WHO",       ">DEVICE %", "DOING",  ">MEMORY", ">OPERATIONS/S",
                                       "PROGRAM", ">CHAINS/S", ">IN/S",     ">OUT/S", ">IDLE",   NULL};
    ad_table t;
    int *colour = screen->is_terminal ? calloc(n + 1, sizeof *colour) : NULL;
    ad__table_begin(&t, head);
    t.screen = screen->columns;
    t.colour = colour;
    for (size_t i = 0; i < n; i++) {
        const json_t *s = list[i].session;
        if (colour) colour[i] = choose_colour(ad__json_text(s, "principal"));
        ad__table_session(&t, s);
        ad__table_add(&t, "%s", ad__json_text(s, "principal"));
        ad__table_add(&t, "%.1f", list[i].device * 100);
        add_doing(&t, &list[i]);
        ad__table_bytes(&t, list[i].memory);
        ad__table_add(&t, "%.0f", list[i].ops);
        ad__table_add(&t, "%s", ad__json_text(s, "client"));
        ad__table_add(&t, "%.0f", list[i].chains);
        ad__table_bytes(&t, list[i].in);
        ad__table_bytes(&t, list[i].out);
        ad__table_seconds(&t, ad__json_number(s, "idle_seconds"));
    }
    lines += LINES_AROUND;
    ad__table_end(&t, !screen->rows ? 0 : screen->rows > lines ? screen->rows - lines : 1);
    free(colour);
}

/* Count the devices of the server. Each worker lists those that it can use. */
static size_t count_devices(const json_t *now) {
    const json_t *workers = json_object_get(now, "workers");
    size_t most = 1;
    for (size_t i = 0; i < json_array_size(workers); i++) {
        const size_t n = json_array_size(json_object_get(json_array_get(workers, i), "devices"));
        if (n > most) most = n;
    }
    return most;
}

/* Count the multiprocessors that are reserved for light sessions. */
static double count_reserved(const json_t *now) {
    size_t i, k;
    json_t *w, *d;
    double n = 0;
    json_array_foreach(json_object_get(now, "workers"), i, w) json_array_foreach(json_object_get(w, "devices"), k, d)
        n += ad__json_number(d, "reserved_multiprocessors");
    return n;
}

/* Say how busy the devices were, who has had them most, and with which operation that takes long. Operations of several
 * sessions may share a device, so that the sum of their times may exceed its time. */
static void describe_busiest(const json_t *now, const active *list, size_t n, char *out, size_t size) {
    const size_t devices = count_devices(now);
    double device = 0, longest = 0;
    const active *most = NULL;
    const json_t *slow = NULL;
    for (size_t i = 0; i < n; i++) {
        const double seconds = ad__json_number(list[i].session, "executing_seconds");
        device += list[i].device;
        if (list[i].device > 0 && (!most || list[i].device > most->device)) most = &list[i];
        if (seconds > longest) longest = seconds, slow = list[i].session;
    }
    if (device > (double)devices) device = (double)devices;
    int used = devices == 1 ? snprintf(out, size, "device %.0f %% busy", device * 100)
                            : snprintf(out, size, "%zu devices %.0f %% busy", devices, device * 100);
    const double reserved = count_reserved(now);
    if (reserved > 0) used += snprintf(out + used, size - (size_t)used, ", %.0f multiprocessors reserved", reserved);
    if (most)
        used += snprintf(out + used, size - (size_t)used, ", most with %.200s (session %s, %.0f %%)",
                         ad__json_text(most->session, "principal"), ad__json_text(most->session, "session"),
                         most->device * 100);
    if (slow)
        snprintf(out + used, size - (size_t)used, "; longest: %.80s of session %s, for %.1f s",
                 ad__json_text(slow, "executing"), ad__json_text(slow, "session"), longest);
}

static void describe_totals(const json_t *now, const active *list, size_t n, char *out, size_t size) {
    double ops = 0, memory = 0;
    char text[16];
    const json_t *a = json_object_get(now, "arrayd");
    for (size_t i = 0; i < n; i++) {
        ops += list[i].ops;
        memory += list[i].memory;
    }
    ad__ctl_bytes_text(memory, text);
    snprintf(out, size, "arrayd %.40s, process %.0f: %zu session%s, %.0f operations a second, %s in arrays",
             ad__json_text(a, "version"), ad__json_number(a, "pid"), n, ad__ctl_plural((double)n), ops, text);
}

/* Print one view of the sessions, which have been sorted. */
static void print_view(const json_t *now, const active *list, size_t n, const ad_screen *screen, const char *order) {
    char totals[256], busiest[512], keys[128];
    describe_totals(now, list, n, totals, sizeof totals);
    describe_busiest(now, list, n, busiest, sizeof busiest);
    snprintf(keys, sizeof keys, "by %s; keys: s another order, k end a session, q leave", order);
    if (screen->is_terminal) fputs("\033[H\033[J", stdout);
    size_t lines = wrap_text(totals, screen, stdout) + wrap_text(busiest, screen, stdout);
    putchar('\n');
    print_sessions(list, n, screen, lines + wrap_text(keys, screen, NULL));
    putchar('\n');
    if (screen->is_terminal) wrap_text(keys, screen, stdout);
}

static ad_screen measure_screen(void) {
    struct winsize w;
    ad_screen s = {.is_terminal = isatty(STDOUT_FILENO)};
    if (s.is_terminal && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &w)) s.rows = w.ws_row, s.columns = w.ws_col;
    return s;
}

static int print_changes(const ad_ctl *c, const json_t *now, const json_t *before, unsigned order) {
    const json_t *sessions = json_object_get(now, "sessions"), *old = json_object_get(before, "sessions");
    const ad_screen screen = measure_screen();
    size_t n = json_array_size(sessions);
    double passed = ad__json_number(json_object_get(now, "arrayd"), "uptime_seconds") -
                    ad__json_number(json_object_get(before, "arrayd"), "uptime_seconds");
    active *list = calloc(n + 1, sizeof *list);
    if (!list) return ad__ctl_error(c, AD_CTL_BAD, "out of memory");
    for (size_t i = 0; i < n; i++) {
        const json_t *s = json_array_get(sessions, i);
        list[i] = compute_activity(s, find_session(old, ad__json_text(s, "session")), passed);
    }
    qsort(list, n, sizeof *list, orders[order % NORDER].compare);
    print_view(now, list, n, &screen, orders[order % NORDER].name);
    free(list);
    return fflush(stdout) ? ad__ctl_error(c, AD_CTL_BAD, "cannot write to standard output") : AD_CTL_GOOD;
}

/* ---- keys ---- */

/* End a session whose name is typed. */
static void ask_and_kill(ad_ctl *c, ad_keys *keys) {
    char name[64], line[128];
    json_t *answer = NULL;
    if (!ad__keys_read_line(keys, "end session: ", name, sizeof name) || strpbrk(name, " \t")) return;
    snprintf(line, sizeof line, "kill %s by arrayctl top\n", name);
    if (ad__ctl_ask(c, line, -1, &answer)) ad__keys_wait(keys, 2); /* until the message has been read */
    json_decref(answer);
}

/* Wait for the next view, or for a key. False: leave. */
static bool wait_or_obey(ad_ctl *c, ad_keys *keys, double seconds, unsigned *order) {
    switch (ad__keys_wait(keys, seconds)) {
    case 'q':
    case 3: return false;
    case 's': ++*order; return true;
    case 'k': ask_and_kill(c, keys); return true;
    default: return true;
    }
}

int ad__ctl_top(ad_ctl *c) {
    double interval = c->interval > 0 ? c->interval : 2;
    json_t *before = NULL, *now = NULL;
    unsigned order = 0;
    ad_keys keys;
    int status = ad__ctl_alone(c);
    if (!status) status = ad__ctl_ask(c, "status\n", -1, &before);
    ad__keys_begin(&keys, !status && !c->json);
    for (uint64_t i = 0; !status && (!c->count || i < c->count); i++) {
        if (!wait_or_obey(c, &keys, interval, &order)) break;
        status = ad__ctl_ask(c, "status\n", -1, &now);
        if (status) break;
        status = c->json ? ad__ctl_print(c, now) : print_changes(c, now, before, order);
        json_decref(before);
        before = now;
    }
    ad__keys_end(&keys);
    json_decref(before);
    return status;
}
