/* Integer types by width, for sources of users. On a GPU they are those of CUDA's C++ library, which a source may
 * include as well. */
#ifndef AD_RUN_STDINT_H
#define AD_RUN_STDINT_H
#ifndef __ARRAYD_HOST__
#if __has_include(<cuda/std/cstdint>)
#define AD_RUN_STDINT_OF_CUDA
#include <cuda/std/cstdint>
#endif
#endif
#ifndef AD_RUN_STDINT_OF_CUDA
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
#ifdef __ARRAYD_HOST__
typedef __INT64_TYPE__ int64_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;
#else
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef long long intptr_t;
typedef unsigned long long uintptr_t;
#endif
#define INT8_MAX 127
#define INT16_MAX 32767
#define INT32_MAX 2147483647
#define INT64_MAX 9223372036854775807L
#define INT8_MIN (-128)
#define INT16_MIN (-32768)
#define INT32_MIN (-2147483647 - 1)
#define INT64_MIN (-9223372036854775807L - 1)
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295u
#define UINT64_MAX 18446744073709551615ul
#endif
#endif
