/* Universal functions: from inputs to an encoded operation and its outputs. This is the hot path of programs with small
 * arrays. */
#include <string.h>

#include "client-c/client.h"
#include "protocol/rows_request.h"
#include "protocol/rows_ufunc.h"
#include "protocol/text.h"

#define MAX_INPUTS 4 /* three inputs and a mask */

typedef struct ufunc_call {
    ad_session *session;
    const ad_ufunc_row *row;
    const ad_rule_row *rule;
    const ad_options *options; /* NULL: none */
    int ndim;
    const int64_t *shape; /* shape of the result */
    ad_op op;
    uint8_t types[MAX_INPUTS];
    ad_operand operand[AD_MAX_OUT + MAX_INPUTS];
    int64_t storage[AD_MAX_NDIM];
} ufunc_call;

/* ---- sending ---- */

int ad__send_op(ad_session *s, ad_op *op, ad_array *const *made) {
    if (!AD_LIKELY(!ad__recording)) return ad__record_op(s, op, made);
    int status = ad__begin_telling(s);
    if (status) return status;
    for (int k = 0; k < op->nout; k++) {
        if (!made[k]) {
            ad__mirror_drop(s, op->operand[k].desc.buffer);
            continue;
        }
        ad__array_name(made[k]);
        op->operand[k].desc.buffer = made[k]->buffer;
    }
    size_t mark = s->output.gathered.size;
    status = ad__commit(s, mark, ad__encode_op(&s->output.gathered, op));
    if (status && status != AD_E_INTERRUPTED) /* nothing has been sent, so there is no buffer to free */
        for (int k = 0; k < op->nout; k++)
            if (made[k]) made[k]->buffer = 0;
    return status;
}

int ad__hand_out(int status, int n, ad_array *const *made, ad_array **outs) {
    for (int k = 0; k < n; k++) {
        if (!status) outs[k] = made[k];
        else ad_array_release(made[k]);
    }
    return status;
}

/* ---- types ---- */

static int get_type_index(int type) { return type < AD_NDTYPE ? type : type - AD_WEAK_INT + AD_NDTYPE; }

/* Make weak integers beyond int64 uint64, when no input has a type. */
static void widen_large_integers(ufunc_call *c, const ad_in *in) {
    for (int i = 0; i < c->row->nin; i++)
        if (in[i].array || in[i].value.dtype >= 0) return;
    for (int i = 0; i < c->row->nin; i++)
        if (in[i].value.kind == AD_VALUE_UINT && in[i].value.as.u > INT64_MAX) c->types[i] = AD_UINT64;
}

static int infer_loop(ufunc_call *c, const ad_in *in, int *loop) {
    ad_fault fault;
    int dtype = c->options && c->options->dtype >= 0 ? c->options->dtype : AD_NO_DTYPE;
    widen_large_integers(c, in);
    if (ad__resolve_ufunc(c->row, c->types, dtype, loop, &fault) != 0) return ad__fail_fault(&fault);
    return 0;
}

/* Return the rank of a dtype's kind: bool 0, integers 1, floats 2, complex 3. */
static int get_kind_rank(int dtype) {
    switch (ad__dtypes[dtype].kind) {
    case 'b': return 0;
    case 'f': return 2;
    case 'c': return 3;
    default: return 1;
    }
}

/* Return the dtype of a value that is cast to out: out's, if the value is weak and of no higher kind. */
static int find_scalar_dtype(const ad_value *v, int out) {
    int dtype = ad__value_dtype(v);
    return v->dtype < 0 && get_kind_rank(dtype) <= get_kind_rank(out) ? out : dtype;
}

static int fail_cast(const ufunc_call *c, const char *what, int k, int n, int from, int to) {
    char number[8] = "";
    if (n > 1) {
        number[0] = ' ';
        number[1] = (char)('0' + k);
    }
    return ad__fail(AD_E_TYPE, "Cannot cast ufunc '%s' %s%s from dtype('%s') to dtype('%s') with casting rule '%s'",
                    c->row->name, what, number, ad__dtypes[from].name, ad__dtypes[to].name,
                    ad__casting_name(c->options->casting));
}

