/* Metrics in the text format of Prometheus (0.0.4). Labels hold nothing that clients choose, such as their names, as
 * their number would have no bound. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/tables.h"
#include "server/common/metric.h"
#include "server/common/os.h"
#include "server/common/put.h"
#include "server/front/front.h"

static void put_metric_head(ad_bytes *b, const char *name, const char *type, const char *help, const char *more) {
    ad__put(b, "# HELP arrayd_%s ", name);
    for (const char *p = help; *p; p++) ad__put(b, *p == '\\' ? "\\\\" : *p == '\n' ? "\\n" : "%c", *p);
    ad__put(b, "%s\n# TYPE arrayd_%s %s\n", more, name, type);
}

static void put_metric_value(ad_bytes *b, double scale, int64_t v) {
    if (scale == 1) ad__put(b, " %" PRId64 "\n", v);
    else ad__put(b, " %.9f\n", (double)v * scale);
}

/* ---- of the front ---- */

static void put_front_metric(ad_bytes *b, const char *name, const char *type, const char *help, uint64_t v) {
    put_metric_head(b, name, type, help, "");
    ad__put(b, "arrayd_%s %" PRIu64 "\n", name, v);
}

static void put_front_metrics(ad_bytes *b, const ad_front *f) {
    put_metric_head(b, "build_info", "gauge", "version of the server", "");
    ad__put(b, "arrayd_build_info{version=\"%s\"} 1\n", AD_VERSION);
    put_metric_head(b, "uptime_seconds", "gauge", "how long the server has run", "");
    ad__put(b, "arrayd_uptime_seconds %.3f\n", (double)(ad__os_now() - f->observability.began) / 1e9);
    put_front_metric(b, "sessions_begun_total", "counter", "clients that were given to a worker", f->last_session);
    put_front_metric(b, "clients_refused_total", "counter", "connections that were not let in",
                     f->observability.refused);
    put_front_metric(b, "handshakes", "gauge", "connections that have not been let in yet", ad__handshake_count(f));
}

/* ---- of processes ---- */

static void put_process_labels(ad_bytes *b, const char *name, const char *domain) {
    ad__put(b, "arrayd_%s{process=\"%s\",domain=", name, domain ? "worker" : "front");
    ad__put_label(b, domain ? domain : "");
    ad__put(b, "}");
}

static void put_process_metric(ad_bytes *b, int which, const char *name, int pid, const char *domain) {
    ad_process_cost cost;
    if (!pid) return;
    ad__process_cost(pid, &cost);
    put_process_labels(b, name, domain);
    if (which == 2) ad__put(b, " %.2f\n", cost.cpu);
    else ad__put(b, " %" PRIu64 "\n", which ? cost.descriptors : cost.resident);
}

static void put_process_metrics(ad_bytes *b, ad_front *f) {
    static const char *const rows[][3] = {
        {"process_resident_bytes", "gauge", "memory of the host that the process has"},
        {"process_descriptors", "gauge", "descriptors that it has open"},
        {"process_cpu_seconds_total", "counter", "time of processors that it has used"},
    };
    ad_domain_facts facts;
    for (int i = 0; i < 3; i++) {
        put_metric_head(b, rows[i][0], rows[i][1], rows[i][2], "");
        put_process_metric(b, i, rows[i][0], (int)getpid(), NULL);
        for (ad_domain *d = NULL; (d = ad__domain_next(f, d));) {
            ad__domain_facts(d, &facts);
            put_process_metric(b, i, rows[i][0], facts.pid, facts.name);
        }
    }
}

/* ---- of workers ---- */

typedef struct row {
    const char *name, *type, *help;
    double (*of)(const ad_domain_facts *d);
} row;

static double is_worker_up(const ad_domain_facts *d) { return d->ready; }
static double get_starts(const ad_domain_facts *d) { return (double)d->observation->starts; }
static double get_slab_bytes(const ad_domain_facts *d) { return (double)d->slab_bytes; }
static double get_report_age(const ad_domain_facts *d) {
    return d->observation->at ? (double)(ad__os_now() - d->observation->at) / 1e9 : 0;
}

