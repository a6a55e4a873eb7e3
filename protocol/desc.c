/* Views, broadcasting and extents of array descriptions: see desc.h. */
#include "protocol/desc.h"
#include "protocol/size.h"
#include "protocol/tables.h"
#include "protocol/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef __int128 wide;

int ad__shape_count(int ndim, const int64_t *shape, int dtype, int64_t *count, ad_fault *fault) {
    const int64_t itemsize = ad__dtypes[dtype].size;
    int64_t bytes = itemsize;
    bool empty = false;

    if (ndim < 0 || ndim > AD_MAX_NDIM)
        return ad__fault(fault, AD_E_VALUE, "maximum supported dimension for an ndarray is currently %d, found %d",
                         AD_MAX_NDIM, ndim);
    for (int i = 0; i < ndim; i++)
        if (shape[i] < 0) return ad__fault(fault, AD_E_VALUE, "negative dimensions are not allowed");
    for (int i = 0; i < ndim; i++) {
        if (shape[i] == 0) empty = true;
        else bytes = ad__size_product(bytes, shape[i]);
    }
    if (bytes > AD_MAX_BYTES)
        return ad__fault(fault, AD_E_VALUE,
                         "array is too big; `arr.size * arr.dtype.itemsize` is larger than the maximum possible size.");
    *count = empty ? 0 : bytes / itemsize;
    return 0;
}

int64_t ad__desc_count(const ad_desc *d) {
    int64_t count = 1;

    for (int i = 0; i < d->ndim; i++) count = ad__size_product(count, d->shape[i]);
    return count;
}

void ad__strides_contiguous(int ndim, const int64_t *shape, int64_t itemsize, int64_t *strides) {
    /* Unsigned, as an unchecked shape may wrap here; the extent of such a view is refused later. */
    uint64_t stride = (uint64_t)itemsize;

    for (int i = ndim - 1; i >= 0; i--) {
        strides[i] = shape[i] == 1 ? 0 : (int64_t)stride;
        if (shape[i] > 1) stride *= (uint64_t)shape[i];
    }
}

static bool has_no_elements(const ad_desc *d) {
    for (int i = 0; i < d->ndim; i++)
        if (d->shape[i] == 0) return true;
    return false;
}

/* Tell whether the dimensions follow each other without gaps, from `first` on by `step`. */
static bool is_packed(const ad_desc *d, int first, int step) {
    uint64_t stride = ad__dtypes[d->dtype].size;

    for (int i = first, left = d->ndim; left > 0; i += step, left--) {
        if (d->shape[i] == 1) continue;
        if ((uint64_t)d->strides[i] != stride) return has_no_elements(d);
        stride *= (uint64_t)d->shape[i];
    }
    return true;
}

bool ad__is_contiguous(const ad_desc *d) { return is_packed(d, d->ndim - 1, -1); }
bool ad__is_f_contiguous(const ad_desc *d) { return is_packed(d, 0, 1); }

int ad__desc_extent(const ad_desc *d, int64_t *low, int64_t *high, ad_fault *fault) {
    wide from = d->offset, to = (wide)d->offset + ad__dtypes[d->dtype].size;

    if (d->offset < 0) return ad__fault(fault, AD_E_EXTENT, "the offset %" PRId64 " is negative", d->offset);
    if (has_no_elements(d)) {
        *low = *high = d->offset;
        return 0;
    }
    for (int i = 0; i < d->ndim; i++) {
        wide steps = d->shape[i] == 1 ? 1 : (wide)d->shape[i] - 1;
        wide reach = steps * d->strides[i]; /* below 2^126 */
        if (reach < 0) from += reach;
        else to += reach;
        /* Both bounds only move outwards, so that one outside stays outside. */
        if (from < 0 || to > INT64_MAX) return ad__fault(fault, AD_E_EXTENT, "the array reaches beyond any buffer");
    }
    if (to > INT64_MAX) return ad__fault(fault, AD_E_EXTENT, "the array reaches beyond any buffer");
    *low = (int64_t)from;
    *high = (int64_t)to;
    return 0;
}

