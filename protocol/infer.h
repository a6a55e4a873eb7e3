/* Types and shapes of results: NumPy 2's promotion (NEP 50) and shape rules, the same code in client and server. */
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

/* Promote two types as numpy.promote_types does. bfloat16 with float16 gives float32, with integers what ml_dtypes
 * gives. Never fails. */
int ad__promote(int a, int b);
/* Promote n types, weak ones last, as numpy.result_type does. If all are weak: int64, float64 or complex128. */
int ad__promote_all(int n, const uint8_t *types);
/* The set of dtypes (AD_BIT) to which a dtype casts safely. */
uint32_t ad__safe_types(int from);
/* Tell whether a type can be cast to another one, as numpy.can_cast says. */
bool ad__can_cast(int from, int to, ad_casting casting);
/* The dtype of an operand with this code in a loop of that type; AD_NO_DTYPE for AD_CODE_N. */
int ad__code_dtype(int code, int loop);
/* Find the loop of a ufunc or reduction for inputs of these types, by the rules of rule.def. dtype: the type that the
 * caller asks for by dtype=, or AD_NO_DTYPE. AD_E_TYPE with NumPy's wording, naming the function. */
int ad__resolve_ufunc(const ad_ufunc_row *row, const uint8_t *types, int dtype, int *loop, ad_fault *fault);
int ad__resolve_reduction(const ad_reduction_row *row, int type, int dtype, int *loop, ad_fault *fault);

/* The type and shape of an output. */
typedef struct ad_result {
    uint8_t dtype; /* type that the loop computes; an output described with another dtype is cast to that */
    uint8_t ndim;
    int64_t shape[AD_MAX_NDIM];
} ad_result;

/* Check an operation's row, counts, loop, parameters, input types and shapes, and infer its outputs (result:
 * AD_MAX_OUT places). This reads descriptions only, never data. Clients make outputs by it, the server checks them.
 * AD_E_TYPE, AD_E_VALUE, AD_E_UNSUPPORTED; the fault names the operation and the argument. */
int ad__infer(const ad_op *op, ad_result *result, ad_fault *fault);
/* Check an operation as ad__infer does, and its outputs as well. There are as many as the row says, each with the
 * inferred shape. A ufunc's outputs have one shape, to which the inferred one broadcasts; those of ASK calls are
 * AD_SIZED and of the inferred dtype. No output is a scalar, or has a zero stride over more than one element.
 * AD_E_TYPE, AD_E_VALUE, AD_E_UNSUPPORTED. */
int ad__check_op(const ad_op *op, ad_fault *fault);
/* The name of an operation for messages: "add", "sum", "sort"; "?": it is unknown. */
const char *ad__op_name(const ad_op *op);
/* Tell whether an operation is a call of kind UPDATE, which changes its output in place, and leaves it as it was when
 * it fails. */
bool ad__op_updates(const ad_op *op);

#ifdef __cplusplus
}
#endif
#endif
