/* Result types and shapes: NumPy 2's promotion (NEP 50) and shape rules, the same code in client and server. */
#ifndef AD_PROTOCOL_INFER_H
#define AD_PROTOCOL_INFER_H

#include "protocol/op.h"
#include "protocol/tables.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The type of an input for promotion: a dtype, or a Python scalar's weak type. */
enum { AD_WEAK_INT = 64, AD_WEAK_FLOAT = 65, AD_WEAK_COMPLEX = 66 };

typedef enum ad_casting { AD_CAST_NO, AD_CAST_EQUIV, AD_CAST_SAFE, AD_CAST_SAME_KIND, AD_CAST_UNSAFE } ad_casting;

/* numpy.promote_types; bfloat16 with float16 gives float32, with integers as ml_dtypes does. Never fails. */
int ad__promote(int a, int b);
/* Promotion of n types, weak ones last (numpy.result_type). All weak: int64, float64 or complex128. */
int ad__promote_all(int n, const uint8_t *types);
/* The set of dtypes (AD_BIT) to which a dtype casts safely. */
uint32_t ad__safe_types(int from);
/* numpy.can_cast. */
bool ad__can_cast(int from, int to, ad_casting casting);
/* dtype of an operand with this code under loop type T; AD_NO_DTYPE for AD_CODE_N. */
int ad__code_dtype(int code, int loop);
/* The loop of a ufunc or reduction for inputs of these types (rule.def says how). dtype: AD_NO_DTYPE, or the loop that
 * the caller asks for by dtype= . AD_E_TYPE with NumPy's wording, naming the function. */
int ad__resolve_ufunc(const ad_ufunc_row *row, const uint8_t *types, int dtype, int *loop, ad_fault *fault);
int ad__resolve_reduction(const ad_reduction_row *row, int type, int dtype, int *loop, ad_fault *fault);

/* What an output must be. */
typedef struct ad_result {
    uint8_t dtype; /* the loop's own; a described output of another dtype is cast to */
    uint8_t ndim;
    int64_t shape[AD_MAX_NDIM];
} ad_result;

/* Check an operation's row, counts, loop, parameters, input types and shapes, and say what its outputs must be
 * (result: AD_MAX_OUT places). Looks at descriptions only, never at data. The client uses it to make outputs, the
 * server to check them. AD_E_TYPE, AD_E_VALUE, AD_E_UNSUPPORTED; the fault names the operation and the argument. */
int ad__infer(const ad_op *op, ad_result *result, ad_fault *fault);
/* The same, and that the counts are the row's, that every output has the inferred shape (a ufunc's outputs: one shape,
 * to which the inferred one broadcasts; outputs of ASK calls: AD_SIZED, of the inferred dtype), and that no output is a
 * scalar or has a zero stride over more than one element. */
int ad__check_op(const ad_op *op, ad_fault *fault);
/* Name of an operation for messages: "add", "sum", "sort"; "?" for none. */
const char *ad__op_name(const ad_op *op);
/* True for calls of kind UPDATE: they change their output in place, and leave it as it was when they fail. */
bool ad__op_updates(const ad_op *op);

#ifdef __cplusplus
}
#endif
#endif
