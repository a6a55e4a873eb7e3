/* What a session writes into the journal, so that another worker can go on with it when this one is killed.
 *
 * Its state is written down when no operation is held: how far it is in what its client has sent, how much it has
 * answered, and what its buffers are. What came behind that another worker executes again, from the client's bytes,
 * which stay until then. So that this gives the same:
 *
 * - nothing is sent before the state that has led to it is written down;
 * - memory of a buffer that the written state has is not used again before the buffer is gone from there, or is known
 *   to have its bytes elsewhere;
 * - an operation that changes a buffer where it is says so first. A buffer that was being changed when the worker ended
 *   has lost its contents, and says that to who reads it.
 *
 * Where operations are complete when they return, a state is valid at once. Where they are only enqueued (v->late), it
 * is taken, and becomes valid when the device has passed all that led to it: so there is one that is valid and at most
 * one that is coming, and what happens meanwhile is for the next. Three things follow from that:
 *
 * - what is executed again may have been executed already, and so may what came after it. So every operation that
 *   changes a buffer where it is says so, but for one that reads nothing of it while nothing has read it since the
 *   valid state; and memory, windows and shares that are given up are parked until a state without them is valid.
 * - answers are sent without waiting for that: the valid state says how far they reach, and what is executed again up
 *   to there answers nothing. Only who has memory in common with others waits, as those may have changed it by then.
 * - what the device has yet to say (exec/deferred_check.h) is settled before a state is valid.
 *
 * A buffer that is moved to host memory, or back, has the same contents in both places, so that is no change of state:
 * it is written down by itself as soon as the copy is complete, for whatever states there are, and what the buffer has
 * left is free then (ad__survival_placed). Places are counted for each buffer: of two, the later one holds.
 *
 * Only whoever runs the engine calls these, unless it says otherwise. */
#ifndef AD_SERVER_WORKER_JOURNAL_SESSION_JOURNAL_H
#define AD_SERVER_WORKER_JOURNAL_SESSION_JOURNAL_H

#include "protocol/op.h"
#include "server/worker/journal/journal.h"
#include "server/worker/memory/memory.h"
#include "server/worker/net/windows.h"

struct ad_session;
struct ad_buffer;
struct ad_stream_queue;
struct ad_shared;
struct ad_worker;

/* A buffer, or what else has a row, that is not what the written state says; kind NONE: it has gone, and the place was
 * its row's. */
typedef struct ad_changed {
    uint64_t id;
    uint32_t kind, place;
} ad_changed;

typedef struct ad_changes {
    ad_changed *list;
    size_t count, room;
} ad_changes;

/* The state that becomes valid when the device is there. */
typedef struct ad_coming {
    bool open;
    bool spoiled; /* something has turned out wrong since it was taken */
    unsigned slot;
    uint64_t entries, told;
    struct ad_poison *pending;
} ad_coming;

