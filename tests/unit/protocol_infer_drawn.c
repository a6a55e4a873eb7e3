/* Each operation with each part of it wrong: one that is right for each row of call.def and some of the others, of
 * which each operand, parameter and number is then replaced by what a client might write there. Whatever comes out has
 * words, and nothing is read that is not there (the sanitizers look). */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/infer.h"
#include "protocol/curand.h"
#include "protocol/rows.h"
#include "protocol/rows_request.h"

enum { MOST = 12, LONG = AD_MAX_NDIM + 1 };

/* Outputs, inputs and parameters: arrays as "f4:3,4", scalars as "7", parameters as "7", "1.5", "yes" or "no". */
static const struct {
    const char *name, *loop, *outputs, *inputs, *parameters;
} calls[] =
    {
        {"iota", "f4", "f4:9", "", "1 1"},
        {"gather", "f4", "f4:2,4", "f4:3,4 i8:2", ""},
        {"gather", "f4", "f4:2", "f4:3,4 i8:2 i8:2", ""},
        {"scatter", "f4", "f4:3,4", "f4:2,4 i8:2", "0"},
        {"cumsum", "f4", "f4:3,4", "f4:3,4", "1"},
        {"cumprod", "f4", "f4:3,4", "f4:3,4", "1"},
        {"nancumsum", "f4", "f4:3,4", "f4:3,4", "1"},
        {"nancumprod", "f4", "f4:3,4", "f4:3,4", "1"},
        {"sort", "f4", "f4:3,4", "f4:3,4", "1"},
        {"argsort", "f4", "i8:3,4", "f4:3,4", "1"},
        {"partition", "f4", "f4:3,4", "f4:3,4", "1 2"},
        {"argpartition", "f4", "i8:3,4", "f4:3,4", "1 2"},
        {"searchsorted", "f4", "i8:3", "f4:9 f4:3", "yes"},
        {"bincount", "i8", "i8:9", "i8:5", ""},
        {"bincount", "f8", "f8:9", "i8:5 f8:5", ""},
        {"histogram", "f4", "i8:8", "f4:5 f4:9", ""},
        {"matmul", "f4", "f4:2,3,5", "f4:2,3,4 f4:4,5", "no"},
        {"nonzero", "f4", "i8:?", "f4:3,4", ""},
        {"compress", "f4", "f4:?", "f4:3,4 b1:3", ""},
        {"place", "f4", "f4:3,4", "b1:3 f4:2,4", ""},
        {"fft", "c8", "c8:3,4", "c8:3,4", "2 1 1.0"},
        {"rfft", "c8", "c8:3,3", "f4:3,4", "1 1 1.0"},
        {"irfft", "c8", "f4:3,4", "c8:3,3", "1 1 4 1.0"},
        {"cholesky", "f4", "f4:2,3,3", "f4:2,3,3", "no"},
        {"qr", "f4", "f4:2,3,2 f4:2,2,2", "f4:2,3,2", "no"},
        {"svd", "f4", "f4:2,3,2 f4:2,2 f4:2,2,2", "f4:2,3,2", "no"},
        {"svd", "c16", "c16:2,3,3 f8:2,2 c16:2,2,2", "c16:2,3,2", "yes"},
        {"svdvals", "f4", "f4:2,2", "f4:2,3,2", ""},
        {"eigh", "f4", "f4:2,3 f4:2,3,3", "f4:2,3,3", "no"},
        {"eigvalsh", "c8", "f4:2,3", "c8:2,3,3", "no"},
        {"solve", "f4", "f4:2,3,5", "f4:2,3,3 f4:3,5", ""},
        {"solve_triangular", "f4", "f4:2,3,5", "f4:2,3,3 f4:3,5", "no no"},
        {"inv", "f8", "f8:2,3,3", "f8:2,3,3", ""},
        {"lu", "f4", "f4:2,3,4 i8:2,3", "f4:2,3,4", ""},
        {"lstsq", "f4", "f4:4,5 i8: f4:3", "f4:3,4 f4:3,5", "0.5"},
        {"eig", "f4", "c8:3 c8:3,3", "f4:3,3", ""},
        {"slogdet", "c8", "c8:2 f4:2", "c8:2,3,3", ""},
        {"eigvals", "c16", "c16:3", "c16:3,3", ""},
        {"qr_raw", "f4", "f4:2,3 f4:2", "f4:3,2", ""},
        {"sort_places", "f4", "f4:7 i8:7", "f4:7", "5"},
        {"merge", "f4", "f4:7", "f4:3 f4:4", ""},
        {"merge_pairs", "f4", "f4:7 i8:7", "f4:3 f4:4 i8:3 i8:4", ""},
        {"random", "f8", "f8:3", "0 1", "2 5 0"},
        {"random", "f8", "f8:3", "f8:3 f8:", "2 5 0"},
        {"curand_seed", "u4", "u4:12,20", "", "0 1 0"},
        {"curand", "u4", "u4:20 u4:12,20", "u4:12,20", "0 0 0 20 0"},
        {"curand", "f4", "f4:20 u4:12,20", "u4:12,20 0 1", "2 0 1 20 0"},
        {"correlate1d", "f4", "f4:3,4", "f4:3,4 f4:3", "1 0 0 1"},
        {"window1d", "f4", "f4:3,4", "f4:3,4", "1 0 3 0 0 1"},
        {"window1d", "f4", "f4:3,4", "f4:3,4", "1 1 3 0 0 1"},
        {"correlate", "f4", "f4:3,4", "f4:3,4 i8:5,2 f4:5", "0 0"},
        {"rank_filter", "f4", "f4:3,4", "f4:3,4 i8:5,2", "1 0 0"},
        {"grey_filter", "f4", "f4:3,4", "f4:3,4 i8:5,2 f4:5", "no 0 0"},
        {"spline1d", "f4", "f4:3,4", "f4:3,4", "1 3 0"},
        {"sample", "f4", "f4:7", "f4:3,4 f4:2,7", "no 3 0 0 0"},
        {"sample", "f4", "f4:7", "f4:3,4 f8:2,2", "yes 3 0 0 0"},
        {"label", "b1", "i4:3,4 i8:", "b1:3,4 i8:8,2", ""},
        {"nearest_zero", "b1", "f8:3,4 i8:3,4", "b1:3,4 f8:2", ""},
        {"iir", "f4", "f4:3,4 f4:2,2,3", "f4:3,4 f4:2,2,3 f4:2,2,3", "1"},
        {"pair_distances", "f8", "f8:4,3", "f8:4,2 f8:3,2", "4 1.5"},
        {"pair_distances", "f8", "f8:6", "f8:4,2", "1 2"},
        {"nearest_points", "f8", "f8:3,2 i8:3,2", "f8:4,2 f8:3,2", "2 2 9.5"},
        {"squareform", "f4", "f4:4,4", "f4:6", ""},
        {"dct", "f4", "f4:3,4", "f4:3,4", "1 2 no yes 0.5"},
        {"dct", "f4", "f4:3,1", "f4:3,1", "1 1 yes no 0.5"},
        {"spmm", "f4", "f4:3,5", "f4:7 i4:7 i4:4 f4:6,5", "3 no"},
        {"spmm", "f4", "f4:6,5", "f4:7 i4:7 i4:4 f4:3,5", "6 yes"},
        {"sptrsm", "f4", "f4:3", "f4:7 i4:7 i4:4 f4:3", "no no"},
        {"spgemm", "f4", "f4:? i4:? i4:?", "f4:7 i4:7 i4:4 f4:7 i4:7 i4:4", "3"},
        {"ilu0", "f4", "f4:7 i8:", "f4:7 i4:7 i4:4", "no"},
        {"spunion", "f4", "f4:? i4:? i4:?", "f4:7 i4:7 i4:4 f4:9 i4:9 i4:4", "0"},
        {"spunion", "f4", "b1:? i4:? i4:?", "f4:7 i4:7 i4:4 f4:9 i4:9 i4:4", "5"},
        {"sptranspose", "f4", "f4:7 i4:7 i4:6", "f4:7 i4:7 i4:4", "5"},
        {"sptranspose", "f4", "f4:7 i8:7 i8:6", "f4:7 i8:7 i8:4", "5"},
        {"spband", "f4", "f4:? i4:? i4:?", "f4:7 i4:7 i4:4", "0 3 no"},
        {"sprows", "i4", "i4:7", "i4:4", "7"},
        {"sprows", "i8", "i8:7", "i8:4", "7"},
        {"spdiagonal", "f4", "f4:2", "f4:7 i4:7 i4:4", "1 0 2"},
        {"sptake", "f4", "f4:? i4:? i4:?", "f4:7 i4:7 i4:4 i8:9", ""},
        {"spcomponents", "f4", "i4:3", "f4:7 i4:7 i4:4", ""},
        {"spcomponents", "f4", "i8:3", "f4:7 i8:7 i8:4", ""},
},
  ufuncs[] = {{"add", "f4", "f4:3,4", "f4:3,4 f4:4", ""},     {"add", "f4", "f4:3,4", "f4:3,4 2 b1:4", ""},
              {"subtract", "i8", "i8:3,4", "i8:3,4 2", ""},   {"negative", "i8", "i8:3", "i8:3", ""},
              {"bitwise_and", "b1", "b1:3", "b1:3 b1:3", ""}, {"ldexp", "f4", "f4:3", "f4:3 i8:3", ""},
              {"modf", "f8", "f8:3 f8:3", "f8:3", ""}},
  reductions[] = {{"sum", "f4", "f4:3", "f4:3,4", "2 nil nil"},
                  {"sum", "f4", "f4:3", "f4:3,4 b1:4", "2 nil 0.5"},
                  {"max", "f4", "f4:3", "f4:3,4 b1:3,4", "2 nil 1"},
                  {"argmax", "f4", "i8:3", "f4:3,4", "2 nil nil"},
                  {"var", "f4", "f4:3", "f4:3,4", "2 1 nil"}};

