#include "server/worker/groups.h"

#include <string.h>

typedef struct forming {
    const ad_member *member;
    unsigned n;
    uint8_t root[AD_HELD];         /* the first of those that are connected, by way of others */
    int16_t last_use[2 * AD_HELD]; /* the last needed operation that uses the value, or AD_NOWHERE */
    ad_groups *out;
} forming;

/* ---- who is needed, and who belongs together ---- */

static void find_needed(forming *f) {
    memset(f->out->needed, 0, f->n * sizeof *f->out->needed);
    memset(f->last_use, 0xff, 2 * f->n * sizeof *f->last_use);
    for (int i = (int)f->n - 1; i >= 0; i--) {
        const ad_member *m = &f->member[i];
        bool needed = false;
        for (int k = 0; k < m->nout; k++) needed |= m->wanted[k] || f->last_use[2 * i + k] != AD_NOWHERE;
        f->out->needed[i] = needed;
        for (int k = 0; needed && k < m->nin; k++)
            if (m->from[k] != AD_NOWHERE && f->last_use[m->from[k]] == AD_NOWHERE) f->last_use[m->from[k]] = (int16_t)i;
    }
}

static unsigned root_of(forming *f, unsigned i) {
    while (f->root[i] != i) i = f->root[i] = f->root[f->root[i]];
    return i;
}

/* Also by way of an operation that is not needed: two that are tied to it must stay in order. */
static void join(forming *f, unsigned i, int other) {
    if (other == AD_NOWHERE) return;
    unsigned a = root_of(f, i), b = root_of(f, (unsigned)other);
    f->root[a > b ? a : b] = (uint8_t)(a > b ? b : a);
}

static void find_connected(forming *f) {
    for (unsigned i = 0; i < f->n; i++) f->root[i] = (uint8_t)i;
    for (unsigned i = 0; i < f->n; i++) {
        const ad_member *m = &f->member[i];
        if (!f->out->needed[i]) continue;
        for (int k = 0; k < m->nin; k++) join(f, i, m->from[k] == AD_NOWHERE ? AD_NOWHERE : m->from[k] / 2);
        for (int k = 0; k < m->operands; k++) join(f, i, m->tie[k]);
    }
}

/* ---- the limits of a chain ---- */

typedef struct tally {
    uint64_t seen[(AD_HELD_LEAVES + 2 * AD_HELD + 63) / 64]; /* views; values of other groups */
    unsigned inputs, scalars, reductions, nodes, randoms;
    bool stranger; /* a reduction of what another group has made */
} tally;

static void tally_input(tally *t, unsigned id) {
    if (t->seen[id / 64] >> id % 64 & 1) return;
    t->seen[id / 64] |= 1ull << id % 64;
    t->inputs++;
}

static void tally_member(tally *t, const ad_member *m, unsigned first) {
    for (int k = 0; k < m->nin; k++) {
        if (m->from[k] == AD_NOWHERE && m->leaf[k] != AD_NOWHERE) tally_input(t, (unsigned)m->leaf[k]);
        if (m->from[k] == AD_NOWHERE || (unsigned)m->from[k] / 2 >= first) continue;
        tally_input(t, AD_HELD_LEAVES + (unsigned)m->from[k]);
        t->stranger |= m->ends;
    }
    t->scalars += m->scalars;
    t->reductions += m->ends;
    t->nodes += m->ends ? 0u : m->masked ? 1u + m->nout : 1u;
    t->randoms += m->random;
}

static bool kept(const forming *f, unsigned i, int k, unsigned last) {
    return f->member[i].wanted[k] || f->last_use[2 * i + (unsigned)k] > (int)last;
}

/* The operations order[from] .. order[to - 1] of what is connected fit one chain. */
static bool fits(const forming *f, unsigned from, unsigned to) {
    const uint8_t *order = f->out->order;
    tally t = {.inputs = 0};
    unsigned outputs = 0;
    for (unsigned at = from; at < to; at++) {
        const ad_member *m = &f->member[order[at]];
        tally_member(&t, m, order[from]);
        for (int k = 0; k < m->nout && !m->ends; k++) outputs += kept(f, order[at], k, order[to - 1]);
    }
    return t.inputs <= AD_CHAIN_INPUTS && t.scalars <= AD_CHAIN_SCALARS && t.reductions <= 1 && !t.stranger &&
           outputs <= AD_CHAIN_OUTPUTS && t.nodes <= AD_CHAIN_NODES && t.randoms <= AD_CHAIN_RANDOMS;
}

/* ---- groups ---- */

static void add_group(forming *f, unsigned from, unsigned to, uint8_t last) {
    ad_groups *g = f->out;
    g->group[g->count++] = (ad_group){(uint8_t)from, (uint8_t)(to - from), last};
    for (unsigned at = from; at < to; at++) {
        unsigned i = g->order[at];
        for (int k = 0; k < f->member[i].nout; k++) g->kept[2 * i + (unsigned)k] = kept(f, i, k, g->order[to - 1]);
    }
}

/* What is connected, order[from] .. order[to - 1], as few groups: each as long as it can be. One operation always fits.
 */
static void divide(forming *f, unsigned from, unsigned to) {
    const uint8_t last = f->out->order[to - 1];
    while (from < to) {
        unsigned end = to;
        while (end > from + 1 && !fits(f, from, end)) end--;
        add_group(f, from, end, last);
        from = end;
    }
}

void ad__groups_form(const ad_member *member, unsigned n, ad_groups *out) {
    forming f = {.member = member, .n = n, .out = out};
    int16_t head[AD_HELD], tail[AD_HELD], next[AD_HELD];
    unsigned placed = 0;
    find_needed(&f);
    find_connected(&f);
    memset(head, 0xff, sizeof head);
    for (unsigned i = 0; i < n; i++) {
        unsigned root = root_of(&f, i);
        if (!out->needed[i]) continue;
        if (head[root] == AD_NOWHERE) head[root] = (int16_t)i;
        else next[tail[root]] = (int16_t)i;
        tail[root] = (int16_t)i;
        next[i] = AD_NOWHERE;
    }
    out->count = 0;
    for (unsigned i = 0; i < n; i++) {
        unsigned from = placed;
        for (int j = head[i]; j != AD_NOWHERE; j = next[j]) out->order[placed++] = (uint8_t)j;
        if (placed > from) divide(&f, from, placed);
    }
}
