#include "kernels/cuda/call/fft/plans.h"

#include <cufftXt.h>
#include <new>
#include <string.h>

#include "kernels/cuda/backend/libraries.h"

namespace {

constexpr int MOST_PLANS = 64;
constexpr size_t MOST_HELD = 512u << 20; /* bytes of tables of all plans; one alone may have more */

struct kept {
    ad_cuda_fft_plan key;
    cufftHandle handle;
    size_t work;   /* bytes of work area that it needs to run */
    size_t held;   /* bytes of device memory that it keeps, about: cuFFT does not tell */
    uint64_t used; /* when it was used last; 0: no plan here */
};

} // namespace

struct ad_cuda_fft_plans {
    kept plan[MOST_PLANS];
    uint64_t now;
    size_t held;
};

namespace {

size_t free_memory() {
    size_t left = 0, all = 0;
    if (cudaMemGetInfo(&left, &all) == cudaSuccess) return left;
    cudaGetLastError();
    return 0;
}

/* Waits: what runs may be reading the plan's tables. Freeing them would wait anyway, but nobody has promised that. A
 * device that is lost keeps them. */
void drop(ad_cuda_fft_plans *plans, kept *k) {
    if (k->used == 0) return;
    if (cudaDeviceSynchronize() == cudaSuccess) cufftDestroy(k->handle);
    plans->held -= k->held;
    *k = kept();
}

/* The plan that was used longest ago, or a place without one. */
kept *oldest_of(ad_cuda_fft_plans *plans) {
    kept *oldest = plans->plan;
    for (kept &k : plans->plan)
        if (k.used < oldest->used) oldest = &k;
    return oldest;
}

void drop_all(ad_cuda_fft_plans *plans) {
    for (kept &k : plans->plan) drop(plans, &k);
}

/* Drop plans until few enough bytes are held, or only the plan that was just made is left. */
void drop_oldest(ad_cuda_fft_plans *plans, const kept *made) {
    while (plans->held > MOST_HELD) {
        kept *oldest = nullptr;
        for (kept &k : plans->plan)
            if (k.used != 0 && &k != made && (!oldest || k.used < oldest->used)) oldest = &k;
        if (!oldest) return;
        drop(plans, oldest);
    }
}

cudaDataType real_type(bool wide) { return wide ? CUDA_R_64F : CUDA_R_32F; }
cudaDataType complex_type(bool wide) { return wide ? CUDA_C_64F : CUDA_C_32F; }

/* cuFFT refuses what it cannot do when a plan is made. */
int refused(const ad_cuda_fft_plan *p, cufftResult status, ad_fault *fault) {
    switch (status) {
    case CUFFT_INVALID_SIZE:
    case CUFFT_NOT_SUPPORTED:
    case CUFFT_INVALID_VALUE:
        return ad__fault(fault, AD_E_UNSUPPORTED,
                         "cuFFT has no transform of %lld x %lld x %lld points, %lld at once (status %d)", p->n[0],
                         p->rank > 1 ? p->n[1] : 1, p->rank > 2 ? p->n[2] : 1, p->batch, int(status));
    default: return ad_cuda_fft_status(status, "making a plan for fft", fault);
    }
}

cufftResult make(const ad_cuda_fft_plan *p, cufftHandle *handle, size_t *work) {
    const bool wide = p->wide != 0;
    const cudaDataType from = p->kind == AD_CUDA_FFT_FROM_REAL ? real_type(wide) : complex_type(wide);
    const cudaDataType to = p->kind == AD_CUDA_FFT_TO_REAL ? real_type(wide) : complex_type(wide);
    ad_cuda_fft_plan q = *p; /* cuFFT takes pointers to what it does not change as not const */
    cufftResult status = cufftCreate(handle);
    if (status != CUFFT_SUCCESS) return status;
    status = cufftSetAutoAllocation(*handle, 0);
    if (status == CUFFT_SUCCESS)
        status = cufftXtMakePlanMany(*handle, int(q.rank), q.n, q.from.embed, q.from.stride, q.from.dist, from,
                                     q.to.embed, q.to.stride, q.to.dist, to, q.batch, work, complex_type(wide));
    if (status != CUFFT_SUCCESS) cufftDestroy(*handle);
    return status;
}

/* Make a plan and keep it. Where the device's memory does not do, those that are kept go first. */
int add(ad_cuda_fft_plans *plans, const ad_cuda_fft_plan *p, kept **out, ad_fault *fault) {
    kept made = {};
    drop(plans, oldest_of(plans));
    size_t before = free_memory();
    cufftResult status = make(p, &made.handle, &made.work);
    if (status == CUFFT_ALLOC_FAILED && plans->held > 0) {
        cudaGetLastError();
        drop_all(plans);
        before = free_memory();
        status = make(p, &made.handle, &made.work);
    }
    if (status != CUFFT_SUCCESS) return refused(p, status, fault);
    const size_t after = free_memory();
    made.key = *p;
    made.held = before > after ? before - after : 0;
    made.used = ++plans->now;
    plans->held += made.held;
    *out = oldest_of(plans);
    **out = made;
    drop_oldest(plans, *out);
    return 0;
}

int find(ad_call *c, const ad_cuda_fft_plan *p, kept **out) {
    ad_cuda_fft_plans **plans;
    int status = ad_cuda_fft_plans_of(c, &plans);
    if (status) return status;
    if (!*plans && !(*plans = new (std::nothrow) ad_cuda_fft_plans()))
        return ad__fault(c->fault, AD_E_MEMORY, "out of memory");
    for (kept &k : (*plans)->plan)
        if (k.used != 0 && memcmp(&k.key, p, sizeof *p) == 0) {
            k.used = ++(*plans)->now;
            *out = &k;
            return 0;
        }
    return add(*plans, p, out, c->fault);
}

} // namespace

int ad_cuda_fft_prepare(ad_call *c, const ad_cuda_fft_plan *p, int *handle) {
    kept *k = nullptr;
    int status = find(c, p, &k);
    if (status) return status;
    if ((status = ad_cuda_fft_status(cufftSetStream(k->handle, c->stream->cuda), "cufftSetStream", c->fault)))
        return status;
    if (k->work > 0) {
        void *area = ad_call_workspace(c, k->work);
        if (!area) return AD_E_MEMORY;
        if ((status = ad_cuda_fft_status(cufftSetWorkArea(k->handle, area), "cufftSetWorkArea", c->fault)))
            return status;
    }
    *handle = k->handle;
    return 0;
}

int ad_cuda_fft_run(ad_call *c, int handle, void *from, void *to, int direction) {
    return ad_cuda_fft_status(cufftXtExec(handle, from, to, direction), "fft", c->fault);
}

void ad_cuda_fft_plans_count(const ad_cuda_fft_plans *plans, ad_plans *out) {
    out->most = MOST_PLANS;
    if (!plans) return;
    out->bytes = plans->held;
    for (const kept &k : plans->plan) out->count += k.used != 0;
}

void ad_cuda_fft_plans_close(ad_cuda_fft_plans *plans) {
    if (!plans) return;
    drop_all(plans);
    delete plans;
}
