/* Parts of a device: streams that leave some multiprocessors alone, by a green context of the primary context.
 *
 *     ad_stream ── cuda ─┬─ whole      a stream of the primary context
 *                        └─ confined   one of a green context that has the other multiprocessors
 *
 * A stream that goes from one to the other waits there, by an event, for what it already holds. So whoever uses an
 * ad_stream sees one stream. Memory, modules, events and handles are the primary context's, and work in both. */
#include <algorithm>
#include <new>

#include "kernels/cuda/backend/device.h"
#include "kernels/cuda/backend/driver.h"

struct ad_cuda_part {
    int reserved, multiprocessors; /* left alone; those that it has */
    CUgreenCtx context;
    ad_cuda_part *next;
};

struct ad_cuda_confined {
    const ad_cuda_part *part;
    cudaStream_t cuda;
    ad_cuda_confined *next;
};

namespace {

const ad_cuda_driver *driver() { return ad_cuda_driver_get(); }

int open_context(int device, CUdevResource *resource, CUgreenCtx *out, ad_fault *fault) {
    CUdevResourceDesc description = nullptr;
    CUdevice which = 0;
    int status = ad_cuda_driver_status(driver()->cuDeviceGet(&which, device), "cuDeviceGet", fault);
    if (!status)
        status = ad_cuda_driver_status(driver()->cuDevResourceGenerateDesc(&description, resource, 1),
                                       "cuDevResourceGenerateDesc", fault);
    if (status) return status;
    return ad_cuda_driver_status(driver()->cuGreenCtxCreate(out, description, which, CU_GREEN_CTX_DEFAULT_STREAM),
                                 "cuGreenCtxCreate", fault);
}

/* Divide the device's multiprocessors into `wanted` or some more, and the rest. False: they cannot be divided so. */
bool divide(int device, int wanted, CUdevResource *reserved, CUdevResource *rest) {
    CUdevResource all;
    CUdevice which = 0;
    unsigned groups = 1;
    if (driver()->cuDeviceGet(&which, device) != CUDA_SUCCESS ||
        driver()->cuDeviceGetDevResource(which, &all, CU_DEV_RESOURCE_TYPE_SM) != CUDA_SUCCESS)
        return false;
    const unsigned least = std::min(unsigned(wanted), all.sm.smCount / 2);
    return driver()->cuDevSmResourceSplitByCount(reserved, &groups, &all, rest, 0, least) == CUDA_SUCCESS &&
           groups == 1 && reserved->sm.smCount > 0 && rest->sm.smCount >= reserved->sm.smCount;
}

ad_cuda_part *find_part(const ad_device *device, int reserved) {
    ad_cuda_part *p = device->parts;
    while (p && p->reserved != reserved) p = p->next;
    return p;
}

int open_part(ad_device *device, int reserved, CUdevResource *rest, ad_fault *fault) {
    ad_cuda_part *p = new (std::nothrow) ad_cuda_part{reserved, int(rest->sm.smCount), nullptr, device->parts};
    if (!p) return ad__fault(fault, AD_E_MEMORY, "out of memory");
    const int status = open_context(device->index, rest, &p->context, fault);
    if (status) delete p;
    else device->parts = p;
    return status;
}

ad_cuda_confined *find_confined(const ad_stream *stream, int reserved) {
    ad_cuda_confined *c = stream->confined;
    while (c && c->part->reserved != reserved) c = c->next;
    return c;
}

int open_confined(ad_stream *stream, int reserved, ad_cuda_confined **out, ad_fault *fault) {
    const ad_cuda_part *part = find_part(stream->device, reserved);
    if (!part) return ad__fault(fault, AD_E_INTERNAL, "%d multiprocessors were never reserved", reserved);
    CUstream made = nullptr;
    int status = ad_cuda_driver_status(
        driver()->cuGreenCtxStreamCreate(&made, part->context, CU_STREAM_NON_BLOCKING, stream->priority),
        "cuGreenCtxStreamCreate", fault);
    if (status) return status;
    ad_cuda_confined *c = new (std::nothrow) ad_cuda_confined{part, made, stream->confined};
    if (!c) {
        cudaStreamDestroy(made);
        return ad__fault(fault, AD_E_MEMORY, "out of memory");
    }
    *out = stream->confined = c;
    return 0;
}

/* Let operations go to another of the stream's streams, after all that it holds. multiprocessors: there; 0: all. */
int switch_to(ad_stream *stream, cudaStream_t to, int multiprocessors, ad_fault *fault) {
    int status = 0;
    if (!stream->moved)
        status =
            ad_cuda_status(cudaEventCreateWithFlags(&stream->moved, cudaEventDisableTiming), "cudaEventCreate", fault);
    if (!status) status = ad_cuda_status(cudaEventRecord(stream->moved, stream->cuda), "cudaEventRecord", fault);
    if (!status) status = ad_cuda_status(cudaStreamWaitEvent(to, stream->moved, 0), "cudaStreamWaitEvent", fault);
    if (status) return status;
    stream->cuda = to;
    stream->multiprocessors = multiprocessors;
    return 0;
}

} // namespace

int ad_cuda_device_split(ad_device *device, int wanted, ad_fault *fault) {
    CUdevResource part, rest;
    int status = ad_cuda_enter(device, fault);
    if (status) return status;
    if (!divide(device->index, wanted, &part, &rest)) return 0;
    const int reserved = int(part.sm.smCount);
    if (!find_part(device, reserved)) status = open_part(device, reserved, &rest, fault);
    return status ? status : reserved;
}

int ad_cuda_stream_widen(ad_stream *stream, ad_fault *fault) {
    if (stream->cuda == stream->whole) return 0;
    const int status = ad_cuda_enter(stream->device, fault);
    return status ? status : switch_to(stream, stream->whole, 0, fault);
}

int ad_cuda_stream_confine(ad_stream *stream, int reserved, ad_fault *fault) {
    if (!reserved) return ad_cuda_stream_widen(stream, fault);
    ad_cuda_confined *c = find_confined(stream, reserved);
    int status = ad_cuda_enter(stream->device, fault);
    if (!c && !status) status = open_confined(stream, reserved, &c, fault);
    if (status || stream->cuda == c->cuda) return status;
    return switch_to(stream, c->cuda, c->part->multiprocessors, fault);
}

void ad_cuda_confined_close(ad_stream *stream) {
    while (stream->confined) {
        ad_cuda_confined *c = stream->confined;
        stream->confined = c->next;
        cudaStreamDestroy(c->cuda);
        delete c;
    }
    if (stream->moved) cudaEventDestroy(stream->moved);
}

void ad_cuda_parts_close(ad_device *device) {
    while (device->parts) {
        ad_cuda_part *p = device->parts;
        device->parts = p->next;
        driver()->cuGreenCtxDestroy(p->context);
        delete p;
    }
}