/* ---- an operation of its text ---- */

static ad_operand operand[MOST];
static int64_t shape[MOST][LONG], strides[MOST][LONG];
static ad_scalar param[MOST];
static ad_op op;

static int find_dtype(const char *text, size_t size) {
    static const char *const names[AD_NDTYPE] = {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4",
                                                 "u8", "f2", "bf", "f4", "f8", "c8", "c16"};
    for (int i = 0; i < AD_NDTYPE; i++)
        if (strlen(names[i]) == size && !strncmp(names[i], text, size)) return i;
    cr_assert(false, "no dtype: %s", text);
    return -1;
}

static void lay_out(int k) {
    ad_desc *d = &operand[k].desc;
    int64_t stride = ad__dtypes[d->dtype].size;
    for (int i = d->ndim - 1; i >= 0; i--) {
        strides[k][i] = stride;
        stride *= shape[k][i];
    }
}

static void read_operand(int k, char *text) {
    char *colon = strchr(text, ':'), *rest = colon ? colon + 1 : NULL, *number;
    operand[k] = (ad_operand){.is_scalar = !colon, .scalar = {AD_SCALAR_INT, {.i = atoi(text)}}};
    if (!colon) return;
    ad_desc *d = &operand[k].desc;
    *d = (ad_desc){(uint64_t)k + 1, 0, shape[k], strides[k], (uint8_t)find_dtype(text, (size_t)(colon - text)), 0,
                   AD_VIEW};
    if (*rest == '?') d->form = AD_SIZED;
    else
        while (*rest && (number = strsep(&rest, ","))) {
            shape[k][d->ndim++] = atoll(number);
            if (!rest) break;
        }
    lay_out(k);
}

