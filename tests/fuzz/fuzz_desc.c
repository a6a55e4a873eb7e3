/* Fuzzes array descriptions. The extent is compared with an oracle that adds saturated numbers of 128 bits corner by
 * corner. The other functions must have properties that hold for all. */
#include "protocol/desc.h"
#include "protocol/tables.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef __int128 wide;

/* Far outside of any buffer, and small enough for sums of it. */
static const wide FAR = (wide)1 << 100;

static wide clamp_far(wide x) { return x > FAR ? FAR : x < -FAR ? -FAR : x; }

/* The offset of the last element along each dimension, by sign. */
static bool find_extent(const ad_desc *d, int64_t *low, int64_t *high) {
    wide below = 0, above = ad__dtypes[d->dtype].size;

    for (int i = d->ndim - 1; i >= 0; i--) {
        wide last = d->shape[i] - (wide)1;
        if (d->shape[i] == 0) {
            *low = *high = d->offset;
            return d->offset >= 0;
        }
        if (last == 0) last = 1;
        wide corner = clamp_far(last * d->strides[i]);
        if (corner < 0) below = clamp_far(below + corner);
        if (corner > 0) above = clamp_far(above + corner);
    }
    if (d->offset < 0 || d->offset + below < 0 || d->offset + above > INT64_MAX) return false;
    *low = (int64_t)(d->offset + below);
    *high = (int64_t)(d->offset + above);
    return true;
}

typedef struct input {
    const uint8_t *data;
    size_t size;
} input;

static uint8_t take_byte(input *in) {
    if (in->size == 0) return 0;
    in->size--;
    return *in->data++;
}

/* A number of any size, most often a small one. */
static int64_t take_number(input *in) {
    const uint8_t head = take_byte(in);
    uint64_t value = 0;

    if (head < 0xc0) return (int8_t)(head - 0x40);
    for (int i = 0; i < 8 && i <= (head & 7); i++) value = value << 8 | take_byte(in);
    return (int64_t)(head & 8 ? ~value : head & 16 ? value << 32 : value);
}

static ad_desc make_desc(input *in, int64_t *shape, int64_t *strides) {
    ad_desc d = {.buffer = 1 + (take_byte(in) & 1), .shape = shape, .strides = strides, .form = AD_VIEW};

    d.dtype = take_byte(in) % AD_NDTYPE;
    d.ndim = take_byte(in) % (AD_MAX_NDIM + 1);
    d.offset = take_number(in);
    for (int i = 0; i < d.ndim; i++) {
        shape[i] = take_number(in);
        if (shape[i] < 0) shape[i] = shape[i] == INT64_MIN ? 0 : -shape[i]; /* readers let no negative one pass */
        strides[i] = take_number(in);
    }
    return d;
}

static void check_extent(const ad_desc *d) {
    int64_t low = -1, high = -1, low2 = -1, high2 = -1;
    bool good = find_extent(d, &low, &high);

    if (ad__desc_extent(d, &low2, &high2, NULL) != (good ? 0 : AD_E_EXTENT)) abort();
    if (good && (low != low2 || high != high2)) abort();
    if (good && high > 0 && ad__desc_check(d, high - 1, "x", NULL) == 0) abort();
    if (!good && ad__desc_check(d, INT64_MAX, "x", NULL) == 0) abort();
}

static bool is_valid(const ad_desc *d) {
    int64_t count;

    return ad__shape_count(d->ndim, d->shape, d->dtype, &count, NULL) == 0 &&
           ad__desc_check(d, INT64_MAX, "x", NULL) == 0;
}

/* A row-major array seen as another shape: the same bytes in the same order. */
static void check_reshape(const ad_desc *d, const ad_desc *other) {
    int64_t strides[AD_MAX_NDIM], low, high, low2, high2;
    ad_desc r = *other;

    if (!ad__reshape_strides(d, other->ndim, other->shape, strides)) return;
    ad__strides_walked(other->ndim, other->shape, strides, strides);
    r.dtype = d->dtype;
    r.offset = d->offset;
    r.strides = strides;
    if (ad__is_contiguous(d) && !ad__is_contiguous(&r)) abort();
    if (!is_valid(d) || ad__desc_extent(d, &low, &high, NULL)) return;
    for (int i = 0; i < d->ndim; i++)
        if (d->shape[i] <= 1) return; /* their strides count in an extent, and are gone */
    if (ad__desc_extent(&r, &low2, &high2, NULL) || low2 != low || high2 != high) abort();
}

static void check_pair(const ad_desc *a, const ad_desc *b) {
    const ad_operand x = {.desc = *a}, y = {.desc = *b}, *both[2] = {&x, &y};
    int64_t shape[AD_MAX_NDIM], strides[AD_MAX_NDIM];
    ad_desc view;
    int ndim;

    if (ad__desc_overlap(a, b) != ad__desc_overlap(b, a) || ad__desc_same(a, b) != ad__desc_same(b, a)) abort();
    if (ad__broadcast(2, both, &ndim, shape, NULL) == 0 && (ad__broadcast_to(a, ndim, shape, strides, &view, NULL) ||
                                                            ad__broadcast_to(b, ndim, shape, strides, &view, NULL)))
        abort();
    check_reshape(a, b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int64_t shape[2][AD_MAX_NDIM], strides[2][AD_MAX_NDIM];
    input in = {data, size};
    ad_desc a = make_desc(&in, shape[0], strides[0]), b = make_desc(&in, shape[1], strides[1]);

    check_extent(&a);
    check_extent(&b);
    check_pair(&a, &b);
    ad__strides_contiguous(a.ndim, a.shape, ad__dtypes[a.dtype].size, strides[0]);
    a.offset = 0;
    check_extent(&a);
    check_pair(&a, &b);
    return 0;
}
