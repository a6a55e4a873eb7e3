/* Build a chain (kernels/chain.h) from a group of queued operations. Shared by run.c and chain_build.c. */
#ifndef AD_SERVER_WORKER_FUSION_CHAIN_BUILD_H
#define AD_SERVER_WORKER_FUSION_CHAIN_BUILD_H

#include "server/worker/session.h"

typedef struct ad_chain_builder {
    ad_worker_session *s;
    ad_fusion_ops *ops;
    const ad_groups *groups;
    const uint8_t *order; /* operations of the group, in order */
    unsigned count;
    int end;                            /* the operation that ends the chain (a reduction or a scan), or AD_NOWHERE */
    ad_source value[2 * AD_FUSION_OPS]; /* source of each value; kind NOT_HERE: another group makes it */
    int16_t input[AD_FUSION_LEAVES + 2 * AD_FUSION_OPS]; /* per view, or per value of another group: index of the
                                                            chain's input, or AD_NOWHERE */
    ad_buffer *read[AD_CHAIN_INPUTS];
    ad_buffer *written[AD_CHAIN_OUTPUTS + 1];
    int nwritten, nprovided;
    bool promised[AD_CHAIN_OUTPUTS + 1]; /* per written buffer: it had no memory before */
    ad_op end_op;
    ad_operand end_operand[2];
    int64_t strides[AD_MAX_NDIM];
    ad_chain chain;
} ad_chain_builder;

/* Build the chain of a group; s, ops, groups, order, count and end are set. apart: the end, to be left out of the
 * chain, or AD_NOWHERE. */
void ad__chain_build(ad_chain_builder *w, int apart);

#endif
