/* Library calls: those that are sent without waiting, and those whose reply is waited for. */
#include <string.h>

#include "client-c/client.h"
#include "protocol/rows_call.h"
#include "protocol/rows_request.h"

typedef struct library_call {
    ad_session *session;
    const ad_call_row *row;
    ad_op op;
    ad_operand operand[AD_MAX_OUT + AD_MAX_IN];
    ad_scalar param[AD_MAX_PARAM];
    ad_result result[AD_MAX_OUT];
} library_call;

/* ---- outputs whose size the server decides ---- */

static int set_nonzero_shape(const library_call *c, int k, int64_t n, int64_t *shape) {
    (void)k;
    shape[0] = c->operand[c->op.nout].desc.ndim;
    shape[1] = n;
    return 2;
}

static int set_compress_shape(const library_call *c, int k, int64_t n, int64_t *shape) {
    (void)k;
    const ad_desc *x = &c->operand[c->op.nout].desc, *mask = &c->operand[c->op.nout + 1].desc;
    int ndim = 1;
    shape[0] = n;
    for (int i = mask->ndim; i < x->ndim; i++) shape[ndim++] = x->shape[i];
    return ndim;
}

/* The sparse matrix has n entries, and the first one's rows. */
static int set_csr_shape(const library_call *c, int k, int64_t n, int64_t *shape) {
    shape[0] = k < 2 ? n : c->operand[c->op.nout + 2].desc.shape[0];
    return 1;
}

/* The sparse matrix has n entries, and as many rows as were asked for. */
static int set_taken_shape(const library_call *c, int k, int64_t n, int64_t *shape) {
    shape[0] = k < 2 ? n : c->operand[c->op.nout + 3].desc.shape[0] + 1;
    return 1;
}

/* Functions that set the shape of output k for the n of the reply. A call without one has outputs of n elements in one
 * dimension. */
static int (*const shapes[AD_CALL_LIMIT])(const library_call *c, int k, int64_t n, int64_t *shape) = {
    [AD_CALL_nonzero] = set_nonzero_shape, [AD_CALL_compress] = set_compress_shape, [AD_CALL_spgemm] = set_csr_shape,
    [AD_CALL_spunion] = set_csr_shape,     [AD_CALL_spband] = set_csr_shape,        [AD_CALL_sptake] = set_taken_shape,
};

static int make_sized_outputs(library_call *c, int64_t n, ad_array **outs) {
    int64_t shape[AD_MAX_NDIM + 1] = {n};
    int status = 0;
    ad_array *made[AD_MAX_OUT] = {NULL, NULL};
    for (int k = 0; k < c->op.nout && !status; k++) {
        const int ndim = shapes[c->op.row] ? shapes[c->op.row](c, k, n, shape) : 1;
        if (n < 0 || ndim > AD_MAX_NDIM) status = ad__fail(AD_E_PROTOCOL, "%s: the reply makes no sense", c->row->name);
        else status = ad__array_new(c->session, c->result[k].dtype, ndim, shape, &made[k]);
    }
    for (int k = 0; k < c->op.nout; k++) {
        if (made[k]) {
            made[k]->buffer = c->operand[k].desc.buffer;
            atomic_store(&made[k]->own, true);
        } else ad__queue_free(c->session, c->operand[k].desc.buffer, 0);
    }
    return ad__hand_out(status, c->op.nout, made, outs);
}

/* Drop the outputs of a query that did not succeed. The server makes them all the same, as those of any operation that
 * fails; where a session may have no more buffers it cannot. */
static void drop_sized_outputs(const library_call *c, const ad_slot *slot, int status) {
    const bool failed = slot->done && slot->status && slot->status != AD_E_LIMIT;
    if (!failed && !ad__slot_is_made(slot, status)) return;
    for (int k = 0; k < c->op.nout; k++) ad__queue_free(c->session, c->operand[k].desc.buffer, 0);
}

static int ask_call(library_call *c, ad_array **outs, int64_t *values) {
    ad_session *s = c->session;
    ad_slot slot;
    int status = ad__check_not_recording("an operation that is waited for");
    if (!status) status = ad__begin_ask(s);
    if (status) return status;
    ad__slot_init(&slot, NULL, 0);
    size_t mark = s->output.gathered.size;
    for (int k = 0; k < c->op.nout; k++)
        c->operand[k] =
            (ad_operand){.desc = {.buffer = s->next_id.buffer++, .dtype = c->result[k].dtype, .form = AD_SIZED}};
    ad__slot_add(s, &slot);
    status = ad__commit_ask(s, mark, ad__encode_query(&s->output.gathered, slot.request, &c->op), &slot);
    if (status) {
        drop_sized_outputs(c, &slot, status);
        return status;
    }
    for (int i = 0; values && i < AD_MAX_PARAM; i++) values[i] = i < slot.nvalues ? slot.values[i] : 0;
    return make_sized_outputs(c, slot.nvalues ? slot.values[0] : 0, outs);
}

/* ---- calls without a reply ---- */

