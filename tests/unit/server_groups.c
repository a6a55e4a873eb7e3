/* Groups: connected operations are executed together, in order, within the limits of chains. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "server/worker/fusion/groups.h"

#define N AD_NOWHERE

/* One output; inputs are values of operations, or views. */
static ad_member make_member(bool wanted, int from0, int from1, int leaf) {
    ad_member m = {.nin = 2,
                   .nout = 1,
                   .wanted = {wanted},
                   .from = {(int16_t)from0, (int16_t)from1, N},
                   .leaf = {N, N, N},
                   .tie = {N, N, N, N, N},
                   .operands = 3};
    for (int k = 0; k < 2; k++)
        if (m.from[k] == N) m.leaf[k] = (int16_t)(leaf + k);
    return m;
}

static void check_group(const ad_groups *g, unsigned i, unsigned n, const uint8_t *order) {
    cr_assert_lt(i, g->count);
    cr_assert_eq(g->group[i].count, n, "group %u has %u", i, g->group[i].count);
    for (unsigned k = 0; k < n; k++) cr_assert_eq(g->order[g->group[i].first + k], order[k]);
}

Test(groups, what_is_connected_is_one_group_in_order) {
    /* two chains, woven into each other: 0 -> 2 -> 4 and 1 -> 3 */
    ad_member m[5] = {make_member(false, N, N, 0), make_member(false, N, N, 2), make_member(false, 0, N, 4),
                      make_member(true, 2, N, 6), make_member(true, 4, N, 8)};
    ad_groups g;
    ad__groups_form(m, 5, &g);
    cr_assert_eq(g.count, 2);
    check_group(&g, 0, 3, (uint8_t[]){0, 2, 4});
    check_group(&g, 1, 2, (uint8_t[]){1, 3});
    cr_assert(!g.kept[0] && !g.kept[4] && g.kept[8] && g.kept[6]);
}

Test(groups, what_nobody_wants_is_in_none) {
    ad_member m[4] = {make_member(false, N, N, 0), make_member(true, N, N, 2), make_member(false, 0, 2, 0),
                      make_member(false, 4, N, 4)};
    ad_groups g;
    ad__groups_form(m, 4, &g);
    cr_assert_eq(g.count, 1);
    check_group(&g, 0, 1, (uint8_t[]){1});
    cr_assert(!g.needed[0] && g.needed[1] && !g.needed[2] && !g.needed[3]);
}

Test(groups, a_shared_value_is_computed_once) {
    /* 0 is used by 1 and 2, which are wanted */
    ad_member m[3] = {make_member(false, N, N, 0), make_member(true, 0, N, 2), make_member(true, 0, N, 4)};
    ad_groups g;
    ad__groups_form(m, 3, &g);
    cr_assert_eq(g.count, 1);
    check_group(&g, 0, 3, (uint8_t[]){0, 1, 2});
}

Test(groups, ties_keep_order_by_way_of_what_is_not_needed) {
    /* 1 is dead, but reads and writes the buffer that 0 reads and 2 writes */
    ad_member m[4] = {make_member(true, N, N, 0), make_member(false, N, N, 2), make_member(true, N, N, 4),
                      make_member(true, N, N, 6)};
    m[2].tie[0] = 1;
    m[1].tie[0] = 0;
    m[0].tie[1] = 1;
    ad_groups g;
    ad__groups_form(m, 4, &g);
    cr_assert_eq(g.count, 2);
    check_group(&g, 0, 2, (uint8_t[]){0, 2});
    check_group(&g, 1, 1, (uint8_t[]){3});
}

Test(groups, one_reduction_in_each) {
    /* 0, reduced by 1 and by 2, then used by 3 */
    ad_member m[4] = {make_member(false, N, N, 0), make_member(true, 0, N, 0), make_member(true, 0, N, 0),
                      make_member(true, 0, N, 2)};
    m[1].ends = m[2].ends = true;
    m[1].nin = m[2].nin = 1;
    ad_groups g;
    ad__groups_form(m, 4, &g);
    cr_assert_eq(g.count, 3);
    check_group(&g, 0, 2, (uint8_t[]){0, 1});
    check_group(&g, 1, 1, (uint8_t[]){2});
    check_group(&g, 2, 1, (uint8_t[]){3});
    cr_assert(g.kept[0]);
}

/* Everything that a group must be, for random programs. */
static unsigned inputs_of(const ad_member *m, const ad_groups *g, const ad_group *group, bool *member_of) {
    bool seen[5 * AD_FUSION_OPS] = {false};
    unsigned n = 0;
    for (unsigned at = group->first; at < group->first + group->count; at++) {
        const ad_member *one = &m[g->order[at]];
        for (int k = 0; k < one->nin; k++) {
            int id = one->from[k] == N ? one->leaf[k] : 3 * AD_FUSION_OPS + one->from[k];
            if (id == N || (one->from[k] != N && member_of[one->from[k] / 2]) || seen[id]) continue;
            seen[id] = true;
            n++;
        }
    }
    return n;
}

