#include "kernels/cpu/isa/ufunc_loops.h"

AD_UFUNC_TABLE(complex64)
AD_UFUNC_TABLE(complex128)
