/* The worker: one I/O thread (libuv), one engine thread, and the state that they share. */
#ifndef AD_SERVER_WORKER_H
#define AD_SERVER_WORKER_H

#include <pthread.h>
#include <uv.h>

#include "server/common/channel.h"
#include "server/common/config.h"
#include "server/worker/modules/compile/service.h"
#include "server/worker/engine/devices.h"
#include "server/worker/engine/engine.h"
#include "server/worker/journal/recover/recover.h"
#include "server/worker/memory/reserved.h"
#include "server/worker/engine/staging.h"
#include "server/worker/engine/watchdog.h"

typedef struct ad_session ad_session;

typedef struct ad_migration ad_migration;
/* As ARRAYD_FUSE has it: 0, not set, 1. */
typedef enum ad_fusing { AD_FUSE_NEVER, AD_FUSE_WHERE_IT_PAYS, AD_FUSE_ALWAYS } ad_fusing;

typedef struct ad_worker {
    ad_config config;
    const ad_backend *backend;
    bool shared;           /* several principals are here */
    bool embedded;         /* of a server of one process, which nobody administers */
    ad_fusing fuses;       /* elementwise operations are executed together */
    ad_compiler *compiler; /* any thread's; outlives the devices */
    int devices;
    ad_gpu gpu[AD_DEVICES]; /* the runner's; the first is open from the beginning */
    uint64_t next_slab;
    ad_staging staging; /* the runner's */
    ad_watchdog watchdog;
    ad_reserved reserved;
    ad_engine engine;
    struct ad_sharing *sharing;   /* the runner's */
    struct ad_past *past;         /* the runner's: what ended sessions have done (report.h) */
    ad_journal *journal;          /* for another worker; NULL: there is none */
    char died_of[AD_FAULT_TEXT];  /* what the worker before said of that */
    char ended_by[AD_DEATH_TEXT]; /* how it ended, as arrayd saw it; "": it was killed, or left */
    struct ad_recovery *left;     /* what the worker before has left; NULL: nothing */
    struct ad_spill *spill;       /* the runner's; NULL: nothing is moved to host memory */

    /* the I/O thread's */
    pthread_t io_thread; /* itself */
    uv_loop_t loop;
    uv_async_t wake;       /* some session wants attention */
    uv_check_t after_poll; /* run the engine on what has been read */
    uv_idle_t busy;        /* active while the engine has more to do here, or a message is likely: no sleep */
    int64_t heard, idle;   /* when a client was last heard, and when there was nothing more to do after it, ns */
    int quick;             /* how often of late the next message came soon after: see must_spin() */
    int timer;             /* a timerfd, because libuv counts in ms ... */
    uv_poll_t later;       /* ... for the next look at what is under way on a device */
    int leases;            /* an epoll descriptor: sockets whose other end may be closed (sharing/leases.h) */
    uv_poll_t leases_poll;
    uv_timer_t clock; /* active while a client is watched for time-outs */
    uv_poll_t channel_poll;
    pthread_mutex_t sessions_lock; /* of the list, which others read when the device is lost */
    ad_session *sessions;
    atomic_uint nsessions;
    bool stopping;
    int64_t stop_by;          /* when the process ends all the same */
    ad_migration *migrations; /* principals that are on their way to a worker of their own (migrate/migration.h) */
    int64_t leaving; /* until when those that cannot go over have time to hear that, ns; 0: it does not leave */

    pthread_mutex_t wake_lock; /* others than the engine wake the loop, */
    bool wakeable;             /* while there is one */

    pthread_mutex_t channel_lock;
    ad_channel channel;
    atomic_bool channel_full; /* notes wait for the socket */
} ad_worker;

/* Load the backend that the configuration asks for and open its device. The status and the fault say why not. */
int ad__backend_load(ad_worker *w, const char *program, ad_fault *fault);
/* Set up the loop around the channel, run it until arrayd has gone or says stop. The worker's exit status. */
int ad__worker_run(ad_worker *w, int channel);
/* Compilations are done: let the loop turn. Any thread, also before and after ad__worker_run. */
void ad__worker_compiled(void *worker);
/* ---- migrate/upgrade.c: another worker goes on, because arrayd is upgraded ---- */
/* I/O thread. id 0: say what would be lost; 1: leave. */
void ad__worker_leave(ad_worker *w, const ad_note *note);
/* I/O thread, after each turn of the loop: leave when there is nothing more to wait for. */
void ad__worker_leave_if_done(ad_worker *w);

/* I/O thread: a client has sent something. */
void ad__worker_record_message(ad_worker *w);
/* Tell arrayd something; fd as in ad__channel_send. Any thread. */
void ad__worker_tell(ad_worker *w, const ad_note *note, int fd);
/* The device is gone: tell the clients and arrayd why, and leave the process with status 3. Any thread. */
void ad__worker_lost(ad_worker *w, const char *why) __attribute__((noreturn));

#endif
