/* A trust domain, for the files in front/workers that run its worker. */
#ifndef AD_SERVER_FRONT_WORKERS_DOMAIN_INSIDE_H
#define AD_SERVER_FRONT_WORKERS_DOMAIN_INSIDE_H

#include <string.h>

#include "server/front/front.h"

#define AD_DOMAIN_SHARED "shared"

/* The state of a principal's migration from the shared worker to its own (migration.c). */
typedef enum ad_migration_state {
    AD_MIGRATION_NONE,    /* the principal is in its own domain */
    AD_MIGRATION_AWAITED, /* the principal is in the shared domain */
    AD_MIGRATION_COMING,  /* the worker of this domain is starting for it */
    AD_MIGRATION_GOING,   /* the shared worker is stopping its work there */
} ad_migration_state;

/* Signs that the worker answers (liveness.c). All is 0 when a worker begins. */
typedef struct ad_silence {
    uint64_t knocked, heard;
    int64_t ns; /* ns of silence */
    ad_pulse pulse;
    unsigned ended; /* checks in a row at which its main thread had ended, and the kernel had not reported its exit */
} ad_silence;

struct ad_domain {
    ad_domain *next;
    ad_front *front;
    char name[AD_PRINCIPAL_SIZE]; /* the principal, or AD_DOMAIN_SHARED */
    ad_domain_state state;
    bool channel_open, alive; /* channel_open: its handle is open; alive: the process runs */
    bool polled, processed;   /* polled, processed: these handles of the loop are not closed */
    ad_channel channel;
    uv_poll_t poll;
    uv_process_t process;
    ad_note offer;
    ad_slabs *slabs;
    ad_worker_files files;
    bool leaving_asked; /* the worker was asked what would be lost, and has not answered */
    bool device_lost;   /* the worker has said that the memory of its device is unusable */
    bool silenced;      /* the worker was killed because it did not answer */
    bool was_ready;     /* the process has been ready, and may have run kernels of users */
    ad_silence silence;
    ad_migration_state migration;
    int64_t migrating_since; /* since when the state is AD_MIGRATION_GOING, ns */
    uint64_t sessions;
    int64_t started, backoff, not_before;
    ad_fault why; /* reason of AD_DOMAIN_FAILED */
    ad_observation observation;
};

/* ---- domain.c ---- */
ad_domain *ad__domain_new(ad_front *f, const char *name); /* Add a domain without a worker. NULL: no memory. */
/* Start the domain's worker if sessions wait for it, or a principal that migrates. */
void ad__domain_restart(ad_domain *d);
/* Let the domain's worker go on where the previous one ended. */
void ad__domain_recover(ad_domain *d);
/* Go on as after the worker's exit, which the kernel does not report. */
void ad__domain_lose_worker(ad_domain *d);
static inline bool ad__domain_is_shared(const ad_domain *d) { return !strcmp(d->name, AD_DOMAIN_SHARED); }
/* Tell whether the domain's process, or a handle of it, is still there. */
static inline bool ad__domain_is_ending(const ad_domain *d) { return d->alive || d->polled || d->processed; }
/* Watch the channel for notes and, if notes are queued, for room. */
void ad__domain_watch(ad_domain *d);

/* ---- liveness.c ---- */
/* Handle a note HEARD. */
void ad__silence_heard(ad_domain *d, const ad_note *note);

/* ---- migration.c ---- */
/* Handle notes MIGRATION_ASKED, MIGRATION_FAILED and MIGRATED. */
void ad__migration_is_asked(ad_domain *from, const ad_note *note);
void ad__migration_fail(const ad_domain *from, const ad_note *note);
void ad__migration_complete(ad_domain *from, const ad_note *note, int fd);
/* The domain's worker is ready, or has died. */
void ad__migration_is_ready(ad_domain *d);
void ad__migration_lose(ad_domain *gone);
/* Tell a shared worker which principals have migrated, before it goes on where the previous one ended. */
void ad__migration_tell(ad_domain *shared);

#endif
