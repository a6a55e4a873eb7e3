/* The shape and type rules of library calls, for infer.c. */
#ifndef AD_PROTOCOL_INFER_CALL_H
#define AD_PROTOCOL_INFER_CALL_H

#include "protocol/infer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ad__infer for one call, whose counts of inputs and parameters have been found to be the row's. */
int ad__infer_call(const ad_call_row *row, const ad_op *op, ad_result *result, ad_fault *fault);

#ifdef __cplusplus
}
#endif
#endif
