/* __half and __nv_bfloat16 for sources of users: what cuda_fp16.h and cuda_bf16.h have that is used most. Arithmetic is
 * float's, rounded. */
#ifndef AD_RUN_HALF_H
#define AD_RUN_HALF_H

#define AD_HF __host__ __device__ inline

namespace adhalf {

template <class To, class From> AD_HF To bits_as(From v) {
    union {
        From from;
        To to;
    } u;
    u.from = v;
    return u.to;
}

#ifdef __ARRAYD_HOST__
AD_HF float to_float(unsigned short h) {
    const unsigned magnitude = unsigned(h & 0x7fff) << 13, sign = unsigned(h & 0x8000) << 16;
    const unsigned finite = bits_as<unsigned>(bits_as<float>(magnitude) * 5.192296858534828e+33f);
    return bits_as<float>((magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : finite) | sign);
}
AD_HF unsigned short to_half(float f) {
    const unsigned b = bits_as<unsigned>(f), magnitude = b & 0x7fffffffu, sign = b >> 16 & 0x8000;
    if (magnitude > 0x7f800000u) return (unsigned short)(sign | 0x7e00);
    if (magnitude >= 0x477ff000u) return (unsigned short)(sign | 0x7c00);
    if (magnitude < 0x38800000u) /* subnormal: the sum's unit in the last place is its own */
        return (unsigned short)(sign | (bits_as<unsigned>(bits_as<float>(magnitude) + 0.5f) - 0x3f000000u));
    return (unsigned short)(sign | (magnitude - 0x38000000u + 0xfff + (magnitude >> 13 & 1)) >> 13);
}
#else
AD_HF float to_float(unsigned short h) {
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    return f;
}
AD_HF unsigned short to_half(float f) {
    unsigned short h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
}
#endif
AD_HF float to_float_b(unsigned short h) { return bits_as<float>(unsigned(h) << 16); }
AD_HF unsigned short to_bfloat(float f) {
    const unsigned b = bits_as<unsigned>(f);
    if ((b & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
    return (unsigned short)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}

} // namespace adhalf

#define AD_HALF_TYPE(name, raw_name, widen, narrow)                                               \
    struct raw_name {                                                                             \
        unsigned short x;                                                                         \
    };                                                                                            \
    struct __align__(2) name {                                                                    \
        unsigned short bits;                                                                      \
        name() = default;                                                                         \
        AD_HF name(float v) : bits(adhalf::narrow(v)) {}                                          \
        AD_HF name(double v) : bits(adhalf::narrow(float(v))) {}                                  \
        AD_HF name(int v) : bits(adhalf::narrow(float(v))) {}                                     \
        AD_HF name(unsigned v) : bits(adhalf::narrow(float(v))) {}                                \
        AD_HF name(long v) : bits(adhalf::narrow(float(v))) {}                                    \
        AD_HF name(unsigned long v) : bits(adhalf::narrow(float(v))) {}                           \
        AD_HF name(long long v) : bits(adhalf::narrow(float(v))) {}                               \
        AD_HF name(unsigned long long v) : bits(adhalf::narrow(float(v))) {}                      \
        AD_HF name(raw_name r) : bits(r.x) {}                                                     \
        AD_HF operator float() const { return adhalf::widen(bits); }                              \
        AD_HF operator raw_name() const { return raw_name{bits}; }                                \
        AD_HF name &operator+=(name v) { return *this = name(float(*this) + float(v)); }          \
        AD_HF name &operator-=(name v) { return *this = name(float(*this) - float(v)); }          \
        AD_HF name &operator*=(name v) { return *this = name(float(*this) * float(v)); }          \
        AD_HF name &operator/=(name v) { return *this = name(float(*this) / float(v)); }          \
    };                                                                                            \
    AD_HF name operator+(name a, name b) { return name(float(a) + float(b)); }                    \
    AD_HF name operator-(name a, name b) { return name(float(a) - float(b)); }                    \
    AD_HF name operator*(name a, name b) { return name(float(a) * float(b)); }                    \
    AD_HF name operator/(name a, name b) { return name(float(a) / float(b)); }                    \
    AD_HF name operator-(name a) { return name(-float(a)); }                                      \
    AD_HF bool operator==(name a, name b) { return float(a) == float(b); }                        \
    AD_HF bool operator!=(name a, name b) { return float(a) != float(b); }                        \
    AD_HF bool operator<(name a, name b) { return float(a) < float(b); }                          \
    AD_HF bool operator<=(name a, name b) { return float(a) <= float(b); }                        \
    AD_HF bool operator>(name a, name b) { return float(a) > float(b); }                          \
    AD_HF bool operator>=(name a, name b) { return float(a) >= float(b); }                        \
    AD_HF name __hadd(name a, name b) { return a + b; }                                           \
    AD_HF name __hsub(name a, name b) { return a - b; }                                           \
    AD_HF name __hmul(name a, name b) { return a * b; }                                           \
    AD_HF name __hdiv(name a, name b) { return a / b; }                                           \
    AD_HF name __hneg(name a) { return -a; }                                                      \
    AD_HF name __hfma(name a, name b, name c) { return name(fma(float(a), float(b), float(c))); } \
    AD_HF name __habs(name a) { return name(fabs(float(a))); }                                    \
    AD_HF bool __heq(name a, name b) { return a == b; }                                           \
    AD_HF bool __hlt(name a, name b) { return a < b; }                                            \
    AD_HF bool __hle(name a, name b) { return a <= b; }                                           \
    AD_HF bool __hgt(name a, name b) { return a > b; }                                            \
    AD_HF bool __hge(name a, name b) { return a >= b; }                                           \
    AD_HF bool __hisnan(name a) { return float(a) != float(a); }                                  \
    AD_HF name __hmax(name a, name b) { return name(fmaxf(float(a), float(b))); }                 \
    AD_HF name __hmin(name a, name b) { return name(fminf(float(a), float(b))); }                 \
    AD_HF bool isnan(name a) { return __hisnan(a); }                                              \
    AD_HF name hsqrt(name a) { return name(sqrtf(float(a))); }                                    \
    AD_HF name hexp(name a) { return name(expf(float(a))); }                                      \
    AD_HF name hlog(name a) { return name(logf(float(a))); }                                      \
    AD_HF name hsin(name a) { return name(sinf(float(a))); }                                      \
    AD_HF name hcos(name a) { return name(cosf(float(a))); }                                      \
    AD_HF name hfloor(name a) { return name(floorf(float(a))); }                                  \
    AD_HF name hceil(name a) { return name(ceilf(float(a))); }                                    \
    AD_HF name hrcp(name a) { return name(1.0f / float(a)); }                                     \
    AD_HF name hrsqrt(name a) { return name(1.0f / sqrtf(float(a))); }

AD_HALF_TYPE(__half, __half_raw, to_float, to_half)
AD_HALF_TYPE(__nv_bfloat16, __nv_bfloat16_raw, to_float_b, to_bfloat)
#undef AD_HALF_TYPE
typedef __half half;
typedef __nv_bfloat16 nv_bfloat16;

AD_HF float __half2float(__half h) { return float(h); }
AD_HF __half __float2half(float f) { return __half(f); }
AD_HF __half __float2half_rn(float f) { return __half(f); }
AD_HF __half __double2half(double f) { return __half(f); }
AD_HF int __half2int_rn(__half h) { return int(rintf(float(h))); }
AD_HF int __half2int_rz(__half h) { return int(truncf(float(h))); }
AD_HF __half __int2half_rn(int i) { return __half(i); }
AD_HF unsigned short __half_as_ushort(__half h) { return h.bits; }
AD_HF short __half_as_short(__half h) { return short(h.bits); }
AD_HF __half __ushort_as_half(unsigned short b) { return __half(__half_raw{b}); }
AD_HF __half __short_as_half(short b) { return __half(__half_raw{(unsigned short)b}); }
AD_HF float __bfloat162float(__nv_bfloat16 h) { return float(h); }
AD_HF __nv_bfloat16 __float2bfloat16(float f) { return __nv_bfloat16(f); }

struct __align__(4) __half2 {
    __half x, y;
};
typedef __half2 half2;
AD_HF __half2 __halves2half2(__half a, __half b) { return __half2{a, b}; }
AD_HF __half2 make_half2(__half a, __half b) { return __half2{a, b}; }
AD_HF __half2 __float2half2_rn(float f) { return __half2{__half(f), __half(f)}; }
AD_HF __half2 __half2half2(__half h) { return __half2{h, h}; }
AD_HF __half __low2half(__half2 v) { return v.x; }
AD_HF __half __high2half(__half2 v) { return v.y; }
AD_HF float __low2float(__half2 v) { return float(v.x); }
AD_HF float __high2float(__half2 v) { return float(v.y); }
AD_HF float2 __half22float2(__half2 v) { return make_float2(float(v.x), float(v.y)); }
AD_HF __half2 __float22half2_rn(float2 v) { return __half2{__half(v.x), __half(v.y)}; }
AD_HF __half2 __hadd2(__half2 a, __half2 b) { return __half2{a.x + b.x, a.y + b.y}; }
AD_HF __half2 __hsub2(__half2 a, __half2 b) { return __half2{a.x - b.x, a.y - b.y}; }
AD_HF __half2 __hmul2(__half2 a, __half2 b) { return __half2{a.x * b.x, a.y * b.y}; }
AD_HF __half2 __hfma2(__half2 a, __half2 b, __half2 c) { return __half2{__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }

#undef AD_HF
#endif
