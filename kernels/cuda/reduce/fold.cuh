/* The kernel of all reductions.
 *
 * A block has 2^log_x outputs and 2^log_y threads for each. A thread takes every so many'th reduced element into its
 * state. States come together by shuffles within a warp, then through shared memory.
 *
 * Where there are too few outputs to fill the device, several blocks share a group of outputs. Each block but the last
 * leaves its states in scratch memory, with a tag that no earlier operation used. The last one waits for those tags and
 * puts all together. No other block waits for anything, so this ends in whatever order blocks are run. States always
 * come together in the same order, so results are the same in every run.
 *
 * The kernel is also compiled at run time, around a chain's end (fuse/fold.cuh). */
#ifndef AD_KERNELS_CUDA_REDUCE_FOLD_CUH
#define AD_KERNELS_CUDA_REDUCE_FOLD_CUH

#include <string.h>

#include "kernels/cuda/reduce/reduce.h"
#include "kernels/cuda/ufunc/vector.cuh"
#include "kernels/types.h"

namespace ad {
inline namespace AD_ISA {

__device__ inline int64_t fold_divide(int64_t n, const ad_fold_divisor &by) {
    return int64_t(__umul64hi(uint64_t(n) << 1, by.mul) >> by.shift);
}

struct fold_place {
    int64_t in, mask, out;
};

__device__ inline void fold_locate(const ad_fold_axis *axis, int n, int64_t i, fold_place *p) {
#pragma unroll 1
    for (int d = 0; d < n; d++) {
        int64_t at = i;
        if (d + 1 < n) {
            i = fold_divide(i, axis[d].by);
            at -= i * axis[d].size;
        }
        p->in += at * axis[d].in;
        p->mask += at * axis[d].mask;
        p->out += at * axis[d].out;
    }
}
__device__ inline int64_t fold_locate_in(const ad_fold_axis *axis, int n, int64_t i) {
    int64_t in = 0;
#pragma unroll 1
    for (int d = 0; d < n; d++) {
        int64_t at = i;
        if (d + 1 < n) {
            i = fold_divide(i, axis[d].by);
            at -= i * axis[d].size;
        }
        in += at * axis[d].in;
    }
    return in;
}

template <class A> __device__ A fold_shuffle(const A &a, int delta) {
    constexpr int WORDS = (sizeof(A) + 3) / 4;
    uint32_t w[WORDS] = {};
    memcpy(w, &a, sizeof a);
#pragma unroll
    for (int i = 0; i < WORDS; i++) w[i] = __shfl_down_sync(0xffffffffu, w[i], unsigned(delta));
    A r;
    memcpy(&r, w, sizeof r);
    return r;
}

/* Join the states of all threads of a block for one output, in the first of them. */
template <class A> __device__ void fold_block(A &a, const ad_fold &f, A *shared) {
#pragma unroll 1
    for (int delta = f.shuffle_high; delta >= f.shuffle_low; delta /= 2) a.merge(fold_shuffle(a, delta));
    if (f.joins == 1) return;
    shared[threadIdx.x] = a;
    __syncthreads();
    if (threadIdx.x + f.join_step * (f.joins - 1u) >= AD_FOLD_THREADS) return;
#pragma unroll 1
    for (unsigned k = 1; k < f.joins; k++) a.merge(shared[threadIdx.x + k * f.join_step]);
}

template <class A, int N> __device__ void fold_blocks(A (&a)[N], const ad_fold &f, A *shared) {
#pragma unroll
    for (int i = 0; i < N; i++) {
        if (i > 0 && f.joins > 1) __syncthreads();
        fold_block(a[i], f, shared);
    }
}

__device__ inline uint64_t fold_seen(const uint64_t *tag) {
    uint64_t seen;
    asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(seen) : "l"(tag) : "memory");
    return seen;
}
__device__ inline void fold_tell(uint64_t *tag, uint64_t value) {
    asm volatile("st.release.gpu.u64 [%0], %1;" : : "l"(tag), "l"(value) : "memory");
}

/* Join the states of all blocks for a group of outputs, in the last one. True: this block is the last one. */
template <class A, int N> __device__ bool fold_grid(A (&a)[N], const ad_fold &f, int64_t group, uint32_t block,
                                                    unsigned x, unsigned y, A *shared) {
    const int64_t first = group * f.blocks;
    A *partial = reinterpret_cast<A *>(f.partial) + ((first << f.log_x) + x) * N;
    const int64_t step = int64_t(N) << f.log_x;
    if (block != f.blocks - 1) {
        if (y == 0) {
#pragma unroll
            for (int i = 0; i < N; i++) partial[block * step + i] = a[i];
        }
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) fold_tell(f.tags + first + block, f.tag);
        return false;
    }
    A all[N];
#pragma unroll
    for (int i = 0; i < N; i++) all[i].init();
    constexpr int TOGETHER = sizeof(A) * N > 32 ? 1 : sizeof(A) * N > 16 ? 2 : 4;
    const uint32_t ys = 1u << f.log_y, last = f.blocks - 1;
#pragma unroll 1
    for (uint32_t k = y; k < last; k += TOGETHER * ys) {
        bool there;
        do {
            there = true;
#pragma unroll
            for (int u = 0; u < TOGETHER; u++)
                if (k + u * ys < last) there &= fold_seen(f.tags + first + k + u * ys) == f.tag;
        } while (!there);
        asm volatile("fence.acq_rel.gpu;" : : : "memory");
#pragma unroll
        for (int u = 0; u < TOGETHER; u++) {
            if (k + u * ys >= last) continue;
#pragma unroll
            for (int i = 0; i < N; i++) all[i].merge(partial[(k + u * ys) * step + i]);
        }
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
        if (y == 0) all[i].merge(a[i]);
        a[i] = all[i];
    }
    __syncthreads();
    fold_blocks(a, f, shared);
    return true;
}