static const row worker_rows[] = {
    {"worker_up", "gauge", "1: the worker takes sessions", is_worker_up},
    {"worker_starts_total", "counter", "processes of this worker so far", get_starts},
    {"worker_kept_slab_bytes", "gauge", "bytes in slabs whose descriptors the front holds", get_slab_bytes},
    {"worker_report_age_seconds", "gauge", "how old the worker's figures are; it may be busy with something long",
     get_report_age},
};

static void put_worker_metrics(ad_bytes *b, ad_front *f) {
    ad_domain_facts facts;
    for (size_t i = 0; i < sizeof worker_rows / sizeof *worker_rows; i++) {
        const row *r = &worker_rows[i];
        put_metric_head(b, r->name, r->type, r->help, "");
        for (ad_domain *d = NULL; (d = ad__domain_next(f, d));) {
            ad__domain_facts(d, &facts);
            ad__put(b, "arrayd_%s{domain=", r->name);
            ad__put_label(b, facts.name);
            ad__put(b, "} %.15g\n", r->of(&facts));
        }
    }
}

typedef struct device_row {
    const char *name, *help;
    size_t member;
} device_row;

static const device_row device_rows[] = {
    {"device_memory_bytes", "memory of the device", offsetof(ad_report_device, memory)},
    {"device_limit_bytes", "bytes that this worker may take of it", offsetof(ad_report_device, limit)},
    {"device_slab_bytes", "bytes that it has taken in slabs", offsetof(ad_report_device, slab_bytes)},
    {"device_used_bytes", "bytes of them that arrays and what is computed with them use",
     offsetof(ad_report_device, used)},
    {"device_reserved_multiprocessors", "multiprocessors that are kept free for light sessions (option sm-share)",
     offsetof(ad_report_device, reserved)},
};

static void put_device_metrics(ad_bytes *b, ad_front *f) {
    ad_domain_facts facts;
    for (size_t i = 0; i < sizeof device_rows / sizeof *device_rows; i++) {
        put_metric_head(b, device_rows[i].name, "gauge", device_rows[i].help, "");
        for (ad_domain *d = NULL; (d = ad__domain_next(f, d));) {
            ad__domain_facts(d, &facts);
            const ad_report *r = &facts.observation->report;
            for (uint32_t k = 0; r->head && k < r->head->devices; k++) {
                if (!r->devices[k].open) continue;
                ad__put(b, "arrayd_%s{domain=", device_rows[i].name);
                ad__put_label(b, facts.name);
                const char *from = (const char *)&r->devices[k] + device_rows[i].member;
                ad__put(b, ",device=\"%" PRIu64 "\"} %" PRIu64 "\n", r->devices[k].index,
                        *(const uint64_t *)(const void *)from);
            }
        }
    }
}

static void put_worker_counter(ad_bytes *b, ad_front *f, const ad_metric *m) {
    ad_domain_facts facts;
    for (ad_domain *d = NULL; (d = ad__domain_next(f, d));) {
        ad__domain_facts(d, &facts);
        if (!facts.observation->report.head) continue;
        ad__put(b, "arrayd_%s{domain=", m->name);
        ad__put_label(b, facts.name);
        ad__put(b, "}");
        put_metric_value(b, m->scale, facts.observation->report.head->counter[m->counter]);
    }
}

/* ---- of principals ---- */

/* The sum of a principal's sessions in one worker. */
typedef struct total {
    const char *domain, *who; /* texts of facts and reports, which stay while the metrics are written */
    uint64_t live, ended;
    int64_t counter[AD_NCOUNTER];
} total;

typedef struct totals {
    total *list;
    size_t count, room, from; /* from: index of the first total of the present worker */
    bool failed;
} totals;

