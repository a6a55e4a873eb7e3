/* A client of the simulator: operations of its seed on a session, beside a model of what every array must be
 * (client_model.c). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/counters.h"
#include "protocol/rows_reduction.h"
#include "protocol/rows_ufunc.h"
#include "tests/sim/client.h"

#define TRIES 20
#define FATAL 6661 /* the number that a worker dies of where the plan says so (crash.c) */

/* Choose one with as many elements as another has. */
static model *choose_like(client *c, model *like) {
    model *m = sim_model_choose(c);
    return m && m->count == like->count ? m : like;
}

static int64_t draw_count(void) {
    if (sim_planned.spill && sim_draw_case(300000)) return 1 + (int64_t)sim_draw_below(100000);
    if (sim_draw_case(4000)) return 1 + (int64_t)sim_draw_below(400000);
    return sim_draw_case(20000) ? 1 + (int64_t)sim_draw_below(60000) : 1 + (int64_t)sim_draw_below(40);
}

static int64_t draw_value(void) { return (int64_t)sim_draw_below(2001) - 1000; }

static void make_array(client *c) {
    ad_array *a;
    const int64_t count = draw_count(), value = draw_value();
    sim_model_make_room(c);
    const bool ramp = sim_draw_case(500000);
    const int status = ramp ? ad_arange(c->session, ad_int(value), ad_int(value + count), ad_int(1), AD_INT64, &a)
                            : ad_full(c->session, AD_INT64, 1, &count, ad_int(value), &a);
    sim_model_check_status(c, status, "making an array");
    if (status) return;
    model *m = sim_model_add(c, a, count);
    for (int64_t i = 0; i < count; i++) m->value[i] = value + (ramp ? i : 0);
}

