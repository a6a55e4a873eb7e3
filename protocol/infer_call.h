/* The type and shape rules of library calls, for infer.c. */
#ifndef AD_PROTOCOL_INFER_CALL_H
#define AD_PROTOCOL_INFER_CALL_H

#include "protocol/infer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ad__infer for a call whose numbers of inputs and parameters are the row's. */
int ad__infer_call(const ad_call_row *row, const ad_op *op, ad_result *result, ad_fault *fault);

/* One function ad__infer_<infer> for each name in call.def's column; several rows may share one. infer_call.c has
 * them, and a file infer_<subject>.c for each library. */
#define AD_CALL(id, name, nout, nin_min, nin_max, params, kind, guard, work, cost, infer, doc) \
    int ad__infer_##infer(const ad_op *op, ad_result *result, ad_fault *fault);
#include "protocol/call.def"
#undef AD_CALL

/* ---- shared by the rules ---- */

/* Get input i, which must be an array. AD_E_TYPE. */
int ad__array_input(const ad_op *op, int i, const ad_desc **out, ad_fault *fault);
/* Get input i, which must be an array of that dtype. AD_E_TYPE. */
int ad__typed_input(const ad_op *op, int i, int dtype, const ad_desc **out, ad_fault *fault);
/* Get output 0, for rules in which it decides the result's shape. AD_E_VALUE. */
int ad__given_output(const ad_op *op, const ad_desc **out, ad_fault *fault);
/* Check that a result is not larger than any array may be. AD_E_VALUE. */
int ad__result_check(const ad_result *result, ad_fault *fault);
/* Report "<operation>: input i <what>". AD_E_VALUE. */
int ad__bad_shape(const ad_op *op, int i, const char *what, ad_fault *fault);
/* Check that parameter 0 is an axis of d. AD_E_VALUE. */
int ad__check_axis(const ad_op *op, const ad_desc *d, ad_fault *fault);
void ad__set_result(ad_result *result, int dtype, int ndim, const int64_t *shape);
bool ad__shapes_equal(const int64_t *a, const int64_t *b, int n);

#ifdef __cplusplus
}
#endif
#endif