/* Check casting= for the inputs. Promotion casts safely, so only dtype= or a stricter rule needs a check. */
static int check_input_casts(const ufunc_call *c, const ad_in *in) {
    const ad_options *o = c->options;
    if (o->dtype < 0 && o->casting >= AD_CAST_SAFE) return 0;
    for (int i = 0; i < c->row->nin; i++) {
        int to = ad__code_dtype(c->rule->in[i], c->op.loop),
            from = in[i].array ? c->types[i] : find_scalar_dtype(&in[i].value, to);
        if (!ad__can_cast(from, to, (ad_casting)o->casting)) return fail_cast(c, "input", i, c->row->nin, from, to);
    }
    return 0;
}

static int resolve_loop(ufunc_call *c, const ad_in *in) {
    const ad_ufunc_row *row = c->row;
    _Atomic uint8_t *known = NULL;
    int loop, status;
    if (row->nin <= 2 && (!c->options || c->options->dtype < 0)) {
        int j = row->nin == 2 ? get_type_index(c->types[1]) : 0;
        known = &c->session->loops[c->op.row][get_type_index(c->types[0])][j];
        loop = atomic_load_explicit(known, memory_order_relaxed) - 1;
        if (AD_LIKELY(loop >= 0)) {
            c->op.loop = (uint8_t)loop;
            return c->options ? check_input_casts(c, in) : 0;
        }
    }
    status = infer_loop(c, in, &loop);
    if (status) return status;
    c->op.loop = (uint8_t)loop;
    if (known &&
        (in[0].array || in[row->nin - 1].array)) /* without an array a value may be larger than its type's code tells */
        atomic_store_explicit(known, (uint8_t)(loop + 1), memory_order_relaxed);
    return c->options ? check_input_casts(c, in) : 0;
}

/* ---- weak integers beyond the loop's type ---- */

/* Replace the comparison with an integer beyond the type's range, which is the same for all elements, by x == x or x !=
 * x. False: the operation is no comparison, or has no array. */
static bool fold_constant_comparison(ufunc_call *c, int scalar, int side) {
    static const struct {
        uint8_t row, above, below; /* result of x (row) v for a v above and below every x */
    } rows[] = {{AD_UFUNC_equal, 0, 0},      {AD_UFUNC_not_equal, 1, 1}, {AD_UFUNC_less, 1, 0},
                {AD_UFUNC_less_equal, 1, 0}, {AD_UFUNC_greater, 0, 1},   {AD_UFUNC_greater_equal, 0, 1}};
    ad_operand *in = c->operand + c->op.nout;
    if (in[1 - scalar].is_scalar) return false;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].row != c->op.row) continue;
        bool mirrored = scalar == 0 && rows[i].above != rows[i].below;
        bool truth = ((side > 0) != mirrored) ? rows[i].above : rows[i].below;
        in[scalar] = in[1 - scalar];
        c->op.row = truth ? AD_UFUNC_equal : AD_UFUNC_not_equal;
        return true;
    }
    return false;
}

static int check_scalars(ufunc_call *c, const ad_in *in) {
    const ad_operand *operand = c->operand + c->op.nout;
    for (int i = 0; i < c->row->nin; i++) {
        if (!operand[i].is_scalar) continue;
        int dtype = ad__code_dtype(c->rule->in[i], c->op.loop), side = ad__value_side(&in[i].value, dtype);
        if (side && !fold_constant_comparison(c, i, side)) return ad__fail_bounds(&in[i].value, dtype);
        if (c->op.row == AD_UFUNC_power && i == 1 && operand[i].scalar.kind == AD_SCALAR_INT &&
            operand[i].scalar.as.i < 0 && (AD_M_INT & AD_BIT(c->op.loop)))
            return ad__fail(AD_E_VALUE, "Integers to negative integer powers are not allowed.");
    }
    return 0;
}

