/* Reports to arrayd. The runner writes them between two turns: it owns most of what they contain, and so no operation
 * pays for them. */
#include "server/worker/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "server/common/log.h"
#include "server/common/os.h"
#include "server/common/report.h"
#include "server/worker/counters.h"
#include "server/worker/sharing/sharing.h"
#include "server/worker/session/session.h"
#include "server/worker/io/trace.h"

struct ad_past {
    ad_past *next;
    ad_report_principal row;
};

/* ---- parts of a report ---- */

/* List the sessions to be reported; probes and ended ones are left out. A listed session stays while the engine is run.
 */
static size_t list_sessions(ad_worker *w, ad_worker_session **list, size_t most) {
    size_t n = 0;
    pthread_mutex_lock(&w->sessions_lock);
    for (ad_worker_session *s = w->sessions; s && n < most; s = s->next)
        if (!ad__session_is_probe(s->id) && !ad__run_is_dropping(s)) list[n++] = s;
    pthread_mutex_unlock(&w->sessions_lock);
    return n;
}

static void add_session(ad_worker_session *s, int64_t now, ad_bytes *out) {
    ad_report_session row = {.id = s->id, .traced = ad__is_traced(s)};
    pthread_mutex_lock(&s->worker->engine.lock);
    row.ending = ad__run_is_over(s);
    pthread_mutex_unlock(&s->worker->engine.lock);
    row.away = atomic_load(&s->output.away);
    const int64_t began = atomic_load(&s->turns.background_since);
    if (began) {
        snprintf(row.doing, sizeof row.doing, "%s", atomic_load(&s->turns.doing));
        row.doing_ns = now - began;
    } else {
        row.idle = now - s->turns.since;
    }
    snprintf(row.principal, sizeof row.principal, "%s", s->principal);
    snprintf(row.client, sizeof row.client, "%.*s", (int)sizeof row.client - 1, s->client);
    ad__counters_get(s, row.counter);
    ad__bytes_append(out, &row, sizeof row);
}

static void add_sessions(ad_worker *w, ad_bytes *out, ad_report_head *head) {
    size_t most = atomic_load(&w->nsessions) + 64u; /* some sessions may have begun just now */
    if (most > AD_REPORT_SESSIONS) most = AD_REPORT_SESSIONS;
    ad_worker_session **list = ad__os.malloc(most * sizeof *list);
    if (!list) {
        out->failed = true;
        return;
    }
    head->sessions = (uint32_t)list_sessions(w, list, most);
    for (uint32_t i = 0; i < head->sessions; i++) add_session(list[i], ad__os_now(), out);
    free(list);
}

static void add_principals(const ad_worker *w, ad_bytes *out, ad_report_head *head) {
    for (const ad_past *p = w->past; p; p = p->next, head->principals++) ad__bytes_append(out, &p->row, sizeof p->row);
}

static void add_devices(const ad_worker *w, ad_bytes *out, ad_report_head *head) {
    for (int i = 0; i < w->device.count && i < AD_REPORT_DEVICES; i++, head->devices++) {
        const ad_gpu *g = &w->device.gpu[i];
        ad_report_device row = {.index = (uint64_t)i, .open = g->device != NULL};
        if (row.open) {
            row.memory = g->info.memory;
            row.limit = g->memory.limit;
            row.slab_bytes = g->memory.slab_bytes;
            row.slabs = g->memory.slabs;
            row.used = g->memory.used;
            row.reserved = (uint64_t)ad__parts_reserved(g, ad__os_now());
            memcpy(row.name, g->info.name, sizeof row.name);
        }
        ad__bytes_append(out, &row, sizeof row);
    }
}

typedef struct names {
    ad_bytes *out;
    ad_report_head *head;
} names;

static void add_name(void *user, const ad_report_name *row) {
    names *n = user;
    if (n->head->names == AD_REPORT_NAMES) return;
    ad__bytes_append(n->out, row, sizeof *row);
    n->head->names++;
}

/* ---- a whole report ---- */

static void write_report(ad_worker *w, uint64_t what, ad_bytes *out) {
    static ad_worker_session nobody; /* a placeholder, whose own counters are 0 */
    ad_report_head head = {.magic = AD_REPORT_MAGIC};
    nobody.worker = w;
    ad__counters_get(&nobody, head.counter);
    ad__bytes_append(out, &head, sizeof head);
    add_sessions(w, out, &head);
    add_principals(w, out, &head);
    add_devices(w, out, &head);
    if (what & AD_REPORT_WITH_NAMES) ad__names_each(w, add_name, &(names){out, &head});
    if (!out->failed) memcpy(out->data, &head, sizeof head);
}

static int store_report(const ad_bytes *b) {
    int fd = b->failed ? -1 : memfd_create("arrayd report", MFD_CLOEXEC);
    if (fd >= 0 && ad__os_write(fd, b->data, b->size)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

void ad__report_send(ad_worker *w, uint64_t question, uint64_t what) {
    ad_bytes b = AD_BYTES_INIT;
    write_report(w, what, &b);
    ad_note note = {.kind = AD_NOTE_REPORTED, .id = question, .size = b.size};
    int fd = store_report(&b);
    if (fd < 0) ad__log(nothing_reported, b.failed ? "out of host memory" : strerror(errno));
    else ad__worker_tell(w, &note, fd);
    ad__bytes_free(&b);
}

/* ---- ended sessions ---- */

/* Find or create the record of a principal, or that of "others" when there are too many. NULL: no memory. */
static ad_past *find_past(ad_worker *w, const char *principal) {
    unsigned count = 0;
    for (ad_past *p = w->past; p; p = p->next, count++)
        if (!strcmp(p->row.principal, principal)) return p;
    if (count == AD_REPORT_PRINCIPALS - 1) principal = "others";
    else if (count >= AD_REPORT_PRINCIPALS) return find_past(w, "others");
    ad_past *p = ad__os.calloc(1, sizeof *p);
    if (!p) return NULL;
    snprintf(p->row.principal, sizeof p->row.principal, "%s", principal);
    p->next = w->past;
    return w->past = p;
}

static void add_ended(ad_worker_session *s) {
    ad_past *p = ad__session_is_probe(s->id) ? NULL : find_past(s->worker, s->principal);
    int64_t counter[AD_NCOUNTER];
    if (!p) return;
    ad__counters_get(s, counter);
    if (s->move.done)
        counter[AD_COUNTER_ops_done] = 0; /* the session goes on elsewhere, and counts its operations there */
    for (int i = 0; i < AD_NCOUNTER; i++) p->row.counter[i] += counter[i];
    p->row.sessions += !s->move.done;
}

const ad_component ad__component_past = {.name = "sums of ended sessions", .drop = add_ended};

void ad__report_close(ad_worker *w) {
    while (w->past) {
        ad_past *p = w->past;
        w->past = p->next;
        free(p);
    }
}

/* ---- single sessions ---- */

void ad__report_kill_session(ad_worker *w, const ad_note *note) {
    ad_worker_session *s = ad__session_find(w, note->id);
    if (!s) return;
    ad__log(session_killed, s->id, s->principal, note->text);
    ad__session_bye(s, AD_E_DENIED, note->text);
}

void ad__report_trace_session(ad_worker *w, const ad_note *note, int fd) {
    ad_worker_session *s = ad__session_find(w, note->id);
    if (s) ad__trace_to(s, fd);
    else close(fd);
}
