/* Arrays that several sessions write into. Each session that has one writes a number of its own there, its slot, and
 * the number only grows. So whoever looks may find, in each slot, what its writer has asked for by now, but nothing
 * older than what somebody has seen before, and in his own slot nothing but the last. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/rows_ufunc.h"
#include "tests/sim/client.h"

/* ---- what may be lost ---- */

/* Note that the session changes the array: it may be lost if a worker is killed before an answer. */
static void note_change(model *m) {
    sim_shared *s = m->common;
    if (m->at_risk) return;
    m->at_risk = true;
    if (!s->pending++) s->deaths = sim_worker_deaths;
}

void sim_common_settle(model *m) {
    sim_shared *s = m->common;
    if (!m->at_risk) return;
    m->at_risk = false;
    s->maybe_lost |= s->deaths != sim_worker_deaths;
    s->pending--;
    if (!sim_model_tolerates()) s->seen[m->slot] = s->asked[m->slot];
}

/* A session that was killed never says that its change is behind a checkpoint. */
static bool may_be_lost(const sim_shared *s) { return s->maybe_lost || (s->pending && s->deaths != sim_worker_deaths); }

/* ---- looking ---- */

static void judge_slot(const model *m, int i, int64_t got, int64_t least) {
    const sim_shared *s = m->common;
    const bool own = i == m->slot && !sim_model_tolerates();
    if (got < least || got > s->asked[i] || (own && got != s->asked[i]))
        sim_fail("slot %d of array %d in common is %" PRId64 ": its writer asked for %" PRId64 ", and %" PRId64
                 " was seen%s",
                 i, s->number, got, s->asked[i], least, own ? " (by the writer)" : "");
}

/* Judge what was downloaded. least: what had been seen before. */
static void judge_numbers(const model *m, const int64_t *got, const int64_t least[SIM_SLOTS]) {
    sim_shared *s = m->common;
    for (int i = 0; i < SIM_SLOTS; i++) {
        judge_slot(m, i, got[i], least[i]);
        if (got[i] > s->seen[i]) s->seen[i] = got[i];
    }
    for (int64_t i = SIM_SLOTS; i < m->count; i++)
        if (got[i] != s->value[i]) {
            sim_fail("element %" PRId64 " of array %d in common is %" PRId64, i, s->number, got[i]);
            return;
        }
}

/* Download an array that has the numbers of one in common by now, and judge it. False: it has failed. */
static bool look_at_numbers(client *c, const model *m, const ad_array *a, const int64_t least[SIM_SLOTS]) {
    const size_t size = (size_t)m->count * sizeof(int64_t);
    int64_t *got = sim_make_numbers(m->count);
    const int status = ad_download(a, got, size);
    sim_note("looks at what is in common", m->common->number, status);
    if (!status) judge_numbers(m, got, least);
    else if (status != AD_E_DEVICE_LOST || !may_be_lost(m->common))
        sim_model_check_status(c, status, "downloading what is in common");
    free(got);
    return !status;
}

void sim_common_download(client *c, model *m) {
    int64_t least[SIM_SLOTS];
    memcpy(least, m->common->seen, sizeof least);
    if (look_at_numbers(c, m, m->array, least)) return;
    sim_common_settle(m);
    sim_model_remove(c, m);
}

/* Look at a copy that the server makes on the current stream, and that must have all that came before. */
static void look_at_copy(client *c, model *m) {
    const ad_in in[2] = {ad_of(m->array), ad_int(1)};
    ad_options options = AD_OPTIONS_INIT;
    ad_array *copy;
    int64_t least[SIM_SLOTS];
    memcpy(least, m->common->seen, sizeof least);
    const int status = ad_ufunc_call(c->session, AD_UFUNC_multiply, in, &options, &copy);
    sim_model_check_status(c, status, "copying what is in common");
    if (status) return;
    look_at_numbers(c, m, copy, least);
    ad_array_release(copy);
}

/* ---- making and writing ---- */

void sim_common_join(model *m, sim_shared *s) {
    m->common = s;
    m->frozen = true;
    m->slot = s->slots < SIM_SLOTS ? s->slots++ : -1;
}

static void make_common(client *c) {
    const int64_t count = SIM_SLOTS + (int64_t)sim_draw_below(sim_draw_case(100000) ? 60000 : 20);
    char name[16];
    ad_array *a;
    sim_model_make_room(c);
    int status = ad_full(c->session, AD_INT64, 1, &count, ad_int(0), &a);
    sim_model_check_status(c, status, "making what is in common");
    if (status) return;
    model *m = sim_model_add(c, a, count);
    sim_shared *s = sim_shared_add(count, m->value, false);
    if (!s) return;
    snprintf(name, sizeof name, "n%d", s->number);
    status = ad_publish(a, name, true, "*");
    sim_note("publishes for all to write", s->number, status);
    sim_model_check_status(c, status, "publishing for all to write");
    if (status) return;
    s->common = s->by_name = true;
    s->owner = sim_current->process->number;
    sim_common_join(m, s);
}

/* Write the next number into the session's slot: from here, or by adding 1 there. */
static void write_slot(client *c, model *m, bool adds) {
    sim_shared *s = m->common;
    ad_options options = AD_OPTIONS_INIT;
    ad_array *slot, *out = NULL;
    int status = ad_slice(m->array, 0, m->slot, m->slot + 1, 1, &slot);
    sim_model_check_status(c, status, "slicing what is in common");
    if (status) return;
    const int64_t next = ++s->asked[m->slot];
    const ad_in in[2] = {ad_of(slot), ad_int(1)};
    options.out[0] = slot;
    note_change(m);
    sim_note(adds ? "adds to what is in common" : "writes what is in common", s->number, (long)next);
    status = adds ? ad_ufunc_call(c->session, AD_UFUNC_add, in, &options, &out) : ad_write(slot, &next, sizeof next);
    sim_model_check_status(c, status, "writing what is in common");
    if (out) ad_array_release(out);
    ad_array_release(slot);
}

/* Choose one of the arrays in common. NULL: it cannot be found at once. */
static model *choose_common(client *c) {
    model *m = c->used ? &c->list[sim_draw_below((uint64_t)c->used)] : NULL;
    for (int i = 0; i < c->used && m && !m->common; i++) m = &c->list[i];
    return m && m->common ? m : NULL;
}

void sim_common_do(client *c) {
    model *m = choose_common(c);
    const uint64_t what = sim_draw_below(8);
    if (!m) make_common(c);
    else if (what == 0) sim_common_download(c, m);
    else if (what == 1) look_at_copy(c, m);
    else if (m->slot >= 0) write_slot(c, m, what % 2);
}