/* ---- shapes ---- */

static inline bool has_same_shape(int an, const int64_t *a, int bn, const int64_t *b) {
    if (an != bn) return false;
    for (int i = 0; i < an; i++)
        if (a[i] != b[i]) return false;
    return true;
}

static int broadcast_inputs(ufunc_call *c) {
    const ad_operand *in[MAX_INPUTS];
    ad_fault fault;
    for (int i = 0; i < c->op.nin; i++) in[i] = &c->operand[c->op.nout + i];
    if (ad__broadcast(c->op.nin, in, &c->ndim, c->storage, &fault)) return ad__fail_fault(&fault);
    c->shape = c->storage;
    return 0;
}

static int find_result_shape(ufunc_call *c) {
    const ad_operand *in = c->operand + c->op.nout;
    c->ndim = 0;
    c->shape = NULL;
    for (int i = 0; i < c->op.nin; i++) {
        if (in[i].is_scalar || in[i].desc.ndim == 0) continue;
        if (!c->shape) {
            c->ndim = in[i].desc.ndim;
            c->shape = in[i].desc.shape;
        } else if (!has_same_shape(c->ndim, c->shape, in[i].desc.ndim, in[i].desc.shape)) {
            return broadcast_inputs(c);
        }
    }
    return 0;
}

static int fail_out_shape(const ad_array *out, int ndim, const int64_t *shape) {
    char is[100], must[100];
    ad_text_buffer a = {is, sizeof is, 0}, b = {must, sizeof must, 0};
    ad__text_shape(&a, out->ndim, out->shape);
    ad__text_shape(&b, ndim, shape);
    return ad__fail(AD_E_VALUE, "non-broadcastable output operand with shape %s doesn't match the broadcast shape %s",
                    is, must);
}

/* ---- outputs ---- */

static bool has_repeated_elements(const ad_array *a) {
    for (int i = 0; i < a->ndim; i++)
        if (a->shape[i] > 1 && a->strides[i] == 0 && a->count) return true;
    return false;
}

/* Check one out=: the result is broadcast to its shape, and cast to its type. AD_E_TYPE, AD_E_VALUE. */
static int check_out(ufunc_call *c, int k, const ad_array *out) {
    int from = ad__code_dtype(c->rule->out[k], c->op.loop);
    ad_desc result = {.shape = c->shape, .strides = c->shape, .ndim = (uint8_t)c->ndim}, view;
    int64_t strides[AD_MAX_NDIM];
    if (out->session != c->session) return ad__fail_strangers(c->session, out->session);
    if (!ad__can_cast(from, out->dtype, (ad_casting)c->options->casting))
        return fail_cast(c, "output", k, c->row->nout, from, out->dtype);
    if (ad__check_writable(out, "output array")) return AD_E_VALUE;
    if (has_repeated_elements(out)) return ad__fail(AD_E_VALUE, "output array is read-only: it repeats elements");
    if (has_same_shape(c->ndim, c->shape, out->ndim, out->shape)) return 0;
    if (ad__broadcast_to(&result, out->ndim, out->shape, strides, &view, NULL))
        return fail_out_shape(out, c->ndim, c->shape);
    c->ndim = out->ndim;
    c->shape = out->shape;
    return 0;
}

static int check_given_outputs(ufunc_call *c) {
    ad_array *const *out = c->options->out;
    for (int k = 0; k < c->row->nout; k++) {
        int status = out[k] ? check_out(c, k, out[k]) : 0;
        if (status) return status;
    }
    for (int k = 0; k < c->row->nout; k++)
        if (out[k] && !has_same_shape(c->ndim, c->shape, out[k]->ndim, out[k]->shape))
            return fail_out_shape(out[k], c->ndim, c->shape);
    return 0;
}

