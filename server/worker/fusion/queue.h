/* Operations that a session queues, to execute several elementwise ones as one (kernels/chain.h).
 *
 * An operation is queued only while more is at hand that may go with it, so an idle queue delays nothing. Queued
 * operations have been checked: what is left is memory, and what that may bring. Their fresh outputs have buffers
 * already, without memory; one that the client frees before the others are executed never gets any. A buffer that is
 * freed while queued operations use it is out of the client's reach, and stays until they are done.
 *
 * Everything that could tell the difference executes them first (ad__fusion_flush). Only whoever runs the engine calls
 * these. */
#ifndef AD_SERVER_WORKER_FUSION_QUEUE_H
#define AD_SERVER_WORKER_FUSION_QUEUE_H

#include "protocol/message.h"
#include "protocol/rows.h"
#include "server/worker/fusion/groups.h"
#include "server/worker/engine/stream_queue.h"

#define AD_FUSION_BYTES (64u << 10) /* of messages since the first that is queued, whose arena is kept */
/* Operations that use no queued values may turn out to have nothing to do with each other, and are launched one after
 * another then, in one turn of the session. So many may be queued, or those that are expected to take so long. */
#define AD_FUSION_ROOTS 16
#define AD_FUSION_ROOTS_NS 20000
/* Where launching takes no longer than executing, of such as take next to no time only so few: the more are queued, the
 * less of what they need is in the processor's cache when they are executed. */
#define AD_FUSION_FEW 4
#define AD_FUSION_FEW_NS 1000
/* When nothing was gained by holding small operations, so many that follow are executed as they come. */
#define AD_FUSION_VAIN 256
#define AD_FUSION_VAIN_NS 2000 /* of one of them */
#define AD_FUSION_NODE_NS 300  /* what one more operation in a chain costs where operations are only enqueued */
#define AD_FUSION_SMALL 16384  /* elements up to which a launch takes longer than what it does */
#define AD_FUSION_RECENT 16  /* what has grown among the last so many may grow further, and is kept when room is made \
                              */
#define AD_FUSION_OPERANDS 6 /* of one operation: outputs, inputs, a mask */

struct ad_session;
struct ad_buffer;

typedef struct ad_fusion_op {
    ad_op op; /* operands in the session's arena */
    uint64_t number;
    int64_t cost;
    bool masked;                                  /* a ufunc whose last input says where */
    struct ad_buffer *buffer[AD_FUSION_OPERANDS]; /* NULL: a scalar */
} ad_fusion_op;

/* How far the execution of what is queued has come, which may take several turns. */
typedef struct ad_draining {
    ad_groups groups;
    unsigned until; /* groups that have grown since this operation stay */
    unsigned group; /* the next; operation `at` of it where it is `apart`: executed one by one */
    unsigned at;
    bool apart;
    unsigned tried; /* groups up to this one cannot be executed together */
} ad_draining;

typedef struct ad_fusion_ops {
    ad_fusion_op op[AD_FUSION_OPS];
    ad_member member[AD_FUSION_OPS];
    ad_draining draining;
} ad_fusion_ops;

/* What has become of an operation. */
typedef enum ad_fusion_offer {
    AD_FUSION_REFUSED, /* it is to be executed now, by itself, and nothing is queued any more that it must come after */
    AD_FUSION_QUEUED,  /* it is queued */
    AD_FUSION_RETRY,   /* the turn is over: again in the next, when what must come first has been executed */
} ad_fusion_offer;

/* What was begun to be executed for an operation that comes again. */
typedef enum ad_fusion_drain {
    AD_WAY_NONE,
    AD_WAY_ROOM,  /* what it can be queued beside is left */
    AD_WAY_ALONE, /* everything: it is not to be queued */
} ad_fusion_drain;