/* The reduced elements (or chunks) first, first + step, ... below end. */
struct fold_part {
    int64_t first, step, end;
};

/* Work: state; SIDE: outputs of a thread; run(f, states, in, mask, part): take the part's elements of the outputs whose
 * first elements are at in. settle(f, state, in): what is left to do once all states of an output are one. */
struct fold_work {
    template <class A> static __device__ __forceinline__ void settle(const ad_fold &, A &, const char *) {}
};
/* Do the work of one block. memory: shared, a state for each thread. */
template <class Work> __device__ __forceinline__ void fold_one(const ad_fold &f, uint32_t number, char *memory) {
    using A = typename Work::state;
    constexpr int N = Work::SIDE;
    A *shared = reinterpret_cast<A *>(memory);
    const bool yfast = f.flags & AD_FOLD_YFAST;
    const unsigned t = threadIdx.x, fast = yfast ? f.log_y : f.log_x, low = t & ((1u << fast) - 1), high = t >> fast;
    const unsigned x = yfast ? high : low, y = yfast ? low : high;
    const uint32_t group = f.blocks > 1 ? number / f.blocks : number, block = number - group * f.blocks;
    const int64_t o = (int64_t(group) << f.log_x) + x;
    fold_place at = {0, 0, 0};
    A a[N];
#pragma unroll
    for (int i = 0; i < N; i++) a[i].init();
    if (o < f.outputs) {
        fold_locate(f.keep, f.nkeep, o, &at);
        const fold_part part = {(int64_t(block) << f.log_y) + y, int64_t(f.blocks) << f.log_y, f.reduced};
        Work::run(f, a, f.in + at.in, f.mask + at.mask, part);
    }
    fold_blocks(a, f, shared);
    if (f.blocks > 1 && !fold_grid(a, f, group, block, x, y, shared)) return;
    if (y > 0 || o >= f.outputs) return;
#pragma unroll
    for (int i = 0; i < N; i++) {
        Work::settle(f, a[i], f.in + at.in);
        a[i].finish(f, f.out + at.out + i * f.side);
    }
}

template <class Work> __device__ __forceinline__ void fold_all(const ad_fold &f) {
    __shared__ __align__(16) char memory[sizeof(typename Work::state) * AD_FOLD_THREADS];
    fold_one<Work>(f, blockIdx.x, memory);
}

template <class Work> __global__ void __launch_bounds__(AD_FOLD_THREADS) fold(const __grid_constant__ ad_fold f) {
    fold_all<Work>(f);
}

#ifndef __CUDACC_RTC__
template <class Work> ad_fold_kernel fold_kernel() {
    return {reinterpret_cast<const void *>(&fold<Work>), int(sizeof(typename Work::state))};
}
#endif

/* ---- elements of the state's own type ---- */

template <class S> __device__ S fold_load(const char *p) { return *reinterpret_cast<const S *>(p); }

