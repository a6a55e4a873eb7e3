/* The type ndarray: life and attributes. */
#include "core.h"

/* ---- life ---- */

static void fill_array(ad__py_array *self, ad_array *array, ad__py_session *session, PyObject *base) {
    self->array = array;
    self->former = NULL;
    self->session = session;
    session->users++;
    self->base = Py_XNewRef(base);
    self->weak = NULL;
}

static PyObject *on_memory; /* is called with each array that owns a buffer, when it is made; NULL: none */

PyObject *ad__py_set_on_memory(PyObject *module, PyObject *function) {
    (void)module;
    ad__py_replace(&on_memory, Py_IsNone(function) ? NULL : Py_NewRef(function));
    Py_RETURN_NONE;
}

static PyObject *tell_made(PyObject *made) {
    PyObject *function = Py_NewRef(on_memory), *done = ad__py_call1(function, made);
    Py_DECREF(function);
    if (!done) Py_CLEAR(made);
    Py_XDECREF(done);
    return made;
}

PyObject *ad__py_wrap(ad_array *array, ad__py_session *session, PyObject *base) {
    ad__py_array *self = PyObject_Malloc(sizeof *self);
    if (!self) {
        ad_array_release(array);
        return PyErr_NoMemory();
    }
    PyObject_Init((PyObject *)self, ad__py.array);
    if (base && ((ad__py_array *)base)->base) base = ((ad__py_array *)base)->base;
    fill_array(self, array, session, base);
    return on_memory && !base ? tell_made((PyObject *)self) : (PyObject *)self;
}

PyObject *ad__py_result(int status, ad_array *const *array, ad__py_session *session) {
    ad__py_ensure();
    return status ? ad__py_fail(status) : ad__py_wrap(*array, session, NULL);
}