static void check_random(unsigned seed) {
    ad_member m[AD_FUSION_OPS];
    ad_groups g;
    bool done[AD_FUSION_OPS] = {false};
    unsigned n = 1 + seed % AD_FUSION_OPS, placed = 0;
    srand(seed);
    for (unsigned i = 0; i < n; i++) {
        int reach = seed % 3 ? 6 : (int)AD_FUSION_OPS;
        int a = (int)i - 1 - rand() % reach, b = (int)i - 1 - rand() % reach;
        m[i] = make_member(rand() % 4 == 0, a < 0 || rand() % 4 == 0 ? N : 2 * a, b < 0 || rand() % 3 == 0 ? N : 2 * b,
                           2 * (int)i);
        m[i].scalars = rand() % 3 == 0;
        m[i].ends = m[i].from[0] != N && !m[m[i].from[0] / 2].ends && rand() % 8 == 0;
        if (m[i].ends) m[i].nin = 1;
        for (int k = 0; k < 2; k++)
            if (m[i].from[k] != N && m[m[i].from[k] / 2].ends) m[i].from[k] = N, m[i].leaf[k] = (int16_t)(2 * i);
    }
    ad__groups_form(m, n, &g);
    for (unsigned i = 0; i < g.count; i++) {
        bool member_of[AD_FUSION_OPS] = {false};
        unsigned outputs = 0, scalars = 0, reductions = 0;
        cr_assert_eq(g.group[i].first, placed);
        for (unsigned at = placed; at < placed + g.group[i].count; at++) {
            unsigned one = g.order[at];
            member_of[one] = true;
            scalars += m[one].scalars;
            outputs += g.kept[2 * one] && !m[one].ends;
            reductions += m[one].ends;
            if (m[one].ends && g.group[i].count > 1) cr_assert(member_of[m[one].from[0] / 2]);
            cr_assert(at == placed || g.order[at - 1] < one);
            for (int k = 0; k < m[one].nin; k++)
                cr_assert(m[one].from[k] == N || done[m[one].from[k] / 2] || member_of[m[one].from[k] / 2]);
        }
        for (unsigned at = placed; at < placed + g.group[i].count; at++) done[g.order[at]] = true;
        placed += g.group[i].count;
        if (g.group[i].count == 1) continue;
        cr_assert_leq(reductions, 1);
        cr_assert_leq(outputs, AD_CHAIN_OUTPUTS);
        cr_assert_leq(scalars, AD_CHAIN_SCALARS);
        cr_assert_leq(inputs_of(m, &g, &g.group[i], member_of), AD_CHAIN_INPUTS);
    }
    for (unsigned i = 0; i < n; i++) {
        cr_assert_eq(done[i], g.needed[i]);
        cr_assert(g.needed[i] || !m[i].wanted[0]);
        for (int k = 0; k < m[i].nin && g.needed[i]; k++) cr_assert(m[i].from[k] == N || g.needed[m[i].from[k] / 2]);
    }
}

Test(groups, random_programs_fit_what_chains_may_hold) {
    for (unsigned seed = 0; seed < 6000; seed++) check_random(seed);
}

Test(groups, a_value_that_another_group_uses_is_kept) {
    /* one long chain, each operation with two views of its own: too many inputs for one group */
    ad_member m[AD_FUSION_OPS];
    ad_groups g;
    for (unsigned i = 0; i < AD_FUSION_OPS; i++)
        m[i] = make_member(i == AD_FUSION_OPS - 1, i ? 2 * (int)i - 2 : N, N, 2 * (int)i);
    ad__groups_form(m, AD_FUSION_OPS, &g);
    cr_assert_gt(g.count, 1);
    for (unsigned i = 0; i + 1 < g.count; i++) {
        const ad_group *one = &g.group[i];
        cr_assert(g.kept[2 * g.order[one->first + one->count - 1]]);
        cr_assert(!g.kept[2 * g.order[one->first]]);
    }
}

/* Operations with a mask are several nodes each, so fewer of them fit. */
Test(groups, chains_have_as_many_nodes) {
    ad_member m[60];
    ad_groups g;
    for (int i = 0; i < 60; i++) {
        m[i] = make_member(i == 59, i ? 2 * (i - 1) : N, N, 0);
        m[i].masked = i % 2;
    }
    ad__groups_form(m, 60, &g);
    cr_assert_eq(g.count, 2);
    cr_assert_eq(g.group[0].count, 43); /* 64 nodes */
    cr_assert_eq(g.group[1].count, 17);
    cr_assert(g.kept[2 * 42] && !g.kept[2 * 41]);
}

