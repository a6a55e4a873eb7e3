/* Fast kernels: operands of the row's own types, outputs whose rows are contiguous. A thread has whole vectors. */
#ifndef AD_KERNELS_CUDA_UFUNC_FAST_CUH
#define AD_KERNELS_CUDA_UFUNC_FAST_CUH

#include "kernels/cuda/ufunc/device.cuh"

namespace ad {
inline namespace AD_ISA {

constexpr int larger(int a, int b) { return a > b ? a : b; }

/* A row over loop storage S, for the kernels. width: elements of a chunk; unroll: chunks of a thread; step: elements
 * that a heavy row computes at a time. */
template <int Id, class S> struct fast_row : ufunc<Id, S> {
    using F = ufunc<Id, S>;
    static constexpr int nop = F::nout + F::nin;
    static constexpr int in0 = F::nout, in1 = F::nin > 1 ? in0 + 1 : 0, in2 = F::nin > 2 ? in0 + 2 : 0;
    static constexpr int widest = larger(larger(sizeof(typename F::O0), F::nout > 1 ? sizeof(typename F::O1) : 1),
                                         larger(sizeof(typename F::X), larger(F::nin > 1 ? sizeof(typename F::Y) : 1,
                                                                              F::nin > 2 ? sizeof(typename F::Z) : 1)));
    static constexpr bool light = is_light<Id, S>();
    static constexpr int width = 16 / widest;
    static constexpr int unroll = !light ? 1 : F::nin > 1 || width == 16 ? 2 : 4;
    static constexpr int step = sizeof(S) == 1 && width >= 4 ? 4 : sizeof(S) <= 4 && width >= 2 ? 2 : 1;
};

/* Elements first..last - 1 of a chunk are in the row. */
struct chunk_place {
    int64_t column; /* of the chunk's first element: negative where a row does not begin with a whole chunk */
    int first, last;
    uint32_t at[AD_UFUNC_OUTER];
};

template <int N> __device__ __forceinline__ void locate_row(const ad_ufunc_fast<N> &l, uint32_t row, chunk_place *p) {
#pragma unroll
    for (int d = AD_UFUNC_OUTER - 1; d > 0; d--) {
        if (d >= int(l.head.ndim)) continue;
        uint32_t rest = divide(row, l.head.dim[d]);
        p->at[d] = row - rest * l.head.dim[d].size;
        row = rest;
    }
    p->at[0] = row;
}

/* Bytes from the beginning of the array to that of the row. */
template <int K, int N> __device__ __forceinline__ int64_t row_offset(const ad_ufunc_fast<N> &l, const chunk_place &p) {
    if (l.head.ndim == 0) return 0;
    int64_t offset = int64_t(p.at[0]) * l.op[K].stride[0];
    if (l.head.ndim > 1) offset += int64_t(p.at[1]) * l.op[K].stride[1];
    if (l.head.ndim > 2) offset += int64_t(p.at[2]) * l.op[K].stride[2];
    return offset;
}

/* O: storage type of the first output, whose chunks are aligned. False: there is no such chunk. */
template <int V, class O, int N>
__device__ __forceinline__ bool locate_chunk(const ad_ufunc_fast<N> &l, uint32_t q, chunk_place *p) {
    if (q >= l.head.chunks) return false;
    p->column = int64_t(q) * V;
    p->first = 0;
    p->last = V;
    if (l.head.ndim != 0) {
        uint32_t row = divide(q, l.head.row);
        p->column = int64_t(q - row * l.head.row.size) * V;
        locate_row(l, row, p);
    }
    if (V == 1 || !l.head.ragged) return true;
    if (l.head.skewed) {
        uintptr_t begin = reinterpret_cast<uintptr_t>(l.op[0].base) + uintptr_t(row_offset<0>(l, *p));
        p->column -= int(begin / sizeof(O) % V);
        if (p->column < 0) p->first = int(-p->column);
    }
    if (p->column + V > l.head.columns) p->last = int(l.head.columns - p->column);
    return p->first < p->last;
}

template <class S> __device__ __forceinline__ S value_of(const char *v) {
    vec<S, 1> r;
    memcpy(r.word, v, sizeof(S));
    return r.get(0);
}

template <int K, class S, int V, int N>
__device__ __forceinline__ vec<S, V> load_chunk(const ad_ufunc_fast<N> &l, const chunk_place &p, bool whole) {
    if constexpr (same<S, none>) {
        return {};
    } else {
        if (!l.op[K].base) return splat<S, V>(value_of<S>(l.op[K].value));
        const int64_t inner = l.op[K].inner;
        const char *from = l.op[K].base + row_offset<K>(l, p) + p.column * inner;
        if (V > 1 && inner == 0) return splat<S, V>(*reinterpret_cast<const S *>(from));
        if (whole && inner == int64_t(sizeof(S)) && reinterpret_cast<uintptr_t>(from) % (sizeof(S) * V) == 0)
            return load_vector<S, V>(from);
        S s[V] = {};
#pragma unroll
        for (int i = 0; i < V; i++)
            if (whole || (i >= p.first && i < p.last)) s[i] = *reinterpret_cast<const S *>(from + i * inner);
        return pack<S, V>(s);
    }
}

template <int K, class S, int V, int N> __device__ __forceinline__ void
store_chunk(const ad_ufunc_fast<N> &l, const chunk_place &p, bool whole, const vec<S, V> &v) {
    char *to = l.op[K].base + row_offset<K>(l, p) + p.column * int64_t(sizeof(S));
    if (whole) return store_vector(to, v);
#pragma unroll
    for (int i = 0; i < V; i++)
        if (i >= p.first && i < p.last) reinterpret_cast<S *>(to)[i] = v.get(i);
}

template <int Id, class F> __device__ __forceinline__ void
evaluate(ad_check *check, typename F::A x, typename F::B y, typename F::C z, typename F::O0 &o0, typename F::O1 &o1) {
    typename F::R0 r0;
    typename F::R1 r1;
    check_element<Id>(check, y);
    F::apply(x, y, z, r0, r1);
    o0 = typename F::O0(r0);
    if constexpr (F::nout > 1) o1 = typename F::O1(r1);
}

/* Element i of a chunk. */
template <int K, class S, int N>
__device__ __forceinline__ compute_t<S> load_element(const ad_ufunc_fast<N> &l, const chunk_place &p, int i) {
    if constexpr (same<S, none>) return {};
    else if (!l.op[K].base) return load(value_of<S>(l.op[K].value));
    else return load(*reinterpret_cast<const S *>(l.op[K].base + row_offset<K>(l, p) + (p.column + i) * l.op[K].inner));
}

/* Compute the elements of a thread that are no whole chunk. */
template <int Id, class S> __device__ void fast_rest(const ad_ufunc_fast<fast_row<Id, S>::nop> &l, uint32_t q) {
    using F = fast_row<Id, S>;
    using O0 = typename F::O0;
    using O1 = typename F::O1;
#pragma unroll 1
    for (int u = 0; u < F::unroll; u++, q += l.head.step) {
        chunk_place p;
        if (!locate_chunk<F::width, O0>(l, q, &p) || p.last - p.first == F::width) continue;
#pragma unroll 1
        for (int i = p.first; i < p.last; i++) {
            O0 o0;
            O1 o1;
            evaluate<Id, F>(l.head.check, load_element<F::in0, typename F::X>(l, p, i),
                            load_element<F::in1, typename F::Y>(l, p, i), load_element<F::in2, typename F::Z>(l, p, i),
                            o0, o1);
            reinterpret_cast<O0 *>(l.op[0].base + row_offset<0>(l, p))[p.column + i] = o0;
            if constexpr (F::nout > 1) reinterpret_cast<O1 *>(l.op[1].base + row_offset<1>(l, p))[p.column + i] = o1;
        }
    }
}

template <int Id, class S> __global__ void __launch_bounds__(AD_UFUNC_THREADS)
    fast_light(const __grid_constant__ ad_ufunc_fast<fast_row<Id, S>::nop> l) {
    using F = fast_row<Id, S>;
    constexpr int V = F::width, U = F::unroll;
    const uint32_t first = blockIdx.x * l.head.block + threadIdx.x;
    chunk_place p[U];
    vec<typename F::X, V> x[U];
    vec<typename F::Y, V> y[U];
    vec<typename F::Z, V> z[U];
    bool whole[U];
    begin();
#pragma unroll
    for (int u = 0; u < U; u++) {
        whole[u] = locate_chunk<V, typename F::O0>(l, first + u * l.head.step, &p[u]) && p[u].last - p[u].first == V;
        if (!whole[u]) continue;
        x[u] = load_chunk<F::in0, typename F::X, V>(l, p[u], true);
        y[u] = load_chunk<F::in1, typename F::Y, V>(l, p[u], true);
        z[u] = load_chunk<F::in2, typename F::Z, V>(l, p[u], true);
    }
#pragma unroll
    for (int u = 0; u < U; u++) {
        if (!whole[u]) continue;
        typename F::O0 o0[V];
        typename F::O1 o1[V];
#pragma unroll
        for (int i = 0; i < V; i++)
            evaluate<Id, F>(l.head.check, load(x[u].get(i)), load(y[u].get(i)), load(z[u].get(i)), o0[i], o1[i]);
        store_chunk<0>(l, p[u], true, pack(o0));
        if constexpr (F::nout > 1) store_chunk<1>(l, p[u], true, pack(o1));
    }
    if (V > 1 && l.head.ragged) fast_rest<Id, S>(l, first);
}

/* A body for all elements of a thread. They pass through the first places, so that no register is indexed. */
template <int Id, class S> __global__ void __launch_bounds__(AD_UFUNC_THREADS)
    fast_heavy(const __grid_constant__ ad_ufunc_fast<fast_row<Id, S>::nop> l) {
    using F = fast_row<Id, S>;
    constexpr int V = F::width, N = F::step;
    chunk_place p;
    begin();
    if (!locate_chunk<V, typename F::O0>(l, blockIdx.x * l.head.block + threadIdx.x, &p)) return;
    const bool whole = p.last - p.first == V;
    vec<typename F::X, V> x = load_chunk<F::in0, typename F::X, V>(l, p, whole);
    vec<typename F::Y, V> y = load_chunk<F::in1, typename F::Y, V>(l, p, whole);
    vec<typename F::Z, V> z = load_chunk<F::in2, typename F::Z, V>(l, p, whole);
    vec<typename F::O0, V> r0 = {};
    vec<typename F::O1, V> r1 = {};
#pragma unroll 1
    for (int n = 0; n < V; n += N) {
        typename F::O0 o0[N];
        typename F::O1 o1[N];
#pragma unroll
        for (int i = 0; i < N; i++)
            evaluate<Id, F>(l.head.check, load(x.get(i)), load(y.get(i)), load(z.get(i)), o0[i], o1[i]);
        shift(x, vec<typename F::X, N>{});
        shift(y, vec<typename F::Y, N>{});
        shift(z, vec<typename F::Z, N>{});
        shift(r0, pack(o0));
        if constexpr (F::nout > 1) shift(r1, pack(o1));
    }
    store_chunk<0>(l, p, whole, r0);
    if constexpr (F::nout > 1) store_chunk<1>(l, p, whole, r1);
}

template <int Id, class S> const void *fast_kernel() {
    if constexpr (is_light<Id, S>()) return reinterpret_cast<const void *>(&fast_light<Id, S>);
    else return reinterpret_cast<const void *>(&fast_heavy<Id, S>);
}

template <int Id, class S> void add_fast(ad_ufunc_table *t) {
    if constexpr (has_row<Id, S>() && !is_identity<Id, S>()) {
        t->width[Id] = fast_row<Id, S>::width;
        t->unroll[Id] = fast_row<Id, S>::unroll;
        /* ad_cuda_ufunc_table takes the signed integer's kernel instead. */
        if constexpr (!(ignores_sign<Id>() && same<S, unsigned_t<S>> && is_int<compute_t<S>>))
            t->fast[Id] = fast_kernel<Id, S>();
    }
}

template <class S> void fill_fast(ad_ufunc_table *t) {
#define AD_UFUNC(id, name, nin, nout, rulename, domain, cost, traits, test, doc, ...) add_fast<id, S>(t);
#include "protocol/ufunc.def"
#undef AD_UFUNC
}

} // namespace AD_ISA
} // namespace ad
#endif
