#include "kernels/cuda/ufunc/general.cuh"

AD_CUDA_UFUNC(int16)
AD_CUDA_UFUNC(uint16)
