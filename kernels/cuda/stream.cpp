/* Streams, events, and the checks in which operations report what only their data tell. */
#include <new>
#include <string.h>

#include "kernels/cuda/checks.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/libraries.h"
#include "protocol/distribution.h"

static int stream_make(ad_device *device, int priority, ad_stream **out, ad_fault *fault) {
    ad_stream *stream = new (std::nothrow) ad_stream{device, nullptr};
    if (stream == nullptr) return ad__fault(fault, AD_E_MEMORY, "out of memory");
    if (priority < device->urgent) priority = device->urgent;
    int rc =
        ad_cuda_status(cudaStreamCreateWithPriority(&stream->cuda, cudaStreamNonBlocking, priority < 0 ? priority : 0),
                       "cudaStreamCreate", fault);
    if (rc < 0) delete stream;
    else *out = stream;
    return rc;
}

/* The driver keeps for later streams what the first 40 or so at a time need, 2 MiB for every four of them. Having that
 * many once, when the device is opened, leaves nothing for clients to pay. */
int ad_cuda_streams_prepare(ad_device *device, ad_fault *fault) {
    constexpr int MOST = 40;
    ad_stream *streams[MOST];
    int n = 0, rc = 0;
    while (n < MOST && (rc = stream_make(device, 0, &streams[n], fault)) == 0) n++;
    while (n > 0) ad_cuda_stream_close(streams[--n]);
    return rc;
}

int ad_cuda_stream_open(ad_device *device, int priority, ad_stream **out, ad_fault *fault) {
    int rc = ad_faults_check(&device->faults, AD_SITE_stream_open, fault);
    if (rc < 0 || (rc = ad_cuda_enter(device, fault)) < 0) return rc;
    return stream_make(device, priority, out, fault);
}

void ad_cuda_stream_close(ad_stream *stream) {
    if (stream == nullptr) return;
    if (ad_cuda_enter(stream->device, nullptr) == 0) {
        ad_cuda_libraries_leave(stream->device, stream->cuda);
        cudaStreamDestroy(stream->cuda);
    }
    delete stream;
}

int ad_cuda_stream_wait(ad_stream *stream, ad_fault *fault) {
    int rc = ad_faults_check(&stream->device->faults, AD_SITE_stream_wait, fault);
    if (rc < 0 || (rc = ad_cuda_enter(stream->device, fault)) < 0) return rc;
    return ad_cuda_status(cudaStreamSynchronize(stream->cuda), "waiting for the device", fault);
}

int ad_cuda_event_open(ad_device *device, bool timed, ad_event **out, ad_fault *fault) {
    int rc = ad_cuda_enter(device, fault);
    if (rc < 0) return rc;
    ad_event *event = new (std::nothrow) ad_event{device, nullptr, false};
    if (event == nullptr) return ad__fault(fault, AD_E_MEMORY, "out of memory");
    rc = ad_cuda_status(cudaEventCreateWithFlags(&event->cuda, timed ? cudaEventDefault : cudaEventDisableTiming),
                        "cudaEventCreate", fault);
    if (rc < 0) delete event;
    else *out = event;
    return rc;
}

void ad_cuda_event_close(ad_event *event) {
    if (event == nullptr) return;
    if (ad_cuda_enter(event->device, nullptr) == 0) cudaEventDestroy(event->cuda);
    delete event;
}

int ad_cuda_event_record(ad_event *event, ad_stream *stream, ad_fault *fault) {
    int rc = ad_cuda_enter(stream->device, fault);
    if (rc < 0 || (rc = ad_cuda_status(cudaEventRecord(event->cuda, stream->cuda), "cudaEventRecord", fault)) < 0)
        return rc;
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
    int rc = ad_cuda_enter(from->device, fault);
    return rc < 0 ? rc : ad_cuda_status(cudaEventElapsedTime(ms, from->cuda, to->cuda), "cudaEventElapsedTime", fault);
}

int ad_cuda_stream_follow(ad_stream *stream, ad_event *event, ad_fault *fault) {
    int rc = ad_cuda_enter(stream->device, fault);
    return rc < 0 ? rc
                  : ad_cuda_status(cudaStreamWaitEvent(stream->cuda, event->cuda, 0), "cudaStreamWaitEvent", fault);
}

/* Of the host, written by the device: one address for both. */
int ad_cuda_check_open(ad_device *device, int n, ad_check **out, ad_fault *fault) {
    void *memory = nullptr;
    const size_t size = size_t(n) * sizeof(ad_check);
    int rc = ad_cuda_host_alloc(device, size, &memory, fault);
    if (rc < 0) return rc;
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
