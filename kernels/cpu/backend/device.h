/* The cpu backend's own objects, shared by backend*.cpp and slab.cpp. */
#ifndef AD_KERNELS_CPU_BACKEND_DEVICE_H
#define AD_KERNELS_CPU_BACKEND_DEVICE_H

#include "kernels/backend.h"
#include "kernels/fault.h"

struct ad_device {
    ad_compiler *compiler; /* the worker's; or NULL */
    ad_faults faults;
};

struct ad_stream {
    ad_device *device;
};

struct ad_event {
    int64_t time; /* ns; 0: never recorded */
};

void ad_cpu_device_info(ad_device_info *info);

/* Functions for devices that work behind the host's back: events, checks, pinned memory. Here a stream has always
 * passed, and all host memory is within reach. */
int ad_cpu_event_open(ad_device *device, bool timed, ad_event **out, ad_fault *fault);
void ad_cpu_event_close(ad_event *event);
int ad_cpu_event_record(ad_event *event, ad_stream *stream, ad_fault *fault);
int ad_cpu_event_done(ad_event *event, ad_fault *fault);
int ad_cpu_event_elapsed(ad_event *from, ad_event *to, float *ms, ad_fault *fault);
int ad_cpu_stream_follow(ad_stream *stream, ad_event *event, ad_fault *fault);
int ad_cpu_host_alloc(ad_device *device, uint64_t size, void **out, ad_fault *fault);
void ad_cpu_host_free(ad_device *device, void *memory);
int ad_cpu_host_register(ad_device *device, void *memory, uint64_t size, ad_fault *fault);
void ad_cpu_host_unregister(ad_device *device, void *memory);
int ad_cpu_check_open(ad_device *device, int n, ad_check **out, ad_fault *fault);
void ad_cpu_check_close(ad_device *device, ad_check *checks);
int ad_cpu_check_fault(const ad_check *check, ad_fault *fault);

int ad_cpu_slab_create(ad_device *device, uint64_t size, ad_slab_map *out, ad_fault *fault);
int ad_cpu_slab_attach(ad_device *device, int fd, uint64_t size, ad_slab_map *out, ad_fault *fault);
void ad_cpu_slab_close(ad_device *device, ad_slab_map *slab);
int ad_cpu_slab_create_plain(ad_device *device, uint64_t size, ad_slab_map *out, ad_fault *fault);
int ad_cpu_slab_handle(ad_device *device, const ad_slab_map *slab, uint8_t handle[AD_SLAB_HANDLE], ad_fault *fault);
int ad_cpu_slab_import(ad_device *device, const uint8_t handle[AD_SLAB_HANDLE], ad_slab_map *out, ad_fault *fault);

#endif