static int check_alignment(const ad_desc *d, const char *name, ad_fault *fault) {
    const ad_dtype_row *row = &ad__dtypes[d->dtype];
    const int64_t alignment = row->kind == 'c' ? row->size / 2 : row->size;

    if (d->offset % alignment != 0)
        return ad__fault(fault, AD_E_EXTENT, "%s: the offset %" PRId64 " is not aligned for %s", name, d->offset,
                         row->name);
    for (int i = 0; i < d->ndim; i++)
        if (d->shape[i] > 1 && d->strides[i] % alignment != 0)
            return ad__fault(fault, AD_E_EXTENT, "%s: the stride %" PRId64 " is not aligned for %s", name,
                             d->strides[i], row->name);
    return 0;
}

/* Tell whether a view is valid, by arithmetic of 64 bits. False for empty views and for overflow, too, which the full
 * check decides. */
static bool is_simple_valid_view(const ad_desc *d, int64_t size) {
    const ad_dtype_row *row = &ad__dtypes[d->dtype];
    const int64_t unaligned = (row->kind == 'c' ? row->size / 2 : row->size) - 1;
    int64_t bytes = row->size, low, high, bits, reach;

    if (d->ndim > AD_MAX_NDIM || d->offset < 0) return false;
    low = high = bits = d->offset;
    for (int i = 0; i < d->ndim; i++) {
        const int64_t n = d->shape[i], stride = d->strides[i];
        if (n <= 0 || __builtin_mul_overflow(bytes, n, &bytes)) return false;
        if (__builtin_mul_overflow(n > 1 ? n - 1 : 1, stride, &reach)) return false;
        if (reach < 0 ? __builtin_add_overflow(low, reach, &low) : __builtin_add_overflow(high, reach, &high))
            return false;
        if (n > 1) bits |= stride;
    }
    return bytes <= AD_MAX_BYTES && low >= 0 && high <= size - row->size && (bits & unaligned) == 0;
}

int ad__desc_check(const ad_desc *d, int64_t size, const char *name, ad_fault *fault) {
    int64_t count, low = 0, high = 0;
    ad_fault why;

    if (d->dtype >= AD_NDTYPE) return ad__fault(fault, AD_E_TYPE, "%s: no dtype has the number %d", name, d->dtype);
    if (is_simple_valid_view(d, size)) return 0;
    if (ad__shape_count(d->ndim, d->shape, d->dtype, &count, &why))
        return ad__fault(fault, why.code, "%s: %s", name, why.text);
    if (ad__desc_extent(d, &low, &high, NULL) || high > size)
        return ad__fault(fault, AD_E_EXTENT, "%s: the array reaches beyond its buffer of %" PRId64 " bytes", name,
                         size);
    return check_alignment(d, name, fault);
}

static int report_no_broadcast(int n, const ad_operand *const *operand, ad_fault *fault) {
    char shapes[200] = "";
    size_t used = 0;

    for (int k = 0; k < n; k++) { /* each shape may use an equal part of the space that is left */
        ad_text_buffer text = {shapes + used, (sizeof shapes - used) / (size_t)(n - k), 0};
        ad__text_shape(&text, operand[k]->is_scalar ? 0 : operand[k]->desc.ndim, operand[k]->desc.shape);
        ad__text_add(&text, " ");
        used += text.used;
    }
    return ad__fault(fault, AD_E_VALUE, "operands could not be broadcast together with shapes %s", shapes);
}

int ad__broadcast(int n, const ad_operand *const *operand, int *ndim, int64_t *shape, ad_fault *fault) {
    int64_t joint[AD_MAX_NDIM];
    int most = 0;

    for (int k = 0; k < n; k++)
        if (!operand[k]->is_scalar && operand[k]->desc.ndim > most) most = operand[k]->desc.ndim;
    for (int i = 0; i < most; i++) joint[i] = 1;
    for (int k = 0; k < n; k++) {
        const ad_desc *d = &operand[k]->desc;
        if (operand[k]->is_scalar) continue;
        for (int i = 0; i < d->ndim; i++) {
            int64_t *dim = &joint[most - d->ndim + i];
            if (*dim == 1) *dim = d->shape[i];
            else if (d->shape[i] != 1 && d->shape[i] != *dim) return report_no_broadcast(n, operand, fault);
        }
    }
    *ndim = most;
    if (most > 0) memcpy(shape, joint, (size_t)most * sizeof *shape);
    return 0;
}

static int report_no_broadcast_to(const ad_desc *d, int ndim, const int64_t *shape, ad_fault *fault) {
    char from[100], to[100];
    ad_text_buffer a = {from, sizeof from, 0}, b = {to, sizeof to, 0};

    ad__text_shape(&a, d->ndim, d->shape);
    ad__text_shape(&b, ndim, shape);
    return ad__fault(fault, AD_E_VALUE, "could not broadcast input array from shape %s into shape %s", from, to);
}