/* The elements in a few words. */
template <class S, int N, int W> __device__ void fold_unpack(S (&x)[N], const uint32_t (&w)[W]) {
    if constexpr (sizeof(S) >= 4) {
        memcpy(x, w, sizeof x);
    } else {
        using bits = conditional_t<sizeof(S) == 1, uint8_t, uint16_t>;
        constexpr int EACH = 4 / sizeof(S);
#pragma unroll
        for (int i = 0; i < N; i++) x[i] = bit_cast<S>(bits(w[i / EACH] >> (i % EACH * sizeof(S) * 8)));
    }
}
__device__ inline void fold_words(uint32_t *w, uint4 v) { w[0] = v.x, w[1] = v.y, w[2] = v.z, w[3] = v.w; }
__device__ inline void fold_words(uint32_t *w, uint2 v) { w[0] = v.x, w[1] = v.y; }

/* Call f(offset(i)) for the reduced element i: a multiplication where there is one dimension. */
template <class Body> __device__ void fold_offsets(const ad_fold &f, Body body) {
    if (f.nover <= 1) {
        const int64_t stride = f.over[0].in;
        body([stride](int64_t i) { return i * stride; });
    } else {
        body([&f](int64_t i) { return fold_locate_in(f.over, f.nover, i); });
    }
}

/* Reads elements one by one, with any strides. */
template <class A> struct unit_work : fold_work {
    using state = A;
    using S = typename A::element;
    static constexpr int SIDE = 1, DEPTH = sizeof(S) > 8 ? 4 : 8;

    static __device__ void run(const ad_fold &f, A (&a)[1], const char *in, const char *, const fold_part &part) {
        const int64_t step = part.step, end = part.end;
        fold_offsets(f, [&](auto offset) {
            int64_t i = part.first;
            S x[DEPTH];
#pragma unroll 1
            for (; i + (DEPTH - 1) * step < end; i += DEPTH * step) {
#pragma unroll
                for (int u = 0; u < DEPTH; u++) x[u] = fold_load<S>(in + offset(i + u * step));
                a[0].template take_all<1>(x, i, step, f);
            }
#pragma unroll
            for (int u = 0; u < DEPTH - 1; u++)
                if (i + u * step < end) x[u] = fold_load<S>(in + offset(i + u * step));
#pragma unroll
            for (int u = 0; u < DEPTH - 1; u++)
                if (i + u * step < end) a[0].take(x[u], i + u * step, f);
        });
    }
};

/* Outputs whose elements lie next to each other: a thread has those of 8 bytes. */
template <class A> struct side_work : fold_work {
    using state = A;
    using S = typename A::element;
    static constexpr int SIDE = 8 / sizeof(S), DEPTH = 8;

    static __device__ void take(A (&a)[SIDE], const S (&x)[DEPTH][SIDE], int64_t i, int64_t step, const ad_fold &f) {
#pragma unroll
        for (int k = 0; k < SIDE; k++) {
            S column[DEPTH];
#pragma unroll
            for (int u = 0; u < DEPTH; u++) column[u] = x[u][k];
            a[k].template take_all<1>(column, i, step, f);
        }
    }
    static __device__ void take_one(A (&a)[SIDE], const S (&x)[SIDE], int64_t i, const ad_fold &f) {
#pragma unroll
        for (int k = 0; k < SIDE; k++) a[k].take(x[k], i, f);
    }
    static __device__ void load(S (&x)[SIDE], const char *p) {
        uint32_t w[2];
        fold_words(w, *reinterpret_cast<const uint2 *>(p));
        fold_unpack(x, w);
    }
    static __device__ void run(const ad_fold &f, A (&a)[SIDE], const char *in, const char *, const fold_part &part) {
        const int64_t step = part.step, end = part.end;
        fold_offsets(f, [&](auto offset) {
            int64_t i = part.first;
            S x[DEPTH][SIDE];
#pragma unroll 1
            for (; i + (DEPTH - 1) * step < end; i += DEPTH * step) {
#pragma unroll
                for (int u = 0; u < DEPTH; u++) load(x[u], in + offset(i + u * step));
                take(a, x, i, step, f);
            }
            if constexpr (SIDE == 2) {
#pragma unroll
                for (int u = 0; u < DEPTH - 1; u++)
                    if (i + u * step < end) load(x[u], in + offset(i + u * step));
#pragma unroll
                for (int u = 0; u < DEPTH - 1; u++)
                    if (i + u * step < end) take_one(a, x[u], i + u * step, f);
            } else { /* would take too many registers */
#pragma unroll 1
                for (; i < end; i += step) {
                    load(x[0], in + offset(i));
                    take_one(a, x[0], i, f);
                }
            }
        });
    }
};

