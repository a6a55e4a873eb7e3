/* The fusion queue: operations that a session queues, to execute several elementwise ones as one (kernels/chain.h).
 *
 *     REFUSED ◀── ad__fusion_offer ──▶ QUEUED ──▶ ad__fusion_drain ──▶ groups ──▶ chains (run.c)
 *                     │    ▲
 *                     └─▶ RETRY: a drain goes on first, in the next turns
 *
 * An operation is queued only where that delays little: more messages are at hand, the device is busy for a while, or
 * the operation takes so long that a sixteenth of its time is enough for the client to issue others. So a client that
 * issues more slowly than the server executes gets chains, too:
 *
 *     device    ████████ a ████████│████████ chain of b, c, d ████
 *     client    a    b    c    d   ▲
 *     queue          b    bc   bcd └ AD_FUSION_AHEAD_NS before a's expected end they are drained
 *
 * Queued operations have been checked; only memory can still be lacking. Their fresh outputs have buffers without
 * memory: a buffer that is freed before the drain never gets any. A buffer that is freed while queued operations use it
 * is removed from the client's ids at once, and freed after them.
 *
 * Operations of several stream queues may be queued together, those of each with a shape of their own: a program that
 * uses several devices in turn has chains on each. No buffer is used by operations of two stream queues; so they never
 * come into one group, and their order does not matter.
 *
 * Every request that could tell the difference drains the queue first (ad__fusion_flush). Runner only. */
#ifndef AD_SERVER_WORKER_FUSION_QUEUE_H
#define AD_SERVER_WORKER_FUSION_QUEUE_H

#include "server/worker/base/component.h"
#include "protocol/message.h"
#include "protocol/rows_call.h"
#include "server/worker/fusion/groups.h"
#include "server/worker/device/stream_queue.h"

#define AD_FUSION_BYTES (64u << 10) /* bytes of messages since the first queued one, whose arena is in use */
/* Roots are operations without queued inputs. They may turn out to be unconnected, and are then launched one after
 * another in one turn. So many roots may be queued, or those expected to take so long. */
#define AD_FUSION_ROOTS 16
#define AD_FUSION_ROOTS_NS 20000
/* On a synchronous backend only so few very short roots are queued: with more, their operands leave the processor's
 * cache before they are executed. */
#define AD_FUSION_FEW 4
#define AD_FUSION_FEW_NS 1000
/* After a drain in which no operations could be joined, so many small operations are not queued. */
#define AD_FUSION_VAIN 256
#define AD_FUSION_VAIN_NS 2000 /* ns of a small operation, in this sense */
#define AD_FUSION_NODE_NS 300  /* ns of enqueueing one more operation of a chain, on an asynchronous backend */
/* Operations wait for others while their devices have so many ns to do: more than a drain and noticing the end take. */
#define AD_FUSION_AHEAD_NS 300000
/* An operation that takes a device so many ns waits for others though the device is idle: a PATIENCEth of its time,
 * MOST ns at most. Each operation that comes meanwhile renews that, up to four times as long. */
#define AD_FUSION_LONG_NS 400000
#define AD_FUSION_PATIENCE 16
#define AD_FUSION_PATIENCE_MOST 500000
#define AD_FUSION_SMALL 16384 /* elements up to which a launch takes longer than its execution */
#define AD_FUSION_RECENT \
    16 /* groups grown by one of the last so many operations may grow further: they stay when room is made */
#define AD_FUSION_OPERANDS 6 /* most operands of an operation: outputs, inputs, a mask */

struct ad_worker_session;
struct ad_buffer;

typedef struct ad_fusion_op {
    ad_op op;               /* its operands are in the session's arena */
    uint64_t number, place; /* its number, and its place in the client's stream */
    int64_t cost;
    bool masked;        /* a ufunc whose last input is a mask */
    uint8_t repeatable; /* bit k: nothing before it reads what output k changes (ad__checkpoint_is_repeatable_write) */
    ad_stream_queue *stream_queue;                /* where it is executed */
    struct ad_buffer *buffer[AD_FUSION_OPERANDS]; /* buffer of each operand; NULL: a scalar */
} ad_fusion_op;

