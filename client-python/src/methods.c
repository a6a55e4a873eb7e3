/* Methods of ndarray: shapes, copies, casts. */
#include "core.h"

/* ---- reshape ---- */

static int cannot_reshape(const ad_array_info *info, const ad__py_shape *asked) {
    PyObject *shape = ad__py_tuple(asked->ndim, asked->dim);
    if (shape)
        PyErr_Format(PyExc_ValueError, "cannot reshape array of size %lld into shape %R", (long long)info->count,
                     shape);
    Py_XDECREF(shape);
    return -1;
}

int ad__py_reshaped(const ad_array_info *info, const ad__py_shape *asked, ad__py_shape *shape) {
    int64_t known = 1;
    int unknown = -1;
    *shape = *asked;
    for (int i = 0; i < asked->ndim; i++) {
        if (asked->dim[i] < 0 && unknown >= 0) {
            PyErr_SetString(PyExc_ValueError, "can only specify one unknown dimension");
            return -1;
        }
        if (asked->dim[i] < 0) unknown = i;
        else if (__builtin_mul_overflow(known, asked->dim[i], &known)) return cannot_reshape(info, asked);
    }
    if (unknown >= 0) {
        if (known == 0 || info->count % known) return cannot_reshape(info, asked);
        shape->dim[unknown] = info->count / known;
    } else if (known != info->count) {
        return cannot_reshape(info, asked);
    }
    return 0;
}

static PyObject *reshape_c(PyObject *a, const ad__py_shape *shape, int copy) {
    ad_array *view;
    PyObject *packed, *result;
    if (copy != 1) {
        int status = ad_reshape_view(ad__py_handle(a), shape->ndim, shape->dim, &view);
        if (status != AD_E_UNSUPPORTED) return ad__py_view_result(status, &view, a);
    }
    if (copy == 0) {
        PyErr_SetString(PyExc_ValueError, "Unable to avoid creating a copy while reshaping.");
        return NULL;
    }
    packed = ad__py_astype(a, ad__py_info(a).dtype, 'C');
    result = packed ? reshape_c(packed, shape, 0) : NULL;
    Py_XDECREF(packed);
    return result;
}

/* Reshape in column-major order: the transposed array in the reversed shape, transposed. */
static PyObject *reshape_f(PyObject *a, const ad__py_shape *shape, int copy) {
    ad__py_shape reversed = {.ndim = shape->ndim};
    PyObject *turned = ad__py_permuted(a, NULL), *shaped = NULL, *result = NULL;
    for (int i = 0; i < shape->ndim; i++) reversed.dim[i] = shape->dim[shape->ndim - 1 - i];
    if (turned) shaped = reshape_c(turned, &reversed, copy);
    if (shaped) result = ad__py_permuted(shaped, NULL);
    Py_XDECREF(turned);
    Py_XDECREF(shaped);
    return result;
}

PyObject *ad__py_reshape(PyObject *a, const ad__py_shape *asked, char order, int copy) {
    ad_array_info info = ad__py_info(a);
    ad__py_shape shape;
    if (ad__py_reshaped(&info, asked, &shape) != 0) return NULL;
    return order == 'F' ? reshape_f(a, &shape, copy) : reshape_c(a, &shape, copy);
}

int ad__py_order_letter(PyObject *order, char otherwise) {
    static const char *const names[] = {"C", "F", "A", "K", "c", "f", "a", "k"};
    if (!order || order == Py_None) return otherwise;
    for (int i = 0; PyUnicode_Check(order) && i < 8; i++)
        if (PyUnicode_CompareWithASCIIString(order, names[i]) == 0) return names[i % 4][0];
    PyErr_Format(PyExc_ValueError, "order must be one of 'C', 'F', 'A', or 'K' (got %R)", order);
    return -1;
}

int ad__py_order(PyObject *order, PyObject *a, char otherwise) {
    const int letter = ad__py_order_letter(order, otherwise);
    if (letter < 0 || letter == 'C' || letter == 'F') return letter;
    ad_array_info info = ad__py_info(a);
    if (info.contiguous || info.f_contiguous) return info.contiguous ? 'C' : 'F';
    return letter == 'K' && info.ndim > 1 ? 'K' : 'C';
}