static void read_param(ad_scalar *p, const char *text) {
    if (!strcmp(text, "nil")) *p = (ad_scalar){.kind = AD_SCALAR_NIL};
    else if (!strcmp(text, "yes") || !strcmp(text, "no")) *p = (ad_scalar){AD_SCALAR_BOOL, {.b = *text == 'y'}};
    else if (strchr(text, '.')) *p = (ad_scalar){AD_SCALAR_FLOAT, {.f = atof(text)}};
    else *p = (ad_scalar){AD_SCALAR_INT, {.i = atoll(text)}};
}

static uint8_t read_all(const char *text, int from, bool params) {
    char copy[200], *rest = strcpy(copy, text), *word;
    int n = 0;
    while (*rest && (word = strsep(&rest, " "))) {
        if (params) read_param(&param[n++], word);
        else read_operand(from + n++, word);
        if (!rest) break;
    }
    return (uint8_t)n;
}

/* ---- what is written in place of a part ---- */

static unsigned tried, refused;

/* Infer and check the operation as it is. */
static int try_op(const char *name) {
    ad_result result[AD_MAX_OUT];
    ad_fault fault = {0};
    const int inferred = ad__infer(&op, result, &fault);
    cr_expect(inferred == 0 || (inferred == fault.code && *fault.text), "%s: %d", name, inferred);
    const int status = ad__check_op(&op, &fault);
    cr_expect(status == 0 || (status == fault.code && *fault.text), "%s: %d", name, status);
    cr_expect(status || !inferred, "%s: %s", name, fault.text);
    ad__random_cost(&op);
    ad__op_updates(&op);
    tried++;
    refused += status != 0;
    return status;
}

