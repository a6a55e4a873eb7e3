/* Types and shapes of results, and checks of operations: see infer.h. */
#include "protocol/desc.h"
#include "protocol/infer.h"
#include "protocol/infer_call.h"
#include "protocol/text.h"
#include "protocol/rows_request.h"

#include <string.h>

/* ---- loops ---- */

static int reject_bool(const ad_ufunc_row *row, ad_fault *fault) {
    if (strcmp(row->name, "subtract") == 0)
        return ad__fault(fault, AD_E_TYPE,
                         "numpy boolean subtract, the `-` operator, is not supported, use the bitwise_xor, the `^` "
                         "operator, or the logical_xor function instead.");
    if (strcmp(row->name, "negative") == 0)
        return ad__fault(fault, AD_E_TYPE,
                         "The numpy boolean negative, the `-` operator, is not supported, use the `~` operator or the "
                         "logical_not function instead.");
    return ad__fault(fault, AD_E_TYPE,
                     "ufunc '%s' did not contain a loop with signature matching types <class "
                     "'numpy.dtypes.BoolDType'> -> None",
                     row->name);
}

static int report_no_loop(const char *name, ad_fault *fault) {
    return ad__fault(fault, AD_E_TYPE,
                     "ufunc '%s' not supported for the input types, and the inputs could not be safely coerced to any "
                     "supported types according to the casting rule ''safe''",
                     name);
}

static bool is_integer(int type) { return (AD_M_INT & AD_BIT(type)) != 0; }

/* Find the loop of a rule for operands of these types; AD_NO_DTYPE: there is none. */
static int find_loop(const ad_rule_row *rule, int n, const uint8_t *types) {
    const int type = ad__promote_all(n, types);
    uint32_t common = rule->loops;
    bool numbers = false;

    if (rule->loops & AD_BIT(type)) return type;
    if (type == AD_BOOL || is_integer(type)) {
        if (rule->fallback == AD_SUMINT) return ad__dtypes[type].kind == 'u' ? AD_UINT64 : AD_INT64;
        if (rule->fallback < AD_NDTYPE) return rule->fallback;
    }
    if ((type == AD_FLOAT16 || type == AD_BFLOAT16) && rule->fallback < AD_NDTYPE) return rule->fallback;
    /* Each operand must cast safely by itself: int8 and uint8 both cast to float16, although together they are
     * int16. A Python scalar counts only where it decided the type. */
    for (int i = 0; i < n; i++)
        if (types[i] < AD_NDTYPE && types[i] != AD_BOOL) {
            common &= ad__safe_types(types[i]);
            numbers = true;
        }
    if (!numbers || !is_integer(type)) common &= ad__safe_types(type);
    return common != 0 ? __builtin_ctz(common) : AD_NO_DTYPE;
}

/* Collect the types of the operands that have the loop's type, and return their number. -1: another operand cannot be
 * cast to its fixed type. */
static int collect_loop_types(const ad_ufunc_row *row, const uint8_t *types, uint8_t *own) {
    const ad_rule_row *rule = &ad__rules[row->rule];
    int n = 0;

    for (int i = 0; i < row->nin; i++) {
        if (rule->in[i] == AD_CODE_T) own[n++] = types[i];
        else if (rule->in[i] == AD_CODE_L && types[i] != AD_WEAK_INT &&
                 (types[i] >= AD_NDTYPE || !ad__can_cast(types[i], AD_INT64, AD_CAST_SAFE)))
            return -1;
    }
    return n;
}

int ad__resolve_ufunc(const ad_ufunc_row *row, const uint8_t *types, int dtype, int *loop, ad_fault *fault) {
    const ad_rule_row *rule = &ad__rules[row->rule];
    uint8_t own[3];
    int n = collect_loop_types(row, types, own), found;

    if (n < 0) return report_no_loop(row->name, fault);
    found = find_loop(rule, n, own);
    if (rule->fallback == AD_NEVER && dtype == AD_NO_DTYPE && ad__promote_all(n, own) == AD_BOOL)
        return reject_bool(row, fault);
    if (dtype != AD_NO_DTYPE) {
        if (rule->out[0] != AD_CODE_T && found != AD_NO_DTYPE && ad__code_dtype(rule->out[0], found) == dtype)
            dtype = found; /* dtype= is the output's type */
        else if (dtype >= AD_NDTYPE || !(rule->loops & AD_BIT(dtype)))
            return ad__fault(fault, AD_E_TYPE,
                             "No loop matching the specified signature and casting was found for ufunc %s", row->name);
        found = dtype;
    }
    if (found == AD_NO_DTYPE) return report_no_loop(row->name, fault);
    *loop = found;
    return 0;
}

