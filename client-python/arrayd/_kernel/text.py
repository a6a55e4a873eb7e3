"""The C++ that generated kernels begin with."""

# Functions that Python and NumPy define otherwise than C++, for functions that are translated from Python.
MATH = r"""
namespace ad_kernel {
template <class T> static inline __device__ T floor_divide(T a, T b) {
    if (b == 0) return 0;
    if (T(-1) < T(0) && b == T(-1)) return T(0) - a;
    T q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}
template <class T> static inline __device__ T remainder(T a, T b) {
    if (b == 0 || (T(-1) < T(0) && b == T(-1))) return 0;
    T r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
template <class T> static inline __device__ T real_remainder(T a, T b) {
    T r = fmod(a, b);
    if (r == 0) return copysign(r, b);
    return (r < 0) != (b < 0) ? r + b : r;
}
static inline __device__ float remainder(float a, float b) { return real_remainder(a, b); }
static inline __device__ double remainder(double a, double b) { return real_remainder(a, b); }
template <class T> static inline __device__ T real_floor_divide(T a, T b) {
    if (b == 0) return a / b;
    T q = (a - real_remainder(a, b)) / b, whole = floor(q);
    return q == 0 ? copysign(T(0), a / b) : q - whole > T(0.5) ? whole + 1 : whole;
}
static inline __device__ float floor_divide(float a, float b) { return real_floor_divide(a, b); }
static inline __device__ double floor_divide(double a, double b) { return real_floor_divide(a, b); }
// Of integers; a negative power is what 1 / a ** -b is, rounded towards zero.
template <class T> static inline __device__ T power(T a, T b) {
    if (b < 0) return a == 1 ? T(1) : T(-1) < T(0) && a == T(-1) ? (b % 2 ? T(-1) : T(1)) : T(0);
    T r = 1;
    for (; b; b >>= 1) {
        if (b & 1) r *= a;
        a *= a;
    }
    return r;
}
template <class T> static inline __device__ T left_shift(T a, T b) {
    return b >= 0 && b < (int)sizeof(T) * 8 ? a << b : T(0);
}
template <class T> static inline __device__ T right_shift(T a, T b) {
    return b >= 0 && b < (int)sizeof(T) * 8 ? a >> b : a < 0 ? T(-1) : T(0);
}
template <class T> static inline __device__ T absolute(T a) { return a < 0 ? T(0) - a : a; }
template <class T> static inline __device__ T sign(T a) { return a > 0 ? T(1) : a < 0 ? T(-1) : a; }
template <class T> static inline __device__ T square(T a) { return a * a; }
template <class T> static inline __device__ T reciprocal(T a) { return T(1) / a; }
template <class T> static inline __device__ T maximum(T a, T b) { return a > b || a != a ? a : b; }
template <class T> static inline __device__ T minimum(T a, T b) { return a < b || a != a ? a : b; }
template <class T> static inline __device__ T most(T a, T b) { return b > a ? b : a; }
template <class T> static inline __device__ T least(T a, T b) { return b < a ? b : a; }
template <class T> static inline __device__ T heaviside(T a, T b) {
    return a != a ? a : a == 0 ? b : a < 0 ? T(0) : T(1);
}
template <class T> static inline __device__ T logaddexp(T a, T b) {
    return a == b ? a + log(T(2)) : a > b ? a + log1p(exp(b - a)) : a < b ? b + log1p(exp(a - b)) : a + b;
}
template <class T> static inline __device__ T gcd(T a, T b) {
    while (b != 0) {
        T r = a % b;
        a = b, b = r;
    }
    return absolute(a);
}
template <class T> static inline __device__ T lcm(T a, T b) {
    T d = gcd(a, b);
    return d == 0 ? T(0) : absolute(T(a / d * b));
}
} // namespace ad_kernel
"""
COMPLEX = r"""
namespace ad_kernel {
template <class To, class Z> static inline __device__ complex<To> to_complex(Z z) {
    return complex<To>((To)z.real(), (To)z.imag());
}
} // namespace ad_kernel
"""
# Atomic operations on the types that CUDA C++ has none for: by those on unsigned integers of the size.
ATOMICS = r"""
namespace ad_kernel {
typedef unsigned long long u64;
#define AD_ATOMIC(name, function) \
    template <class T> static inline __device__ T name(T *p, T v) { return function(p, v); } \
    static inline __device__ long long name(long long *p, long long v) { return (long long)function((u64 *)p, (u64)v); }
AD_ATOMIC(atomic_add, atomicAdd)
AD_ATOMIC(atomic_exch, atomicExch)
AD_ATOMIC(atomic_and, atomicAnd)
AD_ATOMIC(atomic_or, atomicOr)
AD_ATOMIC(atomic_xor, atomicXor)
#undef AD_ATOMIC
static inline __device__ double atomic_exch(double *p, double v) {
    return same_bits<double>(atomicExch((u64 *)p, same_bits<u64>(v)));
}
// Of two bytes: by their word of four, whose other half stays.
template <class Format> static inline __device__ small_float<Format> atomic_add(small_float<Format> *p, small_float<Format> v) {
    unsigned int *word = (unsigned int *)((size_t)p & ~(size_t)3), shift = ((size_t)p & 2) * 8;
    unsigned int now = *(volatile unsigned int *)word;
    for (;;) {
        small_float<Format> old, sum;
        old.bits = now >> shift;
        sum = (float)old + (float)v;
        unsigned int seen = atomicCAS(word, now, (now & ~(0xffffu << shift)) | (unsigned int)sum.bits << shift);
        if (seen == now) return old;
        now = seen;
    }
}
template <class T> static inline __device__ T atomic_sub(T *p, T v) { return atomic_add(p, T(T(0) - v)); }
template <class T> static inline __device__ T atomic_min(T *p, T v) { return atomicMin(p, v); }
template <class T> static inline __device__ T atomic_max(T *p, T v) { return atomicMax(p, v); }
// NaN wins.
template <class U, class T, class F> static inline __device__ T atomic_choose(T *p, T v, F better) {
    U now = *(volatile U *)p;
    for (;;) {
        T old = same_bits<T>(now);
        if (old != old || !(v != v || better(v, old))) return old;
        U seen = atomicCAS((U *)p, now, same_bits<U>(v));
        if (seen == now) return old;
        now = seen;
    }
}
struct is_less { template <class T> __device__ bool operator()(T a, T b) const { return a < b; } };
struct is_more { template <class T> __device__ bool operator()(T a, T b) const { return a > b; } };
static inline __device__ float atomic_min(float *p, float v) { return atomic_choose<unsigned int>(p, v, is_less()); }
static inline __device__ float atomic_max(float *p, float v) { return atomic_choose<unsigned int>(p, v, is_more()); }
static inline __device__ double atomic_min(double *p, double v) { return atomic_choose<u64>(p, v, is_less()); }
static inline __device__ double atomic_max(double *p, double v) { return atomic_choose<u64>(p, v, is_more()); }
static inline __device__ unsigned int atomic_inc(unsigned int *p, unsigned int v) { return atomicInc(p, v); }
static inline __device__ unsigned int atomic_dec(unsigned int *p, unsigned int v) { return atomicDec(p, v); }
template <class T> static inline __device__ T atomic_cas(T *p, T compare, T v) { return atomicCAS(p, compare, v); }
static inline __device__ long long atomic_cas(long long *p, long long compare, long long v) {
    return (long long)atomicCAS((u64 *)p, (u64)compare, (u64)v);
}
} // namespace ad_kernel
"""