/* Read by 16 bytes along axis over[0], whose elements lie next to each other. The rest at the ends of its runs is read
 * one by one. */
template <class A> struct wide_work : fold_work {
    using state = A;
    using S = typename A::element;
    static constexpr int SIDE = 1, WIDTH = 16 / sizeof(S), DEPTH = 4;
    static constexpr int AT_ONCE = WIDTH >= 16 ? 1 : WIDTH >= 8 ? 2 : 4; /* chunks */

    struct spot {
        const char *run;
        int64_t at, index; /* of the element in the run; of the run's first one */
    };
    static __device__ spot find(const ad_fold &f, const char *in, int64_t i, int64_t per_run,
                                const ad_fold_divisor &by) {
        if (f.nover <= 1) return {in, i, 0};
        int64_t run = fold_divide(i, by);
        return {in + fold_locate_in(f.over + 1, f.nover - 1, run), i - run * per_run, run * f.over[0].size};
    }
    static __device__ int64_t head(const char *run) {
        return int64_t((0 - reinterpret_cast<uintptr_t>(run)) & 15) / int64_t(sizeof(S));
    }
    template <int N>
    static __device__ void take(A &a, const uint4 (&v)[DEPTH], int u, int64_t index, int64_t step, const ad_fold &f) {
        uint32_t w[4 * N];
        S x[WIDTH * N];
#pragma unroll
        for (int i = 0; i < N; i++) fold_words(w + 4 * i, v[u + i]);
        fold_unpack(x, w);
        a.template take_all<WIDTH>(x, index, step * WIDTH, f);
    }

    /* Chunks of the only run. */
    static __device__ void take_run(const ad_fold &f, A &a, const char *in, int64_t c, int64_t step) {
        const int64_t before = head(in);
        const uint4 *from = reinterpret_cast<const uint4 *>(in + before * int64_t(sizeof(S)));
        uint4 v[DEPTH];
#pragma unroll 1
        for (; c + (DEPTH - 1) * step < f.chunks; c += DEPTH * step) {
#pragma unroll
            for (int u = 0; u < DEPTH; u++) v[u] = __ldcs(from + c + u * step);
#pragma unroll
            for (int u = 0; u < DEPTH; u += AT_ONCE) take<AT_ONCE>(a, v, u, before + (c + u * step) * WIDTH, step, f);
        }
#pragma unroll
        for (int u = 0; u < DEPTH - 1; u++)
            if (c + u * step < f.chunks) v[u] = __ldcs(from + c + u * step);
#pragma unroll
        for (int u = 0; u < DEPTH - 1; u++)
            if (c + u * step < f.chunks) take<1>(a, v, u, before + (c + u * step) * WIDTH, 0, f);
    }
    /* Chunks of many runs. */
    static __device__ void take_runs(const ad_fold &f, A &a, const char *in, int64_t first, int64_t step) {
#pragma unroll 1
        for (int64_t c = first; c < f.chunks; c += DEPTH * step) {
            uint4 v[DEPTH];
            int64_t index[DEPTH];
#pragma unroll
            for (int u = 0; u < DEPTH; u++) {
                if (c + u * step >= f.chunks) continue;
                spot s = find(f, in, c + u * step, f.run_chunks, f.by_chunks);
                int64_t at = head(s.run) + s.at * WIDTH;
                index[u] = s.index + at;
                v[u] = __ldcs(reinterpret_cast<const uint4 *>(s.run + at * int64_t(sizeof(S))));
            }
#pragma unroll
            for (int u = 0; u < DEPTH; u++)
                if (c + u * step < f.chunks) take<1>(a, v, u, index[u], 0, f);
        }
    }
    /* Elements outside of chunks. */
    static __device__ void take_loose(const ad_fold &f, A &a, const char *in, const fold_part &part) {
#pragma unroll 1
        for (int64_t i = part.first; i < f.loose; i += part.step) {
            spot s = find(f, in, i, f.run_loose, f.by_loose);
            if (s.at >= head(s.run)) s.at += f.run_chunks * WIDTH;
            a.take(fold_load<S>(s.run + s.at * int64_t(sizeof(S))), s.index + s.at, f);
        }
    }
    static __device__ void run(const ad_fold &f, A (&a)[1], const char *in, const char *, const fold_part &part) {
        if (f.nover <= 1) take_run(f, a[0], in, part.first, part.step);
        else take_runs(f, a[0], in, part.first, part.step);
        take_loose(f, a[0], in, part);
    }
};

} // namespace AD_ISA
} // namespace ad
#endif