static const int64_t numbers[] = {
    -1,        0,        1, 2, 3, 4, 5, 6, 7, 8, 31, 32, 63, INT64_C(1) << 31, INT64_C(1) << 33, INT64_C(1) << 62,
    INT64_MAX, INT64_MIN};
#define COUNT(list) (sizeof list / sizeof *list)

static void draw_shape(const char *name, int k) {
    ad_desc *d = &operand[k].desc;
    const uint8_t ndim = d->ndim;
    for (d->ndim = 0; d->ndim <= AD_MAX_NDIM; d->ndim++) try_op(name);
    d->ndim = ndim;
    for (int i = 0; i < ndim; i++) {
        const int64_t was = shape[k][i];
        for (size_t n = 1; n < COUNT(numbers) - 1; n++) {
            shape[k][i] = numbers[n];
            try_op(name);
        }
        shape[k][i] = was;
    }
}

static void draw_operand(const char *name, int k) {
    const ad_operand was = operand[k];
    for (int kind = AD_SCALAR_NIL; kind <= AD_SCALAR_COMPLEX; kind++) {
        operand[k] = (ad_operand){.is_scalar = 1, .scalar = {.kind = (uint8_t)kind}};
        try_op(name);
    }
    operand[k] = was;
    if (was.is_scalar) return;
    for (int dtype = 0; dtype <= AD_NDTYPE; dtype++) {
        if (dtype == AD_NDTYPE && k >= op.nout) continue; /* the reader lets no such input through */
        operand[k].desc.dtype = (uint8_t)dtype;
        try_op(name);
    }
    operand[k] = was;
    for (int form = AD_FRESH; k < op.nout && form <= AD_SIZED; form++) {
        operand[k].desc.form = (uint8_t)form;
        if (form != AD_SIZED || was.desc.form == AD_SIZED || op.opcode == AD_REQ_CALL) try_op(name);
    }
    operand[k] = was;
    if (was.desc.form != AD_SIZED) draw_shape(name, k);
    memset(strides[k], 0, sizeof strides[k]);
    try_op(name);
    lay_out(k);
}

static void draw_param(const char *name, int p) {
    const ad_scalar was = param[p];
    for (int kind = AD_SCALAR_NIL; kind <= AD_SCALAR_COMPLEX; kind++) {
        param[p] = (ad_scalar){.kind = (uint8_t)kind};
        try_op(name);
    }
    for (size_t n = 0; n < COUNT(numbers); n++) {
        param[p] = (ad_scalar){AD_SCALAR_INT, {.i = numbers[n]}};
        try_op(name);
        for (int q = p + 1; q < op.nparam; q++) {
            const ad_scalar other = param[q];
            for (size_t m = 0; m < COUNT(numbers) && other.kind == AD_SCALAR_INT; m++) {
                param[q].as.i = numbers[m];
                try_op(name);
            }
            param[q] = other;
        }
    }
    param[p] = was;
}

