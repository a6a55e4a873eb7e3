#include "server/worker/engine/drr.h"

#include <stddef.h>

static int64_t get_quantum(const ad_drr *d, const ad_drr_node *n) { return n->quantum ? n->quantum : d->quantum; }

/* Compute a node's credit after its absence: its rest of this round, or its debt less one quantum for each round
 * missed. */
static int64_t compute_credit(const ad_drr *d, const ad_drr_node *n) {
    uint64_t rounds = d->round - n->round;
    int64_t quantum = get_quantum(d, n), missing = quantum - n->credit;
    if (!d->head || rounds > (uint64_t)(missing / quantum)) return quantum;
    int64_t credit = n->credit + (int64_t)rounds * quantum;
    return credit < quantum ? credit : quantum;
}

/* Compute the part of its quantum that a node has left. */
static double compute_left_part(const ad_drr *d, const ad_drr_node *n) {
    return (double)n->credit / (double)get_quantum(d, n);
}

void ad__drr_add(ad_drr *d, ad_drr_node *n) {
    if (n->queued) return;
    n->queued = true;
    n->credit = compute_credit(d, n);
    if (!d->head) {
        n->next = n->prev = d->head = n;
        return;
    }
    n->next = d->head;
    n->prev = d->head->prev;
    n->prev->next = n->next->prev = n;
    if (n->credit == get_quantum(d, n) || compute_left_part(d, n) > compute_left_part(d, n->next)) d->head = n;
}

void ad__drr_remove(ad_drr *d, ad_drr_node *n) {
    if (!n->queued) return;
    n->queued = false;
    n->round = d->round;
    if (n->next == n) {
        d->head = NULL;
        return;
    }
    if (d->head == n) d->head = n->next;
    n->next->prev = n->prev;
    n->prev->next = n->next;
}

int64_t ad__drr_debt(const ad_drr *d, const ad_drr_node *n) {
    return n->credit > 0 ? 0 : -n->credit / get_quantum(d, n) + 1;
}

/* Skip all rounds in which no node could run, at once. */
static void skip_rounds(ad_drr *d) {
    int64_t rounds = INT64_MAX;
    ad_drr_node *n = d->head;
    do {
        int64_t its = ad__drr_debt(d, n);
        if (its < rounds) rounds = its;
    } while ((n = n->next) != d->head);
    if (!rounds) return;
    do n->credit += rounds * get_quantum(d, n);
    while ((n = n->next) != d->head);
    d->round += (uint64_t)rounds;
}

ad_drr_node *ad__drr_next(ad_drr *d) {
    if (!d->head) return NULL;
    if (d->head->credit > 0) return d->head;
    skip_rounds(d);
    while (d->head->credit <= 0) d->head = d->head->next;
    return d->head;
}

void ad__drr_charge(ad_drr *d, ad_drr_node *n, int64_t used) {
    n->credit -= used;
    if (n->credit <= 0 && d->head == n) d->head = n->next;
}
