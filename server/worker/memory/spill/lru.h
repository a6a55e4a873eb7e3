/* The buffers of a device that could be moved away, by principal and by when they were last used.
 *
 * Bookkeeping only: nothing here knows what moving is. A buffer is in at most one list; while an operation uses it, it
 * is in none. Only whoever runs the engine calls these. */
#ifndef AD_SERVER_WORKER_MEMORY_SPILL_LRU_H
#define AD_SERVER_WORKER_MEMORY_SPILL_LRU_H

#include "server/worker/memory/account.h"

struct ad_buffer;

typedef struct ad_spill_owner ad_spill_owner;

/* Of one device. */
typedef struct ad_spill_list {
    ad_spill_owner *owners;
    uint64_t bytes; /* of all that is listed */
    uint64_t clock; /* counts uses */
} ad_spill_list;

/* What a principal has on it. */
struct ad_spill_owner {
    ad_spill_owner *next;
    ad_spill_list *list;
    unsigned users; /* stream queues */
    struct ad_buffer *coldest, *warmest;
    uint64_t bytes;
    const ad_account *account;
};

/* Of the owner of an account, which stays as long as it has users here. One user more; NULL: no memory. */
ad_spill_owner *ad__spill_owner_open(ad_spill_list *list, const ad_account *account);
/* Nothing is listed by way of this user any more. NULL is allowed. */
void ad__spill_owner_close(ad_spill_owner *owner);
/* The buffer, which has memory and is not listed, is the one of its owner that was used last. */
void ad__spill_add(ad_spill_owner *owner, struct ad_buffer *b);
/* Unlist it, if it is listed. */
void ad__spill_remove(struct ad_buffer *b);
/* Which is to go first: the one that has not been used for longest, of the principal that is furthest above an equal
 * share of `limit` bytes; of all where nobody is. What somebody else than `mine` (NULL: nobody) has reserved stays.
 * NULL: none is listed. */
struct ad_buffer *ad__spill_coldest(const ad_spill_list *list, uint64_t limit, const ad_spill_owner *mine);

#endif
