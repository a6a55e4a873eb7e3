#include "server/worker/drr.h"

#include <stddef.h>

/* What it has left of this round, or, after that, of what it was in debt. */
static int64_t credit_now(const ad_drr *d, const ad_drr_node *n) {
    uint64_t rounds = d->round - n->round;
    int64_t missing = d->quantum - n->credit;
    if (!d->head || rounds > (uint64_t)(missing / d->quantum)) return d->quantum;
    int64_t credit = n->credit + (int64_t)rounds * d->quantum;
    return credit < d->quantum ? credit : d->quantum;
}

void ad__drr_add(ad_drr *d, ad_drr_node *n) {
    if (n->queued) return;
    n->queued = true;
    n->credit = credit_now(d, n);
    if (!d->head) {
        n->next = n->prev = d->head = n;
        return;
    }
    n->next = d->head;
    n->prev = d->head->prev;
    n->prev->next = n->next->prev = n;
    if (n->credit == d->quantum) d->head = n;
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

/* Pass over as many rounds as it takes until somebody may run, at once. */
static void skip_rounds(ad_drr *d) {
    int64_t best = d->head->credit;
    for (ad_drr_node *n = d->head->next; n != d->head; n = n->next)
        if (n->credit > best) best = n->credit;
    if (best > 0) return;
    int64_t rounds = -best / d->quantum + 1;
    ad_drr_node *n = d->head;
    do n->credit += rounds * d->quantum;
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
