/* Elements between this process and the server. NumPy arrays are made by numpy.empty and read and filled through the
 * buffer protocol. */
#include "core.h"

#define LARGE (64 << 10) /* bytes from which sending lets other threads run */

/* ---- from the host to the server ---- */

int ad__py_download(PyObject *a, void *data, size_t size) {
    ad_array *handle = ad_array_retain(ad__py_handle(a)); /* the object's own may change meanwhile */
    ad__py_release();
    int status = ad_download(handle, data, size);
    ad__py_acquire();
    ad_array_release(handle);
    if (status) ad__py_fail(status);
    return status ? -1 : 0;
}

PyObject *ad__py_item(PyObject *a) {
    ad_array_info info = ad__py_info(a);
    char element[16];
    if (info.count != 1) {
        PyErr_SetString(PyExc_ValueError, "can only convert an array of size 1 to a Python scalar");
        return NULL;
    }
    if (ad__py_download(a, element, ad__dtypes[info.dtype].size)) return NULL;
    return ad__py_element(info.dtype, element);
}

/* Make numpy.empty. bfloat16, which has no buffers, is made as uint16. */
static PyObject *empty_host(const ad_array_info *info) {
    PyObject *shape = ad__py_tuple(info->ndim, info->shape);
    PyObject *dtype = ad__py_dtype_get(info->dtype == AD_BFLOAT16 ? AD_UINT16 : info->dtype);
    PyObject *host = shape && dtype ? PyObject_CallFunctionObjArgs(ad__py.np_empty, shape, dtype, NULL) : NULL;
    Py_XDECREF(shape);
    Py_XDECREF(dtype);
    return host;
}

static int fill_host(PyObject *a, PyObject *host) {
    Py_buffer buffer;
    if (PyObject_GetBuffer(host, &buffer, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) != 0) return -1;
    int status = ad__py_download(a, buffer.buf, (size_t)buffer.len);
    PyBuffer_Release(&buffer);
    return status;
}

/* Return host, which is taken over, as what it is in truth. */
static PyObject *finish_host(PyObject *host, int dtype) {
    PyObject *real, *view;
    if (!host || dtype != AD_BFLOAT16) return host;
    real = ad__py_dtype_get(dtype);
    view = real ? PyObject_CallMethod(host, "view", "O", real) : NULL;
    Py_XDECREF(real);
    Py_DECREF(host);
    return view;
}

/* A large array comes in memory that the server shares, where there is such. 1, 0, or -1 with an exception. */
static int get_shared(PyObject *a, const ad_array_info *info, PyObject **out) {
    ad_host *host = NULL;
    if (info->count * ad__dtypes[info->dtype].size < LARGE) return 0;
    ad_array *handle = ad_array_retain(ad__py_handle(a));
    ad__py_release();
    int status = ad_download_host(handle, &host);
    ad__py_acquire();
    if (status != AD_E_UNSUPPORTED)
        *out = status ? ad__py_fail(status) : ad__py_host(host, info->dtype, info->ndim, info->shape);
    ad_array_release(handle);
    return status == AD_E_UNSUPPORTED ? 0 : *out ? 1 : -1;
}

static PyObject *get_c(PyObject *a) {
    ad_array_info info = ad__py_info(a);
    PyObject *host = NULL;
    if (get_shared(a, &info, &host) != 0) return host;
    host = empty_host(&info);
    if (host && fill_host(a, host) != 0) Py_CLEAR(host);
    return finish_host(host, info.dtype);
}

PyObject *ad__py_get(PyObject *a, char order) {
    PyObject *turned, *host, *result;
    if (order != 'F' || ad__py_info(a).ndim < 2) return get_c(a);
    turned = ad__py_permuted(a, NULL);
    host = turned ? get_c(turned) : NULL;
    result = host ? PyObject_GetAttrString(host, "T") : NULL;
    Py_XDECREF(turned);
    Py_XDECREF(host);
    return result;
}

