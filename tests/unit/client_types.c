/* Types, shapes, casts and views, as NumPy has them. The texts and results were taken from NumPy 2. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "protocol/infer.h"
#include "protocol/rows_reduction.h"
#include "protocol/rows_ufunc.h"
#include "tests/unit/client_fake.h"

static fake *server;
static ad_session *s;

static void set_up(void) {
    server = fake_open(NULL, &s);
    cr_assert_not_null(server);
}

static void tear_down(void) {
    ad_session_close(s);
    fake_stop(server);
}

TestSuite(client_types, .init = set_up, .fini = tear_down);

static ad_array *make_empty(int dtype, int ndim, const int64_t *shape) {
    ad_array *a = NULL;
    cr_assert_eq(ad_empty(s, dtype, ndim, shape, &a), 0, "%s", ad_error_message());
    return a;
}

#define ARRAY(dtype, ...) \
    make_empty(dtype, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (const int64_t[]){__VA_ARGS__})

/* Describe a result by dtype and shape, "float64 (2,3)", and release it. */
static const char *describe_result(ad_array *a) {
    static char text[200];
    ad_array_info info;
    ad_array_get_info(a, &info);
    static const char *const names[] = {
#define AD_DTYPE(id, NAME, name, size, kind, letter) [id] = #name,
#include "protocol/dtype.def"
#undef AD_DTYPE
    };
    int n = sprintf(text, "%s (", names[info.dtype]);
    for (int i = 0; i < info.ndim; i++) n += sprintf(text + n, i ? ",%lld" : "%lld", (long long)info.shape[i]);
    sprintf(text + n, ")");
    ad_array_release(a);
    return text;
}

#define GIVES(call, text)                                  \
    do {                                                   \
        ad_array *r = NULL;                                \
        cr_expect_eq(call, 0, "%s", ad_error_message());   \
        if (r) cr_expect_str_eq(describe_result(r), text); \
    } while (0)
#define FAILS(call, status, text)                             \
    do {                                                      \
        ad_array *r = NULL;                                   \
        cr_expect_eq(call, status, "%s", ad_error_message()); \
        cr_expect_str_eq(ad_error_message(), text);           \
        cr_expect_null(r);                                    \
    } while (0)

static int call_with(int ufunc, ad_in x, ad_in y, ad_options o, ad_array **out) {
    return ad_ufunc_call(NULL, ufunc, (ad_in[]){x, y}, &o, out);
}

static int copy_array(ad_array *out, ad_in in) { return ad_copy_into(out, in, AD_CAST_SAME_KIND); }

#define OPTIONS(type, rule, ...) ((ad_options){.dtype = type, .casting = AD_CAST_##rule, __VA_ARGS__})

Test(client_types, promotion) {
    ad_array *b = ARRAY(AD_BOOL, 3), *u8 = ARRAY(AD_UINT8, 3), *i64 = ARRAY(AD_INT64, 3), *f4 = ARRAY(AD_FLOAT32, 3);
    for (int again = 0; again < 2; again++) { /* the second time the loop is found in the session's table */
        GIVES(ad_add(ad_of(u8), ad_of(f4), &r), "float32 (3)");
        GIVES(ad_add(ad_of(i64), ad_of(f4), &r), "float64 (3)");
        GIVES(ad_add(ad_of(u8), ad_int(3), &r), "uint8 (3)");
        GIVES(ad_add(ad_of(b), ad_int(1), &r), "int64 (3)");
        GIVES(ad_add(ad_of(u8), ad_float(1), &r), "float64 (3)");
        GIVES(ad_multiply(ad_of(f4), ad_complex(0, 1), &r), "complex64 (3)");
        GIVES(ad_divide(ad_of(u8), ad_of(u8), &r), "float64 (3)");
        GIVES(ad_less(ad_of(u8), ad_of(f4), &r), "bool (3)");
        GIVES(ad_sin(ad_of(u8), &r), "float16 (3)");
        GIVES(call_with(AD_UFUNC_add, ad_of(u8), ad_int(3), OPTIONS(AD_FLOAT32, SAME_KIND, .all = true), &r),
              "float32 (3)");
        GIVES(ad_ufunc_call(s, AD_UFUNC_add, (ad_in[]){ad_int(1), ad_float(2)}, NULL, &r), "float64 ()");
    }
    ad_array_release(b);
    ad_array_release(u8);
    ad_array_release(i64);
    ad_array_release(f4);
}

