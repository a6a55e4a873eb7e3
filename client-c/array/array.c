/* Arrays: handles, layout, creation. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client-c/interop/lend.h"
#include "protocol/rows_call.h"
#include "protocol/rows_request.h"

int ad__dtype_check(int dtype) {
    if (dtype < 0 || dtype >= AD_NDTYPE) return ad__fail(AD_E_TYPE, "%d is no data type", dtype);
    return 0;
}

/* ---- layout ---- */

/* Set row-major strides, as NumPy computes them. */
static void set_packed_strides(ad_array *a, int64_t itemsize) {
    int64_t step = a->count ? itemsize : 0;
    for (int i = a->ndim - 1; i >= 0; i--) {
        a->strides[i] = step;
        step *= a->shape[i];
    }
}

static int count_elements(int ndim, const int64_t *shape, int dtype, int64_t *count) {
    ad_fault fault;
    return ad__shape_count(ndim, shape, dtype, count, &fault) ? ad__fail_fault(&fault) : 0;
}

int ad__shape_check(int ndim, const int64_t *shape, int dtype) {
    int64_t count;
    int status = ad__dtype_check(dtype);
    if (status) return status;
    if (ndim > 0 && !shape) return ad__fail(AD_E_VALUE, "the shape of an array of %d dimensions is missing", ndim);
    return count_elements(ndim, shape, dtype, &count);
}

static bool is_packed_both_ways(const ad_array *a) {
    int wide = 0;
    for (int i = 0; i < a->ndim; i++) wide += a->shape[i] > 1;
    return wide <= 1 || a->count == 0;
}

int ad__array_new(ad_session *s, int dtype, int ndim, const int64_t *shape, ad_array **out) {
    const int64_t itemsize = ad__dtypes[dtype].size;
    int64_t count;
    int status = count_elements(ndim, shape, dtype, &count);
    if (status) return status;
    ad_array *a = malloc(sizeof *a + 2 * (size_t)ndim * sizeof *a->dims);
    if (!a) return ad__fail_memory();
    a->count = count;
    a->size = count * itemsize;
    atomic_init(&a->refs, 1);
    a->dtype = (uint8_t)dtype;
    a->ndim = (uint8_t)ndim;
    a->device = ad__current_device(s);
    a->offset = 0;
    a->shape = a->dims;
    a->strides = a->dims + ndim;
    for (int i = 0; i < ndim; i++) a->shape[i] = shape[i];
    set_packed_strides(a, itemsize);
    a->contiguous = true;
    a->readonly = false;
    atomic_init(&a->own, false);
    a->f_contiguous = ndim <= 1 || is_packed_both_ways(a);
    a->base = NULL;
    a->session = ad__session_retain(s);
    a->lent = NULL;
    a->buffer = 0;
    *out = a;
    return 0;
}

int ad__array_view(const ad_array *a, int dtype, int64_t offset, int ndim, const int64_t *shape, const int64_t *strides,
                   ad_array **out) {
    const size_t n = (size_t)ndim;
    int64_t count;
    int status = count_elements(ndim, shape, dtype, &count);
    if (status) return status;
    ad_array *v = malloc(sizeof *v + 2 * n * sizeof *v->dims);
    if (!v) return ad__fail_memory();
    atomic_init(&v->refs, 1);
    v->dtype = (uint8_t)dtype;
    v->ndim = (uint8_t)ndim;
    v->device = a->device;
    v->offset = offset;
    v->shape = v->dims;
    v->strides = v->dims + n;
    for (size_t i = 0; i < n; i++) {
        v->shape[i] = shape[i];
        v->strides[i] = strides[i];
    }
    v->count = count;
    v->readonly = a->readonly;
    atomic_init(&v->own, false);
    v->base = ad_array_retain(ad__array_owner(a));
    v->session = a->session;
    v->lent = NULL;
    v->buffer = a->buffer;
    v->size = 0;
    ad_desc d = ad__array_desc(v);
    v->contiguous = ad__is_contiguous(&d);
    v->f_contiguous = ad__is_f_contiguous(&d);
    *out = v;
    return 0;
}

/* ---- handles ---- */

void ad_array_get_info(const ad_array *a, ad_array_info *info) {
    *info = (ad_array_info){.session = a->session,
                            .shape = a->shape,
                            .strides = a->strides,
                            .count = a->count,
                            .offset = a->offset,
                            .buffer = a->buffer,
                            .dtype = a->dtype,
                            .ndim = a->ndim,
                            .device = a->device,
                            .contiguous = a->contiguous,
                            .f_contiguous = a->f_contiguous,
                            .writable = !a->readonly,
                            .lent = ad__lent_address(a->base ? a->base->lent : a->lent)};
}

void ad_freeze(ad_array *a) { a->readonly = true; }

ad_array *ad_array_retain(ad_array *a) {
    atomic_fetch_add_explicit(&a->refs, 1, memory_order_relaxed);
    return a;
}

void ad_array_release(ad_array *a) {
    while (a && atomic_fetch_sub_explicit(&a->refs, 1, memory_order_acq_rel) == 1) {
        ad_array *base = a->base;
        if (!base) {
            if (a->buffer) ad__queue_free(a->session, a->buffer, a->size);
            if (a->lent) ad__lent_release(a->lent);
            ad__session_release(a->session);
        }
        free(a);
        a = base;
    }
}

