#include <criterion/criterion.h>
#include <string.h>

#include "protocol/desc.h"
#include "protocol/size.h"
#include "protocol/text.h"

#define SHAPE(...) \
    (sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }

/* A view of float32 elements in buffer 1. */
static ad_desc make_view(int64_t offset, size_t ndim, const int64_t *shape, const int64_t *strides) {
    return (ad_desc){1, offset, shape, strides, AD_FLOAT32, (uint8_t)ndim, AD_VIEW};
}

static bool is_same(const int64_t *a, size_t n, const int64_t *b) { return memcmp(a, b, n * sizeof *a) == 0; }

Test(desc, count) {
    int64_t n = -1;

    ad_fault fault;

    cr_expect(ad__shape_count(0, NULL, AD_FLOAT64, &n, NULL) == 0 && n == 1);
    cr_expect(ad__shape_count(SHAPE(2, 3, 4), AD_FLOAT64, &n, NULL) == 0 && n == 24);
    cr_expect(ad__shape_count(SHAPE(2, 0, 4), AD_FLOAT64, &n, NULL) == 0 && n == 0);
    cr_expect(ad__shape_count(SHAPE(AD_MAX_BYTES), AD_INT8, &n, NULL) == 0 && n == AD_MAX_BYTES);
    cr_expect(ad__shape_count(SHAPE(AD_MAX_BYTES / 16, 1), AD_COMPLEX128, &n, NULL) == 0 && n == AD_MAX_BYTES / 16);
    n = 7;
    cr_expect_eq(ad__shape_count(SHAPE(AD_MAX_BYTES + 1), AD_INT8, &n, &fault), AD_E_VALUE);
    cr_expect(strstr(fault.text, "array is too big; `arr.size * arr.dtype.itemsize` is larger") == fault.text);
    cr_expect_eq(ad__shape_count(SHAPE(AD_MAX_BYTES / 16 + 1), AD_COMPLEX128, &n, NULL), AD_E_VALUE);
    cr_expect_eq(ad__shape_count(SHAPE(INT64_MAX, INT64_MAX), AD_INT8, &n, NULL), AD_E_VALUE);
    /* NumPy's rule: the other dimensions must fit even beside a 0. */
    cr_expect_eq(ad__shape_count(SHAPE(0, INT64_MAX, 2), AD_INT8, &n, NULL), AD_E_VALUE);
    cr_expect_eq(ad__shape_count(SHAPE(0, -1), AD_INT8, &n, &fault), AD_E_VALUE);
    cr_expect_str_eq(fault.text, "negative dimensions are not allowed");
    cr_expect_eq(ad__shape_count(33, (int64_t[33]){0}, AD_INT8, &n, &fault), AD_E_VALUE);
    cr_expect_str_eq(fault.text, "maximum supported dimension for an ndarray is currently 32, found 33");
    cr_expect_eq(n, 7);
}

Test(desc, sizes_stay_at_the_greatest) {
    const int64_t most[AD_MAX_NDIM] = {[0 ... AD_MAX_NDIM - 1] = INT64_MAX};
    ad_desc d = make_view(0, AD_MAX_NDIM, most, most);

    cr_expect_eq(ad__desc_count(&d), INT64_MAX);
    d = make_view(0, SHAPE(INT64_MAX, INT64_MAX, 0), most);
    cr_expect_eq(ad__desc_count(&d), 0);
    d = make_view(0, SHAPE(3, 4), most);
    cr_expect_eq(ad__desc_count(&d), 12);
    cr_expect_eq(ad__size_sum(INT64_MAX, INT64_MAX), INT64_MAX);
    cr_expect_eq(ad__size_sum(INT64_MAX - 1, 1), INT64_MAX);
    cr_expect_eq(ad__size_sum(2, 3), 5);
    cr_expect_eq(ad__size_product(INT64_MAX / 2 + 1, 2), INT64_MAX);
    cr_expect_eq(ad__size_product(INT64_MAX, 1), INT64_MAX);
}

