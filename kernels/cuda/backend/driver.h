/* The functions of the CUDA driver that the runtime has no counterpart of. They are looked up when a device is opened,
 * not linked, so that this backend loads where there is no driver and says so. */
#ifndef AD_KERNELS_CUDA_BACKEND_DRIVER_H
#define AD_KERNELS_CUDA_BACKEND_DRIVER_H

#include <cuda.h>

#include "protocol/base.h"

/* AD_DRIVER(name, version that its signature is of) */
#define AD_DRIVERS(AD_DRIVER)                                \
    AD_DRIVER(cuGetErrorString, 6000)                        \
    AD_DRIVER(cuMemGetAllocationGranularity, 10020)          \
    AD_DRIVER(cuMemCreate, 10020)                            \
    AD_DRIVER(cuMemRelease, 10020)                           \
    AD_DRIVER(cuMemAddressReserve, 10020)                    \
    AD_DRIVER(cuMemAddressFree, 10020)                       \
    AD_DRIVER(cuMemMap, 10020)                               \
    AD_DRIVER(cuMemGetAddressRange, 3020)                    \
    AD_DRIVER(cuMemUnmap, 10020)                             \
    AD_DRIVER(cuMemSetAccess, 10020)                         \
    AD_DRIVER(cuMemExportToShareableHandle, 10020)           \
    AD_DRIVER(cuMemImportFromShareableHandle, 10020)         \
    AD_DRIVER(cuMemGetAllocationPropertiesFromHandle, 10020) \
    AD_DRIVER(cuModuleLoadData, 2000)                        \
    AD_DRIVER(cuModuleUnload, 2000)                          \
    AD_DRIVER(cuModuleGetFunction, 2000)                     \
    AD_DRIVER(cuModuleGetGlobal, 3020)                       \
    AD_DRIVER(cuFuncGetAttribute, 2020)                      \
    AD_DRIVER(cuFuncSetAttribute, 9000)                      \
    AD_DRIVER(cuFuncGetParamInfo, 12040)                     \
    AD_DRIVER(cuLaunchKernel, 4000)                          \
    AD_DRIVER(cuLaunchCooperativeKernel, 9000)               \
    AD_DRIVER(cuDeviceGet, 2000)                             \
    AD_DRIVER(cuDeviceGetDevResource, 12050)                 \
    AD_DRIVER(cuDevSmResourceSplitByCount, 12050)            \
    AD_DRIVER(cuDevResourceGenerateDesc, 12050)              \
    AD_DRIVER(cuGreenCtxCreate, 12050)                       \
    AD_DRIVER(cuGreenCtxDestroy, 12050)                      \
    AD_DRIVER(cuGreenCtxStreamCreate, 12050)

struct ad_cuda_driver {
#define AD_DRIVER(name, version) decltype(&::name) name;
    AD_DRIVERS(AD_DRIVER)
#undef AD_DRIVER
};

/* The table, or NULL before ad_cuda_driver_load has succeeded. */
extern const ad_cuda_driver *ad_cuda_driver_get();
int ad_cuda_driver_load(ad_fault *fault);
/* As ad_cuda_status. */
int ad_cuda_driver_status(CUresult result, const char *what, ad_fault *fault);

#endif
