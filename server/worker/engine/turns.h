/* Turns of sessions. Principals take turns by what each has used, and the sessions of a principal likewise:
 *
 *     circle of principals   A ──▶ B ──▶ C ──▶ ...
 *                            │     │
 *     circles of sessions    1─▶2  3
 *
 * So a principal with many sessions gets no more than one with few. The engine's lock guards everything here. */
#ifndef AD_SERVER_WORKER_ENGINE_TURNS_H
#define AD_SERVER_WORKER_ENGINE_TURNS_H

#include "server/common/channel.h"
#include "server/worker/engine/drr.h"

/* A principal with sessions here, freed with its last session. */
typedef struct ad_party ad_party;
struct ad_party {
    ad_party *next, **link;
    ad_drr_node node;
    ad_drr sessions;
    unsigned members;
    unsigned in_background;     /* its sessions with a background operation (background.h) */
    uint64_t operations, bytes; /* work that its sessions have queued and that has not been executed */
    char principal[AD_PRINCIPAL_SIZE];
};

/* A session's place among the turns. */
typedef struct ad_share {
    ad_drr_node node;
    ad_party *party;
    uint64_t operations, bytes; /* its part of the party's sums */
    /* Waiting time of a session without debt, counted in turns of others. Turns on end count as one. */
    bool waiting;
    uint64_t joined, turns, waited; /* joined: when (in turns); turns: its own so far; waited: the longest wait */
} ad_share;

typedef struct ad_shares {
    ad_drr parties;
    ad_party *first;
    uint64_t turns;
    ad_share *staying;    /* session with turns on end; NULL: none */
    const ad_share *last; /* session of the latest turn; compared, never dereferenced */
} ad_shares;

/* Add a session to its principal. quantum: the principal's credit per round from now on. AD_E_MEMORY. */
int ad__share_open(ad_shares *all, ad_share *s, const char *principal, int64_t quantum);
/* Remove a session from its principal; no effect on one that was never added. */
void ad__share_close(ad_shares *all, ad_share *s);
/* Let a session want turns, or no more turns; no effect when it already does so. */
void ad__share_add(ad_shares *all, ad_share *s);
void ad__share_remove(ad_shares *all, ad_share *s);
/* Tell whether any session wants a turn. */
static inline bool ad__share_wanted(const ad_shares *all) { return all->parties.head; }
/* Get the session with the turn; NULL: no session wants one. It keeps the turn until it is charged. */
ad_share *ad__share_next(ad_shares *all);
/* Set how much of a session waits to be executed. */
void ad__share_set_waiting(ad_share *s, uint64_t operations, uint64_t bytes);
/* Charge a session and its principal for `used` ns. */
void ad__share_charge(ad_shares *all, ad_share *s, int64_t used);

#endif
