/* Arrays for other processes: capabilities and names. arrayd._interop.sharing makes pickles and functions of them. */
#include "core.h"

#define HANDLE_FORM "(KKK)"

/* share(a, uses, lease, linger): (half, half, server). */
static PyObject *py_share(PyObject *module, PyObject *args) {
    PyObject *a;
    unsigned long long uses;
    double lease, linger;
    ad_capability c;
    (void)module;
    if (!PyArg_ParseTuple(args, "OKdd:share", &a, &uses, &lease, &linger)) return NULL;
    if (!ad__py_is_array(a)) {
        PyErr_SetString(PyExc_TypeError, "share() takes an ndarray");
        return NULL;
    }
    ad__py_release();
    int status = ad_capability_make(ad__py_handle(a), uses, lease, linger, &c);
    ad__py_acquire();
    if (status) return ad__py_fail(status);
    return Py_BuildValue(HANDLE_FORM, (unsigned long long)c.half[0], (unsigned long long)c.half[1],
                         (unsigned long long)c.server);
}

static int parse_handle(PyObject *o, ad_capability *c) {
    unsigned long long half[2], server;
    if (!PyTuple_Check(o)) {
        PyErr_SetString(PyExc_TypeError, "a handle is a tuple of three integers");
        return -1;
    }
    if (!PyArg_ParseTuple(o, "KKK:handle", &half[0], &half[1], &server)) return -1;
    *c = (ad_capability){{half[0], half[1]}, server};
    return 0;
}

typedef struct placed {
    ad_capability c;
    ad__py_shape shape, strides;
    ad_layout layout;
} placed;

/* Read a handle and the layout of its array: dtype, offset, shape, strides. */
static int parse_placed(PyObject *handle, PyObject *dtype, long long offset, PyObject *shape, PyObject *strides,
                        placed *out) {
    const int id = ad__py_dtype_id(dtype);
    if (id < 0 || parse_handle(handle, &out->c) != 0 || ad__py_shape_of(shape, &out->shape) != 0 ||
        ad__py_shape_of(strides, &out->strides) != 0)
        return -1;
    if (out->shape.ndim != out->strides.ndim) {
        PyErr_SetString(PyExc_ValueError, "attach(): shape and strides differ in length");
        return -1;
    }
    out->layout = (ad_layout){id, out->shape.ndim, offset, out->shape.dim, out->strides.dim};
    return 0;
}

/* Attach the array of a handle, or have the server pull it from another one. server NULL: it has the array itself. */
static PyObject *attach_placed(const placed *p, const char *server, const char *principal) {
    ad_array *a;
    ad__py_session *s = ad__py_session_get();
    if (!s) return NULL;
    ad__py_release();
    int status = server ? ad_capability_pull(s->handle, &p->c, server, principal, &p->layout, &a)
                        : ad_capability_attach(s->handle, &p->c, &p->layout, &a);
    ad__py_acquire();
    PyObject *result = ad__py_result(status, &a, s);
    ad__py_session_leave(s);
    return result;
}

/* attach(handle, dtype, offset, shape, strides) */
static PyObject *py_attach(PyObject *module, PyObject *args) {
    PyObject *handle, *dtype, *shape, *strides;
    long long offset;
    placed p;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOLOO:attach", &handle, &dtype, &offset, &shape, &strides)) return NULL;
    return parse_placed(handle, dtype, offset, shape, strides, &p) ? NULL : attach_placed(&p, NULL, NULL);
}

/* pull(server, principal, handle, dtype, offset, shape, strides) */
static PyObject *py_pull(PyObject *module, PyObject *args) {
    PyObject *handle, *dtype, *shape, *strides;
    const char *server, *principal;
    long long offset;
    placed p;
    (void)module;
    if (!PyArg_ParseTuple(args, "ssOOLOO:pull", &server, &principal, &handle, &dtype, &offset, &shape, &strides))
        return NULL;
    return parse_placed(handle, dtype, offset, shape, strides, &p) ? NULL : attach_placed(&p, server, principal);
}

