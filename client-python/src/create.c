/* Functions that make arrays and views. */
#include "core.h"

/* Read the arguments shape and dtype of functions that make arrays. 0, or -1 with an exception. */
static int shape_and_dtype(PyObject *shape_object, PyObject *dtype_object, ad__py_shape *shape, int *dtype) {
    if (!shape_object) {
        PyErr_SetString(PyExc_TypeError, "missing required argument 'shape'");
        return -1;
    }
    if (dtype_object && dtype_object != Py_None && (*dtype = ad__py_dtype_id(dtype_object)) < 0) return -1;
    return ad__py_shape_of(shape_object, shape);
}

static PyObject *hand_out_array(int status, ad_array *const *array, ad__py_session *s) {
    PyObject *result = ad__py_result(status, array, s);
    ad__py_session_leave(s);
    return result;
}

typedef int make_function(ad_session *s, int dtype, int ndim, const int64_t *shape, ad_array **out);

static PyObject *make_array(const char *name, make_function *function, PyObject *const *args, Py_ssize_t npos,
                            PyObject *kwnames) {
    static const char *const names[] = {"shape", "dtype", NULL};
    ad__py_shape shape;
    PyObject *v[2];
    ad_array *array = NULL;
    int dtype = AD_FLOAT64;
    if (ad__py_arguments(name, names, args, npos, kwnames, v) != 0) return NULL;
    if (shape_and_dtype(v[0], v[1], &shape, &dtype) != 0)
        return v[1] && ad__py_refused_structured(v[1])
                   ? ad__py_structured("make", Py_BuildValue("(sOO)", name, v[0], v[1]))
                   : NULL;
    ad__py_session *s = ad__py_session_get();
    return s ? hand_out_array(function(s->handle, dtype, shape.ndim, shape.dim, &array), &array, s) : NULL;
}

static PyObject *py_empty(PyObject *module, PyObject *const *args, Py_ssize_t npos, PyObject *kwnames) {
    (void)module;
    return make_array("empty", ad_empty, args, npos, kwnames);
}

static PyObject *py_zeros(PyObject *module, PyObject *const *args, Py_ssize_t npos, PyObject *kwnames) {
    (void)module;
    return make_array("zeros", ad_zeros, args, npos, kwnames);
}

static int own_dtype(const ad_in *in) {
    if (in->array) {
        ad_array_info info;
        ad_array_get_info(in->array, &info);
        return info.dtype;
    }
    if (in->value.dtype >= 0) return in->value.dtype;
    switch (in->value.kind) {
    case AD_VALUE_BOOL: return AD_BOOL;
    case AD_VALUE_FLOAT: return AD_FLOAT64;
    case AD_VALUE_COMPLEX: return AD_COMPLEX128;
    case AD_VALUE_UINT: return AD_UINT64;
    default: return AD_INT64;
    }
}

static PyObject *py_full(PyObject *module, PyObject *const *args, Py_ssize_t npos, PyObject *kwnames) {
    static const char *const names[] = {"shape", "value", "dtype", NULL};
    ad__py_shape shape;
    PyObject *v[3];
    ad_array *array = NULL;
    ad_in in;
    int dtype = -1;
    (void)module;
    if (ad__py_arguments("full", names, args, npos, kwnames, v) != 0 ||
        shape_and_dtype(v[0], v[2], &shape, &dtype) != 0)
        return NULL;
    if (!v[1]) {
        PyErr_SetString(PyExc_TypeError, "full() missing required argument 'value' (pos 2)");
        return NULL;
    }
    if (ad__py_operand_of("full", v[1], &in) != 0) return NULL;
    if (dtype < 0) dtype = own_dtype(&in);
    if (!in.array && ad__py_storable(&in.value, dtype) != 0) return NULL;
    ad__py_session *s = ad__py_session_of(&v[1], 1);
    return s ? hand_out_array(ad_full(s->handle, dtype, shape.ndim, shape.dim, in, &array), &array, s) : NULL;
}

