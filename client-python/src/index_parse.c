/* Keys of a[key], taken apart as NumPy does. */
#include "index.h"

#define WRONG_KEY                                                                                                    \
    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are valid " \
    "indices"
#define WRONG_ARRAY "arrays used as indices must be of integer (or boolean) type"

static int raise_wrong_index(const char *message) {
    PyErr_SetString(PyExc_IndexError, message);
    return -1;
}

/* ---- one item ---- */

static int int_item(ad__py_key_item *item, PyObject *o) {
    item->kind = ITEM_INT;
    item->naxes = 1;
    item->value = PyNumber_AsSsize_t(o, PyExc_IndexError);
    if (item->value != -1 || !PyErr_Occurred()) return 0;
    if (PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        raise_wrong_index(WRONG_KEY);
    }
    return -1;
}

static int bool_item(ad__py_key_item *item, int truth) {
    item->kind = ITEM_BOOL;
    item->naxes = 0;
    item->value = truth;
    return truth < 0 ? -1 : 0;
}

/* An array of this type and shape, which item takes over. */
static int array_item(ad__py_key_item *item, PyObject *object, int dtype, int ndim, bool host) {
    item->object = object;
    item->host = host;
    if (dtype == AD_BOOL) {
        item->kind = ITEM_MASK;
        item->naxes = ndim;
        return 0;
    }
    item->kind = ITEM_INDEX;
    item->naxes = 1;
    return dtype >= 0 && AD_M_INT & AD_BIT(dtype) ? 0 : raise_wrong_index(WRONG_ARRAY);
}

static int server_item(ad__py_key_item *item, PyObject *o) {
    ad_array_info info = ad__py_info(o);
    if (info.dtype == AD_BOOL && info.ndim == 0) return bool_item(item, PyObject_IsTrue(o));
    return array_item(item, Py_NewRef(o), info.dtype, info.ndim, false);
}

static int host_ndim(PyObject *o) {
    PyObject *ndim = PyObject_GetAttrString(o, "ndim");
    int n = ndim ? (int)PyLong_AsLong(ndim) : -1;
    Py_XDECREF(ndim);
    return n;
}

/* 1: the NumPy array has no elements, 0: it has, -1 with an exception. */
static int is_empty(PyObject *host) {
    PyObject *size = PyObject_GetAttrString(host, "size");
    const int empty = size ? PyLong_AsLong(size) == 0 : -1;
    Py_XDECREF(size);
    return empty;
}

/* A NumPy array, which item takes over. listed: made from a list. */
static int host_item(ad__py_key_item *item, PyObject *host, bool listed) {
    PyObject *dtype = PyObject_GetAttrString(host, "dtype");
    int id = dtype ? ad__py_dtype_known(dtype) : -1, ndim = dtype ? host_ndim(host) : -1;
    Py_XDECREF(dtype);
    item->kind = ITEM_INDEX;
    item->object = host;
    if (ndim < 0) return -1;
    if (ndim == 0 && (id == AD_BOOL || (id >= 0 && AD_M_INT & AD_BIT(id)))) {
        item->object = NULL;
        int status = id == AD_BOOL ? bool_item(item, PyObject_IsTrue(host)) : int_item(item, host);
        Py_DECREF(host);
        return status;
    }
    const int empty = listed ? is_empty(host) : 0;
    if (empty < 0) return -1;
    if (empty) id = AD_INT64; /* lists with nothing in them */
    if (listed && (id < 0 || !((AD_M_INT | AD_M_BOOL) & AD_BIT(id)))) return raise_wrong_index(WRONG_KEY);
    return array_item(item, host, id, ndim, true);
}

/* An array that something else hands out, which item takes over. */
static int adopted_item(ad__py_key_item *item, PyObject *array) {
    const int status = server_item(item, array);
    Py_DECREF(array);
    return status;
}

/* 1: NumPy has found no numbers in it, 0: it has, -1 with an exception. */
static int holds_objects(PyObject *host) {
    PyObject *dtype = PyObject_GetAttrString(host, "dtype");
    PyObject *kind = dtype ? PyObject_GetAttrString(dtype, "kind") : NULL;
    const int found = kind ? PyUnicode_CompareWithASCIIString(kind, "O") == 0 : -1;
    Py_XDECREF(kind);
    Py_XDECREF(dtype);
    return found;
}