static void draw_numbers(const char *name) {
    const ad_op was = op;
    for (int loop = 0; loop <= AD_NDTYPE; loop++) {
        op.loop = (uint8_t)loop;
        try_op(name);
    }
    op = was;
    for (int n = 0; n < MOST - op.nout; n++) {
        op.nin = (uint8_t)n;
        try_op(name);
    }
    op = was;
    for (int n = 0; n < MOST; n++) {
        op.nparam = (uint8_t)n;
        try_op(name);
    }
    op = was;
    for (int n = 0; n <= AD_MAX_OUT; n++) {
        op.nout = (uint8_t)n;
        try_op(name);
    }
    op = was;
    op.row = 999;
    try_op(name);
    op = was;
}

/* Try an operation that is right, and then with each part replaced. */
static void draw_all(const char *name) {
    cr_expect_eq(try_op(name), 0, "%s", name);
    for (int k = 0; k < op.nout + op.nin; k++) draw_operand(name, k);
    for (int p = 0; p < op.nparam; p++) draw_param(name, p);
    draw_numbers(name);
    cr_expect_eq(try_op(name), 0, "%s", name);
}

static int find_call(const char *name) {
    for (uint64_t id = 1; id < 256; id++)
        if (ad__call(id) && !strcmp(ad__call(id)->name, name)) return (int)id;
    return 0;
}

static int find_ufunc(const char *name) {
    for (uint64_t id = 1; id < 512; id++)
        if (ad__ufunc(id) && !strcmp(ad__ufunc(id)->name, name)) return (int)id;
    return 0;
}

static int find_reduction(const char *name) {
    for (uint64_t id = 1; id < 256; id++)
        if (ad__reduction(id) && !strcmp(ad__reduction(id)->name, name)) return (int)id;
    return 0;
}

static void begin_op(int opcode, int row, const char *loop, const char *outputs, const char *inputs,
                     const char *parameters) {
    memset(operand, 0, sizeof operand);
    for (int k = 0; k < MOST; k++)
        operand[k].desc = (ad_desc){(uint64_t)k + 1, 0, shape[k], strides[k], AD_INT64, 0, AD_VIEW};
    const uint8_t nout = read_all(outputs, 0, false), nin = read_all(inputs, nout, false),
                  nparam = read_all(parameters, 0, true);
    op = (ad_op){
        (uint8_t)opcode, (uint8_t)find_dtype(loop, strlen(loop)), nout, nin, nparam, (uint16_t)row, operand, param};
}

Test(infer_drawn, calls) {
    bool seen[256] = {0};
    for (size_t i = 0; i < COUNT(calls); i++) {
        const int row = find_call(calls[i].name);
        cr_assert_neq(row, 0, "%s", calls[i].name);
        seen[row] = true;
        begin_op(ad__call((uint64_t)row)->kind == AD_CALL_ASK ? AD_REQ_QUERY : AD_REQ_CALL, row, calls[i].loop,
                 calls[i].outputs, calls[i].inputs, calls[i].parameters);
        draw_all(calls[i].name);
    }
    for (uint64_t id = 1; id < 256; id++)
        cr_expect(!ad__call(id) || seen[id], "%s has no line above", ad__call(id) ? ad__call(id)->name : "");
    cr_expect(refused > tried / 4 && refused < tried);
}

