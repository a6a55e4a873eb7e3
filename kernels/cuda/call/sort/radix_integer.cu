#include "kernels/cuda/call/sort/radix.cuh"

AD_RADIX(uint8, uint8_t)
AD_RADIX(int16, int16_t)
AD_RADIX(int32, int32_t)
AD_RADIX(int64, int64_t)
