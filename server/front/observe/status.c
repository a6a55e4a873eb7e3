/* The server's state as JSON, for arrayctl and for the page. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "protocol/tables.h"
#include "server/common/metric.h"
#include "server/common/os.h"
#include "server/common/put.h"
#include "server/front/front.h"

static double get_seconds_since(int64_t t) { return (double)(ad__os_now() - t) / 1e9; }

/* Append the comma before an item of a list, but not before the first one. */
static void put_separator(ad_bytes *b, bool *first) {
    if (!*first) ad__put(b, ",");
    *first = false;
}

static void put_json_text(ad_bytes *b, const char *key, const char *text) {
    ad__put(b, "\"%s\":", key);
    ad__put_json(b, text);
}

static void put_counters(ad_bytes *b, ad_metric_scope scope, const int64_t *counter) {
    bool first = true;
    ad__put(b, ",\"counters\":{");
    for (int i = 0; i < AD_NCOUNTER; i++) {
        const ad_metric *m = &ad__metrics[i];
        if (m->scope != scope) continue;
        put_separator(b, &first);
        ad__put(b, "\"%s\":%" PRId64, ad__counters[m->counter].name, counter[m->counter]);
    }
    ad__put(b, "}");
}

static void format_session_name(uint64_t id, char out[64]) {
    if (id & AD_FORKED_SESSION) snprintf(out, 64, "%" PRIu64 ".%" PRIu32, ad__session_root(id), (uint32_t)id);
    else snprintf(out, 64, "%" PRIu64, id);
}

void ad__append_shared_text(ad_front *f, ad_shared_text *said, void (*put)(ad_front *f, ad_bytes *out), ad_bytes *out) {
    if (said->question != f->observability.question || said->text.failed) {
        ad__bytes_free(&said->text);
        put(f, &said->text);
        said->question = f->observability.question;
    }
    ad__bytes_append(out, said->text.data, said->text.size);
    out->failed = out->failed || said->text.failed;
}

static void put_process_cost(ad_bytes *b, int pid) {
    ad_process_cost cost;
    ad__process_cost(pid, &cost);
    ad__put(b, ",\"resident_bytes\":%" PRIu64 ",\"descriptors\":%" PRIu64 ",\"cpu_seconds\":%.2f", cost.resident,
            cost.descriptors, cost.cpu);
}

/* ---- the parts ---- */

static void put_front_json(ad_bytes *b, const ad_front *f) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t handshakes = ad__handshake_count(f);
    ad__put(b, "\"arrayd\":{");
    put_json_text(b, "version", AD_VERSION);
    ad__put(b, ",\"pid\":%d,\"time\":%.3f,\"uptime_seconds\":%.3f,", (int)getpid(),
            (double)now.tv_sec + (double)now.tv_nsec / 1e9, get_seconds_since(f->observability.began));
    ad__put(b, "\"sessions\":%" PRIu64 ",\"sessions_begun\":%" PRIu64, f->sessions, f->last_session);
    ad__put(b, ",\"refused\":%" PRIu64 ",\"handshakes\":%" PRIu64, f->observability.refused, handshakes);
    put_process_cost(b, (int)getpid());
    ad__put(b, "}");
}

static void put_device_list(ad_bytes *b, const ad_report *r) {
    bool first = true;
    ad__put(b, ",\"devices\":[");
    for (uint32_t i = 0; i < r->head->devices; i++) {
        const ad_report_device *d = &r->devices[i];
        if (!d->open) continue;
        put_separator(b, &first);
        ad__put(b, "{\"device\":%" PRIu64 ",", d->index);
        put_json_text(b, "name", d->name);
        ad__put(b, ",\"memory_bytes\":%" PRIu64 ",\"limit_bytes\":%" PRIu64, d->memory, d->limit);
        ad__put(b, ",\"slab_bytes\":%" PRIu64 ",\"slabs\":%" PRIu64 ",\"used_bytes\":%" PRIu64, d->slab_bytes, d->slabs,
                d->used);
        ad__put(b, ",\"reserved_multiprocessors\":%" PRIu64 "}", d->reserved);
    }
    ad__put(b, "]");
}

static void put_worker_json(ad_bytes *b, const ad_domain_facts *d) {
    const ad_observation *s = d->observation;
    ad__put(b, "{");
    put_json_text(b, "domain", d->name);
    ad__put(b, ",");
    put_json_text(b, "state", d->state);
    ad__put(b, ",");
    put_json_text(b, "why", d->why);
    ad__put(b, ",\"pid\":%d,", d->pid);
    put_json_text(b, "backend", d->ready ? d->offer->who : "");
    ad__put(b, ",\"starts\":%" PRIu64 ",\"uptime_seconds\":%.3f", s->starts,
            d->pid ? get_seconds_since(d->started) : 0);
    put_process_cost(b, d->pid);
    ad__put(b, ",\"sessions\":%" PRIu64, d->sessions);
    ad__put(b, ",\"kept_slabs\":%" PRIu64 ",\"kept_slab_bytes\":%" PRIu64, d->slabs, d->slab_bytes);
    if (s->at) {
        ad__put(b, ",\"report_age_seconds\":%.3f", get_seconds_since(s->at));
        put_counters(b, AD_METRIC_WORKER, s->report.head->counter);
        put_device_list(b, &s->report);
    }
    ad__put(b, "}");
}

