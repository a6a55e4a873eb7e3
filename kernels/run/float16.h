/* float16 and bfloat16 as numbers that become float as soon as one computes with them, by cupy/float16.cuh's names. */
#ifndef AD_RUN_FLOAT16_H
#define AD_RUN_FLOAT16_H

namespace ad_kernel {
template <class To, class From> static inline __device__ To same_bits(From from) {
    union {
        From from;
        To to;
    } both = {from};
    return both.to;
}
template <class Format> struct small_float {
    unsigned short bits;
    small_float() = default;
    template <class T> __device__ small_float(T v) : bits(Format::to_bits((float)v)) {}
    __device__ operator float() const { return Format::from_bits(bits); }
    template <class T> __device__ small_float &operator+=(T v) { return *this = small_float((float)*this + (float)v); }
    template <class T> __device__ small_float &operator-=(T v) { return *this = small_float((float)*this - (float)v); }
    template <class T> __device__ small_float &operator*=(T v) { return *this = small_float((float)*this * (float)v); }
    template <class T> __device__ small_float &operator/=(T v) { return *this = small_float((float)*this / (float)v); }
};
} // namespace ad_kernel

namespace ad_kernel {
struct half_format {
#ifdef __FLT16_MANT_DIG__
    static inline __device__ unsigned short to_bits(float v) { return same_bits<unsigned short>((_Float16)v); }
    static inline __device__ float from_bits(unsigned short bits) { return (float)same_bits<_Float16>(bits); }
#else
    static inline __device__ unsigned short to_bits(float v) {
        unsigned short bits;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(v));
        return bits;
    }
    static inline __device__ float from_bits(unsigned short bits) {
        float v;
        asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(bits));
        return v;
    }
#endif
};
} // namespace ad_kernel
typedef ad_kernel::small_float<ad_kernel::half_format> float16;

namespace ad_kernel {
struct bfloat_format {
    static inline __device__ unsigned short to_bits(float v) {
        unsigned int bits = same_bits<unsigned int>(v);
        return v != v ? 0x7fc0 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    }
    static inline __device__ float from_bits(unsigned short bits) { return same_bits<float>((unsigned int)bits << 16); }
};
} // namespace ad_kernel
typedef ad_kernel::small_float<ad_kernel::bfloat_format> bfloat16;

#endif
