/* sort and argsort on the device. Long rows of real types are sorted by radix one after the other, short ones together
 * by merging. Complex numbers are sorted by indices and keys. Elements of equal keys keep their order throughout. */
#include "kernels/cuda/call/sort/sort.h"

#include <algorithm>

#include "kernels/cuda/backend/device.h"

namespace {

using namespace ad;

constexpr int64_t GROUP = int64_t(1) << 26; /* elements of short rows that are sorted together */
constexpr int64_t LONG_ROW = 1 << 16;       /* elements from which one of few rows is sorted by radix */
constexpr int64_t LONGER_ROW = 1 << 18;     /* elements from which one of many rows is */
constexpr int64_t FEW_ROWS = 8;
/* Elements that one radix sort takes; longer rows are merged from such runs. */
constexpr int64_t RUN = AD_RADIX_MOST / AD_MERGE_TILE * AD_MERGE_TILE;

/* Rows to sort: packed, along the last axis. */
struct rows {
    ad_call *c;
    int dtype;
    const char *x;
    char *out; /* values, or int64 indices */
    int64_t count, n;
    char *values;  /* where the elements that indices stand for go as well; NULL: nowhere */
    int64_t first; /* number that indices begin with */
    bool by_radix() const { return n >= LONGER_ROW || (n >= LONG_ROW && count <= FEW_ROWS); }
};

template <class T> int workspace(ad_call *c, uint64_t bytes, T **out) {
    *out = static_cast<T *>(ad_call_workspace(c, bytes));
    return !*out ? AD_E_MEMORY : 0;
}

/* ---- values ---- */

struct radix_row {
    ad_radix_values *sort;
    bool carried; /* as another type */
};

radix_row radix_of(int dtype) {
    switch (dtype) {
    case AD_BOOL:
    case AD_INT8: return {ad_cuda_radix_uint8, true};
    case AD_UINT8: return {ad_cuda_radix_uint8, false};
    case AD_INT16: return {ad_cuda_radix_int16, false};
    case AD_UINT16: return {ad_cuda_radix_int16, true};
    case AD_INT32: return {ad_cuda_radix_int32, false};
    case AD_UINT32: return {ad_cuda_radix_int32, true};
    case AD_INT64: return {ad_cuda_radix_int64, false};
    case AD_UINT64: return {ad_cuda_radix_int64, true};
    case AD_FLOAT16: return {ad_cuda_radix_float16, false};
    case AD_BFLOAT16: return {ad_cuda_radix_bfloat16, false};
    case AD_FLOAT32: return {ad_cuda_radix_float32, false};
    default: return {ad_cuda_radix_float64, false};
    }
}

/* Sorted runs of values into one row, as keys. */
int merge_values(const rows *r, char *values) {
    ad_merge m = {{}, {}, 0, r->dtype, 1, r->n};
    int status;
    for (int i = 0; i < 2; i++)
        if ((status = workspace(r->c, uint64_t(r->n * ad_cuda_key_size(r->dtype)), &m.keys[i]))) return status;
    if ((status = ad_cuda_keys(r->c, r->dtype, AD_KEYS_VALUES, values, r->n, m.keys[0])) ||
        (status = ad_cuda_merge_runs(r->c, &m, RUN)))
        return status;
    return ad_cuda_from_keys(r->c, r->dtype, m.keys[m.at], r->n, values);
}

int radix_values(const rows *r) {
    const radix_row radix = radix_of(r->dtype);
    const int64_t size = itemsize(r->dtype), all = r->count * r->n;
    const int most = int(std::min(r->n, RUN));
    const char *from = r->x;
    char *memory;
    size_t wanted = 0;
    int status = ad_cuda_status(radix.sort(nullptr, &wanted, nullptr, nullptr, most, r->c->stream->cuda), "sorting",
                                r->c->fault);
    if (status || (status = workspace(r->c, wanted, &memory))) return status;
    if (radix.carried) {
        char *carried;
        if ((status = workspace(r->c, uint64_t(all * size), &carried)) ||
            (status = ad_cuda_carry(r->c, r->dtype, r->x, all, carried, false)))
            return status;
        from = carried;
    }
    for (int64_t row = 0; row < r->count; row++)
        for (int64_t at = 0; at < r->n; at += RUN) {
            const int64_t offset = (row * r->n + at) * size;
            size_t room = wanted;
            const cudaError_t error = radix.sort(memory, &room, from + offset, r->out + offset,
                                                 int(std::min(r->n - at, RUN)), r->c->stream->cuda);
            if ((status = ad_cuda_status(error, "sorting", r->c->fault))) return status;
        }
    if (radix.carried && (status = ad_cuda_carry(r->c, r->dtype, r->out, all, r->out, true))) return status;
    for (int64_t row = 0; row < r->count && r->n > RUN; row++)
        if ((status = merge_values(r, r->out + row * r->n * size))) return status;
    return 0;
}

int merged_values(const rows *r) {
    const int64_t size = itemsize(r->dtype), group = std::min(r->count, std::max<int64_t>(1, GROUP / r->n));
    ad_merge m = {{}, {}, 0, r->dtype, group, r->n};
    int status;
    for (int i = 0; i < 2; i++)
        if ((status = workspace(r->c, uint64_t(group * r->n * ad_cuda_key_size(r->dtype)), &m.keys[i]))) return status;
    for (int64_t row = 0; row < r->count; row += group) {
        m.rows = std::min(group, r->count - row);
        const int64_t offset = row * r->n * size, all = m.rows * r->n;
        if ((status = ad_cuda_keys(r->c, r->dtype, AD_KEYS_VALUES, r->x + offset, all, m.keys[m.at])) ||
            (status = ad_cuda_sort_tiles(r->c, &m, false)) || (status = ad_cuda_merge_runs(r->c, &m, AD_MERGE_TILE)) ||
            (status = ad_cuda_from_keys(r->c, r->dtype, m.keys[m.at], all, r->out + offset)))
            return status;
    }
    return 0;
}

/* ---- indices ---- */

/* Buffers that rows of keys and indices are sorted in, some rows at a time. */
struct indexing {
    const rows *r;
    ad_merge m;
    char *memory; /* of the radix sort */
    size_t wanted;
};

bool has_second(int dtype) { return dtype == AD_COMPLEX128; }

cudaError_t radix_pairs(const indexing *ix, void *memory, size_t *size, ad_radix_pairs *p, int n) {
    const cudaStream_t stream = ix->r->c->stream->cuda;
    if (ad_cuda_key_size(ix->r->dtype) == 4) return ad_cuda_radix_pairs32(memory, size, p, n, stream);
    return ad_cuda_radix_pairs64(memory, size, p, n, stream);
}

int key_end(int dtype) {
    const int bits = int(8 * itemsize(dtype));
    return dtype == AD_BOOL ? 1 : std::min(bits, 8 * ad_cuda_key_size(dtype));
}

int indexing_init(indexing *ix, const rows *r) {
    const bool radix = r->by_radix();
    const int64_t group = radix ? 1 : std::min(r->count, std::max<int64_t>(1, GROUP / r->n)), n = group * r->n;
    ix->r = r;
    ix->m = {{}, {}, 0, r->dtype, group, r->n};
    ix->memory = nullptr;
    ix->wanted = 0;
    int status;
    for (int i = 0; i < 2; i++)
        if ((status = workspace(r->c, uint64_t(n * ad_cuda_key_size(r->dtype)), &ix->m.keys[i])) ||
            (status = workspace(r->c, uint64_t(n) * 4, &ix->m.index[i])))
            return status;
    if (!radix) return 0;
    ad_radix_pairs p = {{}, {}, 0, key_end(r->dtype)};
    status =
        ad_cuda_status(radix_pairs(ix, nullptr, &ix->wanted, &p, int(std::min(r->n, RUN))), "sorting", r->c->fault);
    return status ? status : workspace(r->c, ix->wanted, &ix->memory);
}

/* A run that has ended up in the other buffer than those before it. */
int move_run(ad_call *c, const ad_radix_pairs *p, int to, int64_t n, int64_t size) {
    const cudaStream_t stream = c->stream->cuda;
    cudaError_t error =
        cudaMemcpyAsync(p->keys[to], p->keys[1 - to], size_t(n * size), cudaMemcpyDeviceToDevice, stream);
    if (error == cudaSuccess)
        error = cudaMemcpyAsync(p->index[to], p->index[1 - to], size_t(n) * 4, cudaMemcpyDeviceToDevice, stream);
    return ad_cuda_status(error, "sorting", c->fault);
}

int radix_runs(indexing *ix) {
    ad_merge *m = &ix->m;
    const int64_t size = ad_cuda_key_size(m->dtype);
    int at = m->at;
    for (int64_t first = 0; first < m->n; first += RUN) {
        ad_radix_pairs p = {{}, {}, m->at, key_end(m->dtype)};
        for (int i = 0; i < 2; i++) {
            p.keys[i] = static_cast<char *>(m->keys[i]) + first * size;
            p.index[i] = m->index[i] + first;
        }
        size_t room = ix->wanted;
        const int64_t n = std::min(m->n - first, RUN);
        int status = ad_cuda_status(radix_pairs(ix, ix->memory, &room, &p, int(n)), "sorting", ix->r->c->fault);
        if (status) return status;
        if (first == 0) at = p.at;
        else if (p.at != at && (status = move_run(ix->r->c, &p, at, n, size))) return status;
    }
    m->at = at;
    return ad_cuda_merge_runs(ix->r->c, m, RUN);
}

/* Sort by the keys that are there, the indices too unless they are to be counted up. */
int sort_keys(indexing *ix, bool count_up) {
    ad_call *c = ix->r->c;
    int status;
    if (!ix->memory)
        return (status = ad_cuda_sort_tiles(c, &ix->m, count_up)) ? status
                                                                  : ad_cuda_merge_runs(c, &ix->m, AD_MERGE_TILE);
    if (count_up && (status = ad_cuda_count_up(c, ix->m.index[ix->m.at], ix->m.n, 0))) return status;
    return radix_runs(ix);
}

/* Indices of some rows into ix->m.index[ix->m.at]. A stable sort by the second keys, then one by the first. */
int sort_indices(indexing *ix, const char *x) {
    ad_call *c = ix->r->c;
    ad_merge *m = &ix->m;
    const int64_t all = m->rows * m->n;
    int status;
    if (has_second(m->dtype)) {
        if ((status = ad_cuda_keys(c, m->dtype, AD_KEYS_SECOND, x, all, m->keys[m->at])) ||
            (status = sort_keys(ix, true)) ||
            (status = ad_cuda_keys(c, m->dtype, AD_KEYS_EQUAL, x, all, m->keys[1 - m->at])) ||
            (status = ad_cuda_pick(c, 8, static_cast<char *>(m->keys[1 - m->at]), m->index[m->at], m->rows, m->n,
                                   static_cast<char *>(m->keys[m->at]))))
            return status;
        return sort_keys(ix, false);
    }
    status = ad_cuda_keys(c, m->dtype, AD_KEYS_EQUAL, x, all, m->keys[m->at]);
    return status ? status : sort_keys(ix, true);
}

/* Write sorted elements: keys are as good as real ones. */
int write_elements(const indexing *ix, const char *x, int64_t n, char *to) {
    const ad_merge *m = &ix->m;
    if (m->dtype != AD_COMPLEX64 && m->dtype != AD_COMPLEX128)
        return ad_cuda_from_keys(ix->r->c, m->dtype, m->keys[m->at], n, to);
    return ad_cuda_pick(ix->r->c, int(itemsize(m->dtype)), x, m->index[m->at], m->rows, m->n, to);
}

/* Indices as int64, or the elements they stand for. */
int sorted_indices(const rows *r, bool elements) {
    const int size = int(itemsize(r->dtype));
    indexing ix;
    if (r->n > int64_t(UINT32_MAX))
        return ad__fault(r->c->fault, AD_E_UNSUPPORTED,
                         "argsort: an axis of %lld elements is too long, the most are %lld", (long long)r->n,
                         (long long)UINT32_MAX);
    int status = indexing_init(&ix, r);
    if (status) return status;
    const int64_t group = ix.m.rows;
    for (int64_t row = 0; row < r->count; row += group) {
        ix.m.rows = std::min(group, r->count - row);
        const int64_t first = row * r->n, all = ix.m.rows * r->n;
        if ((status = sort_indices(&ix, r->x + first * size))) return status;
        const uint32_t *index = ix.m.index[ix.m.at];
        if (elements)
            status = ad_cuda_pick(r->c, size, r->x + first * size, index, ix.m.rows, r->n, r->out + first * size);
        else status = ad_cuda_widen(r->c, index, all, r->first, reinterpret_cast<int64_t *>(r->out) + first);
        if (!status && r->values) status = write_elements(&ix, r->x + first * size, all, r->values + first * size);
        if (status) return status;
    }
    return 0;
}

/* ---- both ---- */

array axis_last(const array *a, int axis) {
    array r = *a;
    for (int i = axis; i + 1 < a->ndim; i++) {
        r.shape[i] = a->shape[i + 1];
        r.stride[i] = a->stride[i + 1];
    }
    r.shape[a->ndim - 1] = a->shape[axis];
    r.stride[a->ndim - 1] = a->stride[axis];
    return r;
}

int sort_rows(const rows *r, bool indices) {
    if (indices || r->dtype == AD_COMPLEX64 || r->dtype == AD_COMPLEX128) return sorted_indices(r, !indices);
    return r->by_radix() ? radix_values(r) : merged_values(r);
}

bool is_aligned(const array &a) { return reinterpret_cast<uintptr_t>(a.data) % uintptr_t(itemsize(a.dtype)) == 0; }

int pack_input(ad_call *c, int dtype, array *x) {
    return is_packed(*x) && is_aligned(*x) ? 0 : ad_call_packed(c, x, dtype, 0, x);
}

/* Put an output into scratch memory, unless it is packed where it lies. */
int make_room(ad_call *c, array *out) {
    if (is_packed(*out) && is_aligned(*out)) return 0;
    const int64_t size = pack(out);
    return workspace(c, uint64_t(size), &out->data);
}

/* Elements from which a row is partitioned without sorting it: sorting fewer takes no longer. */
constexpr int64_t SELECTED_ROW = 1 << 20, SELECTED_INDICES = 1 << 18;

/* Partition rows at kth; or sort them, kth negative or not. */
int arrange_rows(const rows *r, bool indices, int64_t kth) {
    const bool real = r->dtype != AD_COMPLEX64 && r->dtype != AD_COMPLEX128;
    const int64_t least = indices ? SELECTED_INDICES : SELECTED_ROW;
    if (kth < 0 || !real || r->n < least || r->n > AD_SELECT_MOST) return sort_rows(r, indices);
    const ad_selection s = {r->dtype, indices, r->x, r->out, r->count, r->n, kth};
    return ad_cuda_select(r->c, &s);
}

/* kth: the place at which rows are partitioned; -1: they are sorted. */
int sort_call(ad_call *c, bool indices, int64_t kth) {
    array x, out;
    const int dtype = c->op->loop, axis = int(c->op->param[0].as.i), result = indices ? AD_INT64 : dtype;
    int status;
    if ((status = ad_call_input(c, 0, dtype, &x)) || (status = ad_call_output(c, 0, result, &out))) return status;
    if (count(out) == 0) return 0;
    c->run->wrote = true;
    array from = axis_last(&x, axis), to = axis_last(&out, axis), sorted = to;
    if ((status = pack_input(c, dtype, &from)) || (status = make_room(c, &sorted))) return status;
    const int64_t n = from.shape[from.ndim - 1];
    const rows r = {c, dtype, from.data, sorted.data, count(from) / n, n, nullptr, 0};
    if ((status = arrange_rows(&r, indices, kth))) return status;
    if (sorted.data != to.data && (status = ad_call_copy(c, &to, &sorted))) return status;
    return ad_call_finish(c, 0, &out);
}

} // namespace