/* The axes by falling strides, as NumPy's copies have them in order 'K': those that repeat elements are innermost. */
static void order_axes(const ad_array_info *info, int *axes) {
    for (int n = 0; n < info->ndim; n++) {
        int i = n;
        for (; i > 0 && llabs(info->strides[axes[i - 1]]) < llabs(info->strides[n]); i--) axes[i] = axes[i - 1];
        axes[i] = n;
    }
}

/* Axes are put in the order in which memory has their elements, for reading in order 'K'. An axis that repeats
 * elements, or has one, stays where it is. */
static void order_axes_read(const ad_array_info *info, int *axes) {
    for (int n = info->ndim - 1; n >= 0; n--) {
        const int64_t outer = info->shape[n] == 1 ? 0 : llabs(info->strides[n]);
        int place = n;
        for (int i = n + 1; outer && i < info->ndim; i++) {
            const int64_t inner = info->shape[axes[i]] == 1 ? 0 : llabs(info->strides[axes[i]]);
            if (!inner) continue;
            if (inner <= outer) break;
            place = i;
        }
        for (int i = n; i < place; i++) axes[i] = axes[i + 1];
        axes[place] = n;
    }
}

static int reshape_order(PyObject *order, PyObject *a) {
    if (PyUnicode_Check(order) && PyUnicode_CompareWithASCIIString(order, "K") == 0) {
        PyErr_SetString(PyExc_ValueError, "order 'K' is not permitted for reshaping");
        return -1;
    }
    return ad__py_order(order, a, 'C');
}

/* Parse NumPy's `copy`: 1, 0, or -1 for None, which is only if needed. -2 on error: a string would be true, "False"
 * too. */
static int parse_copy(PyObject *o) {
    if (!o || o == Py_None) return -1;
    if (PyUnicode_Check(o)) {
        PyErr_SetString(PyExc_ValueError, "strings are not allowed for 'copy' keyword. Use True/False/None instead.");
        return -2;
    }
    const int truth = PyObject_IsTrue(o);
    return truth < 0 ? -2 : truth;
}

static PyObject *py_reshape(PyObject *a, PyObject *const *args, Py_ssize_t npos, PyObject *kwnames) {
    static const char *const names[] = {"order", "copy", "shape", NULL};
    PyObject *values[3] = {NULL, NULL, NULL};
    ad__py_shape shape;
    int order = 'C', copy;
    if (kwnames && ad__py_arguments("reshape", names, args + npos, 0, kwnames, values) != 0) return NULL;
    if (values[0] && (order = reshape_order(values[0], a)) < 0) return NULL;
    if ((copy = parse_copy(values[1])) < -1) return NULL;
    if (values[2] && npos == 0 ? ad__py_shape_of(values[2], &shape) != 0 : ad__py_ints(args, npos, &shape) != 0)
        return NULL;
    return ad__py_reshape(a, &shape, (char)order, copy);
}

/* The elements as one dimension, in order 'C', 'F' or 'K': a view where they lie so in memory and copy is false. */
static PyObject *flatten_array(PyObject *a, char order, bool copy) {
    const ad__py_shape flat = {1, {-1}};
    ad_array_info info = ad__py_info(a);
    int axes[AD_MAX_NDIM];
    if (order == 'K') order_axes_read(&info, axes);
    PyObject *turned = order == 'C' ? Py_NewRef(a) : ad__py_permuted(a, order == 'K' ? axes : NULL);
    if (!turned) return NULL;
    PyObject *result = ad__py_reshape(turned, &flat, 'C', copy || !ad__py_info(turned).contiguous ? 1 : -1);
    Py_DECREF(turned);
    return result;
}

static PyObject *py_ravel(PyObject *a, PyObject *const *args, Py_ssize_t npos, PyObject *kwnames) {
    static const char *const names[] = {"order", NULL};
    PyObject *order;
    int letter;
    if (ad__py_arguments("ravel", names, args, npos, kwnames, &order) != 0 ||
        (letter = ad__py_order(order, a, 'C')) < 0)
        return NULL;
    return flatten_array(a, (char)letter, false);
}