int ad__broadcast_to(const ad_desc *d, int ndim, const int64_t *shape, int64_t *strides, ad_desc *out,
                     ad_fault *fault) {
    const int lead = ndim - d->ndim;
    int64_t own[AD_MAX_NDIM];

    if (lead < 0 || ndim > AD_MAX_NDIM) return report_no_broadcast_to(d, ndim, shape, fault);
    for (int i = 0; i < ndim; i++) {
        if (i >= lead && d->shape[i - lead] == shape[i]) own[i] = shape[i] == 1 ? 0 : d->strides[i - lead];
        else if (i < lead || d->shape[i - lead] == 1) own[i] = 0;
        else return report_no_broadcast_to(d, ndim, shape, fault);
    }
    if (ndim > 0) memcpy(strides, own, (size_t)ndim * sizeof *strides);
    *out = *d;
    out->ndim = (uint8_t)ndim;
    out->shape = shape;
    out->strides = strides;
    return 0;
}

/* Drop dimensions of size 1 and join neighbours that one stride walks. Returns how many are left. */
static int merge_dimensions(const ad_desc *d, int64_t *shape, int64_t *strides) {
    int n = 0;

    for (int i = 0; i < d->ndim; i++) {
        int64_t reach;
        if (d->shape[i] == 1) continue;
        if (n > 0 && !__builtin_mul_overflow(d->strides[i], d->shape[i], &reach) && strides[n - 1] == reach) {
            shape[n - 1] *= d->shape[i];
            strides[n - 1] = d->strides[i];
        } else {
            shape[n] = d->shape[i];
            strides[n++] = d->strides[i];
        }
    }
    return n;
}

bool ad__reshape_strides(const ad_desc *d, int ndim, const int64_t *shape, int64_t *strides) {
    int64_t from[AD_MAX_NDIM], step[AD_MAX_NDIM], before, after;
    int group;

    if (ad__shape_count(d->ndim, d->shape, d->dtype, &before, NULL) ||
        ad__shape_count(ndim, shape, d->dtype, &after, NULL) || before != after)
        return false;
    if (before == 0) {
        ad__strides_contiguous(ndim, shape, ad__dtypes[d->dtype].size, strides);
        return true;
    }
    /* The old dimensions must be cut into the new ones exactly, from the last to the first. */
    group = merge_dimensions(d, from, step);
    int64_t left = 1, stride = ad__dtypes[d->dtype].size;
    int last = -1; /* the last new dimension that is longer than 1 */
    for (int i = ndim - 1; i >= 0; i--) {
        strides[i] = stride;
        if (shape[i] == 1) continue;
        if (last < 0) last = i;
        if (left == 1) {
            group--; /* the counts are equal, so that a group is left */
            left = from[group];
            stride = step[group];
        }
        if (left % shape[i] != 0) return false;
        strides[i] = stride;
        stride = (int64_t)((uint64_t)stride * (uint64_t)shape[i]);
        left /= shape[i];
    }
    /* Nothing is ever multiplied by the strides of dimensions of 1; they are NumPy's. */
    for (int i = last + 1; last >= 0 && i < ndim; i++) strides[i] = strides[last];
    return true;
}

bool ad__desc_overlap(const ad_desc *a, const ad_desc *b) {
    int64_t low_a, high_a, low_b, high_b;

    if (a->buffer != b->buffer || has_no_elements(a) || has_no_elements(b)) return false;
    if (ad__desc_extent(a, &low_a, &high_a, NULL) || ad__desc_extent(b, &low_b, &high_b, NULL)) return true;
    return low_a < high_b && low_b < high_a;
}

bool ad__desc_same(const ad_desc *a, const ad_desc *b) {
    if (a->buffer != b->buffer || a->offset != b->offset || a->dtype != b->dtype || a->ndim != b->ndim) return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->shape[i] != b->shape[i] || (a->shape[i] > 1 && a->strides[i] != b->strides[i])) return false;
    return true;
}

void ad__strides_walked(int ndim, const int64_t *shape, const int64_t *strides, int64_t *walked) {
    for (int i = 0; i < ndim; i++) walked[i] = shape[i] == 1 ? 0 : strides[i];
}
