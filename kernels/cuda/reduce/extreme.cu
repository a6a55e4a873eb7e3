/* Largest and smallest elements, and where they are. */
#include "kernels/cuda/reduce/states.cuh"

using namespace ad;

template <template <class, bool> class A> static ad_fold_kernel extreme(int input, int way) {
    switch (input) {
    case AD_INT8:
    case AD_UINT8: return fold_kernels<A<int8_t, false>>(way);
    case AD_INT16:
    case AD_UINT16: return fold_kernels<A<int16_t, false>>(way);
    case AD_INT32:
    case AD_UINT32: return fold_kernels<A<int32_t, false>>(way);
    case AD_INT64:
    case AD_UINT64: return fold_kernels<A<int64_t, false>>(way);
    case AD_FLOAT16:
    case AD_BFLOAT16: return fold_kernels<A<int16_t, true>>(way);
    case AD_FLOAT32: return fold_kernels<A<int32_t, true>>(way);
    case AD_FLOAT64: return fold_kernels<A<int64_t, true>>(way);
    default: return {nullptr, 0};
    }
}

ad_fold_kernel ad_fold_top(int input, int way) { return extreme<top_state>(input, way); }
ad_fold_kernel ad_fold_place(int input, int way) {
    if (input == AD_BOOL) return fold_kernels<place_state<bool8, false>>(way);
    return extreme<place_state>(input, way);
}
