/* The CUDA driver, for GPU memory that this process shares with the server. It is loaded by name when it is first
 * needed, and driver.h declares its few types. So this library needs no CUDA to be built or run. */
#include "client-c/interop/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "client-c/client.h"

ad_driver ad__cuda;
static char missing[200]; /* reason why there is no driver; "": there is one */
static pthread_once_t loaded = PTHREAD_ONCE_INIT;

static void load_driver(void) {
    static const struct {
        const char *name;
        size_t place;
    } functions[] = {
#define FUNCTION(name, arguments) {#name, offsetof(ad_driver, name)},
        AD_DRIVER_FUNCTIONS(FUNCTION)
#undef FUNCTION
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(missing, sizeof missing, "%s", dlerror());
        return;
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *function = dlsym(library, functions[i].name);
        if (!function) {
            snprintf(missing, sizeof missing, "the driver has no %s", functions[i].name);
            return;
        }
        memcpy((char *)&ad__cuda + functions[i].place, &function, sizeof function);
    }
    int error = ad__cuda.cuInit(0);
    if (error) snprintf(missing, sizeof missing, "cuInit: error %d", error);
}

int ad__driver_load(const char *what) {
    pthread_once(&loaded, load_driver);
    if (*missing) return ad__fail(AD_E_UNSUPPORTED, "%s: no CUDA driver in this process: %s", what, missing);
    return 0;
}

int ad__driver_failed(int error, const char *call) {
    const char *text = NULL;
    if (!error) return 0;
    if (ad__cuda.cuGetErrorString(error, &text)) text = NULL;
    return ad__fail(error == AD_CUDA_OUT_OF_MEMORY ? AD_E_MEMORY : AD_E_DEVICE, "%s: %s (CUDA error %d)", call,
                    text ? text : "unknown", error);
}

static void format_uuid(const ad_cuda_uuid *uuid, char out[AD_DEVICE_ID]) {
    int at = snprintf(out, AD_DEVICE_ID, "GPU");
    for (int i = 0; i < 16; i++)
        at += snprintf(out + at, AD_DEVICE_ID - (size_t)at, "%s%02x",
                       i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid->bytes[i]);
}

int ad__driver_name(int device, char out[AD_DEVICE_ID]) {
    ad_cuda_uuid uuid;
    int status = AD_CUDA(cuDeviceGetUuid_v2, &uuid, device);
    if (!status) format_uuid(&uuid, out);
    return status;
}

int ad__driver_enter(int device) {
    void *context;
    int status = AD_CUDA(cuDevicePrimaryCtxRetain, &context, device);
    if (status) return status;
    status = AD_CUDA(cuCtxPushCurrent_v2, context);
    if (status) ad__cuda.cuDevicePrimaryCtxRelease_v2(device);
    return status;
}

void ad__driver_leave(int device, bool keep) {
    void *context;
    ad__cuda.cuCtxPopCurrent_v2(&context);
    if (!keep) ad__cuda.cuDevicePrimaryCtxRelease_v2(device);
}
