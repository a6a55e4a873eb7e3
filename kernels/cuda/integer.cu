#include "kernels/cuda/table.cuh"

AD_CUDA_TABLE(int8)
AD_CUDA_TABLE(int16)
AD_CUDA_TABLE(int32)
AD_CUDA_TABLE(int64)
