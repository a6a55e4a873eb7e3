#include "kernels/cuda/ufunc/general.cuh"

AD_CUDA_UFUNC(int32)
AD_CUDA_UFUNC(uint32)
