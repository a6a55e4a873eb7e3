/* A poison: why a buffer has no value. It is the first failure, shared by all buffers that it spread to. */
#ifndef AD_SERVER_WORKER_MEMORY_POISON_H
#define AD_SERVER_WORKER_MEMORY_POISON_H

#include "protocol/base.h"

struct ad_worker_session;

typedef struct ad_poison {
    uint32_t users;
    int code;        /* negative: AD_E_... */
    uint64_t number; /* number of the failed operation; 0: none */
    char name[32];   /* name of the failed operation */
    char text[AD_FAULT_TEXT];
} ad_poison;

/* Create a poison with one user, the caller. Never NULL: without memory it is a static poison that says so. */
ad_poison *ad__poison_new(const ad_fault *fault, uint64_t number, const char *name);
/* Add a user. */
ad_poison *ad__poison_hold(ad_poison *p);
/* Remove a user; NULL is allowed. */
void ad__poison_release(ad_poison *p);
/* Keep a failure that belongs to no buffer, unless the session has an earlier one. */
void ad__session_keep_failure(struct ad_worker_session *s, ad_poison *p);

#endif
