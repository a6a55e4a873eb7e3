#include "kernels/cuda/table.cuh"

AD_CUDA_TABLE(float16)
AD_CUDA_TABLE(bfloat16)
AD_CUDA_TABLE(float32)
AD_CUDA_TABLE(float64)