/* Texts are cut between numbers, wherever their space ends. */
Test(desc, text_of_a_long_shape) {
    const int64_t shape[AD_MAX_NDIM] = {4611686018427387904, 12345, 7, 4611686018427387904, 1234567890, 99};
    char whole[1000], cut[1000];
    ad_text_buffer all = {whole, sizeof whole, 0};

    ad__text_shape(&all, AD_MAX_NDIM, shape);
    for (size_t size = 8; size < all.used + 2; size++) {
        ad_text_buffer part = {cut, size, 0};
        ad__text_shape(&part, AD_MAX_NDIM, shape);
        if (strcmp(cut, whole) == 0) continue;
        cr_assert(part.used > 4 && strcmp(cut + part.used - 4, "...)") == 0, "%zu: %s", size, cut);
        const size_t kept = part.used - 4;
        cr_assert(memcmp(cut, whole, kept) == 0 && (cut[kept - 1] == ',' || cut[kept - 1] == '('), "%zu: %s", size,
                  cut);
    }
    cr_expect(strcmp(cut, whole) == 0);
}

Test(desc, faults_name_long_shapes_whole_or_cut_between_numbers) {
    const int64_t most[AD_MAX_NDIM] = {[0 ... AD_MAX_NDIM - 1] = 1234567890123456789}, three[1] = {3};
    const ad_operand a = {.desc = make_view(0, AD_MAX_NDIM, most, most)}, b = {.desc = make_view(0, 1, three, most)};
    const ad_operand *both[2] = {&a, &b};
    int64_t shape[AD_MAX_NDIM];
    int ndim;
    ad_fault fault;

    cr_expect_eq(ad__broadcast(2, both, &ndim, shape, &fault), AD_E_VALUE);
    cr_expect_str_eq(fault.text, "operands could not be broadcast together with shapes (1234567890123456789,"
                                 "1234567890123456789,1234567890123456789,1234567890123456789,...) (3,) ");
}

Test(desc, contiguous_strides) {
    int64_t strides[3];

    ad__strides_contiguous(SHAPE(2, 3, 4), 8, strides);
    cr_expect(is_same(strides, SHAPE(96, 32, 8)));
    ad__strides_contiguous(SHAPE(5, 1, 4), 8, strides);
    cr_expect(is_same(strides, SHAPE(32, 0, 8)));
    ad__strides_contiguous(SHAPE(2, 0, 4), 8, strides);
    cr_expect(is_same(strides, SHAPE(32, 32, 8)));
}