/* Do out[...] = the elements, straight into its memory where that has their type and layout. */
static PyObject *get_into(PyObject *a, PyObject *out) {
    ad_array_info info = ad__py_info(a);
    PyObject *shape = NULL, *dtype = NULL, *host;
    int same = -1, direct = 0;
    if (!PyObject_TypeCheck(out, ad__py.np_ndarray)) {
        PyErr_SetString(PyExc_TypeError, "only numpy.ndarray can be obtained from arrayd.ndarray");
        return NULL;
    }
    PyObject *mine = ad__py_tuple(info.ndim, info.shape);
    shape = mine ? PyObject_GetAttrString(out, "shape") : NULL;
    dtype = shape ? PyObject_GetAttrString(out, "dtype") : NULL;
    if (dtype) same = PyObject_RichCompareBool(mine, shape, Py_EQ);
    if (same == 0) PyErr_Format(PyExc_ValueError, "Shape mismatch. Expected shape: %R, actual shape: %R", mine, shape);
    if (same == 1 && info.dtype != AD_BFLOAT16 && ad__py_dtype_known(dtype) == info.dtype) {
        direct = fill_host(a, out) == 0;
        if (!direct && PyErr_ExceptionMatches(PyExc_ValueError)) /* not contiguous */
            PyErr_Clear();
    }
    Py_XDECREF(mine);
    Py_XDECREF(shape);
    Py_XDECREF(dtype);
    if (direct) return Py_NewRef(out);
    if (same != 1 || PyErr_Occurred() || !(host = get_c(a))) return NULL;
    same = PyObject_SetItem(out, Py_Ellipsis, host);
    Py_DECREF(host);
    return same == 0 ? Py_NewRef(out) : NULL;
}

PyObject *ad__py_get_method(PyObject *self, PyObject *const *args, Py_ssize_t npos, PyObject *kwnames) {
    static const char *const names[] = {"stream", "order", "blocking", "out", NULL};
    PyObject *values[4];
    int order;
    if (ad__py_arguments("get", names, args, npos, kwnames, values) != 0 ||
        (order = ad__py_order(values[1], self, 'C')) < 0)
        return NULL;
    return values[3] && values[3] != Py_None ? get_into(self, values[3]) : ad__py_get(self, (char)order);
}

/* ---- up ---- */

/* A type that arrayd has, in this machine's byte order; *id: that. */
static PyObject *native_dtype(PyObject *dtype, int *id) {
    PyObject *native = Py_NewRef(dtype);
    *id = ad__py_dtype_known(dtype);
    if (*id < 0) {
        ad__py_replace(&native, PyObject_CallMethod(dtype, "newbyteorder", "s", "="));
        *id = native ? ad__py_dtype_known(native) : -1;
    }
    if (*id >= 0) return native;
    if (native) PyErr_Format(PyExc_TypeError, "arrayd has no %R: numbers and bool only", native);
    Py_XDECREF(native);
    return NULL;
}

static int host_shape(PyObject *host, ad__py_shape *shape) {
    PyObject *tuple = PyObject_GetAttrString(host, "shape");
    int status = tuple ? ad__py_shape_of(tuple, shape) : -1;
    Py_XDECREF(tuple);
    return status;
}

/* A large row-major copy, as another type, in memory that the server shares: it need not be copied again. 1, 0 where
 * there is none, or -1 with an exception. */
static int pack_shared(PyObject *array, int dtype, ad__py_session *s, PyObject **out) {
    int64_t size = ad__dtypes[dtype].size;
    ad_host *host = NULL;
    ad__py_shape shape;
    if (host_shape(array, &shape) != 0) return -1;
    for (int i = 0; i < shape.ndim; i++)
        if (__builtin_mul_overflow(size, shape.dim[i], &size)) return 0;
    if (size < LARGE) return 0;
    ad__py_release();
    int status = ad_host_alloc(s->handle, (size_t)size, &host);
    ad__py_acquire();
    if (status == AD_E_UNSUPPORTED) return 0;
    *out = status ? ad__py_fail(status) : ad__py_host(host, dtype, shape.ndim, shape.dim);
    if (*out && PyObject_SetItem(*out, Py_Ellipsis, array) != 0) Py_CLEAR(*out);
    return *out ? 1 : -1;
}

