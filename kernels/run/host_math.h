/* Mathematics and atomics of CUDA C++ for the host's compiler; follows host.h. */

extern "C" {
int printf(const char *format, ...);
void *memcpy(void *to, const void *from, size_t n) noexcept;
void *memmove(void *to, const void *from, size_t n) noexcept;
void *memset(void *to, int c, size_t n) noexcept;
int memcmp(const void *a, const void *b, size_t n) noexcept;
size_t strlen(const char *s) noexcept;
void *malloc(size_t n) noexcept;
void free(void *p) noexcept;
}

namespace adrun {

template <bool B, class T> struct only_if {};
template <class T> struct only_if<true, T> { typedef T type; };
template <class T> struct same { typedef T type; };
template <class T> struct kind_of { static constexpr bool integer = false, real = false; };
#define AD_RUN_KIND(type, is_integer) \
    template <> struct kind_of<type> { static constexpr bool integer = is_integer, real = !is_integer; };
AD_RUN_KIND(bool, true)
AD_RUN_KIND(char, true)
AD_RUN_KIND(signed char, true)
AD_RUN_KIND(unsigned char, true)
AD_RUN_KIND(short, true)
AD_RUN_KIND(unsigned short, true)
AD_RUN_KIND(int, true)
AD_RUN_KIND(unsigned, true)
AD_RUN_KIND(long, true)
AD_RUN_KIND(unsigned long, true)
AD_RUN_KIND(long long, true)
AD_RUN_KIND(unsigned long long, true)
AD_RUN_KIND(float, false)
AD_RUN_KIND(double, false)
#undef AD_RUN_KIND
template <class T> constexpr bool is_number() { return kind_of<T>::integer || kind_of<T>::real; }
/* The type that two numbers have in common; integers count as double beside each other here. */
template <class A, class B> struct real_of { typedef double type; };
template <> struct real_of<float, float> { typedef float type; };

} // namespace adrun

