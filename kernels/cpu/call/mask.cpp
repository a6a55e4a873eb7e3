/* nonzero, compress and place: what a mask picks out. Masks are walked in blocks whose counts are taken first, so that
 * every block knows where its elements go. */
#include "kernels/cpu/call/move.h"

#include <string.h>

#include "kernels/cpu/backend/parallel.h"

namespace {

using namespace ad;

constexpr int64_t BLOCK = 1 << 14; /* mask elements */

/* A packed mask, and how many true elements come before each of its blocks. */
struct mask {
    const uint8_t *data;
    int64_t size, blocks, total;
    int64_t *before;
};

int64_t count_true(const uint8_t *m, int64_t n) {
    int64_t total = 0;
    while (n > 0) {
        int64_t part = n < 4096 ? n : 4096;
        uint32_t some = 0;
        for (int64_t i = 0; i < part; i++) some += m[i] != 0;
        total += some;
        m += part;
        n -= part;
    }
    return total;
}

/* Input `index` as a mask; other types than bool are true where they are not zero. */
int mask_init(ad_call *c, int index, array *a, mask *m) {
    int status = ad_call_input_packed(c, index, AD_BOOL, a);
    if (status) return status;
    m->data = reinterpret_cast<const uint8_t *>(a->data);
    m->size = count(*a);
    m->blocks = (m->size + BLOCK - 1) / BLOCK;
    m->total = 0;
    m->before = static_cast<int64_t *>(ad_call_workspace(c, uint64_t(m->blocks) * 8));
    if (!m->before) return AD_E_MEMORY;
    ad_cpu_parallel(m->blocks, 4, [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; b++)
            m->before[b] = count_true(m->data + b * BLOCK, b + 1 < m->blocks ? BLOCK : m->size - b * BLOCK);
    });
    for (int64_t b = 0; b < m->blocks; b++) {
        int64_t n = m->before[b];
        m->before[b] = m->total;
        m->total += n;
    }
    return 0;
}

/* Positions of the first `most` true elements in m[0..n), counted from `start`; how many. *next: where it stopped.
 * Without branches on single elements; eight that are all false are passed over at once. */
int64_t list_true(const uint8_t *m, int64_t n, int64_t start, int64_t most, int64_t *list, int64_t *next) {
    int64_t found = 0, i = 0;
    for (; i + 8 <= n && found + 8 <= most; i += 8) {
        uint64_t eight;
        memcpy(&eight, m + i, 8);
        if (eight == 0) continue;
        for (int k = 0; k < 8; k++) {
            list[found] = start + i + k;
            found += m[i + k] != 0;
        }
    }
    for (; i < n && found < most; i++) {
        list[found] = start + i;
        found += m[i] != 0;
    }
    *next = i;
    return found;
}

/* Call f(list, n, rank) for the true elements, some at a time: their positions, and how many came before. */
template <class F> void each_list(const mask *m, int64_t grain, F f) {
    ad_cpu_parallel(m->blocks, grain, [&](int64_t first, int64_t last) {
        int64_t list[AD_MOVE_BLOCK], rank = m->before[first], next;
        int64_t p = first * BLOCK, end = last < m->blocks ? last * BLOCK : m->size;
        for (; p < end; p += next) {
            int64_t n = list_true(m->data + p, end - p, p, AD_MOVE_BLOCK, list, &next);
            if (n > 0) f(list, n, rank);
            rank += n;
        }
    });
}

/* Byte offsets, in the walked array, of ascending positions. */
void offsets_of(const walk<1> *w, const int64_t *list, int64_t n, int64_t *at) {
    const int64_t jump = w->inner(0);
    int64_t i = 0;
    if (w->ndim <= 1) {
        for (; i < n; i++) at[i] = list[i] * jump;
        return;
    }
    w->runs(list[0], list[n - 1] + 1, [&](const int64_t(&offset)[1], int64_t length, int64_t p) {
        for (; i < n && list[i] < p + length; i++) at[i] = offset[0] + (list[i] - p) * jump;
        return i < n;
    });
}

/* Copy elements at the mask's true places, from or to a run of blocks that lie `step` bytes apart. The mask has the
 * first of `axes`. */
void move_true(const mask *m, const ad_move *move, const walk<1> *places, int64_t step, bool pick) {
    const int64_t inner = move->inner.count, grain = inner > 16 ? 1 : 2;
    each_list(m, grain, [&](const int64_t *list, int64_t n, int64_t rank) {
        int64_t own[AD_MOVE_BLOCK], run[AD_MOVE_BLOCK];
        offsets_of(places, list, n, own);
        for (int64_t i = 0; i < n; i++) run[i] = (rank + i) * step;
        if (pick) ad_move_blocks(move, run, own, n, 0, inner);
        else ad_move_blocks(move, own, run, n, 0, inner);
    });
}

