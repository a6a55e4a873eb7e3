/* What a session writes into the ledger, so that another worker can go on with it when this one is killed.
 *
 * Its state is written down whenever no operation is held: how far it is in what its client has sent, how much it has
 * answered, and what its buffers are. What came behind that another worker executes again, from the client's bytes,
 * which stay until then. So that this gives the same:
 *
 * - nothing is sent before the state that has led to it is written down;
 * - memory of a buffer that the written state has is not used again before the buffer is gone from there;
 * - an operation that changes a buffer where it is says so first. A buffer that was being changed when the worker ended
 *   has lost its contents, and says that to who reads it.
 *
 * Operations are complete when they return, then: a backend that works behind the host's back has no ledger (yet), and
 * neither has a worker that moves buffers to host memory. Only whoever runs the engine calls these, unless it says
 * otherwise. */
#ifndef AD_SERVER_SURVIVAL_H
#define AD_SERVER_SURVIVAL_H

#include "protocol/op.h"
#include "server/worker/ledger.h"

struct ad_session;
struct ad_buffer;
struct ad_shared;
struct ad_worker;

/* A buffer, or what else has a row, that is not what the written state says. */
typedef struct ad_changed {
    uint64_t id;
    uint32_t kind, place;
} ad_changed;

typedef struct ad_survival {
    ad_ledger *ledger;     /* NULL: nothing is written down */
    ad_ledger_session *at; /* the session's place there */
    unsigned next;         /* state that is written to */
    ad_ledger_log *log[2];
    ad_changed *changed;
    size_t nchanged, changed_room;
    uint32_t *spare; /* places without a row */
    size_t nspare, spare_room;
    uint32_t places;           /* that have ever had one */
    struct ad_poison *pending; /* as it is written down */
    struct ad_buffer *leaving; /* freed by the client; memory of the written state */
    uint64_t frame_end;        /* of its stream: where the next frame begins */
    uint64_t executed;         /* bytes of its stream that nobody needs any more; the I/O thread reads it */
    bool fatal;                /* another worker died of the module that is to be built first */
    uint64_t skip;             /* bytes of the first control block that another worker has executed */
    uint64_t read;             /* bytes that it has sent of the first read */
} ad_survival;

/* I/O thread: the session may be taken up by another worker from here on. No memory: it may not. */
void ad__survival_begin(struct ad_session *s);
/* Descriptors that come from here on are arrayd's as well. */
void ad__survival_watch(struct ad_session *s);
/* What another worker has left of it is there: write it down, and let the engine go on. */
void ad__survival_restored(struct ad_session *s);
/* Another worker can go on with it. Any thread. */
bool ad__survives(const struct ad_session *s);
/* No other worker can go on with the session: it is over, or cannot be written down. Any thread. */
void ad__survival_over(struct ad_session *s);
/* Give its memory back; nothing else of the session uses it any more. */
void ad__survival_close(struct ad_session *s);

/* The buffer is about to change (memory, contents or none), or has. */
void ad__survival_touch(struct ad_session *s, struct ad_buffer *b);
/* The same of a stream, an event or a window; *place is its place, 0: none yet. */
void ad__survival_note(struct ad_session *s, ad_ledger_kind kind, uint64_t id, uint32_t place);
/* Shared memory has been moved, and nothing has been written to it there: that is written down at once. */
void ad__survival_moved(struct ad_worker *w, struct ad_shared *m);
/* A descriptor that came was not for a window. */
void ad__survival_passed(struct ad_session *s);
/* An operation, or what is held from this number on (name ""), is about to change a buffer where it is. */
void ad__survival_writes(struct ad_session *s, struct ad_buffer *b, uint64_t number, const char *name);
/* A module is about to be set up, or has been. */
void ad__survival_loads(struct ad_session *s, bool begins);
/* A buffer that held operations used goes: true: later, with all that it has. */
bool ad__survival_keeps(struct ad_session *s, struct ad_buffer *b);
/* There is no memory: what waits to go does so now; false: nothing does. */
bool ad__survival_give(struct ad_session *s);
/* Memory that names and capabilities hold, as a row. */
ad_ledger_row ad__survival_memory(const struct ad_worker *w, const struct ad_shared *m);
/* What has been executed counts, and what it has answered may be sent. */
void ad__survival_commit(struct ad_session *s);

#endif
