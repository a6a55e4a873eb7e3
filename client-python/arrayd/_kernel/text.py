"""The C++ that generated kernels begin with."""

# Arrays and indices. Plain structures of 64-bit integers are passed by value: dims.
ARRAYS = r"""
namespace ad_kernel {
template <int N> struct dims { long long at[N ? N : 1]; };

// A position in a shape, found from a position in C order.
template <int N> struct indexer {
    enum { ndim = N };
    ptrdiff_t size_, shape_[N ? N : 1], index_[N ? N : 1];
    __device__ explicit indexer(const dims<N> &shape) : size_(1) {
        for (int d = 0; d < N; d++) size_ *= shape_[d] = shape.at[d];
        for (int d = 0; d < (N ? N : 1); d++) index_[d] = 0;
    }
    __device__ ptrdiff_t size() const { return size_; }
    __device__ const ptrdiff_t *shape() const { return shape_; }
    __device__ const ptrdiff_t (&get() const)[N ? N : 1] { return index_; }
    __device__ void set(ptrdiff_t i) {
        if (size_ <= 0x7fffffff) split<unsigned int>((unsigned int)i); // division of 64 bits is slow
        else split<unsigned long long>(i);
    }
    template <class I> __device__ void split(I i) {
        for (int d = N - 1; d > 0; d--) {
            I n = (I)shape_[d], q = i / n;
            index_[d] = i - q * n;
            i = q;
        }
        if (N) index_[0] = i;
    }
    __device__ ptrdiff_t offset(const dims<N> &strides) const {
        ptrdiff_t sum = 0;
        for (int d = 0; d < N; d++) sum += index_[d] * strides.at[d];
        return sum;
    }
};

// What threads of a block share, without constructors.
template <int N, int A = 16> struct alignas(A) shared_bytes { unsigned char at[N]; };

template <class T> __device__ T &at(T *data, ptrdiff_t offset) { return *(T *)((char *)data + offset); }

// An array with a shape. C: its elements lie in C order without gaps.
template <class T, int N, bool C> struct array {
    enum { ndim = N };
    T *data_;
    ptrdiff_t size_, shape_[N ? N : 1], strides_[N ? N : 1];
    array() = default;
    __device__ array(T *data, const dims<N> &shape, const dims<N> &strides) : data_(data), size_(1) {
        for (int d = 0; d < N; d++) {
            size_ *= shape_[d] = shape.at[d];
            strides_[d] = strides.at[d];
        }
    }
    __device__ ptrdiff_t size() const { return size_; }
    __device__ const ptrdiff_t *shape() const { return shape_; }
    __device__ const ptrdiff_t *strides() const { return strides_; }
    __device__ T &operator[](ptrdiff_t i) const {
        if (C) return data_[i];
        if (N == 1) return at(data_, i * strides_[0]);
        ptrdiff_t offset = 0;
        for (int d = N - 1; d > 0; d--) {
            ptrdiff_t q = i / shape_[d];
            offset += (i - q * shape_[d]) * strides_[d];
            i = q;
        }
        return at(data_, N ? offset + i * strides_[0] : 0);
    }
    template <class I, int M> __device__ T &operator[](const I (&index)[M]) const {
        ptrdiff_t offset = 0;
        for (int d = 0; d < N; d++) offset += index[d] * strides_[d];
        return at(data_, offset);
    }
};
// The array that is left of one where its first indices are given.
template <class T, int N, bool C, class... I>
__device__ array<T, N - (int)sizeof...(I), C> row(const array<T, N, C> &a, I... i) {
    enum { given = sizeof...(I) };
    const ptrdiff_t index[given] = {i...};
    array<T, N - given, C> left;
    ptrdiff_t offset = 0;
    for (int d = 0; d < given; d++) offset += index[d] * a.strides_[d];
    left.data_ = &at(a.data_, offset);
    left.size_ = 1;
    for (int d = given; d < N; d++) {
        left.size_ *= left.shape_[d - given] = a.shape_[d];
        left.strides_[d - given] = a.strides_[d];
    }
    return left;
}
template <class T, int N, bool C, class... I> __device__ T &item(const array<T, N, C> &a, I... i) {
    const ptrdiff_t index[sizeof...(i) ? sizeof...(i) : 1] = {i...};
    return a[index];
}
} // namespace ad_kernel
"""

# float16 and bfloat16 as numbers that become float as soon as one computes with them.
BITS = r"""
#ifndef AD_BITS
#define AD_BITS
namespace ad_kernel {
template <class To, class From> static inline __device__ To same_bits(From from) {
    union { From from; To to; } both = {from};
    return both.to;
}
template <class Format> struct small_float {
    unsigned short bits;
    small_float() = default;
    template <class T> __device__ small_float(T v) : bits(Format::pack((float)v)) {}
    __device__ operator float() const { return Format::unpack(bits); }
    template <class T> __device__ small_float &operator+=(T v) { return *this = small_float((float)*this + (float)v); }
    template <class T> __device__ small_float &operator-=(T v) { return *this = small_float((float)*this - (float)v); }
    template <class T> __device__ small_float &operator*=(T v) { return *this = small_float((float)*this * (float)v); }
    template <class T> __device__ small_float &operator/=(T v) { return *this = small_float((float)*this / (float)v); }
};
} // namespace ad_kernel
#endif
"""
HALF = r"""
namespace ad_kernel {
struct half_format {
#ifdef __FLT16_MANT_DIG__
    static inline __device__ unsigned short pack(float v) { return same_bits<unsigned short>((_Float16)v); }
    static inline __device__ float unpack(unsigned short bits) { return (float)same_bits<_Float16>(bits); }
#else
    static inline __device__ unsigned short pack(float v) {
        unsigned short bits;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(v));
        return bits;
    }
    static inline __device__ float unpack(unsigned short bits) {
        float v;
        asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(bits));
        return v;
    }
#endif
};
} // namespace ad_kernel
typedef ad_kernel::small_float<ad_kernel::half_format> float16;
"""
BFLOAT = r"""
namespace ad_kernel {
struct bfloat_format {
    static inline __device__ unsigned short pack(float v) {
        unsigned int bits = same_bits<unsigned int>(v);
        return v != v ? 0x7fc0 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    }
    static inline __device__ float unpack(unsigned short bits) { return same_bits<float>((unsigned int)bits << 16); }
};
} // namespace ad_kernel
typedef ad_kernel::small_float<ad_kernel::bfloat_format> bfloat16;
"""

# What Python and NumPy define otherwise than C++, for functions that are translated from Python.
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
