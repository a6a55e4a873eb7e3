#include "kernels/cuda/table.cuh"

AD_CUDA_TABLE(bool)
AD_CUDA_TABLE(uint8)
AD_CUDA_TABLE(uint16)
AD_CUDA_TABLE(uint32)
AD_CUDA_TABLE(uint64)
