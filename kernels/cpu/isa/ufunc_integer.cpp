#include "kernels/cpu/isa/ufunc_loops.h"

AD_UFUNC_TABLE(int32)
AD_UFUNC_TABLE(int64)
AD_UFUNC_TABLE(uint32)
AD_UFUNC_TABLE(uint64)
