#include "kernels/cuda/kernels.h"

#include <pthread.h>

__device__ unsigned ad_cuda_raised; /* AD_RAISE_*, of all operations since it was last read */

#define AD_DTYPE(id, NAME, name, size, kind, letter) void ad_cuda_fill_##name(ad_cuda_table *t);
#include "protocol/dtype.def"
#undef AD_DTYPE

static ad_cuda_table tables[AD_NDTYPE];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill_tables() {
#define AD_DTYPE(id, NAME, name, size, kind, letter) ad_cuda_fill_##name(&tables[id]);
#include "protocol/dtype.def"
#undef AD_DTYPE
}

const void *ad_cuda_ufunc_kernel(int loop, int row, bool contiguous) {
    pthread_once(&once, fill_tables);
    return contiguous ? tables[loop].contiguous[row] : tables[loop].strided[row];
}

const void *ad_cuda_reduce_kernel(int loop, int row) {
    pthread_once(&once, fill_tables);
    return tables[loop].reduce[row];
}
