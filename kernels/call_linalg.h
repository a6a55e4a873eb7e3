/* Stacks of matrices for the decompositions of both backends. LAPACK and cuSOLVER have matrices by columns: a packed
 * matrix of ours is to them its transpose. */
#ifndef AD_KERNELS_CALL_LINALG_H
#define AD_KERNELS_CALL_LINALG_H

#include "kernels/call.h"
#include "kernels/math.h"

namespace ad {
inline namespace AD_ISA {

inline array transposed(const array &a) {
    array t = a;
    const int r = a.ndim - 2, k = a.ndim - 1;
    t.shape[r] = a.shape[k];
    t.shape[k] = a.shape[r];
    t.stride[r] = a.stride[k];
    t.stride[k] = a.stride[r];
    return t;
}

/* a of a loop's complex type, or of its real one. */
inline bool is_complex_dtype(int dtype) { return dtype == AD_COMPLEX64 || dtype == AD_COMPLEX128; }
inline int real_dtype(int dtype) { return dtype == AD_COMPLEX64 || dtype == AD_FLOAT32 ? AD_FLOAT32 : AD_FLOAT64; }

inline int complex_dtype(int dtype) { return real_dtype(dtype) == AD_FLOAT32 ? AD_COMPLEX64 : AD_COMPLEX128; }

inline int64_t rows(const array &a) { return a.shape[a.ndim - 2]; }
inline int64_t columns(const array &a) { return a.shape[a.ndim - 1]; }
inline int64_t matrices(const array &a) { return count(a, 0, a.ndim - 2); }

/* f(tag<T>{}) for the four types that there are decompositions for; the loop has been checked. */
template <class F> inline int visit_field(int dtype, F &&f) {
    switch (dtype) {
    case AD_FLOAT32: return f(tag<float>{});
    case AD_COMPLEX64: return f(tag<complex<float>>{});
    case AD_COMPLEX128: return f(tag<complex<double>>{});
    default: return f(tag<double>{});
    }
}

inline array linalg_input(const ad_call *c, int index) { return view_of(c->op->operand[c->op->nout + index]); }

/* *a, whose dtype and shape are set, as a packed array in scratch memory. AD_E_MEMORY. */
inline int linalg_scratch(ad_call *c, array *a) {
    const int64_t size = pack(a);
    a->data = static_cast<char *>(ad_call_workspace(c, uint64_t(size)));
    return !a->data ? AD_E_MEMORY : 0;
}

/* As ad_call_output, but packed, and at a multiple of an element's size: a view of complex numbers need not be. */
inline int linalg_output(ad_call *c, int index, int dtype, array *out) {
    int status = ad_call_output(c, index, dtype, out);
    if (status) return status;
    if (!is_packed(*out) || reinterpret_cast<uintptr_t>(out->data) % uintptr_t(itemsize(dtype)) != 0)
        return linalg_scratch(c, out);
    pack(out);
    return 0;
}

/* A packed copy of `from` as elements of dtype; flip: of the transposed matrices. */
inline int linalg_copy(ad_call *c, const array &from, int dtype, bool flip, array *out) {
    const array view = flip ? transposed(from) : from;
    *out = view;
    out->dtype = dtype;
    int status = linalg_scratch(c, out);
    return status ? status : ad_call_copy(c, out, &view);
}

/* x as a view that repeats it for the leading dimensions of `to`. */
inline array linalg_broadcast(const array &x, const array &to) {
    array b = x;
    const int lead = to.ndim - x.ndim;
    b.ndim = to.ndim;
    for (int i = to.ndim - 1; i >= 0; i--) {
        const bool own = i >= lead, leading = i < to.ndim - 2;
        b.shape[i] = leading ? to.shape[i] : x.shape[i - lead];
        b.stride[i] = !own || (leading && x.shape[i - lead] == 1) ? 0 : x.stride[i - lead];
    }
    return b;
}

/* A determinant, as far as some elements of the diagonal of LU factors tell. */
template <class T> struct determinant {
    T sign = T(1);
    real_t<T> size = 0; /* the logarithm */
    bool singular = false;

    /* exchanged: the row has changed places with another one. */
    AD_HD void take(T element, bool exchanged) {
        const real_t<T> length = adm::abs(element);
        singular |= length == 0;
        sign = sign * (exchanged ? T(-1) : T(1));
        if constexpr (is_complex<T>) sign = sign * T(element.re / length, element.im / length);
        else if (element < 0) sign = -sign;
        size += adm::log(length);
    }
    AD_HD void join(const determinant &other) {
        sign = sign * other.sign;
        size += other.size;
        singular |= other.singular;
    }
    AD_HD T find_sign() const { return singular ? T(0) : sign; }
    AD_HD real_t<T> find_size() const { return singular ? -adm::infinity<real_t<T>>() : size; }
};

} // namespace AD_ISA
} // namespace ad
#endif
