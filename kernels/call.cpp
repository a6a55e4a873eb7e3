/* Dispatch of calls, and what they have in common: their operands. Compiled into each backend. */
#include "kernels/call.h"
#include "protocol/rows_request.h"
#include "protocol/rows_ufunc.h"

namespace {

struct table {
    ad_call_function *function[AD_CALL_LIMIT];
};

constexpr table make_table() {
    table t{};
#define AD_CALL(id, name, nout, nin_min, nin_max, params, kind, guard, work, cost, infer, doc) \
    t.function[id] = ad_call_##name;
#include "protocol/call.def"
#undef AD_CALL
    return t;
}

constexpr table calls = make_table();

const ad_operand *operand(const ad_call *c, bool output, int index) {
    return &c->op->operand[output ? index : c->op->nout + index];
}

/* Describe an operand in place: a copy of a whole array takes longer than a small operation. */
void describe(const ad_operand *o, ad::array *out) {
    out->data = static_cast<char *>(o->data);
    out->dtype = o->desc.dtype;
    out->ndim = o->desc.ndim;
    for (int i = 0; i < out->ndim; i++) {
        out->shape[i] = o->desc.shape[i];
        out->stride[i] = o->desc.strides[i];
    }
}

int scalar_input(ad_call *c, const ad_operand *o, int dtype, ad::array *out) {
    out->ndim = 0;
    out->dtype = dtype;
    out->data = static_cast<char *>(ad_call_workspace(c, 16));
    if (!out->data) return AD_E_MEMORY;
    alignas(16) char value[16] = {};
    ad_scalar_store(&o->scalar, dtype, value);
    return ad__call_store(c, out->data, value, int(ad::itemsize(dtype)));
}

template <class S> S scalar_as(const ad_scalar *s) {
    switch (s->kind) {
    case AD_SCALAR_BOOL: return ad::cast<S>(s->as.b);
    case AD_SCALAR_INT: return ad::cast<S>(s->as.i);
    case AD_SCALAR_UINT: return ad::cast<S>(s->as.u);
    case AD_SCALAR_FLOAT: return ad::cast<S>(s->as.f);
    case AD_SCALAR_COMPLEX: return ad::cast<S>(ad::complex<double>(s->as.c[0], s->as.c[1]));
    default: return ad::cast<S>(false);
    }
}

} // namespace

void ad_scalar_store(const ad_scalar *s, int dtype, void *to) {
    ad::visit(dtype, [&](auto t) {
        using S = typename decltype(t)::type;
        *static_cast<S *>(to) = scalar_as<S>(s);
    });
}

double ad_scalar_number(const ad_scalar *s) { return scalar_as<double>(s); }

int ad__call_run(ad_stream *stream, const ad_op *op, ad_run *run, ad_fault *fault) {
    ad_call c = {stream, op, run, fault};
    ad_call_function *f = op->row < AD_CALL_LIMIT ? calls.function[op->row] : nullptr;
    if (!f) return ad__fault(fault, AD_E_UNSUPPORTED, "call %d is unknown to this backend", op->row);
    return f(&c);
}

/* The engine may have said more already. */
static void *check_given(ad_call *c, void *memory, uint64_t size, const char *what) {
    if (!memory && (!c->fault || c->fault->code == 0))
        ad__fault(c->fault, AD_E_MEMORY, "out of memory: %llu bytes of %s", (unsigned long long)size, what);
    return memory;
}

void *ad_call_workspace(ad_call *c, uint64_t size) {
    return check_given(c, c->run->workspace(c->run, size > 0 ? size : 1), size, "scratch memory");
}

static void *sized_output(ad_call *c, int index, const ad::array *out) {
    const uint64_t size = uint64_t(ad::count(*out)) * uint64_t(ad::itemsize(out->dtype));
    return check_given(c, c->run->output(c->run, index, size), size, "output");
}

int ad_call_sized(ad_call *c, int index, ad::array *out) {
    const uint64_t size = uint64_t(ad::pack(out));
    const bool own = out->dtype == operand(c, true, index)->desc.dtype;
    out->data = static_cast<char *>(own ? sized_output(c, index, out) : ad_call_workspace(c, size));
    return !out->data ? AD_E_MEMORY : 0;
}

int ad_call_packed(ad_call *c, const ad::array *from, int dtype, int repeats, ad::array *out) {
    ad::array to = *from, once = *from;
    to.dtype = dtype;
    int64_t size = ad::pack(&to, repeats);
    to.data = static_cast<char *>(ad_call_workspace(c, uint64_t(size)));
    if (!to.data) return AD_E_MEMORY;
    *out = to;
    for (int i = 0; i < repeats; i++)
        if (once.stride[i] == 0 && once.shape[i] > 1) to.shape[i] = once.shape[i] = 1;
    return ad_call_copy(c, &to, &once);
}

int ad_call_input(ad_call *c, int index, int dtype, ad::array *out) {
    const ad_operand *o = operand(c, false, index);
    if (o->is_scalar) return scalar_input(c, o, dtype, out);
    describe(o, out);
    return out->dtype == dtype ? 0 : ad_call_packed(c, out, dtype, out->ndim, out);
}

int ad_call_input_packed(ad_call *c, int index, int dtype, ad::array *out) {
    const ad_operand *o = operand(c, false, index);
    if (o->is_scalar) return scalar_input(c, o, dtype, out);
    describe(o, out);
    if (out->dtype != dtype || !ad::is_packed(*out)) return ad_call_packed(c, out, dtype, 0, out);
    ad::pack(out);
    return 0;
}

int ad_call_output(ad_call *c, int index, int dtype, ad::array *out) {
    describe(operand(c, true, index), out);
    if (out->dtype == dtype) return 0;
    out->dtype = dtype;
    int64_t size = ad::pack(out);
    out->data = static_cast<char *>(ad_call_workspace(c, uint64_t(size)));
    return !out->data ? AD_E_MEMORY : 0;
}

int ad_call_finish(ad_call *c, int index, const ad::array *out) {
    const ad_operand *o = operand(c, true, index);
    if (o->desc.form != AD_SIZED && o->data == out->data) return 0;
    ad::array own = *out;
    own.dtype = o->desc.dtype;
    if (o->desc.form == AD_SIZED && own.dtype != out->dtype) {
        ad::pack(&own);
        own.data = static_cast<char *>(sized_output(c, index, &own));
        if (!own.data) return AD_E_MEMORY;
    } else if (o->desc.form != AD_SIZED) own = ad::view_of(*o);
    if (own.data == out->data) return 0;
    c->run->wrote = true;
    return ad_call_copy(c, &own, out);
}

static ad_operand operand_of(const ad::array *a) {
    ad_operand o = {};
    o.data = a->data;
    o.desc.dtype = uint8_t(a->dtype);
    o.desc.ndim = uint8_t(a->ndim);
    o.desc.form = AD_FRESH;
    o.desc.shape = a->shape;
    o.desc.strides = a->stride;
    return o;
}

int ad_call_copy(ad_call *c, const ad::array *to, const ad::array *from) {
    ad_operand operands[2] = {operand_of(to), operand_of(from)};
    ad_op op = {};
    op.opcode = AD_REQ_UFUNC;
    op.row = AD_UFUNC_copy;
    op.loop = uint8_t(from->dtype);
    op.nout = op.nin = 1;
    op.operand = operands;
    return ad__call_ufunc(c, &op);
}