Test(client_types, broadcasting) {
    ad_array *a = ARRAY(AD_FLOAT64, 4, 1, 3), *b = ARRAY(AD_FLOAT64, 5, 1), *c = ARRAY(AD_FLOAT64, 2),
             *z = make_empty(AD_FLOAT64, 0, NULL);
    ad_array *out = ARRAY(AD_FLOAT64, 3), *wide = ARRAY(AD_FLOAT64, 2, 2);
    GIVES(ad_add(ad_of(a), ad_of(b), &r), "float64 (4,5,3)");
    GIVES(ad_add(ad_of(z), ad_of(b), &r), "float64 (5,1)");
    GIVES(ad_where(ad_of(a), ad_of(b), ad_of(z), &r), "float64 (4,5,3)");
    FAILS(ad_add(ad_of(out), ad_of(c), &r), AD_E_VALUE,
          "operands could not be broadcast together with shapes (3,) (2,) ");
    FAILS(call_with(AD_UFUNC_add, ad_of(a), ad_of(out), OPTIONS(-1, SAME_KIND, .all = true, .out = {out}), &r),
          AD_E_VALUE, "non-broadcastable output operand with shape (3,) doesn't match the broadcast shape (4,1,3)");
    GIVES(call_with(AD_UFUNC_add, ad_of(c), ad_int(1), OPTIONS(-1, SAME_KIND, .all = true, .out = {wide}), &r),
          "float64 (2,2)");
    ad_array *all[] = {a, b, c, z, out, wide};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ad_array_release(all[i]);
}

Test(client_types, casting) {
    ad_array *f = ARRAY(AD_FLOAT64, 3), *i = ARRAY(AD_INT64, 3), *u8 = ARRAY(AD_UINT8, 3), *b = ARRAY(AD_BOOL, 3);
    ad_array *outs[2] = {NULL, NULL};
    FAILS(call_with(AD_UFUNC_add, ad_of(f), ad_of(f), OPTIONS(-1, SAME_KIND, .all = true, .out = {i}), &r), AD_E_TYPE,
          "Cannot cast ufunc 'add' output from dtype('float64') to dtype('int64') with casting rule 'same_kind'");
    FAILS(call_with(AD_UFUNC_add, ad_of(f), ad_of(f), OPTIONS(AD_INT64, SAME_KIND, .all = true), &r), AD_E_TYPE,
          "Cannot cast ufunc 'add' input 0 from dtype('float64') to dtype('int64') with casting rule 'same_kind'");
    FAILS(call_with(AD_UFUNC_add, ad_of(f), ad_of(i), OPTIONS(-1, NO, .all = true), &r), AD_E_TYPE,
          "Cannot cast ufunc 'add' input 1 from dtype('int64') to dtype('float64') with casting rule 'no'");
    FAILS(call_with(AD_UFUNC_sin, ad_of(f), ad_int(0), OPTIONS(AD_FLOAT32, NO, .all = true), &r), AD_E_TYPE,
          "Cannot cast ufunc 'sin' input from dtype('float64') to dtype('float32') with casting rule 'no'");
    FAILS(call_with(AD_UFUNC_add, ad_of(f), ad_of(f), OPTIONS(-1, SAME_KIND, .all = true, .where = i), &r), AD_E_TYPE,
          "Cannot cast array data from dtype('int64') to dtype('bool') according to the rule 'safe'");
    cr_expect_eq(ad_ufunc_call(NULL, AD_UFUNC_modf, (ad_in[]){ad_of(f)},
                               &OPTIONS(-1, SAME_KIND, .all = true, .out = {NULL, i}), outs),
                 AD_E_TYPE);
    cr_expect_str_eq(ad_error_message(), "Cannot cast ufunc 'modf' output 1 from dtype('float64') to dtype('int64') "
                                         "with casting rule 'same_kind'");
    GIVES(call_with(AD_UFUNC_add, ad_of(f), ad_of(f), OPTIONS(-1, UNSAFE, .all = true, .out = {i}), &r), "int64 (3)");
    GIVES(call_with(AD_UFUNC_add, ad_of(f), ad_of(f), OPTIONS(-1, SAME_KIND, .all = true, .where = b), &r),
          "float64 (3)");
    FAILS(copy_array(i, ad_of(f)), AD_E_TYPE,
          "Cannot cast array data from dtype('float64') to dtype('int64') according to the rule 'same_kind'");
    FAILS(copy_array(i, ad_float(2.5)), AD_E_TYPE,
          "Cannot cast scalar from dtype('float64') to dtype('int64') according to the rule 'same_kind'");
    FAILS(copy_array(b, ad_int(2)), AD_E_TYPE,
          "Cannot cast scalar from dtype('int64') to dtype('bool') according to the rule 'same_kind'");
    FAILS(copy_array(u8, ad_int(300)), AD_E_OVERFLOW, "Python integer 300 out of bounds for uint8");
    cr_expect_eq(copy_array(u8, ad_int(255)), 0);
    cr_expect_eq(copy_array(f, ad_of(i)), 0);
    GIVES(ad_full(s, AD_UINT8, 1, (int64_t[]){2}, ad_float(2.7), &r), "uint8 (2)");
    GIVES(ad_astype(f, AD_INT8, &r), "int8 (3)");
    ad_array_release(f);
    ad_array_release(i);
    ad_array_release(u8);
    ad_array_release(b);
}

