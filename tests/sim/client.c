/* A client of the simulator: operations of its seed on a session, beside a model of what every array must be.
 *
 * An array is right, or it is lost. It may be lost only if a worker was killed while a change in place was not yet
 * behind an answer: the journal promises the rest (docs/internals/journal.md). On a device that completes operations
 * later what was made from it before the change may be made again, and be lost, too. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client-c/include/arrayd.h"
#include "protocol/rows_reduction.h"
#include "protocol/rows_ufunc.h"
#include "tests/sim/sim.h"

#define MOST 24 /* arrays at a time */
#define TRIES 20
#define NUMBERS 512 /* of arrays; then they begin again */

typedef struct model {
    ad_array *array;
    int64_t count, *value;
    int number;
    uint64_t reads[NUMBERS / 64]; /* the numbers of what it was made from since the last answer */
    bool at_risk;                 /* changed in place since the last answer, or made from what was */
    bool maybe_lost;
} model;

typedef struct client {
    ad_session *session;
    model list[MOST];
    int used, numbers;
    unsigned deaths; /* of workers, at the last answer */
} client;

/* ---- what may happen ---- */

/* An answer has come: what was executed before it is behind a checkpoint. */
static void note_answer(client *c) {
    for (int i = 0; i < c->used; i++) {
        c->list[i].maybe_lost |= c->list[i].at_risk && c->deaths != sim_worker_deaths;
        c->list[i].at_risk = false;
        memset(c->list[i].reads, 0, sizeof c->list[i].reads);
    }
    c->deaths = sim_worker_deaths;
}

static bool may_be_lost(const client *c, const model *m) {
    return m->maybe_lost || (m->at_risk && c->deaths != sim_worker_deaths);
}

/* Faults that leave an operation undone, with an error that says so. */
static bool may_be_refused(void) { return sim_planned.no_memory || sim_planned.no_descriptor; }

static void check_status(int status, const char *what) {
    const char *name;
    if (!status || may_be_refused()) return;
    const uint64_t number = ad_error_operation(&name);
    sim_fail("%s: status %d: %s (operation %" PRIu64 " %s)", what, status, ad_error_message(), number, name);
}

/* ---- arrays ---- */

static model *add_model(client *c, ad_array *array, int64_t count) {
    model *m = &c->list[c->used++];
    *m = (model){
        .array = array, .number = ++c->numbers, .count = count, .value = calloc((size_t)count, sizeof(int64_t))};
    return m;
}

static void remove_model(client *c, model *m) {
    ad_array_release(m->array);
    free(m->value);
    *m = c->list[--c->used];
}

static model *choose_model(client *c) { return c->used ? &c->list[sim_draw_below((uint64_t)c->used)] : NULL; }

/* Choose one with as many elements as another has. */
static model *choose_like(client *c, const model *like) {
    model *m = choose_model(c);
    return m->count == like->count ? m : (model *)(uintptr_t)like;
}

static int64_t draw_count(void) {
    return sim_draw_case(20000) ? 1 + (int64_t)sim_draw_below(60000) : 1 + (int64_t)sim_draw_below(40);
}

static int64_t draw_value(void) { return (int64_t)sim_draw_below(2001) - 1000; }

static void make_room(client *c) {
    if (c->used == MOST) remove_model(c, choose_model(c));
}

/* Note that an array was made from another. */
static void note_read(model *m, const model *from) {
    for (int i = 0; i < NUMBERS / 64; i++) m->reads[i] |= from->reads[i];
    m->reads[from->number % NUMBERS / 64] |= (uint64_t)1 << from->number % 64;
    m->at_risk |= from->at_risk;
    m->maybe_lost |= from->maybe_lost;
}

static void note_change(client *c, model *m) {
    m->at_risk = true;
    for (int i = 0; i < c->used && sim_planned.late; i++)
        if (c->list[i].reads[m->number % NUMBERS / 64] >> m->number % 64 & 1) c->list[i].at_risk = true;
}

/* ---- operations ---- */

static void make_array(client *c) {
    ad_array *a;
    const int64_t count = draw_count(), value = draw_value();
    make_room(c);
    const bool ramp = sim_draw_case(500000);
    const int status = ramp ? ad_arange(c->session, ad_int(value), ad_int(value + count), ad_int(1), AD_INT64, &a)
                            : ad_full(c->session, AD_INT64, 1, &count, ad_int(value), &a);
    check_status(status, "making an array");
    if (status) return;
    model *m = add_model(c, a, count);
    for (int64_t i = 0; i < count; i++) m->value[i] = value + (ramp ? i : 0);
}

static void upload_array(client *c) {
    const int64_t count = draw_count();
    make_room(c);
    model *m = add_model(c, NULL, count);
    for (int64_t i = 0; i < count; i++) m->value[i] = draw_value();
    const int status = ad_upload(c->session, AD_INT64, 1, &count, m->value, (size_t)count * sizeof(int64_t), &m->array);
    check_status(status, "uploading");
    if (status) remove_model(c, m);
}

static int64_t combine_values(int ufunc, int64_t x, int64_t y) {
    return (int64_t)(ufunc == AD_UFUNC_add        ? (uint64_t)x + (uint64_t)y
                     : ufunc == AD_UFUNC_subtract ? (uint64_t)x - (uint64_t)y
                                                  : (uint64_t)x * (uint64_t)y);
}

static int draw_ufunc(void) {
    static const int ufuncs[] = {AD_UFUNC_add, AD_UFUNC_subtract, AD_UFUNC_multiply};
    return ufuncs[sim_draw_below(3)];
}

