/* Operations that a session holds back, to execute several elementwise ones as one (kernels/chain.h).
 *
 * An operation is held only while more is at hand that may go with it, so an idle queue delays nothing. Held operations
 * have been checked: what is left is memory, and what that may bring. Their fresh outputs have buffers already, without
 * memory; one that the client frees before the others are executed never gets any. A buffer that is freed while held
 * operations use it is out of the client's reach, and stays until they are done.
 *
 * Everything that could tell the difference executes them first (ad__held_flush). Only whoever runs the engine calls
 * these. */
#ifndef AD_SERVER_WORKER_FUSION_QUEUE_H
#define AD_SERVER_WORKER_FUSION_QUEUE_H

#include "protocol/message.h"
#include "protocol/rows.h"
#include "server/worker/fusion/groups.h"
#include "server/worker/engine/stream_queue.h"

#define AD_HELD_BYTES (64u << 10) /* of messages since the first that is held, whose arena is kept */
/* Operations that use no held values may turn out to have nothing to do with each other, and are launched one after
 * another then, in one turn of the session. So many may be held, or those that are expected to take so long. */
#define AD_HELD_ROOTS 16
#define AD_HELD_ROOTS_NS 20000
/* Where launching takes no longer than executing, of such as take next to no time only so few: the more are held, the
 * less of what they need is in the processor's cache when they are executed. */
#define AD_HELD_FEW 4
#define AD_HELD_FEW_NS 1000
/* When nothing was gained by holding small operations, so many that follow are executed as they come. */
#define AD_HELD_VAIN 256
#define AD_HELD_VAIN_NS 2000   /* of one of them */
#define AD_HELD_JOINING_NS 300 /* what one more operation in a chain costs where operations are only enqueued */
#define AD_HELD_SMALL 16384    /* elements up to which a launch takes longer than what it does */
#define AD_HELD_RECENT 16  /* what has grown among the last so many may grow further, and is kept when room is made */
#define AD_HELD_OPERANDS 6 /* of one operation: outputs, inputs, a mask */

struct ad_session;
struct ad_buffer;

typedef struct ad_held_op {
    ad_op op; /* operands in the session's arena */
    uint64_t number;
    int64_t cost;
    bool masked;                                /* a ufunc whose last input says where */
    struct ad_buffer *buffer[AD_HELD_OPERANDS]; /* NULL: a scalar */
} ad_held_op;

/* How far the execution of what is held has come, which may take several turns. */
typedef struct ad_draining {
    ad_groups groups;
    unsigned until; /* groups that have grown since this operation stay */
    unsigned group; /* the next; operation `at` of it where it is `apart`: executed one by one */
    unsigned at;
    bool apart;
    unsigned tried; /* groups up to this one cannot be executed together */
} ad_draining;

typedef struct ad_held_ops {
    ad_held_op op[AD_HELD];
    ad_member member[AD_HELD];
    ad_draining draining;
} ad_held_ops;

/* What has become of an operation. */
typedef enum ad_held_taken {
    AD_HELD_NOT,   /* it is to be executed now, by itself, and nothing is held any more that it must come after */
    AD_HELD_TAKEN, /* it is held */
    AD_HELD_AGAIN, /* the turn is over: again in the next, when what must come first has been executed */
} ad_held_taken;

/* What was begun to be executed for an operation that comes again. */
typedef enum ad_held_way {
    AD_WAY_NONE,
    AD_WAY_ROOM,  /* what it can be held beside is left */
    AD_WAY_ALONE, /* everything: it is not to be held */
} ad_held_way;

typedef struct ad_held {
    unsigned count;
    bool draining; /* some have been executed, more are to be before anything else is done */
    uint64_t gone; /* bit mask of those that have, or need not be */
    int64_t turn_until;
    ad_held_way way;
    ad_held_ops *ops;              /* NULL: nothing was ever held */
    ad_arena arena;                /* has those whose message's arena was emptied */
    ad_stream_queue *stream_queue; /* of all of them */
    ad_desc like;                  /* of their shape */
    uint64_t first;                /* number of the first */
    int64_t cost;                  /* ns, estimated */
    unsigned roots;                /* how many use no other one's values, */
    int64_t roots_cost;            /* ns */
    unsigned vain;                 /* small operations that are not held before it is tried again */
    size_t bytes;
    unsigned leaves, freed; /* different views that are read; buffers that were freed meanwhile */
    uint64_t chains, chained, apart, unwritten, dropped; /* counters: see counter.def */
} ad_held;

/* What can be held at all besides ufuncs, as far as the operation itself tells. */
bool ad__held_suits(const struct ad_session *s, const ad_op *op);
/* No two elements of the view share a byte, as far as that shows at once. */
bool ad__held_plain(const ad_desc *d);
static inline bool ad__held_view(const ad_operand *o) { return !o->is_scalar && o->desc.form == AD_VIEW; }
/* It takes a value that is held, and nothing that is held may take its own: a reduction, or a scan. Of an operation
 * that suits. */
static inline bool ad__held_ends(const ad_op *op) {
    return op->opcode == AD_REQ_REDUCE || (op->opcode == AD_REQ_CALL && op->row != AD_CALL_random);
}
/* The description whose shape must be that of all that is held. */
static inline const ad_desc *ad__held_shape(const ad_op *op) {
    return &op->operand[op->opcode == AD_REQ_REDUCE ? 1 : 0].desc;
}
/* Take an operation over, if that is of use. */
ad_held_taken ad__held_take(struct ad_session *s, ad_op *op);
/* The buffer is used by held operations: it goes when they have gone. False: it is not. */
bool ad__held_free(struct ad_session *s, struct ad_buffer *b);
/* The message may be executed before what is held. */
bool ad__held_allows(const struct ad_session *s, const ad_message *m);
/* Execute what is held, all at once. */
void ad__held_flush(struct ad_session *s);
/* The same for as long as the turn has time; false: there is more (draining). */
bool ad__held_settle(struct ad_session *s);
/* Make room: execute what has not grown of late, or all. False as above. */
bool ad__held_thin(struct ad_session *s);
/* Go on with that. */
bool ad__held_go_on(struct ad_session *s);
/* Execute operation i. */
void ad__held_run_one(struct ad_session *s, unsigned i);
/* Execute a group of several as a chain; false: that cannot be, and nothing was executed. */
bool ad__held_run_group(struct ad_session *s, const ad_groups *groups, const ad_group *g);
/* Put an operation behind those that are held; its outputs have buffers. */
void ad__held_add(struct ad_session *s, ad_stream_queue *queue, const ad_held_op *op);
/* Move all that an operation points at into an arena. False: no host memory. */
bool ad__held_copy(ad_arena *to, ad_op *op);
/* Forget what is held: the session ends. */
void ad__held_drop(struct ad_session *s);
/* Launching what is held takes longer than executing it: what has nothing to do with each other is launched as one. */
bool ad__held_joins(const struct ad_session *s);
/* Operation i no longer uses its buffers. */
void ad__held_release(struct ad_session *s, unsigned i);
/* Memory for a buffer that has none yet; with zeros in it. */
int ad__held_provide(struct ad_session *s, ad_stream_queue *queue, struct ad_buffer *b, ad_fault *fault);
int ad__held_provide_zeros(struct ad_session *s, ad_stream_queue *queue, struct ad_buffer *b, ad_fault *fault);

#endif
