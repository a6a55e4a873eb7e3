/* partition and argpartition of a long row, without sorting it.
 *
 * One block looks at a sample and names two keys, between which the k-th element is very likely to be and few others
 * are. One pass reads the row. Elements below both keys go to the front of the result, those above both to its end,
 * and those between them into scratch memory. Where the sample was wrong, the side that has the k-th element is
 * taken there instead. Counts of digits, from the highest on, find the k-th key of the elements that are there, and a
 * last pass puts those where they belong. The order within each part is any.
 *
 * Blocks take their places in the result by atomic additions, and none waits for another one. The host reads nothing.
 * An element of the row decides in one register where it goes, and what is read more often is scratch memory. */
#include "kernels/cuda/call/sort/sort.h"

#include <algorithm>
#include <type_traits>

#include "kernels/call_order.h"

#include "kernels/cuda/backend/device.h"

namespace {

using namespace ad;

constexpr int THREADS = 512, WARPS = THREADS / 32;
constexpr int SAMPLERS = 1024, SAMPLED = 16, SAMPLE = SAMPLERS * SAMPLED; /* threads, and elements of each */
constexpr int DIGIT = 11, BINS = 1 << DIGIT;                              /* bits that are counted at a time */
constexpr uint32_t ALL = ~0u;

template <class K> constexpr int passes = (8 * int(sizeof(K)) + DIGIT - 1) / DIGIT;
template <class K, bool Indices> constexpr int each = Indices || sizeof(K) == 8 ? 8 : 16; /* elements of a thread */

/* Elements as unsigned integers in the order of partition. The type is a few values and not a template's argument: so
 * there is one kernel for all types of a size. NaNs whose sign is set have the least keys, `nans` of them, and these
 * wrap around to the greatest. -0.0 comes before 0.0, and a bool of another byte than 1 after it: partition leaves the
 * order of equal elements open. */
template <class K> struct keying {
    K sign, flip, nans; /* flip: all ones for floating-point types */

    __device__ K key(K bits) const {
        const K negative = K(std::make_signed_t<K>(bits) >> (8 * sizeof(K) - 1));
        return K(K(bits ^ K(K(negative & flip) | sign)) - nans);
    }
};

template <class S> keying<typename order<S>::key> key_type() {
    using O = order<S>;
    using K = typename O::key;
    if constexpr (O::real) return {O::sign, K(~K(0)), K(O::sign - O::infinity - 1)};
    else if constexpr (same<S, bool8>) return {K(0), K(0), K(0)};
    else return {is_signed<S> ? O::sign : K(0), K(0), K(0)};
}

/* Counts and keys that kernels leave to the next ones; zero at first. */
template <class K> struct progress {
    unsigned long long ends[2]; /* elements at the front (low half) and at the end (high half), after each pass */
    uint32_t between[2];
    uint32_t rank, tickets[passes<K>]; /* of the k-th among those that agree with it in the digits found */
    K low, high, found;                /* keys: the two, and the digits of the k-th one */
    uint32_t bins[passes<K>][BINS];
};

template <class K> struct selection {
    const K *x;
    K *out;         /* partition; NULL: argpartition */
    int64_t *order; /* argpartition */
    K *between;
    uint32_t *places; /* argpartition: where the elements between the keys are in the row */
    progress<K> *p;
    uint32_t n, kth;
    keying<K> keys;
};

/* ---- counting ---- */

/* Digit number `pass` of a key, counted from the highest, is above `shift`; the last one may be shorter. */
template <class K> __device__ int shift_of(int pass) { return max(0, 8 * int(sizeof(K)) - DIGIT * (pass + 1)); }
template <class K> __device__ int width_of(int pass) { return min(DIGIT, 8 * int(sizeof(K)) - DIGIT * pass); }
template <class K> __device__ uint32_t digit_of(K key, int pass) {
    return uint32_t(key >> shift_of<K>(pass)) & ((1u << width_of<K>(pass)) - 1);
}
/* Tell whether two keys have the same first digits, `count` of them. */
template <class K> __device__ bool agree(K a, K b, int count) {
    return count == 0 || K(a ^ b) >> shift_of<K>(count - 1) == 0;
}

/* Sums of a value over the threads of the warp up to this one. */
template <class T> __device__ T sum_up(T v) {
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const T other = __shfl_up_sync(ALL, v, step);
        if (int(threadIdx.x) % 32 >= step) v += other;
    }
    return v;
}

