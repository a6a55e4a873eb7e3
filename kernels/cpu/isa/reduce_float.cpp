#include "kernels/cpu/isa/reduce_loops.h"

AD_REDUCE_NONE(float16)
AD_REDUCE_NONE(bfloat16)
AD_REDUCE_TABLE(float32)
AD_REDUCE_TABLE(float64)
AD_REDUCE_TABLE(complex64)
AD_REDUCE_TABLE(complex128)
