#include "kernels/cuda/ufunc/general.cuh"

AD_CUDA_UFUNC(bool)
AD_CUDA_UFUNC(int8)
AD_CUDA_UFUNC(uint8)