walk<1> first_axes(const array *a, int n) {
    walk<1> w;
    for (int i = 0; i < n; i++) w.add(a->shape[i], {a->stride[i]});
    return w;
}

/* Index of each true element along each axis, into out[axis][rank]. */
void write_indices(const mask *m, const array *x, int64_t *out) {
    each_list(m, 2, [&](const int64_t *list, int64_t n, int64_t rank) {
        for (int64_t i = 0; i < n; i++) {
            int64_t rest = list[i];
            for (int axis = x->ndim - 1; axis > 0; axis--) {
                int64_t size = x->shape[axis], up = rest / size;
                out[axis * m->total + rank + i] = rest - up * size;
                rest = up;
            }
            out[rank + i] = rest;
        }
    });
}

/* Write the places as the answer, where there is one axis. */
void write_places(const mask *m, int64_t *out) {
    ad_cpu_parallel(m->blocks, 2, [&](int64_t first, int64_t last) {
        const int64_t begin = first * BLOCK, end = last < m->blocks ? last * BLOCK : m->size;
        const int64_t n = (last < m->blocks ? m->before[last] : m->total) - m->before[first];
        int64_t next;
        list_true(m->data + begin, end - begin, begin, n, out + m->before[first], &next);
    });
}

} // namespace

int ad_call_nonzero(ad_call *c) {
    array x;
    mask m;
    int status = mask_init(c, 0, &x, &m);
    if (status) return status;
    array out = {nullptr, AD_INT64, 2, {x.ndim, m.total}, {m.total * 8, 8}};
    if ((status = ad_call_sized(c, 0, &out))) return status;
    if (x.ndim == 1) write_places(&m, reinterpret_cast<int64_t *>(out.data));
    else if (x.ndim > 1) write_indices(&m, &x, reinterpret_cast<int64_t *>(out.data));
    c->run->values[0] = m.total;
    c->run->nvalues = 1;
    return ad_call_finish(c, 0, &out);
}

int ad_call_compress(ad_call *c) {
    array x, masked, out;
    mask m;
    ad_move move;
    int status;
    if ((status = ad_call_input(c, 0, c->op->loop, &x)) || (status = mask_init(c, 1, &masked, &m))) return status;
    if (x.ndim - masked.ndim >= AD_MAX_NDIM)
        return ad__fault(c->fault, AD_E_VALUE, "compress: the result has more than %d dimensions", AD_MAX_NDIM);
    out = x;
    out.ndim = 1 + x.ndim - masked.ndim;
    out.shape[0] = m.total;
    for (int i = 1; i < out.ndim; i++) out.shape[i] = x.shape[masked.ndim + i - 1];
    pack(&out);
    if ((status = ad_call_sized(c, 0, &out))) return status;
    c->run->values[0] = m.total;
    c->run->nvalues = 1;
    if (count(out) == 0) return 0;
    for (int i = masked.ndim; i < x.ndim; i++)
        move.inner.add(x.shape[i], {out.stride[i - masked.ndim + 1], x.stride[i]});
    walk<1> places = first_axes(&x, masked.ndim);
    ad_move_init(&move, x.dtype, AD_MOVE_SET, out.data, x.data, out.stride[0], 0);
    move_true(&m, &move, &places, out.stride[0], true);
    return ad_call_finish(c, 0, &out);
}

int ad_call_place(ad_call *c) {
    array x = view_of(c->op->operand[0]), masked, v;
    mask m;
    ad_move move;
    int status;
    if ((status = mask_init(c, 0, &masked, &m)) || (status = ad_call_input(c, 1, x.dtype, &v))) return status;
    const int64_t n = v.shape[0];
    if (n != m.total)
        return ad__fault(c->fault, AD_E_VALUE,
                         "NumPy boolean array indexing assignment cannot assign %lld input values to the %lld output "
                         "values where the mask is true",
                         (long long)n, (long long)m.total);
    for (int i = masked.ndim; i < x.ndim; i++) move.inner.add(x.shape[i], {x.stride[i], v.stride[i - masked.ndim + 1]});
    if (m.total == 0 || move.inner.count == 0) return 0;
    const int64_t step = v.stride[0];
    walk<1> places = first_axes(&x, masked.ndim);
    ad_move_init(&move, x.dtype, AD_MOVE_SET, x.data, v.data, step, 1);
    c->run->wrote = true;
    move_true(&m, &move, &places, step, false);
    return 0;
}