/* name(double) and namef(float) are the C library's; name(float) and name(integer) are added. */
#define AD_RUN_1(name)                                                                                      \
    extern "C" double name(double) noexcept;                                                                \
    extern "C" float name##f(float) noexcept;                                                               \
    inline float name(float x) { return name##f(x); }                                                       \
    template <class T> inline typename adrun::only_if<adrun::kind_of<T>::integer, double>::type name(T x) { \
        return name(double(x));                                                                             \
    }
#define AD_RUN_2(name)                                                                                            \
    extern "C" double name(double, double) noexcept;                                                              \
    extern "C" float name##f(float, float) noexcept;                                                              \
    inline float name(float x, float y) { return name##f(x, y); }                                                 \
    template <class A, class B>                                                                                   \
    inline typename adrun::only_if<adrun::is_number<A>() && adrun::is_number<B>(), double>::type name(A x, B y) { \
        return name(double(x), double(y));                                                                        \
    }
AD_RUN_1(sin)
AD_RUN_1(cos)
AD_RUN_1(tan)
AD_RUN_1(asin)
AD_RUN_1(acos)
AD_RUN_1(atan)
AD_RUN_1(sinh)
AD_RUN_1(cosh)
AD_RUN_1(tanh)
AD_RUN_1(asinh)
AD_RUN_1(acosh)
AD_RUN_1(atanh)
AD_RUN_1(exp)
AD_RUN_1(exp2)
AD_RUN_1(exp10)
AD_RUN_1(expm1)
AD_RUN_1(log)
AD_RUN_1(log2)
AD_RUN_1(log10)
AD_RUN_1(log1p)
AD_RUN_1(logb)
AD_RUN_1(sqrt)
AD_RUN_1(cbrt)
AD_RUN_1(ceil)
AD_RUN_1(floor)
AD_RUN_1(trunc)
AD_RUN_1(round)
AD_RUN_1(rint)
AD_RUN_1(nearbyint)
AD_RUN_1(fabs)
AD_RUN_1(erf)
AD_RUN_1(erfc)
AD_RUN_1(tgamma)
AD_RUN_1(lgamma)
AD_RUN_1(j0)
AD_RUN_1(j1)
AD_RUN_1(y0)
AD_RUN_1(y1)
AD_RUN_2(pow)
AD_RUN_2(atan2)
AD_RUN_2(fmod)
AD_RUN_2(remainder)
AD_RUN_2(hypot)
AD_RUN_2(copysign)
AD_RUN_2(fdim)
AD_RUN_2(fmin)
AD_RUN_2(fmax)
AD_RUN_2(nextafter)
#undef AD_RUN_1
#undef AD_RUN_2

extern "C" {
double fma(double, double, double) noexcept;
float fmaf(float, float, float) noexcept;
double ldexp(double, int) noexcept;
float ldexpf(float, int) noexcept;
double scalbn(double, int) noexcept;
float scalbnf(float, int) noexcept;
double frexp(double, int *) noexcept;
float frexpf(float, int *) noexcept;
double modf(double, double *) noexcept;
float modff(float, float *) noexcept;
int ilogb(double) noexcept;
int ilogbf(float) noexcept;
long lrint(double) noexcept;
long lrintf(float) noexcept;
long lround(double) noexcept;
long lroundf(float) noexcept;
long long llrint(double) noexcept;
long long llrintf(float) noexcept;
long long llround(double) noexcept;
long long llroundf(float) noexcept;
void sincos(double, double *, double *) noexcept;
void sincosf(float, float *, float *) noexcept;
double jn(int, double) noexcept;
float jnf(int, float) noexcept;
double yn(int, double) noexcept;
float ynf(int, float) noexcept;
int abs(int) noexcept;
long labs(long) noexcept;
long long llabs(long long) noexcept;
}
inline float fma(float x, float y, float z) { return fmaf(x, y, z); }
inline float ldexp(float x, int n) { return ldexpf(x, n); }
inline float scalbn(float x, int n) { return scalbnf(x, n); }
inline float frexp(float x, int *n) { return frexpf(x, n); }
inline float modf(float x, float *whole) { return modff(x, whole); }
inline int ilogb(float x) { return ilogbf(x); }
inline long lrint(float x) { return lrintf(x); }
inline long lround(float x) { return lroundf(x); }
inline long long llrint(float x) { return llrintf(x); }
inline long long llround(float x) { return llroundf(x); }
inline void sincos(float x, float *s, float *c) { sincosf(x, s, c); }
inline long abs(long x) { return labs(x); }
inline long long abs(long long x) { return llabs(x); }
inline float abs(float x) { return fabsf(x); }
inline double abs(double x) { return fabs(x); }

inline double rsqrt(double x) { return 1 / sqrt(x); }
inline float rsqrt(float x) { return 1 / sqrtf(x); }
inline float rsqrtf(float x) { return 1 / sqrtf(x); }
inline double rcbrt(double x) { return 1 / cbrt(x); }
inline float rcbrt(float x) { return 1 / cbrtf(x); }
inline float rcbrtf(float x) { return 1 / cbrtf(x); }
inline double normcdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }
inline float normcdf(float x) { return float(normcdf(double(x))); }
inline float normcdff(float x) { return normcdf(x); }
/* Exact at multiples of a half, as the GPU's are. */
inline void sincospi(double x, double *s, double *c) {
    const double r = x - 2 * rint(x / 2), q = rint(2 * r), t = (r - q / 2) * M_PI;
    const int n = int(q) & 3;
    const double a = sin(t), b = cos(t);
    *s = n == 0 ? a : n == 1 ? b : n == 2 ? -a : -b;
    *c = n == 0 ? b : n == 1 ? -a : n == 2 ? -b : a;
}
inline double sinpi(double x) {
    double s, c;
    sincospi(x, &s, &c);
    return s;
}
inline double cospi(double x) {
    double s, c;
    sincospi(x, &s, &c);
    return c;
}
inline float sinpi(float x) { return float(sinpi(double(x))); }
inline float cospi(float x) { return float(cospi(double(x))); }
inline float sinpif(float x) { return sinpi(x); }
inline float cospif(float x) { return cospi(x); }
inline void sincospif(float x, float *s, float *c) {
    *s = sinpi(x);
    *c = cospi(x);
}
inline double norm3d(double x, double y, double z) { return hypot(hypot(x, y), z); }
inline float norm3df(float x, float y, float z) { return hypotf(hypotf(x, y), z); }

inline bool isnan(float x) { return __builtin_isnan(x); }
inline bool isnan(double x) { return __builtin_isnan(x); }
inline bool isinf(float x) { return __builtin_isinf(x) != 0; }
inline bool isinf(double x) { return __builtin_isinf(x) != 0; }
inline bool isfinite(float x) { return __builtin_isfinite(x); }
inline bool isfinite(double x) { return __builtin_isfinite(x); }
inline bool signbit(float x) { return __builtin_signbit(x) != 0; }
inline bool signbit(double x) { return __builtin_signbit(x) != 0; }

/* As CUDA's: of two numbers, one of which is NaN, the other. */
namespace adrun {
template <class T> inline typename only_if<kind_of<T>::integer, T>::type least(T a, T b) { return b < a ? b : a; }
template <class T> inline typename only_if<kind_of<T>::integer, T>::type most(T a, T b) { return a < b ? b : a; }
inline float least(float a, float b) { return fminf(a, b); }
inline double least(double a, double b) { return fmin(a, b); }
inline float most(float a, float b) { return fmaxf(a, b); }
inline double most(double a, double b) { return fmax(a, b); }
template <class A, class B, bool = is_number<A>() && is_number<B>()> struct common {};
template <class A, class B> struct common<A, B, true> { typedef decltype(true ? A() : B()) type; };
} // namespace adrun
template <class A, class B> inline typename adrun::common<A, B>::type min(A a, B b) {
    typedef typename adrun::common<A, B>::type type;
    return adrun::least(type(a), type(b));
}
template <class A, class B> inline typename adrun::common<A, B>::type max(A a, B b) {
    typedef typename adrun::common<A, B>::type type;
    return adrun::most(type(a), type(b));
}

/* ---- intrinsics ---- */

inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return tanf(x); }
inline float __expf(float x) { return expf(x); }
inline float __exp10f(float x) { return exp10f(x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __fdividef(float x, float y) { return x / y; }
inline float fdividef(float x, float y) { return x / y; }
inline double fdivide(double x, double y) { return x / y; }
inline void __sincosf(float x, float *s, float *c) { sincosf(x, s, c); }
inline float __saturatef(float x) { return !(x > 0) ? 0.f : x > 1 ? 1.f : x; }
inline float __frcp_rn(float x) { return 1 / x; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __frsqrt_rn(float x) { return float(1 / sqrt(double(x))); }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dsub_rn(double x, double y) { return x - y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __ddiv_rn(double x, double y) { return x / y; }
inline double __drcp_rn(double x) { return 1 / x; }
inline double __dsqrt_rn(double x) { return sqrt(x); }
inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }

namespace adrun {
/* To an integer as the GPU does: what is out of range becomes the end of the range, NaN 0. */
template <class I, class F> inline I clamp(F x) {
    constexpr bool is_signed = I(-1) < I(0);
    constexpr int bits = int(8 * sizeof(I)) - is_signed;
    const F end = F(__builtin_ldexp(1.0, bits));
    if (!(x == x)) return 0;
    if (x >= end) return is_signed ? I(~(1ull << (8 * sizeof(I) - 1))) : I(-1);
    if (is_signed ? x < -end : x <= F(-1)) return is_signed ? I(1ull << (8 * sizeof(I) - 1)) : 0;
    return I(x);
}
} // namespace adrun
#define AD_RUN_TO(from, F, to, I)                                            \
    inline I __##from##2##to##_rn(F x) { return adrun::clamp<I>(rint(x)); }  \
    inline I __##from##2##to##_rz(F x) { return adrun::clamp<I>(trunc(x)); } \
    inline I __##from##2##to##_ru(F x) { return adrun::clamp<I>(ceil(x)); }  \
    inline I __##from##2##to##_rd(F x) { return adrun::clamp<I>(floor(x)); }
AD_RUN_TO(float, float, int, int)
AD_RUN_TO(float, float, uint, unsigned)
AD_RUN_TO(float, float, ll, long long)
AD_RUN_TO(float, float, ull, unsigned long long)
AD_RUN_TO(double, double, int, int)
AD_RUN_TO(double, double, uint, unsigned)
AD_RUN_TO(double, double, ll, long long)
AD_RUN_TO(double, double, ull, unsigned long long)
#undef AD_RUN_TO
inline float __int2float_rn(int x) { return float(x); }
inline float __uint2float_rn(unsigned x) { return float(x); }
inline float __ll2float_rn(long long x) { return float(x); }
inline float __ull2float_rn(unsigned long long x) { return float(x); }
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned x) { return x; }
inline double __ll2double_rn(long long x) { return double(x); }
inline double __ull2double_rn(unsigned long long x) { return double(x); }
inline float __double2float_rn(double x) { return float(x); }
inline int __float_as_int(float x) { return adrun::value_of<int>(adrun::bits_of(x)); }
inline unsigned __float_as_uint(float x) { return adrun::value_of<unsigned>(adrun::bits_of(x)); }
inline float __int_as_float(int x) { return adrun::value_of<float>(adrun::bits_of(x)); }
inline float __uint_as_float(unsigned x) { return adrun::value_of<float>(adrun::bits_of(x)); }
inline long long __double_as_longlong(double x) { return adrun::value_of<long long>(adrun::bits_of(x)); }
inline double __longlong_as_double(long long x) { return adrun::value_of<double>(adrun::bits_of(x)); }
inline int __double2hiint(double x) { return int(adrun::bits_of(x) >> 32); }
inline int __double2loint(double x) { return int(adrun::bits_of(x)); }
inline double __hiloint2double(int high, int low) {
    return adrun::value_of<double>((unsigned long long)(unsigned)high << 32 | (unsigned)low);
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned long long __brevll(unsigned long long x) {
    x = (x >> 1 & 0x5555555555555555ull) | (x & 0x5555555555555555ull) << 1;
    x = (x >> 2 & 0x3333333333333333ull) | (x & 0x3333333333333333ull) << 2;
    x = (x >> 4 & 0x0f0f0f0f0f0f0f0full) | (x & 0x0f0f0f0f0f0f0f0full) << 4;
    return __builtin_bswap64(x);
}
inline unsigned __brev(unsigned x) { return unsigned(__brevll(x) >> 32); }
inline int __mul24(int x, int y) { return ((x << 8) >> 8) * ((y << 8) >> 8); }
inline unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffffu) * (y & 0xffffffu); }
inline int __mulhi(int x, int y) { return int((long long)x * y >> 32); }
inline unsigned __umulhi(unsigned x, unsigned y) { return unsigned((unsigned long long)x * y >> 32); }
inline long long __mul64hi(long long x, long long y) { return (long long)((__int128)x * y >> 64); }
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return (unsigned long long)((unsigned __int128)x * y >> 64);
}
inline unsigned __sad(int x, int y, unsigned z) {
    return z + (x < y ? unsigned(y) - unsigned(x) : unsigned(x) - unsigned(y));
}
inline unsigned __usad(unsigned x, unsigned y, unsigned z) { return z + (x < y ? y - x : x - y); }
inline int __hadd(int x, int y) { return int(((long long)x + y) >> 1); }
inline int __rhadd(int x, int y) { return int(((long long)x + y + 1) >> 1); }
inline unsigned __uhadd(unsigned x, unsigned y) { return unsigned(((unsigned long long)x + y) >> 1); }
inline unsigned __urhadd(unsigned x, unsigned y) { return unsigned(((unsigned long long)x + y + 1) >> 1); }
inline int __dp4a(int x, int y, int sum) {
    for (int i = 0; i < 32; i += 8) sum += (signed char)(x >> i) * (signed char)(y >> i);
    return sum;
}
inline unsigned __dp4a(unsigned x, unsigned y, unsigned sum) {
    for (int i = 0; i < 32; i += 8) sum += (unsigned char)(x >> i) * (unsigned char)(y >> i);
    return sum;
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned s) {
    const unsigned long long all = (unsigned long long)y << 32 | x;
    unsigned r = 0;
    for (int i = 0; i < 4; i++) r |= unsigned(all >> 8 * (s >> 4 * i & 7) & 0xff) << 8 * i;
    return r;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned n) {
    return unsigned(((unsigned long long)high << 32 | low) << (n & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned n) {
    return unsigned(((unsigned long long)high << 32 | low) >> (n & 31));
}
template <class T> inline T __ldg(const T *p) { return *p; }
template <class T> inline T __ldca(const T *p) { return *p; }
template <class T> inline T __ldcg(const T *p) { return *p; }
template <class T> inline T __ldcs(const T *p) { return *p; }
template <class T> inline T __ldcv(const T *p) { return *static_cast<const volatile T *>(p); }
template <class T> inline void __stcg(T *p, T v) { *p = v; }
template <class T> inline void __stcs(T *p, T v) { *p = v; }
template <class T> inline void __stwt(T *p, T v) { *p = v; }

/* ---- atomics ---- */

namespace adrun {
template <class T, class F> inline T change(T *p, F f) {
    T old, fresh;
    __atomic_load(p, &old, __ATOMIC_RELAXED);
    do fresh = f(old);
    while (!__atomic_compare_exchange(p, &old, &fresh, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    return old;
}
} // namespace adrun
#define AD_RUN_ATOMIC(name, expression)                                                                    \
    template <class T> inline T name(T *p, typename adrun::same<T>::type v) {                              \
        return adrun::change(p, [v](T old) -> T { return expression; });                                   \
    }                                                                                                      \
    template <class T> inline T name##_block(T *p, typename adrun::same<T>::type v) { return name(p, v); } \
    template <class T> inline T name##_system(T *p, typename adrun::same<T>::type v) { return name(p, v); }
AD_RUN_ATOMIC(atomicAdd, T(old + v))
AD_RUN_ATOMIC(atomicSub, T(old - v))
AD_RUN_ATOMIC(atomicMin, v < old ? v : old)
AD_RUN_ATOMIC(atomicMax, old < v ? v : old)
AD_RUN_ATOMIC(atomicExch, ((void)old, v))
AD_RUN_ATOMIC(atomicAnd, T(old &v))
AD_RUN_ATOMIC(atomicOr, T(old | v))
AD_RUN_ATOMIC(atomicXor, T(old ^ v))
AD_RUN_ATOMIC(atomicInc, old >= v ? T(0) : T(old + 1))
AD_RUN_ATOMIC(atomicDec, old == T(0) || old > v ? v : T(old - 1))
#undef AD_RUN_ATOMIC
template <class T> inline T atomicCAS(T *p, typename adrun::same<T>::type expected, typename adrun::same<T>::type v) {
    __atomic_compare_exchange(p, &expected, &v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return expected;
}
