/* merge and merge_pairs: pieces of the result are made in parallel. */
#include "kernels/call.h"
#include "kernels/call_merge.h"
#include "kernels/cpu/backend/parallel.h"

namespace {

using namespace ad;

constexpr int64_t GRAIN = 1 << 14;

template <class S> struct lines {
    const S *key[2];
    const int64_t *number[2]; /* NULL: there are none */
    int64_t n[2];
    array keys, numbers;
};

template <class S> void put(const lines<S> &l, int64_t to, int from, int64_t at) {
    *reinterpret_cast<S *>(l.keys.data + to * l.keys.stride[0]) = l.key[from][at];
    if (l.number[from]) *reinterpret_cast<int64_t *>(l.numbers.data + to * l.numbers.stride[0]) = l.number[from][at];
}

template <class S> void merge_piece(const lines<S> &l, int64_t begin, int64_t end) {
    int64_t i = count_of_first(l.key[0], l.n[0], l.key[1], l.n[1], begin), j = begin - i;
    for (int64_t to = begin; to < end; to++) {
        const bool second = i >= l.n[0] || (j < l.n[1] && sorts_before(l.key[1][j], l.key[0][i]));
        put(l, to, second, second ? j++ : i++);
    }
}

/* Get both inputs from `first` on as rows of elements without gaps. */
template <class T> int get_inputs(ad_call *c, int first, int dtype, const T *(&data)[2], int64_t (&n)[2]) {
    for (int i = 0; i < 2; i++) {
        array x;
        const int status = ad_call_input_packed(c, first + i, dtype, &x);
        if (status) return status;
        data[i] = reinterpret_cast<const T *>(x.data);
        n[i] = x.shape[0];
    }
    return 0;
}

template <class S> int merge(ad_call *c, bool pairs) {
    lines<S> l = {};
    int64_t n[2];
    int status = get_inputs(c, 0, c->op->loop, l.key, l.n);
    if (!status && pairs) status = get_inputs(c, 2, AD_INT64, l.number, n);
    if (!status) status = ad_call_output(c, 0, c->op->loop, &l.keys);
    if (!status && pairs) status = ad_call_output(c, 1, AD_INT64, &l.numbers);
    if (status) return status;
    c->run->wrote = true;
    ad_cpu_parallel(l.n[0] + l.n[1], GRAIN, [&](int64_t begin, int64_t end) { merge_piece(l, begin, end); });
    status = ad_call_finish(c, 0, &l.keys);
    return status || !pairs ? status : ad_call_finish(c, 1, &l.numbers);
}

int merge_any(ad_call *c, bool pairs) {
    return visit(c->op->loop, [&](auto t) { return merge<typename decltype(t)::type>(c, pairs); });
}

} // namespace

int ad_call_merge(ad_call *c) { return merge_any(c, false); }

int ad_call_merge_pairs(ad_call *c) { return merge_any(c, true); }