static int make_outputs(ufunc_call *c, ad_array **made) {
    for (int k = 0; k < c->row->nout; k++) {
        ad_array *given = c->options ? c->options->out[k] : NULL;
        if (given) {
            c->operand[k].desc = ad__array_desc(given);
        } else {
            int dtype = ad__code_dtype(c->rule->out[k], c->op.loop);
            int status = ad__array_new(c->session, dtype, c->ndim, c->shape, &made[k]);
            if (status) return status;
            c->operand[k].desc = ad__fresh_desc(made[k]);
        }
        c->operand[k].is_scalar = 0;
    }
    return 0;
}

/* ---- calls ---- */

static int add_mask(ufunc_call *c) {
    const ad_in mask = ad_of(c->options->where);
    const int i = c->row->nin;
    int status = ad__in_operand(&mask, &c->operand[c->op.nout + i], &c->types[i], &c->session);
    if (status) return status;
    if (c->types[i] != AD_BOOL)
        return ad__fail(AD_E_TYPE,
                        "Cannot cast array data from dtype('%s') to dtype('bool') according to the rule "
                        "'safe'",
                        ad__dtypes[c->types[i]].name);
    c->op.nin++;
    return 0;
}

static int prepare_ufunc(ufunc_call *c, const ad_in *in) {
    int status = 0;
    /* cppcheck-suppress ctuuninitvar ; the members that matter are set by whoever made it */
    for (int i = 0; i < c->row->nin && !status; i++)
        status = ad__in_operand(&in[i], &c->operand[c->op.nout + i], &c->types[i], &c->session);
    if (status) return status;
    if (!c->session) return ad__fail(AD_E_VALUE, "%s: no input is an array, and no session was given", c->row->name);
    status = resolve_loop(c, in);
    if (!status) status = check_scalars(c, in);
    if (!status && c->options && c->options->where) status = add_mask(c);
    if (!status) status = find_result_shape(c);
    if (!status && c->options) status = check_given_outputs(c);
    return status;
}

static int send_ufunc(ufunc_call *c, ad_array **made) {
    int status = make_outputs(c, made);
    return status ? status : ad__send_op(c->session, &c->op, made);
}

static int send_permuted(ufunc_call *c, const int *axes, ad_array **made) {
    int64_t storage[MAX_INPUTS][2][AD_MAX_NDIM], shape[AD_MAX_NDIM];
    for (int i = 0; i < c->ndim; i++) shape[i] = c->shape[axes[i]];
    ad__permute_inputs(&c->op, c->ndim, axes, storage);
    c->shape = shape;
    int status = send_ufunc(c, made);
    for (int k = 0; k < c->row->nout; k++)
        if (made[k]) ad__array_permute(made[k], axes);
    return status;
}

static bool has_out(const ufunc_call *c) {
    for (int k = 0; c->options && k < c->row->nout; k++)
        if (c->options->out[k]) return true;
    return false;
}

/* Tell at once that a result is row-major: a row-major input of its shape decides that, whatever the others are. */
static bool is_row_major(const ufunc_call *c, const ad_in *in) {
    for (int i = 0; i < c->row->nin; i++)
        if (in[i].array && in[i].array->shape == c->shape) return in[i].array->contiguous;
    return false;
}

static bool is_permuted(const ufunc_call *c, const ad_in *in, int *axes) {
    return c->ndim > 1 && !is_row_major(c, in) && !has_out(c) && ad__find_order(&c->op, c->ndim, axes);
}