typedef struct ad_fusion_queue {
    unsigned count;
    bool draining; /* some have been executed, more are to be before anything else is done */
    uint64_t gone; /* bit mask of those that have, or need not be */
    int64_t turn_until;
    ad_fusion_drain way;
    ad_fusion_ops *ops;            /* NULL: nothing was ever queued */
    ad_arena arena;                /* has those whose message's arena was emptied */
    ad_stream_queue *stream_queue; /* of all of them */
    ad_desc like;                  /* of their shape */
    uint64_t first;                /* number of the first */
    int64_t cost;                  /* ns, estimated */
    unsigned roots;                /* how many use no other one's values, */
    int64_t roots_cost;            /* ns */
    unsigned vain;                 /* small operations that are not queued before it is tried again */
    size_t bytes;
    unsigned leaves, freed; /* different views that are read; buffers that were freed meanwhile */
    uint64_t chains, chained, apart, unwritten, dropped; /* counters: see counter.def */
} ad_fusion_queue;

/* What can be queued at all besides ufuncs, as far as the operation itself tells. */
bool ad__fusion_is_eligible(const struct ad_session *s, const ad_op *op);
/* No two elements of the view share a byte, as far as that shows at once. */
bool ad__fusion_is_plain(const ad_desc *d);
static inline bool ad__fusion_is_view(const ad_operand *o) { return !o->is_scalar && o->desc.form == AD_VIEW; }
/* It takes a value that is queued, and nothing that is queued may take its own: a reduction, or a scan. Of an operation
 * that suits. */
static inline bool ad__fusion_is_end(const ad_op *op) {
    return op->opcode == AD_REQ_REDUCE || (op->opcode == AD_REQ_CALL && op->row != AD_CALL_random);
}
/* The description whose shape must be that of all that is queued. */
static inline const ad_desc *ad__fusion_shape_of(const ad_op *op) {
    return &op->operand[op->opcode == AD_REQ_REDUCE ? 1 : 0].desc;
}
/* Take an operation over, if that is of use. */
ad_fusion_offer ad__fusion_offer(struct ad_session *s, ad_op *op);
/* The buffer is used by queued operations: it goes when they have gone. False: it is not. */
bool ad__fusion_defer_buffer(struct ad_session *s, struct ad_buffer *b);
/* The message may be executed before what is queued. */
bool ad__fusion_may_overtake(const struct ad_session *s, const ad_message *m);
/* Execute what is queued, all at once. */
void ad__fusion_flush(struct ad_session *s);
/* The same for as long as the turn has time; false: there is more (draining). */
bool ad__fusion_drain(struct ad_session *s);
/* Make room: execute what has not grown of late, or all. False as above. */
bool ad__fusion_make_room(struct ad_session *s);
/* Go on with that. */
bool ad__fusion_continue(struct ad_session *s);
/* Execute operation i. */
void ad__fusion_run_one(struct ad_session *s, unsigned i);
/* Execute a group of several as a chain; false: that cannot be, and nothing was executed. */
bool ad__fusion_run_group(struct ad_session *s, const ad_groups *groups, const ad_group *g);
/* Put an operation behind those that are queued; its outputs have buffers. */
void ad__fusion_append(struct ad_session *s, ad_stream_queue *queue, const ad_fusion_op *op);
/* Move all that an operation points at into an arena. False: no host memory. */
bool ad__fusion_copy_op(ad_arena *to, ad_op *op);
/* Forget what is queued: the session ends. */
void ad__fusion_drop(struct ad_session *s);
/* Launching what is queued takes longer than executing it: what has nothing to do with each other is launched as one.
 */
bool ad__fusion_launch_costs_more(const struct ad_session *s);
/* Operation i no longer uses its buffers. */
void ad__fusion_release_op(struct ad_session *s, unsigned i);
/* Memory for a buffer that has none yet; with zeros in it. */
int ad__fusion_provide_memory(struct ad_session *s, ad_stream_queue *queue, struct ad_buffer *b, ad_fault *fault);
int ad__fusion_provide_zeros(struct ad_session *s, ad_stream_queue *queue, struct ad_buffer *b, ad_fault *fault);

#endif
