/* Turns of principals, and of the sessions of one. */
#include <criterion/criterion.h>

#include "server/worker/engine/turns.h"
#include "tests/unit/random.h"

#define QUANTUM 100

static ad_shares make_shares(void) { return (ad_shares){.parties.quantum = QUANTUM}; }

static void open_share(ad_shares *all, ad_share *s, const char *principal, int64_t quantum) {
    cr_assert_eq(ad__share_open(all, s, principal, quantum), 0);
}

/* Serve until `total` has been used, by pieces of `cost` for all; what each has used. */
static void serve_share(ad_shares *all, ad_share *s, const int64_t *cost, int64_t total, int64_t *used) {
    for (int64_t spent = 0; spent < total;) {
        ad_share *next = ad__share_next(all);
        cr_assert_not_null(next);
        ptrdiff_t i = next - s;
        ad__share_charge(all, next, cost[i]);
        used[i] += cost[i];
        spent += cost[i];
    }
}

static void close_all(ad_shares *all, ad_share *s, int count) {
    for (int i = 0; i < count; i++) ad__share_close(all, &s[i]);
    cr_assert_null(all->first);
    cr_assert_not(ad__share_wanted(all));
}

Test(shares, many_sessions_are_one_share) {
    ad_shares all = make_shares();
    ad_share s[66] = {0};
    int64_t cost[66], used[66] = {0}, many = 0;
    for (int i = 0; i < 66; i++) {
        open_share(&all, &s[i], i < 64 ? "many" : i == 64 ? "one" : "another", QUANTUM);
        ad__share_add(&all, &s[i]);
        cost[i] = i == 64 ? 3 : 10 + 37 * i;
    }
    serve_share(&all, s, cost, 12000000, used);
    for (int i = 0; i < 64; i++) {
        many += used[i];
        cr_assert(used[i] > 4000000 / 64 * 0.9 && used[i] < 4000000 / 64 * 1.1, "session %d: %ld", i, (long)used[i]);
    }
    cr_assert(many > 3900000 && many < 4100000, "%ld", (long)many);
    cr_assert(used[64] > 3900000 && used[64] < 4100000, "%ld", (long)used[64]);
    close_all(&all, s, 66);
}

Test(shares, who_has_used_little_ends_a_stay) {
    ad_shares all = make_shares();
    ad_share s[4] = {0};
    static const int64_t used[3] = {5 * QUANTUM, 9 * QUANTUM, 50 * QUANTUM};
    static const char *const who[4] = {"a", "b", "much", "nothing"};
    static const int modest[3] = {0, 1, 3};
    for (int i = 0; i < 4; i++) open_share(&all, &s[i], who[i], QUANTUM);
    for (int i = 0; i < 3; i++) ad__share_add(&all, &s[i]);
    for (int i = 0; i < 3; i++) {
        ad_share *next = ad__share_next(&all);
        ad__share_charge(&all, next, used[next - s]);
    }
    for (int i = 0; i < 3; i++) {
        ad__share_remove(&all, &s[modest[i]]);
        all.staying = &s[2];
        ad__share_add(&all, &s[modest[i]]);
        cr_assert_null(all.staying, "%s", who[modest[i]]);
    }
    ad__share_remove(&all, &s[2]);
    all.staying = &s[0];
    ad__share_add(&all, &s[2]);
    cr_assert_eq(all.staying, &s[0]);
    ad__share_remove(&all, &s[0]);
    cr_assert_null(all.staying);
    close_all(&all, s, 4);
}

Test(shares, priorities_are_those_of_principals) {
    ad_shares all = make_shares();
    ad_share s[5] = {0};
    static const int64_t cost[5] = {30, 1000, 7, 40, 300};
    int64_t used[5] = {0};
    open_share(&all, &s[0], "high", 4 * QUANTUM);
    for (int i = 1; i < 4; i++) open_share(&all, &s[i], "usual", QUANTUM);
    open_share(&all, &s[4], "low", QUANTUM / 4);
    for (int i = 0; i < 5; i++) ad__share_add(&all, &s[i]);
    serve_share(&all, s, cost, 2100000, used);
    int64_t usual = used[1] + used[2] + used[3];
    cr_assert(used[0] > 1520000 && used[0] < 1680000, "%ld", (long)used[0]);
    cr_assert(usual > 380000 && usual < 420000, "%ld", (long)usual);
    cr_assert(used[4] > 95000 && used[4] < 105000, "%ld", (long)used[4]);
    for (int i = 1; i < 4; i++) cr_assert(used[i] > usual / 3 * 0.9 && used[i] < usual / 3 * 1.1);
    close_all(&all, s, 5);
}

