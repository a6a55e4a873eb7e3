/* Numbers of cuRAND's generators. */
#include "kernels/cpu/call/random.h"
#include "kernels/cpu/backend/parallel.h"
#include "kernels/curand_call.h"

namespace {

using namespace ad;

constexpr int64_t GROUP = 64;      /* states that take turns in the inner loop */
constexpr int64_t GRAIN = 1 << 13; /* elements worth a thread */
constexpr int64_t SEEDED = 256;    /* states made from one */

/* ---- from a seed: jumps of 2^bit sequences ---- */

/* Matrices of jumps of XORWOW; made once. */
struct xorwow_jumps {
    xorwow_matrix by[CURAND_BITS];

    static void square_matrix(const xorwow_matrix &m, xorwow_matrix *to) {
        *to = m;
        for (auto &row : to->row) m.apply(row);
    }
    xorwow_jumps() {
        xorwow_matrix m, next;
        for (int i = 0; i < 160; i++) xorwow_step(i, m.row[i]);
        for (int k = 0; k < xorwow::DISTANCE + CURAND_BITS; k++) {
            if (k >= xorwow::DISTANCE) by[k - xorwow::DISTANCE] = m;
            square_matrix(m, &next);
            m = next;
        }
    }
};

void jump(xorwow *g, int bit) {
    static const xorwow_jumps *jumps = new xorwow_jumps; /* never freed */
    jumps->by[bit].apply(g->v);
}
void jump(mrg32k3a *g, int bit) {
    static const mrg_jumps jumps;
    for (int i = 0; i < 2; i++) mrg_apply(jumps.by[bit].at[i], g->s[i], mrg32k3a::modulus(i));
}
void jump(philox_counter *g, int bit) { g->counter[2] += 1u << bit; }
void jump(xor128 *g, int bit) { g->seed(g->number + (uint64_t(1) << bit)); }

/* Make states first + begin .. first + end of the output, which has `states` states. The first is made by the bits of
 * its number, the others by doubling those that are there. */
template <class G> void seed_states(uint64_t number, int64_t first, uint32_t *to, int64_t n, int64_t states) {
    curand_state<G> made[SEEDED];
    made[0].seed(number);
    for (int bit = 0; bit < CURAND_BITS; bit++)
        if (first >> bit & 1) jump(&made[0].g, bit);
    for (int bit = 0; int64_t(1) << bit < n; bit++)
        for (int64_t i = 0, half = int64_t(1) << bit; i < half && half + i < n; i++) {
            made[half + i] = made[i];
            jump(&made[half + i].g, bit);
        }
    for (int64_t i = 0; i < n; i++) made[i].store(to + i, states);
}

/* ---- elements ---- */

int64_t offset_of(const random_call *r, int k, int64_t element) {
    int64_t at = 0;
    for (int d = r->places.ndim - 1; d > 0; d--) {
        at += element % r->places.shape[d] * r->places.stride[d][k];
        element /= r->places.shape[d];
    }
    return r->places.ndim == 0 ? 0 : at + element * r->places.stride[0][k];
}

template <class P> P held(const random_value &v) {
    if constexpr (same<P, float>) return v.f;
    else if constexpr (same<P, double>) return v.d;
    else return v.u;
}

template <class P> random_parameters<P> parameters_of(const random_call *r, int64_t element) {
    P p[3];
    for (int k = 0; k < 3; k++)
        p[k] = r->parameter[k].data ? *reinterpret_cast<const P *>(r->parameter[k].data + offset_of(r, k + 1, element))
                                    : held<P>(r->value[k]);
    return {p[0], p[1], p[2]};
}

/* All elements of states begin .. begin + n. */
template <int Id, class T, class G> void draw_group(const curand_call *r, int64_t begin, int64_t n) {
    using P = typename curand_one<Id, T>::P;
    const curand_turns &t = r->turns;
    const int64_t states = r->to.shape[1], slots = curand_slots<Id>(t);
    const random_parameters<P> all = {held<P>(r->value[0]), held<P>(r->value[1]), held<P>(r->value[2])};
    auto parameters = [&](int64_t e) { return r->arrays ? parameters_of<P>(r, e) : all; };
    auto put = [&](int64_t e, T v) { *reinterpret_cast<T *>(r->out.data + offset_of(r, 0, e)) = v; };
    uint32_t *to = reinterpret_cast<uint32_t *>(r->to.data) + begin;
    curand_state<G> s[GROUP];
    for (int64_t i = 0; i < n; i++) s[i].load(to + i, states);
    for (int64_t round = 0; round < slots; round += t.states) {
        ad_cpu_check_cancelled();
        for (int64_t i = 0; i < n; i++) {
            const int64_t k = curand_first_slot(t, begin + i) + round;
            if (k < slots) curand_draw<Id, T>(&s[i], t, k, parameters, put);
        }
    }
    for (int64_t i = 0; i < n; i++) s[i].store(to + i, states);
}

template <int Id, class T, class G> void draw_all(const curand_call *r) {
    const int64_t slots = curand_slots<Id>(r->turns), turns = r->turns.states;
    const int64_t used = r->turns.host || slots > turns ? turns : slots;
    const int64_t rounds = (slots + turns - 1) / turns, wanted = (GRAIN / rounds + GROUP) / GROUP * GROUP;
    ad_cpu_parallel(used, wanted, [&](int64_t begin, int64_t end) {
        for (; begin < end; begin += GROUP) draw_group<Id, T, G>(r, begin, end - begin < GROUP ? end - begin : GROUP);
    });
}

typedef void fill(const curand_call *r);

template <int Id, unsigned Generators, class T> fill *choose(int generator) {
    return curand_visit(generator, [](auto g) -> fill * {
        if constexpr (curand_has<decltype(g), Generators>) return draw_all<Id, T, decltype(g)>;
        else return nullptr;
    });
}

template <int Id, unsigned Gs, uint32_t Loops> fill *choose(int generator, int loop) {
    if constexpr (Loops == AD_RANDOM_REAL)
        return loop == AD_FLOAT32 ? choose<Id, Gs, float>(generator) : choose<Id, Gs, double>(generator);
    else if constexpr (Loops == AD_RANDOM_COUNT) return choose<Id, Gs, int64_t>(generator);
    else if constexpr (Loops == AD_BIT(AD_FLOAT64)) return choose<Id, Gs, double>(generator);
    else if constexpr (Loops == AD_BIT(AD_UINT32)) return choose<Id, Gs, uint32_t>(generator);
    else return loop == AD_UINT32 ? choose<Id, Gs, uint32_t>(generator) : choose<Id, Gs, uint64_t>(generator);
}

fill *choose(const curand_call *r) {
    switch (r->id) {
#define AD_CURAND(name, loops, order, generators) \
    case AD_RANDOM_##name:                        \
        return choose<AD_RANDOM_##name, AD_CURAND_##generators, loops>(r->generator, r->loop);
#include "protocol/curand.def"
#undef AD_CURAND
    default: return nullptr;
    }
}

} // namespace

