/* complex<float> and complex<double> for sources of users, as cupy/complex.cuh and thrust name them. No headers: it
 * costs NVRTC milliseconds, not half a second. */
#ifndef AD_RUN_COMPLEX_H
#define AD_RUN_COMPLEX_H

#define AD_CX __host__ __device__ inline

namespace thrust {

template <class T> struct __align__(2 * sizeof(T)) complex {
    typedef T value_type;

    complex() = default;
    __host__ __device__ constexpr complex(const T &r, const T &i = T()) : re(r), im(i) {}
    template <class U> __host__ __device__ constexpr complex(const complex<U> &z) : re(T(z.real())), im(T(z.imag())) {}

    __host__ __device__ constexpr T real() const { return re; }
    __host__ __device__ constexpr T imag() const { return im; }
    AD_CX void real(T r) { re = r; }
    AD_CX void imag(T i) { im = i; }
    AD_CX T real() const volatile { return re; }
    AD_CX T imag() const volatile { return im; }

    AD_CX complex &operator=(const T &r) {
        re = r;
        im = T();
        return *this;
    }
    AD_CX complex &operator+=(const complex &z) { return *this = complex(re + z.re, im + z.im); }
    AD_CX complex &operator-=(const complex &z) { return *this = complex(re - z.re, im - z.im); }
    AD_CX complex &operator*=(const complex &z) {
        return *this = complex(re * z.re - im * z.im, re * z.im + im * z.re);
    }
    AD_CX complex &operator/=(const complex &z) { return *this = *this / z; }
    AD_CX complex &operator+=(const T &r) { return *this = complex(re + r, im); }
    AD_CX complex &operator-=(const T &r) { return *this = complex(re - r, im); }
    AD_CX complex &operator*=(const T &r) { return *this = complex(re * r, im * r); }
    AD_CX complex &operator/=(const T &r) { return *this = complex(re / r, im / r); }

  private:
    T re, im;
};

/* ---- arithmetic ---- */

template <class T> AD_CX complex<T> operator+(const complex<T> &z) { return z; }
template <class T> AD_CX complex<T> operator-(const complex<T> &z) { return complex<T>(-z.real(), -z.imag()); }

/* A product that is rounded before it is added to something. */
#ifdef __CUDA_ARCH__
AD_CX float ad_product(float x, float y) { return __fmul_rn(x, y); }
AD_CX double ad_product(double x, double y) { return __dmul_rn(x, y); }
#else
template <class T> AD_CX T ad_product(T x, T y) { return x * y; }
#endif

/* Divide by the larger part of the divisor, as arrays do, so that its square neither overflows nor vanishes. */
template <class T> AD_CX complex<T> ad_divide(const complex<T> &a, const complex<T> &b) {
    const T re = ::fabs(b.real()), im = ::fabs(b.imag());
    if (re >= im) {
        if (re == 0 && im == 0) return complex<T>(a.real() / re, a.imag() / im);
        const T ratio = b.imag() / b.real(), scale = T(1) / (b.real() + ad_product(b.imag(), ratio));
        return complex<T>((a.real() + ad_product(a.imag(), ratio)) * scale,
                          (a.imag() - ad_product(a.real(), ratio)) * scale);
    }
    const T ratio = b.real() / b.imag(), scale = T(1) / (b.imag() + ad_product(b.real(), ratio));
    return complex<T>((ad_product(a.real(), ratio) + a.imag()) * scale,
                      (ad_product(a.imag(), ratio) - a.real()) * scale);
}

#define AD_CX_OPERATOR(op, both, left, right)                                                                  \
    template <class T> AD_CX complex<T> operator op(const complex<T> &a, const complex<T> &b) { return both; } \
    template <class T> AD_CX complex<T> operator op(const complex<T> &a, const T &b) { return left; }          \
    template <class T> AD_CX complex<T> operator op(const T &a, const complex<T> &b) { return right; }         \
    AD_CX complex<double> operator op(const complex<float> &a, const complex<double> &b) {                     \
        return complex<double>(a) op b;                                                                        \
    }                                                                                                          \
    AD_CX complex<double> operator op(const complex<double> &a, const complex<float> &b) {                     \
        return a op complex<double>(b);                                                                        \
    }
AD_CX_OPERATOR(+, complex<T>(a.real() + b.real(), a.imag() + b.imag()), complex<T>(a.real() + b, a.imag()),
               complex<T>(a + b.real(), b.imag()))
AD_CX_OPERATOR(-, complex<T>(a.real() - b.real(), a.imag() - b.imag()), complex<T>(a.real() - b, a.imag()),
               complex<T>(a - b.real(), -b.imag()))
AD_CX_OPERATOR(*, complex<T>(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()),
               complex<T>(a.real() * b, a.imag() * b), complex<T>(a *b.real(), a *b.imag()))
AD_CX_OPERATOR(/, ad_divide(a, b), complex<T>(a.real() / b, a.imag() / b), ad_divide(complex<T>(a), b))
#undef AD_CX_OPERATOR

template <class T> AD_CX bool operator==(const complex<T> &a, const complex<T> &b) {
    return a.real() == b.real() && a.imag() == b.imag();
}
template <class T> AD_CX bool operator==(const complex<T> &a, const T &b) { return a.real() == b && a.imag() == 0; }
template <class T> AD_CX bool operator==(const T &a, const complex<T> &b) { return b == a; }
template <class T> AD_CX bool operator!=(const complex<T> &a, const complex<T> &b) { return !(a == b); }
template <class T> AD_CX bool operator!=(const complex<T> &a, const T &b) { return !(a == b); }
template <class T> AD_CX bool operator!=(const T &a, const complex<T> &b) { return !(b == a); }
/* Order numbers as NumPy sorts them: by the real part, then by the imaginary one. */
template <class T> AD_CX bool operator<(const complex<T> &a, const complex<T> &b) {
    return a.real() < b.real() || (a.real() == b.real() && a.imag() < b.imag());
}
template <class T> AD_CX bool operator>(const complex<T> &a, const complex<T> &b) { return b < a; }
template <class T> AD_CX bool operator<=(const complex<T> &a, const complex<T> &b) {
    return a.real() < b.real() || (a.real() == b.real() && a.imag() <= b.imag());
}
template <class T> AD_CX bool operator>=(const complex<T> &a, const complex<T> &b) { return b <= a; }

/* Functions of real numbers. */
using ::atan2;
using ::copysign;
using ::cos;
using ::cosh;
using ::exp;
using ::fabs;
using ::hypot;
using ::isfinite;
using ::isinf;
using ::isnan;
using ::log;
using ::sin;
using ::sinh;
using ::sqrt;

/* ---- parts ---- */

template <class T> AD_CX T real(const complex<T> &z) { return z.real(); }
template <class T> AD_CX T imag(const complex<T> &z) { return z.imag(); }
template <class T> AD_CX complex<T> conj(const complex<T> &z) { return complex<T>(z.real(), -z.imag()); }
template <class T> AD_CX T abs(const complex<T> &z) { return hypot(z.real(), z.imag()); }
template <class T> AD_CX T arg(const complex<T> &z) { return atan2(z.imag(), z.real()); }
template <class T> AD_CX T norm(const complex<T> &z) { return z.real() * z.real() + z.imag() * z.imag(); }
template <class T> AD_CX complex<T> polar(const T &r, const T &angle = T()) {
    return complex<T>(r * cos(angle), r * sin(angle));
}
template <class T> AD_CX complex<T> proj(const complex<T> &z) {
    if (!isinf(z.real()) && !isinf(z.imag())) return z;
    return complex<T>(T(1) / T(0), copysign(T(0), z.imag()));
}
template <class T> AD_CX bool isnan(const complex<T> &z) { return isnan(z.real()) || isnan(z.imag()); }
template <class T> AD_CX bool isinf(const complex<T> &z) { return isinf(z.real()) || isinf(z.imag()); }
template <class T> AD_CX bool isfinite(const complex<T> &z) { return isfinite(z.real()) && isfinite(z.imag()); }

/* ---- functions ---- */

template <class T> AD_CX complex<T> exp(const complex<T> &z) {
    const T e = exp(z.real());
    if (z.imag() == 0) return complex<T>(e, z.imag());
    return complex<T>(e * cos(z.imag()), e * sin(z.imag()));
}
template <class T> AD_CX complex<T> log(const complex<T> &z) { return complex<T>(log(abs(z)), arg(z)); }
template <class T> AD_CX complex<T> log10(const complex<T> &z) { return log(z) / T(2.30258509299404568402); }
template <class T> AD_CX complex<T> sqrt(const complex<T> &z) {
    const T size = abs(z);
    if (size == 0) return complex<T>(0, z.imag());
    const T part = sqrt((fabs(z.real()) + size) / 2), other = fabs(z.imag()) / (2 * part);
    return z.real() >= 0 ? complex<T>(part, copysign(other, z.imag())) : complex<T>(other, copysign(part, z.imag()));
}
template <class T> AD_CX complex<T> sinh(const complex<T> &z) {
    return complex<T>(sinh(z.real()) * cos(z.imag()), cosh(z.real()) * sin(z.imag()));
}
template <class T> AD_CX complex<T> cosh(const complex<T> &z) {
    return complex<T>(cosh(z.real()) * cos(z.imag()), sinh(z.real()) * sin(z.imag()));
}
template <class T> AD_CX complex<T> tanh(const complex<T> &z) {
    const T x = 2 * z.real(), y = 2 * z.imag();
    if (fabs(x) > 44) return complex<T>(copysign(T(1), x), copysign(T(0), sin(y)));
    const T d = cosh(x) + cos(y);
    return complex<T>(sinh(x) / d, sin(y) / d);
}
/* i z and -i z */
template <class T> AD_CX complex<T> ad_times_i(const complex<T> &z) { return complex<T>(-z.imag(), z.real()); }
template <class T> AD_CX complex<T> ad_over_i(const complex<T> &z) { return complex<T>(z.imag(), -z.real()); }
template <class T> AD_CX complex<T> sin(const complex<T> &z) { return ad_over_i(sinh(ad_times_i(z))); }
template <class T> AD_CX complex<T> cos(const complex<T> &z) { return cosh(ad_times_i(z)); }
template <class T> AD_CX complex<T> tan(const complex<T> &z) { return ad_over_i(tanh(ad_times_i(z))); }
template <class T> AD_CX complex<T> asinh(const complex<T> &z) {
    const complex<T> one(1),
        r = log(sqrt(z * z + one) + complex<T>(fabs(z.real()), z.real() < 0 ? -z.imag() : z.imag()));
    return z.real() < 0 ? -r : r;
}
template <class T> AD_CX complex<T> acosh(const complex<T> &z) {
    const complex<T> one(1);
    return log(z + sqrt(z + one) * sqrt(z - one));
}
template <class T> AD_CX complex<T> atanh(const complex<T> &z) {
    const complex<T> one(1);
    return (log(one + z) - log(one - z)) * T(0.5);
}
template <class T> AD_CX complex<T> asin(const complex<T> &z) { return ad_over_i(asinh(ad_times_i(z))); }
template <class T> AD_CX complex<T> acos(const complex<T> &z) {
    return complex<T>(T(1.57079632679489661923)) - asin(z);
}
template <class T> AD_CX complex<T> atan(const complex<T> &z) { return ad_over_i(atanh(ad_times_i(z))); }
template <class T> AD_CX complex<T> pow(const complex<T> &a, const complex<T> &b) {
    if (a == T(0)) return b == T(0) ? complex<T>(1) : complex<T>(0);
    return exp(log(a) * b);
}
template <class T> AD_CX complex<T> pow(const complex<T> &a, const T &b) { return pow(a, complex<T>(b)); }
template <class T> AD_CX complex<T> pow(const T &a, const complex<T> &b) { return pow(complex<T>(a), b); }
/* Powers by multiplication are exact for small numbers. */
template <class T> AD_CX complex<T> pow(const complex<T> &a, int n) {
    complex<T> r(1), square = n < 0 ? complex<T>(1) / a : a;
    for (unsigned k = n < 0 ? 0u - unsigned(n) : unsigned(n); k > 0; k >>= 1, square *= square)
        if (k & 1) r *= square;
    return r;
}

} // namespace thrust

using thrust::abs;
using thrust::acos;
using thrust::acosh;
using thrust::arg;
using thrust::asin;
using thrust::asinh;
using thrust::atan;
using thrust::atanh;
using thrust::complex;
using thrust::conj;
using thrust::cos;
using thrust::cosh;
using thrust::exp;
using thrust::imag;
using thrust::isfinite;
using thrust::isinf;
using thrust::isnan;
using thrust::log;
using thrust::log10;
using thrust::norm;
using thrust::polar;
using thrust::pow;
using thrust::proj;
using thrust::real;
using thrust::sin;
using thrust::sinh;
using thrust::sqrt;
using thrust::tan;
using thrust::tanh;

#undef AD_CX
#endif
