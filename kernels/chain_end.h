/* The kind of the operation that ends a chain. */
#ifndef AD_KERNELS_CHAIN_END_H
#define AD_KERNELS_CHAIN_END_H

#include <stdbool.h>

#include "protocol/op.h"
#include "protocol/rows_request.h"

/* True if the operation that ends a chain is a scan. NULL: there is none. */
static inline bool ad_chain_end_scans(const ad_op *end) { return end && end->opcode == AD_REQ_CALL; }

#endif
