/* After the headers of xsf. */
#ifdef __NVCC__
#undef inline
#undef std
#pragma pop_macro("__CUDACC__")
namespace special {
using complex_double = cuda::std::complex<double>;
}
#else
#include <complex>
namespace special {
using complex_double = std::complex<double>;
}
#endif

#include "kernels/special.h"

namespace special {
AD_BODY static inline complex_double complex_of(wide x) { return {x.re, x.im}; }
AD_BODY static inline wide wide_of(complex_double x) { return {x.real(), x.imag()}; }
} // namespace special

/* Define a function of the namespace body. */
#define AD_DEFINE_1(name, expression) \
    AD_BODY double name(double x) { return expression; }
#define AD_DEFINE_2(name, expression) \
    AD_BODY double name(double x, double y) { return expression; }
#define AD_DEFINE_3(name, expression) \
    AD_BODY double name(double x, double y, double z) { return expression; }
#define AD_DEFINE_C1(name, function) \
    AD_BODY wide name(wide x) { return wide_of(function(complex_of(x))); }