/* Tell whether asarray would return the array itself; -1 with an exception. */
static int is_packed(PyObject *array, PyObject *type, PyObject *wanted) {
    int same = PyObject_RichCompareBool(type, wanted, Py_EQ);
    PyObject *flags = same == 1 ? PyObject_GetAttrString(array, "flags") : NULL;
    PyObject *c = flags ? PyObject_GetAttrString(flags, "c_contiguous") : NULL;
    if (c) same = PyObject_IsTrue(c);
    else if (same == 1) same = -1;
    Py_XDECREF(c);
    Py_XDECREF(flags);
    return same;
}

static PyObject *pack_array(PyObject *array, PyObject *type, PyObject *native, int dtype, ad__py_session *s) {
    PyObject *packed = NULL;
    int there = is_packed(array, type, native);
    if (there == 1) return Py_NewRef(array);
    if (there == 0) there = pack_shared(array, dtype, s, &packed);
    return there == 0 ? PyObject_CallFunction(ad__py.np_asarray, "OOs", array, native, "C") : packed;
}

/* Get host as a row-major NumPy array of a type of arrayd's. *dtype: that. */
static PyObject *packed_host(PyObject *host, int *dtype, ad__py_session *s) {
    PyObject *array, *type, *native, *packed;
    if (PyObject_TypeCheck(host, ad__py.np_ndarray)) array = Py_NewRef(host);
    else array = ad__py_call1(ad__py.np_asarray, host);
    type = array ? PyObject_GetAttrString(array, "dtype") : NULL;
    native = type ? native_dtype(type, dtype) : NULL;
    packed = native ? pack_array(array, type, native, *dtype, s) : NULL;
    Py_XDECREF(native);
    Py_XDECREF(type);
    Py_XDECREF(array);
    return packed;
}

static PyObject *as_dtype(PyObject *host, int dtype, ad__py_session *s) {
    PyObject *cast = NULL;
    int there = pack_shared(host, dtype, s, &cast);
    PyObject *type = there == 0 ? ad__py_dtype_get(dtype) : NULL;
    if (type) cast = PyObject_CallMethod(host, "astype", "OssOO", type, "C", "unsafe", Py_True, Py_False);
    Py_XDECREF(type);
    return cast;
}

/* The bytes of a row-major array; those of bfloat16 are seen as uint16. */
static int get_bytes(PyObject *host, int dtype, Py_buffer *buffer) {
    PyObject *type, *view = NULL;
    if (dtype != AD_BFLOAT16) return PyObject_GetBuffer(host, buffer, PyBUF_C_CONTIGUOUS);
    type = ad__py_dtype_get(AD_UINT16);
    if (type) view = PyObject_CallMethod(host, "view", "O", type);
    int status = view ? PyObject_GetBuffer(view, buffer, PyBUF_C_CONTIGUOUS) : -1;
    Py_XDECREF(type);
    Py_XDECREF(view);
    return status;
}

static ad_array *upload_buffer(ad__py_session *s, int dtype, const ad__py_shape *shape, const Py_buffer *buffer) {
    ad_array *array = NULL;
    if (buffer->len >= LARGE) ad__py_release();
    int status = ad_upload(s->handle, dtype, shape->ndim, shape->dim, buffer->buf, (size_t)buffer->len, &array);
    ad__py_ensure();
    if (status) ad__py_fail(status);
    return array;
}

/* Upload a host array that packed_host has made. */
static PyObject *upload_packed(PyObject *host, int dtype, ad__py_session *s) {
    ad__py_shape shape;
    Py_buffer buffer;
    if (host_shape(host, &shape) != 0 || get_bytes(host, dtype, &buffer) != 0) return NULL;
    ad_array *array = upload_buffer(s, dtype, &shape, &buffer);
    PyBuffer_Release(&buffer);
    return array ? ad__py_wrap(array, s, NULL) : NULL;
}

