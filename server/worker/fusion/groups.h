/* Groups: which queued operations of a session are executed together. Pure bookkeeping of which operation uses which
 * value:
 *
 *     queued   0: a = x + y   1: b = u * v   2: c = a * 2   3: s = sum(c)
 *     groups   {0, 2, 3} as one chain that ends with the sum, {1} by itself */
#ifndef AD_SERVER_WORKER_FUSION_GROUPS_H
#define AD_SERVER_WORKER_FUSION_GROUPS_H

#include "kernels/backend.h"

#define AD_FUSION_OPS AD_CHAIN_NODES /* most queued operations */
#define AD_NOWHERE (-1)
#define AD_FUSION_INPUTS 6 /* most inputs of an operation, its mask and its outputs' old values included */
#define AD_FUSION_LEAVES (AD_FUSION_INPUTS * AD_FUSION_OPS)

/* An operation as a member of a group. Operations are numbered in the order in which they were sent; value 2 * i + k is
 * output k of operation i. */
typedef struct ad_member {
    uint8_t nin, nout;
    uint8_t operands;               /* number of operands with a tie; old values of outputs are not counted again */
    bool ends;                      /* the operation is a reduction or a scan */
    bool masked;                    /* the last nout inputs are old values of outputs */
    bool random;                    /* the operation makes random numbers */
    bool wanted[2];                 /* per output: its buffer has this value in the end */
    uint32_t kind;                  /* function and type; 0: never executed together with other groups */
    const void *stream_queue;       /* where it is executed: the same for connected operations */
    uint8_t scalars;                /* number of scalar inputs */
    int16_t from[AD_FUSION_INPUTS]; /* per input: the value that it is, or AD_NOWHERE */
    int16_t leaf[AD_FUSION_INPUTS]; /* per other input: the number of its view; AD_NOWHERE: a scalar */
    int16_t tie[AD_FUSION_INPUTS];  /* per operand, outputs first: an earlier operation that must come before, though no
                                       value goes from it to this one */
} ad_member;

/* A group: operations order[first] .. order[first + count - 1], in the order in which they were sent. It is one
 * operation, or a chain with at most one end. */
typedef struct ad_group {
    uint8_t first, count;
    uint8_t last; /* the last of all connected operations */
    bool whole;   /* the group has all connected operations */
} ad_group;

typedef struct ad_groups {
    unsigned count;
    ad_group group[AD_FUSION_OPS];
    uint8_t order[AD_FUSION_OPS], place[AD_FUSION_OPS]; /* place: of each operation in its group */
    bool needed[AD_FUSION_OPS];   /* per operation: one of its values is used or wanted; the others are in no group */
    bool kept[2 * AD_FUSION_OPS]; /* per value: it is wanted in the end, or another group uses it */
} ad_groups;

/* Form groups: connected operations become one group, within the limits of chains. Unconnected groups may run in any
 * order, connected ones only in theirs. */
void ad__groups_form(const ad_member *member, unsigned n, ad_groups *out);
/* Count the groups from `at` on that are equal, independent and fit one chain, to be launched together. The result is a
 * power of 4, so that few such chains are compiled. Groups whose last operation is `until` or later are not counted. */
unsigned ad__groups_together(const ad_member *member, const ad_groups *groups, unsigned at, unsigned until);
/* Join n groups from `at` on into one. */
ad_group ad__groups_join(const ad_groups *groups, unsigned at, unsigned n);

#endif
