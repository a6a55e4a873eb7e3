/* Users' modules: cubins, their kernels and variables, and launches. */
#include <new>
#include <stdio.h>

#include "kernels/cuda/backend/device.h"
#include "kernels/cuda/backend/driver.h"
#include "kernels/cuda/backend/module.h"
#include "kernels/launch.h"
#include "kernels/run.h"

struct ad_device_module {
    ad_device *device;
    CUmodule cuda;
    ad_kernel *kernels;
};

struct ad_kernel {
    CUfunction cuda;
    ad_device *device;
    int max_threads, shared; /* of a block; static shared memory */
    int max_dynamic;
    int nparameters;
    uint32_t *sizes; /* of its parameters */
    char name[256];
    ad_kernel *next;
};

namespace {

const ad_cuda_driver *driver() { return ad_cuda_driver_get(); }

int attribute(ad_kernel *k, CUfunction_attribute which, int *out, ad_fault *fault) {
    return ad_cuda_driver_status(driver()->cuFuncGetAttribute(out, which, k->cuda), "cuFuncGetAttribute", fault);
}

/* Count the parameters by asking beyond the last. */
int read_parameters(ad_kernel *k, ad_fault *fault) {
    size_t offset, size;
    int n = 0;
    while (n < AD_MAX_ARGUMENTS + 1 && driver()->cuFuncGetParamInfo(k->cuda, size_t(n), &offset, &size) == CUDA_SUCCESS)
        n++;
    if (n > AD_MAX_ARGUMENTS)
        return ad__fault(fault, AD_E_LIMIT, "kernel %s: it takes more than %d parameters", k->name, AD_MAX_ARGUMENTS);
    k->sizes = new (std::nothrow) uint32_t[size_t(n) + 1];
    if (!k->sizes) return ad__fault(fault, AD_E_MEMORY, "out of memory");
    for (int i = 0; i < n; i++) {
        driver()->cuFuncGetParamInfo(k->cuda, size_t(i), &offset, &size);
        k->sizes[i] = uint32_t(size);
    }
    k->nparameters = n;
    return 0;
}

int read_limits(ad_kernel *k, ad_fault *fault) {
    int status = attribute(k, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &k->max_threads, fault);
    if (!status) status = attribute(k, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &k->shared, fault);
    if (!status) status = attribute(k, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &k->max_dynamic, fault);
    return !status ? read_parameters(k, fault) : status;
}

void forget(ad_kernel *k) {
    delete[] k->sizes;
    delete k;
}

/* Check a launch, because the driver's own errors say less. */
int check(const ad_kernel_launch *l, ad_fault *fault) {
    const ad_kernel *k = l->kernel;
    const ad_launch_limits limits = {k->name, k->sizes, k->nparameters, k->max_threads, k->max_dynamic};
    return ad_launch_check(l, &limits, fault);
}

CUresult start(const ad_kernel_launch *l, CUstream stream, void **argument) {
    const uint32_t *g = l->grid, *b = l->block;
    if (l->cooperative)
        return driver()->cuLaunchCooperativeKernel(l->kernel->cuda, g[0], g[1], g[2], b[0], b[1], b[2], l->shared,
                                                   stream, argument);
    return driver()->cuLaunchKernel(l->kernel->cuda, g[0], g[1], g[2], b[0], b[1], b[2], l->shared, stream, argument,
                                    nullptr);
}

} // namespace

int ad_cuda_module_job(ad_device *device, ad_compile_job *job, ad_arena *arena, ad_fault *fault) {
    char *arch = static_cast<char *>(ad__arena_alloc(arena, 16));
    if (!arch) return ad__fault(fault, AD_E_MEMORY, "out of memory");
    snprintf(arch, 16, "sm_%d%d", device->major, device->minor);
    job->target = AD_COMPILE_CUDA;
    job->arch = arch;
    job->headers = ad_run_headers(false, &job->nheaders);
    return 0;
}

int ad_cuda_module_open(ad_device *device, const ad_binary *binary, ad_device_module **out, ad_fault *fault) {
    int status = ad_cuda_enter(device, fault);
    if (status) return status;
    ad_device_module *m = new (std::nothrow) ad_device_module{device, nullptr, nullptr};
    if (!m) return ad__fault(fault, AD_E_MEMORY, "out of memory");
    status = ad_cuda_driver_status(driver()->cuModuleLoadData(&m->cuda, binary->data), "loading the module", fault);
    if (status) delete m;
    else *out = m;
    return status;
}

void ad_cuda_module_close(ad_device_module *m) {
    while (m->kernels) {
        ad_kernel *k = m->kernels;
        m->kernels = k->next;
        forget(k);
    }
    if (!ad_cuda_enter(m->device, nullptr)) driver()->cuModuleUnload(m->cuda);
    delete m;
}