struct bin {
    uint32_t digit, below; /* elements in bins before it */
};

/* The bin that has the element of that rank. All threads of the block call it. */
template <int Threads> __device__ bin find_bin(const uint32_t *bins, uint32_t rank) {
    constexpr int EACH = BINS / Threads;
    __shared__ uint32_t sums[Threads / 32];
    __shared__ bin found;
    const int warp = int(threadIdx.x) / 32, first = int(threadIdx.x) * EACH;
    uint32_t own = 0, before = 0;
    for (int i = 0; i < EACH; i++) own += bins[first + i];
    const uint32_t sum = sum_up(own);
    if (threadIdx.x % 32 == 31) sums[warp] = sum;
    if (threadIdx.x == 0) found = {0, 0};
    __syncthreads();
    for (int w = 0; w < warp; w++) before += sums[w];
    before += sum - own;
    if (rank >= before && rank - before < own) {
        int i = first;
        for (; rank - before >= bins[i]; i++) before += bins[i];
        found = {uint32_t(i), before};
    }
    __syncthreads();
    const bin result = found;
    __syncthreads();
    return result;
}

/* ---- the sample ---- */

/* Some number that depends on i as if it were drawn. */
__device__ uint64_t mix(uint64_t i) {
    i = (i + 1) * 0x9e3779b97f4a7c15ull;
    i = (i ^ (i >> 30)) * 0xbf58476d1ce4e5b9ull;
    i = (i ^ (i >> 27)) * 0x94d049bb133111ebull;
    return i ^ (i >> 31);
}

/* The key of that rank in the sample. */
template <class K> __device__ K rank_sample(const K (&key)[SAMPLED], uint32_t rank) {
    __shared__ uint32_t bins[BINS];
    K found = 0;
    for (int pass = 0; pass < passes<K>; pass++) {
        for (int i = int(threadIdx.x); i < BINS; i += SAMPLERS) bins[i] = 0;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < SAMPLED; i++)
            if (agree(key[i], found, pass)) atomicAdd(&bins[digit_of(key[i], pass)], 1u);
        __syncthreads();
        const bin b = find_bin<SAMPLERS>(bins, rank);
        found = K(found | K(b.digit) << shift_of<K>(pass));
        rank -= b.below;
    }
    return found;
}

/* One block. Of SAMPLE drawn elements the one where the k-th is expected would be at `mean`. */
template <class K> __global__ void __launch_bounds__(SAMPLERS) choose_keys(const __grid_constant__ selection<K> t) {
    const uint32_t part = t.n / SAMPLE;
    K key[SAMPLED];
#pragma unroll
    for (int i = 0; i < SAMPLED; i++) {
        const uint32_t at = uint32_t(i) * SAMPLERS + threadIdx.x;
        key[i] = t.keys.key(t.x[at * part + uint32_t(mix(at) % part)]);
    }
    const float share = (float(t.kth) + 0.5f) / float(t.n), mean = share * SAMPLE;
    const float margin = 4 * sqrtf(mean * fmaxf(1 - share, 0.f)) + 8;
    K low = 0, high = K(~K(0));
    if (mean - margin >= 0) low = rank_sample(key, uint32_t(mean - margin));
    if (mean + margin < SAMPLE - 1) high = rank_sample(key, uint32_t(mean + margin) + 1);
    if (threadIdx.x != 0) return;
    t.p->low = low;
    t.p->high = high;
}

/* ---- where the k-th element is ---- */

/* Elements of which one is the k-th, as they lie in the result. */
struct region {
    uint32_t begin, count, rank;
    bool missed; /* they are not those between the two keys */
};

template <class K> __device__ region find_region(const selection<K> &t) {
    const uint32_t front = uint32_t(t.p->ends[0]), end = uint32_t(t.p->ends[0] >> 32), between = t.n - front - end;
    if (t.kth < front) return {0, front, t.kth, true};
    if (t.kth - front < between) return {front, between, t.kth - front, false};
    return {front + between, end, t.kth - front - between, true};
}

