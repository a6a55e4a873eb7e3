/* Whose turn it is: principals take turns by what each has used, and of one its sessions do. So a principal with many
 * sessions has no more than one with few. All under the engine's lock. */
#ifndef AD_SERVER_WORKER_ENGINE_TURNS_H
#define AD_SERVER_WORKER_ENGINE_TURNS_H

#include "server/common/channel.h"
#include "server/worker/engine/drr.h"

/* A principal that has sessions. */
typedef struct ad_party ad_party;
struct ad_party {
    ad_party *next, **link;
    ad_drr_node node;
    ad_drr sessions;
    unsigned members;
    unsigned in_background;     /* sessions of it whose operation is in the background (background.h) */
    uint64_t operations, bytes; /* that its sessions have sent and that have not begun to be executed */
    char principal[AD_PRINCIPAL_SIZE];
};

/* A session's. */
typedef struct ad_share {
    ad_drr_node node;
    ad_party *party;
    uint64_t operations, bytes; /* its part of the party's */
    /* How long it has waited, in turns of others, when it was not in debt; what one has without a break is one turn. */
    bool waiting;
    uint64_t joined, turns, waited; /* when, how many it has had, and the most it has waited for one after joining */
} ad_share;

typedef struct ad_shares {
    ad_drr parties;
    ad_party *first;
    uint64_t turns;
    ad_share *staying;    /* has turns on end, until somebody comes who has used little; NULL: nobody */
    const ad_share *last; /* whose turn it was; never looked into */
} ad_shares;

/* A session of a principal comes; quantum: what its principal gets in each round from now on. AD_E_MEMORY. */
int ad__share_open(ad_shares *all, ad_share *s, const char *principal, int64_t quantum);
/* It has gone. Nothing happens when it was never opened. */
void ad__share_close(ad_shares *all, ad_share *s);
/* It wants turns, or none any more; either may be so already. */
void ad__share_add(ad_shares *all, ad_share *s);
void ad__share_remove(ad_shares *all, ad_share *s);
/* Somebody wants a turn. */
static inline bool ad__share_wanted(const ad_shares *all) { return all->parties.head; }
/* Whose turn it is; NULL: nobody wants one. It stays so until it is charged. */
ad_share *ad__share_next(ad_shares *all);
/* So much of the session waits to be executed now. */
void ad__share_set_waiting(ad_share *s, uint64_t operations, uint64_t bytes);
/* The session has used so much. */
void ad__share_charge(ad_shares *all, ad_share *s, int64_t used);

#endif