static PyObject *py_revoke(PyObject *module, PyObject *handle) {
    ad_capability c;
    (void)module;
    if (parse_handle(handle, &c) != 0) return NULL;
    ad__py_session *s = ad__py_session_get();
    if (!s) return NULL;
    ad__py_release();
    int status = ad_capability_revoke(s->handle, &c);
    ad__py_acquire();
    ad__py_session_leave(s);
    return status ? ad__py_fail(status) : Py_NewRef(Py_None);
}

/* layout(a): dtype, offset, shape, strides. */
static PyObject *py_layout(PyObject *module, PyObject *a) {
    (void)module;
    PyObject *elements = ad__py_elements(a);
    if (!elements) return NULL;
    ad_array_info info = ad__py_info(elements);
    Py_DECREF(elements);
    PyObject *shape = ad__py_tuple(info.ndim, info.shape), *strides = ad__py_tuple(info.ndim, info.strides);
    if (shape && strides)
        return Py_BuildValue("sLNN", ad__dtypes[info.dtype].name, (long long)info.offset, shape, strides);
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    return NULL;
}

/* ---- names ---- */

static PyObject *py_publish(PyObject *module, PyObject *args) {
    PyObject *a;
    const char *name, *grant;
    int writable;
    (void)module;
    if (!PyArg_ParseTuple(args, "Ospz:publish", &a, &name, &writable, &grant)) return NULL;
    if (!ad__py_is_array(a)) {
        PyErr_SetString(PyExc_TypeError, "publish() takes an ndarray");
        return NULL;
    }
    ad__py_release();
    int status = ad_publish(ad__py_handle(a), name, writable, grant);
    ad__py_acquire();
    return status ? ad__py_fail(status) : Py_NewRef(Py_None);
}

static PyObject *py_attach_name(PyObject *module, PyObject *args) {
    const char *principal, *name;
    ad_array *a;
    (void)module;
    if (!PyArg_ParseTuple(args, "zs:attach_name", &principal, &name)) return NULL;
    ad__py_session *s = ad__py_session_get();
    if (!s) return NULL;
    ad__py_release();
    int status = ad_attach(s->handle, principal, name, &a);
    ad__py_acquire();
    PyObject *result = ad__py_result(status, &a, s);
    ad__py_session_leave(s);
    return result;
}

static PyObject *py_unpublish(PyObject *module, PyObject *args) {
    const char *name;
    (void)module;
    if (!PyArg_ParseTuple(args, "s:unpublish", &name)) return NULL;
    ad__py_session *s = ad__py_session_get();
    if (!s) return NULL;
    ad__py_release();
    int status = ad_unpublish(s->handle, name);
    ad__py_acquire();
    ad__py_session_leave(s);
    return status ? ad__py_fail(status) : Py_NewRef(Py_None);
}

static PyObject *py_names(PyObject *module, PyObject *unused) {
    char *text = NULL;
    ad__py_session *s = ad__py_session_get();
    (void)module;
    (void)unused;
    if (!s) return NULL;
    ad__py_release();
    int status = ad_names(s->handle, &text);
    ad__py_acquire();
    ad__py_session_leave(s);
    PyObject *result = status ? ad__py_fail(status) : PyUnicode_FromString(text);
    free(text);
    return result;
}

PyMethodDef ad__py_sharing_methods[] = {
    {"share", py_share, METH_VARARGS, "share(a, uses, lease, linger): a handle, three integers."},
    {"attach", py_attach, METH_VARARGS, "attach(handle, dtype, offset, shape, strides): the array of a handle."},
    {"pull", py_pull, METH_VARARGS,
     "pull(server, principal, handle, dtype, offset, shape, strides): the array of a handle of another server."},
    {"revoke", py_revoke, METH_O, "revoke(handle): it is over."},
    {"layout", py_layout, METH_O, "layout(a): name of its dtype, offset in its buffer, shape, strides."},
    {"publish", py_publish, METH_VARARGS, "publish(a, name, writable, grant)"},
    {"attach_name", py_attach_name, METH_VARARGS, "attach_name(principal, name): an array that was published."},
    {"unpublish", py_unpublish, METH_VARARGS, "unpublish(name)"},
    {"names", py_names, METH_NOARGS, "What may be attached by name: lines with tabs."},
    {NULL, NULL, 0, NULL},
};