int ad_call_curand_seed(ad_call *c) {
    const ad_scalar *p = c->op->param;
    array out;
    const int status = curand_output(c, 0, &out);
    if (status) return status;
    c->run->wrote = true;
    const int64_t states = out.shape[1], first = p[2].as.i;
    curand_visit(int(p[0].as.i), [&](auto g) {
        ad_cpu_parallel(states, SEEDED, [&](int64_t begin, int64_t end) {
            for (; begin < end; begin += SEEDED)
                seed_states<decltype(g)>(uint64_t(p[1].as.i), first + begin,
                                         reinterpret_cast<uint32_t *>(out.data) + begin,
                                         end - begin < SEEDED ? end - begin : SEEDED, states);
        });
    });
    return ad_call_finish(c, 0, &out);
}

int ad_call_curand(ad_call *c) {
    curand_call r;
    int status = curand_open(c, &r);
    if (status) return status;
    status = r.places.count > 0 ? ad_cpu_random_check(&r, c->fault) : 0;
    if (status && c->op->operand[1].desc.form != AD_FRESH) return status;
    if (!status) c->run->wrote = true;
    memcpy(r.to.data, r.from.data, size_t(count(r.to)) * 4);
    if (status) return status; /* the generator goes on with the states that it had */
    if (r.places.count > 0) choose (&r)(&r);
    if ((status = ad_call_finish(c, 0, &r.out))) return status;
    return ad_call_finish(c, 1, &r.to);
}
