#include "kernels/cuda/call/sort/radix.cuh"

using float32_key = ad_radix_float<uint32_t, 0x7fffff>;
using float64_key = ad_radix_float<uint64_t, 0xfffffffffffff>;

AD_RADIX(float32, float32_key)
AD_RADIX(float64, float64_key)