int ad_cuda_module_kernel(ad_device_module *m, const char *name, ad_kernel **out, ad_fault *fault) {
    int status = ad_cuda_enter(m->device, fault);
    if (status) return status;
    ad_kernel *k = new (std::nothrow) ad_kernel();
    if (!k) return ad__fault(fault, AD_E_MEMORY, "out of memory");
    snprintf(k->name, sizeof k->name, "%s", name);
    k->device = m->device;
    const CUresult found = driver()->cuModuleGetFunction(&k->cuda, m->cuda, name);
    if (found == CUDA_ERROR_NOT_FOUND)
        status = ad__fault(fault, AD_E_VALUE,
                           "there is no kernel %s: name expressions and extern \"C\" functions are known", name);
    else status = ad_cuda_driver_status(found, "cuModuleGetFunction", fault);
    if (!status) status = read_limits(k, fault);
    if (status) {
        forget(k);
        return status;
    }
    k->next = m->kernels;
    *out = m->kernels = k;
    return 0;
}

int ad_cuda_module_global(ad_device_module *m, const char *name, void **address, uint64_t *size, ad_fault *fault) {
    CUdeviceptr at = 0;
    size_t bytes = 0;
    int status = ad_cuda_enter(m->device, fault);
    if (status) return status;
    const CUresult found = driver()->cuModuleGetGlobal(&at, &bytes, m->cuda, name);
    if (found == CUDA_ERROR_NOT_FOUND)
        return ad__fault(fault, AD_E_VALUE, "there is no variable %s in the module", name);
    if ((status = ad_cuda_driver_status(found, "cuModuleGetGlobal", fault))) return status;
    *address = reinterpret_cast<void *>(at);
    *size = bytes;
    return 0;
}

int ad_cuda_kernel_info(ad_kernel *k, ad_kernel_info *out, ad_fault *fault) {
    int64_t *const places[] = {&out->max_threads_per_block,
                               &out->shared_bytes,
                               &out->const_bytes,
                               &out->local_bytes,
                               &out->registers,
                               &out->ptx_version,
                               &out->binary_version,
                               &out->cache_mode_ca,
                               &out->max_dynamic_shared_bytes,
                               &out->preferred_shared_carveout};
    int status = ad_cuda_enter(k->device, fault);
    for (int i = 0; !status && i < int(sizeof places / sizeof *places); i++) {
        int value = 0; /* CUfunction_attribute counts in this order */
        status = attribute(k, static_cast<CUfunction_attribute>(i), &value, fault);
        *places[i] = value;
    }
    return status;
}

int ad_cuda_kernel_set(ad_kernel *k, int64_t max_dynamic_shared, int64_t carveout, ad_fault *fault) {
    int status = ad_cuda_enter(k->device, fault);
    if (!status && (max_dynamic_shared > INT32_MAX || carveout > 100))
        status = ad__fault(fault, AD_E_VALUE,
                           "kernel %s: shared memory of %lld bytes or a carveout of %lld percent is too much", k->name,
                           (long long)max_dynamic_shared, (long long)carveout);
    if (!status && max_dynamic_shared >= 0) {
        status =
            ad_cuda_driver_status(driver()->cuFuncSetAttribute(k->cuda, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                               int(max_dynamic_shared)),
                                  "setting max_dynamic_shared_size_bytes", fault);
        if (!status) k->max_dynamic = int(max_dynamic_shared);
    }
    if (!status && carveout >= 0)
        status = ad_cuda_driver_status(
            driver()->cuFuncSetAttribute(k->cuda, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, int(carveout)),
            "setting preferred_shared_memory_carveout", fault);
    return status;
}

int ad_cuda_launch(ad_stream *stream, const ad_kernel_launch *l, ad_run *run, ad_fault *fault) {
    int status = ad_faults_check(&stream->device->faults, AD_SITE_run, fault);
    if (status || (status = ad_cuda_enter(stream->device, fault)) || (status = check(l, fault)) ||
        (l->cooperative && (status = ad_cuda_stream_widen(stream, fault))))
        return status;
    char what[300];
    const CUresult result = start(l, reinterpret_cast<CUstream>(stream->cuda), const_cast<void **>(l->argument));
    if (result == CUDA_SUCCESS) {
        run->wrote = true;
        return 0;
    }
    if (result == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE)
        return ad__fault(
            fault, AD_E_VALUE,
            "kernel %s: %u x %u x %u blocks do not run all at once on this device, as a cooperative launch "
            "needs",
            l->kernel->name, l->grid[0], l->grid[1], l->grid[2]);
    snprintf(what, sizeof what, "launching kernel %s", l->kernel->name);
    return ad_cuda_driver_status(result, what, fault);
}