static PyObject *py_flatten(PyObject *a, PyObject *const *args, Py_ssize_t npos, PyObject *kwnames) {
    static const char *const names[] = {"order", NULL};
    PyObject *order;
    int letter;
    if (ad__py_arguments("flatten", names, args, npos, kwnames, &order) != 0 ||
        (letter = ad__py_order(order, a, 'C')) < 0)
        return NULL;
    return flatten_array(a, (char)letter, true);
}

/* ---- axes ---- */

PyObject *ad__py_permuted(PyObject *a, const int *axes) {
    ad_array *view;
    return ad__py_view_result(ad_transpose(ad__py_handle(a), axes, &view), &view, a);
}

static PyObject *py_transpose(PyObject *a, PyObject *const *args, Py_ssize_t n) {
    ad__py_shape given;
    int axes[AD_MAX_NDIM], ndim = ad__py_info(a).ndim;
    if (n == 0 || (n == 1 && args[0] == Py_None)) return ad__py_permuted(a, NULL);
    if (ad__py_ints(args, n, &given) != 0) return NULL;
    if (given.ndim != ndim) {
        PyErr_SetString(PyExc_ValueError, "axes don't match array");
        return NULL;
    }
    for (int i = 0; i < ndim; i++)
        if ((axes[i] = ad__py_axis(given.dim[i], ndim, NULL)) < 0) return NULL;
    for (int i = 0; i < ndim; i++)
        for (int j = 0; j < i; j++)
            if (axes[i] == axes[j]) {
                PyErr_SetString(PyExc_ValueError, "repeated axis in transpose");
                return NULL;
            }
    return ad__py_permuted(a, axes);
}

static PyObject *py_swapaxes(PyObject *a, PyObject *const *args, Py_ssize_t npos, PyObject *kwnames) {
    static const char *const names[] = {"axis1", "axis2", NULL};
    PyObject *values[2];
    int64_t given[2];
    int axes[AD_MAX_NDIM], ndim = ad__py_info(a).ndim, i, j;
    if (ad__py_arguments("swapaxes", names, args, npos, kwnames, values) != 0) return NULL;
    if (!values[0] || !values[1]) {
        PyErr_SetString(PyExc_TypeError, "swapaxes expected 2 arguments");
        return NULL;
    }
    if (ad__py_int64(values[0], &given[0]) != 0 || ad__py_int64(values[1], &given[1]) != 0) return NULL;
    if ((i = ad__py_axis(given[0], ndim, "axis1")) < 0 || (j = ad__py_axis(given[1], ndim, "axis2")) < 0) return NULL;
    for (int k = 0; k < ndim; k++) axes[k] = k == i ? j : k == j ? i : k;
    return ad__py_permuted(a, axes);
}

/* Bit mask of the axes to squeeze out; -1 with an exception. */
static int64_t choose_squeezed(const ad_array_info *info, PyObject *axis) {
    ad__py_shape given;
    int64_t mask = 0;
    if (!axis || axis == Py_None) {
        for (int i = 0; i < info->ndim; i++) mask |= (int64_t)(info->shape[i] == 1) << i;
        return mask;
    }
    if (ad__py_shape_of(axis, &given) != 0) return -1;
    if (info->ndim == 0 && given.ndim == 1 && (given.dim[0] == 0 || given.dim[0] == -1)) return 0; /* as in NumPy */
    for (int k = 0; k < given.ndim; k++) {
        int i = ad__py_axis(given.dim[k], info->ndim, NULL);
        if (i < 0) return -1;
        if (info->shape[i] != 1 || mask >> i & 1) {
            PyErr_SetString(PyExc_ValueError, info->shape[i] != 1
                                                  ? "cannot select an axis to squeeze out which has size "
                                                    "not equal to one"
                                                  : "duplicate value in 'axis'");
            return -1;
        }
        mask |= (int64_t)1 << i;
    }
    return mask;
}

static PyObject *py_squeeze(PyObject *a, PyObject *const *args, Py_ssize_t npos, PyObject *kwnames) {
    static const char *const names[] = {"axis", NULL};
    ad_array_info info = ad__py_info(a);
    int64_t shape[AD_MAX_NDIM], strides[AD_MAX_NDIM], mask;
    PyObject *axis;
    ad_array *view;
    int ndim = 0;
    if (ad__py_arguments("squeeze", names, args, npos, kwnames, &axis) != 0 ||
        (mask = choose_squeezed(&info, axis)) < 0)
        return NULL;
    for (int i = 0; i < info.ndim; i++) {
        if (mask >> i & 1) continue;
        shape[ndim] = info.shape[i];
        strides[ndim++] = info.strides[i];
    }
    return ad__py_view_result(ad_view(ad__py_handle(a), info.dtype, info.offset, ndim, shape, strides, &view), &view,
                              a);
}