int ad__resolve_reduction(const ad_reduction_row *row, int type, int dtype, int *loop, ad_fault *fault) {
    const ad_rule_row *rule = &ad__rules[row->rule];
    const uint8_t asked = (uint8_t)(dtype == AD_NO_DTYPE ? type : dtype);
    int found = find_loop(rule, 1, &asked);

    if (found == AD_NO_DTYPE) return report_no_loop(row->name, fault);
    *loop = found;
    return 0;
}

/* ---- ufuncs and reductions ---- */

const char *ad__op_name(const ad_op *op) {
    const ad_ufunc_row *ufunc = op->opcode == AD_REQ_UFUNC ? ad__ufunc(op->row) : NULL;
    const ad_reduction_row *reduction = op->opcode == AD_REQ_REDUCE ? ad__reduction(op->row) : NULL;
    const ad_call_row *call = op->opcode == AD_REQ_CALL || op->opcode == AD_REQ_QUERY ? ad__call(op->row) : NULL;

    if (op->opcode == AD_REQ_LAUNCH) return "launch";
    return ufunc ? ufunc->name : reduction ? reduction->name : call ? call->name : "?";
}

bool ad__op_updates(const ad_op *op) {
    const ad_call_row *row = op->opcode == AD_REQ_CALL ? ad__call(op->row) : NULL;
    return row && row->kind == AD_CALL_UPDATE;
}

static bool is_bool(const ad_operand *x) {
    return x->is_scalar ? x->scalar.kind == AD_SCALAR_BOOL : x->desc.dtype == AD_BOOL;
}

static int check_rule_loop(const ad_op *op, const ad_rule_row *rule, ad_fault *fault) {
    if (op->loop >= AD_NDTYPE || !(rule->loops & AD_BIT(op->loop)))
        return ad__fault(fault, AD_E_TYPE, "%s: there is no loop for %s", ad__op_name(op),
                         op->loop < AD_NDTYPE ? ad__dtypes[op->loop].name : "this type");
    return 0;
}

static int reject_count(const ad_op *op, const char *what, ad_fault *fault) {
    return ad__fault(fault, AD_E_VALUE, "%s: the number of %s is wrong", ad__op_name(op), what);
}

/* Check the numbers of inputs and parameters that a row fixes. AD_E_VALUE. */
static int check_counts(const ad_op *op, int least, int most, int params, ad_fault *fault) {
    if (op->nin < least || op->nin > most) return reject_count(op, "inputs", fault);
    return op->nparam == params ? 0 : reject_count(op, "parameters", fault);
}

static int infer_ufunc(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_ufunc_row *row = ad__ufunc(op->row);
    const ad_operand *in[4];
    int status, ndim;

    if (!row) return ad__fault(fault, AD_E_UNSUPPORTED, "there is no ufunc %d", op->row);
    status = check_counts(op, row->nin, row->nin + 1, 0, fault);
    if (!status) status = check_rule_loop(op, &ad__rules[row->rule], fault);
    if (status) return status;
    for (int i = 0; i < op->nin; i++) in[i] = &op->operand[op->nout + i];
    if (op->nin > row->nin && !is_bool(in[row->nin]))
        return ad__fault(fault, AD_E_TYPE, "%s: where must be of type bool", row->name);
    status = ad__broadcast(op->nin, in, &ndim, result[0].shape, fault);
    if (status) return status;
    for (int k = 0; k < row->nout; k++) {
        result[k].dtype = (uint8_t)ad__code_dtype(ad__rules[row->rule].out[k], op->loop);
        result[k].ndim = (uint8_t)ndim;
        if (k > 0 && ndim > 0) memcpy(result[k].shape, result[0].shape, (size_t)ndim * sizeof result[0].shape[0]);
    }
    return 0;
}

static int check_reduce_params(const ad_op *op, const ad_reduction_row *row, int ndim, ad_fault *fault) {
    const ad_scalar *axes = &op->param[0], *ddof = &op->param[1], *initial = &op->param[2];

    if (axes->kind != AD_SCALAR_INT || axes->as.i < 0 || axes->as.i >> ndim != 0)
        return ad__fault(fault, AD_E_VALUE, "%s: an axis is out of bounds for an array of dimension %d", row->name,
                         ndim);
    if (ddof->kind != AD_SCALAR_NIL && ddof->kind != AD_SCALAR_INT && ddof->kind != AD_SCALAR_FLOAT)
        return ad__fault(fault, AD_E_TYPE, "%s: ddof must be a number", row->name);
    if (initial->kind != AD_SCALAR_NIL && row->rule != AD_RULE_SUM && row->rule != AD_RULE_EXTREME)
        return ad__fault(fault, AD_E_TYPE, "%s takes no initial value", row->name);
    return 0;
}

