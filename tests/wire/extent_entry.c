/* For tests/wire: many array descriptions at once through ad__desc_extent and ad__desc_check. */
#include "protocol/desc.h"

typedef struct case_in {
    int64_t ndim, dtype, offset, size;
    int64_t shape[AD_MAX_NDIM], strides[AD_MAX_NDIM];
} case_in;

typedef struct case_out {
    int64_t extent, check; /* statuses */
    int64_t low, high;     /* -1 where the extent failed */
} case_out;

void arrayd_test_extents(int64_t n, const case_in *in, case_out *out);

void arrayd_test_extents(int64_t n, const case_in *in, case_out *out) {
    for (int64_t i = 0; i < n; i++) {
        const ad_desc d = {
            .buffer = 1,
            .offset = in[i].offset,
            .shape = in[i].shape,
            .strides = in[i].strides,
            .dtype = (uint8_t)in[i].dtype,
            .ndim = (uint8_t)in[i].ndim,
        };
        out[i].low = out[i].high = -1;
        out[i].extent = ad__desc_extent(&d, &out[i].low, &out[i].high, NULL);
        out[i].check = ad__desc_check(&d, in[i].size, "x", NULL);
    }
}