static int describe_given_outputs(library_call *c, ad_array *const *out) {
    for (int k = 0; k < c->op.nout; k++) {
        c->operand[k].is_scalar = !out || !out[k]; /* a rule that needs a given output refuses this */
        c->operand[k].desc.form = AD_FRESH;
        if (!out || !out[k]) continue;
        if (c->session && c->session != out[k]->session) return ad__fail_strangers(c->session, out[k]->session);
        if (ad__check_writable(out[k], "output array")) return AD_E_VALUE;
        c->session = out[k]->session;
        c->operand[k].desc = ad__array_desc(out[k]);
    }
    return 0;
}

static int send_call(library_call *c, ad_array *const *out, ad_array **outs) {
    ad_array *made[AD_MAX_OUT] = {NULL, NULL};
    ad_fault fault;
    int status = 0;
    for (int k = 0; k < c->op.nout && !status; k++) {
        const ad_result *r = &c->result[k];
        if (out && out[k]) continue;
        status = ad__array_new(c->session, r->dtype, r->ndim, r->shape, &made[k]);
        if (!status) c->operand[k] = (ad_operand){.desc = ad__fresh_desc(made[k])};
    }
    if (!status && out && ad__check_op(&c->op, &fault)) status = ad__fail_fault(&fault);
    if (!status) status = ad__send_op(c->session, &c->op, made);
    for (int k = 0; k < c->op.nout && !status; k++)
        if (!made[k]) made[k] = ad_array_retain(out[k]);
    return ad__hand_out(status, c->op.nout, made, outs);
}

/* ---- calls ---- */

static int find_first_dtype(const library_call *c) {
    for (int i = 0; i < c->op.nin; i++)
        if (!c->operand[c->op.nout + i].is_scalar) return c->operand[c->op.nout + i].desc.dtype;
    return AD_FLOAT64;
}

static int set_operands(library_call *c, int dtype, const ad_in *in, const ad_value *param, ad_array *const *out) {
    uint8_t type;
    int status = 0;
    for (int i = 0; i < c->op.nin && !status; i++)
        status = ad__in_operand(&in[i], &c->operand[c->op.nout + i], &type, &c->session);
    for (int i = 0; i < c->op.nparam && !status; i++) status = ad__value_scalar(&param[i], &c->param[i]);
    if (!status) status = describe_given_outputs(c, out);
    if (!status && !c->session)
        status = ad__fail(AD_E_VALUE, "%s: no operand is an array, and no session was given", c->row->name);
    if (!status && dtype >= 0) status = ad__dtype_check(dtype);
    if (!status) c->op.loop = (uint8_t)(dtype >= 0 ? dtype : find_first_dtype(c));
    return status;
}

/* Find the call's row, and check the number of inputs and parameters. AD_E_UNSUPPORTED, AD_E_VALUE. */
static int init_call(library_call *c, ad_session *s, int call, int nin, int nparam) {
    c->row = call >= 0 ? ad__call((uint64_t)call) : NULL;
    if (!c->row) return ad__fail(AD_E_UNSUPPORTED, "there is no call %d", call);
    if (nin < c->row->nin_min || nin > c->row->nin_max || nparam != (int)strlen(c->row->params))
        return ad__fail(AD_E_VALUE, "%s: the number of inputs or parameters is wrong", c->row->name);
    c->session = s;
    c->op = (ad_op){.opcode = c->row->kind == AD_CALL_ASK ? AD_REQ_QUERY : AD_REQ_CALL,
                    .row = (uint16_t)call,
                    .nout = c->row->nout,
                    .nin = (uint8_t)nin,
                    .nparam = (uint8_t)nparam,
                    .operand = c->operand,
                    .param = c->param};
    return 0;
}

int ad_call_call(ad_session *s, int call, int dtype, int nin, const ad_in *in, int nparam, const ad_value *param,
                 ad_array *const *out, ad_array **outs, int64_t *values) {
    library_call c;
    ad_fault fault;
    int status = init_call(&c, s, call, nin, nparam);
    if (status) return status;
    const bool asks = c.row->kind == AD_CALL_ASK;
    status = set_operands(&c, dtype, in, param, asks ? NULL : out);
    if (!status && ad__infer(&c.op, c.result, &fault)) status = ad__fail_fault(&fault);
    if (!status) status = asks ? ask_call(&c, outs, values) : send_call(&c, out, outs);
    return status;
}

int ad_call_shaped(ad_session *s, int call, int dtype, int nin, const ad_in *in, int nparam, const ad_value *param,
                   int ndim, const int64_t *shape, ad_array **out) {
    library_call c;
    ad_fault fault;
    int status = init_call(&c, s, call, nin, nparam);
    if (!status && c.row->kind == AD_CALL_ASK)
        status = ad__fail(AD_E_VALUE, "%s: the shape of its output cannot be chosen", c.row->name);
    if (!status) status = set_operands(&c, dtype, in, param, NULL);
    if (!status) status = ad__shape_check(ndim, shape, c.op.loop);
    if (status) return status;
    c.operand[0] = (ad_operand){.desc = {.shape = shape, .ndim = (uint8_t)ndim, .dtype = c.op.loop, .form = AD_FRESH}};
    if (ad__infer(&c.op, c.result, &fault)) return ad__fail_fault(&fault);
    return send_call(&c, NULL, out);
}