static const char *get_session_state(const ad_report_session *s) {
    return s->ending ? "ending" : s->away ? "waiting" : "active";
}

static void put_session_json(ad_bytes *b, const ad_domain_facts *d, const ad_report_session *s) {
    char name[64];
    format_session_name(s->id, name);
    ad__put(b, "{");
    put_json_text(b, "session", name);
    ad__put(b, ",");
    put_json_text(b, "principal", s->principal);
    ad__put(b, ",");
    put_json_text(b, "client", s->client);
    ad__put(b, ",\"worker\":%d,\"forked\":%s,\"state\":\"%s\",\"traced\":%s", d->pid,
            s->id & AD_FORKED_SESSION ? "true" : "false", get_session_state(s), s->traced ? "true" : "false");
    ad__put(b, ",\"idle_seconds\":%.3f,", (double)s->idle / 1e9);
    put_json_text(b, "executing", s->doing);
    ad__put(b, ",\"executing_seconds\":%.3f", (double)s->doing_ns / 1e9);
    put_counters(b, AD_METRIC_SESSION, s->counter);
    ad__put(b, "}");
}

static void put_ended_sessions(ad_bytes *b, const ad_domain_facts *d, const ad_report_principal *p) {
    ad__put(b, "{");
    put_json_text(b, "principal", p->principal);
    ad__put(b, ",\"worker\":%d,\"sessions\":%" PRIu64, d->pid, p->sessions);
    put_counters(b, AD_METRIC_SESSION, p->counter);
    ad__put(b, "}");
}

static void put_published_name(ad_bytes *b, const ad_domain_facts *d, const ad_report_name *n) {
    ad__put(b, "{");
    put_json_text(b, "name", n->name);
    ad__put(b, ",");
    put_json_text(b, "principal", n->principal);
    ad__put(b,
            ",\"worker\":%d,\"device\":%" PRIu64 ",\"dtype\":\"%s\",\"bytes\":%" PRIu64 ",\"writable\":%s,\"shape\":[",
            d->pid, n->device, ad__dtypes[n->dtype].name, n->bytes, n->writable ? "true" : "false");
    for (uint64_t i = 0; i < n->ndim; i++) ad__put(b, "%s%" PRId64, i ? "," : "", n->shape[i]);
    ad__put(b, "]}");
}

/* ---- the whole ---- */

/* Append a list of the rows of all reports. */
#define PUT_LIST(key, member, put)                                      \
    do {                                                                \
        bool begins = true;                                             \
        ad__put(out, ",\"" key "\":[");                                 \
        for (ad_domain *d = NULL; (d = ad__domain_next(f, d));) {       \
            ad__domain_facts(d, &facts);                                \
            const ad_report *r = &facts.observation->report;            \
            for (uint32_t i = 0; r->head && i < r->head->member; i++) { \
                put_separator(out, &begins);                            \
                put(out, &facts, &r->member[i]);                        \
            }                                                           \
        }                                                               \
        ad__put(out, "]");                                              \
    } while (0)

static void put_status_json(ad_front *f, ad_bytes *out) {
    ad_domain_facts facts;
    bool first = true;
    ad__put(out, "{");
    put_front_json(out, f);
    ad__put(out, ",\"workers\":[");
    for (ad_domain *d = NULL; (d = ad__domain_next(f, d));) {
        ad__domain_facts(d, &facts);
        put_separator(out, &first);
        put_worker_json(out, &facts);
    }
    ad__put(out, "]");
    PUT_LIST("sessions", sessions, put_session_json);
    PUT_LIST("ended", principals, put_ended_sessions);
    PUT_LIST("names", names, put_published_name);
    ad__put(out, "}\n");
}

void ad__status_json(ad_front *f, ad_bytes *out) {
    ad__append_shared_text(f, &f->observability.status, put_status_json, out);
}

void ad__health_json(ad_front *f, ad_bytes *out) {
    ad_domain_facts facts;
    bool first = true;
    ad__put(out, "{\"healthy\":%s,\"workers\":[", ad__health_good(f) ? "true" : "false");
    for (ad_domain *d = NULL; (d = ad__domain_next(f, d));) {
        ad__domain_facts(d, &facts);
        if (!facts.observation->probed) continue;
        put_separator(out, &first);
        ad__put(out, "{");
        put_json_text(out, "domain", facts.name);
        ad__put(out, ",\"pid\":%d,\"works\":%s,\"seconds\":%.6f,", facts.pid,
                facts.observation->works ? "true" : "false", facts.observation->took);
        put_json_text(out, "why", facts.observation->trouble);
        ad__put(out, "}");
    }
    ad__put(out, "]}\n");
}

ad_domain *ad__status_session(ad_front *f, const char *name, uint64_t *id, bool *ending) {
    ad_domain_facts facts;
    char known[64];
    for (ad_domain *d = NULL; (d = ad__domain_next(f, d));) {
        ad__domain_facts(d, &facts);
        const ad_report *r = &facts.observation->report;
        for (uint32_t i = 0; r->head && i < r->head->sessions; i++) {
            format_session_name(r->sessions[i].id, known);
            if (strcmp(known, name)) continue;
            *id = r->sessions[i].id;
            *ending = r->sessions[i].ending;
            return d;
        }
    }
    return NULL;
}
