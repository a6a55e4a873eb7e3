/* Parts of a device: some multiprocessors that are reserved, and the rest, as two green contexts of the primary
 * context.
 *
 *     ad_stream ── cuda ─┬─ whole      a stream of the primary context
 *                        ├─ reserved   a stream of a green context
 *                        └─ rest
 *
 * A stream that is placed elsewhere waits there, by an event, for what it already holds. So whoever uses an ad_stream
 * sees one stream. Memory, modules, events and handles are the primary context's, and work in all parts. */
#include <algorithm>
#include <new>

#include "kernels/cuda/backend/device.h"
#include "kernels/cuda/backend/driver.h"

struct ad_cuda_split {
    int multiprocessors[2]; /* reserved, rest */
    CUgreenCtx context[2];
    ad_cuda_split *next;
};

struct ad_cuda_placed {
    const ad_cuda_split *split;
    ad_part part;
    cudaStream_t cuda;
    ad_cuda_placed *next;
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

/* Divide the device's multiprocessors; the first part has `wanted` or some more. False: the device has no parts. */
bool divide(int device, int wanted, CUdevResource part[2]) {
    CUdevResource all;
    CUdevice which = 0;
    unsigned groups = 1;
    if (driver()->cuDeviceGet(&which, device) != CUDA_SUCCESS ||
        driver()->cuDeviceGetDevResource(which, &all, CU_DEV_RESOURCE_TYPE_SM) != CUDA_SUCCESS)
        return false;
    const unsigned least = std::min(unsigned(wanted), all.sm.smCount / 2);
    return driver()->cuDevSmResourceSplitByCount(&part[0], &groups, &all, &part[1], 0, least) == CUDA_SUCCESS &&
           groups == 1 && part[0].sm.smCount > 0 && part[1].sm.smCount >= part[0].sm.smCount;
}

ad_cuda_split *find_split(const ad_device *device, int reserved) {
    ad_cuda_split *s = device->splits;
    while (s && s->multiprocessors[0] != reserved) s = s->next;
    return s;
}

void close_split(ad_cuda_split *s) {
    for (CUgreenCtx context : s->context)
        if (context) driver()->cuGreenCtxDestroy(context);
    delete s;
}

int open_split(ad_device *device, CUdevResource part[2], ad_fault *fault) {
    ad_cuda_split *s = new (std::nothrow) ad_cuda_split{};
    int status = s ? 0 : ad__fault(fault, AD_E_MEMORY, "out of memory");
    for (int i = 0; i < 2 && !status; i++) {
        s->multiprocessors[i] = int(part[i].sm.smCount);
        status = open_context(device->index, &part[i], &s->context[i], fault);
    }
    if (status) {
        if (s) close_split(s);
        return status;
    }
    s->next = device->splits;
    device->splits = s;
    return 0;
}

ad_cuda_placed *find_placed(const ad_stream *stream, ad_part part, int reserved) {
    ad_cuda_placed *p = stream->placed;
    while (p && (p->part != part || p->split->multiprocessors[0] != reserved)) p = p->next;
    return p;
}

int open_placed(ad_stream *stream, ad_part part, int reserved, ad_cuda_placed **out, ad_fault *fault) {
    const ad_cuda_split *split = find_split(stream->device, reserved);
    if (!split) return ad__fault(fault, AD_E_INTERNAL, "device %d has no part of %d", stream->device->index, reserved);
    ad_cuda_placed *p = new (std::nothrow) ad_cuda_placed{split, part, nullptr, stream->placed};
    if (!p) return ad__fault(fault, AD_E_MEMORY, "out of memory");
    CUstream made = nullptr;
    const int status = ad_cuda_driver_status(
        driver()->cuGreenCtxStreamCreate(&made, split->context[part - 1], CU_STREAM_NON_BLOCKING, stream->priority),
        "cuGreenCtxStreamCreate", fault);
    if (status) {
        delete p;
        return status;
    }
    p->cuda = made;
    *out = stream->placed = p;
    return 0;
}

/* Let operations go to another of the stream's streams, after all that it holds. */
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
    CUdevResource part[2];
    int status = ad_cuda_enter(device, fault);
    if (status) return status;
    if (!divide(device->index, wanted, part)) return 0;
    const int reserved = int(part[0].sm.smCount);
    if (!find_split(device, reserved)) status = open_split(device, part, fault);
    return status ? status : reserved;
}

int ad_cuda_stream_widen(ad_stream *stream, ad_fault *fault) {
    if (stream->cuda == stream->whole) return 0;
    const int status = ad_cuda_enter(stream->device, fault);
    return status ? status : switch_to(stream, stream->whole, 0, fault);
}

int ad_cuda_stream_place(ad_stream *stream, ad_part part, int reserved, ad_fault *fault) {
    if (part == AD_PART_WHOLE) return ad_cuda_stream_widen(stream, fault);
    ad_cuda_placed *p = find_placed(stream, part, reserved);
    int status = ad_cuda_enter(stream->device, fault);
    if (!p && !status) status = open_placed(stream, part, reserved, &p, fault);
    if (status || stream->cuda == p->cuda) return status;
    return switch_to(stream, p->cuda, p->split->multiprocessors[part - 1], fault);
}

void ad_cuda_placed_close(ad_stream *stream) {
    while (stream->placed) {
        ad_cuda_placed *p = stream->placed;
        stream->placed = p->next;
        cudaStreamDestroy(p->cuda);
        delete p;
    }
    if (stream->moved) cudaEventDestroy(stream->moved);
}

void ad_cuda_splits_close(ad_device *device) {
    while (device->splits) {
        ad_cuda_split *s = device->splits;
        device->splits = s->next;
        close_split(s);
    }
}