static total *find_total(totals *t, const char *domain, const char *who) {
    for (size_t i = t->from; i < t->count; i++)
        if (!strcmp(t->list[i].who, who)) return &t->list[i];
    total *list = ad__os_grow(t->list, t->count, &t->room, sizeof *list);
    if (!list) {
        t->failed = true;
        return NULL;
    }
    t->list = list;
    t->list[t->count] = (total){.domain = domain, .who = who};
    return &t->list[t->count++];
}

/* Add a session's counters. over: the session has ended, so that gauges do not count. */
static void add_counters(total *t, const int64_t *counter, bool over) {
    for (int i = 0; t && i < AD_NCOUNTER; i++) {
        const ad_metric *m = &ad__metrics[i];
        if (m->scope == AD_METRIC_SESSION && (!over || m->kind == AD_METRIC_COUNTER))
            t->counter[m->counter] += counter[m->counter];
    }
}

static void add_report(totals *t, const ad_domain_facts *d) {
    const ad_report *r = &d->observation->report;
    t->from = t->count;
    for (uint32_t i = 0; r->head && i < r->head->sessions; i++) {
        total *of = find_total(t, d->name, r->sessions[i].principal);
        add_counters(of, r->sessions[i].counter, false);
        if (of) of->live++;
    }
    for (uint32_t i = 0; r->head && i < r->head->principals; i++) {
        total *of = find_total(t, d->name, r->principals[i].principal);
        add_counters(of, r->principals[i].counter, true);
        if (of) of->ended += r->principals[i].sessions;
    }
}

static void put_total_labels(ad_bytes *b, const char *name, const total *t) {
    ad__put(b, "arrayd_%s{domain=", name);
    ad__put_label(b, t->domain);
    ad__put(b, ",principal=");
    ad__put_label(b, t->who);
    ad__put(b, "}");
}

static void put_counter_metric(ad_bytes *b, ad_front *f, const totals *t, const ad_metric *m) {
    bool session = m->scope == AD_METRIC_SESSION;
    if (!*m->name) return;
    put_metric_head(b, m->name, m->kind == AD_METRIC_COUNTER ? "counter" : "gauge", ad__counters[m->counter].doc,
                    !session                       ? ""
                    : m->kind == AD_METRIC_COUNTER ? " (all sessions of the principal, ended ones as well)"
                                                   : " (all sessions of the principal)");
    if (!session) put_worker_counter(b, f, m);
    for (size_t i = 0; session && i < t->count; i++) {
        put_total_labels(b, m->name, &t->list[i]);
        put_metric_value(b, m->scale, t->list[i].counter[m->counter]);
    }
}

static void put_session_metrics(ad_bytes *b, const totals *t) {
    put_metric_head(b, "sessions", "gauge", "sessions that there are, those of forked processes as well", "");
    for (size_t i = 0; i < t->count; i++) {
        put_total_labels(b, "sessions", &t->list[i]);
        put_metric_value(b, 1, (int64_t)t->list[i].live);
    }
    put_metric_head(b, "sessions_ended_total", "counter", "sessions that are over", "");
    for (size_t i = 0; i < t->count; i++) {
        put_total_labels(b, "sessions_ended_total", &t->list[i]);
        put_metric_value(b, 1, (int64_t)t->list[i].ended);
    }
}

static void put_all_metrics(ad_front *f, ad_bytes *out) {
    ad_domain_facts facts;
    totals t = {0};
    for (ad_domain *d = NULL; (d = ad__domain_next(f, d));) {
        ad__domain_facts(d, &facts);
        add_report(&t, &facts);
    }
    put_front_metrics(out, f);
    put_process_metrics(out, f);
    put_worker_metrics(out, f);
    put_device_metrics(out, f);
    put_session_metrics(out, &t);
    for (int i = 0; i < AD_NCOUNTER; i++) put_counter_metric(out, f, &t, &ad__metrics[i]);
    if (t.failed) out->failed = true;
    free(t.list);
}

void ad__metrics_text(ad_front *f, ad_bytes *out) {
    ad__append_shared_text(f, &f->observability.metrics, put_all_metrics, out);
}
