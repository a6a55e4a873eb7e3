#include "kernels/cuda/ufunc/general.cuh"

AD_CUDA_UFUNC(int64)
AD_CUDA_UFUNC(uint64)