static void upload_array(client *c) {
    const int64_t count = draw_count();
    sim_model_make_room(c);
    model *m = sim_model_add(c, NULL, count);
    for (int64_t i = 0; i < count; i++) m->value[i] = draw_value();
    const int status = ad_upload(c->session, AD_INT64, 1, &count, m->value, (size_t)count * sizeof(int64_t), &m->array);
    sim_model_check_status(c, status, "uploading");
    if (status) sim_model_remove(c, m);
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

/* Before a change in place that may be refused, wait for the other thread, which would be told so instead, and for
 * errors of earlier operations, of which each question tells one at most. */
static void prepare_change(client *c) {
    if (!sim_model_tolerates()) return;
    sim_reader_look(c, true);
    for (int i = 0; i < 8 && ad_sync(c->session); i++) {}
}

/* Copy the values of an array before a change in place, which may be refused for want of memory or descriptors: what
 * others have as well is copied first. NULL: this user has enough. */
static int64_t *keep_values(const model *m) {
    if (!sim_model_tolerates()) return NULL;
    int64_t *kept = sim_make_numbers(m->count);
    memcpy(kept, m->value, (size_t)m->count * sizeof *kept);
    return kept;
}

/* Wait for a change in place. If it was refused, the array has the values that were kept. A question that has failed by
 * itself, for want of memory, says nothing of the change. */
static void confirm_change(client *c, model *m, int64_t *kept) {
    const char *name;
    if (!kept) return;
    int status = ad_sync(c->session);
    for (int i = 0; i < 5 && status == AD_E_MEMORY && !ad_error_operation(&name); i++) status = ad_sync(c->session);
    sim_note("confirms", m->number, status);
    if (status) memcpy(m->value, kept, (size_t)m->count * sizeof *kept);
    free(kept);
}

/* z = x op y, or x = x op y. */
static void combine_arrays(client *c, bool in_place) {
    sim_model_make_room(c);
    if (in_place) prepare_change(c);
    model *x = in_place ? sim_model_choose_mine(c) : sim_model_choose(c);
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
    sim_model_check_status(c, status, "combining");
    if (status) return;
    if (in_place) ad_array_release(out);
    model *z = in_place ? x : sim_model_add(c, out, x->count);
    int64_t *kept = in_place ? keep_values(x) : NULL;
    sim_note(in_place ? "changes" : "combines", z->number, x->number);
    if (!constant) sim_note("and", y->number, 0);
    if (!in_place) sim_model_note_read(z, x);
    if (!constant) sim_model_note_read(z, y);
    if (in_place) sim_model_note_change(c, x);
    for (int64_t i = 0; i < x->count; i++)
        z->value[i] = combine_values(ufunc, x->value[i], constant ? value : y->value[i]);
    confirm_change(c, z, kept);
}

/* Overwrite a part from this process. */
static void write_part(client *c) {
    prepare_change(c);
    model *m = sim_model_choose_mine(c);
    ad_array *part;
    if (!m) return;
    const int64_t start = (int64_t)sim_draw_below((uint64_t)m->count),
                  count = 1 + (int64_t)sim_draw_below((uint64_t)(m->count - start));
    int status = ad_slice(m->array, 0, start, start + count, 1, &part);
    sim_model_check_status(c, status, "slicing");
    if (status) return;
    int64_t *kept = keep_values(m);
    for (int64_t i = 0; i < count; i++) m->value[start + i] = draw_value();
    status = ad_write(part, m->value + start, (size_t)count * sizeof(int64_t));
    sim_model_check_status(c, status, "writing");
    sim_note("writes", m->number, count);
    sim_model_note_change(c, m);
    m->maybe_lost |= status != 0;
    if (status && kept) memcpy(m->value, kept, (size_t)m->count * sizeof *kept); /* the library has sent nothing */
    ad_array_release(part);
    confirm_change(c, m, kept);
}

static void download_some(client *c) {
    model *m = sim_model_choose(c);
    if (m) sim_model_download(c, m);
}

static void sum_array(client *c) {
    model *m = sim_model_choose(c);
    ad_options options = AD_OPTIONS_INIT;
    ad_array *sum;
    if (!m) return;
    sim_model_make_room(c);
    if (!(m = sim_model_choose(c))) return;
    options.keepdims = true;
    const int status = ad_reduce_call(AD_REDUCTION_sum, ad_of(m->array), &options, &sum);
    sim_model_check_status(c, status, "summing");
    if (status) return;
    model *s = sim_model_add(c, sum, 1);
    sim_note("sums", s->number, m->number);
    sim_model_note_read(s, m);
    for (int64_t i = 0; i < m->count; i++) s->value[0] = combine_values(AD_UFUNC_add, s->value[0], m->value[i]);
}

/* Make an array by an operation that workers die of. After some of them it is left out. */
static void ask_fatal(client *c) {
    ad_options options = AD_OPTIONS_INIT;
    ad_array *out;
    sim_model_make_room(c);
    model *x = sim_model_choose(c);
    if (!x || !sim_planned.fatal) return;
    const ad_in in[2] = {ad_of(x->array), ad_int(FATAL)};
    const int status = ad_ufunc_call(c->session, AD_UFUNC_add, in, &options, &out);
    sim_model_check_status(c, status, "asking for what is fatal");
    if (status) return;
    model *z = sim_model_add(c, out, x->count);
    sim_model_note_read(z, x);
    z->refused = AD_E_INTERNAL;
    sim_note("is fatal", z->number, x->number);
}

/* ---- streams and events ---- */

static void use_stream(client *c) {
    const size_t i = sim_draw_below(SIM_STREAMS);
    int status = c->stream[i] ? 0 : ad_stream_open(c->session, 0, (int)sim_draw_below(2), &c->stream[i]);
    if (!status) status = ad_stream_use(c->session, sim_draw_case(700000) ? c->stream[i] : 0);
    sim_note("uses a stream", (long)i, status);
    sim_model_check_status(c, status, "using a stream");
}

static void drop_stream(client *c) {
    const size_t i = sim_draw_below(SIM_STREAMS);
    if (!c->stream[i]) return;
    if (ad_stream_current(c->session) == c->stream[i]) ad_stream_use(c->session, 0);
    const int status = ad_stream_drop(c->session, c->stream[i]);
    sim_note("drops a stream", (long)i, status);
    sim_model_check_status(c, status, "dropping a stream");
    c->stream[i] = 0;
}

/* Look whether the event is reached. Once it was it stays so, whatever is killed. */
static void look_at_event(client *c) {
    bool done;
    const int status = ad_event_done(c->session, c->event, &done);
    sim_note("looks at an event", status ? status : done, c->reached);
    sim_model_check_status(c, status, "looking at an event");
    if (status) return;
    if (c->reached && !done) sim_fail("an event that was reached is under way again");
    c->reached = done;
}

static void use_event(client *c) {
    if (sim_planned.events && c->event && sim_draw_case(600000)) {
        look_at_event(c);
        return;
    }
    const uint64_t on = c->stream[sim_draw_below(SIM_STREAMS)], other = c->stream[sim_draw_below(SIM_STREAMS)];
    int status = ad_event_record(c->session, on, sim_draw_case(500000), &c->event);
    if (!status) status = ad_stream_follow(c->session, other, c->event);
    c->reached = false;
    if (!status && sim_draw_case(300000)) c->reached = !(status = ad_event_wait(c->session, c->event));
    if (!status && sim_draw_case(300000)) {
        status = ad_event_drop(c->session, c->event);
        c->event = 0;
    }
    sim_note("uses an event", (long)c->event, status);
    sim_model_check_status(c, status, "using an event");
}

/* Fork, and go on as the child. The parent ends without a word. What it had mapped of its arrays is not the child's,
 * and neither are its streams and events. If the parent's connection breaks just then, nobody sends again what begins
 * the child's session. */
static void go_on_in_child(client *c) {
    if (!sim_planned.forks || !c->used) return;
    sim_reader_stop(c);
    for (int i = 0; i < c->used; i++) {
        ad_export_close(c->list[i].lease);
        c->list[i].lease = NULL;
        c->list[i].memory = NULL;
    }
    if (c->used) sim_become_child(); /* otherwise the child would have no session */
    const int status = ad_sync(c->session);
    const bool broken = c->deaths != sim_worker_deaths || sim_planned.drops || sim_planned.upgrades;
    sim_note("forks", c->used, status);
    c->orphaned = status == AD_E_CONNECTION && broken;
    if (!c->orphaned) sim_model_check_status(c, status, "forking");
    memset(c->stream, 0, sizeof c->stream);
    c->event = 0;
    sim_reader_start(c);
}

/* ---- what the server says of the session ---- */

/* Compare the server's account with what the client has, and with what its user may have. */
static void check_account(client *c) {
    uint64_t counter[AD_NCOUNTER];
    int got;
    if (c->reader.wanted) return;
    sim_model_sync(c);
    const int status = ad_stat(c->session, AD_NCOUNTER, counter, &got);
    sim_model_check_status(c, status, "asking for counters");
    if (status) return;
    const uint64_t held = counter[AD_COUNTER_principal_bytes], most = counter[AD_COUNTER_principal_limit];
    if (most != (sim_current->process->user == SIM_OTHER ? sim_planned.quota : 0) ||
        (most && held > most && !sim_shared_crossed))
        sim_fail("the user has %" PRIu64 " bytes, and may have %" PRIu64, held, most);
    if (sim_model_tolerates()) return;
    sim_note("counts", (long)counter[AD_COUNTER_buffers], c->used);
    if (counter[AD_COUNTER_buffers] > (uint64_t)c->used)
        sim_fail("the server counts %" PRIu64 " arrays where the client has %d", counter[AD_COUNTER_buffers], c->used);
}

/* ---- */

static void share_something(client *c) {
    switch (sim_draw_below(8)) {
    case 0: sim_share_by_name(c); break;
    case 1: sim_share_by_capability(c); break;
    case 2:
    case 3:
    case 4: sim_share_attach(c); break;
    case 5: sim_share_withdraw(c); break;
    default: sim_share_memory(c); break;
    }
}

static void do_something_rare(client *c) {
    switch (sim_draw_below(14)) {
    case 0: use_stream(c); break;
    case 1: drop_stream(c); break;
    case 2: use_event(c); break;
    case 3: check_account(c); break;
    case 4: ask_fatal(c); break;
    case 5: sim_ask_cumsum(c); break;
    case 6: sim_ask_nonzero(c); break;
    case 7: sim_ask_host(c); break;
    case 8: sim_ask_session(c); break;
    case 9: sim_ask_build(c); break;
    case 10: go_on_in_child(c); break;
    default:
        if (sim_planned.shares) share_something(c);
        break;
    }
}

/* Steps that touch each kind of row of the journal, and that let each be gone again. */
void sim_combine_new(client *c) { combine_arrays(c, false); }
static void combine_in_place(client *c) { combine_arrays(c, true); }

static void upload_large(client *c) {
    static int64_t numbers[70000]; /* enough for a window */
    const int64_t count = sizeof numbers / sizeof *numbers;
    ad_array *a;
    sim_model_make_room(c);
    for (int64_t i = 0; i < count; i++) numbers[i] = draw_value();
    const int status = ad_upload(c->session, AD_INT64, 1, &count, numbers, sizeof numbers, &a);
    sim_model_check_status(c, status, "uploading");
    if (status) return;
    memcpy(sim_model_add(c, a, count)->value, numbers, sizeof numbers);
}

static void trim_windows(client *c) { sim_model_check_status(c, ad_host_trim(c->session), "trimming"); }

static void remove_first(client *c) {
    if (c->used) sim_model_remove(c, &c->list[0]);
}

static void (*const script[])(client *c) = {
    make_array,         make_array,        upload_array,     sim_combine_new,
    use_stream,         sim_combine_new,   use_event,        combine_in_place,
    write_part,         sum_array,         upload_large,     use_stream,
    sim_combine_new,    sim_share_by_name, sim_share_attach, sim_share_by_capability,
    sim_ask_host,       sim_ask_cumsum,    sim_ask_nonzero,  sim_share_attach,
    sim_share_memory,   sim_combine_new,   combine_in_place, sim_share_memory,
    sim_reader_ask,     combine_in_place,  remove_first,     use_event,
    sim_ask_session,    sim_share_memory,  download_some,    drop_stream,
    sim_share_withdraw, use_event,         trim_windows,     remove_first,
    sim_share_attach,   combine_in_place,  sim_model_sync,   drop_stream,
    sim_ask_cumsum,     write_part,        download_some,    remove_first,
    check_account,
};

static bool has_capability(sim_task *t, void *unused) {
    (void)unused;
    return sim_shared_latest(t->process->user);
}

/* The second script: of three sessions of a user the first to come makes a capability for two uses, and the others use
 * it at the same moment. */
static void use_together(client *c) {
    static const int users = 2;
    make_array(c);
    if (sim_current->process->user == SIM_BYSTANDER) return;
    if (sim_shared_is_first()) sim_share_for_uses(c, users);
    else if (sim_wait("a capability", has_capability, NULL, INT64_MAX)) sim_share_attach_latest(c);
}

static void follow_script(client *c) {
    if (sim_planned.script == 2) {
        use_together(c);
        return;
    }
    for (size_t i = 0; i < sizeof script / sizeof *script && !sim_failed; i++) {
        sim_reader_look(c, false);
        script[i](c);
    }
}

/* Do what several sessions do together. */
static void meet_others(client *c) {
    if (sim_draw_case(250000)) sim_share_attach(c);
    else if (sim_draw_case(200000)) sim_share_by_capability(c);
    else sim_common_do(c);
}

/* Send so many operations without a question that the server acknowledges some of its own accord. Some are under way
 * when the user moves to another worker. */
static void send_burst(client *c) {
    for (uint64_t left = 64 + sim_draw_below(128); left > 0 && !sim_failed; left--)
        combine_arrays(c, !sim_model_tolerates() && sim_draw_case(300000));
    if (sim_draw_case(300000)) sim_ask_build(c);
}

static void take_step(client *c) {
    sim_reader_look(c, false);
    if (sim_planned.bursts && sim_draw_case(50000)) send_burst(c);
    if (sim_planned.indices && sim_draw_case(60000)) sim_try_index(c);
    if (sim_planned.events && sim_draw_case(100000)) use_event(c);
    if (sim_planned.commons && (sim_share_attach_latest(c) || sim_draw_case(300000))) {
        meet_others(c);
        return;
    }
    switch (sim_draw_below(14)) {
    case 0: make_array(c); break;
    case 1: upload_array(c); break;
    case 2:
    case 3:
    case 4: combine_arrays(c, false); break;
    case 5:
    case 6: combine_arrays(c, true); break;
    case 7: write_part(c); break;
    case 8:
        if (c->used) sim_model_remove(c, &c->list[sim_draw_below((uint64_t)c->used)]);
        break;
    case 9: sum_array(c); break;
    case 10: sim_draw_case(300000) ? sim_model_sync(c) : download_some(c); break;
    case 11: sim_reader_ask(c); break;
    case 12: do_something_rare(c); break;
    default: download_some(c); break;
    }
}

/* Connect. Before a session has begun nobody promises that it survives a fault, so a client tries again. */
static int connect_session(client *c, const char *url) {
    int status = ad_session_open(url, &c->session);
    for (int tries = 0; status && tries < TRIES && (sim_worker_deaths || sim_planned.drops || sim_planned.upgrades);
         tries++)
        status = ad_session_open(url, &c->session);
    sim_model_check_status(c, status, "connecting");
    return status;
}

int main(int argc, char **argv) {
    static client c;
    c.deaths = sim_worker_deaths;
    if (argc != 3) return 2;
    if (connect_session(&c, argv[1])) return 1;
    sim_serving = true;
    sim_reader_start(&c);
    if (sim_planned.script) follow_script(&c);
    for (long left = sim_planned.script ? 0 : atol(argv[2]); left > 0 && !sim_failed && !c.orphaned; left--)
        take_step(&c);
    sim_reader_stop(&c);
    while (c.used && !sim_failed && !c.orphaned) {
        sim_model_download(&c, &c.list[0]);
        if (c.used) sim_model_remove(&c, &c.list[0]);
    }
    if (!sim_failed && !c.orphaned) check_account(&c);
    ad_session_close(c.session);
    return 0;
}
