/* The engine: executes what sessions have sent, one session's turn after another.
 *
 * Whoever "runs" the engine (one thread at a time) owns the backend, the memory, and the buffers of every session. Two
 * kinds of threads take turns at that. Measured on a 2-processor virtual machine, waking a second thread and being
 * woken by it costs 20 to 60 us, more than most operations and most of what a round trip may take; so the I/O thread,
 * which has just read an operation and holds it in its cache, executes it itself when the operation is cheap and nobody
 * is running. At the first one that is not, an engine thread takes over until nothing is left, and the I/O thread only
 * reads. During an operation that takes long an engine thread lets others run the engine (background.h). */
#ifndef AD_SERVER_WORKER_ENGINE_ENGINE_H
#define AD_SERVER_WORKER_ENGINE_ENGINE_H

#include <pthread.h>

#include "protocol/message.h"
#include "server/common/grants.h"
#include "server/worker/engine/turns.h"
#include "server/worker/net/input.h"

struct ad_session;
struct ad_worker;

#define AD_ENGINE_THREADS 64 /* at most; each is started when it is first needed */

typedef struct ad_engine {
    pthread_mutex_t lock; /* of everything here, and of the members of sessions that say so */
    pthread_cond_t work;
    pthread_cond_t back; /* for those that return from beside it */
    pthread_t thread[AD_ENGINE_THREADS];
    unsigned nthreads, idle; /* engine threads; those that wait for work */
    unsigned in_background;  /* that execute a long operation without the engine (background.h) ... */
    unsigned returning;      /* ... and wait for the engine now */
    uint64_t returns;        /* of such operations, so far */
    ad_shares turns;
    bool running; /* somebody runs it */
    bool heavy;   /* an engine thread is wanted */
    bool claimed; /* but the I/O thread waits to do something in between */
    bool stop;
    uint64_t question, asked;     /* that arrayd has asked, and what; 0: none (report.h) */
    struct ad_session *attention; /* sessions that the I/O thread must look at */
    /* the runner's */
    struct ad_session *under_way; /* sessions with something under way on a device */
    ad_bytes scratch;             /* a message being encoded */
    bool in_thread;               /* the runner is an engine thread */
    int64_t hurried;              /* when a client last began to wait for a device: others leave it time */
    int64_t stay_until;           /* who has turns on end has them until then */
} ad_engine;

/* Start the first engine thread. AD_E_SYSTEM, AD_E_MEMORY. */
int ad__engine_start(struct ad_worker *w, ad_fault *fault);
/* End them all; waits for the operations that they are executing. */
void ad__engine_stop(struct ad_worker *w);
/* An engine thread that runs the engine, with the lock held: it does not any more, and who has waited for it does. */
void ad__engine_give_up(ad_engine *e);
/* I/O thread: nobody runs the engine any more from here on. Operations that are beside it are waited for, but no longer
 * than so many ns: those stay there. */
void ad__engine_seize(struct ad_worker *w, int64_t patience);

#define AD_PUMP_AT_ONCE 0
#define AD_PUMP_NEVER INT64_MAX
/* I/O thread: execute cheap work for a while, if nobody runs the engine. In how many ns it wants to be called again, if
 * nothing comes before. */
int64_t ad__engine_pump(struct ad_worker *w);
/* I/O thread: be the runner until ad__engine_release. False: not yet; the other one stops, and the loop is woken. */
bool ad__engine_claim(struct ad_worker *w);
void ad__engine_release(struct ad_worker *w);
/* Any thread: a session of the note's principal comes, which may want turns from now on. AD_E_MEMORY. */
int ad__engine_add_session(struct ad_worker *w, struct ad_session *s, const ad_note *note);
/* It has gone. */
void ad__engine_remove_session(struct ad_session *s);
/* I/O thread: frames of a session have come. Takes them all, AD_E_MEMORY: only some; the rest are released. */
int ad__engine_queue_frames(struct ad_session *s, ad_input_frame *f, int n);
/* The lock is held: so much of what the session has sent waits that no more of it is to be read. */
bool ad__engine_is_full(const struct ad_session *s);
/* Runner, without the lock. */
uint64_t ad__engine_counter(const struct ad_session *s, int index);
/* I/O thread: the session is to end; its buffers are freed by whoever runs next, and then it wants attention. */
void ad__engine_end(struct ad_session *s);
/* The same as soon as it has executed what must be executed yet. */
void ad__engine_finish(struct ad_session *s);
/* I/O thread: arrayd wants a report. */
void ad__engine_report(struct ad_worker *w, uint64_t question, uint64_t what);
/* I/O thread: the session's output has room again. */
void ad__engine_unstall(struct ad_session *s);
/* The session wants to be looked at by the I/O thread. Takes the lock. */
void ad__engine_request_attention(struct ad_session *s);
/* I/O thread: next session of the list, or NULL. */
struct ad_session *ad__engine_next_attended(struct ad_worker *w);

#endif
