/* A scan whose input is computed as it is read (fuse/scan.cuh): everything of it but the kernel. */
#ifndef AD_KERNELS_CUDA_CALL_SCAN_PLAN_H
#define AD_KERNELS_CUDA_CALL_SCAN_PLAN_H

#include "kernels/cuda/call/scan/scan.h"
#include "protocol/op.h"

/* scan.in is NULL: addresses are offsets into a row-major array; scan.messages is not set yet. */
struct ad_scan_layout {
    ad_scan scan;
    int way, width, input, loop; /* width: elements of a vector */
    bool product;
    int64_t blocks, messages; /* bytes that scan.messages needs */
};
/* False: there is no such scan, or it does not read lanes of neighbouring elements. */
bool ad_scan_lay(const ad_op *op, ad_scan_layout *to);

#endif