/* Bounds of the keys of these elements. Those that had to be fetched may have any. */
template <class K> struct bounds { K low, high; };
template <class K> __device__ bounds<K> find_bounds(const selection<K> &t, const region &r) {
    if (r.missed) return {K(0), K(~K(0))};
    return {t.p->low, t.p->high};
}

/* The rank among those that agree in the digits before `pass`, and the key that has these digits. */
template <class K> struct progress_of {
    K key;
    uint32_t rank;
};
template <class K>
__device__ progress_of<K> progress_before(const selection<K> &t, const region &r, const bounds<K> &b, int pass) {
    if (agree(b.low, b.high, pass)) return {b.low, r.rank};
    return {t.p->found, t.p->rank};
}

/* Where the sample was wrong, write what lies between the keys where it belongs. */
template <class K> __global__ void __launch_bounds__(THREADS) return_between(const __grid_constant__ selection<K> t) {
    if (!find_region(t).missed) return;
    const uint32_t front = uint32_t(t.p->ends[0]), count = t.n - front - uint32_t(t.p->ends[0] >> 32);
    for (uint64_t i = blockIdx.x * uint64_t(THREADS) + threadIdx.x; i < count; i += gridDim.x * THREADS)
        if (t.out) t.out[front + i] = t.between[i];
        else t.order[front + i] = t.places[i];
}

/* And take the side that has the k-th element. */
template <class K> __global__ void __launch_bounds__(THREADS) take_side(const __grid_constant__ selection<K> t) {
    const region r = find_region(t);
    if (!r.missed) return;
    for (uint64_t i = blockIdx.x * uint64_t(THREADS) + threadIdx.x; i < r.count; i += gridDim.x * THREADS) {
        if (t.out) {
            t.between[i] = t.out[r.begin + i];
            continue;
        }
        const uint32_t place = uint32_t(t.order[r.begin + i]);
        t.places[i] = place;
        t.between[i] = place < t.n ? t.x[place] : K(0);
    }
}

/* Count a digit of the elements that agree with the k-th one in those before. The last block finds the k-th one's. */
template <class K> __global__ void __launch_bounds__(THREADS)
    count_digit(const __grid_constant__ selection<K> t, int pass) {
    __shared__ uint32_t bins[BINS];
    __shared__ bool last;
    const region r = find_region(t);
    const bounds<K> b = find_bounds(t, r);
    if (agree(b.low, b.high, pass + 1)) return;
    const progress_of<K> known = progress_before(t, r, b, pass);
    for (int i = int(threadIdx.x); i < BINS; i += THREADS) bins[i] = 0;
    __syncthreads();
    for (uint64_t i = blockIdx.x * uint64_t(THREADS) + threadIdx.x; i < r.count; i += gridDim.x * THREADS) {
        const K key = t.keys.key(t.between[i]);
        if (agree(key, known.key, pass)) atomicAdd(&bins[digit_of(key, pass)], 1u);
    }
    __syncthreads();
    uint32_t *all = t.p->bins[pass];
    for (int i = int(threadIdx.x); i < BINS; i += THREADS)
        if (bins[i] != 0) atomicAdd(&all[i], bins[i]);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(&t.p->tickets[pass], 1u) == gridDim.x - 1;
    __syncthreads();
    if (!last) return;
    for (int i = int(threadIdx.x); i < BINS; i += THREADS) bins[i] = __ldcg(&all[i]);
    __syncthreads();
    const bin found = find_bin<THREADS>(bins, known.rank);
    if (threadIdx.x != 0) return;
    const int above = shift_of<K>(pass) + width_of<K>(pass); /* of the digits before */
    const K before = pass == 0 ? K(0) : K(known.key >> above << above);
    t.p->found = K(before | K(found.digit) << shift_of<K>(pass));
    t.p->rank = known.rank - found.below;
}

/* ---- splitting ---- */

/* How many elements go to the front, between, and to the end; or where the first ones go. */
struct tally {
    uint32_t front, between, end;
};

/* A thread's elements in a tile: bit i of `below` and `above` says where element i goes. */
struct sides {
    uint32_t below, above;
};

/* Get the slot of an element in shared memory. Threads, whose elements are 8 or 16 apart, reach different banks. */
__device__ uint32_t slot_of(uint32_t at) { return at + at / 32; }

