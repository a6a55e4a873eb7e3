/* Clients send operations that fail by themselves, as an index is out of bounds. A result fails with its operation, and
 * what is made from it as well. An array that such an operation should have changed is as before. The first question
 * behind that is told of the failure, and the second is not. */
#include <string.h>

#include "protocol/rows_call.h"
#include "tests/sim/client.h"

#define MOST_GATHERED 20
#define MOST_BEHIND 30 /* operations between a failure and the question */

/* Make `count` indices of one element of an array: of one that is there, or of the one behind the last. NULL: the call
 * has failed. */
static ad_array *make_indices(client *c, const model *x, int64_t count, bool fails, int64_t *index) {
    ad_array *out = NULL;
    *index = fails ? x->count : (int64_t)sim_draw_below((uint64_t)x->count);
    sim_model_check_status(c, ad_full(c->session, AD_INT64, 1, &count, ad_int(*index), &out), "making indices");
    return out;
}

/* z = x[indices] */
static void gather_elements(client *c, bool fails) {
    const int64_t count = 1 + (int64_t)sim_draw_below(MOST_GATHERED);
    int64_t index;
    ad_array *out;
    sim_model_make_room(c);
    const model *x = sim_model_choose(c);
    ad_array *indices = x ? make_indices(c, x, count, fails, &index) : NULL;
    if (!indices) return;
    const int status = ad_call_call(c->session, AD_CALL_gather, -1, 2, (ad_in[]){ad_of(x->array), ad_of(indices)}, 0,
                                    NULL, NULL, &out, NULL);
    sim_model_check_status(c, status, "gathering");
    ad_array_release(indices);
    if (status) return;
    model *z = sim_model_add(c, out, count);
    sim_note(fails ? "gathers in vain" : "gathers", z->number, x->number);
    sim_model_note_read(z, x);
    if (fails) z->refused = AD_E_INDEX;
    for (int64_t i = 0; i < count && !fails; i++) z->value[i] = x->value[index];
}

/* x[index] = a number; `changed` is the array then. False: there is none. */
static bool scatter_number(client *c, bool fails, model *changed) {
    const int64_t number = (int64_t)sim_draw_below(1000);
    int64_t index;
    ad_array *out;
    model *x = sim_model_choose_mine(c);
    ad_array *indices = x ? make_indices(c, x, 1, fails, &index) : NULL;
    if (!indices) return false;
    const int status = ad_call_call(c->session, AD_CALL_scatter, -1, 2, (ad_in[]){ad_int(number), ad_of(indices)}, 1,
                                    (ad_value[]){{.kind = AD_VALUE_INT, .as.i = 0}}, &x->array, &out, NULL);
    sim_model_check_status(c, status, "scattering");
    ad_array_release(indices);
    if (status) return false;
    ad_array_release(out);
    sim_note(fails ? "scatters in vain" : "scatters", x->number, index);
    sim_model_note_change(c, x);
    if (!fails) x->value[index] = number;
    *changed = *x;
    return true;
}

/* Ask twice. Where the array is lost, nothing is told. */
static void expect_failure(client *c, const model *changed) {
    const char *name = "";
    const int status = ad_sync(c->session);
    if (status) ad_error_operation(&name);
    sim_note("is told", status, 0);
    const bool told = status == AD_E_INDEX && !strcmp(name, "scatter");
    if (!told && (status || !sim_model_may_be_lost(c, changed)))
        sim_fail("scatter failed, and the next question is told %d of %s: %s", status, name, ad_error_message());
    sim_model_sync(c);
}

/* Send operations behind the failure, which may be queued with it. Room for their results is no question, unless
 * arrays in common are released. */
static void send_some(client *c) {
    if (sim_planned.commons) return;
    for (uint64_t left = sim_draw_below(MOST_BEHIND); left > 0 && !sim_failed; left--) sim_combine_new(c);
}

void sim_try_index(client *c) {
    const bool fails = sim_draw_case(500000);
    model changed;
    if (sim_draw_case(500000)) {
        gather_elements(c, fails);
        return;
    }
    if (c->reader.wanted || sim_model_tolerates()) return; /* others may be told, or of something else */
    if (!scatter_number(c, fails, &changed)) return;
    send_some(c);
    if (fails) expect_failure(c, &changed);
}
