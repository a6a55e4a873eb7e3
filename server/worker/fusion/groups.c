#include "server/worker/fusion/groups.h"

#include <string.h>

typedef struct forming {
    const ad_member *member;
    unsigned n;
    uint8_t root[AD_FUSION_OPS];         /* union-find: an earlier connected operation */
    int16_t last_use[2 * AD_FUSION_OPS]; /* per value: its last needed user, or AD_NOWHERE */
    ad_groups *out;
} forming;

/* ---- needed operations, and how they are connected ---- */

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

static unsigned find_root(forming *f, unsigned i) {
    while (f->root[i] != i) i = f->root[i] = f->root[f->root[i]];
    return i;
}

/* Connect operation i with another, even with an unneeded one: two operations tied to that must stay in order. */
static void join_members(forming *f, unsigned i, int other) {
    if (other == AD_NOWHERE) return;
    unsigned a = find_root(f, i), b = find_root(f, (unsigned)other);
    f->root[a > b ? a : b] = (uint8_t)(a > b ? b : a);
}

static void find_connected(forming *f) {
    for (unsigned i = 0; i < f->n; i++) f->root[i] = (uint8_t)i;
    for (unsigned i = 0; i < f->n; i++) {
        const ad_member *m = &f->member[i];
        if (!f->out->needed[i]) continue;
        for (int k = 0; k < m->nin; k++) join_members(f, i, m->from[k] == AD_NOWHERE ? AD_NOWHERE : m->from[k] / 2);
        for (int k = 0; k < m->operands; k++) join_members(f, i, m->tie[k]);
    }
}

/* ---- the limits of a chain ---- */

typedef struct tally {
    uint64_t
        seen[(AD_FUSION_LEAVES + 2 * AD_FUSION_OPS + 63) / 64]; /* bit set of views and of values of other groups */
    unsigned inputs, scalars, ends, nodes, randoms;
    bool foreign_end; /* an end whose operand another group makes */
} tally;

static void count_input(tally *t, unsigned id) {
    if (t->seen[id / 64] >> id % 64 & 1) return;
    t->seen[id / 64] |= 1ull << id % 64;
    t->inputs++;
}

static void count_member(tally *t, const ad_member *m, unsigned first) {
    for (int k = 0; k < m->nin; k++) {
        if (m->from[k] == AD_NOWHERE && m->leaf[k] != AD_NOWHERE) count_input(t, (unsigned)m->leaf[k]);
        if (m->from[k] == AD_NOWHERE || (unsigned)m->from[k] / 2 >= first) continue;
        count_input(t, AD_FUSION_LEAVES + (unsigned)m->from[k]);
        t->foreign_end |= m->ends;
    }
    t->scalars += m->scalars;
    t->ends += m->ends;
    t->nodes += m->ends ? 0u : m->masked ? 1u + m->nout : 1u;
    t->randoms += m->random;
}

static bool must_keep_value(const forming *f, unsigned i, int k, unsigned last) {
    return f->member[i].wanted[k] || f->last_use[2 * i + (unsigned)k] > (int)last;
}

/* Count what the operations order[from] .. order[to - 1] use of a chain's limits. */
static tally count_members(const ad_member *member, const uint8_t *order, unsigned from, unsigned to) {
    tally t = {.inputs = 0};
    for (unsigned at = from; at < to; at++) count_member(&t, &member[order[at]], order[from]);
    return t;
}

static bool is_within(const tally *t, unsigned outputs) {
    return t->inputs <= AD_CHAIN_INPUTS && t->scalars <= AD_CHAIN_SCALARS && t->ends <= 1 && !t->foreign_end &&
           outputs <= AD_CHAIN_OUTPUTS && t->nodes <= AD_CHAIN_NODES && t->randoms <= AD_CHAIN_RANDOMS;
}

/* Tell whether the connected operations order[from] .. order[to - 1] fit one chain. */
static bool can_be_chain(const forming *f, unsigned from, unsigned to) {
    const uint8_t *order = f->out->order;
    const tally t = count_members(f->member, order, from, to);
    unsigned outputs = 0;
    for (unsigned at = from; at < to; at++) {
        const ad_member *m = &f->member[order[at]];
        for (int k = 0; k < m->nout && !m->ends; k++) outputs += must_keep_value(f, order[at], k, order[to - 1]);
    }
    return is_within(&t, outputs);
}

/* ---- groups ---- */

