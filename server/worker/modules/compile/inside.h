/* What the parts of the compile service share: service.c has the table and whoever asks, jobs.c the thread. */
#ifndef AD_SERVER_WORKER_MODULES_COMPILE_INSIDE_H
#define AD_SERVER_WORKER_MODULES_COMPILE_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "server/compile/frame.h"
#include "server/worker/modules/compile/service.h"
#include "server/worker/modules/compile/disk.h"

#define AD_ENTRY_BUCKETS 4096

/* A binary and all that it points to. */
typedef struct ad_made {
    ad_binary binary; /* the first: what others see */
    atomic_uint users;
    ad_bytes bytes; /* the frame that it came in */
    void *lists;
} ad_made;

/* A job that was asked for. The table's; while it waits, the thread's. */
typedef struct ad_entry {
    uint64_t hash[2];
    struct ad_entry *next;          /* of its bucket */
    struct ad_entry *newer, *older; /* in the order of use; done ones only */
    struct ad_entry *after;         /* in the thread's queue */
    ad_bytes job;                   /* its frame, without limits; until it is done */
    bool own, done, fetched;
    ad_compile_target target;
    ad_made *made; /* NULL though done: refused, for this reason */
    ad_fault fault;
    int64_t until; /* ns: from then on it is as if it had not been asked for; 0: for ever */
    uint8_t key[AD_SHA256_SIZE];
} ad_entry;

typedef struct ad_queue {
    ad_entry *first, **last;
} ad_queue;

typedef struct ad_service {
    ad_compiler compiler; /* the first */
    const ad_config *config;
    void (*done)(void *user);
    void *user;
    pthread_t thread;
    int wake; /* eventfd */
    atomic_bool stop;

    pthread_mutex_t lock;
    uint64_t seed[4];
    ad_entry *bucket[AD_ENTRY_BUCKETS];
    ad_entry *newest, *oldest;
    size_t entries, bytes; /* done ones, what they take */
    ad_queue fresh;        /* for the thread */
    ad_compile_counts counts;

    /* the thread's */
    ad_disk disk;
    ad_queue waiting[2]; /* users', own */
    struct ad_compilation *running;
    char program[4096], nvrtc[4096]; /* arrayd-compile; NVRTC's library; "" : not here */
    char identity[2][192];           /* of the compilers, by target */
    unsigned most;                   /* compilations at a time */
} ad_service;

/* The thread. */
void *ad__compile_thread(void *service);
/* What the thread needs to know of this machine. */
void ad__compile_prepare(ad_service *s);
/* Put at the end; take from the beginning, NULL: empty. */
void ad__queue_put(ad_queue *q, ad_entry *e);
ad_entry *ad__queue_take(ad_queue *q);
/* The thread: e is done, with the frame of a result (taken over) or, if that is NULL or nonsense, refused for *fault.
 */
void ad__compile_finish(ad_service *s, ad_entry *e, ad_bytes *frame, const ad_fault *fault);

#endif
