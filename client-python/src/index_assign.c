/* a[key] = value. */
#include "index.h"
#include "protocol/rows_call.h"
#include "protocol/rows_ufunc.h"

#define UNSAFE 4 /* AD_CAST_UNSAFE: assignment casts as NumPy's does */

/* ---- values ---- */

/* The assigned value: a number, or an array on the server (owned by object). */
typedef struct value {
    ad_in in;
    PyObject *object;
} value;

/* A NumPy array from anything that is no operand; sequences are read as elements of the target's type. */
static PyObject *host_value(PyObject *o, int dtype) {
    PyObject *type, *host;
    if (PyObject_TypeCheck(o, ad__py.np_ndarray)) return Py_NewRef(o);
    type = ad__py_dtype_get(dtype);
    host = type ? PyObject_CallFunctionObjArgs(ad__py.np_asarray, o, type, NULL) : NULL;
    Py_XDECREF(type);
    return host;
}

/* 1: a number or an ndarray; 0: something of this process; -1 with an exception. */
static int value_operand(PyObject *o, int dtype, ad_in *in) {
    if (PyObject_TypeCheck(o, ad__py.np_ndarray)) return 0;
    int got = ad__py_operand(o, in);
    if (got == AD_PY_HUGE) return ad__py_huge_stored(o, dtype, &in->value);
    if (got == 1 && !in->array && ad__py_storable(&in->value, dtype) != 0) return -1;
    return got;
}

/* An array that something of this process hands out, a new reference; NULL without an exception: it hands out none. */
static PyObject *adopt_value(PyObject *o) {
    const bool plain = PyObject_TypeCheck(o, ad__py.np_ndarray) || PyList_CheckExact(o) || PyTuple_CheckExact(o);
    return plain ? NULL : ad__py_adopt(o);
}

static int value_make(value *v, PyObject *o, int dtype, ad__py_session *s) {
    PyObject *host;
    int got = value_operand(o, dtype, &v->in);
    v->object = NULL;
    if (got < 0) return -1;
    if (got == 0 && (v->object = adopt_value(o))) {
        v->in = ad_of(ad__py_handle(v->object));
        return 0;
    }
    if (PyErr_Occurred()) return -1;
    if (got == 1) {
        v->object = v->in.array ? Py_NewRef(o) : NULL;
        return 0;
    }
    host = host_value(o, dtype);
    v->object = host ? ad__py_from_host(host, dtype, s) : NULL;
    Py_XDECREF(host);
    if (!v->object) return -1;
    v->in = ad_of(ad__py_handle(v->object));
    return 0;
}

static void value_free(value *v) { Py_XDECREF(v->object); }

/* ---- views of values ---- */

static int raise_status(int status) {
    ad__py_ensure();
    if (status) ad__py_fail(status);
    return status ? -1 : 0;
}

/* The value with exactly ndim dimensions: ones are put before it, or dropped. NULL without an exception: there are more
 * that are not 1. */
static ad_array *with_ndim(const ad_array *array, int ndim) {
    ad_array_info info;
    int64_t shape[AD_MAX_NDIM], strides[AD_MAX_NDIM];
    ad_array *view;
    ad_array_get_info(array, &info);
    for (int i = 0; i < info.ndim - ndim; i++)
        if (info.shape[i] != 1) return NULL;
    for (int i = 0; i < ndim; i++) {
        int from = i + info.ndim - ndim;
        shape[i] = from < 0 ? 1 : info.shape[from];
        strides[i] = from < 0 ? 0 : info.strides[from];
    }
    int status = ad_view(array, info.dtype, info.offset, ndim, shape, strides, &view);
    return raise_status(status) ? NULL : view;
}

static int raise_mismatch(const ad_array *array, int ndim, const int64_t *shape) {
    ad_array_info info;
    PyObject *is, *must;
    if (PyErr_Occurred()) PyErr_Clear();
    ad_array_get_info(array, &info);
    is = ad__py_tuple(info.ndim, info.shape);
    must = ad__py_tuple(ndim, shape);
    if (is && must)
        PyErr_Format(PyExc_ValueError,
                     "shape mismatch: value array of shape %R could not be broadcast to indexing result of shape %R",
                     is, must);
    Py_XDECREF(is);
    Py_XDECREF(must);
    return -1;
}

