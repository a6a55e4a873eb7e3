/* Random numbers: dispatch, and everything of one set of parameters that is made in bulk. */
#include "kernels/cuda/call/random/random.cuh"

using namespace ad;

namespace {

/* ---- bulk: a block of the stream a thread, 16 bytes or so of the output ---- */

template <class M> struct bulk {
    M make;
    uint64_t key, block; /* block of the first element */
    int shift;           /* place of the first element in its block */
    int64_t count;
    typename M::S *out;
};

template <class S, int N> struct alignas(sizeof(S) * N < 16 ? sizeof(S) * N : 16) pack_of { S v[N]; };

/* Element j of what begins `shift` elements into a block and ends in the next. */
template <class S, int N> __device__ __forceinline__ S shifted(const S (&a)[N], const S (&b)[N], int shift, int j) {
    S r = a[j];
#pragma unroll
    for (int s = 1; s < N; s++)
        if (shift == s) r = j + s < N ? a[(j + s) % N] : b[(j + s) % N];
    return r;
}

template <class S> __device__ __forceinline__ S next_lane(S v) {
    if constexpr (sizeof(S) < 4) return S(__shfl_down_sync(0xffffffffu, int(v), 1));
    else return __shfl_down_sync(0xffffffffu, v, 1);
}

/* Past the caches: what is written is more than they hold, or comes back soon enough. */
template <class S, int N> __device__ __forceinline__ void put_whole(S *out, int64_t unit, const S (&v)[N]) {
    constexpr int BYTES = int(sizeof(S)) * N;
    pack_of<S, N> p;
#pragma unroll
    for (int j = 0; j < N; j++) p.v[j] = v[j];
    if constexpr (BYTES == 16) {
        uint4 w;
        memcpy(&w, &p, sizeof w);
        __stcs(reinterpret_cast<uint4 *>(out) + unit, w);
    } else reinterpret_cast<pack_of<S, N> *>(out)[unit] = p;
}

template <class S, int N> __device__ __forceinline__ void put(S *out, int64_t unit, int64_t count, const S (&v)[N]) {
    const int64_t begin = unit * N;
    if (begin + N <= count) return put_whole(out, unit, v);
#pragma unroll
    for (int j = 0; j < N; j++)
        if (begin + j < count) out[begin + j] = v[j];
}

template <class M> __global__ void __launch_bounds__(AD_RANDOM_THREADS) in_blocks(const __grid_constant__ bulk<M> b) {
    constexpr int N = random_words<typename M::R>::count;
    const int64_t whole = b.count / N, first = int64_t(blockIdx.x) * AD_RANDOM_THREADS + threadIdx.x;
    typename M::S made[N];
    for (int64_t unit = first; unit < whole; unit += int64_t(gridDim.x) * AD_RANDOM_THREADS) {
        const uint64_t block = b.block + uint64_t(unit);
        b.make(random_at(b.key, block, 0, random_words<typename M::R>::stream), b.key, block * N, made);
        put_whole(b.out, unit, made);
    }
    if (first != 0 || whole * N == b.count) return;
    const uint64_t block = b.block + uint64_t(whole);
    b.make(random_at(b.key, block, 0, random_words<typename M::R>::stream), b.key, block * N, made);
    put(b.out, whole, b.count, made);
}

/* Units of the output straddle two blocks, of which the neighbouring thread makes the second. The last thread of each
 * warp makes that one only. */
template <class M> __global__ void __launch_bounds__(AD_RANDOM_THREADS)
    in_shifted_blocks(const __grid_constant__ bulk<M> b) {
    constexpr int N = random_words<typename M::R>::count, WARPS = AD_RANDOM_THREADS / 32;
    const int64_t units = (b.count + N - 1) / N, lane = threadIdx.x % 32;
    for (int64_t unit = (int64_t(blockIdx.x) * WARPS + threadIdx.x / 32) * 31 + lane; unit - lane < units;
         unit += int64_t(gridDim.x) * WARPS * 31) {
        const uint64_t block = b.block + uint64_t(unit);
        typename M::S made[N], next[N], out[N];
        b.make(random_at(b.key, block, 0, random_words<typename M::R>::stream), b.key, block * N, made);
#pragma unroll
        for (int j = 0; j < N; j++) next[j] = next_lane(made[j]);
#pragma unroll
        for (int j = 0; j < N; j++) out[j] = shifted(made, next, b.shift, j);
        if (lane < 31) put(b.out, unit, b.count, out);
    }
}

template <int Id, class T> struct make_real {
    using S = T;
    using R = typename random_number<T>::word;
    random_parameters<T> p;
    static constexpr int N = random_words<R>::count;

    __device__ __forceinline__ void operator()(const random_block &b, uint64_t, uint64_t, T (&out)[N]) const {
        if constexpr (random_paired<Id>) {
#pragma unroll
            for (int j = 0; j < N; j += 2) {
                normal_pair<T>(random_words<R>::get(b, j), random_words<R>::get(b, j + 1), &out[j], &out[j + 1]);
                out[j] = random_scaled<Id>(out[j], p);
                out[j + 1] = random_scaled<Id>(out[j + 1], p);
            }
        } else {
#pragma unroll
            for (int j = 0; j < N; j++) out[j] = random_one<Id, T>::of(random_words<R>::get(b, j), p);
        }
    }
};

/* Rows that nobody waits for share a kernel. */
template <class T>
__device__ __forceinline__ T of_row(int id, typename random_number<T>::word w, const random_parameters<T> &p) {
    switch (id) {
    case AD_RANDOM_laplace: return random_one<AD_RANDOM_laplace, T>::of(w, p);
    case AD_RANDOM_logistic: return random_one<AD_RANDOM_logistic, T>::of(w, p);
    case AD_RANDOM_gumbel: return random_one<AD_RANDOM_gumbel, T>::of(w, p);
    case AD_RANDOM_pareto: return random_one<AD_RANDOM_pareto, T>::of(w, p);
    case AD_RANDOM_power: return random_one<AD_RANDOM_power, T>::of(w, p);
    case AD_RANDOM_rayleigh: return random_one<AD_RANDOM_rayleigh, T>::of(w, p);
    case AD_RANDOM_weibull: return random_one<AD_RANDOM_weibull, T>::of(w, p);
    case AD_RANDOM_standard_cauchy: return random_one<AD_RANDOM_standard_cauchy, T>::of(w, p);
    case AD_RANDOM_triangular: return random_one<AD_RANDOM_triangular, T>::of(w, p);
    case AD_RANDOM_upto1: return random_one<AD_RANDOM_upto1, T>::of(w, p);
    case AD_RANDOM_exponential: return random_one<AD_RANDOM_exponential, T>::of(w, p);
    default: return random_one<AD_RANDOM_uniform, T>::of(w, p);
    }
}

template <class T> struct make_row {
    using S = T;
    using R = typename random_number<T>::word;
    random_parameters<T> p;
    int id;
    static constexpr int N = random_words<R>::count;

    __device__ __forceinline__ void operator()(const random_block &b, uint64_t, uint64_t, T (&out)[N]) const {
#pragma unroll 1
        for (int j = 0; j < N; j++) {
            const T made = of_row<T>(id, random_words<R>::get(b, j), p);
#pragma unroll
            for (int k = 0; k < N; k++)
                if (j == k) out[k] = made;
        }
    }
};

template <class S_, class R_> struct make_integer {
    using S = S_;
    using R = R_;
    uint64_t low;
    random_range<R> range;
    static constexpr int N = random_words<R>::count;

    __device__ __forceinline__ void operator()(const random_block &b, uint64_t key, uint64_t element,
                                               S (&out)[N]) const {
#pragma unroll
        for (int j = 0; j < N; j++)
            out[j] = S(S(low) + S(random_below(random_words<R>::get(b, j), range, key, element + uint64_t(j))));
    }
};

int grid(const ad_call *c, int64_t threads) {
    const int64_t most = int64_t(c->stream->device->multiprocessors) * 32;
    const int64_t blocks = (threads + AD_RANDOM_THREADS - 1) / AD_RANDOM_THREADS;
    return int(blocks < most ? blocks : most);
}

template <class M> int launch(ad_call *c, const random_call *r, const M &make) {
    constexpr int N = random_words<typename M::R>::count;
    const bulk<M> b = {
        make, r->key, r->first / N, int(r->first % N), r->places.count, reinterpret_cast<typename M::S *>(r->out.data)};
    const int64_t units = (b.count + N - 1) / N;
    if (b.shift == 0) in_blocks<M><<<grid(c, units), AD_RANDOM_THREADS, 0, c->stream->cuda>>>(b);
    else in_shifted_blocks<M><<<grid(c, units + units / 31 + 1), AD_RANDOM_THREADS, 0, c->stream->cuda>>>(b);
    return ad_cuda_launched("random", c->fault);
}

template <class T> int bulk_real(ad_call *c, const random_call *r) {
    const random_parameters<T> p = {T(r->number(0)), T(r->number(1)), T(r->number(2))};
    switch (r->id) {
    case AD_RANDOM_uniform: return launch(c, r, make_real<AD_RANDOM_uniform, T>{p});
    case AD_RANDOM_normal: return launch(c, r, make_real<AD_RANDOM_normal, T>{p});
    case AD_RANDOM_lognormal: return launch(c, r, make_real<AD_RANDOM_lognormal, T>{p});
    case AD_RANDOM_exponential: return launch(c, r, make_real<AD_RANDOM_exponential, T>{p});
    default: return launch(c, r, make_row<T>{p, r->id});
    }
}

int bulk_integers(ad_call *c, const random_call *r) {
    uint64_t low, span;
    random_span(r, &low, &span);
    if (span >> 32 != 0) return launch(c, r, make_integer<uint64_t, uint64_t>{low, random_range<uint64_t>(span)});
    const random_range<uint32_t> narrow(static_cast<uint32_t>(span));
    switch (itemsize(r->loop)) {
    case 1: return launch(c, r, make_integer<uint8_t, uint32_t>{low, narrow});
    case 2: return launch(c, r, make_integer<uint16_t, uint32_t>{low, narrow});
    case 4: return launch(c, r, make_integer<uint32_t, uint32_t>{low, narrow});
    default: return launch(c, r, make_integer<uint64_t, uint32_t>{low, narrow});
    }
}

/* ---- one element a thread ---- */

template <class T> __global__ void __launch_bounds__(AD_RANDOM_THREADS)
    real_each(const __grid_constant__ ad_random_places p) {
    const bool paired = p.id == AD_RANDOM_normal || p.id == AD_RANDOM_lognormal;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < p.count;
         i += int64_t(gridDim.x) * blockDim.x) {
        int64_t at[4];
        random_offsets(p, i, at);
        const random_parameters<T> q = random_operands<T>(p, at);
        const uint64_t e = p.first + uint64_t(i);
        const int wrong = random_wrong(p.id, p.domain, q.a, q.b, q.c);
        T made;
        if (wrong != 0) ad_cuda_report(p.check, AD_CHECK_random, p.id, wrong, i);
        if (paired) {
            made = random_element<AD_RANDOM_normal>(p.key, e, q);
            if (p.id == AD_RANDOM_lognormal) made = adm::exp(made);
        } else made = of_row<T>(p.id, random_words<typename random_number<T>::word>::of(p.key, e), q);
        *reinterpret_cast<T *>(p.out + at[0]) = made;
    }
}

