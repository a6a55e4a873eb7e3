/* a[key]: views, and copies of what index arrays select. */
#include "index.h"
#include "protocol/rows_call.h"

/* ---- index arrays ---- */

/* Elements of a view by index arrays: a handle, or NULL. */
static ad_array *gather_elements(ad_array *view, const ad__py_indices *x) {
    ad_in in[AD_MAX_NDIM + 1];
    ad_array *turned = ad__py_axes_first(view, x->count, x->axes), *out = NULL;
    if (!turned) return NULL;
    in[0] = ad_of(turned);
    for (int i = 0; i < x->count; i++) in[i + 1] = ad_of(x->array[i]);
    int status = ad_call_call(NULL, AD_CALL_gather, -1, x->count + 1, in, 0, NULL, NULL, &out, NULL);
    ad__py_ensure();
    ad_array_release(turned);
    if (status) ad__py_fail(status);
    return out;
}

/* The first n axes of a handle, which is taken over, moved to `position`; wrapped. */
static PyObject *place_axes(ad_array *array, int n, int position, ad__py_session *s) {
    PyObject *flat, *result;
    ad_array *moved;
    if (!array) return NULL;
    if (position == 0 || n == 0) return ad__py_wrap(array, s, NULL);
    moved = ad__py_axes_moved(array, 0, n, position);
    flat = ad__py_wrap(array, s, NULL);
    if (!moved || !flat) {
        ad_array_release(moved);
        Py_XDECREF(flat);
        return NULL;
    }
    result = ad__py_wrap(moved, s, flat);
    Py_DECREF(flat);
    return result;
}

static PyObject *get_by_indices(const ad__py_key *k, PyObject *view) {
    ad__py_session *s = ((ad__py_array *)view)->session;
    ad_array_info info = ad__py_info(view);
    ad__py_indices x;
    PyObject *result = NULL;
    if (!ad__py_indices_make(&x, k, &info, s))
        result = place_axes(gather_elements(ad__py_handle(view), &x), x.ndim, k->position, s);
    ad__py_indices_free(&x);
    return result;
}

/* ---- one mask, on the server ---- */

static ad_array *compress_view(ad_array *turned, ad_array *mask) {
    const ad_in in[2] = {ad_of(turned), ad_of(mask)};
    int64_t values[AD_MAX_PARAM];
    ad_array *out = NULL;
    ad__py_release();
    int status = ad_call_call(NULL, AD_CALL_compress, -1, 2, in, 0, NULL, NULL, &out, values);
    ad__py_acquire();
    if (status) ad__py_fail(status);
    return out;
}

static PyObject *get_by_mask(const ad__py_key *k, PyObject *view) {
    const ad__py_fancy *f = &k->fancy[0];
    int axes[AD_MAX_NDIM];
    ad_array *turned, *mask, *found;
    for (int i = 0; i < f->item->naxes; i++) axes[i] = f->axis + i;
    turned = ad__py_axes_first(ad__py_handle(view), f->item->naxes, axes);
    if (!turned) return NULL;
    mask = ad_array_retain(ad__py_handle(f->item->object));
    found = compress_view(turned, mask);
    ad_array_release(mask);
    ad_array_release(turned);
    return place_axes(found, 1, k->position, ((ad__py_array *)view)->session);
}

/* ---- a[key] ---- */

PyObject *ad__py_at(PyObject *a, Py_ssize_t i) {
    ad_array_info info = ad__py_info(a);
    ad_array *view;
    int64_t n = info.ndim ? info.shape[0] : 0, offset = info.offset;
    if (info.ndim == 0) {
        PyErr_SetString(PyExc_IndexError, "too many indices for array: array is 0-dimensional, but 1 were indexed");
        return NULL;
    }
    if (i < -n || i >= n) {
        PyErr_Format(PyExc_IndexError, "index %zd is out of bounds for axis 0 with size %lld", i, (long long)n);
        return NULL;
    }
    if (info.count) offset += (i < 0 ? i + n : i) * info.strides[0];
    int status = ad_view(ad__py_handle(a), info.dtype, offset, info.ndim - 1, info.shape + 1, info.strides + 1, &view);
    return ad__py_view_result(status, &view, a);
}

PyObject *ad__py_subscript(PyObject *a, PyObject *key) {
    ad__py_key k;
    PyObject *view = NULL, *result = NULL;
    if (PyLong_CheckExact(key)) {
        Py_ssize_t i = PyNumber_AsSsize_t(key, PyExc_IndexError);
        return i == -1 && PyErr_Occurred() ? NULL : ad__py_at(a, i);
    }
    if (ad__py_key_parse(&k, a, key) == 0) view = ad__py_key_view(&k, a);
    if (view && k.nfancy == 0) result = Py_NewRef(view);
    else if (view && ad__py_is_one_mask(&k) && !k.fancy[0].item->host) result = get_by_mask(&k, view);
    else if (view) result = get_by_indices(&k, view);
    Py_XDECREF(view);
    ad__py_key_free(&k);
    return result;
}

/* ---- sequences ---- */

static Py_ssize_t get_length(PyObject *a) {
    ad_array_info info = ad__py_info(a);
    if (info.ndim == 0) {
        PyErr_SetString(PyExc_TypeError, "len() of unsized object");
        return -1;
    }
    return (Py_ssize_t)info.shape[0];
}

static PyObject *iterate_array(PyObject *a) {
    if (ad__py_info(a).ndim == 0) {
        PyErr_SetString(PyExc_TypeError, "iteration over a 0-d array");
        return NULL;
    }
    return PySeqIter_New(a);
}

/* (a == element).any(); waits. */
static int contains_element(PyObject *a, PyObject *element) {
    PyObject *equal = PyObject_RichCompare(a, element, Py_EQ), *any = NULL;
    ad_array *out;
    int truth = -1;
    if (equal && !ad__py_is_array(equal)) truth = 0;
    else if (equal)
        any = ad__py_result(ad_any(ad_of(ad__py_handle(equal)), &out), &out, ((ad__py_array *)equal)->session);
    if (any) truth = PyObject_IsTrue(any);
    Py_XDECREF(equal);
    Py_XDECREF(any);
    return truth;
}

static int assign_item(PyObject *a, Py_ssize_t i, PyObject *value) {
    PyObject *key = PyLong_FromSsize_t(i);
    int status = key ? ad__py_assign_subscript(a, key, value) : -1;
    Py_XDECREF(key);
    return status;
}

const PyType_Slot ad__py_index_slots[] = {
    {Py_mp_length, get_length},
    {Py_mp_subscript, ad__py_subscript},
    {Py_mp_ass_subscript, ad__py_assign_subscript},
    {Py_sq_length, get_length},
    {Py_sq_item, ad__py_at},
    {Py_sq_ass_item, assign_item},
    {Py_sq_contains, contains_element},
    {Py_tp_iter, iterate_array},
    {0, NULL},
};
