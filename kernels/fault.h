/* Failures on demand, for both backends. */
#ifndef AD_KERNELS_FAULT_H
#define AD_KERNELS_FAULT_H

#include <atomic>

#include "protocol/base.h"

/* Places at which ARRAYD_FAULT can make a call fail: AD_SITE(function, status unless the variable names one). wild is
 * `run` again, for a fault that is not feigned: there the cuda backend launches a kernel that writes where nothing is.
 */
#define AD_SITES(AD_SITE)             \
    AD_SITE(slab_create, AD_E_MEMORY) \
    AD_SITE(slab_attach, AD_E_SYSTEM) \
    AD_SITE(stream_open, AD_E_MEMORY) \
    AD_SITE(stream_wait, AD_E_DEVICE) \
    AD_SITE(zero, AD_E_DEVICE)        \
    AD_SITE(upload, AD_E_DEVICE)      \
    AD_SITE(download, AD_E_DEVICE)    \
    AD_SITE(run, AD_E_DEVICE)         \
    AD_SITE(wild, AD_E_DEVICE_LOST)

enum {
#define AD_SITE(name, status) AD_SITE_##name,
    AD_SITES(AD_SITE)
#undef AD_SITE
        AD_NSITE
};

/* For tests. ARRAYD_FAULT is a list, split by commas, of SITE:N or SITE:N:STATUS: the Nth call of SITE (the first is 1)
 * fails; STATUS is memory, device, lost or system. After lost every call fails, as those of a real device would. With
 * killed the process is gone there and then. */
constexpr int AD_FAULT_KILLED = 1; /* is no status */

struct ad_faults {
    struct site {
        std::atomic<uint64_t> calls{0};
        uint64_t fails = 0; /* number of the call that fails; 0: none */
        int status = 0;
    } site[AD_NSITE];
    std::atomic<bool> lost{false};
};

/* Fill *faults from the text of ARRAYD_FAULT (NULL: none). AD_E_VALUE when it cannot be read. */
int ad_faults_parse(ad_faults *faults, const char *text, ad_fault *fault);
/* To be called first by every function that has a site: 0, or the status to fail with. */
int ad_faults_check(ad_faults *faults, int site, ad_fault *fault);
/* True if this call of the site is the one that is to fail. ad_faults_check counts by it. */
bool ad_faults_due(ad_faults *faults, int site);

#endif
