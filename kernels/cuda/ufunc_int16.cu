#include "kernels/cuda/ufunc_general.cuh"

AD_CUDA_UFUNC(int16)
AD_CUDA_UFUNC(uint16)
