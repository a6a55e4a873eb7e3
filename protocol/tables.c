/* The .def tables as data: see tables.h. */
#include "protocol/counters.h"
#include "protocol/rows.h"
#include "protocol/tables.h"

const ad_rule_row ad__rules[AD_NRULE] = {
#define AD_RULE(NAME, loops, fallback, i0, i1, i2, o0, o1) \
    {#NAME, loops, fallback, {AD_CODE_##i0, AD_CODE_##i1, AD_CODE_##i2}, {AD_CODE_##o0, AD_CODE_##o1}},
#include "protocol/rule.def"
#undef AD_RULE
};

const ad_dtype_row ad__dtypes[AD_NDTYPE] = {
#define AD_DTYPE(id, NAME, name, size, kind, letter) [id] = {#name, size, kind, letter},
#include "protocol/dtype.def"
#undef AD_DTYPE
};

static const ad_ufunc_row ufuncs[AD_UFUNC_LIMIT] = {
#define AD_UFUNC(id, name, nin, nout, rule, domain, cost, traits, test, doc, ...) \
    [id] = {#name, #domain, test, doc, #__VA_ARGS__, nin, nout, AD_RULE_##rule, cost, traits},
#include "protocol/ufunc.def"
#undef AD_UFUNC
};

static const ad_reduction_row reductions[AD_REDUCTION_LIMIT] = {
#define AD_REDUCTION(id, name, rule, accumulator, empty, domain, plain, kernel, traits, method, doc) \
    [id] = {#name, #domain, doc, AD_RULE_##rule, empty, AD_REDUCTION_##plain, AD_KERNEL_##kernel, traits, method},
#include "protocol/reduction.def"
#undef AD_REDUCTION
};

/* A call's row finds its own infer function in infer_call.c, by its id. */
static const ad_call_row calls[AD_CALL_LIMIT] = {
#define AD_CALL(id, name, nout, nin_min, nin_max, params, kind, guard, work, cost, infer, doc) \
    [id] = {#name, params, guard, doc, nout, nin_min, nin_max, AD_CALL_##kind, AD_WORK_##work, cost, id},
#include "protocol/call.def"
#undef AD_CALL
};

static const ad_request_row requests[AD_REQUEST_LIMIT] = {
#define AD_REQUEST(id, NAME, name, cls, check, cost, flags, fields, words, doc) \
    [id] = {#name, fields, words, doc, flags, AD_CLASS_##cls, AD_CHECK_##check, AD_COST_##cost},
#include "protocol/request.def"
#undef AD_REQUEST
};

const ad_counter_row ad__counters[AD_NCOUNTER] = {
#define AD_COUNTER(index, name, scope, kind, metric, scale, value, doc) [index] = {#name, doc},
#include "protocol/counter.def"
#undef AD_COUNTER
};

/* Tables that are indexed directly have no gaps: as many rows as the last id says. */
enum {
    DTYPE_ROWS = 0
#define AD_DTYPE(id, NAME, name, size, kind, letter) +1
#include "protocol/dtype.def"
#undef AD_DTYPE
    ,
    COUNTER_ROWS = 0
#define AD_COUNTER(...) +1
#include "protocol/counter.def"
#undef AD_COUNTER
};
_Static_assert((int)DTYPE_ROWS == (int)AD_NDTYPE, "dtype.def: wire ids must be dense from 0");
_Static_assert((int)COUNTER_ROWS == (int)AD_NCOUNTER, "counter.def: indices must be dense from 0");

/* Never called; an id of two rows is a repeated case, which does not compile. */
#define AD_UNIQUE(table) static __attribute__((unused)) void unique_##table(unsigned id)
AD_UNIQUE(dtype) {
    switch (id) {
#define AD_DTYPE(id, NAME, name, size, kind, letter) case id:
#include "protocol/dtype.def"
#undef AD_DTYPE
    default: break;
    }
}
AD_UNIQUE(ufunc) {
    switch (id) {
#define AD_UFUNC(id, ...) case id:
#include "protocol/ufunc.def"
#undef AD_UFUNC
    default: break;
    }
}
AD_UNIQUE(reduction) {
    switch (id) {
#define AD_REDUCTION(id, ...) case id:
#include "protocol/reduction.def"
#undef AD_REDUCTION
    default: break;
    }
}
AD_UNIQUE(call) {
    switch (id) {
#define AD_CALL(id, ...) case id:
#include "protocol/call.def"
#undef AD_CALL
    default: break;
    }
}
AD_UNIQUE(request) {
    switch (id) {
#define AD_REQUEST(id, ...) case id:
#include "protocol/request.def"
#undef AD_REQUEST
    default: break;
    }
}
AD_UNIQUE(counter) {
    switch (id) {
#define AD_COUNTER(index, ...) case index:
#include "protocol/counter.def"
#undef AD_COUNTER
    default: break;
    }
}

/* A row exists where it has a name. */
#define AD_FIND(rows, id) ((id) < sizeof rows / sizeof rows[0] && rows[id].name ? &rows[id] : NULL)

const ad_ufunc_row *ad__ufunc(uint64_t id) { return AD_FIND(ufuncs, id); }
const ad_reduction_row *ad__reduction(uint64_t id) { return AD_FIND(reductions, id); }
const ad_call_row *ad__call(uint64_t id) { return AD_FIND(calls, id); }
const ad_request_row *ad__request(uint64_t id) { return AD_FIND(requests, id); }
