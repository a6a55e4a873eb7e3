/* SciPy's header library xsf, for the host compiler and nvcc.
 *
 * xsf takes __CUDACC__ for a compiler at run time that has no standard library. nvcc has one, whose functions a GPU
 * cannot call. So `std` is that of libcu++ while xsf's headers are read, and functions without a mark are for the GPU
 * as well. Its tables have become variables of the device before (xsf.sed). xsf_end.h comes after the last of these
 * headers. */
#ifdef __NVCC__
#include <algorithm>
#include <cassert>
#include <cfloat>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <math.h>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cuda/std/cmath>
#include <cuda/std/complex>
#include <cuda/std/cstddef>
#include <cuda/std/cstdint>
#include <cuda/std/limits>
#include <cuda/std/tuple>
#include <cuda/std/type_traits>
#include <cuda/std/utility>

namespace ad_std {
using namespace cuda::std;
template <class T> __host__ __device__ constexpr T max(T a, T b) { return a < b ? b : a; }
template <class T> __host__ __device__ constexpr T min(T a, T b) { return b < a ? b : a; }
} // namespace ad_std

#ifdef __CUDA_ARCH__
#define AD_XSF_TABLE static __device__ const
#else
#define AD_XSF_TABLE static const
#endif
#pragma push_macro("__CUDACC__")
#undef __CUDACC__
#define std ad_std
#define inline __host__ __device__ inline
#include <xsf/config.h>
#undef XSF_HOST_DEVICE
#define XSF_HOST_DEVICE __host__ __device__
#endif
