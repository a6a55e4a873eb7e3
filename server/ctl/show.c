/* The commands that print the server's state as tables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/ctl/ctl.h"

/* Ask the server. With --json print the member `part` (NULL: all) of its answer and make *out NULL; else *out is the
 * answer. */
static int fetch_part(ad_ctl *c, const char *line, const char *part, json_t **out) {
    *out = NULL;
    json_t *all = NULL;
    int status = ad__ctl_alone(c);
    if (!status) status = ad__ctl_ask(c, line, -1, &all);
    if (!status && !c->json) {
        *out = all;
        return status;
    }
    if (!status) status = ad__ctl_print(c, part ? json_object_get(all, part) : all);
    json_decref(all);
    return status;
}

/* ---- status ---- */

static void print_workers(const json_t *workers) {
    static const char *const head[] = {"DOMAIN",    "PROCESS",    "STATE",  "BACKEND", ">STARTS",   ">UP",
                                       ">SESSIONS", ">IN ARRAYS", ">TAKEN", ">LIMIT",  ">RESIDENT", NULL};
    ad_table t;
    size_t i, k;
    json_t *w, *d;
    ad__table_begin(&t, head);
    json_array_foreach((json_t *)(uintptr_t)workers, i, w) {
        double limit = 0;
        json_array_foreach(json_object_get(w, "devices"), k, d) limit += ad__json_number(d, "limit_bytes");
        const char *why = ad__json_text(w, "why");
        ad__table_add(&t, "%s", ad__json_text(w, "domain"));
        ad__table_add(&t, "%.0f", ad__json_number(w, "pid"));
        ad__table_add(&t, "%s%s%s", ad__json_text(w, "state"), *why ? ": " : "", why);
        ad__table_add(&t, "%s", ad__json_text(w, "backend"));
        ad__table_add(&t, "%.0f", ad__json_number(w, "starts"));
        ad__table_seconds(&t, ad__json_number(w, "uptime_seconds"));
        ad__table_add(&t, "%.0f", ad__json_number(w, "sessions"));
        ad__table_bytes(&t, ad__json_counter(w, "used_bytes"));
        ad__table_bytes(&t, ad__json_counter(w, "slab_bytes"));
        ad__table_bytes(&t, limit);
        ad__table_bytes(&t, ad__json_number(w, "resident_bytes"));
    }
    ad__table_end(&t, 0);
}

/* Print the age of old reports: those of workers that execute something long. */
static void print_report_ages(const json_t *workers) {
    size_t i;
    json_t *w;
    json_array_foreach((json_t *)(uintptr_t)workers, i, w) {
        double age = ad__json_number(w, "report_age_seconds");
        if (age > 0.9)
            printf("%s: figures from %.1f s ago; the worker is busy with something long\n", ad__json_text(w, "domain"),
                   age);
    }
}

int ad__ctl_status(ad_ctl *c) {
    json_t *all;
    int status = fetch_part(c, c->json ? "names\n" : "status\n", NULL, &all); /* the JSON answer also has the names */
    if (!all) return status;
    const json_t *a = json_object_get(all, "arrayd");
    printf("arrayd %s, process %.0f, up %.0f s: %.0f session%s, %.0f begun, %.0f connection%s refused, %.0f not let "
           "in yet\n\n",
           ad__json_text(a, "version"), ad__json_number(a, "pid"), ad__json_number(a, "uptime_seconds"),
           ad__json_number(a, "sessions"), ad__ctl_plural(ad__json_number(a, "sessions")),
           ad__json_number(a, "sessions_begun"), ad__json_number(a, "refused"),
           ad__ctl_plural(ad__json_number(a, "refused")), ad__json_number(a, "handshakes"));
    print_workers(json_object_get(all, "workers"));
    print_report_ages(json_object_get(all, "workers"));
    json_decref(all);
    return status;
}

/* ---- sessions ---- */

