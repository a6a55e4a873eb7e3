/* Arrays as calls see them, and walking over several of them at once. */
#ifndef AD_KERNELS_CALL_ARRAY_H
#define AD_KERNELS_CALL_ARRAY_H

#include "kernels/types.h"
#include "protocol/op.h"

namespace ad {
inline namespace AD_ISA {

/* A view with an address. Strides in bytes. */
struct array {
    char *data;
    int dtype, ndim;
    int64_t shape[AD_MAX_NDIM], stride[AD_MAX_NDIM];
};

inline int64_t itemsize(int dtype) {
    static const uint8_t sizes[AD_NDTYPE] = {
#define AD_DTYPE(id, NAME, name, size, kind, letter) size,
#include "protocol/dtype.def"
#undef AD_DTYPE
    };
    return sizes[dtype];
}

/* Elements of axes [first, last). */
inline int64_t count(const array &a, int first, int last) {
    int64_t n = 1;
    for (int i = first; i < last; i++) n *= a.shape[i];
    return n;
}
inline int64_t count(const array &a) { return count(a, 0, a.ndim); }

inline array view_of(const ad_operand &o) {
    array a;
    a.data = static_cast<char *>(o.data);
    a.dtype = o.desc.dtype;
    a.ndim = o.desc.ndim;
    for (int i = 0; i < a.ndim; i++) {
        a.shape[i] = o.desc.shape[i];
        a.stride[i] = o.desc.strides[i];
    }
    return a;
}

/* Row-major strides for a's shape and dtype; the number of bytes. Of its first `repeats` axes those of stride 0 keep it
 * and take no room. */
inline int64_t pack(array *a, int repeats = 0) {
    int64_t step = itemsize(a->dtype);
    for (int i = a->ndim - 1; i >= 0; i--) {
        if (i < repeats && a->stride[i] == 0 && a->shape[i] != 0) continue;
        a->stride[i] = step;
        step *= a->shape[i];
    }
    return step;
}

inline bool is_packed(const array &a) {
    int64_t step = itemsize(a.dtype);
    for (int i = a.ndim - 1; i >= 0; i--) {
        if (a.shape[i] != 1 && a.stride[i] != step) return count(a) == 0;
        step *= a.shape[i];
    }
    return true;
}

/* Stride of the axis of `a` that broadcasting to ndim axes puts at axis i. */
inline int64_t broadcast_stride(const array &a, int i, int ndim) {
    int own = i - (ndim - a.ndim);
    return own < 0 || a.shape[own] == 1 ? 0 : a.stride[own];
}

/* K arrays of one shape, walked together in row-major order. Axes that lie behind each other in all of them are
 * merged as they are added, outermost first. */
template <int K> struct walk {
    int ndim = 0;
    int64_t count = 1;
    int64_t shape[AD_MAX_NDIM], stride[AD_MAX_NDIM][K];

    void add(int64_t n, const int64_t (&step)[K]) {
        count *= n;
        if (n == 1) return;
        bool merge = ndim > 0;
        for (int k = 0; merge && k < K; k++) merge = stride[ndim - 1][k] == step[k] * n;
        if (merge) shape[ndim - 1] *= n;
        else shape[ndim++] = n;
        for (int k = 0; k < K; k++) stride[ndim - 1][k] = step[k];
    }
    /* Stride within a run. */
    int64_t inner(int k) const { return ndim == 0 ? 0 : stride[ndim - 1][k]; }
    /* Elements of a whole run. */
    int64_t length() const { return ndim == 0 ? 1 : shape[ndim - 1]; }

    /* f(offset, n, position) for each run of elements that the innermost axis has of [begin, end); offset: K byte
     * offsets. f returns false to stop. */
    template <class F> void runs(int64_t begin, int64_t end, F f) const {
        int64_t at[AD_MAX_NDIM], offset[K], rest = begin;
        if (begin >= end) return;
        for (int k = 0; k < K; k++) offset[k] = 0;
        for (int i = ndim - 1; i >= 0; i--) {
            at[i] = rest % shape[i];
            rest /= shape[i];
            for (int k = 0; k < K; k++) offset[k] += at[i] * stride[i][k];
        }
        for (int64_t p = begin; p < end;) {
            int64_t n = ndim == 0 ? 1 : shape[ndim - 1] - at[ndim - 1];
            if (n > end - p) n = end - p;
            if (!f(static_cast<const int64_t(&)[K]>(offset), n, p)) return;
            if ((p += n) < end) step(at, offset);
        }
    }

  private:
    /* To the start of the next run. */
    void step(int64_t *at, int64_t *offset) const {
        int last = ndim - 1;
        for (int k = 0; k < K; k++) offset[k] -= at[last] * stride[last][k];
        at[last] = 0;
        for (int i = last - 1; i >= 0; i--) {
            for (int k = 0; k < K; k++) offset[k] += stride[i][k];
            if (++at[i] < shape[i]) return;
            for (int k = 0; k < K; k++) offset[k] -= shape[i] * stride[i][k];
            at[i] = 0;
        }
    }
};

/* One array, or two of one shape. skip: an axis to leave out. */
inline walk<1> walk_of(const array &a, int skip = -1) {
    walk<1> w;
    for (int i = 0; i < a.ndim; i++)
        if (i != skip) w.add(a.shape[i], {a.stride[i]});
    return w;
}
inline walk<2> walk_of(const array &a, const array &b, int skip = -1) {
    walk<2> w;
    for (int i = 0; i < a.ndim; i++)
        if (i != skip) w.add(a.shape[i], {a.stride[i], b.stride[i]});
    return w;
}

} // namespace AD_ISA
} // namespace ad
#endif