/* The value broadcast to the shape of what is assigned to; NULL with an exception. */
static ad_array *stretch_value(const ad_array *array, int ndim, const int64_t *shape) {
    ad_array *fitting = with_ndim(array, ndim), *wide = NULL;
    if (!fitting || ad_broadcast_to(fitting, ndim, shape, &wide)) raise_mismatch(array, ndim, shape);
    ad_array_release(fitting);
    return wide;
}

/* ---- without index arrays ---- */

static bool same_place(const ad_array *a, const ad_array *b) {
    ad_array_info x, y;
    ad_array_get_info(a, &x);
    ad_array_get_info(b, &y);
    const size_t size = (size_t)x.ndim * sizeof *x.shape;
    return x.session == y.session && x.buffer == y.buffer && x.offset == y.offset && x.dtype == y.dtype &&
           x.ndim == y.ndim && memcmp(x.shape, y.shape, size) == 0 && memcmp(x.strides, y.strides, size) == 0;
}

static int copy_array(ad_array *to, const ad_array *from) {
    ad_array_info source, target;
    ad_array *fewer = NULL;
    if (same_place(to, from)) return 0;
    ad_array_get_info(from, &source);
    ad_array_get_info(to, &target);
    if (source.ndim > target.ndim) fewer = with_ndim(from, target.ndim);
    int status = ad_copy_into(to, ad_of(fewer ? fewer : from), UNSAFE);
    ad_array_release(fewer);
    return raise_status(status);
}

/* Lists may not be nested deeper than the array has dimensions, as NumPy has it; arrays may begin with axes of size 1. */
static int check_depth(PyObject *o, PyObject *shape, int ndim) {
    if (!(PyList_Check(o) || PyTuple_Check(o)) || PyTuple_Size(shape) <= ndim) return 0;
    PyErr_Format(PyExc_ValueError,
                 "setting an array element with a sequence. The requested array would exceed the maximum number of "
                 "dimension of %d.",
                 ndim);
    return -1;
}

/* Copy from this process, straight into place where it fits. */
static int copy_host(PyObject *a, PyObject *o) {
    ad_array_info info = ad__py_info(a);
    PyObject *host = host_value(o, info.dtype), *shape, *array = NULL;
    int status = -1, same = 0;
    if (!host) return -1;
    shape = PyObject_GetAttrString(host, "shape");
    if (shape && check_depth(o, shape, info.ndim)) same = -1;
    if (shape && !same && info.contiguous) {
        PyObject *mine = ad__py_tuple(info.ndim, info.shape);
        same = mine ? PyObject_RichCompareBool(shape, mine, Py_EQ) : -1;
        Py_XDECREF(mine);
    }
    if (shape && same == 1) status = ad__py_write(a, host);
    else if (shape && same == 0) array = ad__py_from_host(host, info.dtype, ((ad__py_array *)a)->session);
    if (array) status = copy_array(ad__py_handle(a), ad__py_handle(array));
    Py_XDECREF(array);
    Py_XDECREF(shape);
    Py_DECREF(host);
    return status;
}

int ad__py_assign(PyObject *a, PyObject *o) {
    ad_in in;
    int got = value_operand(o, ad__py_info(a).dtype, &in);
    if (got < 0) return -1;
    PyObject *adopted = got == 0 ? adopt_value(o) : NULL;
    if (adopted) {
        const int status = copy_array(ad__py_handle(a), ad__py_handle(adopted));
        Py_DECREF(adopted);
        return status;
    }
    if (got == 0) return PyErr_Occurred() ? -1 : copy_host(a, o);
    if (in.array) return copy_array(ad__py_handle(a), in.array);
    return raise_status(ad_copy_into(ad__py_handle(a), in, UNSAFE));
}

/* ---- by one mask on the server ---- */

typedef struct masked {
    const ad__py_key *k;
    ad_array *view, *mask;
    int before, naxes;  /* axes of the view before the mask's, and the mask's */
    ad_array_info info; /* of the view */
} masked;

