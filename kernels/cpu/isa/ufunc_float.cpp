#include "kernels/cpu/isa/ufunc_loops.h"

AD_UFUNC_TABLE(float16)
AD_UFUNC_TABLE(bfloat16)
AD_UFUNC_TABLE(float32)
AD_UFUNC_TABLE(float64)
