/* The elementwise kernels of all loop types. */
#include "kernels/cuda/special/special.h"
#include "kernels/cuda/ufunc/kernels.h"

#define AD_DTYPE(id, NAME, name, size, kind, letter) void ad_cuda_ufunc_fill_##name(ad_ufunc_table *t);
#include "protocol/dtype.def"
#undef AD_DTYPE

namespace {

struct tables {
    ad_ufunc_table of[AD_NDTYPE];
    tables() : of{} {
#define AD_DTYPE(id, NAME, name, size, kind, letter) ad_cuda_ufunc_fill_##name(&of[id]);
#include "protocol/dtype.def"
#undef AD_DTYPE
        ad_cuda_special_elementary(of);
        ad_cuda_special_complex(of);
        ad_cuda_special_gamma(of);
        ad_cuda_special_distributions(of);
        ad_cuda_special_bessel(of);
        ad_cuda_special_integrals(of);
        share(AD_INT8, AD_UINT8);
        share(AD_INT16, AD_UINT16);
        share(AD_INT32, AD_UINT32);
        share(AD_INT64, AD_UINT64);
    }
    /* Give an unsigned type the kernels of the signed one where it has none. */
    void share(int from, int to) {
        for (int row = 0; row < AD_UFUNC_LIMIT; row++)
            if (!of[to].fast[row] && of[to].width[row] != 0) of[to].fast[row] = of[from].fast[row];
    }
};

} // namespace

const ad_ufunc_table *ad_cuda_ufunc_table(int loop) {
    static const tables all;
    return &all.of[loop];
}
