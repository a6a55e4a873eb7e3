/* A quick measure of a server, as a client on this machine sees it. Figures to compare two servers, or one before and
 * after; docs/performance.md has those that are measured with care. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/common/os.h"
#include "server/ctl/peer.h"
#include "protocol/rows.h"

#define MOST 200000            /* samples */
#define BATCH 1000             /* small operations between two waits */
#define SMALL 16               /* elements of them */
#define LARGE (16 << 20)       /* float32 elements of a large array */
#define PART ((size_t)4 << 20) /* bytes of a frame's payload */
#define LARGE_BYTES (4 * (size_t)LARGE)

typedef struct bench {
    ad_peer peer;
    int64_t each; /* ns for a measure */
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

static ad_desc desc_of(const array *a, ad_form form) {
    return (ad_desc){
        .buffer = a->buffer, .shape = a->shape, .strides = a->strides, .dtype = AD_FLOAT32, .ndim = 1, .form = form};
}

static array new_array(bench *b, int64_t n) {
    array a = {++b->peer.buffers, {n}, {4}};
    ad_desc d = desc_of(&a, AD_FRESH);
    ad__encode_new(&b->peer.control, &d, true);
    return a;
}

static void add_into(bench *b, const array *out, const array *x, const array *y) {
    ad_operand operand[] = {
        {.desc = desc_of(out, AD_VIEW)}, {.desc = desc_of(x, AD_VIEW)}, {.desc = desc_of(y, AD_VIEW)}};
    const ad_op op = {AD_REQ_UFUNC, AD_FLOAT32, 1, 2, 0, AD_UFUNC_add, operand, NULL};
    ad__encode_op(&b->peer.control, &op);
}

static uint64_t sum_of(bench *b, const array *x) {
    array sum = {.buffer = ++b->peer.buffers};
    ad_operand operand[] = {{.desc = desc_of(&sum, AD_FRESH)}, {.desc = desc_of(x, AD_VIEW)}};
    ad_scalar parameters[] = {{.kind = AD_SCALAR_INT, .as.i = 1}, {.kind = AD_SCALAR_NIL}, {.kind = AD_SCALAR_NIL}};
    const ad_op op = {AD_REQ_REDUCE, AD_FLOAT32, 1, 1, 3, AD_REDUCTION_sum, operand, parameters};
    operand[0].desc.ndim = 0;
    ad__encode_op(&b->peer.control, &op);
    return sum.buffer;
}

/* ---- what is measured: each runs once, and leaves nothing behind ---- */

static int64_t round_trip(bench *b, const array *x) {
    (void)x;
    return ad__peer_sync(&b->peer);
}

static int64_t sum_and_read(bench *b, const array *x) {
    uint64_t buffer = sum_of(b, x);
    const ad_desc d = {.buffer = buffer, .dtype = AD_FLOAT32, .form = AD_VIEW};
    ad__encode_read(&b->peer.control, ++b->peer.requests, &d);
    int64_t status = ad__peer_answer(&b->peer);
    ad__encode_free(&b->peer.control, 1, &buffer);
    return status;
}

static int64_t small_adds(bench *b, const array *x) {
    /* Each needs the one before. */
    for (int i = 0; i < BATCH; i++) add_into(b, &x[i % 2], &x[(i + 1) % 2], &x[2]);
    return ad__peer_sync(&b->peer);
}

static int64_t large_add(bench *b, const array *x) {
    add_into(b, &x[0], &x[1], &x[2]);
    return ad__peer_sync(&b->peer);
}

static int64_t upload(bench *b, const array *x) {
    for (size_t at = 0; at < LARGE_BYTES; at += PART) {
        ad__encode_write(&b->peer.control, x[0].buffer, at);
        int status = ad__peer_send(&b->peer, b->data, PART);
        if (status) return status;
    }
    return ad__peer_sync(&b->peer);
}

static int64_t download(bench *b, const array *x) {
    ad_desc d = desc_of(&x[0], AD_VIEW);
    ad__encode_read(&b->peer.control, ++b->peer.requests, &d);
    return ad__peer_answer(&b->peer);
}

/* ---- measuring ---- */

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Run it again and again for its time, at least three times after the first. Negative: it failed. */
static int measure(bench *b, int64_t (*run)(bench *b, const array *x), const array *x) {
    int64_t got = run(b, x), begin = ad__os_now(), now = begin;
    for (b->count = 0; got >= 0 && b->count < MOST && (b->count < 3 || now - begin < b->each); b->count++) {
        int64_t start = now;
        got = run(b, x);
        now = ad__os_now();
        b->sample[b->count] = (double)(now - start);
    }
    qsort(b->sample, b->count, sizeof *b->sample, ascending);
    return got < 0 ? (int)got : 0;
}

static double median(const bench *b) { return b->sample[b->count / 2]; }
static double late(const bench *b) { return b->sample[b->count * 99 / 100]; }

static void tell(bench *b, const char *key, double value) { json_object_set_new(b->out, key, json_real(value)); }

static int run_small(bench *b) {
    array x[3] = {new_array(b, SMALL), new_array(b, SMALL), new_array(b, SMALL)};
    int status = measure(b, round_trip, x);
    if (status) return status;
    tell(b, "round_trip_us", median(b) / 1e3);
    tell(b, "round_trip_p99_us", late(b) / 1e3);
    if ((status = measure(b, sum_and_read, x))) return status;
    tell(b, "sum_and_read_us", median(b) / 1e3);
    tell(b, "sum_and_read_p99_us", late(b) / 1e3);
    if ((status = measure(b, small_adds, x))) return status;
    tell(b, "small_operations_per_second", BATCH / median(b) * 1e9);
    return 0;
}

static int run_large(bench *b) {
    array x[3] = {new_array(b, LARGE), new_array(b, LARGE), new_array(b, LARGE)};
    int status = measure(b, large_add, x);
    if (status) return status;
    tell(b, "add_gb_per_second", 3 * (double)LARGE_BYTES / median(b));
    if ((status = measure(b, upload, x))) return status;
    tell(b, "upload_gb_per_second", (double)LARGE_BYTES / median(b));
    if ((status = measure(b, download, x))) return status;
    tell(b, "download_gb_per_second", (double)LARGE_BYTES / median(b));
    return 0;
}

static int show(const ad_ctl *c, const bench *b) {
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
    if (!status && (run_small(&b) || run_large(&b))) status = ad__ctl_error(c, AD_CTL_BAD, "%s", b.peer.fault.text);
    if (!status) status = show(c, &b);
    ad__peer_close(&b.peer);
    json_decref(b.out);
    free(b.sample);
    free(b.data);
    return status;
}
