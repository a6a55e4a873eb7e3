/* Deficit round robin: shares under load, and what debts are worth. */
#include <criterion/criterion.h>

#include "server/worker/engine/drr.h"

#define QUANTUM 100

/* Serve until `total` has been used; cost says what one piece of work of node i takes. */
static void serve_flow(ad_drr *d, ad_drr_node *n, int count, const int64_t *cost, int64_t total, int64_t *used) {
    for (int i = 0; i < count; i++) used[i] = 0;
    for (int64_t spent = 0; spent < total;) {
        ad_drr_node *next = ad__drr_next(d);
        int i = (int)(next - n);
        cr_assert(i >= 0 && i < count);
        cr_assert_gt(next->credit, 0);
        ad__drr_charge(d, next, cost[i]);
        used[i] += cost[i];
        spent += cost[i];
    }
}

Test(drr, everybody_gets_the_same_time_whatever_a_piece_costs) {
    ad_drr d = {.quantum = QUANTUM};
    ad_drr_node n[8] = {0};
    static const int64_t cost[8] = {1, 3, 10, 30, 100, 300, 1000, 3000};
    int64_t used[8];
    for (int i = 0; i < 8; i++) ad__drr_add(&d, &n[i]);
    serve_flow(&d, n, 8, cost, 800000, used);
    for (int i = 0; i < 8; i++) cr_assert(used[i] > 95000 && used[i] < 105000, "node %d: %ld", i, (long)used[i]);
}

Test(drr, order_is_a_round) {
    ad_drr d = {.quantum = QUANTUM};
    ad_drr_node n[3] = {0};
    for (int i = 0; i < 3; i++) ad__drr_add(&d, &n[i]);
    ad_drr_node *order[3];
    for (int turn = 0; turn < 30; turn++) {
        ad_drr_node *next = ad__drr_next(&d);
        if (turn < 3) order[turn] = next;
        cr_assert_eq(next, order[turn % 3]);
        ad__drr_charge(&d, next, QUANTUM);
    }
    cr_assert(order[0] != order[1] && order[1] != order[2] && order[2] != order[0]);
}

Test(drr, a_node_that_comes_and_goes_does_not_lose_its_debt) {
    ad_drr d = {.quantum = QUANTUM};
    ad_drr_node n[2] = {0};
    int64_t used[2] = {0};
    ad__drr_add(&d, &n[0]);
    for (int step = 0; step < 100000; step++) {
        ad__drr_add(&d, &n[1]); /* one long piece at a time, then away and back */
        int i = (int)(ad__drr_next(&d) - n);
        int64_t cost = i ? 5000 : 10;
        ad__drr_charge(&d, &n[i], cost);
        used[i] += cost;
        if (i) ad__drr_remove(&d, &n[1]);
    }
    double share = (double)used[1] / (double)(used[0] + used[1]);
    cr_assert(share > 0.45 && share < 0.55, "%g", share);
}

Test(drr, alone_nobody_waits) {
    ad_drr d = {.quantum = QUANTUM};
    ad_drr_node n = {0};
    cr_assert_null(ad__drr_next(&d));
    ad__drr_add(&d, &n);
    ad__drr_add(&d, &n);
    cr_assert_eq(ad__drr_next(&d), &n);
    ad__drr_charge(&d, &n, 1000000000);
    cr_assert_eq(ad__drr_next(&d), &n);
    cr_assert_gt(n.credit, 0);
    ad__drr_remove(&d, &n);
    ad__drr_remove(&d, &n);
    cr_assert_null(ad__drr_next(&d));
}

Test(drr, who_asks_for_little_is_next) {
    ad_drr d = {.quantum = QUANTUM};
    ad_drr_node n[5] = {0};
    for (int i = 0; i < 4; i++) ad__drr_add(&d, &n[i]);
    for (int i = 0; i < 100; i++) {
        for (int k = 0; k < 8; k++) ad__drr_charge(&d, ad__drr_next(&d), QUANTUM);
        ad__drr_add(&d, &n[4]);
        cr_assert_eq(ad__drr_next(&d), &n[4]);
        ad__drr_charge(&d, &n[4], QUANTUM / 10);
        ad__drr_remove(&d, &n[4]);
    }
}

Test(drr, coming_and_going_gives_no_more_than_a_share) {
    ad_drr d = {.quantum = QUANTUM};
    ad_drr_node n[4] = {0};
    int64_t used[4] = {0}, total = 0;
    for (int i = 0; i < 3; i++) ad__drr_add(&d, &n[i]);
    for (int step = 0; step < 100000; step++) {
        ad__drr_add(&d, &n[3]); /* a little less than a quantum at a time, and back at once */
        int i = (int)(ad__drr_next(&d) - n);
        int64_t cost = i == 3 ? QUANTUM - 1 : 10;
        ad__drr_charge(&d, &n[i], cost);
        used[i] += cost;
        total += cost;
        if (i == 3) ad__drr_remove(&d, &n[3]);
    }
    double share = (double)used[3] / (double)total;
    cr_assert(share > 0.2 && share < 0.3, "%g", share);
}

Test(drr, a_larger_quantum_is_a_larger_share) {
    ad_drr d = {.quantum = QUANTUM};
    ad_drr_node n[4] = {{.quantum = 4 * QUANTUM}, {0}, {0}, {.quantum = QUANTUM / 4}};
    static const int64_t cost[4] = {30, 3000, 7, 300}, share[4] = {4 * 640, 640, 640, 160};
    int64_t used[4];
    for (int i = 0; i < 4; i++) ad__drr_add(&d, &n[i]);
    serve_flow(&d, n, 4, cost, 2000000, used);
    for (int i = 0; i < 4; i++)
        cr_assert(used[i] > share[i] * 475 && used[i] < share[i] * 525, "node %d: %ld", i, (long)used[i]);
}

Test(drr, who_has_used_less_than_the_next_one_comes_first) {
    ad_drr d = {.quantum = QUANTUM};
    ad_drr_node n[3] = {0};
    for (int i = 0; i < 3; i++) ad__drr_add(&d, &n[i]);
    ad__drr_charge(&d, ad__drr_next(&d), QUANTUM / 10);
    ad__drr_remove(&d, &n[0]);
    ad__drr_charge(&d, ad__drr_next(&d), QUANTUM / 2);
    cr_assert_eq(ad__drr_next(&d), &n[1], "it has something left");
    ad__drr_add(&d, &n[0]);
    cr_assert_eq(ad__drr_next(&d), &n[0]);
    ad__drr_charge(&d, &n[0], QUANTUM * 6 / 10);
    ad__drr_remove(&d, &n[0]);
    ad__drr_add(&d, &n[0]); /* the first one has used more now */
    cr_assert_eq(ad__drr_next(&d), &n[1]);
}

Test(drr, who_leaves_saves_nothing_up) {
    ad_drr d = {.quantum = QUANTUM};
    ad_drr_node n[2] = {0};
    ad__drr_add(&d, &n[0]);
    for (int i = 0; i < 1000; i++) {
        ad__drr_add(&d, &n[1]);
        if (ad__drr_next(&d) == &n[1]) ad__drr_remove(&d, &n[1]);
        else ad__drr_charge(&d, &n[0], QUANTUM);
    }
    ad__drr_add(&d, &n[1]);
    cr_assert_leq(n[1].credit, QUANTUM);
}
