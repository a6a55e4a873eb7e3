/* Requests that a client makes now and then: calls of libraries, and questions about the session and its device. */
#include <stdlib.h>
#include <string.h>

#include "protocol/rows_call.h"
#include "tests/sim/client.h"

void sim_ask_cumsum(client *c) {
    ad_array *out;
    sim_model_make_room(c);
    const model *x = sim_model_choose(c);
    if (!x) return;
    const int status = ad_call_call(c->session, AD_CALL_cumsum, -1, 1, (ad_in[]){ad_of(x->array)}, 1,
                                    (ad_value[]){{.kind = AD_VALUE_INT, .as.i = 0}}, NULL, &out, NULL);
    sim_model_check_status(c, status, "summing along an axis");
    if (status) return;
    model *z = sim_model_add(c, out, x->count);
    sim_note("sums along", z->number, x->number);
    sim_model_note_read(z, x);
    uint64_t sum = 0;
    for (int64_t i = 0; i < x->count; i++) z->value[i] = (int64_t)(sum += (uint64_t)x->value[i]);
}

/* Ask for what has a size that only the server knows. */
void sim_ask_nonzero(client *c) {
    ad_array *out;
    int64_t values[8] = {0};
    sim_model_make_room(c);
    const model *x = sim_model_choose(c);
    if (!x) return;
    const int number = x->number;
    const int status =
        ad_call_call(c->session, AD_CALL_nonzero, -1, 1, (ad_in[]){ad_of(x->array)}, 0, NULL, NULL, &out, values);
    sim_note("looks for zeros", number, status);
    if (!(status == AD_E_DEVICE_LOST && sim_model_may_be_lost(c, x)))
        sim_model_check_status(c, status, "finding zeros");
    if (status) return;
    int64_t count = 0;
    for (int64_t i = 0; i < x->count; i++) count += x->value[i] != 0;
    if (values[0] != count)
        sim_fail("%ld elements of array %d are not zero, not %ld", (long)count, number, (long)values[0]);
    ad_array_release(out);
}

/* Download into memory that both ends have mapped. */
void sim_ask_host(client *c) {
    ad_host *host;
    model *m = c->list;
    while (m < c->list + c->used && (m->count < 65536 || m->refused || m->awaited || m->common)) m++;
    if (m == c->list + c->used) return;
    const int status = ad_download_host(m->array, &host);
    if (status == AD_E_UNSUPPORTED) return;
    sim_model_check_download(c, m, status, status ? NULL : ad_host_data(host));
    if (status) sim_model_remove(c, m);
    else ad_host_release(host);
}

static void ask_about_device(client *c) {
    ad_device_facts facts;
    ad_pool_facts pool;
    char *names = NULL;
    sim_model_check_status(c, ad_device_get_facts(c->session, 0, &facts), "asking for a device");
    sim_model_check_status(c, ad_pool_ask(c->session, 0, AD_POOL_LOOK, 0, &pool), "asking for memory");
    sim_model_check_status(c, ad_pool_ask(c->session, 0, AD_POOL_TRIM, 0, &pool), "giving memory back");
    sim_model_check_status(c, ad_names(c->session, &names), "asking for names");
    free(names);
}

/* Tell whether the session may have come from another worker. */
static bool may_have_moved(void) { return sim_worker_deaths || sim_planned.moves || sim_planned.upgrades; }

static void ask_about_events(client *c) {
    uint64_t from = 0, to = 0;
    double milliseconds;
    bool done;
    int status = ad_event_record(c->session, 0, true, &from);
    if (!status) status = ad_event_record(c->session, 0, true, &to);
    if (!status) status = ad_event_elapsed(c->session, from, to, &milliseconds);
    const bool waited = !status;
    if (status == AD_E_VALUE && may_have_moved()) status = 0; /* times are lost with the worker that saw them */
    if (!status) status = ad_event_done(c->session, to, &done);
    /* Where operations are executed again later, the event may be under way again. */
    if (!status && waited && !done && !(sim_planned.late && may_have_moved()))
        sim_fail("an event that was waited for is not complete");
    if (from) ad_event_drop(c->session, from);
    if (to) ad_event_drop(c->session, to);
    if (!status) status = ad_stream_wait(c->session, 0);
    if (!status) status = ad_stream_done(c->session, 0, &done);
    sim_model_check_status(c, status, "asking for streams and events");
}

/* Build a kernel. There is no compiler here, but who asks for the first one gets a worker of its own before. */
void sim_ask_build(client *c) {
    ad_module *m = NULL;
    if (!sim_planned.moves || c->reader.wanted) return;
    const int status = ad_module_build(c->session, "", 0, 0, NULL, 0, NULL, &m, NULL);
    sim_note("builds", status, 0);
    if (!status) sim_fail("a kernel is built where there is no compiler");
    if (status != AD_E_SYSTEM && status != AD_E_UNSUPPORTED) sim_model_check_status(c, status, "building");
}

void sim_ask_session(client *c) {
    ask_about_device(c);
    ask_about_events(c);
    if (c->reader.wanted) return;
    sim_model_sync(c);
    const int status = ad_cancel(c->session); /* nothing is under way that this could end */
    sim_note("cancels", 0, status);
    sim_model_check_status(c, status, "cancelling");
    sim_model_sync(c);
}
