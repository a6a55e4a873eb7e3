/* Accounts: what each principal holds of a device, by use, and how much it may hold.
 *
 * Everything that takes memory of a device, or pins memory for it, is charged to the account of one principal on
 * that device. A block knows the account that it is charged to. Slabs are counted separately, because slabs are what
 * the device itself can run out of.
 *
 * Runner: all functions here. */
#ifndef AD_SERVER_WORKER_MEMORY_ACCOUNT_H
#define AD_SERVER_WORKER_MEMORY_ACCOUNT_H

#include "server/common/grants.h"

typedef enum ad_use {
    AD_USE_BUFFER,
    AD_USE_WORKSPACE, /* for operations until they are enqueued, and for arrays on their way to clients */
    AD_USE_WINDOW,    /* host memory that is pinned for the device */
    AD_USE_VARIABLE,  /* variables of modules that buffers refer to */
    AD_USE_IMPORT,    /* memory of clients that buffers refer to */
    AD_USE_MOVED,     /* buffers in host memory, which must be able to come back to the device */
    AD_USES
} ad_use;

typedef struct ad_account ad_account;
struct ad_account {
    ad_account *next, **list;
    char principal[64];
    uint64_t users; /* stream arenas, slabs and windows that use the account */
    uint64_t used[AD_USES], total;
    uint64_t slab_bytes; /* bytes in slabs of this principal, with what is free in them */
    uint64_t most;       /* limit of total; 0: the device's is the only one */
    uint64_t reserve;    /* bytes of the device, in slabs, that nobody else gets */
    bool sees_others;    /* the principal may be told by name who else holds what */
};

/* Find or make the account of a principal, and count one user more. NULL: no host memory. */
ad_account *ad__account_open(ad_account **list, const char *principal);
ad_account *ad__account_find(ad_account *list, const char *principal); /* Find an account. NULL: there is none. */
void ad__account_close(ad_account *a);
/* Set the limits that the principal's latest session was granted. */
void ad__account_grant(ad_account *a, const ad_grants *g);
/* Reserve so many bytes for a principal. False: no host memory. */
bool ad__account_reserve(ad_account **list, const char *principal, uint64_t bytes);
void ad__accounts_unreserve(ad_account **list); /* Cancel all reserves. */

/* Tell whether the account has room for `size` more bytes. */
bool ad__account_has_room(const ad_account *a, uint64_t size);
/* Check that the account has room for `size` more bytes. AD_E_MEMORY: the fault names the limit, and what is used
 * for what. */
int ad__account_check(const ad_account *a, uint64_t size, ad_fault *fault);
/* Fill the same fault without a check. Returns AD_E_MEMORY. */
int ad__account_refuse(const ad_account *a, uint64_t size, ad_fault *fault);
void ad__account_charge(ad_account *a, ad_use use, uint64_t size);
void ad__account_return(ad_account *a, ad_use use, uint64_t size);
/* Return the bytes of slabs that the account may have, where all slabs together may have `limit`. Others have taken
 * the rest, or it is reserved for them. */
uint64_t ad__account_room(const ad_account *a, uint64_t limit);
/* Return the most bytes of slabs that the account can ever have: all but what is reserved for others. */
uint64_t ad__account_most(const ad_account *a, uint64_t limit);
/* Fill a fault for a full device, which says who holds what. limit 0: the device itself has no more. Returns
 * AD_E_MEMORY. */
int ad__account_full(const ad_account *a, uint64_t size, uint64_t limit, ad_fault *fault);

/* Write a number of bytes as people read it: "1.5 GiB". */
void ad__bytes_text(uint64_t n, char out[16]);

#define AD_USES_TEXT 128
/* Write what is used for what: "4.0 MiB in buffers, 2.0 MiB in windows". Nothing used: "nothing". */
void ad__uses_text(const uint64_t used[AD_USES], char out[AD_USES_TEXT]);

#endif
