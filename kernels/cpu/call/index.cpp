/* gather and scatter: advanced indexing. */
#include "kernels/cpu/call/move.h"

#include <atomic>

#include "kernels/cpu/backend/parallel.h"

namespace {

using namespace ad;

constexpr int64_t CHECK_GRAIN = 1 << 15;
constexpr int64_t MOVE_GRAIN = 1 << 14; /* elements */

/* An indexing: k index arrays of one shape B, which index the first k axes of an array. */
struct indexing {
    int k;
    array index[AD_MAX_NDIM];
    walk<1> place[AD_MAX_NDIM];                   /* of each index array */
    int64_t size[AD_MAX_NDIM], step[AD_MAX_NDIM]; /* of the indexed axes */
    int64_t places;                               /* elements of B */
};

int64_t index_at(const walk<1> &w, const char *data, int64_t position) {
    int64_t v = 0;
    w.runs(position, position + 1, [&](const int64_t(&at)[1], int64_t, int64_t) {
        v = *reinterpret_cast<const int64_t *>(data + at[0]);
        return false;
    });
    return v;
}

/* Count how far an index is inside -size .. size - 1. Negative: it is outside. An index and its complement are as far,
 * and no size is too large for that. */
inline int64_t room_at(const char *index, int64_t size) {
    const int64_t j = *reinterpret_cast<const int64_t *>(index);
    return size - 1 - (j ^ (j >> 63));
}

bool all_good(const char *index, int64_t step, int64_t size, int64_t n) {
    int64_t signs = 0;
    for (int64_t i = 0; i < n; i++) signs |= room_at(index + i * step, size);
    return signs >= 0;
}

/* Position of the first index that is out of bounds, in begin..end; end: none. */
int64_t first_bad(const walk<1> &w, const char *data, int64_t size, int64_t begin, int64_t end) {
    int64_t found = end;
    w.runs(begin, end, [&](const int64_t(&at)[1], int64_t n, int64_t p) {
        const char *v = data + at[0];
        const int64_t step = w.inner(0);
        if (step == 8 ? all_good(v, 8, size, n) : all_good(v, step, size, n)) return true;
        int64_t i = 0;
        while (i < n && room_at(v + i * step, size) >= 0) i++;
        if (i < n) found = p + i;
        return i == n;
    });
    return found;
}

/* Looks at repeated elements once. */
int check_axis(ad_call *c, const indexing *ix, int axis) {
    const array &index = ix->index[axis];
    walk<1> w;
    for (int i = 0; i < index.ndim; i++)
        if (index.stride[i] != 0) w.add(index.shape[i], {index.stride[i]});
    std::atomic<int64_t> first{w.count};
    ad_cpu_parallel(w.count, CHECK_GRAIN, [&](int64_t begin, int64_t end) {
        if (begin >= first.load(std::memory_order_relaxed)) return;
        int64_t bad = first_bad(w, index.data, ix->size[axis], begin, end), old = first.load();
        while (bad < end && bad < old && !first.compare_exchange_weak(old, bad)) {}
    });
    if (first.load() == w.count) return 0;
    return ad__fault(c->fault, AD_E_INDEX, "index %lld is out of bounds for axis %d with size %lld",
                     (long long)index_at(w, index.data, first.load()), axis, (long long)ix->size[axis]);
}

/* Inputs from `first` on index array x. */
int indexing_init(ad_call *c, int first, const array *x, indexing *ix) {
    int status;
    ix->k = c->op->nin - first;
    for (int a = 0; a < ix->k; a++) {
        if ((status = ad_call_input(c, first + a, AD_INT64, &ix->index[a]))) return status;
        ix->place[a] = walk_of(ix->index[a]);
        ix->size[a] = x->shape[a];
        ix->step[a] = x->stride[a];
    }
    ix->places = count(ix->index[0]);
    for (int a = 0; a < ix->k && ix->places > 0; a++)
        if ((status = check_axis(c, ix, a))) return status;
    return 0;
}

/* Byte offsets of n indexed blocks from position `begin` of B on. */
void indexed_places(const indexing *ix, int64_t begin, int64_t n, int64_t *at) {
    for (int a = 0; a < ix->k; a++) {
        const int64_t size = ix->size[a], step = ix->step[a], jump = ix->place[a].inner(0);
        ix->place[a].runs(begin, begin + n, [&](const int64_t(&offset)[1], int64_t length, int64_t p) {
            const char *v = ix->index[a].data + offset[0];
            for (int64_t i = 0; i < length; i++) {
                int64_t j = *reinterpret_cast<const int64_t *>(v + i * jump);
                int64_t place = (j + (j < 0 ? size : 0)) * step;
                if (a == 0) at[p - begin + i] = place;
                else at[p - begin + i] += place;
            }
            return true;
        });
    }
}

void plain_places(const walk<1> *w, int64_t begin, int64_t n, int64_t *at) {
    const int64_t jump = w->inner(0);
    w->runs(begin, begin + n, [&](const int64_t(&offset)[1], int64_t length, int64_t p) {
        for (int64_t i = 0; i < length; i++) at[p - begin + i] = offset[0] + i * jump;
        return true;
    });
}

/* Single elements along one axis, from or to a line: places need not be listed. */
bool picked_of(const ad_move *m, const indexing *ix, const walk<1> *plain, bool scatter, ad_picked *p) {
    if (ix->k != 1 || m->inner.count != 1 || ix->place[0].ndim > 1 || plain->ndim > 1) return false;
    char *const other = scatter ? const_cast<char *>(m->from) : m->to;
    *p = {scatter ? m->to : const_cast<char *>(m->from),
          ix->step[0],
          ix->size[0],
          ix->index[0].data,
          ix->place[0].inner(0),
          other,
          plain->inner(0)};
    return true;
}

/* Blocks at places begin..end of B, elements inner_begin..inner_end of each. plain: the array that is not indexed. */
void move_range(const ad_move *m, const indexing *ix, const walk<1> *plain, bool scatter, int64_t begin, int64_t end,
                int64_t inner_begin, int64_t inner_end) {
    int64_t indexed_at[AD_MOVE_BLOCK], plain_at[AD_MOVE_BLOCK];
    for (int64_t p = begin; p < end; p += AD_MOVE_BLOCK) {
        int64_t n = end - p < AD_MOVE_BLOCK ? end - p : AD_MOVE_BLOCK;
        indexed_places(ix, p, n, indexed_at);
        plain_places(plain, p, n, plain_at);
        if (scatter) ad_move_blocks(m, indexed_at, plain_at, n, inner_begin, inner_end);
        else ad_move_blocks(m, plain_at, indexed_at, n, inner_begin, inner_end);
    }
}

int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t at_least(int64_t a, int64_t b) { return a > b ? a : b; }

/* Gather in units of work, each a range of places and a range of the elements of every block. */
void gather_all(const ad_move *m, const indexing *ix, const walk<1> *plain) {
    ad_picked picked;
    if (picked_of(m, ix, plain, false, &picked))
        return ad_cpu_parallel(ix->places, MOVE_GRAIN, [&](int64_t b, int64_t e) { m->mover.gather(&picked, b, e); });
    const int64_t inner = m->inner.count, piece = at_most(inner, AD_MOVE_INNER);
    const int64_t chunks = (inner + piece - 1) / piece,
                  places = at_least(1, at_most(AD_MOVE_BLOCK, MOVE_GRAIN / piece));
    const int64_t units = (ix->places + places - 1) / places * chunks;
    ad_cpu_parallel(units, at_least(1, MOVE_GRAIN / (places * piece)), [&](int64_t begin, int64_t end) {
        for (int64_t u = begin; u < end; u++) {
            int64_t p = u / chunks * places, i = u % chunks * piece;
            move_range(m, ix, plain, false, p, at_most(p + places, ix->places), i, at_most(i + piece, inner));
        }
    });
}

/* Equal indices must take effect in order, so only the blocks themselves are divided. */
void scatter_all(const ad_move *m, const indexing *ix, const walk<1> *plain) {
    ad_picked picked;
    if (picked_of(m, ix, plain, true, &picked))
        return ad_cpu_in_order(ix->places, [&](int64_t b, int64_t e) { m->mover.scatter(&picked, b, e); });
    const int64_t inner = m->inner.count, grain = at_least(1, MOVE_GRAIN / at_least(1, ix->places));
    ad_cpu_parallel(inner, at_least(grain, 64), [&](int64_t begin, int64_t end) {
        ad_cpu_in_order(ix->places,
                        [&](int64_t first, int64_t last) { move_range(m, ix, plain, true, first, last, begin, end); });
    });
}

} // namespace

