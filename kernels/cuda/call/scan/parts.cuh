/* The parts of the kernels of running sums and products, those compiled by nvcc (scan.cuh) and those at run time
 * (fuse/scan.cuh).
 *
 * They pass over memory once. A tile is the piece of a lane that a block has. It adds up its elements and tells the sum
 * to the tiles behind it. Then it looks back over what the tiles before it have told, sums or already results, until it
 * knows what comes before it.
 *
 * Messages are 16 bytes that are written and read as one, value and tag together. The tag says that the message is of
 * this operation, so the memory needs no preparation. Blocks are started in the order of their numbers and only ever
 * wait for lower ones. */
#ifndef AD_KERNELS_CUDA_CALL_SCAN_PARTS_CUH
#define AD_KERNELS_CUDA_CALL_SCAN_PARTS_CUH

#include "kernels/cuda/call/scan/scan.h"
#include "kernels/cuda/reduce/states.cuh"

namespace ad {
inline namespace AD_ISA {

/* S: input; L: the loop's type, which results have. */
template <class S, class L, bool Product> struct scan_op {
    using input = S;
    using output = L;
    using T = compute_t<L>;
    static constexpr int WIDTH = sizeof(S) >= sizeof(L) ? 16 / sizeof(S) : 4;   /* elements of a vector */
    static constexpr int BLOCKS = sizeof(T) == 16 ? 2 : sizeof(T) == 8 ? 3 : 4; /* of scan_tiled at once */
    static constexpr int ROWS = sizeof(T) == 16 ? 8 : 16;                       /* of a thread, in scan_across */
    static constexpr int SIDE = sizeof(S) == sizeof(L) && sizeof(S) < 8 ? 8 / sizeof(S) : 1;

    /* Changes no number, not even -0.0. */
    static __device__ T neutral() {
        if constexpr (Product) return T(1);
        else if constexpr (is_int<T>) return T(0);
        else if constexpr (is_complex<T>) return T(-real_t<T>(0), -real_t<T>(0));
        else return -T(0);
    }
    /* An element that is not there. */
    static __device__ S missing() {
        if constexpr (is_int<T>) return S(Product);
        else return cast<S>(neutral());
    }
    static __device__ T both(T a, T b) {
        if constexpr (Product) return a * b;
        else return a + b;
    }
    static __device__ T from(S v, bool skip) {
        T x = fold_cast<T>(v);
        if constexpr (!is_int<T>)
            if (skip && is_nan(x)) x = T(Product ? 1 : 0);
        return x;
    }
};

/* ---- messages ---- */

enum { SCAN_SUM = 1, SCAN_RESULT = 2 }; /* of the tile alone; of all up to its end */

__device__ inline void scan_put(char *to, uint64_t low, uint64_t high) {
    asm volatile("{ .reg .b128 q; mov.b128 q, {%1, %2}; st.relaxed.gpu.global.b128 [%0], q; }"
                 :
                 : "l"(to), "l"(low), "l"(high)
                 : "memory");
}
__device__ inline void scan_get(const char *from, uint64_t *low, uint64_t *high) {
    asm volatile("{ .reg .b128 q; ld.relaxed.gpu.global.b128 q, [%2]; mov.b128 {%0, %1}, q; }"
                 : "=l"(*low), "=l"(*high)
                 : "l"(from)
                 : "memory");
}

template <class T> struct scan_message {
    static constexpr int PARTS = sizeof(T) > 8 ? 2 : 1, BYTES = 16 * PARTS;
    static __device__ void tell(const ad_scan &s, int64_t place, T v, int what) {
        uint64_t bits[PARTS] = {};
        memcpy(bits, &v, sizeof v);
#pragma unroll
        for (int i = 0; i < PARTS; i++)
            scan_put(s.messages + place * BYTES + i * 16, bits[i], s.tag << 2 | uint64_t(what));
    }
    /* 0: nothing yet. */
    static __device__ int hear(const ad_scan &s, int64_t place, T *v) {
        uint64_t bits[PARTS], mark[PARTS];
#pragma unroll
        for (int i = 0; i < PARTS; i++) scan_get(s.messages + place * BYTES + i * 16, &bits[i], &mark[i]);
        if (mark[0] != mark[PARTS - 1] || mark[0] >> 2 != s.tag) return 0;
        memcpy(v, bits, sizeof *v);
        return int(mark[0] & 3);
    }
};

template <class T> __device__ T scan_shuffle_up(T v, int delta) {
    constexpr int WORDS = sizeof(T) / 4;
    uint32_t w[WORDS];
    memcpy(w, &v, sizeof v);
#pragma unroll
    for (int i = 0; i < WORDS; i++) w[i] = __shfl_up_sync(0xffffffffu, w[i], unsigned(delta));
    memcpy(&v, w, sizeof v);
    return v;
}
template <class T> __device__ T scan_shuffle(T v, int lane) {
    constexpr int WORDS = sizeof(T) / 4;
    uint32_t w[WORDS];
    memcpy(w, &v, sizeof v);
#pragma unroll
    for (int i = 0; i < WORDS; i++) w[i] = __shfl_sync(0xffffffffu, w[i], lane);
    memcpy(&v, w, sizeof v);
    return v;
}

/* Find, by a warp, what comes before message `place` of a row of messages that begins at `first`. */
template <class Op> __device__ typename Op::T scan_look_back(const ad_scan &s, int64_t first, int64_t place) {
    using T = typename Op::T;
    const int me = threadIdx.x & 31;
    T before = Op::neutral();
    for (int64_t at = place - 1 - me;; at -= 32) {
        T v = Op::neutral();
        int what = at < first ? SCAN_RESULT : 0;
        unsigned results;
        while (true) {
            if (what == 0) what = scan_message<T>::hear(s, at, &v);
            results = __ballot_sync(0xffffffffu, what == SCAN_RESULT);
            /* Messages before the nearest result do not matter. */
            unsigned wanted = results == 0 ? 0xffffffffu : (2u << (__ffs(int(results)) - 1)) - 1;
            if ((__ballot_sync(0xffffffffu, what == 0) & wanted) == 0) break;
        }
        if (results != 0 && me > __ffs(int(results)) - 1) v = Op::neutral();
#pragma unroll
        for (int delta = 16; delta > 0; delta /= 2) v = Op::both(scan_shuffle(v, me ^ delta), v);
        before = Op::both(v, before);
        if (results != 0) return before;
    }
}

/* ---- vectors of neighbouring elements, kept as they are in memory ---- */

template <class S, int N> struct scan_vector {
    static constexpr int BYTES = int(sizeof(S)) * N, WORDS = BYTES / 4;
    using word = conditional_t<BYTES == 16, uint4, conditional_t<BYTES == 8, uint2, uint32_t>>;
    uint32_t w[WORDS];

    __device__ void load(const char *p) {
        word v = __ldcs(reinterpret_cast<const word *>(p));
        memcpy(w, &v, BYTES);
    }
    /* The first n, one by one. */
    __device__ void load_some(const char *p, int64_t n, S missing) {
        using bits = conditional_t<sizeof(S) == 1, uint8_t, conditional_t<sizeof(S) == 2, uint16_t, uint32_t>>;
        constexpr int PARTS = sizeof(S) / sizeof(bits), EACH = 4 / sizeof(bits);
#pragma unroll
        for (int i = 0; i < WORDS; i++) w[i] = 0;
#pragma unroll
        for (int e = 0; e < N; e++) {
            S x = e < n ? fold_load<S>(p + e * int(sizeof(S))) : missing;
            bits b[PARTS];
            memcpy(b, &x, sizeof x);
#pragma unroll
            for (int i = 0; i < PARTS; i++)
                w[(e * PARTS + i) / EACH] |= uint32_t(b[i]) << ((e * PARTS + i) % EACH * int(sizeof(bits)) * 8);
        }
    }
    template <class Op> __device__ void get(typename Op::T (&x)[N], bool skip) const {
        S own[N];
        fold_unpack(own, w);
#pragma unroll
        for (int e = 0; e < N; e++) x[e] = Op::from(own[e], skip);
    }
};

__device__ inline bool scan_aligned(const char *p, int bytes) {
    return reinterpret_cast<uintptr_t>(p) % unsigned(bytes) == 0;
}

/* Store n of the results. p is aligned for whole ones where that is said. */
template <class L, int N> __device__ void scan_store(char *p, const L (&y)[N], int64_t n, bool aligned) {
    constexpr int BYTES = int(sizeof(L)) * N, PIECE = BYTES < 16 ? BYTES : 16;
    using word = conditional_t<PIECE == 16, uint4, uint2>;
    if (aligned && n >= N) {
#pragma unroll
        for (int b = 0; b < BYTES; b += PIECE) {
            word w;
            memcpy(&w, reinterpret_cast<const char *>(y) + b, PIECE);
            __stcs(reinterpret_cast<word *>(p + b), w);
        }
    } else {
#pragma unroll
        for (int e = 0; e < N; e++)
            if (e < n) *reinterpret_cast<L *>(p + e * int(sizeof(L))) = y[e];
    }
}

/* ---- lanes whose elements lie next to each other ---- */

/* A warp's part of its lanes, as vectors: one of each thread at a time, Loads times. */
template <class Op, int Loads> struct scan_stretch {
    using T = typename Op::T;
    using S = typename Op::input;
    using L = typename Op::output;
    static constexpr int WIDTH = Op::WIDTH, SIZE = 32 * WIDTH * Loads, OUT = WIDTH * int(sizeof(L));
    scan_vector<S, WIDTH> x[Loads];
    T before[Loads];

    /* Fills in before; the sum of all, or of the last lane. Lanes: of 2^log_row threads, and 2^log_span vectors of
     * each of them. */
    __device__ T sum(int log_row, int log_span, bool skip) {
        const int me = int(threadIdx.x & 31), at = me & ((1 << log_row) - 1), span = (1 << log_span) - 1;
        T own[Loads];
#pragma unroll
        for (int k = 0; k < Loads; k++) {
            T e[WIDTH];
            x[k].template get<Op>(e, skip);
            own[k] = e[0];
#pragma unroll
            for (int i = 1; i < WIDTH; i++) own[k] = Op::both(own[k], e[i]);
        }
#pragma unroll
        for (int delta = 1; delta < 32; delta *= 2) {
            if (delta >> log_row) break;
#pragma unroll
            for (int k = 0; k < Loads; k++) {
                T v = scan_shuffle_up(own[k], delta);
                if (at >= delta) own[k] = Op::both(v, own[k]);
            }
        }
        T all = Op::neutral();
#pragma unroll
        for (int k = 0; k < Loads; k++) {
            T v = scan_shuffle_up(own[k], 1);
            if ((k & span) == 0) all = Op::neutral();
            before[k] = at == 0 ? all : Op::both(all, v);
            all = Op::both(all, scan_shuffle(own[k], 31));
        }
        return all;
    }
    __device__ void store(int k, char *p, int64_t n, T first, bool skip) const {
        T e[WIDTH], v = Op::both(first, before[k]);
        L y[WIDTH];
        x[k].template get<Op>(e, skip);
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            v = Op::both(v, e[i]);
            y[i] = cast<L>(v);
        }
        scan_store(p, y, n, scan_aligned(p, OUT < 16 ? OUT : 16));
    }
};

/* Elements from memory. where(k), count(k): of vector k, its first element and how many there are. */
struct scan_memory {
    static constexpr bool THERE = true;
    template <class Op, int Loads, class Where, class Count> static __device__ __forceinline__ void
    gather(const ad_scan &, scan_vector<typename Op::input, Op::WIDTH> (&x)[Loads], Where where, Count count) {
#pragma unroll
        for (int k = 0; k < Loads; k++) {
            const char *p = where(k);
            const int64_t n = count(k);
            if (n >= Op::WIDTH && scan_aligned(p, Op::WIDTH * int(sizeof(typename Op::input)))) x[k].load(p);
            else x[k].load_some(p, n, Op::missing());
        }
    }
};

/* A block for each tile. From: where elements come from. */
template <class Op, class From> __device__ __forceinline__ void scan_tile(const ad_scan &s) {
    using T = typename Op::T;
    using stretch = scan_stretch<Op, AD_SCAN_LOADS>;
    constexpr int WARPS = AD_SCAN_THREADS / 32, IN = int(sizeof(typename Op::input)),
                  OUT = int(sizeof(typename Op::output));
    __shared__ __align__(16) char memory[sizeof(T) * (WARPS + 1)];
    T *sums = reinterpret_cast<T *>(memory);
    const uint32_t lane = s.lanes > 1 ? blockIdx.x / uint32_t(s.tiles) : 0,
                   tile = blockIdx.x - lane * uint32_t(s.tiles);
    const int warp = int(threadIdx.x / 32);
    const int64_t begin = (int64_t(tile) * WARPS + warp) * stretch::SIZE + (threadIdx.x & 31) * Op::WIDTH,
                  n = s.n - begin;
    fold_place at = {0, 0, 0};
    fold_locate(s.lane, s.nlane, lane, &at);
    stretch part;
    From::template gather<Op>(
        s, part.x, [&](int k) { return s.in + at.in + (begin + k * 32 * Op::WIDTH) * IN; },
        [&](int k) { return n - k * 32 * Op::WIDTH; });
    const T sum = part.sum(5, 5, s.skip);
    if ((threadIdx.x & 31) == 0) sums[warp] = sum;
    __syncthreads();
    T first = Op::neutral(), all = Op::neutral();
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
        if (w == warp) first = all;
        all = Op::both(all, sums[w]);
    }
    if (s.tiles > 1) {
        const int64_t row = int64_t(lane) * s.tiles;
        if (warp == 0) {
            if (threadIdx.x == 0) scan_message<T>::tell(s, row + tile, all, tile == 0 ? SCAN_RESULT : SCAN_SUM);
            T before = tile == 0 ? Op::neutral() : scan_look_back<Op>(s, row, row + tile);
            if (threadIdx.x == 0) {
                if (tile > 0) scan_message<T>::tell(s, row + tile, Op::both(before, all), SCAN_RESULT);
                sums[WARPS] = before;
            }
        }
        __syncthreads();
        first = Op::both(sums[WARPS], first);
    }
#pragma unroll
    for (int k = 0; k < AD_SCAN_LOADS; k++)
        part.store(k, s.out + at.out + (begin + k * 32 * Op::WIDTH) * OUT, n - k * 32 * Op::WIDTH, first, s.skip);
}

