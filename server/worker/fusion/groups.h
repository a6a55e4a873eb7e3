/* Which of a session's queued operations are executed together: pure bookkeeping over what uses what. */
#ifndef AD_SERVER_WORKER_FUSION_GROUPS_H
#define AD_SERVER_WORKER_FUSION_GROUPS_H

#include "kernels/backend.h"

#define AD_FUSION_OPS AD_CHAIN_NODES /* operations that are queued at most */
#define AD_NOWHERE (-1)
#define AD_FUSION_INPUTS 6 /* of one operation: its inputs, a mask, what its outputs had where the mask is false */
#define AD_FUSION_LEAVES (AD_FUSION_INPUTS * AD_FUSION_OPS)

/* An operation as far as its place among the others goes. Operations stand in the order in which they came; value
 * 2 * i + k is what operation i makes as output k. */
typedef struct ad_member {
    uint8_t nin, nout;
    uint8_t operands;               /* that have a tie: what outputs had is no other operand */
    bool ends;                      /* a reduction or a scan */
    bool masked;                    /* the last nout of its inputs are what its outputs had */
    bool random;                    /* random numbers */
    bool wanted[2];                 /* the output's buffer shall have this value in the end */
    uint32_t kind;                  /* what is computed, in which type; 0: never together with others' */
    uint8_t scalars;                /* of the inputs */
    int16_t from[AD_FUSION_INPUTS]; /* the value that an input is, or AD_NOWHERE */
    int16_t leaf[AD_FUSION_INPUTS]; /* else the number of the view that it is, or AD_NOWHERE (scalars) */
    int16_t tie[AD_FUSION_INPUTS];  /* by operand, outputs first: earlier operations that must come before, though no
                                     value goes from them to it */
} ad_member;

/* Operations order[first] .. order[first + count - 1], in the order in which they came: one, or what fits a chain, with
 * at most one that ends it, which takes a value of the group. */
typedef struct ad_group {
    uint8_t first, count;
    uint8_t last; /* operation of all that it is connected with */
    bool whole;   /* there is no more that it is connected with */
} ad_group;

typedef struct ad_groups {
    unsigned count;
    ad_group group[AD_FUSION_OPS];
    uint8_t order[AD_FUSION_OPS], place[AD_FUSION_OPS]; /* place: of an operation in its group */
    bool needed[AD_FUSION_OPS];                         /* somebody wants a value of it; the others are in no group */
    bool kept[2 * AD_FUSION_OPS];                       /* the value is wanted, or used by another group than its own */
} ad_groups;

/* What is connected becomes one group, as far as the limits of chains allow; groups that are not connected may be
 * executed in any order, those that are must be in theirs. */
void ad__groups_form(const ad_member *member, unsigned n, ad_groups *out);
/* How many groups from `at` on are alike, have nothing to do with each other and fit one chain, so that one launch does
 * for all: some power of 4, so that there are few such chains to compile. Their last operations come before `until`. */
unsigned ad__groups_together(const ad_member *member, const ad_groups *groups, unsigned at, unsigned until);
/* So many of them as if they were one. */
ad_group ad__groups_join(const ad_groups *groups, unsigned at, unsigned n);

#endif
