/* A quick measure of a server, as a client on this machine sees it. Its figures compare two servers, or one before
 * and after a change; docs/performance.md has careful ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/rows_request.h"
#include "server/common/os.h"
#include "server/ctl/peer.h"
#include "protocol/rows_reduction.h"
#include "protocol/rows_ufunc.h"

#define MOST 200000            /* most samples of one figure */
#define BATCH 1000             /* small operations between two waits */
#define SMALL 16               /* elements of a small array */
#define LARGE (16 << 20)       /* float32 elements of a large array */
#define PART ((size_t)4 << 20) /* bytes of a frame's payload */
#define LARGE_BYTES (4 * (size_t)LARGE)

typedef struct bench {
    ad_peer peer;
    int64_t each; /* ns to spend on one figure */
    double *sample;
    size_t count;
    uint8_t *data;
    json_t *out;
} bench;

/* ---- arrays ---- */

typedef struct array {
    uint64_t buffer;
    int64_t shape[1], strides[1];
} array;

static ad_desc describe_array(const array *a, ad_form form) {
    return (ad_desc){
        .buffer = a->buffer, .shape = a->shape, .strides = a->strides, .dtype = AD_FLOAT32, .ndim = 1, .form = form};
}

static array create_array(bench *b, int64_t n) {
    array a = {++b->peer.buffers, {n}, {4}};
    ad_desc d = describe_array(&a, AD_FRESH);
    ad__encode_new(&b->peer.control, &d, true);
    return a;
}

static void queue_addition(bench *b, const array *out, const array *x, const array *y) {
    ad_operand operand[] = {{.desc = describe_array(out, AD_VIEW)},
                            {.desc = describe_array(x, AD_VIEW)},
                            {.desc = describe_array(y, AD_VIEW)}};
    const ad_op op = {AD_REQ_UFUNC, AD_FLOAT32, 1, 2, 0, AD_UFUNC_add, operand, NULL};
    ad__encode_op(&b->peer.control, &op);
}

static uint64_t queue_sum(bench *b, const array *x) {
    array sum = {.buffer = ++b->peer.buffers};
    ad_operand operand[] = {{.desc = describe_array(&sum, AD_FRESH)}, {.desc = describe_array(x, AD_VIEW)}};
    ad_scalar parameters[] = {{.kind = AD_SCALAR_INT, .as.i = 1}, {.kind = AD_SCALAR_NIL}, {.kind = AD_SCALAR_NIL}};
    const ad_op op = {AD_REQ_REDUCE, AD_FLOAT32, 1, 1, 3, AD_REDUCTION_sum, operand, parameters};
    operand[0].desc.ndim = 0;
    ad__encode_op(&b->peer.control, &op);
    return sum.buffer;
}

/* ---- what is measured: each runs once, and leaves nothing behind ---- */

static int64_t run_round_trip(bench *b, const array *x) {
    (void)x;
    return ad__peer_sync(&b->peer);
}

static int64_t run_sum_and_read(bench *b, const array *x) {
    uint64_t buffer = queue_sum(b, x);
    const ad_desc d = {.buffer = buffer, .dtype = AD_FLOAT32, .form = AD_VIEW};
    ad__encode_read(&b->peer.control, ++b->peer.requests, &d);
    int64_t status = ad__peer_answer(&b->peer);
    ad__encode_free(&b->peer.control, 1, &buffer);
    return status;
}

static int64_t run_small_additions(bench *b, const array *x) {
    /* Each addition needs the result of the one before. */
    for (int i = 0; i < BATCH; i++) queue_addition(b, &x[i % 2], &x[(i + 1) % 2], &x[2]);
    return ad__peer_sync(&b->peer);
}

static int64_t run_large_addition(bench *b, const array *x) {
    queue_addition(b, &x[0], &x[1], &x[2]);
    return ad__peer_sync(&b->peer);
}

static int64_t upload_array(bench *b, const array *x) {
    for (size_t at = 0; at < LARGE_BYTES; at += PART) {
        ad__encode_write(&b->peer.control, x[0].buffer, at);
        int status = ad__peer_send(&b->peer, b->data, PART);
        if (status) return status;
    }
    return ad__peer_sync(&b->peer);
}

static int64_t download_array(bench *b, const array *x) {
    ad_desc d = describe_array(&x[0], AD_VIEW);
    ad__encode_read(&b->peer.control, ++b->peer.requests, &d);
    return ad__peer_answer(&b->peer);
}

/* ---- measuring ---- */