static void add_group(forming *f, unsigned from, unsigned to, uint8_t last, bool whole) {
    ad_groups *g = f->out;
    g->group[g->count++] = (ad_group){(uint8_t)from, (uint8_t)(to - from), last, whole};
    for (unsigned at = from; at < to; at++) {
        unsigned i = g->order[at];
        g->place[i] = (uint8_t)(at - from);
        for (int k = 0; k < f->member[i].nout; k++)
            g->kept[2 * i + (unsigned)k] = must_keep_value(f, i, k, g->order[to - 1]);
    }
}

/* Divide the connected operations order[from] .. order[to - 1] into few groups, each as long as possible. A single
 * operation always fits. */
static void divide_connected(forming *f, unsigned from, unsigned to) {
    const uint8_t last = f->out->order[to - 1];
    const unsigned first = from;
    while (from < to) {
        unsigned end = to;
        while (end > from + 1 && !can_be_chain(f, from, end)) end--;
        add_group(f, from, end, last, from == first && end == to);
        from = end;
    }
}

void ad__groups_form(const ad_member *member, unsigned n, ad_groups *out) {
    forming f = {.member = member, .n = n, .out = out};
    int16_t head[AD_FUSION_OPS], tail[AD_FUSION_OPS], next[AD_FUSION_OPS];
    unsigned placed = 0;
    find_needed(&f);
    find_connected(&f);
    memset(head, 0xff, n * sizeof *head);
    for (unsigned i = 0; i < n; i++) {
        unsigned root = find_root(&f, i);
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
        if (placed > from) divide_connected(&f, from, placed);
    }
}

/* ---- equal groups, which can run together ---- */

/* Tell whether two operations compute the same function of values at the same places in their groups. */
static bool is_like_member(const ad_member *member, const ad_groups *g, unsigned i, unsigned j) {
    const ad_member *a = &member[i], *b = &member[j];
    if (!a->kind || a->kind != b->kind || a->stream_queue != b->stream_queue || a->nin != b->nin ||
        a->nout != b->nout || a->masked != b->masked)
        return false;
    for (unsigned k = 0; k < a->nout; k++)
        if (g->kept[2 * i + k] != g->kept[2 * j + k]) return false;
    for (int k = 0; k < a->nin; k++) {
        if ((a->from[k] == AD_NOWHERE) != (b->from[k] == AD_NOWHERE)) return false;
        if ((a->leaf[k] == AD_NOWHERE) != (b->leaf[k] == AD_NOWHERE)) return false;
        if (a->from[k] == AD_NOWHERE) continue;
        if ((a->from[k] & 1) != (b->from[k] & 1) || g->place[a->from[k] / 2] != g->place[b->from[k] / 2]) return false;
    }
    return true;
}

static bool is_like_group(const ad_member *member, const ad_groups *g, const ad_group *a, const ad_group *b) {
    bool alike = a->count == b->count && b->whole;
    for (unsigned at = 0; at < a->count && alike; at++)
        alike = is_like_member(member, g, g->order[a->first + at], g->order[b->first + at]);
    return alike;
}

static bool can_run_together(const ad_member *member, const ad_groups *g, const ad_group *all) {
    const unsigned end = (unsigned)all->first + all->count;
    const tally t = count_members(member, g->order, all->first, end);
    unsigned outputs = 0;
    for (unsigned at = all->first; at < end; at++)
        for (unsigned i = g->order[at], k = 0; k < member[i].nout; k++) outputs += g->kept[2 * i + k];
    return is_within(&t, outputs);
}

ad_group ad__groups_join(const ad_groups *groups, unsigned at, unsigned n) {
    ad_group all = groups->group[at];
    for (unsigned k = at + 1; k < at + n; k++) {
        const ad_group *g = &groups->group[k];
        all.count = (uint8_t)(all.count + g->count);
        all.last = g->last > all.last ? g->last : all.last;
    }
    return all;
}

unsigned ad__groups_together(const ad_member *member, const ad_groups *groups, unsigned at, unsigned until) {
    const ad_group *g = &groups->group[at];
    unsigned n = 1, together = 1;
    if (!g->whole || g->last >= until) return 1;
    while (n < AD_CHAIN_OUTPUTS && at + n < groups->count && g[n].last < until &&
           is_like_group(member, groups, g, &g[n]))
        n++;
    while (4 * together <= n) together *= 4;
    for (; together > 1; together /= 4) {
        const ad_group all = ad__groups_join(groups, at, together);
        if (can_run_together(member, groups, &all)) break;
    }
    return together;
}