/* Sum what goes to the front and to the end (packed: the high half) in the threads before the own one; *all of all. */
__device__ uint32_t sum_before(uint32_t own, uint32_t *all) {
    __shared__ uint32_t sums[WARPS];
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    const uint32_t sum = sum_up(own);
    if (lane == 31) sums[warp] = sum;
    __syncthreads();
    const uint32_t of_warp = lane < WARPS ? sums[lane] : 0, to_warp = sum_up(of_warp);
    *all = __shfl_sync(ALL, to_warp, WARPS - 1);
    return __shfl_sync(ALL, to_warp - of_warp, warp) + sum - own;
}

/* f(i, place): where element i of the thread comes in a tile of `left` elements, those to the front first. */
template <int Each, class F>
__device__ void for_places(const sides &s, uint32_t before, const tally &all, uint32_t left, F f) {
    const uint32_t there = left / THREADS * threadIdx.x + min(threadIdx.x, left % THREADS); /* in threads before */
    uint32_t front = before & 0xffff, end = before >> 16, between = all.front + there - front - end;
    end += all.front + all.between;
#pragma unroll
    for (int i = 0; i < Each; i++) {
        if (i * THREADS + threadIdx.x >= left) break;
        const bool below = s.below >> i & 1, above = s.above >> i & 1;
        f(i, below ? front : above ? end : between);
        front += below;
        end += above;
        between += !below && !above;
    }
}

/* What a pass splits: elements, where they are written, and the keys. */
template <class K> struct split {
    const K *from;
    uint32_t count, begin, middle; /* elements; where those of the front begin in the result, and those between */
    K low, high;
};

/* Last: elements of the scratch memory, by the key that was found. */
template <bool Last, class K> __device__ split<K> find_split(const selection<K> &t) {
    if constexpr (!Last) return {t.x, t.n, 0, 0, t.p->low, t.p->high};
    const region r = find_region(t);
    const bounds<K> b = find_bounds(t, r);
    const progress_of<K> found = progress_before(t, r, b, passes<K>);
    return {t.between, r.count, r.begin, r.begin + r.rank - found.rank, found.key, found.key};
}

/* Take places for the elements of a tile: where the first one of each part goes. */
template <bool Last, class K> __device__ tally take_places(const selection<K> &t, const split<K> &s, const tally &all) {
    unsigned long long ends = 0;
    uint32_t between = 0;
    if (all.front + all.end != 0) ends = atomicAdd(&t.p->ends[Last], all.front | (unsigned long long)(all.end) << 32);
    if (all.between != 0) between = atomicAdd(&t.p->between[Last], all.between);
    return {s.begin + uint32_t(ends), s.middle + between, s.begin + s.count - uint32_t(ends >> 32) - all.end};
}

/* Write a tile whose elements lie in shared memory, part by part. */
template <class K, bool Indices, bool Last>
__device__ void write_tile(const selection<K> &t, const K *value, const uint16_t *place, uint32_t first, uint32_t left,
                           const tally &all, const tally &to) {
    const uint32_t behind = all.front + all.between, between = to.between - all.front, end = to.end - behind;
    for (uint32_t i = threadIdx.x; i < left; i += THREADS) {
        const bool inside = i >= all.front && i < behind;
        const uint32_t at = i + (i < all.front ? to.front : inside ? between : end);
        if constexpr (!Indices) {
            (inside && !Last ? t.between : t.out)[at] = value[slot_of(i)];
        } else {
            const uint32_t from = first + place[slot_of(i)];
            if (Last) t.order[at] = t.places[from];
            else if (!inside) t.order[at] = from;
            else {
                t.between[at] = value[slot_of(i)];
                t.places[at] = from;
            }
        }
    }
}

/* Read a thread's elements of a tile, and find their sides. */
template <int Each, class K>
__device__ sides load_tile(const split<K> &s, const keying<K> &keys, const K *from, uint32_t left, K (&v)[Each]) {
    sides side = {0, 0};
#pragma unroll
    for (int i = 0; i < Each; i++)
        if (i * THREADS + threadIdx.x < left) v[i] = from[i * THREADS + threadIdx.x];
#pragma unroll
    for (int i = 0; i < Each; i++) {
        if (i * THREADS + threadIdx.x >= left) break;
        const K key = keys.key(v[i]);
        side.below |= uint32_t(key < s.low) << i;
        side.above |= uint32_t(key > s.high) << i;
    }
    return side;
}