/* z = x op y, or x = x op y. */
static void combine_arrays(client *c, bool in_place) {
    make_room(c);
    model *x = choose_model(c);
    if (!x) return;
    model *y = choose_like(c, x);
    const bool constant = sim_draw_case(300000);
    const int64_t value = draw_value();
    const int ufunc = draw_ufunc();
    const ad_in in[2] = {ad_of(x->array), constant ? ad_int(value) : ad_of(y->array)};
    ad_options options = AD_OPTIONS_INIT;
    ad_array *out;
    if (in_place) options.out[0] = x->array;
    const int status = ad_ufunc_call(c->session, ufunc, in, &options, &out);
    check_status(status, "combining");
    if (status) return;
    if (in_place) ad_array_release(out);
    model *z = in_place ? x : add_model(c, out, x->count);
    sim_note(in_place ? "changes" : "combines", z->number, x->number);
    if (!constant) sim_note("and", y->number, 0);
    if (!in_place) note_read(z, x);
    if (!constant) note_read(z, y);
    if (in_place) note_change(c, x);
    for (int64_t i = 0; i < x->count; i++)
        z->value[i] = combine_values(ufunc, x->value[i], constant ? value : y->value[i]);
}

/* Overwrite a part from this process. */
static void write_part(client *c) {
    model *m = choose_model(c);
    ad_array *part;
    if (!m) return;
    const int64_t start = (int64_t)sim_draw_below((uint64_t)m->count),
                  count = 1 + (int64_t)sim_draw_below((uint64_t)(m->count - start));
    int status = ad_slice(m->array, 0, start, start + count, 1, &part);
    check_status(status, "slicing");
    if (status) return;
    for (int64_t i = 0; i < count; i++) m->value[start + i] = draw_value();
    status = ad_write(part, m->value + start, (size_t)count * sizeof(int64_t));
    check_status(status, "writing");
    sim_note("writes", m->number, count);
    note_change(c, m);
    m->maybe_lost |= status != 0;
    ad_array_release(part);
}

static void explain_difference(const model *m, const int64_t *got) {
    int64_t i = 0;
    while (got[i] == m->value[i]) i++;
    sim_fail("element %" PRId64 " of %" PRId64 " is %" PRId64 ", not %" PRId64, i, m->count, got[i], m->value[i]);
}

static void download_array(client *c, model *m) {
    const size_t size = (size_t)m->count * sizeof(int64_t);
    int64_t *got = malloc(size);
    const int status = ad_download(m->array, got, size);
    sim_note("downloaded", m->number, status);
    if (status == 0 && memcmp(got, m->value, size)) explain_difference(m, got);
    if (status == AD_E_DEVICE_LOST && may_be_lost(c, m)) sim_note("lost", m->count, 0);
    else check_status(status, "downloading");
    free(got);
    if (status) remove_model(c, m);
    /* Of a device that completes operations later answers do not wait for all of it. */
    if (!sim_planned.late && (status == 0 || status == AD_E_DEVICE_LOST)) note_answer(c);
}

static void download_some(client *c) {
    model *m = choose_model(c);
    if (m) download_array(c, m);
}

static void sum_array(client *c) {
    model *m = choose_model(c);
    ad_options options = AD_OPTIONS_INIT;
    ad_array *sum;
    if (!m) return;
    make_room(c);
    m = choose_model(c);
    options.keepdims = true;
    const int status = ad_reduce_call(AD_REDUCTION_sum, ad_of(m->array), &options, &sum);
    check_status(status, "summing");
    if (status) return;
    model *s = add_model(c, sum, 1);
    sim_note("sums", s->number, m->number);
    note_read(s, m);
    for (int64_t i = 0; i < m->count; i++) s->value[0] = combine_values(AD_UFUNC_add, s->value[0], m->value[i]);
}

static void wait_for_all(client *c) {
    const int status = ad_sync(c->session);
    sim_note("synced", status, 0);
    check_status(status, "waiting");
    if (!status) note_answer(c);
}

static void take_step(client *c) {
    switch (sim_draw_below(12)) {
    case 0: make_array(c); break;
    case 1: upload_array(c); break;
    case 2:
    case 3:
    case 4: combine_arrays(c, false); break;
    case 5:
    case 6: combine_arrays(c, true); break;
    case 7: write_part(c); break;
    case 8:
        if (c->used) remove_model(c, choose_model(c));
        break;
    case 9: sum_array(c); break;
    case 10: sim_draw_case(300000) ? wait_for_all(c) : download_some(c); break;
    default: download_some(c); break;
    }
}

/* Connect. Before a session has begun nobody promises that it survives a fault, so a client tries again. */
static int connect_session(client *c, const char *url) {
    int status = ad_session_open(url, &c->session);
    for (int tries = 0; status && tries < TRIES && (sim_worker_deaths || sim_planned.drops); tries++)
        status = ad_session_open(url, &c->session);
    check_status(status, "connecting");
    return status;
}

int main(int argc, char **argv) {
    client c = {.deaths = sim_worker_deaths};
    if (argc != 3) return 2;
    if (connect_session(&c, argv[1])) return 1;
    sim_serving = true;
    for (long left = atol(argv[2]); left > 0 && !sim_failed; left--) take_step(&c);
    while (c.used && !sim_failed) {
        download_array(&c, &c.list[0]);
        if (c.used) remove_model(&c, &c.list[0]);
    }
    ad_session_close(c.session);
    return 0;
}