/* Replaces *host by itself as another type. */
static int cast_host(PyObject **host, int *from, int to, ad__py_session *s) {
    PyObject *cast;
    if (*from == to) return 0;
    cast = as_dtype(*host, to, s);
    ad__py_replace(host, cast);
    *from = to;
    return cast ? 0 : -1;
}

PyObject *ad__py_from_host(PyObject *host, int dtype, ad__py_session *s) {
    int from;
    PyObject *packed = packed_host(host, &from, s), *result = NULL;
    if (packed && (dtype < 0 || cast_host(&packed, &from, dtype, s) == 0)) result = upload_packed(packed, from, s);
    Py_XDECREF(packed);
    return result;
}

int ad__py_write(PyObject *a, PyObject *host) {
    int from, status = -1;
    Py_buffer buffer;
    ad__py_session *s = ((ad__py_array *)a)->session;
    PyObject *packed = packed_host(host, &from, s);
    if (packed && cast_host(&packed, &from, ad__py_info(a).dtype, s) == 0 && get_bytes(packed, from, &buffer) == 0) {
        ad_array *handle = ad_array_retain(ad__py_handle(a));
        if (buffer.len >= LARGE) ad__py_release();
        status = ad_write(handle, buffer.buf, (size_t)buffer.len);
        ad__py_ensure();
        if (status) ad__py_fail(status);
        ad_array_release(handle);
        PyBuffer_Release(&buffer);
    }
    Py_XDECREF(packed);
    return status ? -1 : 0;
}

/* Raise ValueError unless a NumPy array has the shape of one of the server. */
static int check_same_shape(PyObject *array, PyObject *host) {
    PyObject *mine = PyObject_GetAttrString(array, "shape"), *other = PyObject_GetAttrString(host, "shape");
    int same = mine && other ? PyObject_RichCompareBool(mine, other, Py_EQ) : -1;
    if (same == 0) PyErr_Format(PyExc_ValueError, "Shape mismatch. Expected shape: %R, actual shape: %R", mine, other);
    Py_XDECREF(mine);
    Py_XDECREF(other);
    return same == 1 ? 0 : -1;
}

static PyObject *set_from(PyObject *self, PyObject *host) {
    PyObject *array = ad__py_call1(ad__py.np_asarray, host);
    int status = array ? check_same_shape(self, array) : -1;
    if (!status) status = ad__py_assign(self, array);
    Py_XDECREF(array);
    return status ? NULL : Py_NewRef(Py_None);
}

PyObject *ad__py_set_method(PyObject *self, PyObject *const *args, Py_ssize_t npos, PyObject *kwnames) {
    static const char *const names[] = {"arr", "stream", NULL};
    PyObject *values[2];
    if (ad__py_arguments("set", names, args, npos, kwnames, values) != 0) return NULL;
    if (values[0]) return set_from(self, values[0]);
    PyErr_SetString(PyExc_TypeError, "set() missing required argument 'arr'");
    return NULL;
}

static PyObject *py_from_host(PyObject *module, PyObject *const *args, Py_ssize_t npos, PyObject *kwnames) {
    static const char *const names[] = {"obj", "dtype", NULL};
    PyObject *values[2], *result;
    int dtype = -1;
    (void)module;
    if (ad__py_arguments("from_host", names, args, npos, kwnames, values) != 0) return NULL;
    if (!values[0]) {
        PyErr_SetString(PyExc_TypeError, "from_host() missing required argument 'obj'");
        return NULL;
    }
    if (values[1] && values[1] != Py_None && (dtype = ad__py_dtype_id(values[1])) < 0) return NULL;
    ad__py_session *s = ad__py_session_get();
    if (!s) return NULL;
    result = ad__py_from_host(values[0], dtype, s);
    ad__py_session_leave(s);
    return result;
}

PyMethodDef ad__py_host_methods[] = {
    {"from_host", (PyCFunction)(void (*)(void))py_from_host, METH_FASTCALL | METH_KEYWORDS,
     "from_host(obj, dtype=None): a NumPy array's elements on the server, row-major."},
    {NULL, NULL, 0, NULL},
};