/* Progress of a drain, which may take several turns. */
typedef struct ad_draining {
    ad_groups groups;
    unsigned until; /* groups with this operation or a later one stay */
    unsigned group; /* the next group; `at`: its next operation, if it is executed one by one (apart) */
    unsigned at;
    bool apart;
    unsigned tried; /* groups before this one cannot be executed together */
} ad_draining;

typedef struct ad_fusion_ops {
    ad_fusion_op op[AD_FUSION_OPS];
    ad_member member[AD_FUSION_OPS];
    ad_draining draining;
} ad_fusion_ops;

/* Results of ad__fusion_offer. */
typedef enum ad_fusion_offer {
    AD_FUSION_REFUSED, /* execute it now, by itself; no queued operation must come before it */
    AD_FUSION_QUEUED,  /* the operation is queued */
    AD_FUSION_RETRY,   /* offer it again in the next turn, when the drain has ended */
} ad_fusion_offer;

/* Drains begun for an operation that is offered again. */
typedef enum ad_fusion_drain {
    AD_WAY_NONE,
    AD_WAY_ROOM,  /* part of the queue: the operation joins the rest */
    AD_WAY_ALONE, /* the whole queue: the operation is not queued */
} ad_fusion_drain;

typedef struct ad_fusion_queue {
    unsigned count;
    bool draining; /* a drain is under way and goes on before anything else */
    uint64_t gone; /* bit set of operations that are executed or unneeded */
    int64_t turn_until;
    ad_fusion_drain way;
    ad_fusion_ops *ops;                  /* NULL: nothing was queued yet */
    ad_arena arena;                      /* operands of operations whose message's arena was reset */
    ad_desc like;                        /* a description with the shape of the first one */
    uint64_t first;                      /* number of the first queued operation */
    int64_t cost;                        /* estimated ns of all */
    unsigned roots;                      /* number of roots */
    int64_t roots_cost;                  /* estimated ns of the roots */
    int64_t patience;                    /* ns that the first one waits for others on an idle device; 0: not at all */
    int64_t patient_until, patient_most; /* when that ends as things are, and at the latest */
    unsigned vain;                       /* small operations not to be queued (AD_FUSION_VAIN) that are still to come */
    size_t bytes;
    unsigned leaves,
        freed; /* leaves: different views that are read; freed: buffers freed while queued operations use them */
    uint64_t chains, chained, apart, unwritten, dropped; /* counters of counter.def */
} ad_fusion_queue;

/* Tell whether an operation other than a ufunc can be queued, judged by the operation alone. */
bool ad__fusion_is_eligible(const struct ad_worker_session *s, const ad_op *op);
/* Tell whether no two elements of the view share a byte, as far as a quick test shows. */
bool ad__fusion_is_plain(const ad_desc *d);
/* Offer an operation to the queue, which takes it over where that pays. */
ad_fusion_offer ad__fusion_offer(struct ad_worker_session *s, ad_op *op);
/* Defer freeing a buffer until the queued operations that use it have been executed. False: none does. */
bool ad__fusion_defer_buffer(struct ad_worker_session *s, struct ad_buffer *b);
/* Tell whether the message may be executed before the queued operations. */
bool ad__fusion_may_overtake(const struct ad_worker_session *s, const ad_message *m);
/* Find how many ns the queued operations may wait for others although no message is at hand. 0: not at all. */
int64_t ad__fusion_time_to_wait(const struct ad_worker_session *s);
/* Execute all queued operations, however long that takes. */
void ad__fusion_flush(struct ad_worker_session *s);
/* Execute queued operations while the turn has time. False: more remain (draining). */
bool ad__fusion_drain(struct ad_worker_session *s);
/* Make room: execute the groups that have not grown lately, or all. False: more remain (draining). */
bool ad__fusion_make_room(struct ad_worker_session *s);
/* Continue a drain. False: more remain. */
bool ad__fusion_continue(struct ad_worker_session *s);
/* Execute queued operation i by itself. */
void ad__fusion_run_one(struct ad_worker_session *s, unsigned i);
/* Execute a group as a chain. False: that is impossible, and nothing was executed. */
bool ad__fusion_run_group(struct ad_worker_session *s, const ad_groups *groups, const ad_group *g);
extern const ad_component ad__component_fusion;

#endif