/* Check that a reduction without an identity has an element or an initial value. AD_E_VALUE. */
static int check_identity(const ad_op *op, const ad_reduction_row *row, bool nothing, ad_fault *fault) {
    if (row->empty != AD_EMPTY_ERROR || op->param[2].kind != AD_SCALAR_NIL) return 0;
    if (nothing && row->rule == AD_RULE_INDEX)
        return ad__fault(fault, AD_E_VALUE, "attempt to get %s of an empty sequence", row->name);
    if (nothing)
        return ad__fault(fault, AD_E_VALUE, "zero-size array to reduction operation %s which has no identity",
                         row->name);
    if (op->nin > 1 && row->rule == AD_RULE_EXTREME)
        return ad__fault(fault, AD_E_VALUE,
                         "reduction operation '%s' does not have an identity, so to use a where mask one has to "
                         "specify 'initial'",
                         row->name);
    return 0;
}

static int check_reduce_mask(const ad_op *op, const ad_desc *x, const char *name, ad_fault *fault) {
    const ad_operand *mask = &op->operand[op->nout + 1];
    int64_t strides[AD_MAX_NDIM];
    ad_desc view;

    if (!is_bool(mask)) return ad__fault(fault, AD_E_TYPE, "%s: where must be of type bool", name);
    if (mask->is_scalar) return 0;
    return ad__broadcast_to(&mask->desc, x->ndim, x->shape, strides, &view, fault);
}

static int infer_reduce(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_reduction_row *row = ad__reduction(op->row);
    const ad_operand *x = &op->operand[op->nout];
    const int ndim = row && op->nin > 0 && !x->is_scalar ? x->desc.ndim : 0;
    bool nothing = false;
    int status;

    if (!row) return ad__fault(fault, AD_E_UNSUPPORTED, "there is no reduction %d", op->row);
    status = check_counts(op, 1, 2, 3, fault);
    if (!status) status = check_rule_loop(op, &ad__rules[row->rule], fault);
    if (!status && x->is_scalar) status = ad__fault(fault, AD_E_TYPE, "%s: the input must be an array", row->name);
    if (!status) status = check_reduce_params(op, row, ndim, fault);
    if (!status && op->nin > 1) status = check_reduce_mask(op, &x->desc, row->name, fault);
    if (status) return status;
    result->dtype = (uint8_t)ad__code_dtype(ad__rules[row->rule].out[0], op->loop);
    result->ndim = 0;
    for (int i = 0; i < ndim; i++) {
        if (!(op->param[0].as.i >> i & 1)) result->shape[result->ndim++] = x->desc.shape[i];
        else if (x->desc.shape[i] == 0) nothing = true;
    }
    return check_identity(op, row, nothing, fault);
}

/* ---- any operation ---- */

int ad__result_check(const ad_result *result, ad_fault *fault) {
    int64_t count;

    return ad__shape_count(result->ndim, result->shape, result->dtype, &count, fault);
}

static int infer_call(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_call_row *row = ad__call(op->row);
    int status;

    if (!row || (row->kind == AD_CALL_ASK) != (op->opcode == AD_REQ_QUERY))
        return ad__fault(fault, AD_E_UNSUPPORTED, "there is no such call: %d", op->row);
    if (op->loop >= AD_NDTYPE) return ad__fault(fault, AD_E_TYPE, "%s: there is no loop for this type", row->name);
    status = check_counts(op, row->nin_min, row->nin_max, (int)strlen(row->params), fault);
    return !status ? ad__infer_call(row, op, result, fault) : status;
}

static int count_ufunc_outputs(const ad_op *op) { return ad__ufunc(op->row)->nout; }
static int count_reduction_outputs(const ad_op *op) { return (void)op, 1; }
static int count_call_outputs(const ad_op *op) { return ad__call(op->row)->nout; }

/* Operations by the opcode of their message. */
static const struct operation {
    int (*infer)(const ad_op *op, ad_result *result, ad_fault *fault);
    int (*count_outputs)(const ad_op *op); /* outputs of an operation whose row exists */
} operations[AD_REQUEST_LIMIT] = {
    [AD_REQ_UFUNC] = {infer_ufunc, count_ufunc_outputs},
    [AD_REQ_REDUCE] = {infer_reduce, count_reduction_outputs},
    [AD_REQ_CALL] = {infer_call, count_call_outputs},
    [AD_REQ_QUERY] = {infer_call, count_call_outputs},
};

int ad__infer(const ad_op *op, ad_result *result, ad_fault *fault) {
    const struct operation *of = &operations[op->opcode];
    int status = of->infer ? of->infer(op, result, fault)
                           : ad__fault(fault, AD_E_UNSUPPORTED, "not an operation: %d", op->opcode);

    for (int k = 0; !status && k < of->count_outputs(op); k++) status = ad__result_check(&result[k], fault);
    return status;
}

