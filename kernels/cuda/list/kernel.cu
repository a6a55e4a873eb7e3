/* The kernel of lists: a block does one item after the other. */
#include <stddef.h>

#include "kernels/cuda/list/list.h"
#include "kernels/cuda/reduce/states.cuh"
#include "kernels/cuda/ufunc/general.cuh"

namespace {

using namespace ad;

constexpr unsigned THREADS = AD_FOLD_THREADS;
constexpr size_t STATES = 16 * THREADS; /* bytes: two states of 8 bytes for each thread at most */

/* ---- elementwise items ---- */

/* Tell whether lists have a row: those that are cheap, and the division and root of floating point. */
template <int Id, class T> constexpr bool is_listed() {
    constexpr bool real = same<T, float> || same<T, double>;
    constexpr bool short_enough =
        general_class<Id, T>() == 1 || (real && (Id == AD_UFUNC_divide || Id == AD_UFUNC_sqrt));
    return short_enough && has_kernel<Id, T>() && ufunc<Id, T>::nin < 3 && ufunc<Id, T>::nout < 2;
}

template <class T> __device__ __forceinline__ T value_of(uint64_t bits) {
    T v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* The offset of element i in each operand. */
__device__ __forceinline__ void locate_item(const ad_list_ufunc &l, uint32_t i, int32_t (&at)[3]) {
    const uint32_t rows = divide(i, l.dim[1]), column = i - rows * l.dim[1].size;
    const uint32_t outer = divide(rows, l.dim[0]), row = rows - outer * l.dim[0].size;
#pragma unroll
    for (int k = 0; k < 3; k++)
        at[k] = int32_t(outer) * l.stride[k][0] + int32_t(row) * l.stride[k][1] + int32_t(column) * l.stride[k][2];
}

template <class T> __device__ __forceinline__ compute_t<T> load_input(const ad_list_ufunc &l, int k, int32_t at) {
    if (l.scalars >> k & 1) return load(value_of<T>(l.base[k]));
    return load(*reinterpret_cast<const T *>(l.base[k] + int64_t(at)));
}

template <class T>
__device__ __forceinline__ compute_t<T> apply_item(const ad_list_ufunc &l, compute_t<T> x, compute_t<T> y) {
    using C = compute_t<T>;
    places<1> p = {};
    C xs[1] = {x}, ys[1] = {y}, zs[1] = {}, r0[1] = {}, r1[1] = {};
    switch (l.row) {
#define AD_UFUNC(id, name, nin, nout, rulename, domain, cost, traits, test, doc, ...)          \
    case id:                                                                                   \
        if constexpr (is_listed<id, T>()) apply_row<id, T, 1>(nullptr, p, xs, ys, zs, r0, r1); \
        break;
#include "protocol/ufunc.def"
#undef AD_UFUNC
    }
    return r0[0];
}

template <class T> __device__ __noinline__ void run_ufunc(const ad_list_ufunc &l) {
    for (uint32_t i = threadIdx.x; i < l.count; i += THREADS) {
        int32_t at[3];
        locate_item(l, i, at);
        compute_t<T> x = load_input<T>(l, 1, at[1]), y = {};
        if (l.nin > 1) y = load_input<T>(l, 2, at[2]);
        const compute_t<T> r = apply_item<T>(l, x, y);
        char *to = reinterpret_cast<char *>(l.base[0] + int64_t(at[0]));
        if (l.truth) *reinterpret_cast<bool8 *>(to) = cast<bool8>(r);
        else *reinterpret_cast<T *>(to) = T(r);
    }
}

/* Copies move words of the elements' size. */
template <class W> __device__ void run_copy(const ad_list_ufunc &l) {
    const W value = value_of<W>(l.base[1]);
    for (uint32_t i = threadIdx.x; i < l.count; i += THREADS) {
        int32_t at[3];
        locate_item(l, i, at);
        const W v = l.scalars & 2 ? value : *reinterpret_cast<const W *>(l.base[1] + int64_t(at[1]));
        *reinterpret_cast<W *>(l.base[0] + int64_t(at[0])) = v;
    }
}

__device__ void run_elements(const ad_list_ufunc &l) {
    if (l.row == AD_UFUNC_copy) {
        switch (l.head.type) {
        case AD_INT8: return run_copy<uint8_t>(l);
        case AD_INT16: return run_copy<uint16_t>(l);
        case AD_INT32: return run_copy<uint32_t>(l);
        default: return run_copy<uint64_t>(l);
        }
    }
    switch (l.head.type) {
    case AD_INT32: return run_ufunc<int32_t>(l);
    case AD_INT64: return run_ufunc<int64_t>(l);
    case AD_FLOAT32: return run_ufunc<float>(l);
    default: return run_ufunc<double>(l);
    }
}

/* ---- products ---- */

/* A thread computes every so many'th element of the result, whose terms it adds in order. */
template <class T> __device__ __noinline__ void multiply_item(const ad_list_product &l) {
    for (int32_t i = int32_t(threadIdx.x); i < l.rows * l.columns; i += int32_t(THREADS)) {
        const int32_t row = i / l.columns, column = i - row * l.columns;
        const char *a = l.a + int64_t(row) * l.a_row, *b = l.b + int64_t(column) * l.b_column;
        T sum = 0;
#pragma unroll 8
        for (int32_t k = 0; k < l.depth; k++, a += l.a_column, b += l.b_row)
            sum = fma(*reinterpret_cast<const T *>(a), *reinterpret_cast<const T *>(b), sum);
        *reinterpret_cast<T *>(l.c + int64_t(row) * l.c_row + int64_t(column) * l.c_column) = sum;
    }
}

/* ---- reductions ---- */

/* Copy an item's plan to where its kernels read it. */
__device__ void copy_fold(const ad_list_fold &l, ad_fold *f) {
    constexpr unsigned HEAD = offsetof(ad_fold, keep) / 8, AXIS = sizeof(ad_fold_axis) / 8;
    static_assert(offsetof(ad_fold, keep) % 8 == 0 && sizeof(ad_fold_axis) % 8 == 0, "");
    const uint64_t *from = reinterpret_cast<const uint64_t *>(&l + 1);
    const ad_fold *told = reinterpret_cast<const ad_fold *>(from);
    const unsigned keep = (told->nkeep ? told->nkeep : 1) * AXIS, over = (told->nover ? told->nover : 1) * AXIS;
    uint64_t *head = reinterpret_cast<uint64_t *>(f), *to_keep = reinterpret_cast<uint64_t *>(f->keep),
             *to_over = reinterpret_cast<uint64_t *>(f->over);
    for (unsigned i = threadIdx.x; i < HEAD + keep + over; i += THREADS)
        (i < HEAD ? head[i] : i < HEAD + keep ? to_keep[i - HEAD] : to_over[i - HEAD - keep]) = from[i];
    __syncthreads();
}

/* A row for each thread, in order, as fold_short has it. */
template <class A> __device__ void fold_rows(const ad_fold &f) {
    using S = typename A::element;
    for (int64_t row = threadIdx.x; row < f.keep[0].size; row += THREADS) {
        const char *in = f.in + row * f.keep[0].in;
        A a;
        a.init();
        for (int64_t i = 0; i < f.reduced; i++) a.take(fold_load<S>(in + i * int64_t(sizeof(S))), i, f);
        a.finish(f, f.out + row * f.keep[0].out);
    }
}

template <class Work> __device__ void fold_groups(const ad_fold &f, uint32_t groups, char *memory) {
    static_assert(sizeof(typename Work::state) * THREADS <= STATES, "");
    for (uint32_t g = 0; g < groups; g++) {
        fold_one<Work>(f, g, memory);
        __syncthreads();
    }
}

template <class A> __device__ __noinline__ void fold_item(const ad_fold &f, int way, uint32_t groups, char *memory) {
    if (way == AD_FOLD_SHORT) return fold_rows<A>(f);
    if (way == AD_FOLD_WIDE) return fold_groups<wide_work<A>>(f, groups, memory);
    if constexpr (sizeof(typename A::element) <= 4)
        if (way == AD_FOLD_SIDE) return fold_groups<side_work<A>>(f, groups, memory);
    fold_groups<unit_work<A>>(f, groups, memory);
}

__device__ void run_fold(const ad_list_fold &l, ad_fold *f, char *memory) {
    copy_fold(l, f);
    const bool sums = l.family == AD_FOLD_SUMS;
    if (l.head.type == AD_FLOAT32) {
        if (sums) fold_item<sum_state<float, float>>(*f, l.way, l.groups, memory);
        else fold_item<top_state<int32_t, true>>(*f, l.way, l.groups, memory);
    } else {
        if (sums) fold_item<sum_state<double, double>>(*f, l.way, l.groups, memory);
        else fold_item<top_state<int64_t, true>>(*f, l.way, l.groups, memory);
    }
}

/* ---- the list ---- */

__global__ void __launch_bounds__(THREADS) run_list(const __grid_constant__ ad_list l) {
    __shared__ ad_fold fold;
    __shared__ __align__(16) char memory[STATES];
    begin();
    for (uint32_t at = 0; at < l.bytes;) {
        const ad_list_head *h = reinterpret_cast<const ad_list_head *>(l.data + at);
        if (h->kind == AD_LIST_UFUNC) {
            run_elements(*reinterpret_cast<const ad_list_ufunc *>(h));
        } else if (h->kind == AD_LIST_FOLD) {
            run_fold(*reinterpret_cast<const ad_list_fold *>(h), &fold, memory);
        } else if (h->type == AD_FLOAT32) {
            multiply_item<float>(*reinterpret_cast<const ad_list_product *>(h));
        } else {
            multiply_item<double>(*reinterpret_cast<const ad_list_product *>(h));
        }
        at += h->bytes;
        __syncthreads();
    }
}

} // namespace

const void *ad_cuda_list_kernel() { return reinterpret_cast<const void *>(&run_list); }

bool ad_cuda_list_has(int row, int dtype) {
    switch (row) {
#define AD_UFUNC(id, name, nin, nout, rulename, domain, cost, traits, test, doc, ...) \
    case id:                                                                          \
        return dtype == AD_FLOAT32   ? is_listed<id, float>()                         \
               : dtype == AD_FLOAT64 ? is_listed<id, double>()                        \
               : dtype == AD_INT32   ? is_listed<id, int32_t>()                       \
               : dtype == AD_INT64   ? is_listed<id, int64_t>()                       \
                                     : false;
#include "protocol/ufunc.def"
#undef AD_UFUNC
    default: return false;
    }
}