Test(client_types, integers_out_of_bounds) {
    static const struct {
        int dtype;
        int64_t least, greatest;
    } rows[] = {{AD_INT8, -128, 127}, {AD_INT16, -32768, 32767}, {AD_INT32, INT32_MIN, INT32_MAX},
                {AD_UINT8, 0, 255},   {AD_UINT16, 0, 65535},     {AD_UINT32, 0, UINT32_MAX}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ad_array *a = ARRAY(rows[i].dtype, 2), *r = NULL;
        for (int low = 0; low < 2; low++) {
            int64_t edge = low ? rows[i].least : rows[i].greatest;
            cr_expect_eq(ad_add(ad_of(a), ad_int(edge), &r), 0);
            ad_array_release(r);
            cr_expect_eq(ad_add(ad_of(a), ad_int(low ? edge - 1 : edge + 1), &r), AD_E_OVERFLOW);
        }
        ad_array_release(a);
    }
    ad_array *u8 = ARRAY(AD_UINT8, 3), *i = ARRAY(AD_INT64, 3);
    FAILS(ad_add(ad_of(u8), ad_int(300), &r), AD_E_OVERFLOW, "Python integer 300 out of bounds for uint8");
    FAILS(ad_add(ad_of(u8), ad_int(-1), &r), AD_E_OVERFLOW, "Python integer -1 out of bounds for uint8");
    FAILS(ad_power(ad_of(i), ad_int(-1), &r), AD_E_VALUE, "Integers to negative integer powers are not allowed.");
    ad_array_release(u8);
    ad_array_release(i);
}

Test(client_types, comparing_with_integers_out_of_bounds_has_an_answer) {
    ad_array *u8 = ARRAY(AD_UINT8, 3);
    const ad_in x = ad_of(u8);
    GIVES(ad_less(x, ad_int(300), &r), "bool (3)");
    GIVES(ad_less(ad_int(300), x, &r), "bool (3)");
    GIVES(ad_equal(x, ad_int(-1), &r), "bool (3)");
    ad_array_release(u8);
}

Test(client_types, reductions) {
    ad_array *a = ARRAY(AD_INT32, 2, 3, 4), *none = ARRAY(AD_FLOAT64, 0, 3), *out = ARRAY(AD_FLOAT64, 2, 1, 4),
             *r0 = NULL;
    const ad_in x = ad_of(a);
    GIVES(ad_sum(x, &r), "int64 ()");
    GIVES(ad_reduce_call(AD_REDUCTION_sum, x, &(ad_options){.dtype = -1, .casting = 3, .axes = 2}, &r), "int64 (2,4)");
    GIVES(
        ad_reduce_call(AD_REDUCTION_mean, x, &(ad_options){.dtype = -1, .casting = 3, .axes = 5, .keepdims = true}, &r),
        "float64 (1,3,1)");
    GIVES(ad_reduce_call(AD_REDUCTION_max, x, &(ad_options){.dtype = -1, .casting = 3}, &r), "int32 (2,3,4)");
    GIVES(ad_reduce_call(AD_REDUCTION_sum, x, &OPTIONS(AD_FLOAT32, SAME_KIND, .all = true), &r), "float32 ()");
    GIVES(ad_argmax(x, &r), "int64 ()");
    GIVES(ad_reduce_call(AD_REDUCTION_sum, x,
                         &(ad_options){.dtype = -1, .casting = 3, .axes = 2, .keepdims = true, .out = {out}}, &r),
          "float64 (2,1,4)");
    cr_expect_eq(ad_reduce_call(AD_REDUCTION_sum, x, &(ad_options){.dtype = -1, .axes = 8}, &r0), AD_E_VALUE);
    cr_expect_str_eq(ad_error_message(), "axis 3 is out of bounds for array of dimension 3");
    cr_expect_eq(ad_reduce_call(AD_REDUCTION_sum, x, &OPTIONS(-1, SAME_KIND, .all = true, .out = {out}), &r0),
                 AD_E_VALUE);
    cr_expect_eq(ad_reduce_call(AD_REDUCTION_sum, ad_int(3), NULL, &r0), AD_E_TYPE);
    FAILS(ad_argmin(ad_of(none), &r), AD_E_VALUE, "attempt to get argmin of an empty sequence");
    GIVES(ad_sum(ad_of(none), &r), "float64 ()");
    ad_array_release(a);
    ad_array_release(none);
    ad_array_release(out);
}

