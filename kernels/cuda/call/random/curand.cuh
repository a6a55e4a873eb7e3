/* Functions that the files of call `curand` share. */
#ifndef AD_KERNELS_CUDA_CALL_RANDOM_CURAND_CUH
#define AD_KERNELS_CUDA_CALL_RANDOM_CURAND_CUH

#include "kernels/cuda/call/random/random.cuh"
#include "kernels/curand_call.h"

struct ad_curand_argument {
    ad_random_places places;
    ad::curand_turns turns;
    const uint32_t *from;
    uint32_t *to;
    int64_t states; /* in from and to */
};

/* Launches of the rows that both orders have, and of the others; false: no such row here. */
bool ad_cuda_curand_both(const ad_curand_argument *a, int generator, int loop, cudaStream_t stream);
bool ad_cuda_curand_device(const ad_curand_argument *a, int generator, int loop, cudaStream_t stream);

namespace ad {
inline namespace AD_ISA {

/* A state a thread, with all of its elements. */
template <int Id, class T, class G> __global__ void __launch_bounds__(AD_RANDOM_THREADS)
    curand_each(const __grid_constant__ ad_curand_argument a) {
    using P = typename curand_one<Id, T>::P;
    const int64_t state = int64_t(blockIdx.x) * blockDim.x + threadIdx.x, slots = curand_slots<Id>(a.turns);
    curand_state<G> s;
    if (state >= a.states) return;
    s.load(a.from + state, a.states);
    auto parameters = [&](int64_t e) {
        int64_t at[4];
        random_offsets(a.places, e, at);
        random_parameters<P> p = random_operands<P>(a.places, at);
        if (!a.places.check) return p;
        int wrong = 0;
        if constexpr (Id == AD_RANDOM_integers)
            wrong = p.a > p.b && (!a.places.is_signed || int64_t(p.a) > int64_t(p.b));
        else if constexpr (Id != AD_RANDOM_bits) wrong = random_wrong<Id>(p.a, p.b, p.c);
        if (wrong == 0) return p;
        ad_cuda_report(a.places.check, AD_CHECK_random, Id, Id == AD_RANDOM_integers ? AD_RANDOM_ORDER : wrong, e);
        return random_parameters<P>{P(0), P(0), P(0)};
    };
    auto put = [&](int64_t e, T value) {
        int64_t at[4];
        random_offsets(a.places, e, at);
        *reinterpret_cast<T *>(a.places.out + at[0]) = value;
    };
    if (state < a.turns.states)
        for (int64_t k = curand_first_slot(a.turns, state); k < slots; k += a.turns.states)
            curand_draw<Id, T>(&s, a.turns, k, parameters, put);
    s.store(a.to + state, a.states);
}

template <int Id, unsigned Generators, class T>
bool curand_start(const ad_curand_argument *a, int generator, cudaStream_t stream) {
    constexpr int threads = 64; /* few states of the host API's orders: spread over all multiprocessors */
    const int blocks = int((a->states + threads - 1) / threads);
    return curand_visit(generator, [&](auto g) {
        constexpr bool has = curand_has<decltype(g), Generators>;
        if constexpr (has) curand_each<Id, T, decltype(g)><<<blocks, threads, 0, stream>>>(*a);
        return has;
    });
}

template <int Id, unsigned Gs, uint32_t Loops>
bool curand_launch(const ad_curand_argument *a, int generator, int loop, cudaStream_t stream) {
    if constexpr (Loops == AD_RANDOM_REAL)
        return loop == AD_FLOAT32 ? curand_start<Id, Gs, float>(a, generator, stream)
                                  : curand_start<Id, Gs, double>(a, generator, stream);
    else if constexpr (Loops == AD_RANDOM_COUNT) return curand_start<Id, Gs, int64_t>(a, generator, stream);
    else if constexpr (Loops == AD_BIT(AD_FLOAT64)) return curand_start<Id, Gs, double>(a, generator, stream);
    else if constexpr (Loops == AD_BIT(AD_UINT32)) return curand_start<Id, Gs, uint32_t>(a, generator, stream);
    else
        return loop == AD_UINT32 ? curand_start<Id, Gs, uint32_t>(a, generator, stream)
                                 : curand_start<Id, Gs, uint64_t>(a, generator, stream);
}

} // namespace AD_ISA
} // namespace ad
#endif
