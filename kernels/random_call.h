/* The common part of call `random` on both backends: its operands, and its source in a chain. */
#ifndef AD_KERNELS_RANDOM_CALL_H
#define AD_KERNELS_RANDOM_CALL_H

#include "kernels/call.h"
#include "kernels/chain.h"
#include "kernels/random_check.h"

namespace ad {
inline namespace AD_ISA {

union random_value {
    float f;
    double d;
    uint64_t u; /* of an integer, sign-extended */
};

struct random_source {
    const ad_distribution_row *row;
    int id, loop, kind; /* kind: dtype of the parameters */
    uint64_t key, first;
    random_value value[3];

    double number(int i) const { return kind == AD_FLOAT32 ? double(value[i].f) : value[i].d; }
};

struct random_call : random_source {
    bool arrays;        /* some parameter is one */
    array parameter[3]; /* data NULL: the value holds */
    array out;
    walk<4> places; /* of the output and the parameters */
};

inline int random_kind(const ad_distribution_row *row, int loop) {
    if (row->loops == AD_RANDOM_REAL) return loop;
    if (row->loops == AD_RANDOM_COUNT) return AD_FLOAT64;
    return loop == AD_UINT64 ? AD_UINT64 : AD_INT64;
}

inline void random_open_source(random_source *r, int id, int loop, uint64_t key, uint64_t first) {
    r->id = id;
    r->row = ad__distribution(id);
    r->loop = loop;
    r->kind = random_kind(r->row, loop);
    r->key = key;
    r->first = first;
    for (int i = 0; i < 3; i++) r->value[i].u = 0;
}

inline void random_set(random_source *r, int i, const ad_scalar *scalar) {
    alignas(16) char value[16] = {};
    ad_scalar_store(scalar, r->kind, value);
    memcpy(&r->value[i], value, sizeof r->value[i]);
}

inline void random_open_source(random_source *r, const ad_chain_random *from) {
    random_open_source(r, from->id, from->loop, from->key, from->first);
    for (int i = 0; i < r->row->nparam; i++) random_set(r, i, &from->parameter[i]);
}

/* input: of the parameter, among those of the call. */
inline int random_parameter(ad_call *c, random_call *r, int i, int input) {
    const ad_operand *o = &c->op->operand[c->op->nout + input];
    if (o->is_scalar) {
        random_set(r, i, &o->scalar);
        return 0;
    }
    r->arrays = true;
    return ad_call_input(c, input, r->kind, &r->parameter[i]);
}

inline void random_places(random_call *r) {
    const array &o = r->out;
    for (int i = 0; i < o.ndim; i++) {
        int64_t step[4] = {o.stride[i], 0, 0, 0};
        for (int k = 0; k < 3; k++)
            if (r->parameter[k].data) step[k + 1] = broadcast_stride(r->parameter[k], i, o.ndim);
        r->places.add(o.shape[i], step);
    }
}

/* Fill the rest of *r, an opened source, from c, whose parameters follow its first `before` inputs. AD_E_MEMORY. */
inline int random_open_arrays(ad_call *c, random_call *r, int before) {
    int status = 0;
    r->arrays = false;
    for (int i = 0; i < 3; i++) r->parameter[i].data = nullptr;
    for (int i = 0; i < r->row->nparam && !status; i++) status = random_parameter(c, r, i, before + i);
    if (!status) status = ad_call_output(c, 0, r->loop, &r->out);
    if (!status) random_places(r);
    return status;
}

/* Fill *r from c. AD_E_MEMORY. */
inline int random_open(ad_call *c, random_call *r) {
    random_open_source(r, int(c->op->param[0].as.i), c->op->loop, uint64_t(c->op->param[1].as.i),
                       uint64_t(c->op->param[2].as.i));
    return random_open_arrays(c, r, 0);
}

/* Find what is wrong with parameters that are all numbers; 0: nothing. */
inline int random_wrong_values(const random_source *r) {
    const int domain[3] = {r->row->domain[0], r->row->domain[1], r->row->domain[2]};
    if (r->id == AD_RANDOM_bits) return 0;
    if (r->id != AD_RANDOM_integers) return random_wrong(r->id, domain, r->number(0), r->number(1), r->number(2));
    const uint64_t low = r->value[0].u, high = r->value[1].u;
    return (r->kind == AD_UINT64 ? low > high : int64_t(low) > int64_t(high)) ? AD_RANDOM_ORDER : 0;
}

/* Integers of one set of parameters: the first, and how many more there are. */
inline void random_span(const random_source *r, uint64_t *low, uint64_t *span) {
    *low = r->id == AD_RANDOM_bits ? 0 : r->value[0].u;
    if (r->id == AD_RANDOM_bits) *span = r->loop == AD_UINT32 ? UINT32_MAX : UINT64_MAX;
    else *span = r->value[1].u - *low;
}

} // namespace AD_ISA
} // namespace ad
#endif
