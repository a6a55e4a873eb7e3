/* Reductions computed in real numbers. */
#include "kernels/cuda/reduce/any.cuh"

ad_fold_kernel ad_fold_any_float(int row, int compute) {
    switch (compute) {
    case AD_FLOAT32: return ad::fold_any_row<float>(row);
    case AD_FLOAT64: return ad::fold_any_row<double>(row);
    default: return {nullptr, 0};
    }
}