/* The mask as it broadcasts against the view: ones for the axes behind it. */
static ad_array *spread_mask(const masked *m) {
    ad_array_info info;
    int64_t shape[AD_MAX_NDIM], strides[AD_MAX_NDIM];
    ad_array *view = NULL;
    const int ndim = m->info.ndim - m->before;
    ad_array_get_info(m->mask, &info);
    for (int i = 0; i < ndim; i++) {
        shape[i] = i < m->naxes ? info.shape[i] : 1;
        strides[i] = i < m->naxes ? info.strides[i] : 0;
    }
    return raise_status(ad_view(m->mask, AD_BOOL, info.offset, ndim, shape, strides, &view)) ? NULL : view;
}

/* Do view[...] = in where the mask is true. */
static int copy_where(const masked *m, ad_in in) {
    ad_options options = AD_OPTIONS_INIT;
    ad_array *where = spread_mask(m), *out;
    if (!where) return -1;
    options.casting = UNSAFE;
    options.where = where;
    options.out[0] = m->view;
    int status = ad_ufunc_call(m->info.session, AD_UFUNC_copy, &in, &options, &out);
    if (!status) ad_array_release(out);
    ad_array_release(where);
    return raise_status(status);
}

/* A value that is the same for all places of the mask: its axis for them gives way to ones for the mask's axes. */
static int copy_same(const masked *m, const ad_array *v) {
    ad_array_info info;
    int64_t shape[AD_MAX_NDIM], strides[AD_MAX_NDIM];
    const int at = m->k->position;
    ad_array *view;
    int n = 0;
    ad_array_get_info(v, &info);
    for (int i = 0; i <= info.ndim; i++) {
        for (int j = 0; n == m->before && j < m->naxes; j++) {
            shape[n + j] = 1;
            strides[n + j] = 0;
        }
        if (n == m->before) n += m->naxes;
        if (i == at || i == info.ndim) continue;
        shape[n] = info.shape[i];
        strides[n++] = info.strides[i];
    }
    if (raise_status(ad_view(v, info.dtype, info.offset, m->info.ndim, shape, strides, &view))) return -1;
    int status = copy_where(m, ad_of(view));
    ad_array_release(view);
    return status;
}

/* Place one value, or row of values, for each place of the mask. The server checks how many there are. */
static int place_values(const masked *m, const ad_array *v) {
    ad_array_info info, turned_info;
    int axes[AD_MAX_NDIM];
    int64_t shape[AD_MAX_NDIM];
    ad_array *turned, *moved = NULL, *wide = NULL, *out;
    int status = -1;
    for (int i = 0; i < m->naxes; i++) axes[i] = m->before + i;
    turned = ad__py_axes_first(m->view, m->naxes, axes);
    if (turned) moved = ad__py_axes_moved((ad_array *)(uintptr_t)v, m->k->position, 1, 0);
    if (moved) {
        ad_array_get_info(moved, &info);
        ad_array_get_info(turned, &turned_info);
        shape[0] = info.shape[0];
        for (int i = 1; i < info.ndim; i++) shape[i] = turned_info.shape[m->naxes + i - 1];
        if (ad_broadcast_to(moved, info.ndim, shape, &wide)) raise_mismatch(v, info.ndim, shape);
    }
    if (wide) {
        const ad_in in[2] = {ad_of(m->mask), ad_of(wide)};
        status = raise_status(ad_call_call(NULL, AD_CALL_place, m->info.dtype, 2, in, 0, NULL, &turned, &out, NULL));
        if (!status) ad_array_release(out);
    }
    ad_array_release(wide);
    ad_array_release(moved);
    ad_array_release(turned);
    return status;
}

static int assign_masked(const masked *m, const value *v) {
    const int ndim = m->info.ndim - m->naxes + 1; /* of what is assigned to */
    ad_array_info info;
    if (m->info.count == 0) return 0;
    if (!v->in.array) return copy_where(m, v->in);
    ad_array *whole = with_ndim(v->in.array, ndim);
    if (!whole) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "the value has more dimensions than the %d of what it is assigned to", ndim);
        return -1;
    }
    ad_array_get_info(whole, &info);
    int status = info.shape[m->k->position] == 1 ? copy_same(m, whole) : place_values(m, whole);
    ad_array_release(whole);
    return status;
}

static int assign_by_mask(const ad__py_key *k, PyObject *view, const value *v) {
    const ad__py_fancy *f = &k->fancy[0];
    masked m = {k, ad__py_handle(view), ad__py_handle(f->item->object), f->axis, f->item->naxes, ad__py_info(view)};
    return assign_masked(&m, v);
}

