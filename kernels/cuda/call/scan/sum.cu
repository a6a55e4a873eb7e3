/* Running sums: integers of any size in 64 bits, whose bits are the same with and without a sign. */
#include "kernels/cuda/call/scan/scan.cuh"

using namespace ad;

ad_scan_kernels ad_scan_sum(int input, int loop) {
    if (loop != AD_INT64 && loop != AD_UINT64) return input == loop ? scan_inexact<false>(loop) : ad_scan_kernels{};
    switch (input) {
    case AD_BOOL: return scan_kernels<bool8, int64_t, false>();
    case AD_INT8: return scan_kernels<int8_t, int64_t, false>();
    case AD_INT16: return scan_kernels<int16_t, int64_t, false>();
    case AD_INT32: return scan_kernels<int32_t, int64_t, false>();
    case AD_UINT8: return scan_kernels<uint8_t, int64_t, false>();
    case AD_UINT16: return scan_kernels<uint16_t, int64_t, false>();
    case AD_UINT32: return scan_kernels<uint32_t, int64_t, false>();
    case AD_INT64:
    case AD_UINT64: return scan_kernels<int64_t, int64_t, false>();
    default: return {};
    }
}
