/* The kernels of running sums and products. */
#ifndef AD_KERNELS_CUDA_CALL_SCAN_SCAN_CUH
#define AD_KERNELS_CUDA_CALL_SCAN_SCAN_CUH

#include "kernels/cuda/call/scan/parts.cuh"

namespace ad {
inline namespace AD_ISA {

template <class Op> __global__ void __launch_bounds__(AD_SCAN_THREADS, Op::BLOCKS)
    scan_tiled(const __grid_constant__ ad_scan s) {
    scan_tile<Op, scan_memory>(s);
}

template <class Op> __global__ void __launch_bounds__(AD_SCAN_THREADS) scan_rows(const __grid_constant__ ad_scan s) {
    scan_short<Op, scan_memory>(s);
}

/* ---- lanes side by side, with any strides ---- */

/* Get what comes before each of SIDE lanes, whose messages lie next to each other; place, step: of the first. */
template <class Op, int Side>
__device__ void scan_look_up(const ad_scan &s, int64_t place, int64_t step, typename Op::T (&before)[Side]) {
    using T = typename Op::T;
    int64_t from[Side];
    int left = Side;
#pragma unroll
    for (int k = 0; k < Side; k++) from[k] = place - step + k, before[k] = Op::neutral();
    while (left > 0) {
        T told[Side];
        int what[Side];
#pragma unroll
        for (int k = 0; k < Side; k++) what[k] = scan_message<T>::hear(s, from[k] < 0 ? place + k : from[k], &told[k]);
#pragma unroll
        for (int k = 0; k < Side; k++) {
            if (from[k] < 0 || what[k] == 0) continue;
            before[k] = Op::both(told[k], before[k]);
            from[k] -= step;
            if (what[k] != SCAN_RESULT) continue;
            from[k] = -1;
            left--;
        }
    }
}

/* A thread has ROWS elements of each of its Side neighbouring lanes; a block 2^log_x threads side by side. */
template <class Op, int Side> __global__ void __launch_bounds__(AD_SCAN_THREADS)
    scan_across(const __grid_constant__ ad_scan s) {
    using T = typename Op::T;
    using S = typename Op::input;
    using L = typename Op::output;
    using vector = scan_vector<S, Side>;
    constexpr int ROWS = Op::ROWS;
    constexpr bool WORDS = Side > 1; /* false: elements may be smaller than a word */
    __shared__ __align__(16) char memory[sizeof(T) * AD_SCAN_THREADS * Side];
    T(*sums)[AD_SCAN_THREADS] = reinterpret_cast<T(*)[AD_SCAN_THREADS]>(memory);
    const unsigned x = threadIdx.x & ((1u << s.log_x) - 1), y = threadIdx.x >> s.log_x, ys = AD_SCAN_THREADS >> s.log_x;
    const uint32_t tile = blockIdx.x / uint32_t(s.groups), group = blockIdx.x - tile * uint32_t(s.groups);
    const int64_t lane = (int64_t(group) << s.log_x) + x, begin = (int64_t(tile) * ys + y) * ROWS;
    const int64_t n = lane < s.lanes ? s.n - begin : 0;
    fold_place at = {0, 0, 0};
    if (lane < s.lanes) fold_locate(s.lane, s.nlane, lane, &at);
    const char *in = s.in + at.in + begin * s.in_step;
    char *out = s.out + at.out + begin * s.out_step;
    conditional_t<WORDS, vector, S> v[ROWS];
    T sum[Side], first[Side];
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        if (i >= n) continue;
        if constexpr (WORDS) v[i].load(in + i * s.in_step);
        else v[i] = fold_load<S>(in + i * s.in_step);
    }
    const auto get = [&](int i, T(&e)[Side]) {
        if constexpr (WORDS) v[i].template get<Op>(e, s.skip);
        else e[0] = Op::from(v[i], s.skip);
    };
#pragma unroll
    for (int k = 0; k < Side; k++) sum[k] = first[k] = Op::neutral();
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        if (i >= n) continue;
        T e[Side];
        get(i, e);
#pragma unroll
        for (int k = 0; k < Side; k++) sum[k] = Op::both(sum[k], e[k]);
    }
    if (ys > 1) {
#pragma unroll
        for (int k = 0; k < Side; k++) sums[k][threadIdx.x] = sum[k];
        __syncthreads();
#pragma unroll 1
        for (unsigned j = 0; j < y; j++)
#pragma unroll
            for (int k = 0; k < Side; k++) first[k] = Op::both(first[k], sums[k][x + (j << s.log_x)]);
        __syncthreads();
    }
    if (s.tiles > 1) {
        const int64_t step = (s.groups << s.log_x) * Side;
        const int64_t place = (((int64_t(tile) * s.groups + group) << s.log_x) + x) * Side;
        if (y == ys - 1) {
            T before[Side];
#pragma unroll
            for (int k = 0; k < Side; k++) {
                sum[k] = Op::both(first[k], sum[k]);
                before[k] = Op::neutral();
                scan_message<T>::tell(s, place + k, sum[k], tile == 0 ? SCAN_RESULT : SCAN_SUM);
            }
            if (tile > 0) {
                scan_look_up<Op, Side>(s, place, step, before);
#pragma unroll
                for (int k = 0; k < Side; k++)
                    scan_message<T>::tell(s, place + k, Op::both(before[k], sum[k]), SCAN_RESULT);
            }
#pragma unroll
            for (int k = 0; k < Side; k++) sums[k][x] = before[k];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < Side; k++) first[k] = Op::both(sums[k][x], first[k]);
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        if (i >= n) continue;
        T e[Side];
        L r[Side];
        get(i, e);
#pragma unroll
        for (int k = 0; k < Side; k++) {
            first[k] = Op::both(first[k], e[k]);
            r[k] = cast<L>(first[k]);
        }
        scan_store(out + i * s.out_step, r, Side, WORDS);
    }
}

template <class S, class L, bool Product> ad_scan_kernels scan_kernels() {
    using Op = scan_op<S, L, Product>;
    ad_scan_kernels k = {};
    k.tiled = reinterpret_cast<const void *>(&scan_tiled<Op>);
    k.rows = reinterpret_cast<const void *>(&scan_rows<Op>);
    k.across = reinterpret_cast<const void *>(&scan_across<Op, 1>);
    if constexpr (Op::SIDE > 1) k.side = reinterpret_cast<const void *>(&scan_across<Op, Op::SIDE>);
    k.width = Op::WIDTH;
    k.tile = scan_stretch<Op, AD_SCAN_LOADS>::SIZE * (AD_SCAN_THREADS / 32);
    k.rows_of_thread = Op::ROWS;
    k.lanes_of_thread = Op::SIDE;
    k.message = scan_message<typename Op::T>::BYTES;
    return k;
}

/* Loops of floating-point types, from their own type. */
template <bool Product> ad_scan_kernels scan_inexact(int loop) {
    switch (loop) {
    case AD_FLOAT16: return scan_kernels<half, half, Product>();
    case AD_BFLOAT16: return scan_kernels<bfloat16, bfloat16, Product>();
    case AD_FLOAT32: return scan_kernels<float, float, Product>();
    case AD_FLOAT64: return scan_kernels<double, double, Product>();
    case AD_COMPLEX64: return scan_kernels<complex<float>, complex<float>, Product>();
    case AD_COMPLEX128: return scan_kernels<complex<double>, complex<double>, Product>();
    default: return {};
    }
}

} // namespace AD_ISA
} // namespace ad
#endif
