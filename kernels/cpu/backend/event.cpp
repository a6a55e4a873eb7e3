/* Events, checks and pinned memory of the cpu backend, whose operations are complete when their call returns. */
#include <new>
#include <stdlib.h>
#include <time.h>

#include "kernels/cpu/backend/device.h"

int ad_cpu_event_open(ad_device *, bool, ad_event **out, ad_fault *fault) {
    ad_event *event = new (std::nothrow) ad_event{0};
    if (!event) return ad__fault(fault, AD_E_MEMORY, "out of memory");
    *out = event;
    return 0;
}

void ad_cpu_event_close(ad_event *event) { delete event; }

int ad_cpu_event_record(ad_event *event, ad_stream *, ad_fault *) {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    event->time = int64_t(now.tv_sec) * 1000000000 + now.tv_nsec;
    return 0;
}

int ad_cpu_event_done(ad_event *, ad_fault *) { return 1; }

int ad_cpu_event_elapsed(ad_event *from, ad_event *to, float *ms, ad_fault *fault) {
    if (from->time == 0 || to->time == 0)
        return ad__fault(fault, AD_E_VALUE, "an event that was never recorded has no time");
    *ms = float(double(to->time - from->time) * 1e-6);
    return 0;
}

int ad_cpu_stream_follow(ad_stream *, ad_event *, ad_fault *) { return 0; }

int ad_cpu_host_alloc(ad_device *, uint64_t size, void **out, ad_fault *fault) {
    void *memory = nullptr;
    if (posix_memalign(&memory, 4096, size > 0 ? size : 1) != 0)
        return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    *out = memory;
    return 0;
}

void ad_cpu_host_free(ad_device *, void *memory) { free(memory); }

int ad_cpu_host_register(ad_device *, void *, uint64_t, ad_fault *) { return 0; }

void ad_cpu_host_unregister(ad_device *, void *) {}

int ad_cpu_check_open(ad_device *, int n, ad_check **out, ad_fault *fault) {
    ad_check *checks = static_cast<ad_check *>(calloc(size_t(n), sizeof(ad_check)));
    if (!checks) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    *out = checks;
    return 0;
}

void ad_cpu_check_close(ad_device *, ad_check *checks) { free(checks); }

int ad_cpu_check_fault(const ad_check *check, ad_fault *) { return check->code; /* never set here */ }
