/* Reductions computed in integers of 64 bits. */
#include "kernels/cuda/reduce/any.cuh"

ad_fold_kernel ad_fold_any_long(int row, int compute) {
    switch (compute) {
    case AD_INT64: return ad::fold_any_row<int64_t>(row);
    case AD_UINT64: return ad::fold_any_row<uint64_t>(row);
    default: return {nullptr, 0};
    }
}