int ad__ctl_sessions(ad_ctl *c) {
    static const char *const head[] = {"SESSION", "WHO",    "PROGRAM", ">ARRAYS", ">MEMORY", ">OPERATIONS",
                                       ">FAILED", ">FUSED", ">IN",     ">OUT",    ">IDLE",   NULL};
    json_t *all, *s;
    size_t i;
    ad_table t;
    int status = fetch_part(c, "status\n", "sessions", &all);
    if (!all) return status;
    ad__table_begin(&t, head);
    json_array_foreach(json_object_get(all, "sessions"), i, s) {
        ad__table_session(&t, s);
        ad__table_add(&t, "%s", ad__json_text(s, "principal"));
        ad__table_add(&t, "%s", ad__json_text(s, "client"));
        ad__table_add(&t, "%.0f", ad__json_counter(s, "buffers"));
        ad__table_bytes(&t, ad__json_counter(s, "buffer_bytes"));
        ad__table_add(&t, "%.0f", ad__json_counter(s, "ops_done"));
        ad__table_add(&t, "%.0f", ad__json_counter(s, "ops_failed"));
        ad__table_add(&t, "%.0f", ad__json_counter(s, "fused_ops"));
        ad__table_bytes(&t, ad__json_counter(s, "bytes_in"));
        ad__table_bytes(&t, ad__json_counter(s, "bytes_out"));
        ad__table_seconds(&t, ad__json_number(s, "idle_seconds"));
    }
    ad__table_end(&t, 0);
    print_report_ages(json_object_get(all, "workers"));
    json_decref(all);
    return status;
}

/* ---- memory ---- */

static void print_devices(const json_t *workers) {
    static const char *const head[] = {"WORKER", "DEVICE", "NAME",  ">MEMORY", ">LIMIT",
                                       ">TAKEN", ">SLABS", ">USED", NULL};
    size_t i, k;
    json_t *w, *d;
    ad_table t;
    ad__table_begin(&t, head);
    json_array_foreach((json_t *)(uintptr_t)workers, i, w) {
        json_array_foreach(json_object_get(w, "devices"), k, d) {
            ad__table_add(&t, "%s", ad__json_text(w, "domain"));
            ad__table_add(&t, "%.0f", ad__json_number(d, "device"));
            ad__table_add(&t, "%s", ad__json_text(d, "name"));
            ad__table_bytes(&t, ad__json_number(d, "memory_bytes"));
            ad__table_bytes(&t, ad__json_number(d, "limit_bytes"));
            ad__table_bytes(&t, ad__json_number(d, "slab_bytes"));
            ad__table_add(&t, "%.0f", ad__json_number(d, "slabs"));
            ad__table_bytes(&t, ad__json_number(d, "used_bytes"));
        }
    }
    ad__table_end(&t, 0);
}

static int compare_by_memory(const void *a, const void *b) {
    double x = ad__json_counter(*(json_t *const *)a, "held_slab_bytes");
    double y = ad__json_counter(*(json_t *const *)b, "held_slab_bytes");
    return (x < y) - (x > y);
}

static void print_holders(const json_t *sessions) {
    static const char *const head[] = {"SESSION", "WHO", "PROGRAM", ">ARRAYS", ">IN ARRAYS", ">TAKEN", NULL};
    size_t n = json_array_size(sessions);
    json_t **list = malloc((n + 1) * sizeof *list);
    ad_table t;
    if (!list) return;
    for (size_t i = 0; i < n; i++) list[i] = json_array_get(sessions, i);
    qsort(list, n, sizeof *list, compare_by_memory);
    ad__table_begin(&t, head);
    for (size_t i = 0; i < n; i++) {
        ad__table_add(&t, "%s", ad__json_text(list[i], "session"));
        ad__table_add(&t, "%s", ad__json_text(list[i], "principal"));
        ad__table_add(&t, "%s", ad__json_text(list[i], "client"));
        ad__table_add(&t, "%.0f", ad__json_counter(list[i], "buffers"));
        ad__table_bytes(&t, ad__json_counter(list[i], "buffer_bytes"));
        ad__table_bytes(&t, ad__json_counter(list[i], "held_slab_bytes"));
    }
    ad__table_end(&t, 0);
    free(list);
}