int ad_call_gather(ad_call *c) {
    array x, out;
    indexing ix;
    walk<1> plain;
    ad_move m;
    const int dtype = c->op->loop;
    int status;
    if ((status = ad_call_input(c, 0, dtype, &x)) || (status = indexing_init(c, 1, &x, &ix)) ||
        (status = ad_call_output(c, 0, dtype, &out)))
        return status;
    const int b = ix.index[0].ndim;
    for (int i = 0; i < b; i++) plain.add(out.shape[i], {out.stride[i]});
    for (int i = b; i < out.ndim; i++) m.inner.add(out.shape[i], {out.stride[i], x.stride[ix.k + i - b]});
    if (ix.places == 0 || m.inner.count == 0) return 0;
    ad_move_init(&m, dtype, AD_MOVE_SET, out.data, x.data, plain.inner(0), 0);
    c->run->wrote = true;
    gather_all(&m, &ix, &plain);
    return ad_call_finish(c, 0, &out);
}

int ad_call_scatter(ad_call *c) {
    array x, v;
    indexing ix;
    walk<1> plain;
    ad_move m;
    int status;
    const int64_t mode = c->op->param[0].as.i;
    x = view_of(c->op->operand[0]);
    if ((status = ad_call_input(c, 0, x.dtype, &v)) || (status = indexing_init(c, 1, &x, &ix))) return status;
    const int b = ix.index[0].ndim, ndim = b + x.ndim - ix.k;
    for (int i = 0; i < b; i++) plain.add(ix.index[0].shape[i], {broadcast_stride(v, i, ndim)});
    for (int i = b; i < ndim; i++)
        m.inner.add(x.shape[ix.k + i - b], {x.stride[ix.k + i - b], broadcast_stride(v, i, ndim)});
    if (ix.places == 0 || m.inner.count == 0) return 0;
    ad_move_init(&m, x.dtype, int(mode), x.data, v.data, plain.inner(0), 1);
    c->run->wrote = true;
    scatter_all(&m, &ix, &plain);
    return 0;
}