static int sequence_item(ad__py_key_item *item, PyObject *o) {
    PyObject *host = ad__py_call1(ad__py.np_asarray, o);
    const int objects = host ? holds_objects(host) : PyErr_ExceptionMatches(PyExc_TypeError) ? 1 : -1;
    if (objects == 0) return host_item(item, host, true);
    Py_XDECREF(host);
    if (objects < 0) return -1;
    PyErr_Clear();
    PyObject *array = ad__py_asarray(o); /* of arrays of the server, and objects that hand out such */
    if (array) return adopted_item(item, array);
    PyErr_Clear();
    return raise_wrong_index(WRONG_KEY);
}

static int other_item(ad__py_key_item *item, PyObject *o) {
    if (ad__py_is_array(o)) return server_item(item, o);
    if (PyObject_TypeCheck(o, ad__py.np_ndarray)) return host_item(item, Py_NewRef(o), false);
    if (PyObject_TypeCheck(o, ad__py.np_generic) && ad__py_scalar_type(Py_TYPE(o)) == AD_BOOL)
        return bool_item(item, PyObject_IsTrue(o));
    if (PyIndex_Check(o)) return int_item(item, o);
    PyObject *adopted = PyList_CheckExact(o) ? NULL : ad__py_adopt(o);
    if (adopted) return adopted_item(item, adopted);
    if (PyErr_Occurred()) return -1;
    if (PySequence_Check(o) && !PyUnicode_Check(o) && !PyBytes_Check(o)) return sequence_item(item, o);
    return raise_wrong_index(WRONG_KEY);
}

static int parse_item(ad__py_key_item *item, PyObject *o) {
    *item = (ad__py_key_item){.object = NULL};
    if (PyLong_CheckExact(o)) return int_item(item, o);
    if (PySlice_Check(o)) {
        item->kind = ITEM_SLICE;
        item->naxes = 1;
        item->object = o;
        return 0;
    }
    if (o == Py_Ellipsis || o == Py_None) {
        item->kind = o == Py_None ? ITEM_NEW : ITEM_ELLIPSIS;
        return 0;
    }
    if (PyBool_Check(o)) return bool_item(item, o == Py_True);
    return other_item(item, o);
}

/* ---- the items and the axes ---- */

static int parse_items(ad__py_key *k, PyObject *key) {
    Py_ssize_t n = PyTuple_Size(key);
    if (n > AD_PY_MAX_ITEMS - 1) return raise_wrong_index("too many indices for array");
    for (Py_ssize_t i = 0; i < n; i++)
        if (parse_item(&k->item[k->nitems++], PyTuple_GetItem(key, i)) != 0) return -1;
    return 0;
}

/* There is one ellipsis, at the end unless said otherwise; it takes the axes that are left. */
static int place_ellipsis(ad__py_key *k, int ndim) {
    int taken = 0, at = -1;
    for (int i = 0; i < k->nitems; i++) {
        if (k->item[i].kind == ITEM_ELLIPSIS && at >= 0)
            return raise_wrong_index("an index can only have a single ellipsis ('...')");
        if (k->item[i].kind == ITEM_ELLIPSIS) at = i;
        taken += k->item[i].naxes;
    }
    if (taken > ndim) {
        PyErr_Format(PyExc_IndexError, "too many indices for array: array is %d-dimensional, but %d were indexed", ndim,
                     taken);
        return -1;
    }
    if (at < 0 && taken < ndim) {
        at = k->nitems++;
        k->item[at] = (ad__py_key_item){.kind = ITEM_ELLIPSIS};
    }
    if (at >= 0) k->item[at].naxes = ndim - taken;
    return 0;
}

/* ---- the view ---- */

static void add_axis(ad__py_key *k, int64_t size, int64_t stride) {
    k->shape[k->ndim] = size;
    k->strides[k->ndim++] = stride;
}

