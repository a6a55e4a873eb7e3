/* The worker: one I/O thread (libuv), engine threads, and the state that they share. */
#ifndef AD_SERVER_WORKER_H
#define AD_SERVER_WORKER_H

#include <pthread.h>
#include <uv.h>

#include "server/common/channel.h"
#include "server/common/config.h"
#include "server/worker/base/component.h"
#include "server/worker/base/hooks.h"
#include "server/worker/base/tell.h"
#include "server/worker/modules/compile/service.h"
#include "server/worker/device/devices.h"
#include "server/worker/engine/engine.h"
#include "server/worker/recover/recover.h"
#include "server/worker/memory/reserved.h"
#include "server/worker/device/staging.h"
#include "server/worker/device/watchdog.h"

typedef struct ad_worker_session ad_worker_session;

typedef struct ad_migration ad_migration;
/* When elementwise operations are fused: values of ARRAYD_FUSE 0, unset and 1. */
typedef enum ad_fusing { AD_FUSE_NEVER, AD_FUSE_WHERE_IT_PAYS, AD_FUSE_ALWAYS } ad_fusing;

/* Devices. Runner. */
typedef struct ad_worker_devices {
    int count;
    ad_gpu gpu[AD_DEVICES]; /* the first is open from the beginning */
    uint64_t next_slab;
    ad_staging staging;
    ad_watchdog watchdog;
} ad_worker_devices;

#define AD_MISSED_SLABS 16 /* further ones stay with arrayd until this worker ends */

/* Facts about the worker before. */
typedef struct ad_worker_before {
    char died_of[AD_FAULT_TEXT];      /* error text, when its device was lost */
    char ended_by[AD_DEATH_TEXT];     /* how it ended, as arrayd saw it; "": it was killed, or left */
    struct ad_recovery *left;         /* state that it has left; NULL: none */
    uint64_t missed[AD_MISSED_SLABS]; /* slabs of it that there was no memory to list: nobody uses them */
    unsigned nmissed;
} ad_worker_before;

/* The loop. I/O thread. */
typedef struct ad_worker_loop {
    pthread_t thread; /* the I/O thread itself */
    uv_loop_t loop;
    uv_async_t wake;       /* wakes the loop for a session that wants attention, or a note */
    uv_check_t after_poll; /* runs the engine after each polling of sockets */
    uv_idle_t busy; /* active while the loop must not sleep: the engine has more to do here, or a message is likely */
    bool pressed;   /* the engine has more to do here */
    int64_t heard, idle;      /* ns: when a client last sent something, and when nothing more was left to do after it */
    int quick;                /* how often lately the next message came soon: see io/spin.h */
    ad_worker_session *rings; /* sessions whose rings are looked at (session/rings.h) */
    ad_ring_patience patience; /* how long the loop looks at them */
    int timer;                 /* a timerfd, because libuv counts in ms */
    uv_poll_t later;           /* polls the timerfd, which wakes the loop for the next polling of devices */
    int leases;                /* an epoll descriptor for sockets whose other end may be closed (sharing/leases.h) */
    uv_poll_t leases_poll;
    uv_timer_t clock;          /* active while a client is watched for time-outs */
    pthread_mutex_t wake_lock; /* guards wakeable: compilations wake the loop, too */
    bool wakeable;             /* true while there is a loop */
} ad_worker_loop;

/* The channel to arrayd. */
typedef struct ad_worker_channel {
    uv_poll_t poll;
    pthread_mutex_t lock;
    ad_channel channel;
    atomic_bool full; /* notes wait for the channel's socket */
} ad_worker_channel;

/* The end of the worker. I/O thread. */
typedef struct ad_worker_end {
    bool stopping;
    int64_t stop_by; /* time of a stop at which the process ends in any case */
    int64_t leaving; /* time until which clients that cannot migrate are told, ns; 0: the worker stays */
} ad_worker_end;

typedef struct ad_worker {
    ad_config config;
    ad_hooks hooks;                        /* functions of upper rooms */
    const ad_component *const *components; /* what a session has; ends with NULL */
    const ad_backend *backend;
    const ad_part_table *parts; /* NULL: its devices have none */
    bool shared;                /* several principals use this worker */
    bool embedded;              /* the server belongs to one program and has no administrator */
    ad_fusing fuses;            /* when elementwise operations are fused */
    ad_compiler *compiler;      /* any thread; outlives the devices */
    ad_worker_devices device;
    ad_reserved reserved;
    ad_engine engine;
    struct ad_sharing *sharing; /* owned by the runner */
    struct ad_past *past;       /* owned by the runner: sums over ended sessions (report.h) */
    ad_journal *journal;        /* journal for a successor; NULL: none */
    ad_worker_before before;
    struct ad_spill *spill; /* owned by the runner; NULL: nothing is moved to host memory */
    ad_worker_loop io;
    pthread_mutex_t sessions_lock; /* guards the list, which other threads read when the device is lost */
    ad_worker_session *sessions;
    struct ad_buffer_total *buffer_totals; /* of the principals of these sessions; sessions_lock guards the list, too */
    atomic_uint nsessions;
    ad_migration *migrations; /* I/O thread: principals that migrate (migrate/migration.h) */
    ad_worker_end ending;
    ad_worker_channel arrayd;
} ad_worker;

/* Fill in the hooks and the components (rooms.c), before anything else is done with the worker. */
void ad__worker_connect(ad_worker *w);
/* Load the configured backend and open its first device. AD_E_DEVICE and others. */
int ad__backend_load(ad_worker *w, const char *program, ad_fault *fault);
/* Run the loop around the channel until arrayd has gone or says stop. Returns the exit status. */
int ad__worker_run(ad_worker *w, int channel);
/* Any thread, also before and after ad__worker_run: wake the loop because compilations are done. */
void ad__worker_compiled(void *worker);
/* ---- migrate/upgrade.c: another worker continues, because arrayd is upgraded ---- */
/* I/O thread: execute arrayd's note LEAVE. id 0: report what would be lost; 1: leave. */
void ad__worker_leave(ad_worker *w, const ad_note *note);
/* I/O thread, after each turn of the loop: leave when nothing more is to be waited for. */
void ad__worker_leave_if_done(ad_worker *w);

/* Any thread: tell the clients and arrayd why the device is lost, and end the process with status 3. */
void ad__worker_lost(ad_worker *w, const char *why) __attribute__((noreturn));

#endif