template <class K, bool Indices, bool Last> __global__ void __launch_bounds__(THREADS, 3)
    split_tiles(const __grid_constant__ selection<K> t) {
    constexpr int EACH = each<K, Indices>, TILE = THREADS * EACH, SLOTS = TILE + TILE / 32;
    __shared__ K value[SLOTS];
    __shared__ uint16_t place[Indices ? SLOTS : 1];
    __shared__ tally to;
    const split<K> s = find_split<Last>(t);
    for (uint64_t first = uint64_t(blockIdx.x) * TILE; first < s.count; first += uint64_t(gridDim.x) * TILE) {
        const uint32_t left = uint32_t(min(uint64_t(TILE), s.count - first));
        K v[EACH];
        const sides side = load_tile<EACH>(s, t.keys, s.from + first, left, v);
        uint32_t ends;
        const uint32_t before = sum_before(__popc(side.below) | __popc(side.above) << 16, &ends);
        const tally all = {ends & 0xffff, left - (ends & 0xffff) - (ends >> 16), ends >> 16};
        if (threadIdx.x == 0) to = take_places<Last>(t, s, all);
        for_places<EACH>(side, before, all, left, [&](int i, uint32_t at) {
            value[slot_of(at)] = v[i];
            if constexpr (Indices) place[slot_of(at)] = uint16_t(i * THREADS + threadIdx.x);
        });
        __syncthreads();
        write_tile<K, Indices, Last>(t, value, place, uint32_t(first), left, all, to);
        __syncthreads();
    }
}

/* ---- launching ---- */

template <class K, bool Indices> int select_row(ad_call *c, const selection<K> &t) {
    constexpr int TILE = THREADS * each<K, Indices>;
    const cudaStream_t stream = c->stream->cuda;
    const unsigned tiles = unsigned((t.n + uint64_t(TILE) - 1) / TILE);
    const unsigned some = std::min(tiles, unsigned(c->stream->device->multiprocessors) * 4);
    const int status = ad_cuda_status(cudaMemsetAsync(t.p, 0, sizeof *t.p, stream), "cudaMemsetAsync", c->fault);
    if (status) return status;
    choose_keys<<<1, SAMPLERS, 0, stream>>>(t);
    split_tiles<K, Indices, false><<<tiles, THREADS, 0, stream>>>(t);
    return_between<<<some, THREADS, 0, stream>>>(t);
    take_side<<<some, THREADS, 0, stream>>>(t);
    for (int pass = 0; pass < passes<K>; pass++) count_digit<<<some, THREADS, 0, stream>>>(t, pass);
    split_tiles<K, Indices, true><<<some, THREADS, 0, stream>>>(t);
    return ad_cuda_launched("partition", c->fault);
}

template <class K> int select_rows(ad_call *c, const ad_selection *s, const keying<K> &keys) {
    selection<K> t = {};
    t.n = uint32_t(s->n);
    t.kth = uint32_t(s->kth);
    t.keys = keys;
    t.between = static_cast<K *>(ad_call_workspace(c, uint64_t(s->n) * sizeof(K)));
    t.p = static_cast<progress<K> *>(ad_call_workspace(c, sizeof(progress<K>)));
    if (s->indices) t.places = static_cast<uint32_t *>(ad_call_workspace(c, uint64_t(s->n) * sizeof(uint32_t)));
    if (!t.between || !t.p || (s->indices && !t.places)) return AD_E_MEMORY;
    int status = 0;
    for (int64_t row = 0; row < s->rows && !status; row++) {
        t.x = reinterpret_cast<const K *>(s->x) + row * s->n;
        if (s->indices) t.order = reinterpret_cast<int64_t *>(s->out) + row * s->n;
        else t.out = reinterpret_cast<K *>(s->out) + row * s->n;
        status = s->indices ? select_row<K, true>(c, t) : select_row<K, false>(c, t);
    }
    return status;
}

} // namespace

int ad_cuda_select(ad_call *c, const ad_selection *s) {
    return visit(s->dtype, [&](auto t) {
        using S = typename decltype(t)::type;
        if constexpr (is_complex<S>) return int(AD_E_TYPE);
        else return select_rows(c, s, key_type<S>());
    });
}
