/* All that this instruction set has, as one table. */
#include "kernels/cpu/isa/factor.h"
#include "kernels/cpu/isa/fft.h"
#include "kernels/cpu/isa/filter.h"
#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/isa/pairs.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/isa/random_tables.h"
#include "kernels/types.h"

namespace ad {
inline namespace AD_ISA {
#define AD_DTYPE(id, NAME, name, size, kind, letter)          \
    extern const ad_ufunc_kernel *const ufunc_kernels_##name; \
    extern const ad_cast_kernel *const cast_kernels_##name;   \
    extern const ad_reduce_kernel *const reduce_kernels_##name;
#include "protocol/dtype.def"
#undef AD_DTYPE
extern const ad_random_kernels random_kernels;
extern const ad_fft_kernels fft_kernels;
extern const ad_pair_kernels pair_kernels;
extern const ad_filter_kernels filter_kernels;
extern const ad_factor_kernel factor_kernels[AD_NDTYPE];
extern const ad_sort_kernel sort_kernels[AD_NDTYPE], argsort_kernels[AD_NDTYPE];
} // namespace AD_ISA
} // namespace ad

void AD_PASTE(ad_cpu_kernels_fill_, AD_ISA)(ad_cpu_kernels *k);
void AD_PASTE(ad_cpu_kernels_fill_, AD_ISA)(ad_cpu_kernels *k) {
    k->name = AD_TEXT(AD_ISA);
    k->random = &ad::random_kernels;
    k->fft = &ad::fft_kernels;
    k->factor = ad::factor_kernels;
    k->pairs = &ad::pair_kernels;
    k->filter = &ad::filter_kernels;
    k->sort = ad::sort_kernels;
    k->argsort = ad::argsort_kernels;
#define AD_DTYPE(id, NAME, name, size, kind, letter) \
    k->ufunc[id] = ad::ufunc_kernels_##name;         \
    k->cast[id] = ad::cast_kernels_##name;           \
    k->reduce[id] = ad::reduce_kernels_##name;
#include "protocol/dtype.def"
#undef AD_DTYPE
}
