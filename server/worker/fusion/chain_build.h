/* From a group of queued operations to a chain (kernels/chain.h). Between run.c and chain_build.c. */
#ifndef AD_SERVER_WORKER_FUSION_CHAIN_BUILD_H
#define AD_SERVER_WORKER_FUSION_CHAIN_BUILD_H

#include "server/worker/net/session.h"

typedef struct ad_chain_builder {
    ad_session *s;
    ad_fusion_ops *ops;
    const ad_groups *groups;
    const uint8_t *order; /* of the group */
    unsigned count;
    int end;                                             /* what the chain ends with, or AD_NOWHERE */
    ad_source value[2 * AD_FUSION_OPS];                  /* node that has it; kind NOT_HERE: it is another group's */
    int16_t input[AD_FUSION_LEAVES + 2 * AD_FUSION_OPS]; /* of a view, or of a value of another group */
    ad_buffer *read[AD_CHAIN_INPUTS];
    ad_buffer *written[AD_CHAIN_OUTPUTS + 1];
    int nwritten, nprovided;
    bool promised[AD_CHAIN_OUTPUTS + 1]; /* had no memory before */
    ad_op end_op;
    ad_operand end_operand[2];
    int64_t strides[AD_MAX_NDIM];
    ad_chain chain;
} ad_chain_builder;

/* The chain of the group; with `apart` (else AD_NOWHERE) its end, which is left out. s, ops, groups, order,
 * count and end are set. */
void ad__chain_build(ad_chain_builder *w, int apart);

#endif