Test(client_types, arange) {
    GIVES(ad_arange(s, ad_int(0), ad_int(10), ad_int(3), -1, &r), "int64 (4)");
    GIVES(ad_arange(s, ad_int(10), ad_int(0), ad_int(-3), -1, &r), "int64 (4)");
    GIVES(ad_arange(s, ad_int(0), ad_float(1), ad_float(0.1), -1, &r), "float64 (10)");
    GIVES(ad_arange(s, ad_int(5), ad_int(0), ad_int(1), AD_FLOAT32, &r), "float32 (0)");
    FAILS(ad_arange(s, ad_int(0), ad_int(3), ad_int(0), -1, &r), AD_E_VALUE, "Maximum allowed size exceeded");
}

Test(client_types, sizes_are_checked) {
    char bytes[8] = {0};
    FAILS(ad_empty(s, AD_INT8, 1, (int64_t[]){-1}, &r), AD_E_VALUE, "negative dimensions are not allowed");
    FAILS(ad_empty(s, AD_INT8, 2, ((int64_t[]){1ll << 40, 1ll << 40}), &r), AD_E_VALUE,
          "array is too big; `arr.size * arr.dtype.itemsize` is larger than the maximum possible size.");
    FAILS(ad_empty(s, 15, 0, NULL, &r), AD_E_TYPE, "15 is no data type");
    FAILS(ad_upload(s, AD_INT8, 1, (int64_t[]){7}, bytes, 8, &r), AD_E_VALUE, "8 bytes given for an array of 7");
    GIVES(ad_empty(s, AD_FLOAT64, 3, ((int64_t[]){1ll << 40, 0, 1024}), &r), "float64 (1099511627776,0,1024)");
}

/* ---- views, against a walk through the same bytes ---- */

static void check_view(ad_array *v, const int32_t *expected, int64_t count) {
    int32_t got[64];
    ad_array_info info;
    ad_array_get_info(v, &info);
    cr_assert_eq(info.count, count);
    cr_assert_eq(ad_download(v, got, (size_t)count * 4), 0, "%s", ad_error_message());
    cr_assert_eq(memcmp(got, expected, (size_t)count * 4), 0);
    ad_array_release(v);
}

static ad_array *make_grid(void) { /* 0 .. 23 as (4, 6) */
    ad_array *a = NULL;
    int32_t data[24];
    for (int i = 0; i < 24; i++) data[i] = i;
    cr_assert_eq(ad_upload(s, AD_INT32, 2, (int64_t[]){4, 6}, data, sizeof data, &a), 0);
    return a;
}

/* Slice as Python defines it: i = start, start + step, ... while before stop, after clipping. */
static int64_t python_slice(int64_t start, int64_t stop, int64_t step, int32_t *out) {
    int64_t n = 0;
    for (int64_t i = -100; i < 100; i++) { /* every index that is in range and reached from start */
        int64_t k = step > 0 ? i : -i, from = start < 0 ? start + 6 : start, to = stop < 0 ? stop + 6 : stop;
        if (step > 0 ? from < 0 : from < -1) from = step > 0 ? 0 : -1;
        if (step < 0 && from > 5) from = 5;
        if (to < 0) to = step > 0 ? 0 : -1;
        if (k >= 0 && k < 6 && (step > 0 ? k >= from && k < to : k <= from && k > to) && (k - from) % step == 0)
            for (int64_t row = 0; row < 4; row++) out[row * 16 + n] = (int32_t)(row * 6 + k);
        if (k >= 0 && k < 6 && (step > 0 ? k >= from && k < to : k <= from && k > to) && (k - from) % step == 0) n++;
    }
    return n;
}

