/* The cpu backend's own objects, shared by backend*.cpp and slab.cpp. */
#ifndef AD_KERNELS_CPU_DEVICE_H
#define AD_KERNELS_CPU_DEVICE_H

#include <atomic>

#include "kernels/backend.h"

/* Places at which ARRAYD_FAULT can make a call fail: AD_SITE(function, status unless the variable names one). */
#define AD_SITES(AD_SITE)             \
    AD_SITE(slab_create, AD_E_MEMORY) \
    AD_SITE(slab_attach, AD_E_SYSTEM) \
    AD_SITE(stream_open, AD_E_MEMORY) \
    AD_SITE(stream_wait, AD_E_DEVICE) \
    AD_SITE(zero, AD_E_DEVICE)        \
    AD_SITE(upload, AD_E_DEVICE)      \
    AD_SITE(download, AD_E_DEVICE)    \
    AD_SITE(run, AD_E_DEVICE)

enum {
#define AD_SITE(name, status) AD_SITE_##name,
    AD_SITES(AD_SITE)
#undef AD_SITE
        AD_NSITE
};

/* For tests. ARRAYD_FAULT is a list, split by commas, of SITE:N or SITE:N:STATUS: the Nth call of SITE (the first is 1)
 * fails; STATUS is memory, device, lost or system. After lost the device fails every call, as a real one would. */
struct ad_cpu_faults {
    struct site {
        std::atomic<uint64_t> calls{0};
        uint64_t fails = 0; /* which call; 0: none */
        int status = 0;
    } site[AD_NSITE];
    std::atomic<bool> lost{false};
};

struct ad_device {
    ad_cpu_faults faults;
};

struct ad_stream {
    ad_device *device;
};

/* Fill *faults from the text of ARRAYD_FAULT (NULL: none). AD_E_VALUE when it cannot be read. */
int ad_cpu_faults_parse(ad_cpu_faults *faults, const char *text, ad_fault *fault);
/* To be called first by every function that has a site: 0, or the status to fail with. */
int ad_cpu_faults_check(ad_cpu_faults *faults, int site, ad_fault *fault);

void ad_cpu_device_info(ad_device_info *info);

int ad_cpu_slab_create(ad_device *device, uint64_t size, ad_slab_map *out, ad_fault *fault);
int ad_cpu_slab_attach(ad_device *device, int fd, uint64_t size, ad_slab_map *out, ad_fault *fault);
void ad_cpu_slab_close(ad_device *device, ad_slab_map *slab);

#endif
