/* Limits of the number types, for sources of users. Those of integers are CUDA's C++ library's on a GPU. */
#ifndef AD_RUN_LIMITS_H
#define AD_RUN_LIMITS_H
#ifndef __ARRAYD_HOST__
#if __has_include(<cuda/std/climits>)
#define AD_RUN_LIMITS_OF_CUDA
#include <cuda/std/climits>
#endif
#endif
#ifndef AD_RUN_LIMITS_OF_CUDA
#define CHAR_BIT 8
#define SCHAR_MAX 127
#define SCHAR_MIN (-128)
#define UCHAR_MAX 255
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295u
#define LONG_MAX 9223372036854775807L
#define LONG_MIN (-9223372036854775807L - 1)
#define ULONG_MAX 18446744073709551615ul
#define LLONG_MAX 9223372036854775807LL
#define LLONG_MIN (-9223372036854775807LL - 1)
#define ULLONG_MAX 18446744073709551615ull
#endif
#define FLT_RADIX 2
#define FLT_MANT_DIG 24
#define FLT_DIG 6
#define FLT_MAX_EXP 128
#define FLT_MIN_EXP (-125)
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MANT_DIG 53
#define DBL_DIG 15
#define DBL_MAX_EXP 1024
#define DBL_MIN_EXP (-1021)
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
#endif
