/* The shape and type rules of library calls, for infer.c. */
#ifndef AD_PROTOCOL_INFER_CALL_H
#define AD_PROTOCOL_INFER_CALL_H

#include "protocol/infer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ad__infer for one call, whose counts of inputs and parameters have been found to be the row's. */
int ad__infer_call(const ad_call_row *row, const ad_op *op, ad_result *result, ad_fault *fault);

/* One function ad__infer_<infer> for each name in call.def's column; several rows may share one. They stand in
 * infer_call.c and in a file infer_<subject>.c for each library. */
#define AD_CALL(id, name, nout, nin_min, nin_max, params, kind, guard, infer, doc) \
    int ad__infer_##infer(const ad_op *op, ad_result *result, ad_fault *fault);
#include "protocol/call.def"
#undef AD_CALL

/* ---- what they have in common ---- */

/* Input i as an array; AD_E_TYPE. */
int ad__array_input(const ad_op *op, int i, const ad_desc **out, ad_fault *fault);
/* The same, of one dtype. */
int ad__typed_input(const ad_op *op, int i, int dtype, const ad_desc **out, ad_fault *fault);
/* Output 0, where the rule needs it to say what it must be. */
int ad__given_output(const ad_op *op, const ad_desc **out, ad_fault *fault);
/* What comes out may be no bigger than any array: AD_E_VALUE. */
int ad__result_check(const ad_result *result, ad_fault *fault);
/* AD_E_VALUE: "<operation>: input i <what>". */
int ad__bad_shape(const ad_op *op, int i, const char *what, ad_fault *fault);
/* Parameter 0 as an axis of d. */
int ad__check_axis(const ad_op *op, const ad_desc *d, ad_fault *fault);
void ad__set_result(ad_result *result, int dtype, int ndim, const int64_t *shape);
bool ad__shapes_equal(const int64_t *a, const int64_t *b, int n);

#ifdef __cplusplus
}
#endif
#endif