/* A new object of a subclass for the array that made, which is given away, is. */
static PyObject *wrap_as(PyTypeObject *type, PyObject *made, PyObject *model) {
    ad__py_array *from = (ad__py_array *)made;
    PyObject *o = ((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0), *done = NULL;
    if (o) {
        fill_array((ad__py_array *)o, ad_array_retain(from->array), from->session, from->base);
        done = PyObject_CallMethod(o, "__array_finalize__", "O", model);
    }
    Py_DECREF(made);
    Py_XDECREF(done);
    if (!done) Py_CLEAR(o);
    return o;
}

PyObject *ad__py_like(PyObject *made, PyObject *model) {
    return !made || Py_IS_TYPE(model, ad__py.array) ? made : wrap_as(Py_TYPE(model), made, model);
}

PyObject *ad__py_view_result(int status, ad_array *const *view, PyObject *base) {
    return status ? ad__py_fail(status) : ad__py_like(ad__py_wrap(*view, ((ad__py_array *)base)->session, base), base);
}

PyObject *ad__py_view_as(PyObject *a, PyTypeObject *type) {
    ad_array_info info = ad__py_info(a);
    ad_array *view;
    int status = ad_view(ad__py_handle(a), info.dtype, info.offset, info.ndim, info.shape, info.strides, &view);
    if (status) return ad__py_fail(status);
    PyObject *made = ad__py_wrap(view, ((ad__py_array *)a)->session, a);
    return !made || type == ad__py.array ? made : wrap_as(type, made, a);
}

static void array_dealloc(PyObject *o) {
    ad__py_array *self = (ad__py_array *)o;
    PyTypeObject *type = Py_TYPE(o);
    if (self->weak) PyObject_ClearWeakRefs(o);
    ad_array_release(self->array);
    ad_array_release(self->former);
    Py_XDECREF(self->base);
    if (self->session) ad__py_session_leave(self->session);
    if (type == ad__py.array) PyObject_Free(o);
    else ((freefunc)PyType_GetSlot(type, Py_tp_free))(o);
    Py_DECREF(type);
}

/* Zeros, with the first dimension innermost for order 'F'. */
static int make_zeros(ad_session *s, int dtype, const ad__py_shape *shape, char order, ad_array **out) {
    int64_t reversed[AD_MAX_NDIM];
    ad_array *turned;
    if (order != 'F') return ad_zeros(s, dtype, shape->ndim, shape->dim, out);
    for (int i = 0; i < shape->ndim; i++) reversed[i] = shape->dim[shape->ndim - 1 - i];
    int status = ad_zeros(s, dtype, shape->ndim, reversed, &turned);
    if (status) return status;
    status = ad_transpose(turned, NULL, out);
    ad_array_release(turned);
    return status;
}

/* Zeros with strides, none of which may lead out of what packed elements would take. 0, or -1 with an exception. */
static int make_strided(ad_session *s, int dtype, const ad__py_shape *shape, PyObject *object, ad_array **out) {
    ad__py_shape strides;
    ad_array *packed;
    if (ad__py_shape_of(object, &strides) != 0) return -1;
    if (strides.ndim != shape->ndim) {
        PyErr_SetString(PyExc_ValueError, "strides must have as many numbers as shape");
        return -1;
    }
    int status = ad_zeros(s, dtype, shape->ndim, shape->dim, &packed);
    if (status) return ad__py_fail(status), -1;
    status = ad_view(packed, dtype, 0, shape->ndim, shape->dim, strides.dim, out);
    ad_array_release(packed);
    if (!status) return 0;
    PyErr_SetString(PyExc_ValueError, "ndarray() with strides that lead out of the memory, which is of the size that "
                                      "shape and dtype say; memptr gives other memory");
    return -1;
}

/* An array with the arguments of the constructor, that has memory of its own. */
static PyObject *construct_array(PyObject *shape_object, PyObject *dtype_object, PyObject *strides, char order) {
    ad__py_shape shape;
    ad_array *array;
    int dtype = dtype_object && dtype_object != Py_None ? ad__py_dtype_id(dtype_object) : AD_FLOAT64;
    if (dtype < 0 && ad__py_refused_structured(dtype_object))
        return ad__py_structured(
            "construct", Py_BuildValue("(OOOC)", shape_object, dtype_object, strides ? strides : Py_None, order));
    if (dtype < 0 || ad__py_shape_of(shape_object, &shape) != 0) return NULL;
    ad__py_session *s = ad__py_session_get();
    if (!s) return NULL;
    PyObject *made;
    if (strides && strides != Py_None)
        made = make_strided(s->handle, dtype, &shape, strides, &array) ? NULL : ad__py_result(0, &array, s);
    else made = ad__py_result(make_zeros(s->handle, dtype, &shape, order, &array), &array, s);
    ad__py_session_leave(s);
    return made;
}

/* The memory that memptr points to, or that it is as an array, as an array. */
static PyObject *construct_at(PyObject *memptr, PyObject *shape, PyObject *dtype, PyObject *strides, char order) {
    const char name[] = {order, 0};
    if (ad__py_is_array(memptr)) {
        PyObject *pointer = PyObject_GetAttrString(memptr, "data");
        PyObject *there = pointer ? construct_at(pointer, shape, dtype, strides, order) : NULL;
        Py_XDECREF(pointer);
        return there;
    }
    PyObject *made = PyObject_CallMethod(memptr, "_array", "OOOs", shape, dtype ? dtype : Py_None,
                                         strides ? strides : Py_None, name);
    if (!made && PyErr_ExceptionMatches(PyExc_AttributeError) && !PyObject_HasAttrString(memptr, "_array"))
        PyErr_Format(PyExc_TypeError, "memptr must be a cuda.MemoryPointer, not %R", Py_TYPE(memptr));
    if (made && !ad__py_is_array(made) && !PyObject_HasAttrString(made, "_units")) {
        PyErr_Format(PyExc_TypeError, "memptr must be a cuda.MemoryPointer, not %R", Py_TYPE(memptr));
        Py_CLEAR(made);
    }
    return made;
}

/* ndarray(shape, dtype=float, memptr=None, strides=None, order='C'), also of a subclass. */
static PyObject *array_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"shape", "dtype", "memptr", "strides", "order", NULL};
    PyObject *shape, *dtype = NULL, *memptr = NULL, *strides = NULL, *order = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOOO:ndarray", names, &shape, &dtype, &memptr, &strides, &order))
        return NULL;
    int letter = ad__py_order_letter(order, 'C');
    if (letter < 0) return NULL;
    PyObject *made = memptr && memptr != Py_None ? construct_at(memptr, shape, dtype, strides, (char)letter)
                                                 : construct_array(shape, dtype, strides, (char)letter);
    if (!made || type == ad__py.array) return made;
    if (ad__py_is_array(made)) return wrap_as(type, made, Py_None);
    Py_DECREF(made);
    PyErr_SetString(PyExc_TypeError, "subclasses of ndarray have no structured types; ndarray has");
    return NULL;
}

/* ---- attributes ---- */

static PyObject *get_shape(PyObject *o, void *unused) {
    ad_array_info info = ad__py_info(o);
    (void)unused;
    return ad__py_tuple(info.ndim, info.shape);
}

/* Let self be a view of the memory that it has shown. */
static void replace_array(ad__py_array *self, ad_array *view) {
    ad_array_release(self->former);
    self->former = self->array;
    self->array = view;
}

