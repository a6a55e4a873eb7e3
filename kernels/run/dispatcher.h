/* Functors called for a type that a number names, by cupy/type_dispatcher.cuh's names. */
#ifndef AD_RUN_DISPATCHER_H
#define AD_RUN_DISPATCHER_H

#include <cupy/complex.cuh>
#include <cupy/float16.cuh>

#define CUPY_TYPE_INT8 0
#define CUPY_TYPE_UINT8 1
#define CUPY_TYPE_INT16 2
#define CUPY_TYPE_UINT16 3
#define CUPY_TYPE_INT32 4
#define CUPY_TYPE_UINT32 5
#define CUPY_TYPE_INT64 6
#define CUPY_TYPE_UINT64 7
#define CUPY_TYPE_FLOAT16 8
#define CUPY_TYPE_FLOAT32 9
#define CUPY_TYPE_FLOAT64 10
#define CUPY_TYPE_COMPLEX64 11
#define CUPY_TYPE_COMPLEX128 12
#define CUPY_TYPE_BOOL 13

template <class F, class... A> __host__ __device__ inline void dtype_dispatcher(int type, F f, A &&...a) {
    switch (type) {
    case CUPY_TYPE_INT8: f.template operator()<signed char>(a...); break;
    case CUPY_TYPE_UINT8: f.template operator()<unsigned char>(a...); break;
    case CUPY_TYPE_INT16: f.template operator()<short>(a...); break;
    case CUPY_TYPE_UINT16: f.template operator()<unsigned short>(a...); break;
    case CUPY_TYPE_INT32: f.template operator()<int>(a...); break;
    case CUPY_TYPE_UINT32: f.template operator()<unsigned int>(a...); break;
    case CUPY_TYPE_INT64: f.template operator()<long long>(a...); break;
    case CUPY_TYPE_UINT64: f.template operator()<unsigned long long>(a...); break;
    case CUPY_TYPE_FLOAT16: f.template operator()<float16>(a...); break;
    case CUPY_TYPE_FLOAT32: f.template operator()<float>(a...); break;
    case CUPY_TYPE_FLOAT64: f.template operator()<double>(a...); break;
    case CUPY_TYPE_COMPLEX64: f.template operator()<complex<float>>(a...); break;
    case CUPY_TYPE_COMPLEX128: f.template operator()<complex<double>>(a...); break;
    case CUPY_TYPE_BOOL: f.template operator()<bool>(a...); break;
    }
}

#endif