/* A warp for each lane, or for several short ones. */
template <class Op, class From> __device__ __forceinline__ void scan_short(const ad_scan &s) {
    constexpr int LOADS = AD_SCAN_ROW_LOADS, IN = int(sizeof(typename Op::input)),
                  OUT = int(sizeof(typename Op::output));
    const int me = int(threadIdx.x & 31), across = 5 - s.log_row, span = (1 << s.log_span) - 1;
    const int64_t warp = int64_t(blockIdx.x) * (AD_SCAN_THREADS / 32) + threadIdx.x / 32;
    const int64_t lane = ((warp * LOADS >> s.log_span) << across) + (me >> s.log_row);
    if ((warp * LOADS >> s.log_span) << across >= s.lanes) return;
    fold_place at[LOADS];
#pragma unroll
    for (int k = 0; k < LOADS; k++) {
        at[k] = {0, 0, 0};
        fold_locate(s.lane, s.nlane, lane + ((k >> s.log_span) << across), &at[k]);
    }
    typename Op::T first = Op::neutral();
    const int64_t step = int64_t(Op::WIDTH) << (s.log_row + s.log_span);
#pragma unroll 1
    for (int64_t i = 0; i < s.n; i += step) {
        scan_stretch<Op, LOADS> part;
        const auto lane_of = [&](int k) { return lane + ((k >> s.log_span) << across); };
        const auto begin = [&](int k) {
            return i + (((k & span) << s.log_row) + (me & ((1 << s.log_row) - 1))) * Op::WIDTH;
        };
        const auto n = [&](int k) { return lane_of(k) < s.lanes ? s.n - begin(k) : 0; };
        From::template gather<Op>(
            s, part.x, [&](int k) { return s.in + (From::THERE ? at[k].in : lane_of(k) * s.n * IN) + begin(k) * IN; },
            n);
        typename Op::T sum = part.sum(s.log_row, s.log_span, s.skip);
#pragma unroll
        for (int k = 0; k < LOADS; k++) part.store(k, s.out + at[k].out + begin(k) * OUT, n(k), first, s.skip);
        first = Op::both(first, sum);
    }
}

} // namespace AD_ISA
} // namespace ad
#endif
