#include "kernels/cuda/call/sort/radix.cuh"

using float16_key = ad_radix_float<uint16_t, 0x3ff>;
using bfloat16_key = ad_radix_float<uint16_t, 0x7f>;

AD_RADIX(float16, float16_key)
AD_RADIX(bfloat16, bfloat16_key)