static bool has_repeated_elements(const ad_desc *d) {
    bool found = false;
    for (int i = 0; i < d->ndim; i++) {
        if (d->shape[i] == 0) return false;
        found |= d->shape[i] > 1 && d->strides[i] == 0;
    }
    return found;
}

static bool has_result_shape(const ad_desc *d, const ad_result *r) {
    return d->ndim == r->ndim && (d->ndim == 0 || memcmp(d->shape, r->shape, d->ndim * sizeof *d->shape) == 0);
}

/* Tell whether an output can hold the result. A ufunc's result is broadcast to its outputs, as when a scalar fills an
 * array. */
static bool can_hold_result(const ad_op *op, const ad_desc *out, const ad_result *result) {
    const ad_desc inferred = {.shape = result->shape, .strides = result->shape, .ndim = result->ndim};
    const ad_desc *first = &op->operand[0].desc;
    int64_t strides[AD_MAX_NDIM];
    ad_desc view;

    if (op->opcode != AD_REQ_UFUNC) return has_result_shape(out, result);
    if (out->ndim != first->ndim || (out->ndim > 0 && memcmp(out->shape, first->shape, out->ndim * sizeof *out->shape)))
        return false;
    return has_result_shape(out, result) || !ad__broadcast_to(&inferred, out->ndim, out->shape, strides, &view, NULL);
}

static int report_wrong_shape(const ad_op *op, const ad_desc *out, const ad_result *result, ad_fault *fault) {
    char is[100], must[100];
    ad_text_buffer a = {is, sizeof is, 0}, b = {must, sizeof must, 0};

    ad__text_shape(&a, out->ndim, out->shape);
    ad__text_shape(&b, result->ndim, result->shape);
    return ad__fault(fault, AD_E_VALUE, "%s: the output has shape %s, the result %s", ad__op_name(op), is, must);
}

static int check_output(const ad_op *op, int k, const ad_result *result, ad_fault *fault) {
    const ad_operand *out = &op->operand[k];

    if (out->is_scalar || out->desc.dtype >= AD_NDTYPE)
        return ad__fault(fault, AD_E_TYPE, "%s: output %d is not an array", ad__op_name(op), k);
    if (op->opcode == AD_REQ_QUERY && out->desc.dtype != result->dtype)
        return ad__fault(fault, AD_E_TYPE, "%s: output %d must be of type %s, not %s", ad__op_name(op), k,
                         ad__dtypes[result->dtype].name, ad__dtypes[out->desc.dtype].name);
    if ((out->desc.form == AD_SIZED) != (op->opcode == AD_REQ_QUERY))
        return ad__fault(fault, AD_E_VALUE, "%s: output %d has the wrong form", ad__op_name(op), k);
    if (out->desc.form == AD_SIZED) return 0;
    if (!can_hold_result(op, &out->desc, result)) return report_wrong_shape(op, &out->desc, result, fault);
    if (out->desc.form == AD_VIEW && has_repeated_elements(&out->desc))
        return ad__fault(fault, AD_E_VALUE, "%s: output %d repeats elements", ad__op_name(op), k);
    return 0;
}

static bool has_same_dimensions(const ad_desc *a, const ad_desc *b) {
    if (a->ndim != b->ndim) return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->shape[i] != b->shape[i]) return false;
    return true;
}

/* Tell whether this is a valid ufunc of the most frequent kind: no mask, and inputs that are scalars or have the
 * outputs' shape. The full check decides on others. */
static bool is_simple_valid_ufunc(const ad_op *op) {
    const ad_ufunc_row *row = op->opcode == AD_REQ_UFUNC ? ad__ufunc(op->row) : NULL;

    if (!row || op->nin != row->nin || op->nout != row->nout || op->nparam != 0) return false;
    if (op->loop >= AD_NDTYPE || !(ad__rules[row->rule].loops & AD_BIT(op->loop))) return false;
    for (int i = 0; i < op->nout + op->nin; i++) {
        const ad_operand *x = &op->operand[i];
        if (x->is_scalar && i >= op->nout) continue;
        if (x->is_scalar || x->desc.dtype >= AD_NDTYPE || x->desc.form == AD_SIZED) return false;
        if (i < op->nout && x->desc.form == AD_VIEW && has_repeated_elements(&x->desc)) return false;
        if (!has_same_dimensions(&x->desc, &op->operand[0].desc)) return false;
    }
    return true;
}

int ad__check_op(const ad_op *op, ad_fault *fault) {
    ad_result result[AD_MAX_OUT];
    int status;

    if (is_simple_valid_ufunc(op)) return 0;
    status = ad__infer(op, result, fault);
    if (!status && op->nout != operations[op->opcode].count_outputs(op)) status = reject_count(op, "outputs", fault);
    for (int k = 0; !status && k < op->nout; k++) status = check_output(op, k, &result[k], fault);
    return status;
}
