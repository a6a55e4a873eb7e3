/* Ranges for profilers: Nsight Systems shows what the worker was enqueueing by its name. Without a profiler there is no
 * domain, and a range is a test of a pointer. NVTX is a header of CUDA; where that lacks it there are no ranges. */
#ifndef AD_KERNELS_CUDA_BACKEND_RANGE_H
#define AD_KERNELS_CUDA_BACKEND_RANGE_H

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

class ad_range {
  public:
    /* Begin a range, which ends with its scope. name() is asked for only if somebody looks. */
    template <class Name> explicit ad_range(Name name) : on(domain() != nullptr) {
        if (!on) return;
        nvtxEventAttributes_t a = {};
        a.version = NVTX_VERSION;
        a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
        a.messageType = NVTX_MESSAGE_TYPE_ASCII;
        a.message.ascii = name();
        nvtxDomainRangePushEx(domain(), &a);
    }
    ~ad_range() {
        if (on) nvtxDomainRangePop(domain());
    }
    ad_range(const ad_range &) = delete;
    ad_range &operator=(const ad_range &) = delete;

  private:
    static nvtxDomainHandle_t domain() {
        static const nvtxDomainHandle_t handle = nvtxDomainCreateA("arrayd");
        return handle;
    }
    bool on;
};

#else

class ad_range {
  public:
    template <class Name> explicit ad_range(Name) {}
};

#endif
#endif