/* ---- other types ---- */

/* The last axis seen in elements of another size. 0 or -1. */
static int resize_last(const ad_array_info *info, int dtype, int64_t *shape, int64_t *strides) {
    const int64_t from = ad__dtypes[info->dtype].size, to = ad__dtypes[dtype].size;
    const int last = info->ndim - 1;
    const char *why = NULL;
    if (info->ndim == 0) why = "Changing the dtype of a 0d array is only supported if the itemsize is unchanged";
    else if (info->count && info->strides[last] != from && info->shape[last] != 1)
        why = "To change to a dtype of a different size, the last axis must be contiguous";
    else if (info->shape[last] * from % to)
        why = "When changing to a larger dtype, its size must be a divisor of the total size in bytes of the last axis "
              "of "
              "the array.";
    if (why) {
        PyErr_SetString(PyExc_ValueError, why);
        return -1;
    }
    shape[last] = info->shape[last] * from / to;
    strides[last] = to;
    return 0;
}

static PyObject *view_as_dtype(PyObject *a, PyObject *object) {
    ad_array_info info = ad__py_info(a);
    int64_t shape[AD_MAX_NDIM], strides[AD_MAX_NDIM];
    ad_array *view;
    int dtype = ad__py_dtype_id(object);
    if (dtype < 0 && ad__py_refused_structured(object))
        return ad__py_structured("view_as", Py_BuildValue("(OO)", a, object));
    if (dtype < 0) return NULL;
    for (int i = 0; i < info.ndim; i++) {
        shape[i] = info.shape[i];
        strides[i] = info.strides[i];
    }
    if (ad__dtypes[dtype].size != ad__dtypes[info.dtype].size && resize_last(&info, dtype, shape, strides) != 0)
        return NULL;
    return ad__py_view_result(ad_view(ad__py_handle(a), dtype, info.offset, info.ndim, shape, strides, &view), &view,
                              a);
}

static bool is_array_type(PyObject *o) { return PyType_Check(o) && PyType_IsSubtype((PyTypeObject *)o, ad__py.array); }

static PyObject *py_view(PyObject *a, PyObject *const *args, Py_ssize_t npos, PyObject *kwnames) {
    static const char *const names[] = {"dtype", "type", NULL};
    PyObject *values[2];
    if (ad__py_arguments("view", names, args, npos, kwnames, values) != 0) return NULL;
    PyObject *dtype = values[0] == Py_None ? NULL : values[0], *type = values[1] == Py_None ? NULL : values[1];
    if (dtype && is_array_type(dtype)) {
        if (type) {
            PyErr_SetString(PyExc_TypeError, "view(): two types of array are given, as dtype and as type");
            return NULL;
        }
        type = dtype;
        dtype = NULL;
    }
    if (type && !is_array_type(type)) {
        PyErr_Format(PyExc_ValueError, "view(): type must be ndarray or a subclass of it, not %R", type);
        return NULL;
    }
    PyObject *cast = dtype ? view_as_dtype(a, dtype) : Py_NewRef(a);
    if (cast && !ad__py_is_array(cast) && !type) return cast;
    if (cast && !ad__py_is_array(cast)) {
        PyErr_SetString(PyExc_TypeError, "view(): an array of structures is of no subclass of ndarray; leave out type");
        Py_CLEAR(cast);
    }
    PyObject *result =
        cast && (type || !dtype) ? ad__py_view_as(cast, type ? (PyTypeObject *)type : Py_TYPE(a)) : Py_XNewRef(cast);
    Py_XDECREF(cast);
    return result;
}

/* ---- copies ---- */

