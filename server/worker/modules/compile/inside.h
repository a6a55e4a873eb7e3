/* Types and functions that the files of the compile service share: table.c has the jobs, jobs.c the thread.
 *
 *     get ──▶ table ──▶ fresh ──▶ thread ──▶ disk: a hit is done at once
 *               ▲                   └──▶ waiting ──▶ arrayd-compile ──▶ disk
 *               └──────── ad__compile_finish ◀────────────┘ */
#ifndef AD_SERVER_WORKER_MODULES_COMPILE_INSIDE_H
#define AD_SERVER_WORKER_MODULES_COMPILE_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "server/compile/frame.h"
#include "server/worker/modules/compile/service.h"
#include "server/worker/modules/compile/disk.h"

#define AD_ENTRY_BUCKETS 4096

/* A binary, and the memory that it points to. */
typedef struct ad_made {
    ad_binary binary; /* the binary; must be the first member */
    atomic_uint users;
    ad_bytes bytes; /* frame of the result that has it */
    void *lists;
} ad_made;

/* A job, owned by the table. While it waits, only the thread may use it. */
typedef struct ad_entry {
    uint64_t hash[2];
    struct ad_entry *next;          /* next in its bucket */
    struct ad_entry *newer, *older; /* neighbours in the order of use, of done ones */
    struct ad_entry *after;         /* next in the thread's queue */
    ad_bytes job;                   /* frame of the job, without limits; empty when it is done */
    bool own, done, fetched;
    atomic_uint asked; /* number of times that the job was asked for while it waited */
    ad_compile_target target;
    ad_made *made; /* result; NULL when done: `fault` says why there is none */
    ad_fault fault;
    int64_t until; /* ns: time after which the job is forgotten; 0: none */
    uint8_t key[AD_SHA256_SIZE];
} ad_entry;

typedef struct ad_queue {
    ad_entry *first, **last;
} ad_queue;

typedef struct ad_service {
    ad_compiler compiler; /* the functions that backends call; must be the first member */
    const ad_config *config;
    void (*done)(void *user);
    void *user;
    pthread_t thread;
    int wake; /* eventfd that wakes the thread */
    atomic_bool stop;

    pthread_mutex_t lock;
    uint64_t seed[4];
    ad_entry *bucket[AD_ENTRY_BUCKETS];
    ad_entry *newest, *oldest;
    size_t entries, bytes; /* number of done entries, and their bytes */
    ad_queue fresh;        /* new jobs, for the thread */
    ad_compile_counts counts;

    /* Members that only the thread uses. */
    ad_disk disk;
    ad_queue waiting[2]; /* users' jobs in turn, and the backends' own, of which the most asked for goes first */
    struct ad_compilation *running;
    char program[4096], nvrtc[4096]; /* paths of arrayd-compile and of NVRTC's library; "": it is not here */
    char identity[2][192];           /* versions of the compilers, by target */
    unsigned most;                   /* compilations that may run at a time */
    unsigned in_row;                 /* users' jobs that were started since the last one of a backend's */
} ad_service;

/* The compile service's thread. */
void *ad__compile_thread(void *service);
/* Thread: find the compilers of this machine, and open the cache on disk. */
void ad__compile_prepare(ad_service *s);
/* ---- table.c ---- */
/* The functions of ad_compiler. */
int ad__compile_get(ad_compiler *compiler, const ad_compile_job *job, const ad_binary **out, ad_fault *fault);
void ad__compile_release(ad_compiler *compiler, const ad_binary *binary);
/* Free all entries, when the thread has ended. */
void ad__compile_free_all(ad_service *s);
/* Put an entry at the end; take the first one, NULL: empty. */
void ad__queue_put(ad_queue *q, ad_entry *e);
ad_entry *ad__queue_take(ad_queue *q);
/* Take the entry that was asked for most often, of several the first one. NULL: the queue is empty. */
ad_entry *ad__queue_take_wanted(ad_queue *q);
/* Thread: finish an entry with the frame of a result, which the callee owns. If that is NULL or invalid, the entry
 * is refused with *fault. */
void ad__compile_finish(ad_service *s, ad_entry *e, ad_bytes *frame, const ad_fault *fault);

#endif
