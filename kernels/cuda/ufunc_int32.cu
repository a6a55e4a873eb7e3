#include "kernels/cuda/ufunc_general.cuh"

AD_CUDA_UFUNC(int32)
AD_CUDA_UFUNC(uint32)