static int set_shape(PyObject *o, PyObject *value, void *unused) {
    ad__py_array *self = (ad__py_array *)o;
    ad_array_info info = ad__py_info(o);
    ad__py_shape asked, shape;
    ad_array *view;
    (void)unused;
    if (!value) {
        PyErr_SetString(PyExc_AttributeError, "Cannot delete array shape");
        return -1;
    }
    if (ad__py_shape_of(value, &asked) != 0 || ad__py_reshaped(&info, &asked, &shape) != 0) return -1;
    int status = ad_reshape_view(self->array, shape.ndim, shape.dim, &view);
    if (status == AD_E_UNSUPPORTED)
        PyErr_SetString(PyExc_AttributeError, "Incompatible shape for in-place modification. Use `.reshape()` to make "
                                              "a copy with the desired shape.");
    else if (status) ad__py_fail(status);
    if (status) return -1;
    replace_array(self, view);
    return 0;
}

PyObject *ad__py_set_layout(PyObject *o, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"shape", "strides", "update_c_contiguity", "update_f_contiguity", NULL};
    ad_array_info info = ad__py_info(o);
    PyObject *shapes, *steps, *c = NULL, *f = NULL;
    ad__py_shape shape, strides;
    ad_array *view;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OO:_set_shape_and_strides", names, &shapes, &steps, &c, &f) ||
        ad__py_shape_of(shapes, &shape) != 0 || ad__py_shape_of(steps, &strides) != 0)
        return NULL;
    if (strides.ndim != shape.ndim) {
        PyErr_Format(PyExc_ValueError, "strides must have as many numbers as shape, %d, and has %d", shape.ndim,
                     strides.ndim);
        return NULL;
    }
    int status = ad_view(ad__py_handle(o), info.dtype, info.offset, shape.ndim, shape.dim, strides.dim, &view);
    if (status) return ad__py_fail(status);
    replace_array((ad__py_array *)o, view);
    Py_RETURN_NONE;
}

static PyObject *get_strides(PyObject *o, void *unused) {
    ad_array_info info = ad__py_info(o);
    (void)unused;
    return ad__py_tuple(info.ndim, info.strides);
}

static PyObject *get_dtype(PyObject *o, void *unused) {
    (void)unused;
    return ad__py_dtype_get(ad__py_info(o).dtype);
}

static PyObject *get_ndim(PyObject *o, void *unused) {
    (void)unused;
    return PyLong_FromLong(ad__py_info(o).ndim);
}

static PyObject *get_size(PyObject *o, void *unused) {
    (void)unused;
    return PyLong_FromLongLong(ad__py_info(o).count);
}

static PyObject *get_itemsize(PyObject *o, void *unused) {
    (void)unused;
    return PyLong_FromLong(ad__dtypes[ad__py_info(o).dtype].size);
}

static PyObject *get_nbytes(PyObject *o, void *unused) {
    ad_array_info info = ad__py_info(o);
    (void)unused;
    return PyLong_FromLongLong(info.count * ad__dtypes[info.dtype].size);
}

static PyObject *get_T(PyObject *o, void *unused) {
    (void)unused;
    return ad__py_permuted(o, NULL);
}

static PyObject *get_mT(PyObject *o, void *unused) {
    int axes[AD_MAX_NDIM], ndim = ad__py_info(o).ndim;
    (void)unused;
    if (ndim < 2) {
        PyErr_SetString(PyExc_ValueError, "matrix transpose with ndim < 2 is undefined");
        return NULL;
    }
    for (int i = 0; i < ndim; i++) axes[i] = i;
    axes[ndim - 1] = ndim - 2;
    axes[ndim - 2] = ndim - 1;
    return ad__py_permuted(o, axes);
}

static PyObject *get_base(PyObject *o, void *unused) {
    PyObject *base = ((ad__py_array *)o)->base;
    (void)unused;
    return Py_NewRef(base ? base : Py_None);
}

static PyObject *get_device(PyObject *o, void *unused) {
    static PyObject *made[AD_DEFAULT_STREAMS]; /* one of each */
    const int i = ad__py_info(o).device % AD_DEFAULT_STREAMS;
    (void)unused;
    if (made[i]) return Py_NewRef(made[i]);
    PyObject *number = PyLong_FromLong(i);
    if (!number || !ad__py.device_type) return number;
    made[i] = ad__py_call1(ad__py.device_type, number);
    Py_DECREF(number);
    return Py_XNewRef(made[i]);
}

/* ---- real and imaginary part ---- */

static bool is_complex(int dtype) { return ad__dtypes[dtype].kind == 'c'; }

static PyObject *get_part(PyObject *o, bool imaginary) {
    ad_array_info info = ad__py_info(o);
    ad_array *view;
    int dtype = info.dtype == AD_COMPLEX64 ? AD_FLOAT32 : AD_FLOAT64;
    int64_t offset = info.offset + (imaginary && info.count ? ad__dtypes[dtype].size : 0);
    return ad__py_view_result(ad_view(ad__py_handle(o), dtype, offset, info.ndim, info.shape, info.strides, &view),
                              &view, o);
}

