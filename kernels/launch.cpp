#include "kernels/launch.h"

#include <string.h>

static const uint32_t most_blocks[3] = {2147483647, 65535, 65535}, most_threads[3] = {1024, 1024, 64};

static int check_size(const char *name, const char *what, const uint32_t *given, const uint32_t *most,
                      ad_fault *fault) {
    for (int i = 0; i < 3; i++)
        if (given[i] == 0 || given[i] > most[i])
            return ad__fault(fault, AD_E_VALUE, "kernel %s: %s.%c is %u, and must be from 1 to %u", name, what,
                             "xyz"[i], given[i], most[i]);
    return 0;
}

/* Tell whether a value of `given` bytes can be a parameter of `wanted`. It can if it has as many bytes. Python's int
 * goes as 8 bytes also where the kernel takes fewer, so it can if it is not too large for them. */
static bool fits_argument(const void *value, uint32_t given, uint32_t wanted) {
    int64_t number;
    if (given & AD_LAUNCH_LONGER) return (given & ~AD_LAUNCH_LONGER) >= wanted;
    if (given == wanted) return true;
    if (given != sizeof number || (wanted != 4 && wanted != 2 && wanted != 1)) return false;
    memcpy(&number, value, sizeof number);
    const int bits = int(wanted) * 8;
    return number >= -(int64_t(1) << (bits - 1)) && number < int64_t(1) << bits;
}

/* Tell whether each parameter has an argument of its size. Arguments after the last parameter go nowhere, as with
 * CUDA's driver, which reads as many as the kernel has parameters: programs that pass too many run there. */
static int check_parameters(const ad_kernel_launch *l, const ad_launch_limits *k, ad_fault *fault) {
    if (l->narguments < k->nparameters)
        return ad__fault(fault, AD_E_VALUE, "kernel %s: it takes %d parameters, not %d", k->name, k->nparameters,
                         l->narguments);
    for (int i = 0; i < k->nparameters; i++)
        if (!fits_argument(l->argument[i], l->argument_size[i], k->sizes[i]))
            return ad__fault(fault, AD_E_VALUE, "kernel %s: parameter %d has %u bytes, not %u", k->name, i + 1,
                             k->sizes[i], l->argument_size[i] & ~AD_LAUNCH_LONGER);
    return 0;
}

int ad_launch_check(const ad_kernel_launch *l, const ad_launch_limits *k, ad_fault *fault) {
    int status = check_size(k->name, "gridDim", l->grid, most_blocks, fault);
    if (!status) status = check_size(k->name, "blockDim", l->block, most_threads, fault);
    if (status) return status;
    const uint64_t threads = uint64_t(l->block[0]) * l->block[1] * l->block[2];
    if (threads > uint64_t(k->max_threads))
        return ad__fault(fault, AD_E_VALUE, "kernel %s: a block has at most %d threads, not %llu", k->name,
                         k->max_threads, (unsigned long long)threads);
    if (l->shared > k->max_dynamic)
        return ad__fault(fault, AD_E_VALUE,
                         "kernel %s: %u bytes of dynamic shared memory are more than its "
                         "max_dynamic_shared_size_bytes, %lld",
                         k->name, l->shared, (long long)k->max_dynamic);
    return check_parameters(l, k, fault);
}
