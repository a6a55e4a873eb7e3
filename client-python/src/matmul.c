/* The operator @. */
#include "core.h"
#include "protocol/rows_call.h"

int ad__py_matmul_init(PyObject *module) {
    const char *set = getenv("ARRAYD_TF32");
    if (!set) set = getenv("CUPY_TF32");
    ad__py.tf32 = set && strcmp(set, "1") == 0;
    return PyModule_AddObjectRef(module, "tf32", ad__py.tf32 ? Py_True : Py_False);
}

/* An operand as a stack of matrices: a vector becomes a row (first) or a column. */
static ad_array *as_matrix(ad_array *a, bool first) {
    ad_array_info info;
    ad_array *view = NULL;
    ad_array_get_info(a, &info);
    if (info.ndim >= 2) return ad_array_retain(a);
    const int64_t shape[2] = {first ? 1 : info.shape[0], first ? info.shape[0] : 1};
    const int64_t strides[2] = {first ? 0 : info.strides[0], first ? info.strides[0] : 0};
    int status = ad_view(a, info.dtype, info.offset, 2, shape, strides, &view);
    if (status) ad__py_fail(status);
    return view;
}

static int too_few(int operand) {
    PyErr_Format(PyExc_ValueError,
                 "matmul: Input operand %d does not have enough dimensions (has 0, gufunc core with signature "
                 "(n?,k),(k,m?)->(n?,m?) requires 1)",
                 operand);
    return -1;
}

/* The result without the axes of size 1 that vectors brought. */
static PyObject *drop_axes(ad_array *array, bool row, bool column, ad__py_session *s) {
    ad_array_info info;
    ad_array *view;
    PyObject *whole, *result;
    int64_t shape[AD_MAX_NDIM], strides[AD_MAX_NDIM];
    int n = 0;
    whole = ad__py_wrap(array, s, NULL);
    if (!whole || (!row && !column)) return whole;
    ad_array_get_info(array, &info);
    for (int i = 0; i < info.ndim; i++) {
        if ((row && i == info.ndim - 2) || (column && i == info.ndim - 1)) continue;
        shape[n] = info.shape[i];
        strides[n++] = info.strides[i];
    }
    result = ad__py_view_result(ad_view(array, info.dtype, info.offset, n, shape, strides, &view), &view, whole);
    Py_DECREF(whole);
    return result;
}

static PyObject *multiply_matrices(PyObject *x, PyObject *y) {
    ad_array_info a = ad__py_info(x), b = ad__py_info(y);
    ad__py_session *s = ((ad__py_array *)x)->session;
    if (a.ndim == 0 || b.ndim == 0) {
        too_few(a.ndim != 0);
        return NULL;
    }
    ad_array *first = as_matrix(ad__py_handle(x), true), *second = as_matrix(ad__py_handle(y), false), *out = NULL;
    int status = AD_E_VALUE;
    if (first && second) {
        const ad_in in[2] = {ad_of(first), ad_of(second)};
        const ad_value tf32 = {-1, AD_VALUE_BOOL, {.i = ad__py.tf32}};
        status = ad_call_call(NULL, AD_CALL_matmul, ad__promote(a.dtype, b.dtype), 2, in, 1, &tf32, NULL, &out, NULL);
        ad__py_ensure();
        if (status) ad__py_fail(status);
    }
    ad_array_release(first);
    ad_array_release(second);
    return status ? NULL : drop_axes(out, a.ndim == 1, b.ndim == 1, s);
}

static PyObject *store_result(PyObject *result, PyObject *out) {
    ad_array_info is = ad__py_info(result), must = ad__py_info(out);
    int status = -1;
    if (is.ndim != must.ndim || memcmp(is.shape, must.shape, sizeof *is.shape * is.ndim) != 0) {
        PyErr_SetString(PyExc_ValueError,
                        "matmul: the result does not have the shape of the array that it is assigned to");
    } else {
        status = ad_copy_into(ad__py_handle(out), ad_of(ad__py_handle(result)), AD_CAST_SAME_KIND);
        ad__py_ensure();
        if (status) ad__py_fail(status);
    }
    Py_DECREF(result);
    return status ? NULL : Py_NewRef(out);
}

/* 1: an ndarray; 0: leave it to the other operand; -1 with an exception. */
static int matrix_operand(PyObject *o, int position) {
    ad_in in;
    if (ad__py_is_array(o)) return 1;
    int got = ad__py_operand(o, &in);
    return got > 0 ? too_few(position) : got;
}

PyObject *ad__py_matmul(PyObject *x, PyObject *y, PyObject *out) {
    int first = matrix_operand(x, 0), second = first > 0 ? matrix_operand(y, 1) : 1;
    if (first < 0 || second < 0) return NULL;
    if (first == 0 || second == 0) Py_RETURN_NOTIMPLEMENTED;
    PyObject *result = multiply_matrices(x, y);
    return result && out ? store_result(result, out) : result;
}
