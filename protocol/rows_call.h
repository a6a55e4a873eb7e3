/* Ids of the rows of call.def: AD_CALL_matmul. */
#ifndef AD_PROTOCOL_ROWS_CALL_H
#define AD_PROTOCOL_ROWS_CALL_H

enum {
#define AD_CALL(id, name, nout, nin_min, nin_max, params, kind, guard, work, cost, infer, doc) AD_CALL_##name = (id),
#include "call.def"
#undef AD_CALL
};

#endif
