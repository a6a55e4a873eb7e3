/* What each principal holds of a device, by what it is for, and how much it may hold.
 *
 * Everything that takes memory of a device, or pins memory for it, is charged to the account of one principal on that
 * device: the block that was cut from a slab knows to whose. Slabs are charged apart from that, as they are what the
 * device itself can run out of. Only whoever runs the engine calls these. */
#ifndef AD_SERVER_WORKER_MEMORY_ACCOUNT_H
#define AD_SERVER_WORKER_MEMORY_ACCOUNT_H

#include "server/common/grants.h"

typedef enum ad_use {
    AD_USE_BUFFER,
    AD_USE_WORKSPACE, /* while an operation is enqueued, or an array on its way to a client */
    AD_USE_WINDOW,    /* host memory that is pinned for the device */
    AD_USE_VARIABLE,  /* of a module, where a buffer means it */
    AD_USE_IMPORT,    /* memory of a client, where a buffer means it */
    AD_USE_MOVED,     /* buffers that lie in host memory until they are used, and must be able to come back */
    AD_USES
} ad_use;

typedef struct ad_account ad_account;
struct ad_account {
    ad_account *next, **list;
    char principal[64];
    uint64_t users; /* arenas, slabs, windows: it stays while there are any, or something is charged or reserved */
    uint64_t used[AD_USES], total;
    uint64_t slab_bytes; /* in slabs of this principal, what is free in them as well */
    uint64_t most;       /* that total may be; 0: what the device has */
    uint64_t reserve;    /* of the device, in slabs, that nobody else gets */
    bool sees_others;    /* is told by name who else holds what */
};

/* The one of a principal, made when there is none; it has one user more. NULL: no host memory. */
ad_account *ad__account_open(ad_account **list, const char *principal);
ad_account *ad__account_find(ad_account *list, const char *principal); /* NULL: there is none */
void ad__account_close(ad_account *a);
/* What the principal's latest session may. */
void ad__account_grant(ad_account *a, const ad_grants *g);
/* Reserve so much for a principal; false: no host memory. */
bool ad__account_reserve(ad_account **list, const char *principal, uint64_t bytes);
void ad__accounts_unreserve(ad_account **list); /* nothing for anybody */

/* Is there room for so much more? AD_E_MEMORY: the fault names the limit, and what is used for what. */
int ad__account_check(const ad_account *a, uint64_t size, ad_fault *fault);
void ad__account_charge(ad_account *a, ad_use use, uint64_t size);
void ad__account_return(ad_account *a, ad_use use, uint64_t size);
/* Bytes of slabs that the account may have, when all slabs together may have limit: the rest has been taken by others
 * or is reserved for them. */
uint64_t ad__account_room(const ad_account *a, uint64_t limit);
/* The most that can ever be: all but what is reserved for others. */
uint64_t ad__account_most(const ad_account *a, uint64_t limit);
/* The device is full: say who holds what. limit 0: it is the device itself that has no more. Returns AD_E_MEMORY. */
int ad__account_full(const ad_account *a, uint64_t size, uint64_t limit, ad_fault *fault);

/* Bytes as people read them: "1.5 GiB". */
void ad__bytes_text(uint64_t n, char out[16]);

#define AD_USES_TEXT 128
/* "4.0 MiB in buffers, 2.0 MiB in windows"; nothing used: "nothing". */
void ad__uses_text(const uint64_t used[AD_USES], char out[AD_USES_TEXT]);

#endif