typedef struct ad_survival {
    ad_journal *journal;    /* NULL: nothing is written down */
    ad_journal_session *at; /* the session's place there */
    unsigned next;          /* log that is written to */
    ad_journal_log *log[2];
    ad_changes changed;
    uint32_t *spare; /* places without a row */
    size_t nspare, spare_room;
    uint32_t places;           /* that have ever had one */
    struct ad_poison *pending; /* as it is written down */
    bool inside;               /* a message is being executed: so many changes, and what is parked, came before it */
    size_t begun, parked_begun;
    struct ad_buffer **leaving; /* freed by the client; memory of the written state */
    size_t nleaving, leaving_room;
    uint64_t leaving_bytes;
    bool behind;          /* something has been executed since it was written */
    bool collects;        /* the message at hand need not be written down at once */
    bool announced;       /* something that is, was changed where it is since then */
    uint64_t frame_end;   /* of its stream: where the next frame begins */
    uint64_t executed;    /* bytes of its stream that nobody needs any more; the I/O thread reads it */
    uint64_t fatal;       /* another worker died while it set this module up */
    uint64_t skip;        /* bytes of the first control block that another worker has executed */
    uint64_t read;        /* bytes that it has sent of the first read */
    uint64_t descriptors; /* that have been asked for by messages that are done with */
    uint64_t *passed;     /* numbers of those that no window keeps, and arrayd still has */
    size_t npassed, passed_room;
    bool listed; /* in the journal's list */

    /* engine/blame.h */
    ad_blame blame;    /* as in the journal */
    uint64_t begun_at; /* the place of the last message that was begun */
    bool careful;      /* the message at hand may be to blame: it is executed alone */
    bool left_out;     /* it is to blame: it is not executed */

    /* where operations are complete later */
    bool late;
    ad_coming coming;
    ad_changes taken;         /* what is in it */
    struct ad_parked *parked; /* what waits for a valid state without it: the first `parked_taken` for the coming one */
    size_t nparked, parked_room, parked_taken, parked_shares;
    uint64_t committed;         /* operations of the valid state */
    uint64_t blamed;            /* kernels up to this operation are not launched again: the worker before died */
    uint64_t loaded;            /* the last operation that reads a window */
    uint64_t told, told_before; /* failures that waited for a synchronisation: told so far; when that state was taken */
    uint64_t quiet, quiet_used; /* up to there another worker has answered; 0: there is nothing */
    uint64_t untold;            /* such failures that it has told behind the valid state */
    bool silent;                /* the message at hand has been answered */
} ad_survival;

/* Nobody else knows the session yet: it has a place in the journal from here on. No memory: it has none. */
void ad__survival_begin(struct ad_session *s);
/* Another worker finds it there, and may take it up. */
void ad__survival_list(struct ad_session *s);
/* Descriptors that come from here on are arrayd's as well. */
void ad__survival_watch(struct ad_session *s);
/* What another worker has left of it is there: write it down, and let the engine go on. lives: of workers that have had
 * this state before. */
void ad__survival_restored(struct ad_session *s, uint64_t lives);
/* Another worker can go on with it. Any thread. */
bool ad__survives(const struct ad_session *s);
/* And what it has executed counts only when that is complete. */
bool ad__survives_late(const struct ad_session *s);
/* No other worker can go on with the session: it is over, or cannot be written down. Any thread. */
void ad__survival_over(struct ad_session *s);
/* Give its memory back; nothing else of the session uses it any more. */
void ad__survival_close(struct ad_session *s);

/* The buffer is about to change (memory, contents or none), or has. */
void ad__survival_touch(struct ad_session *s, struct ad_buffer *b);
/* The same of a stream, an event or a window. */
void ad__survival_note(struct ad_session *s, ad_journal_kind kind, uint64_t id);
/* What had a row there (0: none) has gone. */
void ad__survival_gone(struct ad_session *s, uint32_t place);
/* The same of a buffer, which is about to give up its memory. */
void ad__survival_freed(struct ad_session *s, struct ad_buffer *b);
/* Shared memory has been moved, and nothing has been written to it there: that is written down at once. */
void ad__survival_moved(struct ad_worker *w, struct ad_shared *m);
/* The descriptor of that number, for which the message at hand has asked, is no window's: arrayd is told that nobody
 * needs it any more, once that is written down. */
void ad__survival_passed(struct ad_session *s, uint64_t number);
void ad__survival_descriptor_gone(struct ad_session *s, uint64_t number); /* the same at once */
/* An operation that reads nothing of the buffer is about to change it where it is, and executed again would give the
 * same: that need not be said. */
