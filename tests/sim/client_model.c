/* What each array of a client must be.
 *
 * An array is right, or it is lost. It may be lost only if a worker was killed while a change in place was not yet
 * behind an answer: the journal promises the rest (docs/internals/journal.md). What was made from it before the change
 * may be made again, and be lost, too. So may what was made from a released array on a small device. Small arrays are
 * never lost otherwise where operations are complete when they return. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/client.h"

#define TRIES 8
#define COPIED_MOST 16384 /* bytes of an array that is copied before it is changed in place */

/* ---- arrays ---- */

model *sim_model_add(client *c, ad_array *array, int64_t count) {
    model *m = &c->list[c->used++];
    *m = (model){.array = array, .number = ++c->numbers, .count = count, .value = sim_make_numbers(count)};
    return m;
}

model *sim_model_find(client *c, int number) {
    for (int i = 0; i < c->used; i++)
        if (c->list[i].number == number) return &c->list[i];
    return NULL;
}

/* Wait until no other thread downloads an array. NULL: it has failed there, and is removed. */
static model *await_reader(client *c, model *m) {
    const int number = m->number;
    if (!m->awaited) return m;
    sim_reader_look(c, true);
    return sim_model_find(c, number);
}

/* Note that what was made from an array since the last answer may have to be made again without it. */
static void put_readers_at_risk(client *c, const model *m) {
    for (int i = 0; i < c->used; i++)
        if (c->list[i].reads[m->number % SIM_NUMBERS / 64] >> m->number % 64 & 1) c->list[i].at_risk = true;
}

/* Release an array. On a small device its memory may be used again before a checkpoint. */
void sim_model_remove(client *c, model *m) {
    if (!(m = await_reader(c, m))) return;
    if (m->common && m->at_risk) sim_model_sync(c);
    if (sim_planned.spill) put_readers_at_risk(c, m);
    ad_export_close(m->lease);
    ad_array_release(m->array);
    free(m->value);
    *m = c->list[--c->used];
}

model *sim_model_choose(client *c) {
    for (int i = 0; i < TRIES && c->used; i++) {
        model *m = &c->list[sim_draw_below((uint64_t)c->used)];
        if (!m->refused && !m->common) return m;
    }
    return NULL;
}

model *sim_model_choose_mine(client *c) {
    model *m = sim_model_choose(c);
    return m && (m->frozen || m->awaited) ? NULL : m;
}

void sim_model_make_room(client *c) {
    if (c->used == SIM_ARRAYS) sim_model_remove(c, &c->list[sim_draw_below(SIM_ARRAYS)]);
}

/* ---- what may happen ---- */

/* Forget that an array is at risk; it may be lost if a worker has been killed meanwhile. */
static void settle_risk(const client *c, model *m, unsigned deaths) {
    m->maybe_lost |= m->at_risk && c->deaths != deaths;
    m->at_risk = false;
}

void sim_model_note_answer(client *c) {
    for (int i = 0; i < c->used; i++) {
        if (c->list[i].common) sim_common_settle(&c->list[i]);
        else settle_risk(c, &c->list[i], sim_worker_deaths);
        memset(c->list[i].reads, 0, sizeof c->list[i].reads);
    }
    c->deaths = sim_worker_deaths;
}

void sim_model_note_read(model *m, const model *from) {
    for (int i = 0; i < SIM_NUMBERS / 64; i++) m->reads[i] |= from->reads[i];
    m->reads[from->number % SIM_NUMBERS / 64] |= (uint64_t)1 << from->number % 64;
    m->at_risk |= from->at_risk;
    m->maybe_lost |= from->maybe_lost;
}

/* Tell whether the server copies an array before it is changed in place: it is small, and nobody else has it. */
static bool is_copied(const model *m) {
    return !sim_planned.late && !sim_planned.spill && !sim_planned.forks && !m->lease && !m->frozen &&
           m->count * (int64_t)sizeof(int64_t) <= COPIED_MOST;
}

void sim_model_note_change(client *c, model *m) {
    if (is_copied(m)) return;
    m->at_risk = true;
    put_readers_at_risk(c, m);
}

bool sim_model_may_be_lost(const client *c, const model *m) {
    return m->maybe_lost || (m->at_risk && c->deaths != sim_worker_deaths);
}

bool sim_model_tolerates(void) {
    const bool bystander = sim_current->process->user == SIM_BYSTANDER;
    return sim_planned.no_memory || sim_planned.no_descriptor || (sim_planned.quota && !bystander) ||
           (sim_planned.fail_at && !(sim_planned.fail_who == 3 && bystander));
}

void sim_model_check_status(client *c, int status, const char *what) {
    const char *name;
    (void)c;
    if (!status || sim_model_tolerates()) return;
    const uint64_t number = ad_error_operation(&name);
    sim_fail("%s: status %d: %s (operation %" PRIu64 " %s)", what, status, ad_error_message(), number, name);
}

/* ---- answers ---- */

static void explain_difference(const model *m, const int64_t *got) {
    int64_t i = 0;
    while (got[i] == m->value[i]) i++;
    sim_fail("element %" PRId64 " of %" PRId64 " is %" PRId64 ", not %" PRId64, i, m->count, got[i], m->value[i]);
}

void sim_model_check_download(client *c, model *m, int status, const int64_t *got) {
    const size_t size = (size_t)m->count * sizeof(int64_t);
    sim_note("downloaded", m->number, status);
    const bool lost = status == AD_E_DEVICE_LOST && sim_model_may_be_lost(c, m);
    if (m->refused && status != m->refused && !lost && !sim_model_tolerates())
        sim_fail("array %d should fail with %d, but its status is %d", m->number, m->refused, status);
    if (status == 0 && !m->refused && memcmp(got, m->value, size)) explain_difference(m, got);
    if (lost) sim_note("lost", m->count, 0);
    else if (!m->refused) sim_model_check_status(c, status, "downloading");
}

static uint64_t count_round_trips(const client *c) {
    ad_session_info info;
    ad_session_get_info(c->session, &info);
    return info.round_trips;
}

void sim_model_download(client *c, model *m) {
    if (!(m = await_reader(c, m))) return;
    if (m->common) {
        sim_common_download(c, m);
        return;
    }
    const size_t size = (size_t)m->count * sizeof(int64_t);
    int64_t *got = sim_make_numbers(m->count);
    const uint64_t before = count_round_trips(c);
    const int status = ad_download(m->array, got, size);
    /* The library may have answered from its copy. Where the other thread waits as well, nobody knows who was answered. */
    const bool answered = count_round_trips(c) != before && !c->reader.wanted;
    sim_model_check_download(c, m, status, got);
    free(got);
    if (status) sim_model_remove(c, m);
    /* Of a device that completes operations later answers do not wait for all of it. */
    if (answered && !sim_planned.late && (status == 0 || status == AD_E_DEVICE_LOST)) sim_model_note_answer(c);
}

void sim_model_sync(client *c) {
    const int status = ad_sync(c->session);
    sim_note("synced", status, 0);
    sim_model_check_status(c, status, "waiting");
    if (!status) sim_model_note_answer(c);
}