static void print_shared_memory(const json_t *workers) {
    size_t i;
    json_t *w;
    char shared[16], plans[16], exported[16], imported[16];
    json_array_foreach((json_t *)(uintptr_t)workers, i, w) {
        ad__ctl_bytes_text(ad__json_counter(w, "shared_bytes"), shared);
        ad__ctl_bytes_text(ad__json_counter(w, "fft_plan_bytes"), plans);
        ad__ctl_bytes_text(ad__json_counter(w, "exported_bytes"), exported);
        ad__ctl_bytes_text(ad__json_counter(w, "imported_bytes"), imported);
        printf("%s: %s in %.0f arrays that several hold (%.0f published names, %.0f capabilities), %s in %.0f exports, "
               "%s in %.0f imports, %s in %.0f plans of transforms\n",
               ad__json_text(w, "domain"), shared, ad__json_counter(w, "shared_buffers"),
               ad__json_counter(w, "published"), ad__json_counter(w, "capabilities"), exported,
               ad__json_counter(w, "exports"), imported, ad__json_counter(w, "imports"), plans,
               ad__json_counter(w, "fft_plans"));
    }
}

int ad__ctl_memory(ad_ctl *c) {
    json_t *all;
    int status = fetch_part(c, "status\n", NULL, &all);
    if (!all) return status;
    print_devices(json_object_get(all, "workers"));
    putchar('\n');
    print_holders(json_object_get(all, "sessions"));
    putchar('\n');
    print_shared_memory(json_object_get(all, "workers"));
    json_decref(all);
    return status;
}

/* ---- names ---- */

int ad__ctl_names(ad_ctl *c) {
    static const char *const head[] = {"NAME", "WHO", "DEVICE", "TYPE", "SHAPE", ">BYTES", "WRITABLE", NULL};
    json_t *all, *n;
    size_t i;
    ad_table t;
    int status = fetch_part(c, "names\n", "names", &all);
    if (!all) return status;
    ad__table_begin(&t, head);
    json_array_foreach(json_object_get(all, "names"), i, n) {
        char *shape = json_dumps(json_object_get(n, "shape"), JSON_COMPACT);
        ad__table_add(&t, "%s", ad__json_text(n, "name"));
        ad__table_add(&t, "%s", ad__json_text(n, "principal"));
        ad__table_add(&t, "%.0f", ad__json_number(n, "device"));
        ad__table_add(&t, "%s", ad__json_text(n, "dtype"));
        ad__table_add(&t, "%s", shape ? shape : "");
        ad__table_bytes(&t, ad__json_number(n, "bytes"));
        ad__table_add(&t, "%s", json_is_true(json_object_get(n, "writable")) ? "yes" : "no");
        free(shape);
    }
    ad__table_end(&t, 0);
    json_decref(all);
    return status;
}

/* ---- health ---- */

int ad__ctl_health(ad_ctl *c) {
    static const char *const head[] = {"DOMAIN", "PROCESS", "WORKS", ">TOOK", "WHY", NULL};
    json_t *all = NULL, *w;
    size_t i;
    ad_table t;
    int status = ad__ctl_alone(c);
    if (!status) status = ad__ctl_ask(c, "health\n", -1, &all);
    if (status) return status;
    bool good = json_is_true(json_object_get(all, "healthy"));
    if (c->json) {
        status = ad__ctl_print(c, all);
    } else {
        ad__table_begin(&t, head);
        json_array_foreach(json_object_get(all, "workers"), i, w) {
            ad__table_add(&t, "%s", ad__json_text(w, "domain"));
            ad__table_add(&t, "%.0f", ad__json_number(w, "pid"));
            ad__table_add(&t, "%s", json_is_true(json_object_get(w, "works")) ? "yes" : "no");
            ad__table_add(&t, "%.3f ms", ad__json_number(w, "seconds") * 1e3);
            ad__table_add(&t, "%s", ad__json_text(w, "why"));
        }
        ad__table_end(&t, 0);
        puts(good ? "healthy" : "not healthy");
    }
    json_decref(all);
    return status ? status : good ? AD_CTL_GOOD : AD_CTL_BAD;
}
