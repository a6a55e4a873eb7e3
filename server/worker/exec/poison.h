/* Why a buffer has no value: the first failure, shared by all buffers that it spread to. */
#ifndef AD_SERVER_WORKER_EXEC_POISON_H
#define AD_SERVER_WORKER_EXEC_POISON_H

#include "protocol/base.h"

typedef struct ad_poison {
    uint32_t users;
    int code;        /* AD_E_*, negative */
    uint64_t number; /* of the operation that failed; 0: none */
    char name[32];   /* of the operation */
    char text[AD_FAULT_TEXT];
} ad_poison;

/* With one user, the caller. Never NULL: when there is no memory, one that says just that. */
ad_poison *ad__poison_new(const ad_fault *fault, uint64_t number, const char *name);
ad_poison *ad__poison_share(ad_poison *p); /* one user more */
void ad__poison_release(ad_poison *p);     /* NULL is allowed */

#endif
