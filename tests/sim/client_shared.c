/* Arrays that a client gives to others, by name or by capability, and memory of arrays that it maps. What is given is
 * complete then and is not changed any more; so it must be right for whoever attaches it, whatever happens later. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/client.h"

#define LINGER 100000.0 /* seconds: longer than any run */

/* Choose an array to give away, which is complete from here on. NULL: there is none. */
static model *choose_gift(client *c) {
    model *m = sim_model_choose(c);
    if (!m || m->lease) return NULL;
    sim_model_sync(c);
    m->frozen = true;
    return m;
}

static void print_name(char out[16], const sim_shared *s) { snprintf(out, 16, "n%d", s->number); }

/* Judge the status of a call that gives an array away. False: it has failed. */
static bool check_given(client *c, model *m, int status, const char *what) {
    if (!status) return true;
    if (status != AD_E_DEVICE_LOST || !m->maybe_lost) sim_model_check_status(c, status, what);
    return false;
}

void sim_share_by_name(client *c) {
    char name[16];
    model *m = choose_gift(c);
    sim_shared *s = m ? sim_shared_add(m->count, m->value, m->maybe_lost) : NULL;
    if (!s) return;
    print_name(name, s);
    const int status = ad_publish(m->array, name, false, "*");
    sim_note("publishes", s->number, status);
    if (!check_given(c, m, status, "publishing")) return;
    s->by_name = true;
    s->owner = sim_current->process->number;
}

void sim_share_for_uses(client *c, int limit) {
    ad_capability capability;
    model *m = choose_gift(c);
    sim_shared *s = m ? sim_shared_add(m->count, m->value, m->maybe_lost) : NULL;
    if (!s) return;
    s->limit = limit;
    const int status = ad_capability_make(m->array, (uint64_t)s->limit, 0, LINGER, &capability);
    sim_note("makes a capability", s->number, status);
    if (!check_given(c, m, status, "making a capability")) return;
    memcpy(s->capability, &capability, sizeof capability);
    s->by_capability = true;
}

void sim_share_by_capability(client *c) {
    const bool limited = sim_draw_case(400000);
    sim_share_for_uses(c, !limited ? 0 : sim_planned.commons ? 1 + (int)sim_draw_below(3) : 1);
}

static int attach_by_capability(client *c, sim_shared *s, ad_array **out) {
    const int64_t stride = sizeof(int64_t);
    const ad_layout layout = {.dtype = AD_INT64, .ndim = 1, .shape = &s->count, .strides = &stride};
    ad_capability capability;
    memcpy(&capability, s->capability, sizeof capability);
    s->trying++;
    const int status = ad_capability_attach(c->session, &capability, &layout, out);
    s->trying--;
    return status;
}

/* Judge the use of a capability for some uses. True: it was right that it was refused, as others that tried meanwhile
 * may have had the rest. A process that was killed while it tried tries for ever. */
static bool judge_use(sim_shared *s, int status, int tried) {
    if (!s->by_capability || !s->limit) return false;
    if (!status && s->uses++ >= s->limit)
        sim_fail("the capability of array %d, for %d uses, was used %d times", s->number, s->limit, s->uses);
    return status == AD_E_STALE && tried >= s->limit;
}

static void attach_shared(client *c, sim_shared *s) {
    char name[16], principal[32];
    ad_array *a;
    if (!s || !(s->by_name || s->by_capability)) return;
    print_name(name, s);
    snprintf(principal, sizeof principal, "uid:%u", s->user);
    if (s->by_capability && s->user != sim_current->process->user) return;
    const int status = s->by_name ? ad_attach(c->session, principal, name, &a) : attach_by_capability(c, s, &a);
    sim_note("attaches", s->number, status);
    const bool moved = sim_planned.moves && s->user != sim_current->process->user; /* a name moves with its user */
    if (status == AD_E_NAME && (s->withdrawn || moved)) return;
    if (judge_use(s, status, s->uses + s->trying)) return;
    if (!(status == AD_E_DEVICE_LOST && s->maybe_lost)) sim_model_check_status(c, status, "attaching");
    if (status) return;
    sim_shared_crossed |= s->user != sim_current->process->user;
    model *m = sim_model_add(c, a, s->count);
    memcpy(m->value, s->value, (size_t)s->count * sizeof *s->value);
    m->frozen = true;
    m->maybe_lost = s->maybe_lost;
    if (s->common) sim_common_join(m, s);
}

void sim_share_attach(client *c) {
    sim_model_make_room(c);
    attach_shared(c, sim_shared_choose());
}

bool sim_share_attach_latest(client *c) {
    sim_shared *s = sim_shared_latest(sim_current->process->user);
    if (!s || s->number == c->latest) return false;
    c->latest = s->number;
    sim_model_make_room(c);
    attach_shared(c, s);
    return true;
}

void sim_share_withdraw(client *c) {
    char name[16];
    sim_shared *s = sim_shared_choose();
    if (!s || !s->by_name || s->withdrawn || s->owner != sim_current->process->number) return;
    s->withdrawn = true;
    print_name(name, s);
    const int status = ad_unpublish(c->session, name);
    sim_note("withdraws", s->number, status);
    sim_model_check_status(c, status, "withdrawing");
}

/* Compare what is mapped with what must be there. */
static void compare_memory(const model *m) {
    for (int64_t i = 0; i < m->count; i++)
        if (m->memory[i] != m->value[i] && !m->maybe_lost) {
            sim_fail("mapped element %ld of array %d is %ld, not %ld", (long)i, m->number, (long)m->memory[i],
                     (long)m->value[i]);
            return;
        }
}

static void map_memory(client *c, model *m) {
    void *data;
    int status = ad_export(m->array, &m->lease);
    sim_note("exports", m->number, status);
    if (!check_given(c, m, status, "exporting")) {
        m->lease = NULL;
        return;
    }
    status = ad_import(m->lease, NULL, &data);
    if (status) {
        sim_model_check_status(c, status, "mapping");
        return;
    }
    m->memory = data;
    compare_memory(m);
}

void sim_share_memory(client *c) {
    model *m = sim_model_choose_mine(c);
    if (!m) return;
    sim_model_sync(c);
    if (!m->lease) {
        map_memory(c, m);
        return;
    }
    if (!m->memory) return;
    compare_memory(m);
    const int64_t at = (int64_t)sim_draw_below((uint64_t)m->count);
    m->value[at] = m->memory[at] = (int64_t)sim_draw_below(1000);
    sim_note("writes into memory", m->number, at);
}