static PyObject *py_arange(PyObject *module, PyObject *const *args, Py_ssize_t npos, PyObject *kwnames) {
    static const char *const names[] = {"start", "stop", "step", "dtype", NULL};
    PyObject *v[4];
    ad_array *array = NULL;
    ad_in in[3];
    int dtype = -1;
    (void)module;
    if (ad__py_arguments("arange", names, args, npos, kwnames, v) != 0) return NULL;
    if (!v[0] || !v[1] || !v[2]) {
        PyErr_SetString(PyExc_TypeError, "arange() takes start, stop and step");
        return NULL;
    }
    for (int i = 0; i < 3; i++)
        if (ad__py_operand_of("arange", v[i], &in[i]) != 0) return NULL;
    if (v[3] && v[3] != Py_None && (dtype = ad__py_dtype_id(v[3])) < 0) return NULL;
    ad__py_session *s = ad__py_session_get();
    return s ? hand_out_array(ad_arange(s->handle, in[0], in[1], in[2], dtype, &array), &array, s) : NULL;
}

/* ---- views ---- */

static bool is_array(PyObject *o) {
    if (o && ad__py_is_array(o)) return true;
    PyErr_SetString(PyExc_TypeError, "an arrayd.ndarray is needed");
    return false;
}

static bool is_structured(PyObject *o) { return !ad__py_is_array(o) && PyObject_HasAttrString(o, "_units"); }

/* The arguments of view(), where a or the view is of structures. */
static PyObject *view_structured(PyObject *const *v) {
    return ad__py_structured("view_strided",
                             Py_BuildValue("(OOOOO)", v[0], v[1], v[2], v[3] ? v[3] : Py_False, v[4] ? v[4] : Py_None));
}

static PyObject *py_view(PyObject *module, PyObject *const *args, Py_ssize_t npos, PyObject *kwnames) {
    static const char *const names[] = {"a", "shape", "strides", "offset", "dtype", NULL};
    ad__py_shape shape, strides;
    PyObject *v[5];
    ad_array *view;
    int64_t offset = 0;
    (void)module;
    if (ad__py_arguments("view", names, args, npos, kwnames, v) != 0) return NULL;
    if (v[0] && v[1] && v[2] && is_structured(v[0])) return view_structured(v);
    if (!is_array(v[0])) return NULL;
    ad_array_info info = ad__py_info(v[0]);
    int dtype = info.dtype;
    if (!v[2]) {
        PyErr_SetString(PyExc_TypeError, "view() takes shape and strides");
        return NULL;
    }
    if (shape_and_dtype(v[1], v[4], &shape, &dtype) != 0)
        return v[4] && ad__py_refused_structured(v[4]) ? view_structured(v) : NULL;
    if (ad__py_shape_of(v[2], &strides) != 0 || (v[3] && ad__py_int64(v[3], &offset) != 0)) return NULL;
    if (shape.ndim != strides.ndim) {
        PyErr_SetString(PyExc_ValueError, "mismatch in length of strides and shape");
        return NULL;
    }
    if (__builtin_add_overflow(offset, info.offset, &offset)) {
        PyErr_SetString(PyExc_ValueError, "the offset is too large");
        return NULL;
    }
    return ad__py_view_result(ad_view(ad__py_handle(v[0]), dtype, offset, shape.ndim, shape.dim, strides.dim, &view),
                              &view, v[0]);
}

static PyObject *py_reshape(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    ad__py_shape shape;
    (void)module;
    if (n != 2) {
        PyErr_SetString(PyExc_TypeError, "ndarray_reshape() takes an array and a shape");
        return NULL;
    }
    if (is_structured(args[0])) return PyObject_CallMethod(args[0], "reshape", "O", args[1]);
    if (!is_array(args[0]) || ad__py_shape_of(args[1], &shape) != 0) return NULL;
    return ad__py_reshape(args[0], &shape, 'C', -1);
}

