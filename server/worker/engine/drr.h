/* Deficit round robin: whose turn it is, by what each has used. Times are whatever the caller charges, here ns. */
#ifndef AD_SERVER_WORKER_ENGINE_DRR_H
#define AD_SERVER_WORKER_ENGINE_DRR_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ad_drr_node ad_drr_node;
struct ad_drr_node {
    ad_drr_node *next, *prev;
    int64_t credit;
    int64_t quantum; /* what it gets in each round; 0: as the others */
    uint64_t round;  /* in which it left the circle */
    bool queued;
};

typedef struct ad_drr {
    ad_drr_node *head; /* a circle; the head is next */
    int64_t quantum;
    uint64_t round;
} ad_drr;

/* Join. A node takes up what it had left of this round; debts are forgiven at a quantum for each round since it left,
 * and altogether when nobody else is waiting; nothing is saved up. One that has used nothing of its share, or less of
 * it than the one whose turn it would be, is next, so that who asks for little waits for one turn and not for a round;
 * others join at the end. Nothing happens when it is
 * in the circle already. */
void ad__drr_add(ad_drr *d, ad_drr_node *n);
/* Leave. Nothing happens when it is not there. */
void ad__drr_remove(ad_drr *d, ad_drr_node *n);
/* The node whose turn it is, with a credit above 0; NULL: nobody waits. It stays at the head until it is charged. */
ad_drr_node *ad__drr_next(ad_drr *d);
/* In how many rounds a node in the circle may run again; 0: now. */
int64_t ad__drr_debt(const ad_drr *d, const ad_drr_node *n);
/* The node has used so much; when its credit is gone the turn passes on. */
void ad__drr_charge(ad_drr *d, ad_drr_node *n, int64_t used);

#endif