static int compare_ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Run a function repeatedly for the time of one figure, at least three times after a first one. Negative: it failed. */
static int measure_samples(bench *b, int64_t (*run)(bench *b, const array *x), const array *x) {
    int64_t got = run(b, x), begin = ad__os_now(), now = begin;
    for (b->count = 0; got >= 0 && b->count < MOST && (b->count < 3 || now - begin < b->each); b->count++) {
        int64_t start = now;
        got = run(b, x);
        now = ad__os_now();
        b->sample[b->count] = (double)(now - start);
    }
    qsort(b->sample, b->count, sizeof *b->sample, compare_ascending);
    return got < 0 ? (int)got : 0;
}

static double get_median(const bench *b) { return b->sample[b->count / 2]; }
static double get_99th_percentile(const bench *b) { return b->sample[b->count * 99 / 100]; }

static void report_figure(bench *b, const char *key, double value) {
    json_object_set_new(b->out, key, json_real(value));
}

static int measure_small(bench *b) {
    array x[3] = {create_array(b, SMALL), create_array(b, SMALL), create_array(b, SMALL)};
    int status = measure_samples(b, run_round_trip, x);
    if (status) return status;
    report_figure(b, "round_trip_us", get_median(b) / 1e3);
    report_figure(b, "round_trip_p99_us", get_99th_percentile(b) / 1e3);
    if ((status = measure_samples(b, run_sum_and_read, x))) return status;
    report_figure(b, "sum_and_read_us", get_median(b) / 1e3);
    report_figure(b, "sum_and_read_p99_us", get_99th_percentile(b) / 1e3);
    if ((status = measure_samples(b, run_small_additions, x))) return status;
    report_figure(b, "small_operations_per_second", BATCH / get_median(b) * 1e9);
    return 0;
}

static int measure_large(bench *b) {
    array x[3] = {create_array(b, LARGE), create_array(b, LARGE), create_array(b, LARGE)};
    int status = measure_samples(b, run_large_addition, x);
    if (status) return status;
    report_figure(b, "add_gb_per_second", 3 * (double)LARGE_BYTES / get_median(b));
    if ((status = measure_samples(b, upload_array, x))) return status;
    report_figure(b, "upload_gb_per_second", (double)LARGE_BYTES / get_median(b));
    if ((status = measure_samples(b, download_array, x))) return status;
    report_figure(b, "download_gb_per_second", (double)LARGE_BYTES / get_median(b));
    return 0;
}

static int print_figures(const ad_ctl *c, const bench *b) {
    static const struct {
        const char *key, *text;
    } rows[] = {
        {"round_trip_us", "a round trip, us"},
        {"round_trip_p99_us", "the 99th percentile"},
        {"sum_and_read_us", "a sum of 16 elements, read, us"},
        {"sum_and_read_p99_us", "the 99th percentile"},
        {"small_operations_per_second", "additions of 16 elements a second"},
        {"add_gb_per_second", "an addition of 64 MiB arrays, GB/s of memory"},
        {"upload_gb_per_second", "upload of 64 MiB by the socket, GB/s"},
        {"download_gb_per_second", "download of 64 MiB by the socket, GB/s"},
    };
    static const char *const head[] = {"MEASURED", ">IS", NULL};
    ad_table t;
    if (c->json) return ad__ctl_print(c, b->out);
    printf("%s, backend %s, device %s\n\n", b->peer.server, b->peer.backend, b->peer.device);
    ad__table_begin(&t, head);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double value = ad__json_number(b->out, rows[i].key);
        ad__table_add(&t, "%s", rows[i].text);
        ad__table_add(&t, value < 1 ? "%.3f" : value < 100 ? "%.1f" : "%.0f", value);
    }
    ad__table_end(&t, 0);
    return AD_CTL_GOOD;
}

int ad__ctl_bench(ad_ctl *c) {
    bench b = {.each = (int64_t)((c->seconds > 0 ? c->seconds : 5) * 1e9 / 6)};
    int status = ad__ctl_alone(c);
    if (status) return status;
    b.sample = malloc(MOST * sizeof *b.sample);
    b.data = calloc(1, PART);
    b.out = json_object();
    status = ad__peer_open(&b.peer, c);
    if (!status && (!b.sample || !b.data || !b.out)) status = ad__ctl_error(c, AD_CTL_BAD, "out of memory");
    if (!status && (measure_small(&b) || measure_large(&b)))
        status = ad__ctl_error(c, AD_CTL_BAD, "%s", b.peer.fault.text);
    if (!status) status = print_figures(c, &b);
    ad__peer_close(&b.peer);
    json_decref(b.out);
    free(b.sample);
    free(b.data);
    return status;
}
