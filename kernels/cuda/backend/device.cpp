/* Devices: how many there are, opening one, what it is; and what CUDA's errors mean. */
#include "kernels/cuda/backend/device.h"

#include <new>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/backend/driver.h"
#include "kernels/cuda/backend/libraries.h"
#include "kernels/cuda/list/list.h"

namespace {

thread_local int current = -1; /* the device of this thread's calls */

/* After these nothing works in this process any more. */
bool is_sticky(cudaError_t error) {
    switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorLaunchFailure:
    case cudaErrorAssert:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorMpsConnectionFailed:
    case cudaErrorMpsRpcFailure:
    case cudaErrorMpsServerNotReady:
    case cudaErrorDevicesUnavailable:
    case cudaErrorDeviceUninitialized:
    case cudaErrorContextIsDestroyed:
    case cudaErrorCudartUnloading:
    case cudaErrorExternalDevice:
    case cudaErrorUnknown: return true;
    default: return false;
    }
}

/* Machines without a GPU, or without a driver that is new enough, have no devices. */
bool is_absent(cudaError_t error) {
    return error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver || error == cudaErrorStubLibrary ||
           error == cudaErrorSystemDriverMismatch || error == cudaErrorCompatNotSupportedOnDevice;
}

int identity(ad_device *device, ad_fault *fault) {
    cudaDeviceProp p;
    int status = ad_cuda_status(cudaGetDeviceProperties(&p, device->index), "cudaGetDeviceProperties", fault);
    if (status) return status;
    device->multiprocessors = p.multiProcessorCount;
    device->major = p.major;
    device->minor = p.minor;
    device->one_address = p.canUseHostPointerForRegisteredMem != 0;
    snprintf(device->name, sizeof device->name, "%.63s", p.name);
    char *to = device->id + snprintf(device->id, sizeof device->id, "GPU");
    for (int i = 0; i < 16; i++) {
        if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) *to++ = '-';
        to += snprintf(to, 3, "%02x", unsigned(p.uuid.bytes[i]) & 255);
    }
    return 0;
}

int properties(ad_device *device, ad_fault *fault) {
    int least = 0, status, n = 0;
    if ((status = identity(device, fault)) ||
        (status = ad_cuda_status(cudaDeviceGetStreamPriorityRange(&least, &device->urgent),
                                 "cudaDeviceGetStreamPriorityRange", fault)) ||
        (status = ad_cuda_devices(&n, fault)))
        return status;
    for (int other = 0; other < n && other < 64; other++) {
        int can = 0;
        if (other != device->index && cudaDeviceCanAccessPeer(&can, device->index, other) == cudaSuccess && can)
            device->peers |= uint64_t(1) << other;
    }
    cudaGetLastError();
    return 0;
}

/* Spinning answers soonest, and the worker's threads wait for little else. */
int start(ad_device *device, ad_fault *fault) {
    int status;
    if ((status = ad_cuda_status(cudaInitDevice(device->index, cudaDeviceScheduleSpin, cudaInitDeviceFlagsAreValid),
                                 "opening the device", fault)) ||
        (status = ad_cuda_enter(device, fault)) || (status = properties(device, fault)) ||
        (status = ad_cuda_driver_load(fault)))
        return status;
    return ad_cuda_status(cudaStreamCreateWithFlags(&device->own, cudaStreamNonBlocking), "cudaStreamCreate", fault);
}

void dispose(ad_device *device) {
    ad_cuda_warmer_close(device);
    ad_cuda_enter(device, nullptr);
    ad_cuda_fuser_close(device);
    ad_cuda_slab_forget(device);
    ad_cuda_libraries_close(device);
    ad_cuda_ring_close(device);
    ad_cuda_streams_close(device);
    ad_cuda_parts_close(device);
    if (device->own) cudaStreamDestroy(device->own);
    delete device;
}

/* cuBLAS gets scratch memory with each call (libraries.h), so its handles, cuSOLVER's own among them, need not keep 64
 * MiB each. Read when they are made; set before there are threads. */
__attribute__((constructor)) void no_own_workspace() { setenv("CUBLAS_WORKSPACE_CONFIG", ":0:0", 0); }

} // namespace

int ad_cuda_status(cudaError_t error, const char *what, ad_fault *fault) {
    if (error == cudaSuccess) return 0;
    int code = error == cudaErrorMemoryAllocation ? AD_E_MEMORY : is_sticky(error) ? AD_E_DEVICE_LOST : AD_E_DEVICE;
    if (code != AD_E_DEVICE_LOST) cudaGetLastError(); /* or the next launch would be blamed for it */
    return ad__fault(fault, code, "%s: %s (%s)", what, cudaGetErrorString(error), cudaGetErrorName(error));
}

int ad_cuda_launched(const char *what, ad_fault *fault) { return ad_cuda_status(cudaPeekAtLastError(), what, fault); }

int ad_cuda_enter(const ad_device *device, ad_fault *fault) {
    if (current == device->index) return 0;
    int status = ad_cuda_status(cudaSetDevice(device->index), "cudaSetDevice", fault);
    if (!status) current = device->index;
    return status;
}

int ad_cuda_devices(int *count, ad_fault *fault) {
    *count = 0;
    cudaError_t error = cudaGetDeviceCount(count);
    if (!is_absent(error)) return ad_cuda_status(error, "cudaGetDeviceCount", fault);
    cudaGetLastError();
    *count = 0;
    return 0;
}

int ad_cuda_device_open(int index, int, ad_compiler *compiler, ad_device **out, ad_fault *fault) {
    int status, n = 0;
    if ((status = ad_cuda_devices(&n, fault))) return status;
    if (index < 0 || index >= n)
        return ad__fault(fault, AD_E_VALUE,
                         n == 0 ? "there is no GPU with a driver for CUDA 13 here, so no device %d"
                                : "there is no device %d: this host has GPUs 0 to %d",
                         index, n - 1);
    ad_device *device = new (std::nothrow) ad_device();
    if (!device) return ad__fault(fault, AD_E_MEMORY, "out of memory");
    device->index = index;
    device->compiler = compiler;
    const char *lists = getenv("ARRAYD_LISTS");
    device->lists = lists ? atoi(lists) : AD_LIST_ITEMS;
    if ((status = ad_faults_parse(&device->faults, getenv("ARRAYD_FAULT"), fault)) || (status = start(device, fault)) ||
        (status = ad_cuda_slab_open(device, fault)) || (status = ad_cuda_ring_open(device, fault)) ||
        (status = ad_cuda_streams_prepare(device, fault)) || (status = ad_cuda_warm(device, fault))) {
        dispose(device);
        return status;
    }
    ad_cuda_warmer_open(device);
    *out = device;
    return 0;
}

void ad_cuda_device_close(ad_device *device) { dispose(device); }

void ad_cuda_device_info(ad_device *device, ad_device_info *info) {
    size_t available = 0, total = 0;
    memset(info, 0, sizeof *info);
    memcpy(info->name, device->name, sizeof info->name);
    memcpy(info->id, device->id, sizeof info->id);
    info->major = device->major;
    info->minor = device->minor;
    info->multiprocessors = device->multiprocessors;
    info->peers = device->peers;
    if (cudaRuntimeGetVersion(&info->runtime) != cudaSuccess || cudaDriverGetVersion(&info->driver) != cudaSuccess)
        cudaGetLastError();
    if (ad_cuda_enter(device, nullptr) || cudaMemGetInfo(&available, &total) != cudaSuccess) return;
    info->memory = total;
    info->free = available;
}
