/* The C functions of the rows of ufunc.def and reduction.def, one of each. */
#include "client-c/client.h"
#include "protocol/rows_reduction.h"
#include "protocol/rows_ufunc.h"

#define ROW_1_1(name)                                                               \
    int ad_##name(ad_in x, ad_array **out) {                                        \
        return ad_ufunc_call(NULL, AD_UFUNC_##name, (const ad_in[]){x}, NULL, out); \
    }
#define ROW_2_1(name)                                                                  \
    int ad_##name(ad_in x, ad_in y, ad_array **out) {                                  \
        return ad_ufunc_call(NULL, AD_UFUNC_##name, (const ad_in[]){x, y}, NULL, out); \
    }
#define ROW_3_1(name)                                                                     \
    int ad_##name(ad_in x, ad_in y, ad_in z, ad_array **out) {                            \
        return ad_ufunc_call(NULL, AD_UFUNC_##name, (const ad_in[]){x, y, z}, NULL, out); \
    }
#define TWO_OUT(name, ...)                                                                       \
    ad_array *outs[AD_MAX_OUT];                                                                  \
    int status = ad_ufunc_call(NULL, AD_UFUNC_##name, (const ad_in[]){__VA_ARGS__}, NULL, outs); \
    if (!status) {                                                                               \
        *out0 = outs[0];                                                                         \
        *out1 = outs[1];                                                                         \
    }                                                                                            \
    return status
#define ROW_1_2(name) \
    int ad_##name(ad_in x, ad_array **out0, ad_array **out1) { TWO_OUT(name, x); }
#define ROW_2_2(name) \
    int ad_##name(ad_in x, ad_in y, ad_array **out0, ad_array **out1) { TWO_OUT(name, x, y); }

#define AD_UFUNC(id, name, nin, nout, rule, domain, cost, traits, test, doc, ...) ROW_##nin##_##nout(name)
#include "protocol/ufunc.def"
#undef AD_UFUNC

#define AD_REDUCTION(id, name, ...) \
    int ad_##name(ad_in x, ad_array **out) { return ad_reduce_call(AD_REDUCTION_##name, x, NULL, out); }
#include "protocol/reduction.def"
#undef AD_REDUCTION
