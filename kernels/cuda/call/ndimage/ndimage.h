/* Types and functions that the filters of images share. */
#ifndef AD_KERNELS_CUDA_CALL_NDIMAGE_NDIMAGE_H
#define AD_KERNELS_CUDA_CALL_NDIMAGE_NDIMAGE_H

#include "kernels/call.h"
#include "kernels/cuda/backend/device.h"
#include "kernels/ndimage.h"

/* Output `index` as a row-major array without gaps, of elements of dtype: the operand itself, or scratch memory that
 * ad_call_finish copies into it. AD_E_MEMORY. */
inline int ad_cuda_packed_output(ad_call *c, int index, int dtype, ad::array *out) {
    int status = ad_call_output(c, index, dtype, out);
    if (status || ad::is_packed(*out)) return status;
    const int64_t size = ad::pack(out);
    out->data = static_cast<char *>(ad_call_workspace(c, uint64_t(size)));
    return !out->data ? AD_E_MEMORY : 0;
}

#endif