template <class S> __global__ void __launch_bounds__(AD_RANDOM_THREADS)
    integers_each(const __grid_constant__ ad_random_places p) {
    const uint64_t turn = p.is_signed ? uint64_t(1) << 63 : 0;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < p.count;
         i += int64_t(gridDim.x) * blockDim.x) {
        int64_t at[4];
        random_offsets(p, i, at);
        const uint64_t low = random_operand<uint64_t>(p, 0, at), high = random_operand<uint64_t>(p, 1, at);
        if ((low ^ turn) > (high ^ turn)) ad_cuda_report(p.check, AD_CHECK_random, p.id, AD_RANDOM_ORDER, i);
        *reinterpret_cast<S *>(p.out + at[0]) = S(low + random_integer(high - low, p.key, p.first + uint64_t(i)));
    }
}

} // namespace

void ad_cuda_random_places(const ad_call *c, const random_call *r, ad_random_places *p) {
    *p = {};
    p->key = r->key;
    p->first = r->first;
    p->count = r->places.count;
    p->check = r->arrays ? c->run->check : nullptr;
    p->id = r->id;
    p->is_signed = r->kind != AD_UINT64;
    p->out = r->out.data;
    p->ndim = r->places.ndim;
    for (int k = 0; k < 3; k++) {
        p->parameter[k] = r->parameter[k].data;
        p->value[k] = r->value[k];
        p->domain[k] = r->row->domain[k];
    }
    for (int d = 0; d < p->ndim; d++) {
        p->shape[d] = r->places.shape[d];
        for (int k = 0; k < 4; k++) p->stride[d][k] = r->places.stride[d][k];
    }
}

