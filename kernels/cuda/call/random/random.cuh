/* Functions that the files of call `random` share. */
#ifndef AD_KERNELS_CUDA_CALL_RANDOM_RANDOM_CUH
#define AD_KERNELS_CUDA_CALL_RANDOM_RANDOM_CUH

#include "kernels/cuda/backend/checks.h"
#include "kernels/cuda/backend/device.h"
#include "kernels/random_own.h"
#include "kernels/random_call.h"

#define AD_RANDOM_THREADS 256

/* Argument of the kernels that make one element a thread, wherever it lies and whatever its parameters. */
struct ad_random_places {
    uint64_t key, first;
    int64_t count;
    ad_check *check; /* NULL: the parameters are known to be good */
    int id, ndim, domain[3];
    bool is_signed; /* of integers */
    char *out;
    const char *parameter[3]; /* NULL: the value holds */
    ad::random_value value[3];
    int64_t shape[AD_MAX_NDIM], stride[AD_MAX_NDIM][4]; /* of the output and the parameters */
};

/* Set *p for an opened call. */
void ad_cuda_random_places(const ad_call *c, const ad::random_call *r, ad_random_places *p);
/* Launches of OWN rows; false: no such row here. */
bool ad_cuda_random_own(const ad_random_places *p, int loop, int blocks, cudaStream_t stream);
bool ad_cuda_random_count(const ad_random_places *p, int blocks, cudaStream_t stream);

#ifdef __CUDACC__
namespace ad {
inline namespace AD_ISA {

static __device__ __forceinline__ void random_offsets(const ad_random_places &p, int64_t i, int64_t (&at)[4]) {
    for (int k = 0; k < 4; k++) at[k] = 0;
    if (p.ndim <= 1) {
        if (p.ndim == 1)
            for (int k = 0; k < 4; k++) at[k] = i * p.stride[0][k];
        return;
    }
    if (p.count >> 31 == 0) {
        uint32_t rest = uint32_t(i);
        for (int d = p.ndim - 1; d >= 0; d--) {
            const uint32_t n = uint32_t(p.shape[d]), j = rest % n;
            rest /= n;
            for (int k = 0; k < 4; k++) at[k] += int64_t(j) * p.stride[d][k];
        }
        return;
    }
    for (int d = p.ndim - 1; d >= 0; d--) {
        const int64_t j = i % p.shape[d];
        i /= p.shape[d];
        for (int k = 0; k < 4; k++) at[k] += j * p.stride[d][k];
    }
}

template <class P> __device__ __forceinline__ P random_held(const random_value &v) {
    if constexpr (same<P, float>) return v.f;
    else if constexpr (same<P, double>) return v.d;
    else return v.u;
}
template <class P>
__device__ __forceinline__ P random_operand(const ad_random_places &p, int k, const int64_t (&at)[4]) {
    return p.parameter[k] ? *reinterpret_cast<const P *>(p.parameter[k] + at[k + 1]) : random_held<P>(p.value[k]);
}
template <class P>
__device__ __forceinline__ random_parameters<P> random_operands(const ad_random_places &p, const int64_t (&at)[4]) {
    return {random_operand<P>(p, 0, at), random_operand<P>(p, 1, at), random_operand<P>(p, 2, at)};
}

template <int Id, class T> __global__ void __launch_bounds__(AD_RANDOM_THREADS)
    random_own_each(const __grid_constant__ ad_random_places p) {
    using P = typename random_own<Id, T>::P;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < p.count;
         i += int64_t(gridDim.x) * blockDim.x) {
        int64_t at[4];
        random_offsets(p, i, at);
        const random_parameters<P> q = random_operands<P>(p, at);
        const int wrong = random_wrong<Id>(q.a, q.b, q.c);
        T made;
        if (wrong != 0) {
            ad_cuda_report(p.check, AD_CHECK_random, Id, wrong, i);
            made = T(0);
        } else if (!same<T, int64_t> && (q.a != q.a || q.b != q.b || q.c != q.c)) made = T(q.a + q.b + q.c);
        else {
            random_sequence s(p.key, p.first + uint64_t(i));
            made = random_own<Id, T>::of(&s, q);
        }
        *reinterpret_cast<T *>(p.out + at[0]) = made;
    }
}

} // namespace AD_ISA
} // namespace ad
#endif
#endif
