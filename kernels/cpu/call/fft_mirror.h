/* The transform of real numbers has each frequency twice: as it is, and as the conjugate at the opposite place. */
#ifndef AD_KERNELS_CPU_CALL_FFT_MIRROR_H
#define AD_KERNELS_CPU_CALL_FFT_MIRROR_H

#include "kernels/call_array.h"

/* Fill in the second half along an axis, given the first n/2 + 1 elements of it: out[i] = conj(out[j]), where j is the
 * opposite place of i along the axis and the axes of the bit mask `others`, and i along all the rest. */
void ad_fft_mirror(const ad::array &out, int axis, int64_t others);

#endif