namespace {

int each_integer(ad_call *c, const random_call *r, ad_random_places *p) {
    uint64_t low, span;
    const int blocks = grid(c, p->count);
    if (!r->arrays) {
        random_span(r, &low, &span);
        p->value[0].u = low;
        p->value[1].u = low + span;
        p->is_signed = r->id != AD_RANDOM_bits && p->is_signed;
    }
    switch (itemsize(r->loop)) {
    case 1: integers_each<uint8_t><<<blocks, AD_RANDOM_THREADS, 0, c->stream->cuda>>>(*p); break;
    case 2: integers_each<uint16_t><<<blocks, AD_RANDOM_THREADS, 0, c->stream->cuda>>>(*p); break;
    case 4: integers_each<uint32_t><<<blocks, AD_RANDOM_THREADS, 0, c->stream->cuda>>>(*p); break;
    default: integers_each<uint64_t><<<blocks, AD_RANDOM_THREADS, 0, c->stream->cuda>>>(*p); break;
    }
    return ad_cuda_launched("random", c->fault);
}

int each_real(ad_call *c, const random_call *r, ad_random_places *p) {
    const int blocks = grid(c, p->count);
    if (r->row->source == AD_RANDOM_OWN) {
        if (!(r->row->loops == AD_RANDOM_REAL ? ad_cuda_random_own(p, r->loop, blocks, c->stream->cuda)
                                              : ad_cuda_random_count(p, blocks, c->stream->cuda)))
            return ad__fault(c->fault, AD_E_INTERNAL, "random: %s has no kernel", r->row->name);
    } else if (r->loop == AD_FLOAT32) real_each<float><<<blocks, AD_RANDOM_THREADS, 0, c->stream->cuda>>>(*p);
    else real_each<double><<<blocks, AD_RANDOM_THREADS, 0, c->stream->cuda>>>(*p);
    return ad_cuda_launched("random", c->fault);
}

int each(ad_call *c, const random_call *r) {
    ad_random_places p;
    ad_cuda_random_places(c, r, &p);
    if (p.check) c->run->checked = true;
    return r->kind == AD_FLOAT32 || r->kind == AD_FLOAT64 ? each_real(c, r, &p) : each_integer(c, r, &p);
}

bool in_bulk(const random_call *r) {
    const int64_t alignment = r->row->loops == AD_RANDOM_REAL ? 16 : itemsize(r->loop) < 4 ? itemsize(r->loop) * 4 : 16;
    return !r->arrays && r->row->source == AD_RANDOM_BLOCK && is_packed(r->out) &&
           reinterpret_cast<uintptr_t>(r->out.data) % uintptr_t(alignment) == 0;
}

} // namespace

int ad_call_random(ad_call *c) {
    random_call r;
    int status = random_open(c, &r);
    if (status || r.places.count == 0) return status;
    const int wrong = r.arrays ? 0 : random_wrong_values(&r);
    if (wrong != 0) return ad__random_fault(r.id, wrong, c->fault);
    c->run->wrote = true;
    if (!in_bulk(&r)) status = each(c, &r);
    else if (r.kind == AD_FLOAT32) status = bulk_real<float>(c, &r);
    else if (r.kind == AD_FLOAT64) status = bulk_real<double>(c, &r);
    else status = bulk_integers(c, &r);
    return status ? status : ad_call_finish(c, 0, &r.out);
}
