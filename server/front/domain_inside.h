/* What a trust domain is, for those parts of the front that run its worker: domain.c, domain_end.c. */
#ifndef AD_SERVER_FRONT_DOMAIN_INSIDE_H
#define AD_SERVER_FRONT_DOMAIN_INSIDE_H

#include "server/front/front.h"

struct ad_domain {
    ad_domain *next;
    ad_front *front;
    char name[AD_PRINCIPAL_SIZE]; /* a principal, or "shared" */
    ad_domain_state state;
    bool channel_open, alive; /* the channel's handle; the process */
    bool polled, processed;   /* handles that are not closed */
    ad_channel channel;
    uv_poll_t poll;
    uv_process_t process;
    ad_note offer;
    ad_slabs *slabs;
    ad_keep keep;
    bool leaving_asked; /* what of it would be lost, and it has not said so */
    bool device_lost;   /* the worker has said so: what is on the device is of no use */
    uint64_t sessions;
    int64_t started, backoff, not_before;
    ad_fault why; /* it failed */
    ad_sight sight;
};

/* ---- domain.c ---- */
ad_domain *ad__domain_new(ad_front *f, const char *name); /* NULL: no memory */
/* Start its worker if sessions wait for one. */
void ad__domain_restart(ad_domain *d);
/* Its process, or something of that, is still there. */
static inline bool ad__domain_is_ending(const ad_domain *d) { return d->alive || d->polled || d->processed; }
/* The channel is watched for what can be read and, when notes wait, for room. */
void ad__domain_watch(ad_domain *d);

#endif