/* A new array whose dimensions lie in memory in the order of axes. */
static PyObject *cast_permuted(PyObject *a, int dtype, const int *axes) {
    int back[AD_MAX_NDIM], status;
    ad_array *turned, *made, *view;
    for (int i = 0; i < ad__py_info(a).ndim; i++) back[axes[i]] = i;
    if ((status = ad_transpose(ad__py_handle(a), axes, &turned))) return ad__py_fail(status);
    status = ad_astype(turned, dtype, &made);
    ad_array_release(turned);
    ad__py_ensure();
    if (status) return ad__py_fail(status);
    status = ad_transpose(made, back, &view);
    ad_array_release(made);
    return ad__py_result(status, &view, ((ad__py_array *)a)->session);
}

PyObject *ad__py_astype(PyObject *a, int dtype, char order) {
    ad_array_info info = ad__py_info(a);
    int axes[AD_MAX_NDIM];
    ad_array *made;
    if (order == 'C' || info.ndim < 2)
        return ad__py_result(ad_astype(ad__py_handle(a), dtype, &made), &made, ((ad__py_array *)a)->session);
    if (order == 'K') order_axes(&info, axes);
    for (int i = 0; order == 'F' && i < info.ndim; i++) axes[i] = info.ndim - 1 - i;
    return cast_permuted(a, dtype, axes);
}

static PyObject *cannot_cast(int from, int to, PyObject *casting) {
    PyErr_Format(PyExc_TypeError, "Cannot cast array data from dtype('%s') to dtype('%s') according to the rule %R",
                 ad__dtypes[from].name, ad__dtypes[to].name, casting);
    return NULL;
}

static bool has_order(const ad_array_info *info, PyObject *order, int letter) {
    const int asked = ad__py_order_letter(order, 'K');
    if (asked == 'K' || asked == 'A') return true;
    return letter == 'F' ? info->f_contiguous : info->contiguous;
}

/* 0, or -1 where the warning is an error. */
static int warn_of_cast(int from, int to) {
    if (ad__dtypes[from].kind != 'c' || ad__dtypes[to].kind == 'c' || to == AD_BOOL) return 0;
    return PyErr_WarnEx(ad__py.np_complex_warning, "Casting complex values to real discards the imaginary part", 1);
}

static PyObject *py_astype(PyObject *a, PyObject *const *args, Py_ssize_t npos, PyObject *kwnames) {
    static const char *const names[] = {"dtype", "order", "casting", "subok", "copy", "device", NULL};
    ad_array_info info = ad__py_info(a);
    PyObject *values[6];
    int dtype, casting, copy = 1, order;
    if (ad__py_arguments("astype", names, args, npos, kwnames, values) != 0) return NULL;
    if (!values[0]) {
        PyErr_SetString(PyExc_TypeError, "astype() missing required argument 'dtype' (pos 1)");
        return NULL;
    }
    dtype = ad__py_dtype_id(values[0]);
    if (dtype < 0 && ad__py_refused_structured(values[0]))
        return ad__py_structured("cast", Py_BuildValue("(OOOO)", a, values[0], values[1] ? values[1] : Py_None,
                                                       values[2] ? values[2] : Py_None));
    if (dtype < 0 || (order = ad__py_order(values[1], a, 'K')) < 0 ||
        (casting = ad__py_casting(values[2], AD_CAST_UNSAFE)) < 0)
        return NULL;
    if (values[4] && (copy = PyObject_IsTrue(values[4])) < 0) return NULL;
    if (!ad__can_cast(info.dtype, dtype, (ad_casting)casting)) return cannot_cast(info.dtype, dtype, values[2]);
    if (!copy && dtype == info.dtype && has_order(&info, values[1], order)) return Py_NewRef(a);
    if (warn_of_cast(info.dtype, dtype) != 0) return NULL;
    return ad__py_astype(a, dtype, (char)order);
}

static PyObject *py_copy(PyObject *a, PyObject *const *args, Py_ssize_t npos, PyObject *kwnames) {
    static const char *const names[] = {"order", NULL};
    PyObject *order;
    int letter;
    if (ad__py_arguments("copy", names, args, npos, kwnames, &order) != 0 || (letter = ad__py_order(order, a, 'C')) < 0)
        return NULL;
    return ad__py_astype(a, ad__py_info(a).dtype, (char)letter);
}

static PyObject *py_deepcopy(PyObject *a, PyObject *memo) {
    (void)memo;
    return ad__py_astype(a, ad__py_info(a).dtype, (char)ad__py_order(NULL, a, 'K'));
}

