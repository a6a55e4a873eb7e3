/* Kernels of reduction.def's rows for one type of element: AD_REDUCE_TABLE(float32) defines their table. */
#ifndef AD_KERNELS_CPU_ISA_REDUCE_LOOPS_H
#define AD_KERNELS_CPU_ISA_REDUCE_LOOPS_H

#include "kernels/cpu/isa/reduce_fold.h"
#include "kernels/cpu/isa/reduce_places.h"
#include "kernels/cpu/kernels.h"
#include "kernels/ufunc.h"

namespace ad {
inline namespace AD_ISA {

template <class A, class T> AD_HD void take_one(A &a, T x, int64_t index) {
    if constexpr (INDEXED<A>) a.take(x, index);
    else a.take(x);
}

/* ---- all into one ---- */

template <template <class> class A, class T> void fold(void *state, const void *elements, int64_t n, int64_t index) {
    A<T> *s = static_cast<A<T> *>(state);
    const T *x = static_cast<const T *>(elements);
    if constexpr (INDEXED<A<T>> && !is_complex<T>) {
        fold_indexed<A, T>(s, x, n, index);
    } else if constexpr (INDEXED<A<T>>) {
        for (int64_t i = 0; i < n; i++) s->take(x[i], index + i);
    } else if constexpr (COUNTING<A<T>>) {
        s->n += count_nonzero(x, n);
    } else {
        s->merge(fold_vector<A, T>::tree(x, n));
    }
}

/* ---- each into its own ---- */

template <template <class> class A, class T> void each(void *state, const void *elements, int64_t n, int64_t index) {
    A<T> *s = static_cast<A<T> *>(state);
    const T *x = static_cast<const T *>(elements);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) take_one(s[i], x[i], index);
}

template <template <class> class A, class T> void masked(void *state, int64_t state_step, const void *elements,
                                                         const uint8_t *mask, int64_t n, int64_t index,
                                                         int64_t index_step) {
    A<T> *s = static_cast<A<T> *>(state);
    const T *x = static_cast<const T *>(elements);
    for (int64_t i = 0; i < n; i++) {
        AD_SCALAR_LOOP;
        if (mask[i]) take_one(s[i * state_step], x[i], index + i * index_step);
    }
}

template <template <class> class A, class T> void init(void *state, int64_t n) {
    A<T> one;
    one.init();
    for (int64_t i = 0; i < n; i++) static_cast<A<T> *>(state)[i] = one;
}

template <template <class> class A, class T> void merge(void *state, const void *later, int64_t n) {
    A<T> *s = static_cast<A<T> *>(state);
    const A<T> *o = static_cast<const A<T> *>(later);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) s[i].merge(o[i]);
}

template <template <class> class A, class T, class O>
void result(void *out, const void *state, int64_t n, double ddof) {
    using R = compute_t<O>;
    for (int64_t i = 0; i < n; i++)
        static_cast<O *>(out)[i] = O(static_cast<const A<T> *>(state)[i].template result<R>(ddof));
}

template <class A, class = void> struct early { static constexpr bool (*done)(const void *) = nullptr; };
template <class A> struct early<A, decltype(static_cast<void>(A().done()))> {
    static bool done(const void *state) { return static_cast<const A *>(state)->done(); }
};

/* ---- the table ---- */

template <template <class> class A, int Rule, class T> constexpr ad_reduce_kernel reduce_kernel() {
    if constexpr (rule<Rule>::loops >> dtype_of<T>::value & 1) {
        using O = typename coded<rule<Rule>::out0, T>::type;
        return {sizeof(A<T>), INDEXED<A<T>>, init<A, T>,      fold<A, T>,       each<A, T>,
                masked<A, T>, merge<A, T>,   result<A, T, O>, early<A<T>>::done};
    } else {
        return {};
    }
}

template <class T> struct reduce_table {
    ad_reduce_kernel row[AD_REDUCTION_LIMIT];
    constexpr reduce_table() : row{} {
#define AD_REDUCTION(id, name, rulename, accumulator, ...) \
    row[id] = reduce_kernel<accumulator, AD_RULE_##rulename, T>();
#include "protocol/reduction.def"
#undef AD_REDUCTION
    }
};

} // namespace AD_ISA
} // namespace ad

#define AD_REDUCE_TABLE(name)                                                           \
    namespace ad {                                                                      \
    inline namespace AD_ISA {                                                           \
    static constexpr reduce_table<t_##name> reductions_##name;                          \
    extern const ad_reduce_kernel *const reduce_kernels_##name = reductions_##name.row; \
    }                                                                                   \
    }
/* Reduced in another type. */
#define AD_REDUCE_NONE(name)                                              \
    namespace ad {                                                        \
    inline namespace AD_ISA {                                             \
    extern const ad_reduce_kernel *const reduce_kernels_##name = nullptr; \
    }                                                                     \
    }
#endif
