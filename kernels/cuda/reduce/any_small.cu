/* Reductions computed in integers of up to 32 bits, and of booleans (as uint8). */
#include "kernels/cuda/reduce/any.cuh"

ad_fold_kernel ad_fold_any_small(int row, int compute) {
    switch (compute) {
    case AD_INT8: return ad::fold_any_row<int8_t>(row);
    case AD_INT16: return ad::fold_any_row<int16_t>(row);
    case AD_INT32: return ad::fold_any_row<int32_t>(row);
    case AD_UINT8: return ad::fold_any_row<uint8_t>(row);
    case AD_UINT16: return ad::fold_any_row<uint16_t>(row);
    case AD_UINT32: return ad::fold_any_row<uint32_t>(row);
    default: return {nullptr, 0};
    }
}