Test(desc, contiguity) {
    struct {
        size_t n;
        const int64_t *shape, *strides;
        bool c, f;
    } cases[] = {
        {0, NULL, NULL, true, true},
        {SHAPE(5), (int64_t[]){4}, true, true},
        {SHAPE(5), (int64_t[]){8}, false, false},
        {SHAPE(5), (int64_t[]){-4}, false, false},
        {SHAPE(5), (int64_t[]){0}, false, false},
        {SHAPE(2, 3), (int64_t[]){12, 4}, true, false},
        {SHAPE(2, 3), (int64_t[]){4, 8}, false, true},
        {SHAPE(2, 3), (int64_t[]){16, 4}, false, false},
        {SHAPE(1, 3), (int64_t[]){999, 4}, true, true},
        {SHAPE(2, 0, 3), (int64_t[]){7, 7, 7}, true, true},
        {SHAPE(2, 1, 3), (int64_t[]){12, -1, 4}, true, false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ad_desc d = make_view(0, cases[i].n, cases[i].shape, cases[i].strides);
        cr_expect_eq(ad__is_contiguous(&d), cases[i].c, "case %zu", i);
        cr_expect_eq(ad__is_f_contiguous(&d), cases[i].f, "case %zu", i);
    }
}

Test(desc, extent) {
    int64_t low = -1, high = -1;
    ad_fault fault = {0};
    ad_desc d = make_view(8, SHAPE(3, 2), (const int64_t[]){8, -4});

    cr_expect(ad__desc_extent(&d, &low, &high, &fault) == 0 && low == 4 && high == 28);
    d = make_view(8, 0, NULL, NULL);
    cr_expect(ad__desc_extent(&d, &low, &high, &fault) == 0 && low == 8 && high == 12);
    d = make_view(8, SHAPE(3, 0), (const int64_t[]){INT64_MAX, INT64_MAX});
    cr_expect(ad__desc_extent(&d, &low, &high, &fault) == 0 && low == 8 && high == 8);
    d = make_view(8, SHAPE(1), (const int64_t[]){100}); /* as if walked once */
    cr_expect(ad__desc_extent(&d, &low, &high, &fault) == 0 && low == 8 && high == 112);
    low = high = 7;
    d = make_view(0, SHAPE(2), (const int64_t[]){-4});
    cr_expect_eq(ad__desc_extent(&d, &low, &high, &fault), AD_E_EXTENT);
    d = make_view(INT64_MAX - 3, 0, NULL, NULL);
    cr_expect_eq(ad__desc_extent(&d, &low, &high, &fault), AD_E_EXTENT);
    int64_t greatest[AD_MAX_NDIM], least[AD_MAX_NDIM];
    for (int i = 0; i < AD_MAX_NDIM; i++) {
        greatest[i] = INT64_MAX;
        least[i] = INT64_MIN;
    }
    d = make_view(0, AD_MAX_NDIM, greatest, greatest); /* 32 * 2^126 fits no integer there is */
    cr_expect_eq(ad__desc_extent(&d, &low, &high, &fault), AD_E_EXTENT);
    d = make_view(INT64_MAX, AD_MAX_NDIM, greatest, least);
    cr_expect_eq(ad__desc_extent(&d, &low, &high, &fault), AD_E_EXTENT);
    cr_expect(low == 7 && high == 7);
}

Test(desc, check) {
    ad_fault fault = {0};
    ad_desc d = make_view(0, SHAPE(4), (const int64_t[]){4});

    cr_expect_eq(ad__desc_check(&d, 16, "x", &fault), 0);
    cr_expect_eq(ad__desc_check(&d, 15, "x", &fault), AD_E_EXTENT);
    cr_expect(strstr(fault.text, "x: ") == fault.text);
    d.dtype = AD_NDTYPE;
    cr_expect_eq(ad__desc_check(&d, 16, "x", &fault), AD_E_TYPE);
    d.dtype = AD_COMPLEX64; /* aligned to 4 */
    d = (ad_desc){1, 4, (const int64_t[]){2}, (const int64_t[]){12}, AD_COMPLEX64, 1, AD_VIEW};
    cr_expect_eq(ad__desc_check(&d, 24, "x", &fault), 0);
    d.offset = 2;
    cr_expect_eq(ad__desc_check(&d, 24, "x", &fault), AD_E_EXTENT);
    d = make_view(0, SHAPE(2), (const int64_t[]){6});
    cr_expect_eq(ad__desc_check(&d, 100, "x", &fault), AD_E_EXTENT);
    d = make_view(0, SHAPE(1), (const int64_t[]){6}); /* alignment matters only where a stride is used */
    cr_expect_eq(ad__desc_check(&d, 100, "x", &fault), 0);
    d = make_view(0, SHAPE(2, -1), (const int64_t[]){0, 0});
    cr_expect_eq(ad__desc_check(&d, 100, "x", &fault), AD_E_VALUE);
    d = make_view(0, SHAPE(INT64_MAX, 2), (const int64_t[]){0, 0});
    cr_expect_eq(ad__desc_check(&d, 100, "x", &fault), AD_E_VALUE);
    d = make_view(0, SHAPE(AD_MAX_BYTES / 4), (const int64_t[]){0});
    cr_expect_eq(ad__desc_check(&d, 100, "x", &fault), 0);
    d = make_view(0, SHAPE(AD_MAX_BYTES / 4 + 1), (const int64_t[]){0});
    cr_expect_eq(ad__desc_check(&d, 100, "x", &fault), AD_E_VALUE);
    cr_expect(strstr(fault.text, "x: array is too big; ") == fault.text);
}

Test(desc, reaches_beyond_all_numbers) {
    const int64_t shape[] = {2, 2, 2}, far = INT64_MAX / 2 + 1, up[] = {far, far, far}, down[] = {-far, -far, -far};
    ad_desc d = {.dtype = AD_INT8, .ndim = 3, .shape = shape, .strides = up};
    ad_fault fault;
    cr_expect_eq(ad__desc_check(&d, INT64_MAX, "x", &fault), AD_E_EXTENT);
    d.strides = down;
    cr_expect_eq(ad__desc_check(&d, INT64_MAX, "x", &fault), AD_E_EXTENT);
    d.offset = far;
    cr_expect_eq(ad__desc_check(&d, INT64_MAX, "x", &fault), AD_E_EXTENT);
}

Test(desc, broadcast) {
    const ad_operand a = {.desc = {.shape = (const int64_t[]){3, 1, 5}, .ndim = 3}}, scalar = {.is_scalar = 1};
    const ad_operand b = {.desc = {.shape = (const int64_t[]){4, 1}, .ndim = 2}};
    const ad_operand none = {.desc = {.shape = (const int64_t[]){0}, .ndim = 1}};
    const ad_operand two = {.desc = {.shape = (const int64_t[]){2}, .ndim = 1}};
    const ad_operand *list[3] = {&a, &b, &scalar};
    int64_t shape[AD_MAX_NDIM];
    ad_fault fault = {0};
    int ndim = -1;

    cr_expect(ad__broadcast(3, list, &ndim, shape, &fault) == 0 && ndim == 3 && is_same(shape, SHAPE(3, 4, 5)));
    cr_expect(ad__broadcast(1, &list[2], &ndim, shape, &fault) == 0 && ndim == 0);
    list[0] = &none;
    cr_expect(ad__broadcast(2, list, &ndim, shape, &fault) == 0 && ndim == 2 && is_same(shape, SHAPE(4, 0)));
    list[1] = &two;
    cr_expect_eq(ad__broadcast(2, list, &ndim, shape, &fault), AD_E_VALUE);
    cr_expect_str_eq(fault.text, "operands could not be broadcast together with shapes (0,) (2,) ");
    cr_expect_eq(ndim, 2);
}

Test(desc, broadcast_to) {
    const ad_desc d = make_view(8, SHAPE(3, 1), (const int64_t[]){-4, 4});
    const int64_t shape[3] = {2, 3, 5}, other[2] = {2, 5};
    int64_t strides[3];
    ad_fault fault = {0};
    ad_desc out = {0};

    cr_expect_eq(ad__broadcast_to(&d, 3, shape, strides, &out, &fault), 0);
    cr_expect(out.ndim == 3 && out.offset == 8 && out.shape == shape && is_same(out.strides, SHAPE(0, -4, 0)));
    cr_expect_eq(ad__broadcast_to(&d, 2, other, strides, &out, &fault), AD_E_VALUE);
    cr_expect_str_eq(fault.text, "could not broadcast input array from shape (3,1) into shape (2,5)");
    cr_expect_eq(ad__broadcast_to(&d, 1, shape, strides, &out, &fault), AD_E_VALUE);
    cr_expect_eq(out.ndim, 3);
}

Test(desc, reshape) {
    struct {
        size_t n;
        const int64_t *shape, *strides;
        size_t to;
        const int64_t *reshaped, *expected; /* NULL: needs a copy */
    } cases[] = {
        {SHAPE(6), (int64_t[]){4}, SHAPE(2, 3), (int64_t[]){12, 4}},
        {SHAPE(6), (int64_t[]){-4}, SHAPE(2, 3), (int64_t[]){-12, -4}},
        {SHAPE(2, 3), (int64_t[]){12, 4}, SHAPE(6), (int64_t[]){4}},
        {SHAPE(2, 3), (int64_t[]){4, 8}, SHAPE(6), NULL},
        {SHAPE(2, 3), (int64_t[]){16, 4}, SHAPE(6), NULL},
        {SHAPE(2, 3), (int64_t[]){16, 4}, SHAPE(2, 1, 3, 1), (int64_t[]){16, 12, 4, 4}},
        {SHAPE(4, 6), (int64_t[]){48, 8}, SHAPE(2, 2, 3, 2), (int64_t[]){96, 48, 16, 8}},
        {SHAPE(4, 6), (int64_t[]){100, 8}, SHAPE(2, 2, 3, 2), (int64_t[]){200, 100, 16, 8}},
        {SHAPE(4, 6), (int64_t[]){100, 8}, SHAPE(2, 12), NULL},
        {SHAPE(4), (int64_t[]){0}, SHAPE(2, 2), (int64_t[]){0, 0}},
        {SHAPE(1, 1), (int64_t[]){9, 9}, SHAPE(1), (int64_t[]){4}},
        {SHAPE(6), (int64_t[]){4}, SHAPE(1, 6, 1), (int64_t[]){24, 4, 4}},
        {SHAPE(0, 3), (int64_t[]){12, 4}, SHAPE(5, 0), (int64_t[]){4, 4}},
        {SHAPE(6), (int64_t[]){4}, SHAPE(5), NULL},
        {SHAPE(6), (int64_t[]){4}, SHAPE(7, INT64_MAX), NULL},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t strides[AD_MAX_NDIM];
        ad_desc d = make_view(0, cases[i].n, cases[i].shape, cases[i].strides);
        bool can = ad__reshape_strides(&d, (int)cases[i].to, cases[i].reshaped, strides);
        cr_expect_eq(can, cases[i].expected != NULL, "case %zu", i);
        if (can && cases[i].expected) cr_expect(is_same(strides, cases[i].to, cases[i].expected), "case %zu", i);
    }
    ad_desc one = make_view(0, SHAPE(1), (const int64_t[]){4});
    cr_expect(ad__reshape_strides(&one, 0, NULL, (int64_t[1]){0}));
}

Test(desc, overlap) {
    ad_desc a = make_view(0, SHAPE(4), (const int64_t[]){4}), b = make_view(16, SHAPE(4), (const int64_t[]){4});

    cr_expect_not(ad__desc_overlap(&a, &b));
    b.offset = 12;
    cr_expect(ad__desc_overlap(&a, &b) && ad__desc_overlap(&b, &a));
    b.buffer = 2;
    cr_expect_not(ad__desc_overlap(&a, &b));
    a = make_view(0, SHAPE(4), (const int64_t[]){8});
    b = make_view(4, SHAPE(4), (const int64_t[]){8}); /* interleaved: said to meet */
    cr_expect(ad__desc_overlap(&a, &b));
    b = make_view(4, SHAPE(0), (const int64_t[]){8});
    cr_expect_not(ad__desc_overlap(&a, &b));
    b = make_view(INT64_MAX, SHAPE(2), (const int64_t[]){INT64_MAX}); /* nobody has checked it: to be safe */
    cr_expect(ad__desc_overlap(&a, &b));
}

Test(desc, same) {
    ad_desc a = make_view(8, SHAPE(4, 1), (const int64_t[]){4, 4}),
            b = make_view(8, SHAPE(4, 1), (const int64_t[]){4, 0});

    cr_expect(ad__desc_same(&a, &b));
    b.dtype = AD_INT32;
    cr_expect_not(ad__desc_same(&a, &b));
    b = make_view(4, SHAPE(4, 1), (const int64_t[]){4, 0});
    cr_expect_not(ad__desc_same(&a, &b));
    b = make_view(8, SHAPE(4, 1), (const int64_t[]){-4, 0});
    cr_expect_not(ad__desc_same(&a, &b));
    b = make_view(8, SHAPE(4), (const int64_t[]){4});
    cr_expect_not(ad__desc_same(&a, &b));
}