Test(infer_drawn, more_than_a_call_can_do) {
    static const struct {
        const char *name, *loop, *outputs, *inputs, *parameters;
        int status;
    } wrong[] = {
        {"sample", "f4", "f4:7", "f4:2,2,2,2,2,2,2,2 f4:8,7", "no 5 0 0 0", AD_E_VALUE},
        {"label", "b1", "i4:65536,32768 i8:", "b1:65536,32768 i8:8,2", "", AD_E_VALUE},
        {"spgemm", "f4", "f4:? i4:? i4:?", "f4:7 i4:7 i4:4 f4:7 i8:7 i8:4", "3", AD_E_TYPE},
        {"spgemm", "f4", "f4:? i8:? i8:?", "f4:7 i8:7 i8:1099511627777 f4:7 i8:7 i8:4", "4294967296", AD_E_VALUE},
        {"spunion", "f4", "f4:? i4:? i4:?", "f4:7 i4:7 i4:4 f4:7 i8:7 i8:4", "0", AD_E_TYPE},
        {"spunion", "i4", "i4:? i4:? i4:?", "i4:7 i4:7 i4:4 i4:7 i4:7 i4:4", "0", AD_E_TYPE},
        {"spunion", "f4", "f4:? i4:? i4:?", "f4:7 i4:7 i4:4 f4:7 i4:7 i4:5", "0", AD_E_VALUE},
        {"spunion", "f4", "f4:? i4:? i4:?", "f4:7 i4:7 i4:4 f4:7 i4:7 i4:4", "9", AD_E_VALUE},
        {"spunion", "f4", "f4:? i4:? i4:?", "f4:7 i4:7 i4:4 f4:7 i4:7 i4:4", "-1", AD_E_VALUE},
        {"sptranspose", "f4", "f4:7 i4:7 i4:6", "f4:7 i4:7 i4:4", "2147483648", AD_E_VALUE},
        {"sptranspose", "f4", "f4:7 i4:7 i4:6", "f4:7 i4:7 i4:4", "-1", AD_E_VALUE},
        {"sptranspose", "f4", "f4:7 i4:7 i4:6", "f4:7 i4:7 i4:2147483650", "5", AD_E_VALUE},
        {"sptranspose", "f4", "f4:7 i4:7 i4:6", "f4:2147483648 i4:2147483648 i4:4", "5", AD_E_VALUE},
        {"nearest_points", "f8", "f8:3,2 i8:3,2", "f8:4,2 f8:3,2", "2 2 nan.", AD_E_VALUE},
        {"sprows", "i4", "i4:7", "i4:2147483648", "7", AD_E_VALUE},
        {"sprows", "i4", "i4:7", "i4:4", "-1", AD_E_VALUE},
        {"sprows", "i4", "i4:7", "i4:0", "7", AD_E_VALUE},
        {"sprows", "f4", "f4:7", "f4:4", "7", AD_E_TYPE},
        {"sprows", "i4", "i4:7", "i8:4", "7", AD_E_TYPE},
        {"spdiagonal", "f4", "f4:2", "f4:7 i4:7 i4:4", "2 0 2", AD_E_VALUE},
        {"spdiagonal", "f4", "f4:2", "f4:7 i4:7 i4:4", "0 -1 2", AD_E_VALUE},
        {"spdiagonal", "f4", "f4:2", "f4:7 i4:7 i4:4", "0 9223372036854775807 2", AD_E_VALUE},
        {"spdiagonal", "i4", "i4:2", "i4:7 i4:7 i4:4", "0 0 2", AD_E_TYPE},
        {"sptake", "f4", "f4:? i4:? i4:?", "f4:7 i4:7 i4:4 i4:9", "", AD_E_TYPE},
        {"spcomponents", "f4", "i4:3", "f4:7 i4:7 i4:2147483650", "", AD_E_VALUE},
        {"spcomponents", "u1", "i4:3", "u1:7 i4:7 i4:4", "", AD_E_TYPE},
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        const int row = find_call(wrong[i].name);
        begin_op(ad__call((uint64_t)row)->kind == AD_CALL_ASK ? AD_REQ_QUERY : AD_REQ_CALL, row, wrong[i].loop,
                 wrong[i].outputs, wrong[i].inputs, wrong[i].parameters);
        cr_expect_eq(try_op(wrong[i].name), wrong[i].status, "%s", wrong[i].name);
    }
}

Test(infer_drawn, ufuncs_and_reductions) {
    for (size_t i = 0; i < COUNT(ufuncs); i++) {
        begin_op(AD_REQ_UFUNC, find_ufunc(ufuncs[i].name), ufuncs[i].loop, ufuncs[i].outputs, ufuncs[i].inputs, "");
        draw_all(ufuncs[i].name);
    }
    for (size_t i = 0; i < COUNT(reductions); i++) {
        begin_op(AD_REQ_REDUCE, find_reduction(reductions[i].name), reductions[i].loop, reductions[i].outputs,
                 reductions[i].inputs, reductions[i].parameters);
        draw_all(reductions[i].name);
    }
}