/* Make an element of a type of a value, as NumPy does; it raises where that is impossible. */
static PyObject *as_element(PyObject *value, int dtype) {
    PyObject *type = ad__py_dtype_get(dtype), *shape = PyTuple_New(0), *filled = NULL;
    PyObject *one = type && shape ? PyObject_CallFunctionObjArgs(ad__py.np_empty, shape, type, NULL) : NULL;
    if (one) filled = PyObject_CallMethod(one, "fill", "(O)", value);
    if (!filled) Py_CLEAR(one);
    Py_XDECREF(filled);
    Py_XDECREF(shape);
    Py_XDECREF(type);
    return one;
}

/* 1: an array of the server or of NumPy that has dimensions, 0: none, -1 with an exception. */
static int has_dimensions(PyObject *value) {
    if (ad__py_is_array(value)) return ad__py_info(value).ndim > 0;
    if (!PyObject_TypeCheck(value, ad__py.np_ndarray)) return 0;
    PyObject *ndim = PyObject_GetAttrString(value, "ndim");
    const long n = ndim ? PyLong_AsLong(ndim) : -1;
    Py_XDECREF(ndim);
    return n < 0 ? -1 : n > 0;
}

/* element: a value or an array of one without dimensions. */
static int fill_with(PyObject *a, PyObject *element) {
    const bool is_array = ad__py_is_array(element);
    if (is_array && warn_of_cast(ad__py_info(element).dtype, ad__py_info(a).dtype) != 0) return -1;
    return ad__py_assign(a, element);
}

static PyObject *py_fill(PyObject *a, PyObject *value) {
    PyObject *element = ad__py_is_array(value) || PyFloat_CheckExact(value) ? Py_NewRef(value) : ad__py_adopt(value);
    if (!element && PyErr_Occurred()) return NULL;
    int result = has_dimensions(element ? element : value);
    if (result > 0) PyErr_SetString(PyExc_ValueError, "setting an array element with a sequence.");
    if (!element && result == 0) element = as_element(value, ad__py_info(a).dtype);
    if (result || !element || fill_with(a, element) != 0) result = -1;
    Py_XDECREF(element);
    return result == 0 ? Py_NewRef(Py_None) : NULL;
}

/* ---- elements ---- */

static PyObject *py_item(PyObject *a, PyObject *const *args, Py_ssize_t n) {
    Py_ssize_t given = n == 1 && PyTuple_Check(args[0]) ? PyTuple_Size(args[0]) : n > 1 ? n : -1;
    PyObject *key = NULL, *from = NULL, *element = NULL, *item;
    if (n == 0) return ad__py_item(a);
    if (given >= 0 && given != ad__py_info(a).ndim) {
        PyErr_SetString(PyExc_ValueError, "incorrect number of indices for array");
        return NULL;
    }
    if (n == 1 && PyTuple_Check(args[0])) {
        key = Py_NewRef(args[0]);
    } else if (n == 1) {
        const ad__py_shape flat = {1, {-1}};
        key = Py_NewRef(args[0]);
        from = ad__py_reshape(a, &flat, 'C', -1);
    } else {
        key = PyTuple_New(n);
        for (Py_ssize_t i = 0; key && i < n; i++) PyTuple_SetItem(key, i, Py_NewRef(args[i]));
    }
    if (!from && !PyErr_Occurred()) from = Py_NewRef(a);
    if (key && from) element = ad__py_subscript(from, key);
    item = element ? ad__py_item(element) : NULL;
    Py_XDECREF(key);
    Py_XDECREF(from);
    Py_XDECREF(element);
    return item;
}

static PyObject *through_host(PyObject *a, const char *method, PyObject *argument) {
    PyObject *host = ad__py_get(a, 'C');
    PyObject *name = PyUnicode_FromString(method);
    PyObject *result = host && name ? PyObject_CallMethodObjArgs(host, name, argument, NULL) : NULL;
    Py_XDECREF(host);
    Py_XDECREF(name);
    return result;
}

static PyObject *py_tolist(PyObject *a, PyObject *unused) {
    (void)unused;
    return through_host(a, "tolist", NULL);
}

