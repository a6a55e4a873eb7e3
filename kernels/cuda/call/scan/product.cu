/* Running products. */
#include "kernels/cuda/call/scan/scan.cuh"

ad_scan_kernels ad_scan_product(int input, int loop) {
    if (input != loop) return {};
    if (loop == AD_INT64 || loop == AD_UINT64) return ad::scan_kernels<int64_t, int64_t, true>();
    return ad::scan_inexact<true>(loop);
}
