/* Numbers of cuRAND's generators: seeds, dispatch, and the distributions that both orders have. */
#include "kernels/cuda/call/random/curand.cuh"

using namespace ad;

namespace {

constexpr int ROWS = 160, LINEAR_THREADS = 160;

/* ---- from a seed ---- */

/* The matrices of jumps of XORWOW: each is the square of the one before, a row a thread. */
__global__ void __launch_bounds__(LINEAR_THREADS) make_jumps(xorwow_matrix *by, int bits) {
    __shared__ xorwow_matrix m;
    const int i = int(threadIdx.x);
    uint32_t row[5];
    xorwow_step(i, row);
    for (int k = 0; k < xorwow::DISTANCE + bits; k++) {
        for (int w = 0; w < 5; w++) m.row[i][w] = row[w];
        if (k >= xorwow::DISTANCE)
            for (int w = 0; w < 5; w++) by[k - xorwow::DISTANCE].row[i][w] = row[w];
        __syncthreads();
        m.apply(row);
        __syncthreads();
    }
}

struct seed_argument {
    uint64_t number;
    int64_t first, states;
    uint32_t *to;
    const xorwow_matrix *xorwow_by;
    mrg_jumps mrg;
};

__device__ void jump(const seed_argument &a, xorwow *g, int bit) { a.xorwow_by[bit].apply(g->v); }
__device__ void jump(const seed_argument &a, mrg32k3a *g, int bit) {
    for (int i = 0; i < 2; i++) mrg_apply(a.mrg.by[bit].at[i], g->s[i], mrg32k3a::modulus(i));
}
__device__ void jump(const seed_argument &, philox_counter *g, int bit) { g->counter[2] += 1u << bit; }
__device__ void jump(const seed_argument &, xor128 *g, int bit) { g->seed(g->number + (uint64_t(1) << bit)); }

template <class G> __global__ void __launch_bounds__(AD_RANDOM_THREADS)
    seed_states(const __grid_constant__ seed_argument a) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= a.states) return;
    curand_state<G> s;
    s.seed(a.number);
    for (int bit = 0; bit < CURAND_BITS; bit++)
        if ((a.first + i) >> bit & 1) jump(a, &s.g, bit);
    s.store(a.to + i, a.states);
}

int bits_of(int64_t n) {
    int bits = 0;
    while (n >> bits) bits++;
    return bits;
}

/* The matrices that the numbers of states below `end` need. NULL with the fault filled. */
xorwow_matrix *start_jumps(ad_call *c, int64_t end) {
    const int bits = bits_of(end - 1);
    auto *by = static_cast<xorwow_matrix *>(ad_call_workspace(c, sizeof(xorwow_matrix) * size_t(bits + 1)));
    if (by) make_jumps<<<1, LINEAR_THREADS, 0, c->stream->cuda>>>(by, bits);
    return by;
}

} // namespace

int ad_call_curand_seed(ad_call *c) {
    static const mrg_jumps mrg;
    static_assert(ROWS == sizeof(xorwow_matrix) / 20, "a thread has a row");
    const ad_scalar *p = c->op->param;
    array out;
    int status = curand_output(c, 0, &out);
    if (status) return status;
    seed_argument a = {
        uint64_t(p[1].as.i), p[2].as.i, out.shape[1], reinterpret_cast<uint32_t *>(out.data), nullptr, mrg};
    if (p[0].as.i == AD_CURAND_XORWOW && !(a.xorwow_by = start_jumps(c, a.first + a.states))) return AD_E_MEMORY;
    c->run->wrote = true;
    const int blocks = int((a.states + AD_RANDOM_THREADS - 1) / AD_RANDOM_THREADS);
    curand_visit(int(p[0].as.i),
                 [&](auto g) { seed_states<decltype(g)><<<blocks, AD_RANDOM_THREADS, 0, c->stream->cuda>>>(a); });
    status = ad_cuda_launched("curand_seed", c->fault);
    return status ? status : ad_call_finish(c, 0, &out);
}

int ad_call_curand(ad_call *c) {
    curand_call r;
    ad_curand_argument a;
    int status = curand_open(c, &r);
    if (status) return status;
    const int wrong = r.arrays || r.places.count == 0 ? 0 : random_wrong_values(&r);
    if (wrong != 0) return ad__random_fault(r.id, wrong, c->fault);
    ad_cuda_random_places(c, &r, &a.places);
    if (a.places.check) c->run->checked = true;
    a.turns = r.turns;
    a.from = reinterpret_cast<const uint32_t *>(r.from.data);
    a.to = reinterpret_cast<uint32_t *>(r.to.data);
    a.states = r.to.shape[1];
    c->run->wrote = true;
    if (!ad_cuda_curand_both(&a, r.generator, r.loop, c->stream->cuda) &&
        !ad_cuda_curand_device(&a, r.generator, r.loop, c->stream->cuda))
        return ad__fault(c->fault, AD_E_INTERNAL, "curand: %s has no kernel", r.row->name);
    if ((status = ad_cuda_launched("curand", c->fault)) || (status = ad_call_finish(c, 0, &r.out))) return status;
    return ad_call_finish(c, 1, &r.to);
}

bool ad_cuda_curand_both(const ad_curand_argument *a, int generator, int loop, cudaStream_t stream) {
    switch (a->places.id) {
#define HOST(name, loops, generators) \
    case AD_RANDOM_##name:            \
        return curand_launch<AD_RANDOM_##name, generators, loops>(a, generator, loop, stream);
#define DEVICE(name, loops, generators)
#define AD_CURAND(name, loops, order, generators) order(name, loops, AD_CURAND_##generators)
#include "protocol/curand.def"
#undef AD_CURAND
#undef DEVICE
#undef HOST
    default: return false;
    }
}
