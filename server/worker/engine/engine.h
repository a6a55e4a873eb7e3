/* The engine: executes what sessions have sent, one session's turn after another.
 *
 * One thread at a time, the runner, runs the engine. It owns the backend, the memory, and the buffers of all sessions:
 *
 *     I/O thread      read ─ cheap operations ─ read ─ heavy one ┐      read ─ read ─ read ─ cheap operations ...
 *     engine thread                                              └─ all operations until nothing is left ┘
 *
 * Waking a second thread and being woken by it costs 20 to 60 us (measured on a 2-processor virtual machine), more than
 * most operations. So the I/O thread executes cheap operations itself while no other thread runs the engine: it has
 * just read them and holds them in its cache. At the first costly one an engine thread takes over until nothing is
 * left. During a long operation an engine thread lets other threads run the engine (background.h). */
#ifndef AD_SERVER_WORKER_ENGINE_ENGINE_H
#define AD_SERVER_WORKER_ENGINE_ENGINE_H

#include <pthread.h>

#include "protocol/message.h"
#include "server/common/grants.h"
#include "server/worker/base/component.h"
#include "server/worker/engine/turns.h"
#include "server/worker/io/input.h"

struct ad_worker_session;
struct ad_worker;

#define AD_ENGINE_THREADS 64 /* each is started when first needed */

typedef struct ad_engine {
    pthread_mutex_t lock; /* guards this structure and the members of sessions that say so */
    pthread_cond_t work;
    pthread_cond_t back; /* signalled to threads that return from a background operation */
    pthread_t thread[AD_ENGINE_THREADS];
    unsigned nthreads, idle; /* engine threads; those of them that wait for work */
    unsigned in_background;  /* threads with a background operation (background.h) */
    unsigned returning;      /* threads behind a background operation that wait to take the engine back */
    uint64_t returns;        /* background operations that have ended so far */
    ad_shares turns;
    bool running; /* some thread runs the engine */
    bool heavy;   /* an engine thread is to take over */
    bool claimed; /* the I/O thread waits to run it for something else */
    bool stop;
    uint64_t question, asked;            /* the question that arrayd has asked, and its details; 0: none (report.h) */
    struct ad_worker_session *attention; /* list of sessions that the I/O thread must look at */
    /* owned by the runner */
    struct ad_worker_session *under_way; /* list of sessions with something under way on a device */
    ad_bytes scratch;                    /* buffer of the message being encoded */
    bool in_thread;                      /* the runner is an engine thread */
    int64_t hurried;    /* when a client last began to wait for a device: turns are short for a while */
    int64_t stay_until; /* end of the staying session's turns */
} ad_engine;

/* Initialise the engine and start its first thread. AD_E_SYSTEM, AD_E_MEMORY. */
int ad__engine_start(struct ad_worker *w, ad_fault *fault);
/* Stop and join all engine threads, after the operations that they are executing. */
void ad__engine_stop(struct ad_worker *w);
/* Engine thread: stop running the engine, and wake those that wait for it. The lock is held. */
void ad__engine_give_up(ad_engine *e);
/* Any thread: cancel the session's background operation, whose result is no longer needed. why: AD_CANCEL_... */
void ad__engine_cancel(struct ad_worker_session *s, int why);
/* I/O thread: take the engine for good, so that no turn runs any more, and join its threads. Background operations get
 * `patience` ns to return; then they are abandoned, and no thread is joined. */
void ad__engine_seize(struct ad_worker *w, int64_t patience);

#define AD_PUMP_AT_ONCE 0
#define AD_PUMP_NEVER INT64_MAX
/* I/O thread: execute cheap operations for a while, unless the engine is busy. Returns the ns after which to call again
 * at the latest, AD_PUMP_AT_ONCE or AD_PUMP_NEVER. */
int64_t ad__engine_pump(struct ad_worker *w);
/* I/O thread: become the runner until ad__engine_release. False: the engine is busy; its runner stops and wakes the
 * loop. */
bool ad__engine_claim(struct ad_worker *w);
/* I/O thread: stop being the runner. */
void ad__engine_release(struct ad_worker *w);
extern const ad_component ad__component_turn;
/* I/O thread: queue frames that a session has sent; all of them are taken over. AD_E_MEMORY: some were released
 * instead. */
int ad__engine_queue_frames(struct ad_worker_session *s, ad_input_frame *f, int n);
/* Tell whether so much of the session's input waits that no more should be read. The lock is held. */
bool ad__engine_is_full(const struct ad_worker_session *s);
/* Any thread: read a number that the engine's lock guards. */
uint64_t ad__engine_read(struct ad_worker *w, const uint64_t *number);
/* I/O thread: end the session. The next runner frees its buffers and then requests attention for it. */
void ad__engine_end(struct ad_worker_session *s);
/* I/O thread: end the session after the operations that must still be executed. */
void ad__engine_finish(struct ad_worker_session *s);
/* I/O thread: have the runner send arrayd a report. */
void ad__engine_report(struct ad_worker *w, uint64_t question, uint64_t what);
/* I/O thread: let a session go on whose output has room again. */
void ad__engine_unstall(struct ad_worker_session *s);
/* Any thread: have the I/O thread look at the session. Takes the lock. */
void ad__engine_request_attention(struct ad_worker_session *s);
/* I/O thread: take the next session that requested attention; NULL: none. */
struct ad_worker_session *ad__engine_next_attended(struct ad_worker *w);

#endif
