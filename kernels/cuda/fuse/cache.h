/* The kernels of chains that a device has, by signature. */
#ifndef AD_KERNELS_CUDA_FUSE_CACHE_H
#define AD_KERNELS_CUDA_FUSE_CACHE_H

#include "kernels/cuda/backend/device.h"
#include "kernels/cuda/fuse/fuse.h"

/* 1: *kernel can be launched. 0: not yet, or never. Never waits for the compiler. AD_E_...: the device is lost. */
int ad_fuse_kernel(ad_device *device, const ad_chain *chain, const ad_fuse_form *form, cudaKernel_t *kernel,
                   ad_fault *fault);

#endif
