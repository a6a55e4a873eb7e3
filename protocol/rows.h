/* Identifiers of the rows of ufunc.def, reduction.def and call.def: AD_UFUNC_add, AD_REDUCTION_sum, AD_CALL_matmul.
 *
 * Only files that name a row include this header, so that a new row does not rebuild the others. */
#ifndef AD_PROTOCOL_ROWS_H
#define AD_PROTOCOL_ROWS_H

enum {
#define AD_UFUNC(id, name, nin, nout, rule, domain, doc, ...) AD_UFUNC_##name = (id),
#include "ufunc.def"
#undef AD_UFUNC
};

enum {
#define AD_REDUCTION(id, name, rule, accumulator, empty, domain, doc) AD_REDUCTION_##name = (id),
#include "reduction.def"
#undef AD_REDUCTION
};

enum {
#define AD_CALL(id, name, nout, nin_min, nin_max, params, kind, guard, infer, doc) AD_CALL_##name = (id),
#include "call.def"
#undef AD_CALL
};

#endif