Test(client_types, slices_are_pythons) {
    ad_array *a = make_grid(), *v;
    for (int64_t start = -8; start <= 8; start++)
        for (int64_t stop = -8; stop <= 8; stop += 2)
            for (int64_t step = -3; step <= 3; step++) {
                int32_t rows[64], expected[64];
                if (step == 0) continue;
                int64_t n = python_slice(start, stop, step, rows);
                for (int64_t row = 0; row < 4; row++) memcpy(expected + row * n, rows + row * 16, (size_t)n * 4);
                cr_assert_eq(ad_slice(a, 1, start, stop, step, &v), 0);
                check_view(v, expected, 4 * n);
            }
    cr_expect_eq(ad_slice(a, 1, 0, 1, 0, &v), AD_E_VALUE);
    cr_expect_eq(ad_slice(a, 2, 0, 1, 1, &v), AD_E_VALUE);
    cr_expect_eq(ad_slice(a, 0, INT64_MAX, INT64_MIN, INT64_MIN, &v), 0);
    check_view(v, (int32_t[]){18, 19, 20, 21, 22, 23}, 6);
    ad_array_release(a);
}

Test(client_types, views_of_views) {
    ad_array *a = make_grid(), *t, *v, *w;
    uint64_t before;
    cr_assert_eq(ad_sync(s), 0);
    before = server->messages;
    cr_assert_eq(ad_transpose(a, NULL, &t), 0);
    cr_assert_eq(ad_slice(t, 0, 1, 6, 2, &v), 0);
    cr_assert_eq(ad_slice(v, 1, 3, -5, -2, &w), 0);
    cr_assert_eq(server->messages, before); /* nothing was sent */
    ad_array_release(a);
    ad_array_release(t);
    ad_array_release(v);
    check_view(w, (int32_t[]){19, 7, 21, 9, 23, 11}, 6); /* a.T[1::2, 3::-2] */
    cr_assert_eq(ad_sync(s), 0);
    cr_assert_eq(server->frees, 1); /* the last view's release frees the buffer */
}

Test(client_types, reshaping_and_broadcasting) {
    ad_array *a = make_grid(), *t, *v = NULL;
    cr_assert_eq(ad_reshape_view(a, 3, (int64_t[]){2, 3, 4}, &v), 0);
    cr_expect_str_eq(describe_result(v), "int32 (2,3,4)");
    cr_assert_eq(ad_transpose(a, (int[]){1, 0}, &t), 0);
    v = NULL;
    cr_expect_eq(ad_reshape_view(t, 1, (int64_t[]){24}, &v), AD_E_UNSUPPORTED);
    FAILS(ad_reshape_view(a, 2, ((int64_t[]){5, 5}), &r), AD_E_VALUE,
          "cannot reshape array of size 24 into shape (5,5)");
    FAILS(ad_transpose(a, ((int[]){0, 0}), &r), AD_E_VALUE, "axes don't match array");
    ad_array_release(t);
    cr_assert_eq(ad_slice(a, 0, 1, 2, 1, &t), 0);
    cr_assert_eq(ad_broadcast_to(t, 3, (int64_t[]){2, 2, 6}, &v), 0);
    ad_array_release(t);
    check_view(v, (int32_t[]){6, 7, 8, 9, 10, 11, 6, 7, 8, 9, 10, 11, 6, 7, 8, 9, 10, 11, 6, 7, 8, 9, 10, 11}, 24);
    cr_assert_eq(ad_broadcast_to(a, 3, (int64_t[]){2, 4, 6}, &v), 0);
    FAILS(copy_array(v, ad_int(0)), AD_E_VALUE, "assignment destination is read-only: it repeats elements");
    ad_array_release(v);
    ad_array_release(a);
}

Test(client_types, views_stay_within_their_buffer) {
    ad_array *a = make_grid(), *v = NULL;
    static const struct {
        int status, dtype;
        int64_t offset, shape[2], strides[2];
    } rows[] = {
        {0, AD_INT32, 0, {4, 6}, {24, 4}},           {0, AD_INT32, 92, {4, 6}, {-24, -4}},
        {0, AD_INT32, 92, {1, 1}, {4000, 4000}},     {0, AD_INT16, 0, {4, 12}, {24, 2}},
        {0, AD_INT32, 96, {0, 6}, {24, 4}},          {AD_E_EXTENT, AD_INT32, 4, {4, 6}, {24, 4}},
        {AD_E_EXTENT, AD_INT32, -4, {1, 1}, {4, 4}}, {AD_E_EXTENT, AD_INT32, 0, {2, 1}, {INT64_MAX, 4}},
        {AD_E_EXTENT, AD_INT32, 2, {1, 1}, {4, 4}},  {AD_E_EXTENT, AD_FLOAT64, 88, {2, 1}, {8, 8}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int status = ad_view(a, rows[i].dtype, rows[i].offset, 2, rows[i].shape, rows[i].strides, &v);
        cr_expect_eq(status, rows[i].status, "%zu: %s", i, ad_error_message());
        if (status == 0) ad_array_release(v);
    }
    ad_array_release(a);
}