static int apply_int(ad__py_key *k, const ad__py_key_item *item, const ad_array_info *a, int axis) {
    int64_t i = item->value, n = a->shape[axis];
    if (i < -n || i >= n) {
        PyErr_Format(PyExc_IndexError, "index %lld is out of bounds for axis %d with size %lld", (long long)i, axis,
                     (long long)n);
        return -1;
    }
    if (a->count) k->offset += (i < 0 ? i + n : i) * a->strides[axis]; /* those of an empty array may be any */
    return 0;
}

/* int() of a slice's part, or None where it is not there. New reference, or NULL. */
static PyObject *truncate_part(PyObject *slice, const char *name) {
    PyObject *part = PyObject_GetAttrString(slice, name), *whole = NULL;
    if (part) whole = part == Py_None ? Py_NewRef(part) : PyNumber_Long(part);
    Py_XDECREF(part);
    return whole;
}

/* A slice with int() of each of its parts. New reference, or NULL. */
static PyObject *truncate_slice(PyObject *slice) {
    PyObject *start = truncate_part(slice, "start"), *made = NULL;
    PyObject *stop = start ? truncate_part(slice, "stop") : NULL, *step = stop ? truncate_part(slice, "step") : NULL;
    if (step) made = PySlice_New(start, stop, step);
    Py_XDECREF(start);
    Py_XDECREF(stop);
    Py_XDECREF(step);
    return made;
}

