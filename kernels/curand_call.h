/* The common part of calls `curand` and `curand_seed` on both backends. */
#ifndef AD_KERNELS_CURAND_CALL_H
#define AD_KERNELS_CURAND_CALL_H

#include "kernels/curand_draw.h"
#include "kernels/random_call.h"

namespace ad {
inline namespace AD_ISA {

/* Matrices of jumps of 2^bit sequences of MRG32k3a. */
struct mrg_jumps {
    mrg_matrix by[CURAND_BITS];

    mrg_jumps() {
        mrg_matrix m = {{{{0, 1, 0}, {0, 0, 1}, {mrg32k3a::modulus(0) - 810728u, 1403580u, 0}},
                         {{0, 1, 0}, {0, 0, 1}, {mrg32k3a::modulus(1) - 1370589u, 0, 527612u}}}};
        for (int k = 0; k < mrg32k3a::DISTANCE + CURAND_BITS; k++) {
            if (k >= mrg32k3a::DISTANCE) by[k - mrg32k3a::DISTANCE] = m;
            for (int i = 0; i < 2; i++) mrg_square(&m.at[i], mrg32k3a::modulus(i));
        }
    }
};

struct curand_call : random_call {
    int generator;
    curand_turns turns;
    array from, to; /* states */
};

/* Output `index`, states, without gaps: as ad_call_output. */
inline int curand_output(ad_call *c, int index, array *out) {
    const int status = ad_call_output(c, index, AD_UINT32, out);
    if (status || is_packed(*out)) return status;
    out->data = static_cast<char *>(ad_call_workspace(c, uint64_t(pack(out))));
    return !out->data ? AD_E_MEMORY : 0;
}

/* Fill *r from c. AD_E_MEMORY. */
inline int curand_open(ad_call *c, curand_call *r) {
    const ad_scalar *p = c->op->param;
    int status;
    random_open_source(r, int(p[0].as.i), c->op->loop, 0, 0);
    r->generator = int(p[1].as.i);
    if ((status = random_open_arrays(c, r, 1)) || (status = ad_call_input_packed(c, 0, AD_UINT32, &r->from)) ||
        (status = curand_output(c, 1, &r->to)))
        return status;
    r->turns = {p[3].as.i, p[4].as.i, r->places.count, p[2].as.i == AD_CURAND_HOST};
    return 0;
}

/* f(generator) for the one that a call names, where f is generic. */
template <class F> auto curand_visit(int generator, F f) {
    switch (generator) {
    case AD_CURAND_XORWOW: return f(xorwow{});
    case AD_CURAND_MRG32K3A: return f(mrg32k3a{});
    case AD_CURAND_XOR128: return f(xor128{});
    default: return f(philox_counter{});
    }
}

} // namespace AD_ISA
} // namespace ad
#endif
