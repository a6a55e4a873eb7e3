/* Ids of the rows of reduction.def: AD_REDUCTION_sum. */
#ifndef AD_PROTOCOL_ROWS_REDUCTION_H
#define AD_PROTOCOL_ROWS_REDUCTION_H

enum {
#define AD_REDUCTION(id, name, rule, accumulator, empty, domain, doc) AD_REDUCTION_##name = (id),
#include "reduction.def"
#undef AD_REDUCTION
};

#endif