static PyObject *get_real(PyObject *o, void *unused) {
    (void)unused;
    return is_complex(ad__py_info(o).dtype) ? get_part(o, false) : Py_NewRef(o);
}

static PyObject *get_imag(PyObject *o, void *unused) {
    ad_array *zeros;
    (void)unused;
    if (is_complex(ad__py_info(o).dtype)) return get_part(o, true);
    return ad__py_result(ad_imag(ad_of(ad__py_handle(o)), &zeros), &zeros, ((ad__py_array *)o)->session);
}

static int set_part(PyObject *o, PyObject *value, void *imaginary) {
    bool complex = is_complex(ad__py_info(o).dtype);
    if (!value || (imaginary && !complex)) {
        PyErr_SetString(value ? PyExc_TypeError : PyExc_AttributeError,
                        value ? "array does not have imaginary part to set" : "Cannot delete a part of an array");
        return -1;
    }
    PyObject *view = complex ? get_part(o, imaginary != NULL) : Py_NewRef(o);
    int status = view ? ad__py_assign(view, value) : -1;
    Py_XDECREF(view);
    return status;
}

PyGetSetDef ad__py_array_attributes[] = {
    {"shape", get_shape, set_shape, "Tuple of the dimensions.", NULL},
    {"strides", get_strides, NULL, "Tuple of the bytes from one element to the next along each axis.", NULL},
    {"dtype", get_dtype, NULL, "Type of the elements, a numpy.dtype.", NULL},
    {"ndim", get_ndim, NULL, "Number of dimensions.", NULL},
    {"size", get_size, NULL, "Number of elements.", NULL},
    {"itemsize", get_itemsize, NULL, "Bytes of an element.", NULL},
    {"nbytes", get_nbytes, NULL, "Bytes of all elements.", NULL},
    {"T", get_T, NULL, "A view with the axes reversed.", NULL},
    {"mT", get_mT, NULL, "A view with the last two axes swapped.", NULL},
    {"real", get_real, set_part, "The real part: of complex arrays a view, else the array.", NULL},
    {"imag", get_imag, set_part, "The imaginary part: of complex arrays a view, else zeros.", (void *)1},
    {"base", get_base, NULL, "Of a view, the array whose buffer it shows; None if it is its own.", NULL},
    {"device", get_device, NULL, "Where the elements are: a cuda.Device.", NULL},
    {"flags", ad__py_flags, NULL, "Facts about the layout: flags.c_contiguous ...", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* ---- the type ---- */

static PyObject *array_repr(PyObject *o) {
    ad_array_info info = ad__py_info(o);
    PyObject *shape = ad__py_tuple(info.ndim, info.shape);
    PyObject *text =
        shape ? PyUnicode_FromFormat("<arrayd.ndarray of shape %R, dtype %s>", shape, ad__dtypes[info.dtype].name)
              : NULL;
    Py_XDECREF(shape);
    return text;
}

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(ad__py_array, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static const PyType_Slot own_slots[] = {
    {Py_tp_doc,
     "ndarray(shape, dtype='float64', memptr=None, strides=None, order='C')\n--\n\nAn array whose elements live on "
     "the server."},
    {Py_tp_new, array_new},
    {Py_tp_dealloc, array_dealloc},
    {Py_tp_repr, array_repr},
    {Py_tp_hash, PyObject_HashNotImplemented},
    {Py_tp_getset, ad__py_array_attributes},
    {Py_tp_methods, ad__py_array_methods},
    {Py_tp_members, members},
    {0, NULL},
};

static int append_slots(PyType_Slot *all, int n, const PyType_Slot *more) {
    for (; more->slot; more++) all[n++] = *more;
    all[n] = *more;
    return n;
}

static int set_attribute(const char *name, PyObject *value) {
    int status = value ? PyObject_SetAttrString((PyObject *)ad__py.array, name, value) : -1;
    Py_XDECREF(value);
    return status;
}

int ad__py_array_init(PyObject *module) {
    PyType_Slot slots[96];
    PyType_Spec spec = {"arrayd.ndarray", sizeof(ad__py_array), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
    int n = append_slots(slots, 0, own_slots);
    n = append_slots(slots, n, ad__py_number_slots);
    append_slots(slots, n, ad__py_index_slots);
    ad__py.array = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    if (!ad__py.array || PyModule_AddObjectRef(module, "ndarray", (PyObject *)ad__py.array)) return -1;
    return set_attribute("__array_priority__", PyFloat_FromDouble(100.0));
}
