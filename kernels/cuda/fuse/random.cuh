/* Random numbers in the kernels of chains: those that kernels/cuda/call/random/random.cu would have written. Compiled
 * at run time.
 *
 * The operand of a source is an array that does not exist. Its base is the number of the first element, and its strides
 * are in elements. So an address is an element's number in the stream of the key. */
#ifndef AD_KERNELS_CUDA_FUSE_RANDOM_CUH
#define AD_KERNELS_CUDA_FUSE_RANDOM_CUH

#include "kernels/cuda/fuse/device.cuh"
#include "kernels/random_block.h"

namespace ad {
inline namespace AD_ISA {

/* The arguments of a draw, behind the scalars of a kernel's argument: the key, and the parameters in the loop's type.
 * For integers these are the first one, and how many more there are. */
struct fuse_random_value {
    uint64_t key, parameter[3];
};
static_assert(sizeof(fuse_random_value) == 2 * sizeof(ad_fuse_scalar), "two scalars");

/* Words of elements, of which neighbours share a block. */
template <class R> struct fuse_words {
    uint64_t key, at;
    random_block block;
    bool empty;

    __device__ __forceinline__ explicit fuse_words(uint64_t k) : key(k), at(0), block(), empty(true) {}
    __device__ __forceinline__ void move(uint64_t e) {
        constexpr int N = random_words<R>::count;
        if (!empty && e / N == at) return;
        at = e / N;
        block = random_at(key, at, 0, random_words<R>::stream);
        empty = false;
    }
    /* Word i of the block. */
    __device__ __forceinline__ R get(int i) const {
        if constexpr (sizeof(R) == 8) return i == 0 ? random_words<R>::get(block, 0) : random_words<R>::get(block, 1);
        else return i == 0 ? block.word[0] : i == 1 ? block.word[1] : i == 2 ? block.word[2] : block.word[3];
    }
    __device__ __forceinline__ R of(uint64_t e) {
        move(e);
        return get(int(e % random_words<R>::count));
    }
};

/* Draws one element after another, so that the code for it is there once. */
template <int Id, class T> struct fuse_real {
    using R = typename random_number<T>::word;
    random_parameters<T> p;
    fuse_words<R> words;

    __device__ __forceinline__ explicit fuse_real(const fuse_random_value &v) : words(v.key) {
        memcpy(&p.a, &v.parameter[0], sizeof(T));
        memcpy(&p.b, &v.parameter[1], sizeof(T));
        memcpy(&p.c, &v.parameter[2], sizeof(T));
    }
    __device__ __forceinline__ T next(uint64_t e) {
        if constexpr (random_paired<Id>) {
            constexpr int N = random_words<R>::count;
            const int first = int(e % N) & ~1;
            T x, y;
            words.move(e);
            normal_pair<T>(words.get(first), words.get(first + 1), &x, &y);
            return random_scaled<Id>(e & 1 ? y : x, p);
        } else return random_one<Id, T>::of(words.of(e), p);
    }
};

template <class S, class R> struct fuse_integer {
    uint64_t low;
    R span;
    fuse_words<R> words;

    __device__ __forceinline__ explicit fuse_integer(const fuse_random_value &v)
        : low(v.parameter[0]), span(R(v.parameter[1])), words(v.key) {}
    __device__ __forceinline__ S next(uint64_t e) {
        const R w = words.of(e), n = R(span + 1);
        R high, rest;
        multiply_wide(w, n, &high, &rest);
        if (n == 0 || rest < n) high = random_below(w, random_range<R>(span), words.key, e);
        return S(low + high);
    }
};

template <class S, int V, class Numbers>
__device__ __forceinline__ vec<S, V> fuse_numbers(Numbers numbers, uint64_t e, int64_t step) {
    vec<S, V> v = {};
#pragma unroll 1
    for (int i = 0; i < V; i++, e += uint64_t(step)) {
        const S one[1] = {numbers.next(e)};
        shift(v, pack(one));
    }
    return v;
}

/* A chunk of row Id of distribution.def. */
template <int Id, class S, int V, int Outer> __device__ __forceinline__ vec<S, V>
fuse_random(const ad_fuse_operand &o, const fuse_place<Outer> &p, const ad_fuse_scalar *scalar) {
    const uint64_t e = uint64_t(reinterpret_cast<uintptr_t>(fuse_row(o, p))) + uint64_t(p.column * o.inner);
    fuse_random_value v;
    memcpy(&v, scalar, sizeof v);
    if constexpr (same<S, float> || same<S, double>) return fuse_numbers<S, V>(fuse_real<Id, S>(v), e, o.inner);
    else if (v.parameter[1] >> 32 == 0) return fuse_numbers<S, V>(fuse_integer<S, uint32_t>(v), e, o.inner);
    else return fuse_numbers<S, V>(fuse_integer<S, uint64_t>(v), e, o.inner);
}

} // namespace AD_ISA
} // namespace ad
#endif
