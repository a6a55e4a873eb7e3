/* Reductions: from an array and options to an encoded operation. */
#include <math.h>

#include "client-c/client.h"
#include "protocol/rows_request.h"

typedef struct reduce_call {
    const ad_reduction_row *row;
    const ad_options *options;
    const ad_array *x;
    uint64_t axes; /* bit i: axis i is reduced */
    ad_op op;
    ad_operand operand[3];
    ad_scalar param[3];
    ad_result result;
    int ndim;
    int64_t shape[AD_MAX_NDIM];                               /* shape of the array that is returned */
    int64_t out_shape[AD_MAX_NDIM], out_strides[AD_MAX_NDIM]; /* shape and strides of out= in the message */
} reduce_call;

static const ad_options defaults = AD_OPTIONS_INIT;

static int set_axes(reduce_call *c) {
    const uint64_t all = ((uint64_t)1 << c->x->ndim) - 1;
    c->axes = c->options->all ? all : c->options->axes;
    if (c->axes & ~all)
        return ad__fail(AD_E_VALUE, "axis %d is out of bounds for array of dimension %d", 63 - __builtin_clzll(c->axes),
                        c->x->ndim);
    return 0;
}

static int set_params(reduce_call *c) {
    const ad_options *o = c->options;
    c->param[0] = (ad_scalar){AD_SCALAR_INT, {.i = (int64_t)c->axes}};
    c->param[1] = (ad_scalar){AD_SCALAR_NIL, {0}};
    c->param[2] = (ad_scalar){AD_SCALAR_NIL, {0}};
    if (o->ddof != 0) c->param[1] = (ad_scalar){AD_SCALAR_FLOAT, {.f = o->ddof}};
    if (!o->initial) return 0;
    if (ad__value_side(o->initial, c->op.loop)) return ad__fail_bounds(o->initial, c->op.loop);
    return ad__value_scalar(o->initial, &c->param[2]);
}

static int set_inputs(reduce_call *c, const ad_in *in) {
    ad_fault fault;
    ad_session *s = NULL;
    uint8_t type;
    int loop, status = ad__in_operand(in, &c->operand[1], &type, &s);
    if (status) return status;
    if (c->options->where) {
        const ad_in mask = ad_of(c->options->where);
        uint8_t mask_type;
        status = ad__in_operand(&mask, &c->operand[2], &mask_type, &s);
        if (status) return status;
        c->op.nin = 2;
    }
    if (ad__resolve_reduction(c->row, type, c->options->dtype < 0 ? AD_NO_DTYPE : c->options->dtype, &loop, &fault) !=
        0)
        return ad__fail_fault(&fault);
    c->op.loop = (uint8_t)loop;
    return 0;
}

/* Set the shape of the result with keepdims' axes of length 1, which the server does not know of. */
static void set_shape(reduce_call *c) {
    c->ndim = 0;
    for (int i = 0; i < c->x->ndim; i++) {
        bool goes = c->axes >> i & 1;
        if (!goes || c->options->keepdims) c->shape[c->ndim++] = goes ? 1 : c->x->shape[i];
    }
}

static int fail_ndim(const reduce_call *c, const ad_array *out) {
    return ad__fail(AD_E_VALUE,
                    "output parameter for reduction operation %s has the wrong number of dimensions: Found "
                    "%d but expected %d",
                    c->row->name, out->ndim, c->ndim);
}

/* Describe out= without keepdims' axes of length 1. AD_E_TYPE, AD_E_VALUE. */
static int describe_out(reduce_call *c, const ad_array *out) {
    ad_desc d = ad__array_desc(out);
    int n = 0;
    if (out->session != c->x->session) return ad__fail_strangers(c->x->session, out->session);
    if (ad__check_writable(out, "output array")) return AD_E_VALUE;
    if (!ad__can_cast(c->result.dtype, out->dtype, (ad_casting)c->options->casting))
        return ad__fail(AD_E_TYPE,
                        "Cannot cast ufunc '%s' output from dtype('%s') to dtype('%s') with casting rule '%s'",
                        c->row->name, ad__dtypes[c->result.dtype].name, ad__dtypes[out->dtype].name,
                        ad__casting_name(c->options->casting));
    if (out->ndim != c->ndim) return fail_ndim(c, out);
    for (int i = 0; i < out->ndim; i++) {
        if (out->shape[i] != c->shape[i])
            return ad__fail(AD_E_VALUE, "output parameter for reduction operation %s has the wrong shape",
                            c->row->name);
        if (c->options->keepdims && c->axes >> i & 1) continue;
        c->out_shape[n] = out->shape[i];
        c->out_strides[n++] = out->strides[i];
    }
    d.shape = c->out_shape;
    d.strides = c->out_strides;
    d.ndim = (uint8_t)n;
    c->operand[0].desc = d;
    return 0;
}

static int make_out(reduce_call *c, ad_array **made) {
    int status = ad__array_new(c->x->session, c->result.dtype, c->ndim, c->shape, made);
    if (status) return status;
    ad_desc d = ad__fresh_desc(*made);
    d.shape = c->result.shape;
    d.ndim = c->result.ndim;
    c->operand[0].desc = d;
    return 0;
}

static int prepare_reduction(reduce_call *c, const ad_in *in) {
    ad_fault fault;
    int status = set_axes(c);
    if (!status) status = set_inputs(c, in);
    if (!status) status = set_params(c);
    if (!status && ad__infer(&c->op, &c->result, &fault)) status = ad__fail_fault(&fault);
    if (!status) set_shape(c);
    return status;
}

int ad_reduce_call(int reduction, ad_in in, const ad_options *options, ad_array **out) {
    reduce_call c;
    ad_array *made = NULL, *given;
    int status;
    c.row = reduction >= 0 ? ad__reduction((uint64_t)reduction) : NULL;
    if (!c.row) return ad__fail(AD_E_UNSUPPORTED, "there is no reduction %d", reduction);
    if (!in.array) return ad__fail(AD_E_TYPE, "%s: the input must be an array", c.row->name);
    c.options = options ? options : &defaults;
    c.x = in.array;
    c.op = (ad_op){.opcode = AD_REQ_REDUCE,
                   .row = (uint16_t)reduction,
                   .nout = 1,
                   .nin = 1,
                   .nparam = 3,
                   .operand = c.operand,
                   .param = c.param};
    c.operand[0].is_scalar = 0;
    status = prepare_reduction(&c, &in);
    given = c.options->out[0];
    if (!status) status = given ? describe_out(&c, given) : make_out(&c, &made);
    if (!status) status = ad__send_op(c.x->session, &c.op, &made);
    if (!status && given) made = ad_array_retain(given);
    return ad__hand_out(status, 1, &made, out);
}