Test(shares, who_asks_for_little_is_next_whatever_others_have_queued) {
    ad_shares all = make_shares();
    ad_share s[10] = {0};
    for (int i = 0; i < 8; i++) open_share(&all, &s[i], "many", QUANTUM);
    open_share(&all, &s[8], "one", QUANTUM);
    open_share(&all, &s[9], "many", QUANTUM); /* the last share has little to do */
    for (int i = 0; i < 8; i++) ad__share_add(&all, &s[i]);
    for (int k = 0; k < 200; k++) {
        ad_share *little = &s[8 + k % 2];
        for (int i = 0; i < 20; i++) ad__share_charge(&all, ad__share_next(&all), 70 * QUANTUM);
        ad__share_add(&all, little);
        cr_assert_eq(ad__share_next(&all), little);
        ad__share_charge(&all, little, QUANTUM / 10);
        ad__share_remove(&all, little);
    }
    cr_assert_eq(s[8].turns, 100);
    cr_assert_eq(s[8].waited, 0);
    close_all(&all, s, 10);
}

Test(shares, turns_of_others_are_counted_while_one_waits) {
    ad_shares all = make_shares();
    ad_share n[3] = {0};
    for (int i = 0; i < 3; i++) open_share(&all, &n[i], i ? "a" : "b", QUANTUM);
    ad__share_add(&all, &n[0]);
    ad__share_add(&all, &n[1]);
    for (int i = 0; i < 100; i++) ad__share_charge(&all, ad__share_next(&all), QUANTUM);
    ad_share *running = ad__share_next(&all);
    ad__share_add(&all, &n[2]); /* while one has its turn */
    ad__share_charge(&all, running, QUANTUM);
    ad_share *next, *last = running;
    uint64_t passed = 0;
    for (; (next = ad__share_next(&all)) != &n[2]; last = next) {
        passed += next != last;
        ad__share_charge(&all, next, QUANTUM);
    }
    cr_assert_leq(passed, 2);
    cr_assert_eq(n[2].waited, passed);
    for (int i = 0; i < 9; i++) ad__share_charge(&all, ad__share_next(&all), QUANTUM);
    cr_assert_eq(n[0].turns + n[1].turns + n[2].turns, all.turns);
    close_all(&all, n, 3);
}

Test(shares, random_coming_and_going_leaves_nothing_behind) {
    enum { N = 40 };
    static const char *const names[] = {"a", "b", "c", "d"};
    ad_shares all = make_shares();
    ad_share s[N] = {0};
    bool wants[N] = {false};
    uint64_t seed = 5;
    for (int step = 0; step < 200000; step++) {
        unsigned i = (unsigned)(random64(&seed) % N), what = (unsigned)(random64(&seed) % 8);
        if (!s[i].party) {
            open_share(&all, &s[i], names[random64(&seed) % 4], QUANTUM << 2 * (random64(&seed) % 3));
        } else if (what == 0) {
            ad__share_close(&all, &s[i]);
            s[i] = (ad_share){0};
            wants[i] = false;
        } else if (what < 3) {
            ad__share_remove(&all, &s[i]);
            wants[i] = false;
        } else if (what < 5) {
            ad__share_add(&all, &s[i]);
            wants[i] = true;
        }
        ad_share *next = ad__share_next(&all);
        int waiting = 0;
        for (int k = 0; k < N; k++) waiting += wants[k];
        cr_assert_eq(next != NULL, waiting > 0);
        if (!next) continue;
        cr_assert(wants[next - s]);
        ad__share_charge(&all, next, (int64_t)(random64(&seed) % (20 * QUANTUM)));
    }
    close_all(&all, s, N);
}
