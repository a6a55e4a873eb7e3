/* std's traits and limits of the number types, by cupy/cuda_workaround.h's name: of the host's compiler, or CUDA's. */
#ifndef AD_RUN_TRAITS_H
#define AD_RUN_TRAITS_H
#ifdef __ARRAYD_HOST__
#include <limits>
#include <type_traits>
#else
#include <cuda/std/limits>
#include <cuda/std/type_traits>
namespace std {
using namespace cuda::std;
}
#endif
#endif