Test(groups, chains_have_as_many_random_sources) {
    ad_member m[2 * AD_CHAIN_RANDOMS + 2];
    ad_groups g;
    const int n = 2 * AD_CHAIN_RANDOMS + 2;
    for (int i = 0; i < n; i += 2) { /* a source, and what adds it to the last sum */
        m[i] = (ad_member){.nout = 1, .operands = 1, .random = true, .tie = {N}};
        m[i + 1] = make_member(i + 2 == n, 2 * i, i ? 2 * (i - 1) : N, 0);
    }
    ad__groups_form(m, (unsigned)n, &g);
    cr_assert_eq(g.count, 2);
    cr_assert_eq(g.group[0].count, 2 * AD_CHAIN_RANDOMS);
    cr_assert_eq(g.group[1].count, 2);
}

/* An output's old value is an input of the last nout. */
Test(groups, a_masked_output_needs_what_was_there) {
    ad_member m[2] = {make_member(false, N, N, 0), make_member(true, N, N, 2)};
    m[1].masked = true;
    m[1].nin = 3;
    m[1].from[2] = 0;
    ad_groups g;
    ad__groups_form(m, 2, &g);
    cr_assert_eq(g.count, 1);
    check_group(&g, 0, 2, (uint8_t[]){0, 1});
}

/* ---- groups that are alike ---- */

/* n operations of two views of their own each. */
static void make_equal(ad_member *m, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        m[i] = make_member(true, N, N, (int)(2 * i));
        m[i].kind = 7;
    }
}

Test(groups, what_is_alike_is_taken_by_powers_of_four) {
    ad_member m[AD_FUSION_OPS];
    ad_groups g;
    for (unsigned n = 1; n <= AD_FUSION_OPS; n++) {
        make_equal(m, n);
        ad__groups_form(m, n, &g);
        cr_assert_eq(g.count, n);
        unsigned together = ad__groups_together(m, &g, 0, n);
        cr_assert_eq(together, n < 4 ? 1u : n < 16 ? 4u : 16u, "%u: %u", n, together);
        ad_group all = ad__groups_join(&g, 0, together);
        cr_assert(all.first == 0 && all.count == together && all.last == together - 1);
        cr_assert_eq(ad__groups_together(m, &g, n - 1, n), 1);
    }
}

Test(groups, what_differs_stays_apart) {
    ad_member m[4];
    ad_groups g;
    for (int what = 0; what < 6; what++) {
        make_equal(m, 4);
        if (what == 0) m[2].kind = 8;
        if (what == 1) m[2].kind = m[1].kind = 0;
        if (what == 2) m[3].leaf[1] = N, m[3].scalars = 1;
        if (what == 3) m[1].nin = 1;
        if (what == 4) m[3].from[0] = 4, m[3].leaf[0] = N; /* of the one before */
        if (what == 5) m[3].nout = 2, m[3].wanted[1] = true;
        ad__groups_form(m, 4, &g);
        cr_assert_eq(ad__groups_together(m, &g, 0, 4), 1, "%d", what);
    }
    make_equal(m, 4);
    ad__groups_form(m, 4, &g);
    cr_assert_eq(ad__groups_together(m, &g, 0, 3), 1); /* the last one stays */
}

Test(groups, what_is_alike_fits_a_chain) {
    ad_member m[AD_FUSION_OPS];
    ad_groups g;
    make_equal(m, 16);
    for (int i = 0; i < 16; i++) { /* 16 of 3 views each would be 48 */
        m[i].nin = 3;
        m[i].leaf[2] = (int16_t)(40 + i);
    }
    ad__groups_form(m, 16, &g);
    cr_assert_eq(ad__groups_together(m, &g, 0, 16), 4);
    /* a part of what is connected, which was too long */
    make_equal(m, AD_FUSION_OPS);
    for (int i = 1; i < AD_FUSION_OPS; i++) m[i].from[0] = (int16_t)(2 * (i - 1)), m[i].leaf[0] = N;
    ad__groups_form(m, AD_FUSION_OPS, &g);
    cr_assert_gt(g.count, 1);
    for (unsigned i = 0; i < g.count; i++) cr_assert_eq(ad__groups_together(m, &g, i, AD_FUSION_OPS), 1);
}

/* 0 -> 1, 2 -> 3, ...: the same of the same; where one reads the other operand it is not. */
Test(groups, chains_are_alike_by_what_they_read) {
    ad_member m[8];
    ad_groups g;
    for (int twisted = 0; twisted < 2; twisted++) {
        make_equal(m, 8);
        for (int i = 1; i < 8; i += 2) {
            int k = twisted && i == 5;
            m[i].from[k] = (int16_t)(2 * (i - 1));
            m[i].leaf[k] = N;
            m[i - 1].wanted[0] = false;
        }
        ad__groups_form(m, 8, &g);
        cr_assert_eq(g.count, 4);
        cr_assert_eq(ad__groups_together(m, &g, 0, 8), twisted ? 1u : 4u);
    }
}