/* ---- creation ---- */

int ad__send_new(ad_array *a, bool zero) {
    if (!AD_LIKELY(!ad__recording)) return ad__record_new(a, zero);
    int status = ad__begin_telling(a->session);
    if (status) return status;
    size_t mark = a->session->output.gathered.size;
    ad__array_name(a);
    ad_desc d = ad__fresh_desc(a);
    status = ad__commit(a->session, mark, ad__encode_new(&a->session->output.gathered, &d, zero));
    if (status && status != AD_E_INTERRUPTED) a->buffer = 0;
    return status;
}

static int create_array(ad_session *s, int dtype, int ndim, const int64_t *shape, bool zero, ad_array **out) {
    ad_array *a;
    int status = ad__shape_check(ndim, shape, dtype);
    if (!status) status = ad__array_new(s, dtype, ndim, shape, &a);
    if (status) return status;
    return ad__hand_out(ad__send_new(a, zero), 1, &a, out);
}

int ad_empty(ad_session *s, int dtype, int ndim, const int64_t *shape, ad_array **out) {
    return create_array(s, dtype, ndim, shape, false, out);
}

int ad_zeros(ad_session *s, int dtype, int ndim, const int64_t *shape, ad_array **out) {
    return create_array(s, dtype, ndim, shape, true, out);
}

int ad_full(ad_session *s, int dtype, int ndim, const int64_t *shape, ad_in value, ad_array **out) {
    ad_array *a;
    int status = ad__shape_check(ndim, shape, dtype);
    if (!status) status = ad__array_new(s, dtype, ndim, shape, &a);
    if (status) return status;
    return ad__hand_out(ad__copy(a, &value, AD_CAST_UNSAFE, true), 1, &a, out);
}

static double convert_to_double(const ad_value *v) {
    switch (v->kind) {
    case AD_VALUE_FLOAT: return v->as.f;
    case AD_VALUE_COMPLEX: return v->as.c[0];
    case AD_VALUE_UINT: return (double)v->as.u;
    default: return (double)v->as.i;
    }
}

static bool is_float(const ad_value *v) { return v->kind == AD_VALUE_FLOAT; }

static __int128 convert_to_wide(const ad_value *v) { return v->kind == AD_VALUE_UINT ? (__int128)v->as.u : v->as.i; }

/* Divide and round up; the result fits. Compilers divide such numbers by a function of their own library, which would
 * be linked in. */
static int64_t divide_up(unsigned __int128 a, unsigned __int128 b) {
    int64_t result = 0;
    a += b - 1;
    for (int bit = 62; bit >= 0; bit--) {
        if (a < b << bit) continue;
        a -= b << bit;
        result |= (int64_t)1 << bit;
    }
    return result;
}

/* Count start, start + step, ... before stop; false: there are too many. */
static bool count_arange(const ad_value *start, const ad_value *stop, const ad_value *step, int64_t *n) {
    if (is_float(start) || is_float(stop) || is_float(step)) {
        double length = ceil((convert_to_double(stop) - convert_to_double(start)) / convert_to_double(step));
        *n = length > 0 ? (int64_t)length : 0;
        return length < 9e18;
    }
    __int128 by = convert_to_wide(step), span = convert_to_wide(stop) - convert_to_wide(start);
    if (by == 0) return false;
    if (by < 0) by = -by, span = -span;
    *n = 0;
    if (span > by * INT64_MAX) return false;
    if (span > 0) *n = divide_up((unsigned __int128)span, (unsigned __int128)by);
    return true;
}

int ad_arange(ad_session *s, ad_in start, ad_in stop, ad_in step, int dtype, ad_array **out) {
    const ad_in *in[3] = {&start, &stop, &step};
    uint8_t types[3];
    int64_t n;
    ad_array *a;
    for (int i = 0; i < 3; i++) {
        if (in[i]->array || in[i]->value.kind == AD_VALUE_COMPLEX)
            return ad__fail(AD_E_TYPE, "arange takes real numbers");
        types[i] = (uint8_t)ad__in_type(in[i]);
    }
    if (dtype < 0) dtype = ad__promote_all(3, types);
    if (ad__dtype_check(dtype)) return AD_E_TYPE;
    if (!count_arange(&start.value, &stop.value, &step.value, &n))
        return ad__fail(AD_E_VALUE, "Maximum allowed size exceeded");
    int status = ad__array_new(s, dtype, 1, &n, &a);
    if (status) return status;
    ad_operand output = {.desc = ad__fresh_desc(a)};
    ad_scalar param[2];
    ad_op op = {.opcode = AD_REQ_CALL,
                .row = AD_CALL_iota,
                .loop = (uint8_t)dtype,
                .nout = 1,
                .nparam = 2,
                .operand = &output,
                .param = param};
    status = ad__value_scalar(&start.value, &param[0]);
    if (!status) status = ad__value_scalar(&step.value, &param[1]);
    if (!status) status = ad__send_op(s, &op, &a);
    return ad__hand_out(status, 1, &a, out);
}