int ad_ufunc_call(ad_session *s, int ufunc, const ad_in *in, const ad_options *options, ad_array **outs) {
    ufunc_call c;
    ad_array *made[AD_MAX_OUT] = {NULL, NULL};
    c.row = ufunc >= 0 ? ad__ufunc((uint64_t)ufunc) : NULL;
    if (!c.row) return ad__fail(AD_E_UNSUPPORTED, "there is no ufunc %d", ufunc);
    c.session = s;
    c.rule = &ad__rules[c.row->rule];
    c.options = options;
    c.op = (ad_op){
        .opcode = AD_REQ_UFUNC, .nout = c.row->nout, .nin = c.row->nin, .row = (uint16_t)ufunc, .operand = c.operand};
    int axes[AD_MAX_NDIM], status = prepare_ufunc(&c, in);
    if (!status) status = is_permuted(&c, in, axes) ? send_permuted(&c, axes, made) : send_ufunc(&c, made);
    if (!status && options)
        for (int k = 0; k < c.row->nout; k++)
            if (!made[k]) made[k] = ad_array_retain(options->out[k]);
    return ad__hand_out(status, c.row->nout, made, outs);
}

/* ---- copies ---- */

static int resolve_copy_loop(const ad_array *out, const ad_in *in, int casting, uint8_t *loop) {
    const int from = in->array ? in->array->dtype : find_scalar_dtype(&in->value, out->dtype);
    *loop = (uint8_t)from;
    if (!in->array && ad__value_side(&in->value, out->dtype)) return ad__fail_bounds(&in->value, out->dtype);
    if (!ad__can_cast(from, out->dtype, (ad_casting)casting))
        return ad__fail(AD_E_TYPE, "Cannot cast %s from dtype('%s') to dtype('%s') according to the rule '%s'",
                        in->array ? "array data" : "scalar", ad__dtypes[from].name, ad__dtypes[out->dtype].name,
                        ad__casting_name(casting));
    return 0;
}

static int check_copy_shape(const ad_array *out, const ad_array *in) {
    int64_t strides[AD_MAX_NDIM];
    ad_desc d, view;
    char is[100], must[100];
    ad_text_buffer a = {is, sizeof is, 0}, b = {must, sizeof must, 0};
    if (!in || has_same_shape(in->ndim, in->shape, out->ndim, out->shape)) return 0;
    d = ad__array_desc(in);
    if (!ad__broadcast_to(&d, out->ndim, out->shape, strides, &view, NULL)) return 0;
    ad__text_shape(&a, in->ndim, in->shape);
    ad__text_shape(&b, out->ndim, out->shape);
    return ad__fail(AD_E_VALUE, "could not broadcast input array from shape %s into shape %s", is, must);
}

int ad__copy(ad_array *out, const ad_in *in, int casting, bool made) {
    ad_operand operand[2] = {{.desc = made ? ad__fresh_desc(out) : ad__array_desc(out)}};
    ad_op op = {.opcode = AD_REQ_UFUNC, .row = AD_UFUNC_copy, .nout = 1, .nin = 1, .operand = operand};
    ad_session *s = out->session;
    uint8_t type;
    int status = ad__in_operand(in, &operand[1], &type, &s);
    if (!status) status = resolve_copy_loop(out, in, casting, &op.loop);
    if (!status) status = check_copy_shape(out, in->array);
    if (!status && !made) status = ad__check_writable(out, "assignment destination");
    if (!status && has_repeated_elements(out))
        status = ad__fail(AD_E_VALUE, "assignment destination is read-only: it repeats elements");
    return status ? status : ad__send_op(s, &op, &(ad_array *){made ? out : NULL});
}

int ad_copy_into(ad_array *out, ad_in in, int casting) { return ad__copy(out, &in, casting, false); }

int ad_astype(const ad_array *a, int dtype, ad_array **out) {
    const ad_in in = ad_of(a);
    ad_array *made;
    int status = ad__dtype_check(dtype);
    if (!status) status = ad__array_new(a->session, dtype, a->ndim, a->shape, &made);
    if (status) return status;
    return ad__hand_out(ad__copy(made, &in, AD_CAST_UNSAFE, true), 1, &made, out);
}
