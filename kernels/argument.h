/* Arguments of users' kernels. */
#ifndef AD_KERNELS_ARGUMENT_H
#define AD_KERNELS_ARGUMENT_H

#include <stdint.h>
#include <string.h>

/* Whether a value of `given` bytes can be a parameter of `wanted`: one of as many, or Python's int, which goes as 8
 * bytes also where the kernel takes fewer, if it is not too large for them. */
static inline bool ad_argument_fits(const void *value, uint32_t given, uint32_t wanted) {
    int64_t number;
    if (given == wanted) return true;
    if (given != sizeof number || (wanted != 4 && wanted != 2 && wanted != 1)) return false;
    memcpy(&number, value, sizeof number);
    const int bits = int(wanted) * 8;
    return number >= -(int64_t(1) << (bits - 1)) && number < int64_t(1) << bits;
}

#endif