static int unpack_slice(PyObject *o, Py_ssize_t *start, Py_ssize_t *stop, Py_ssize_t *step) {
    if (PySlice_Unpack(o, start, stop, step) == 0) return 0;
    if (!ad__py.truncates_slices || !PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
    PyErr_Clear();
    PyObject *slice = truncate_slice(o);
    const int status = slice ? PySlice_Unpack(slice, start, stop, step) : -1;
    Py_XDECREF(slice);
    return status;
}

static int apply_slice(ad__py_key *k, const ad__py_key_item *item, const ad_array_info *a, int axis) {
    Py_ssize_t start, stop, step, n;
    int64_t stride = a->strides[axis];
    if (unpack_slice(item->object, &start, &stop, &step) != 0) return -1;
    n = PySlice_AdjustIndices((Py_ssize_t)a->shape[axis], &start, &stop, step);
    if (n > 0 && a->count) k->offset += start * stride;
    if (__builtin_mul_overflow(stride, step, &stride))
        stride = a->strides[axis]; /* there are no two elements that far apart */
    add_axis(k, n, stride);
    return 0;
}

/* A mask without elements chooses none, whatever the sizes of the axes: another takes its place that has these. */
static int replace_mask(ad__py_key_item *item, const ad_array_info *a, int axis) {
    PyObject *sizes = ad__py_tuple(item->naxes, a->shape + axis), *type = ad__py_dtype_get(AD_BOOL);
    PyObject *mask = sizes && type ? PyObject_CallMethod(ad__py.numpy, "zeros", "OO", sizes, type) : NULL;
    Py_XDECREF(sizes);
    Py_XDECREF(type);
    if (!mask) return -1;
    ad__py_replace(&item->object, mask);
    item->host = true;
    return 0;
}

/* The mask has the sizes of the axes that it takes, or 0. */
static int check_mask(ad__py_key_item *item, const ad_array_info *a, int axis) {
    ad__py_shape shape;
    PyObject *tuple = PyObject_GetAttrString(item->object, "shape");
    int status = tuple ? ad__py_shape_of(tuple, &shape) : -1;
    bool fits = true;
    Py_XDECREF(tuple);
    for (int i = 0; i < item->naxes && !status; i++) {
        fits = fits && shape.dim[i] == a->shape[axis + i];
        if (shape.dim[i] == a->shape[axis + i] || shape.dim[i] == 0) continue;
        PyErr_Format(PyExc_IndexError,
                     "boolean index did not match indexed array along axis %d; size of axis is %lld but size of "
                     "corresponding boolean axis is %lld",
                     axis + i, (long long)a->shape[axis + i], (long long)shape.dim[i]);
        status = -1;
    }
    return status || fits ? status : replace_mask(item, a, axis);
}

static int apply_fancy(ad__py_key *k, ad__py_key_item *item, const ad_array_info *a, int axis) {
    if (k->nfancy == AD_MAX_NDIM) return raise_wrong_index("too many indices for array");
    if (item->kind == ITEM_MASK && check_mask(item, a, axis) != 0) return -1;
    k->fancy[k->nfancy++] = (ad__py_fancy){item, k->ndim, axis};
    if (item->kind == ITEM_BOOL) add_axis(k, 1, 0);
    for (int i = 0; i < item->naxes; i++) add_axis(k, a->shape[axis + i], a->strides[axis + i]);
    return 0;
}

static int apply_item(ad__py_key *k, ad__py_key_item *item, const ad_array_info *a, int axis) {
    switch (item->kind) {
    case ITEM_INT: return apply_int(k, item, a, axis);
    case ITEM_SLICE: return apply_slice(k, item, a, axis);
    case ITEM_NEW: add_axis(k, 1, 0); return 0;
    case ITEM_ELLIPSIS:
        for (int i = 0; i < item->naxes; i++) add_axis(k, a->shape[axis + i], a->strides[axis + i]);
        return 0;
    default: return apply_fancy(k, item, a, axis);
    }
}

/* NumPy puts the index arrays' axes where they were if they, and ints, stand beside each other; else first. */
static void find_position(ad__py_key *k) {
    int plain = 0, runs = 0;
    bool inside = false;
    for (int i = 0; i < k->nitems; i++) {
        const ad__py_key_item *item = &k->item[i];
        bool advanced = item->kind >= ITEM_INDEX || item->kind == ITEM_INT;
        if (advanced && !inside) {
            runs++;
            k->position = plain;
        }
        inside = advanced;
        if (!advanced) plain += item->kind == ITEM_NEW ? 1 : item->naxes;
    }
    if (runs > 1) k->position = 0;
}

int ad__py_key_parse(ad__py_key *k, PyObject *a, PyObject *key) {
    ad_array_info info = ad__py_info(a);
    int axis = 0, status;
    k->nitems = k->nfancy = k->ndim = 0;
    k->offset = info.offset;
    status = PyTuple_Check(key) ? parse_items(k, key) : parse_item(&k->item[k->nitems++], key);
    if (!status) status = place_ellipsis(k, info.ndim);
    for (int i = 0; i < k->nitems && !status; i++) {
        if (k->ndim > AD_MAX_NDIM) break;
        status = apply_item(k, &k->item[i], &info, axis);
        axis += k->item[i].naxes;
    }
    if (!status && k->ndim > AD_MAX_NDIM) {
        PyErr_Format(PyExc_IndexError, "number of dimensions must be within [0, %d], indexing result would have more",
                     AD_MAX_NDIM);
        status = -1;
    }
    if (!status && k->nfancy) find_position(k);
    return status;
}

void ad__py_key_free(ad__py_key *k) {
    for (int i = 0; i < k->nitems; i++)
        if (k->item[i].kind == ITEM_INDEX || k->item[i].kind == ITEM_MASK) Py_CLEAR(k->item[i].object);
}

PyObject *ad__py_key_view(const ad__py_key *k, PyObject *a) {
    ad_array_info info = ad__py_info(a);
    int64_t offset = k->offset;
    ad_array *view;
    for (int i = 0; i < k->ndim; i++)
        if (k->shape[i] == 0) /* nowhere to point at */
            offset = info.offset;
    int status = ad_view(ad__py_handle(a), info.dtype, offset, k->ndim, k->shape, k->strides, &view);
    return ad__py_view_result(status, &view, a);
}

static PyObject *py_truncate_slices(PyObject *module, PyObject *truncated) {
    const int is = PyObject_IsTrue(truncated);
    (void)module;
    if (is < 0) return NULL;
    ad__py.truncates_slices = is;
    Py_RETURN_NONE;
}

PyMethodDef ad__py_index_methods[] = {
    {"truncate_slices", py_truncate_slices, METH_O,
     "Whether a slice's ends may be of any type that int() takes, as in CuPy."},
    {NULL, NULL, 0, NULL},
};
