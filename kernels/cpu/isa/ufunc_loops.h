/* Kernels of ufunc.def's rows for one loop type: AD_UFUNC_TABLE(float32, float) defines their table. */
#ifndef AD_KERNELS_CPU_ISA_UFUNC_LOOPS_H
#define AD_KERNELS_CPU_ISA_UFUNC_LOOPS_H

#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/kernels.h"
#include "kernels/ufunc.h"
#include "protocol/rows_ufunc.h"

namespace ad {
inline namespace AD_ISA {

template <class S, bool Scalar> struct reader {
    const S *p;
    compute_t<S> first;
    AD_HD explicit reader(const void *v) : p(static_cast<const S *>(v)), first(Scalar ? load(*p) : compute_t<S>()) {}
    AD_HD compute_t<S> at(int64_t i) const { return Scalar ? first : load(p[i]); }
};
template <bool Scalar> struct reader<none, Scalar> {
    AD_HD explicit reader(const void *) {}
    AD_HD none at(int64_t) const { return {}; }
};

/* Choose the elements that a loop is padded to. Loops of functions with real results run over whole vectors only, and
 * the rest of a run is padded to one. So a function gives the same for an element wherever it stands. 1: no padding. */
template <class U> constexpr int64_t unit() {
    constexpr bool real =
        is_float<typename U::O0> && (same<typename U::X, typename U::O0> || is_complex<typename U::X>);
    constexpr bool plain = real && (U::nin < 2 || same<typename U::X, typename U::Y>)&&U::nin < 3 && U::nout == 1;
    return plain ? int64_t(64 / sizeof(typename U::O0)) : 1; /* lanes of the widest vectors */
}

/* Something made of an input that is one element. */
template <class D> struct made {
    D value;
    const D &at(int64_t) const { return value; }
};

/* y by value: an element that is written cannot be part of it. */
template <class U, unsigned M, class Y> AD_NOINLINE void loop(void *const *p, int64_t n, Y y) {
    using O0 = typename U::O0;
    using O1 = typename U::O1;
    void *const *in = p + U::nout;
    const reader<typename U::X, (M & 1) != 0> x(in[0]);
    const reader<typename U::Z, (M & 4) != 0> z(U::nin > 2 ? in[2] : nullptr);
    O0 *o0 = static_cast<O0 *>(p[0]);
    [[maybe_unused]] O1 *o1 = static_cast<O1 *>(p[U::nout - 1]);
    n = n / unit<U>() * unit<U>();
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) {
        typename U::R0 r0;
        typename U::R1 r1;
        U::apply_to(x.at(i), y.at(i), z.at(i), r0, r1);
        o0[i] = O0(r0);
        if constexpr (U::nout > 1) o1[i] = O1(r1);
    }
}

template <class U, unsigned M> void body(void *const *p, int64_t n) {
    loop<U, M>(p, n, reader<typename U::Y, (M & 2) != 0>(U::nin > 1 ? p[U::nout + 1] : nullptr));
}

/* Rows that divide integers: by one number as its reciprocal, where it has one. */
template <class U> constexpr bool divides = false;
template <class S> constexpr bool divides<ufunc<AD_UFUNC_floor_divide, S>> = is_int<S>;
template <class S> constexpr bool divides<ufunc<AD_UFUNC_remainder, S>> = is_int<S>;
template <class S> constexpr bool divides<ufunc<AD_UFUNC_divmod, S>> = is_int<S>;

template <class U> bool divide(void *const *p, int64_t n) {
    using T = typename U::Y;
    const T by = *static_cast<const T *>(p[U::nout + 1]);
    if (!adm::divisor<T>::takes(by)) return false;
    loop<U, 2>(p, n, made<adm::divisor<T>>{adm::divisor<T>(by)});
    return true;
}

/* Integers to integer powers: a bit of many exponents at a time, which are as long as the longest of them. */
template <class U> constexpr bool raises = false;
template <class S> constexpr bool raises<ufunc<AD_UFUNC_power, S>> = is_int<S>;

template <class U, unsigned M> AD_NOINLINE void powers(void *const *p, int64_t n) {
    using T = typename U::X;
    constexpr int64_t MOST = 256 / sizeof(T); /* longer ones read and write memory by turns, which is slower */
    reader<T, (M & 1) != 0> x(p[1]);
    reader<T, (M & 2) != 0> y(p[2]);
    T *out = static_cast<T *>(p[0]);
    T base[MOST], exponent[MOST], power[MOST];
    for (int64_t done = 0; done < n; done += MOST) {
        const int64_t m = n - done < MOST ? n - done : MOST;
        T bits = 0;
        for (int64_t i = 0; i < m; i++) {
            base[i] = x.at(done + i);
            exponent[i] = y.at(done + i);
            power[i] = 1;
            bits = T(bits | exponent[i]);
        }
        if constexpr (is_signed<T>) {
            if (bits < 0) { /* one of them is, which is said element by element */
                void *q[] = {out + done, M & 1 ? &x.first : static_cast<T *>(p[1]) + done,
                             M & 2 ? &y.first : static_cast<T *>(p[2]) + done};
                body<U, M>(q, m);
                continue;
            }
        }
        for (; bits != 0; bits = T(bits >> 1)) {
            if (!(M & 2) || bits & 1)
                for (int64_t i = 0; i < m; i++)
                    power[i] = M & 2 || exponent[i] & 1 ? adm::mul(power[i], base[i]) : power[i];
            if (bits == 1) break;
            for (int64_t i = 0; i < m; i++) {
                base[i] = adm::mul(base[i], base[i]);
                exponent[i] = T(exponent[i] >> 1);
            }
        }
        memcpy(out + done, power, size_t(m) * sizeof(T));
    }
}

template <class U, unsigned M> void tail(void *const *p, int64_t done, int64_t n) {
    using T = typename U::X;
    using O = typename U::O0;
    constexpr int64_t N = unit<U>();
    O out[N];
    T in[2][N];
    void *q[3] = {out, p[1], U::nin > 1 ? p[2] : nullptr};
    for (int k = 0; k < U::nin; k++) {
        if (M >> k & 1) continue;
        const T *from = static_cast<const T *>(p[1 + k]) + done;
        for (int64_t i = 0; i < N; i++) in[k][i] = from[i < n ? i : 0];
        q[1 + k] = in[k];
    }
    body<U, M>(q, N);
    for (int64_t i = 0; i < n; i++) static_cast<O *>(p[0])[done + i] = out[i];
}

template <class U, unsigned M> void whole(void *const *p, int64_t n) {
    int64_t done = n / unit<U>() * unit<U>();
    if (done > 0) body<U, M>(p, done);
    if constexpr (unit<U>() > 1)
        if (done < n) tail<U, M>(p, done, n - done);
}

/* Every input is one element: compute once. */
template <class U> AD_NOINLINE void fill(void *const *p, int64_t n) {
    using O0 = typename U::O0;
    using O1 = typename U::O1;
    O0 v0;
    O1 v1;
    void *q[5] = {&v0, &v1};
    for (int k = 0; k < U::nin; k++) q[U::nout + k] = p[U::nout + k];
    if constexpr (unit<U>() > 1) tail<U, 0>(q, 0, 1); /* as elements: of one for all the compiler makes a scalar */
    else body<U, (1u << U::nin) - 1>(q, 1);
    for (int64_t i = 0; i < n; i++) static_cast<O0 *>(p[0])[i] = v0;
    if constexpr (U::nout > 1)
        for (int64_t i = 0; i < n; i++) static_cast<O1 *>(p[1])[i] = v1;
}

template <class U> void entry(void *const *p, unsigned scalars, int64_t n) {
    constexpr unsigned all = (1u << U::nin) - 1;
    if (scalars == all) return fill<U>(p, n);
    if constexpr (all > 1) {
        if constexpr (divides<U>)
            if (scalars == 2 && divide<U>(p, n)) return;
        if constexpr (raises<U>)
            return scalars == 2 ? powers<U, 2>(p, n) : scalars ? powers<U, 1>(p, n) : powers<U, 0>(p, n);
        if (scalars == 1) return whole<U, 1>(p, n);
        if (scalars == 2) return whole<U, 2>(p, n);
    }
    if constexpr (all > 3) {
        if (scalars == 3) return whole<U, 3>(p, n);
        if (scalars == 4) return whole<U, 4>(p, n);
        if (scalars == 5) return whole<U, 5>(p, n);
        if (scalars == 6) return whole<U, 6>(p, n);
    }
    whole<U, 0>(p, n);
}

template <int Id, class S> constexpr ad_ufunc_kernel kernel_of() {
    if constexpr (has_kernel<Id, S>() && Id != AD_UFUNC_copy) return &entry<ufunc<Id, S>>;
    else return nullptr;
}

template <class S> struct ufunc_table {
    ad_ufunc_kernel row[AD_UFUNC_LIMIT];
    constexpr ufunc_table() : row{} {
#define AD_UFUNC(id, name, nin, nout, rulename, domain, cost, traits, test, doc, ...) row[id] = kernel_of<id, S>();
#include "protocol/ufunc.def"
#undef AD_UFUNC
    }
};

} // namespace AD_ISA
} // namespace ad

#define AD_UFUNC_TABLE(name)                                                     \
    namespace ad {                                                               \
    inline namespace AD_ISA {                                                    \
    static constexpr ufunc_table<t_##name> table_##name;                         \
    extern const ad_ufunc_kernel *const ufunc_kernels_##name = table_##name.row; \
    }                                                                            \
    }
#endif
