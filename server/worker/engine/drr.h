/* Deficit round robin: each node in a circle gets a quantum per round and is charged for what it uses. Times are
 * whatever the caller charges, here ns. */
#ifndef AD_SERVER_WORKER_ENGINE_DRR_H
#define AD_SERVER_WORKER_ENGINE_DRR_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ad_drr_node ad_drr_node;
struct ad_drr_node {
    ad_drr_node *next, *prev;
    int64_t credit;
    int64_t quantum; /* credit per round; 0: ad_drr.quantum */
    uint64_t round;  /* the round in which the node left the circle */
    bool queued;
};

typedef struct ad_drr {
    ad_drr_node *head; /* a circle; the head has the next turn */
    int64_t quantum;
    uint64_t round;
} ad_drr;

/* Add a node to the circle; no effect on a member. The node keeps what it had left of this round. Its debt shrinks by a
 * quantum per round since it left, and is forgiven when the circle is empty; unused credit is not saved up. A node with
 * a full quantum, or with more left than the head, becomes the head. So light users wait for one turn and not for a
 * round. Other nodes join at the end. */
void ad__drr_add(ad_drr *d, ad_drr_node *n);
/* Remove a node from the circle; no effect on a node outside it. */
void ad__drr_remove(ad_drr *d, ad_drr_node *n);
/* Get the node with the turn, whose credit is above 0; NULL: the circle is empty. The node stays the head until it is
 * charged. */
ad_drr_node *ad__drr_next(ad_drr *d);
/* Count the rounds until a node in the circle may run again; 0: now. */
int64_t ad__drr_debt(const ad_drr *d, const ad_drr_node *n);
/* Charge a node for `used`. When its credit is used up, the turn passes on. */
void ad__drr_charge(ad_drr *d, ad_drr_node *n, int64_t used);

#endif