/* ---- by index arrays ---- */

/* The shape of what is assigned to: the view's axes without the indexed ones, and the indices' at their position. */
static int indexed_shape(const ad__py_key *k, const ad__py_indices *x, const ad_array_info *view, int64_t *shape) {
    int64_t plain[AD_MAX_NDIM];
    int nplain = 0, n = 0;
    uint64_t chosen = 0;
    for (int i = 0; i < x->count; i++) chosen |= (uint64_t)1 << x->axes[i];
    for (int i = 0; i < view->ndim; i++)
        if (!(chosen >> i & 1)) plain[nplain++] = view->shape[i];
    for (int i = 0; i < k->position; i++) shape[n++] = plain[i];
    for (int i = 0; i < x->ndim; i++) shape[n++] = x->shape[i];
    for (int i = k->position; i < nplain; i++) shape[n++] = plain[i];
    return n;
}

/* The value as scatter takes it: broadcast, and the indices' axes first. */
static ad_array *for_scatter(const ad__py_key *k, const ad__py_indices *x, const ad_array_info *view,
                             const ad_array *v) {
    int64_t shape[2 * AD_MAX_NDIM];
    int ndim = indexed_shape(k, x, view, shape);
    if (ndim > AD_MAX_NDIM) {
        PyErr_SetString(PyExc_IndexError, "the result of indexing would have too many dimensions");
        return NULL;
    }
    ad_array *wide = stretch_value(v, ndim, shape), *turned;
    if (!wide || k->position == 0) return wide;
    turned = ad__py_axes_moved(wide, k->position, x->ndim, 0);
    ad_array_release(wide);
    return turned;
}

static int scatter_values(ad_array *view, const ad__py_indices *x, ad_in v) {
    static const ad_value set = {AD_INT64, AD_VALUE_INT, {.i = 0}};
    ad_in in[AD_MAX_NDIM + 1];
    ad_array_info info;
    ad_array *turned, *out;
    ad_array_get_info(view, &info);
    turned = ad__py_axes_first(view, x->count, x->axes);
    if (!turned) return -1;
    in[0] = v;
    for (int i = 0; i < x->count; i++) in[i + 1] = ad_of(x->array[i]);
    int status = ad_call_call(NULL, AD_CALL_scatter, info.dtype, x->count + 1, in, 1, &set, &turned, &out, NULL);
    if (!status) ad_array_release(out);
    ad_array_release(turned);
    return raise_status(status);
}

static int assign_by_indices(const ad__py_key *k, PyObject *view, const value *v) {
    ad_array_info info = ad__py_info(view);
    ad__py_indices x;
    ad_array *turned = NULL;
    int status = ad__py_indices_make(&x, k, &info, ((ad__py_array *)view)->session);
    if (!status && v->in.array && !(turned = for_scatter(k, &x, &info, v->in.array))) status = -1;
    if (!status) status = scatter_values(ad__py_handle(view), &x, turned ? ad_of(turned) : v->in);
    ad_array_release(turned);
    ad__py_indices_free(&x);
    return status;
}

/* ---- a[key] = value ---- */

static int assign_fancy(const ad__py_key *k, PyObject *view, PyObject *o) {
    value v;
    int status = value_make(&v, o, ad__py_info(view).dtype, ((ad__py_array *)view)->session);
    if (!status && ad__py_is_one_mask(k) && !k->fancy[0].item->host) status = assign_by_mask(k, view, &v);
    else if (!status) status = assign_by_indices(k, view, &v);
    value_free(&v);
    return status;
}

int ad__py_assign_subscript(PyObject *a, PyObject *key, PyObject *o) {
    ad__py_key k;
    PyObject *view = NULL;
    int status = -1;
    if (!o) {
        PyErr_SetString(PyExc_ValueError, "cannot delete array elements");
        return -1;
    }
    if (ad__py_key_parse(&k, a, key) == 0) view = ad__py_key_view(&k, a);
    if (view) status = k.nfancy ? assign_fancy(&k, view, o) : ad__py_assign(view, o);
    Py_XDECREF(view);
    ad__py_key_free(&k);
    return status;
}
