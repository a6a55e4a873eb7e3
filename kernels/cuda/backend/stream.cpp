/* Streams, events, and the checks in which operations report what only their data tell. */
#include <algorithm>
#include <new>
#include <string.h>

#include "kernels/cuda/backend/checks.h"
#include "kernels/cuda/backend/device.h"
#include "kernels/cuda/backend/libraries.h"
#include "kernels/cuda/list/list.h"
#include "protocol/distribution.h"

static int stream_make(ad_device *device, int priority, ad_stream **out, ad_fault *fault) {
    ad_stream *stream = new (std::nothrow) ad_stream{};
    if (!stream) return ad__fault(fault, AD_E_MEMORY, "out of memory");
    stream->device = device;
    stream->priority = priority;
    int status = ad_cuda_status(cudaStreamCreateWithPriority(&stream->whole, cudaStreamNonBlocking, priority),
                                "cudaStreamCreate", fault);
    stream->cuda = stream->whole;
    if (status) delete stream;
    else *out = stream;
    return status;
}

/* A spare one of that priority; NULL: there is none. */
static ad_stream *stream_take(ad_device *device, int priority) {
    for (ad_stream **at = &device->spare; *at; at = &(*at)->next) {
        if ((*at)->priority != priority) continue;
        ad_stream *stream = *at;
        *at = stream->next;
        return stream;
    }
    return nullptr;
}

/* Streams are kept for whoever needs one next, with their handles of cuSOLVER, and destroyed with the device only. */
void ad_cuda_stream_close(ad_stream *stream) {
    if (!stream) return;
    ad_cuda_list_flush(stream, nullptr);
    ad_cuda_stream_widen(stream, nullptr);
    stream->next = stream->device->spare;
    stream->device->spare = stream;
}

/* The first 40 or so at a time take 2 MiB for every four of them. Having them from the beginning, most of them for the
 * default streams of sessions, leaves nothing for clients to pay. */
int ad_cuda_streams_prepare(ad_device *device, ad_fault *fault) {
    constexpr int MOST = 40, USUAL = 8;
    int status = 0;
    for (int n = 0; n < MOST && !status; n++) {
        ad_stream *stream = nullptr;
        status = stream_make(device, n < USUAL ? 0 : std::max(device->urgent, -1), &stream, fault);
        if (!status) ad_cuda_stream_close(stream);
    }
    return status;
}

void ad_cuda_streams_close(ad_device *device) {
    while (device->spare) {
        ad_stream *stream = device->spare;
        device->spare = stream->next;
        ad_cuda_solver_close(stream);
        ad_cuda_confined_close(stream);
        cudaStreamDestroy(stream->whole);
        delete stream->list;
        delete stream;
    }
}

int ad_cuda_stream_open(ad_device *device, int priority, ad_stream **out, ad_fault *fault) {
    int status = ad_faults_check(&device->faults, AD_SITE_stream_open, fault);
    if (status || (status = ad_cuda_enter(device, fault))) return status;
    priority = std::clamp(priority, device->urgent, 0);
    *out = stream_take(device, priority);
    return *out ? 0 : stream_make(device, priority, out, fault);
}

int ad_cuda_stream_wait(ad_stream *stream, ad_fault *fault) {
    int status = ad_faults_check(&stream->device->faults, AD_SITE_stream_wait, fault);
    if (status || (status = ad_cuda_enter(stream->device, fault))) return status;
    return ad_cuda_status(cudaStreamSynchronize(stream->cuda), "waiting for the device", fault);
}

int ad_cuda_event_open(ad_device *device, bool timed, ad_event **out, ad_fault *fault) {
    int status = ad_cuda_enter(device, fault);
    if (status) return status;
    ad_event *event = new (std::nothrow) ad_event{device, nullptr, false};
    if (!event) return ad__fault(fault, AD_E_MEMORY, "out of memory");
    status = ad_cuda_status(cudaEventCreateWithFlags(&event->cuda, timed ? cudaEventDefault : cudaEventDisableTiming),
                            "cudaEventCreate", fault);
    if (status) delete event;
    else *out = event;
    return status;
}

void ad_cuda_event_close(ad_event *event) {
    if (!event) return;
    if (!ad_cuda_enter(event->device, nullptr)) cudaEventDestroy(event->cuda);
    delete event;
}

int ad_cuda_event_record(ad_event *event, ad_stream *stream, ad_fault *fault) {
    int status = ad_cuda_enter(stream->device, fault);
    if (status || (status = ad_cuda_status(cudaEventRecord(event->cuda, stream->cuda), "cudaEventRecord", fault)))
        return status;
    event->recorded = true;
    return 0;
}

int ad_cuda_event_done(ad_event *event, ad_fault *fault) {
    cudaError_t error = cudaEventQuery(event->cuda); /* complete, too, when it was never recorded */
    if (error == cudaErrorNotReady) return 0;
    return error == cudaSuccess ? 1 : ad_cuda_status(error, "the device failed", fault);
}

int ad_cuda_event_elapsed(ad_event *from, ad_event *to, float *ms, ad_fault *fault) {
    if (!from->recorded || !to->recorded)
        return ad__fault(fault, AD_E_VALUE, "an event that was never recorded has no time");
    int status = ad_cuda_enter(from->device, fault);
    return status ? status
                  : ad_cuda_status(cudaEventElapsedTime(ms, from->cuda, to->cuda), "cudaEventElapsedTime", fault);
}

int ad_cuda_stream_follow(ad_stream *stream, ad_event *event, ad_fault *fault) {
    int status = ad_cuda_enter(stream->device, fault);
    return status ? status
                  : ad_cuda_status(cudaStreamWaitEvent(stream->cuda, event->cuda, 0), "cudaStreamWaitEvent", fault);
}

/* Open checks in memory of the host that the device writes; host and device use the same address. */
int ad_cuda_check_open(ad_device *device, int n, ad_check **out, ad_fault *fault) {
    void *memory = nullptr;
    const size_t size = size_t(n) * sizeof(ad_check);
    int status = ad_cuda_host_alloc(device, size, &memory, fault);
    if (status) return status;
    memset(memory, 0, size);
    *out = static_cast<ad_check *>(memory);
    return 0;
}

void ad_cuda_check_close(ad_device *device, ad_check *checks) { ad_cuda_host_free(device, checks); }

/* A row's text may leave the last values out. */
#pragma GCC diagnostic ignored "-Wformat-extra-args"
int ad_cuda_check_fault(const ad_check *check, ad_fault *fault) {
    if (check->what == AD_CHECK_random) return ad__random_fault(check->value[0], check->value[1], fault);
    switch (check->what) {
#define AD_CHECK(name, status, text)                                                                  \
    case AD_CHECK_##name:                                                                             \
        return ad__fault(fault, status, text, (long long)check->value[0], (long long)check->value[1], \
                         (long long)check->value[2]);
        AD_CHECKS(AD_CHECK)
#undef AD_CHECK
    default: return check->code == 0 ? 0 : ad__fault(fault, check->code, "the device reported an error");
    }
}
