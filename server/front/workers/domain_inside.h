/* What a trust domain is, for those parts of the front that run its worker: domain.c, domain_end.c. */
#ifndef AD_SERVER_FRONT_WORKERS_DOMAIN_INSIDE_H
#define AD_SERVER_FRONT_WORKERS_DOMAIN_INSIDE_H

#include <string.h>

#include "server/front/front.h"

#define AD_DOMAIN_SHARED "shared"

/* How far a principal is on its way from the shared worker to its own (migration.c). */
typedef enum ad_migration {
    AD_MIGRATION_NONE,    /* it has arrived, or has always been here */
    AD_MIGRATION_AWAITED, /* it is with the others */
    AD_MIGRATION_COMING,  /* this domain's worker is being started for it */
    AD_MIGRATION_GOING,   /* the shared worker stops what it does there */
} ad_migration;

/* Whether its worker answers (liveness.c). A worker begins with zeros. */
typedef struct ad_silence {
    uint64_t knocked, heard;
    int64_t ns; /* that it has been silent */
    ad_pulse pulse;
} ad_silence;

struct ad_domain {
    ad_domain *next;
    ad_front *front;
    char name[AD_PRINCIPAL_SIZE]; /* a principal, or AD_DOMAIN_SHARED */
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
    bool silenced;      /* it was killed because it did not answer */
    ad_silence silence;
    ad_migration migration;
    int64_t migrating_since; /* GOING, ns */
    uint64_t sessions;
    int64_t started, backoff, not_before;
    ad_fault why; /* it failed */
    ad_observation observation;
};

/* ---- domain.c ---- */
ad_domain *ad__domain_new(ad_front *f, const char *name); /* NULL: no memory */
/* Start its worker if sessions wait for one, or a principal that is to come. */
void ad__domain_restart(ad_domain *d);
/* Its worker is to go on with what the one before has left. */
void ad__domain_recover(ad_domain *d);
static inline bool ad__domain_is_shared(const ad_domain *d) { return !strcmp(d->name, AD_DOMAIN_SHARED); }
/* Its process, or something of that, is still there. */
static inline bool ad__domain_is_ending(const ad_domain *d) { return d->alive || d->polled || d->processed; }
/* The channel is watched for what can be read and, when notes wait, for room. */
void ad__domain_watch(ad_domain *d);

/* ---- liveness.c ---- */
/* Note HEARD. */
void ad__silence_heard(ad_domain *d, const ad_note *note);

/* ---- migration.c ---- */
/* Notes PART_ASKED, PART_FAILED and PARTED. */
void ad__migration_is_asked(ad_domain *from, const ad_note *note);
void ad__migration_fail(const ad_domain *from, const ad_note *note);
void ad__migration_complete(ad_domain *from, const ad_note *note, int fd);
/* Its worker is ready; has died. */
void ad__migration_is_ready(ad_domain *d);
void ad__migration_lose(ad_domain *gone);
/* Before a shared worker goes on with what the one before has left: whose is no longer there. */
void ad__migration_tell(ad_domain *shared);

#endif