bool ad__survival_repeats(const struct ad_session *s, const struct ad_buffer *b);
/* An operation is about to change a buffer where it is. */
void ad__survival_writes(struct ad_session *s, struct ad_buffer *b, uint64_t number, const char *name);
/* A kernel of a user is about to be launched. */
void ad__survival_launches(struct ad_session *s, uint64_t number);
/* A module is about to be set up; 0: it has been. */
void ad__survival_loads(struct ad_session *s, uint64_t module);
/* A buffer that held operations used goes: true: later, with all that it has. */
bool ad__survival_keeps(struct ad_session *s, struct ad_buffer *b);
/* There is no memory: what waits to go does so now; false: nothing does. */
bool ad__survival_give(struct ad_session *s);
/* The bytes of the buffer whose row is there (0: none) are in another place now, whole, and where they were may be used
 * again: whatever state is valid. */
void ad__survival_placed(struct ad_session *s, uint32_t place, const ad_journal_place *now);
/* Its memory is about to be used again, before that is written down. */
void ad__survival_lose(struct ad_session *s, uint32_t place);
/* Memory that names and capabilities hold, as a row. */
ad_journal_row ad__survival_memory(const struct ad_worker *w, const struct ad_shared *m);
/* What has been executed counts, and what it has answered may be sent: as soon as that is so. */
void ad__survival_commit(struct ad_session *s);
/* It is time for that in the middle of a turn. */
bool ad__survival_due(const struct ad_session *s);
/* What was executed where operations are complete when they return is written down when enough has come together. */
bool ad__survival_is_full(const struct ad_survival *v);
/* The operation changes nothing where it is, so it could be executed again. */
bool ad__survival_again(const ad_message *m);
/* A message is about to be executed, or has been or waits. */
void ad__survival_enter(struct ad_session *s, const ad_message *m);
static inline void ad__survival_begun(ad_survival *v) {
    v->inside = true;
    v->begun = v->changed.count;
    v->parked_begun = v->nparked;
}
static inline void ad__survival_leave(ad_survival *v) { v->inside = false; }
/* Something is executed, or has been, that is yet to be written down. */
static inline void ad__survival_executes(ad_survival *v) { v->behind = !v->late; }
/* All that came before the message at hand counts; false: the session waits until that is so, call again. */
bool ad__survival_ready(struct ad_session *s);
/* The same where that comes later than the execution; elsewhere it counts as it is. */
bool ad__survival_counts(struct ad_session *s);
/* The message at hand has been answered by another worker, or has not. */
void ad__survival_hush(struct ad_session *s);
/* It has turned out that something is not what was written down. */
static inline void ad__survival_spoil(ad_survival *v) { v->coming.spoiled = true; }
/* Whatever it takes of the device's time: all that the session has executed counts. judge: also what the device has
 * found out is read. False: not all of it. */
bool ad__survival_flush(struct ad_session *s, bool judge);

/* ---- deferred_free.c ---- */
/* What the buffer gives up must stay until that is written down. */
bool ad__survival_parks(const struct ad_session *s, const struct ad_buffer *b);
/* Such memory, which was the buffer's (NULL: that of no row), a window, or its part in what others hold, too. False: it
 * need not stay, as the session is not kept. */
bool ad__survival_park(struct ad_session *s, ad_stream_arena *home, const ad_block *block, const struct ad_buffer *b);
bool ad__survival_park_window(struct ad_session *s, const ad_window *w);
bool ad__survival_park_share(struct ad_session *s, struct ad_shared *m);
/* One of those is of this principal's memory. */
bool ad__survival_parks_of(const struct ad_session *s, const char *principal);
/* The first so many, or all, go. */
void ad__survival_unpark(struct ad_session *s, size_t n);
/* There is no memory: make what is parked go, of all sessions; false: nothing is. */
bool ad__survival_relieve(struct ad_session *s);
/* The same where no state can be taken: what is parked on the stream queue's device goes to host memory. */
bool ad__survival_evacuate(struct ad_session *s, struct ad_stream_queue *queue);
/* The same where nothing else can make room: what the session has parked goes, and is lost if
 * the worker is killed now. */
bool ad__survival_sacrifice(struct ad_session *s);

#endif