static PyObject *py_tobytes(PyObject *a, PyObject *const *args, Py_ssize_t npos, PyObject *kwnames) {
    static const char *const names[] = {"order", NULL};
    PyObject *order;
    if (ad__py_arguments("tobytes", names, args, npos, kwnames, &order) != 0) return NULL;
    return through_host(a, "tobytes", order);
}

static PyObject *py_finalize(PyObject *a, PyObject *from) {
    (void)a, (void)from;
    Py_RETURN_NONE;
}

#define FAST(f) (PyCFunction)(void (*)(void))(f)
PyMethodDef ad__py_array_methods[] = {
    {"reshape", FAST(py_reshape), METH_FASTCALL | METH_KEYWORDS,
     "reshape($self, /, *shape, order='C', copy=None)\n--\n\nThe same elements in another shape; a view where that is "
     "possible."},
    {"ravel", FAST(py_ravel), METH_FASTCALL | METH_KEYWORDS,
     "ravel($self, /, order='C')\n--\n\nOne dimension, contiguous; a view where the elements lie so."},
    {"flatten", FAST(py_flatten), METH_FASTCALL | METH_KEYWORDS,
     "flatten($self, /, order='C')\n--\n\nA copy with one dimension."},
    {"transpose", FAST(py_transpose), METH_FASTCALL,
     "transpose($self, /, *axes)\n--\n\nA view with the axes in another order."},
    {"swapaxes", FAST(py_swapaxes), METH_FASTCALL | METH_KEYWORDS, "swapaxes($self, /, axis1, axis2)\n--\n\nA view."},
    {"squeeze", FAST(py_squeeze), METH_FASTCALL | METH_KEYWORDS,
     "squeeze($self, /, axis=None)\n--\n\nA view without axes of size 1."},
    {"view", FAST(py_view), METH_FASTCALL | METH_KEYWORDS,
     "view($self, /, dtype=None, type=None)\n--\n\nThe same bytes, as another type; type: ndarray or a subclass of "
     "it."},
    {"astype", FAST(py_astype), METH_FASTCALL | METH_KEYWORDS,
     "astype($self, /, dtype, order='K', casting='unsafe', subok=True, copy=True)\n--\n\nThe elements as another "
     "type."},
    {"copy", FAST(py_copy), METH_FASTCALL | METH_KEYWORDS,
     "copy($self, /, order='C')\n--\n\nA copy with a buffer of its own."},
    {"__array_finalize__", py_finalize, METH_O,
     "__array_finalize__($self, obj, /)\n--\n\nCalled for each new object of a subclass, with the array that it was "
     "made from or None."},
    {"_set_shape_and_strides", FAST(ad__py_set_layout), METH_VARARGS | METH_KEYWORDS,
     "_set_shape_and_strides($self, /, shape, strides, update_c_contiguity=True, update_f_contiguity=True)\n--\n\nShow "
     "other elements of the memory from the first on; flags always tell how they lie."},
    {"__copy__", py_deepcopy, METH_NOARGS, "__copy__($self, /)\n--\n\nA copy."},
    {"__deepcopy__", py_deepcopy, METH_O, "__deepcopy__($self, memo, /)\n--\n\nA copy."},
    {"__complex__", ad__py_complex, METH_NOARGS,
     "__complex__($self, /)\n--\n\nThe only element; waits for the server."},
    {"fill", py_fill, METH_O, "fill($self, value, /)\n--\n\nSet every element."},
    {"get", FAST(ad__py_get_method), METH_FASTCALL | METH_KEYWORDS,
     "get($self, /, stream=None, order='C', blocking=True, out=None)\n--\n\nThe elements as a NumPy array; waits for "
     "the server."},
    {"set", FAST(ad__py_set_method), METH_FASTCALL | METH_KEYWORDS,
     "set($self, /, arr, stream=None)\n--\n\nSet the elements from a NumPy array of the same shape."},
    {"item", FAST(py_item), METH_FASTCALL,
     "item($self, /, *index)\n--\n\nAn element as a Python number; waits for the server."},
    {"tolist", py_tolist, METH_NOARGS, "tolist($self, /)\n--\n\nThe elements as nested lists; waits for the server."},
    {"tobytes", FAST(py_tobytes), METH_FASTCALL | METH_KEYWORDS,
     "tobytes($self, /, order='C')\n--\n\nThe elements' bytes; waits for the server."},
    {NULL, NULL, 0, NULL},
};
