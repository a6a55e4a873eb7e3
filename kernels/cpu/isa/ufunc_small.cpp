#include "kernels/cpu/isa/ufunc_loops.h"

AD_UFUNC_TABLE(bool)
AD_UFUNC_TABLE(int8)
AD_UFUNC_TABLE(int16)
AD_UFUNC_TABLE(uint8)
AD_UFUNC_TABLE(uint16)
