/* The cpu backend: the host's processors as one device, or as several that share them. Every operation is complete when
 * its call returns, so streams have nothing to remember. */
#include <new>
#include <stdlib.h>
#include <string.h>

#include "kernels/call.h"
#include "kernels/cpu/backend/blas_core.h"
#include "kernels/cpu/call/fft_plans.h"
#include "kernels/cpu/fuse/chain.h"
#include "kernels/cpu/backend/device.h"
#include "kernels/cpu/backend/late.h"
#include "kernels/cpu/backend/module.h"
#include "kernels/cpu/backend/operand.h"
#include "kernels/cpu/backend/parallel.h"
#include "protocol/rows_request.h"

namespace {

constexpr int64_t COPY_GRAIN = 512 << 10; /* bytes: what one thread moves in about the time that waking another takes */

int devices(int *count, ad_fault *) {
    *count = 1;
    return 0;
}

/* Each device is the same processors and memory. */
int device_open(int index, int threads, ad_compiler *compiler, ad_device **out, ad_fault *fault) {
    int status;
    if (index < 0) return ad__fault(fault, AD_E_VALUE, "devices are numbered from 0, and %d is none", index);
    ad_device *device = new (std::nothrow) ad_device;
    if (!device) return ad__fault(fault, AD_E_MEMORY, "out of memory");
    device->compiler = compiler;
    ad_cpu_blas_open();
    if ((status = ad_faults_parse(&device->faults, getenv("ARRAYD_FAULT"), fault))) goto free_device;
    if ((status = ad_cpu_parallel_open(threads, fault))) goto free_device;
    *out = device;
    return 0;

free_device:
    delete device;
    return status;
}

void device_close(ad_device *device) {
    ad_cpu_parallel_close();
    delete device;
}

void device_info(ad_device *, ad_device_info *info) {
    ad_cpu_device_info(info);
    info->multiprocessors = ad_cpu_parallel_threads();
}

void device_plans(ad_device *device, ad_plans *plans) { ad_fft_plans_count(device, plans); }

int stream_open(ad_device *device, int, ad_stream **out, ad_fault *fault) {
    int status = ad_faults_check(&device->faults, AD_SITE_stream_open, fault);
    if (status) return status;
    ad_stream *stream = new (std::nothrow) ad_stream{device};
    if (!stream) return ad__fault(fault, AD_E_MEMORY, "out of memory");
    *out = stream;
    return 0;
}

void stream_close(ad_stream *stream) { delete stream; }

int stream_wait(ad_stream *stream, ad_fault *fault) {
    return ad_faults_check(&stream->device->faults, AD_SITE_stream_wait, fault);
}

void copy_bytes(void *to, const void *from, uint64_t size) {
    ad_cpu_parallel(int64_t(size), COPY_GRAIN, [&](int64_t begin, int64_t end) {
        memcpy(static_cast<char *>(to) + begin, static_cast<const char *>(from) + begin, size_t(end - begin));
    });
}

int zero(ad_stream *stream, void *to, uint64_t size, ad_fault *fault) {
    int status = ad_faults_check(&stream->device->faults, AD_SITE_zero, fault);
    if (status) return status;
    ad_cpu_parallel(int64_t(size), COPY_GRAIN, [&](int64_t begin, int64_t end) {
        memset(static_cast<char *>(to) + begin, 0, size_t(end - begin));
    });
    return 0;
}

int upload(ad_stream *stream, void *to, const void *host, uint64_t size, ad_fault *fault) {
    int status = ad_faults_check(&stream->device->faults, AD_SITE_upload, fault);
    if (!status) copy_bytes(to, host, size);
    return status;
}

int move(ad_stream *, void *to, const void *from, uint64_t size, ad_fault *) {
    copy_bytes(to, from, size);
    return 0;
}

int download(ad_stream *stream, void *host, const void *from, uint64_t size, ad_fault *fault) {
    int status = ad_faults_check(&stream->device->faults, AD_SITE_download, fault);
    if (!status) copy_bytes(host, from, size);
    return status;
}

int dispatch(ad_stream *stream, const ad_op *op, ad_run *run, ad_fault *fault) {
    switch (op->opcode) {
    case AD_REQ_UFUNC: return ad_cpu_ufunc(stream, op, run, fault);
    case AD_REQ_REDUCE: return ad_cpu_reduce(stream, op, run, fault);
    case AD_REQ_CALL:
    case AD_REQ_QUERY: return ad__call_run(stream, op, run, fault);
    default: return ad__fault(fault, AD_E_INTERNAL, "operation code %d has no place in a backend", op->opcode);
    }
}

/* The one place where exceptions could cross into C. */
template <class F> int run_guarded(const ad_run *run, ad_fault *fault, F f) {
    const ad_cpu_cancel_scope scope(run->cancelled);
    try {
        return f();
    } catch (const ad_cpu_cancelled &) {
        return ad__fault(fault, AD_E_INTERRUPTED, "cancelled");
    } catch (const std::bad_alloc &) {
        return ad__fault(fault, AD_E_MEMORY, "out of memory");
    } catch (...) {
        return ad__fault(fault, AD_E_INTERNAL, "the cpu backend failed unexpectedly");
    }
}

int run_operation(ad_stream *stream, const ad_op *op, ad_run *run, ad_fault *fault) {
    int status;
    if ((status = ad_faults_check(&stream->device->faults, AD_SITE_run, fault))) return status;
    if ((status = ad_faults_check(&stream->device->faults, AD_SITE_wild, fault))) return status;
    return run_guarded(run, fault, [&] { return dispatch(stream, op, run, fault); });
}

int fuse(ad_stream *stream, const ad_chain *chain, ad_run *run, ad_fault *fault) {
    int status;
    if (!ad_cpu_chain_suits(chain)) return 0;
    if ((status = ad_faults_check(&stream->device->faults, AD_SITE_run, fault))) return status;
    return run_guarded(run, fault, [&] { return ad_cpu_fuse(stream, chain, run, fault); });
}

const ad_backend backend = {AD_BACKEND_VERSION,
                            "cpu",
                            false,
                            devices,
                            device_open,
                            device_close,
                            device_info,
                            device_plans,
                            ad_cpu_slab_create,
                            ad_cpu_slab_attach,
                            ad_cpu_slab_close,
                            ad_cpu_slab_create_plain,
                            ad_cpu_slab_handle,
                            ad_cpu_slab_import,
                            stream_open,
                            stream_close,
                            stream_wait,
                            ad_cpu_event_open,
                            ad_cpu_event_close,
                            ad_cpu_event_record,
                            ad_cpu_event_done,
                            ad_cpu_event_elapsed,
                            ad_cpu_stream_follow,
                            ad_cpu_host_alloc,
                            ad_cpu_host_free,
                            ad_cpu_host_register,
                            ad_cpu_host_unregister,
                            ad_cpu_check_open,
                            ad_cpu_check_close,
                            ad_cpu_check_fault,
                            zero,
                            upload,
                            upload,
                            download,
                            move,
                            run_operation,
                            fuse,
                            ad_cpu_module_job,
                            ad_cpu_module_open,
                            ad_cpu_module_close,
                            ad_cpu_module_kernel,
                            ad_cpu_module_global,
                            ad_cpu_kernel_info,
                            ad_cpu_kernel_set,
                            ad_cpu_launch};

/* OpenBLAS would start a thread for each processor while it is being loaded. Matrix products are divided among this
 * backend's own threads (call/matmul.cpp), so it needs none. Runs before OpenBLAS's own constructor. */
__attribute__((constructor(101))) void blas_without_threads() { setenv("OPENBLAS_NUM_THREADS", "1", 1); }

} // namespace

extern "C" const ad_backend *ad_backend_get(void) {
    return getenv("ARRAYD_CPU_LATE") ? ad_cpu_late(&backend) : &backend;
}
