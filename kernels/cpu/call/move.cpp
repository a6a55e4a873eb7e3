#include "kernels/cpu/call/move.h"

#include <stdlib.h>
#include <string.h>
#include <type_traits>

#include "kernels/math.h"
#include "kernels/math_complex.h"

namespace {

using namespace ad;

struct sixteen {
    uint64_t part[2];
};

/* Two floats, of which the first counts. One of two vectors is chosen without a branch, which random elements
 * mispredict. */
template <class S> struct pair_of {};
template <> struct pair_of<float> { typedef float type __attribute__((vector_size(16))); };
template <> struct pair_of<double> { typedef double type __attribute__((vector_size(16))); };

/* The greater of x and y, or the lesser one, as maximum and minimum have it: x where that is NaN. */
template <class S, int Mode> inline S choose(S x, S y) {
    const typename pair_of<S>::type a = {x}, b = {y};
    const typename pair_of<S>::type chosen = ((Mode == AD_MOVE_MAX ? a >= b : a <= b) | (a != a)) ? a : b;
    return chosen[0];
}

template <class S, int Mode> inline void move(S *to, const S *from) {
    using C = compute_t<S>;
    constexpr bool floats = std::is_same<S, float>::value || std::is_same<S, double>::value;
    if constexpr (Mode == AD_MOVE_SET) *to = *from;
    else if constexpr (Mode == AD_MOVE_ADD) *to = cast<S>(C(adm::add(C(*to), C(*from))));
    else if constexpr (floats) *to = choose<S, Mode>(*to, *from);
    else if constexpr (Mode == AD_MOVE_MAX) *to = cast<S>(C(adm::maximum(C(*to), C(*from))));
    else *to = cast<S>(C(adm::minimum(C(*to), C(*from))));
}

template <class S, int Mode>
void move_list(char *to, const int64_t *to_at, const char *from, const int64_t *from_at, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        move<S, Mode>(reinterpret_cast<S *>(to + to_at[i]), reinterpret_cast<const S *>(from + from_at[i]));
}

template <class S, int Mode> void move_run(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n) {
    constexpr int64_t size = sizeof(S);
    if (to_step == size && from_step == size) {
        S *t = reinterpret_cast<S *>(to);
        const S *f = reinterpret_cast<const S *>(from);
        if constexpr (Mode == AD_MOVE_SET) memcpy(t, f, size_t(n) * sizeof(S));
        else
            for (int64_t i = 0; i < n; i++) move<S, Mode>(t + i, f + i);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        move<S, Mode>(reinterpret_cast<S *>(to + i * to_step), reinterpret_cast<const S *>(from + i * from_step));
}

template <class S, int Mode, bool Scatter>
__attribute__((always_inline)) inline void pick(const ad_picked &p, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
        const int64_t j = *reinterpret_cast<const int64_t *>(p.index + i * p.index_step);
        S *picked = reinterpret_cast<S *>(p.base + (j + (j < 0 ? p.size : 0)) * p.step);
        S *plain = reinterpret_cast<S *>(p.plain + i * p.plain_step);
        move<S, Mode>(Scatter ? picked : plain, Scatter ? plain : picked);
    }
}

/* As pick, of elements that are joined to those that are there: what goes to one place one after another, as that of
 * sorted indices does, is joined in a register. */
template <class S, int Mode>
__attribute__((always_inline)) inline void join(const ad_picked &p, int64_t begin, int64_t end) {
    S *at = nullptr, joined{};
    for (int64_t i = begin; i < end; i++) {
        const int64_t j = *reinterpret_cast<const int64_t *>(p.index + i * p.index_step);
        S *place = reinterpret_cast<S *>(p.base + (j + (j < 0 ? p.size : 0)) * p.step);
        if (place != at) {
            if (at) *at = joined;
            at = place;
            joined = *place;
        }
        move<S, Mode>(&joined, reinterpret_cast<const S *>(p.plain + i * p.plain_step));
    }
    if (at) *at = joined;
}

template <class S, int Mode, bool Scatter>
__attribute__((always_inline)) inline void pick_or_join(const ad_picked &p, int64_t begin, int64_t end) {
    if constexpr (Scatter && Mode != AD_MOVE_SET) join<S, Mode>(p, begin, end);
    else pick<S, Mode, Scatter>(p, begin, end);
}

/* Steps that the compiler knows save multiplications. */
template <class S, int Mode, bool Scatter> void move_picked(const ad_picked *p, int64_t begin, int64_t end) {
    constexpr int64_t size = sizeof(S);
    if (p->step == size && p->index_step == 8 && p->plain_step == size)
        pick_or_join<S, Mode, Scatter>({p->base, size, p->size, p->index, 8, p->plain, size}, begin, end);
    else pick_or_join<S, Mode, Scatter>(*p, begin, end);
}

template <class S, int Mode> constexpr ad_mover mover_of = {move_list<S, Mode>, move_run<S, Mode>,
                                                            move_picked<S, Mode, false>, move_picked<S, Mode, true>};

ad_mover set_mover(int64_t size) {
    switch (size) {
    case 1: return mover_of<uint8_t, AD_MOVE_SET>;
    case 2: return mover_of<uint16_t, AD_MOVE_SET>;
    case 4: return mover_of<uint32_t, AD_MOVE_SET>;
    case 8: return mover_of<uint64_t, AD_MOVE_SET>;
    default: return mover_of<sixteen, AD_MOVE_SET>;
    }
}

} // namespace

ad_mover ad_mover_get(int dtype, int mode) {
    if (mode == AD_MOVE_SET) return set_mover(itemsize(dtype));
    return visit(dtype, [&](auto t) {
        using S = typename decltype(t)::type;
        constexpr ad_mover movers[] = {mover_of<S, AD_MOVE_ADD>, mover_of<S, AD_MOVE_MAX>, mover_of<S, AD_MOVE_MIN>};
        return movers[mode - 1];
    });
}

void ad_move_init(ad_move *m, int dtype, int mode, char *to, const char *from, int64_t place_step, int side) {
    m->mover = ad_mover_get(dtype, mode);
    m->to = to;
    m->from = from;
    m->across = m->inner.count > 1 && llabs(place_step) < llabs(m->inner.inner(side));
}

void ad_move_blocks(const ad_move *m, const int64_t *to_at, const int64_t *from_at, int64_t n, int64_t begin,
                    int64_t end) {
    const int64_t to_step = m->inner.inner(0), from_step = m->inner.inner(1);
    if (m->inner.count == 1) return m->mover.list(m->to, to_at, m->from, from_at, n);
    if (m->across) {
        m->inner.runs(begin, end, [&](const int64_t(&at)[2], int64_t length, int64_t) {
            for (int64_t i = 0; i < length; i++)
                m->mover.list(m->to + at[0] + i * to_step, to_at, m->from + at[1] + i * from_step, from_at, n);
            return true;
        });
        return;
    }
    for (int64_t j = 0; j < n; j++)
        m->inner.runs(begin, end, [&](const int64_t(&at)[2], int64_t length, int64_t) {
            m->mover.run(m->to + to_at[j] + at[0], to_step, m->from + from_at[j] + at[1], from_step, length);
            return true;
        });
}
