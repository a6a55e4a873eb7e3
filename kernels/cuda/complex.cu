#include "kernels/cuda/table.cuh"

AD_CUDA_TABLE(complex64)
AD_CUDA_TABLE(complex128)
