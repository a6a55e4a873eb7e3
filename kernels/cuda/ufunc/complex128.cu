#include "kernels/cuda/ufunc/general.cuh"

AD_CUDA_UFUNC(complex128)
