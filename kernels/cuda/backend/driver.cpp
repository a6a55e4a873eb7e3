#include "kernels/cuda/backend/driver.h"

#include <cuda_runtime_api.h>

#include "kernels/cuda/backend/device.h"

namespace {

ad_cuda_driver functions;
bool loaded;

int look_up(const char *name, unsigned version, void **out, ad_fault *fault) {
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    int status =
        ad_cuda_status(cudaGetDriverEntryPointByVersion(name, out, version, cudaEnableDefault, &found), name, fault);
    if (!status && found != cudaDriverEntryPointSuccess)
        status = ad__fault(fault, AD_E_DEVICE, "the CUDA driver is too old: it has no %s", name);
    return status;
}

} // namespace

const ad_cuda_driver *ad_cuda_driver_get() { return loaded ? &functions : nullptr; }

int ad_cuda_driver_load(ad_fault *fault) {
    int status = 0;
    if (loaded) return 0;
#define AD_DRIVER(name, version) \
    if (!status) status = look_up(#name, version, reinterpret_cast<void **>(&functions.name), fault);
    AD_DRIVERS(AD_DRIVER)
#undef AD_DRIVER
    loaded = !status;
    return status;
}

/* The runtime's error codes are the driver's. */
int ad_cuda_driver_status(CUresult result, const char *what, ad_fault *fault) {
    return ad_cuda_status(static_cast<cudaError_t>(result), what, fault);
}