/* The descriptions of two arrays. false with an exception. */
static bool describe_two(PyObject *const *args, Py_ssize_t n, ad_array_info *a, ad_array_info *b) {
    PyObject *x = ad__py_elements(n == 2 ? args[0] : NULL), *y = x ? ad__py_elements(args[1]) : NULL;
    if (y) {
        *a = ad__py_info(x);
        *b = ad__py_info(y);
    }
    Py_XDECREF(x);
    Py_XDECREF(y);
    return y;
}

static PyObject *py_shares_buffer(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    ad_array_info a, b;
    (void)module;
    if (!describe_two(args, n, &a, &b)) return NULL;
    return PyBool_FromLong(a.session == b.session && a.buffer == b.buffer);
}

/* buffer_of(a): the number of its buffer. Buffers of other sessions may have it, too. */
static PyObject *py_buffer_of(PyObject *module, PyObject *a) {
    (void)module;
    PyObject *elements = ad__py_elements(a);
    if (!elements) return NULL;
    const uint64_t buffer = ad__py_info(elements).buffer;
    Py_DECREF(elements);
    return PyLong_FromUnsignedLongLong(buffer);
}

static int find_extent(const ad_array_info *info, int64_t *low, int64_t *high) {
    int64_t strides[AD_MAX_NDIM];
    ad__strides_walked(info->ndim, info->shape, info->strides, strides);
    const ad_desc d = {
        .offset = info->offset, .shape = info->shape, .strides = strides, .dtype = info->dtype, .ndim = info->ndim};
    return ad__desc_extent(&d, low, high, NULL);
}

/* Two pieces of this process's memory are buffers of their own, and may overlap. */
static bool is_of_one(const ad_array_info *a, const ad_array_info *b, int64_t *distance) {
    *distance = a->lent && b->lent ? (int64_t)((intptr_t)b->lent - (intptr_t)a->lent) : 0;
    return a->session == b->session && (a->buffer == b->buffer || (a->lent && b->lent));
}

static PyObject *py_may_share(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    int64_t low[2], high[2], distance;
    ad_array_info a, b;
    (void)module;
    if (!describe_two(args, n, &a, &b)) return NULL;
    if (!is_of_one(&a, &b, &distance) || find_extent(&a, &low[0], &high[0]) != 0 ||
        find_extent(&b, &low[1], &high[1]) != 0)
        Py_RETURN_FALSE;
    return PyBool_FromLong(low[0] < high[1] + distance && low[1] + distance < high[0]);
}

#define FAST(f) (PyCFunction)(void (*)(void))(f)
PyMethodDef ad__py_create_methods[] = {
    {"empty", FAST(py_empty), METH_FASTCALL | METH_KEYWORDS, "empty(shape, dtype=float): a new array of anything."},
    {"zeros", FAST(py_zeros), METH_FASTCALL | METH_KEYWORDS, "zeros(shape, dtype=float): a new array of zeros."},
    {"full", FAST(py_full), METH_FASTCALL | METH_KEYWORDS, "full(shape, value, dtype=None): a new array of one value."},
    {"arange", FAST(py_arange), METH_FASTCALL | METH_KEYWORDS, "arange(start, stop, step, dtype=None)."},
    {"view", FAST(py_view), METH_FASTCALL | METH_KEYWORDS,
     "view(a, shape, strides, offset=0, dtype=None): any view of a's buffer; strides and offset in bytes."},
    {"ndarray_reshape", FAST(py_reshape), METH_FASTCALL, "ndarray_reshape(a, shape): a.reshape(shape)."},
    {"shares_buffer", FAST(py_shares_buffer), METH_FASTCALL, "Whether two arrays are views of one buffer."},
    {"buffer_of", py_buffer_of, METH_O, "The number of an array's buffer in its session."},
    {"may_share_memory", FAST(py_may_share), METH_FASTCALL, "Whether the byte ranges of two arrays meet."},
    {NULL, NULL, 0, NULL},
};
