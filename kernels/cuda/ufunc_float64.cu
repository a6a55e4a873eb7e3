#include "kernels/cuda/ufunc_general.cuh"

AD_CUDA_UFUNC(float64)