int ad_call_sort_places(ad_call *c) {
    array x, out[2], made[2];
    const int dtype = c->op->loop;
    int status = ad_call_input(c, 0, dtype, &x);
    if (!status) status = pack_input(c, dtype, &x);
    for (int i = 0; i < 2 && !status; i++) {
        status = ad_call_output(c, i, i ? int(AD_INT64) : dtype, &out[i]);
        made[i] = out[i];
        if (!status && count(out[0])) status = make_room(c, &made[i]);
    }
    if (status || count(out[0]) == 0) return status;
    c->run->wrote = true;
    const rows r = {c, dtype, x.data, made[1].data, 1, x.shape[0], made[0].data, c->op->param[0].as.i};
    status = sort_rows(&r, true);
    for (int i = 0; i < 2 && !status; i++) {
        if (made[i].data != out[i].data) status = ad_call_copy(c, &out[i], &made[i]);
        if (!status) status = ad_call_finish(c, i, &out[i]);
    }
    return status;
}

int ad_call_sort(ad_call *c) { return sort_call(c, false, -1); }
int ad_call_argsort(ad_call *c) { return sort_call(c, true, -1); }
int ad_call_partition(ad_call *c) { return sort_call(c, false, c->op->param[1].as.i); }
int ad_call_argpartition(ad_call *c) { return sort_call(c, true, c->op->param[1].as.i); }
