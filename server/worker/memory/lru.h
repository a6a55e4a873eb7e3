/* Lists of the buffers of a device that can be moved away, by owner and by last use.
 *
 *     ad_spill_list ──▶ ad_spill_owner ──▶ ad_spill_owner ──▶ ...
 *                         │      │
 *                     warmest  coldest
 *                         ▼      ▼
 *                         b ⇄ b ⇄ b        b: ad_buffer, by `colder` and `warmer`
 *
 * These functions keep lists only, and move nothing. A buffer is in one list at most; while an operation uses it, it
 * is in none.
 *
 * Runner: all functions here. */
#ifndef AD_SERVER_WORKER_MEMORY_LRU_H
#define AD_SERVER_WORKER_MEMORY_LRU_H

#include "server/worker/memory/account.h"

struct ad_buffer;

typedef struct ad_spill_owner ad_spill_owner;

/* The lists of one device. */
typedef struct ad_spill_list {
    ad_spill_owner *owners;
    uint64_t bytes; /* bytes of all listed buffers */
    uint64_t clock; /* number of uses so far */
} ad_spill_list;

/* The listed buffers of one account. */
struct ad_spill_owner {
    ad_spill_owner *next;
    ad_spill_list *list;
    unsigned users; /* number of stream queues that use the owner */
    struct ad_buffer *coldest, *warmest;
    uint64_t bytes;
    const ad_account *account;
};

/* Find or make the owner of an account, and count one user more. The account lives as long as its owner. NULL: no
 * memory. */
ad_spill_owner *ad__spill_owner_open(ad_spill_list *list, const ad_account *account);
/* End one use of an owner, through which nothing is listed any more. NULL is allowed. */
void ad__spill_owner_close(ad_spill_owner *owner);
/* List a buffer, which has memory and is not listed, as its owner's warmest. */
void ad__spill_add(ad_spill_owner *owner, struct ad_buffer *b);
/* Unlist a buffer, if it is listed. */
void ad__spill_remove(struct ad_buffer *b);
/* Choose the buffer that must leave first. Where an owner is above an equal share of `limit` bytes: the coldest of
 * the one that is furthest above. Otherwise: the coldest of all. Buffers within the reserve of another owner than
 * `mine` (NULL: none) stay. NULL: no buffer can leave. */
struct ad_buffer *ad__spill_coldest(const ad_spill_list *list, uint64_t limit, const ad_spill_owner *mine);

#endif
