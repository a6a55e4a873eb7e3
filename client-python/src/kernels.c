/* Modules of kernels: build(), and the type Module that it makes. Users see RawModule and its like. */
#include "core.h"

typedef struct module_object {
    PyObject_HEAD ad_module *handle;
    ad__py_session *session; /* counted in its users */
    char *log;               /* what the compiler said; NULL: nothing */
} module_object;

static PyTypeObject *module_type;

/* ---- building ---- */

/* The texts of a tuple of strings, borrowed from it; to be freed. NULL with an exception. */
static const char **texts_of(PyObject *tuple, const char *what, int *n) {
    Py_ssize_t size = PyTuple_Check(tuple) ? PyTuple_Size(tuple) : -1;
    if (size < 0 || size > INT_MAX) {
        PyErr_Format(PyExc_TypeError, "%s must be a tuple of str", what);
        return NULL;
    }
    const char **texts = PyMem_Malloc(((size_t)size + 1) * sizeof *texts);
    if (!texts) return (void *)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < size; i++) {
        PyObject *item = PyTuple_GetItem(tuple, i);
        Py_ssize_t length = 0;
        texts[i] = PyUnicode_Check(item) ? PyUnicode_AsUTF8AndSize(item, &length) : NULL;
        if (texts[i] && strlen(texts[i]) == (size_t)length) continue;
        if (!PyErr_Occurred()) PyErr_Format(PyExc_TypeError, "%s must be a tuple of str without NUL", what);
        PyMem_Free(texts);
        return NULL;
    }
    *n = (int)size;
    return texts;
}

/* Wrap a module. log becomes the module's. */
static PyObject *wrap_module(ad_module *handle, ad__py_session *s, char *log) {
    module_object *self = PyObject_Malloc(sizeof *self);
    if (!self) {
        free(log);
        ad_module_release(handle);
        return PyErr_NoMemory();
    }
    PyObject_Init((PyObject *)self, module_type);
    self->handle = handle;
    self->session = s;
    self->log = log;
    s->users++;
    return (PyObject *)self;
}

static PyObject *build_module(const char *source, Py_ssize_t size, int noptions, const char *const *options, int nnames,
                              const char *const *names) {
    ad_module *handle = NULL;
    char *log = NULL;
    PyObject *result;
    ad__py_session *s = ad__py_session_get();
    if (!s) return NULL;
    ad__py_release();
    int status = ad_module_build(s->handle, source, (size_t)size, noptions, options, nnames, names, &handle, &log);
    ad__py_acquire();
    if (status == AD_E_COMPILE && !PyErr_Occurred()) result = ad__py_fail_text(status, log && *log ? log : "failed");
    else result = status ? ad__py_fail(status) : wrap_module(handle, s, log);
    if (status) free(log);
    ad__py_session_leave(s);
    return result;
}

static PyObject *py_build(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    Py_ssize_t size = 0;
    int noptions = 0, nnames = 0;
    PyObject *result = NULL;
    (void)module;
    if (n != 3) {
        PyErr_SetString(PyExc_TypeError, "build() takes a source, options and name expressions");
        return NULL;
    }
    const char *source = PyUnicode_AsUTF8AndSize(args[0], &size);
    const char **options = source ? texts_of(args[1], "options", &noptions) : NULL;
    const char **names = options ? texts_of(args[2], "names", &nnames) : NULL;
    if (names) result = build_module(source, size, noptions, options, nnames, names);
    PyMem_Free((void *)names);
    PyMem_Free((void *)options);
    return result;
}

PyMethodDef ad__py_kernel_methods[] = {
    {"build", (PyCFunction)(void (*)(void))py_build, METH_FASTCALL,
     "build(source, options, names): a Module; the two are tuples of str. Raises CompileError with the compiler's "
     "log."},
    {NULL, NULL, 0, NULL},
};

/* ---- launching ---- */

static int read_three(PyObject *o, const char *what, uint32_t out[3]) {
    Py_ssize_t n = PyTuple_Check(o) ? PyTuple_Size(o) : 0;
    for (Py_ssize_t i = 0; i < 3 && n == 3; i++) {
        int64_t value;
        if (ad__py_int64(PyTuple_GetItem(o, i), &value) != 0) return -1;
        if (value < 0 || value > UINT32_MAX) {
            PyErr_Format(PyExc_ValueError, "%s: %lld is not a number of blocks or threads", what, (long long)value);
            return -1;
        }
        out[i] = (uint32_t)value;
    }
    if (n == 3) return 0;
    PyErr_Format(PyExc_TypeError, "%s must be a tuple of three ints", what);
    return -1;
}

/* An array, bytes, or a tuple of both: a structure that begins with the array's address. */
static int read_parameter(PyObject *o, ad_parameter *p) {
    char *data;
    Py_ssize_t size;
    *p = (ad_parameter){0};
    if (PyTuple_Check(o) && PyTuple_Size(o) == 2 && ad__py_is_array(PyTuple_GetItem(o, 0))) {
        p->array = ad__py_handle(PyTuple_GetItem(o, 0));
        o = PyTuple_GetItem(o, 1);
    }
    if (ad__py_is_array(o)) {
        p->array = ad__py_handle(o);
        return 0;
    }
    if (!PyBytes_Check(o)) {
        PyErr_Format(PyExc_TypeError, "an argument must be an ndarray, bytes or both, not %R", (PyObject *)Py_TYPE(o));
        return -1;
    }
    if (PyBytes_AsStringAndSize(o, &data, &size) != 0) return -1;
    p->data = data;
    p->size = (size_t)size;
    return 0;
}

/* Bit i of a mask of any length: array i may be written. */
static int set_written(PyObject *mask, Py_ssize_t n, ad_parameter *p) {
    PyObject *rest = Py_NewRef(mask), *shift = PyLong_FromLong(64);
    for (Py_ssize_t at = 0; at < n && rest && shift; at += 64) {
        unsigned long long bits = PyLong_AsUnsignedLongLongMask(rest);
        if (PyErr_Occurred()) break;
        for (Py_ssize_t i = at; i < n && i < at + 64; i++) p[i].written = bits >> (i - at) & 1;
        if (at + 64 < n) ad__py_replace(&rest, PyNumber_Rshift(rest, shift));
    }
    Py_XDECREF(rest);
    Py_XDECREF(shift);
    return PyErr_Occurred() ? -1 : 0;
}

/* launch(name, grid, block, shared, arguments, written) */
static PyObject *launch_kernel(PyObject *o, PyObject *const *args, Py_ssize_t nargs) {
    ad_parameter p[AD_MAX_ARGUMENTS];
    ad_grid grid;
    int64_t shared = 0;
    module_object *self = (module_object *)o;
    if (nargs != 6 || !PyTuple_Check(args[4])) {
        PyErr_SetString(PyExc_TypeError, "launch() takes name, grid, block, shared, a tuple of arguments, written");
        return NULL;
    }
    Py_ssize_t n = PyTuple_Size(args[4]);
    const char *name = PyUnicode_AsUTF8AndSize(args[0], NULL);
    if (!name || read_three(args[1], "grid", grid.grid) != 0 || read_three(args[2], "block", grid.block) != 0 ||
        ad__py_int64(args[3], &shared) != 0)
        return NULL;
    if (shared < 0 || shared > UINT32_MAX || n > AD_MAX_ARGUMENTS) {
        PyErr_Format(PyExc_ValueError,
                     n > AD_MAX_ARGUMENTS ? "a kernel has at most %d parameters"
                                          : "the shared memory must be from 0 to 2**32-1 bytes",
                     AD_MAX_ARGUMENTS);
        return NULL;
    }
    grid.shared = (uint32_t)shared;
    for (Py_ssize_t i = 0; i < n; i++)
        if (read_parameter(PyTuple_GetItem(args[4], i), &p[i]) != 0) return NULL;
    if (set_written(args[5], n, p) != 0) return NULL;
    int status = ad_launch(self->handle, name, &grid, (int)n, p);
    ad__py_ensure();
    return status ? ad__py_fail(status) : Py_NewRef(Py_None);
}

/* ---- attributes ---- */

/* Names in the order of ad_kernel_facts. */
static const char *const facts[] = {"max_threads_per_block",
                                    "shared_size_bytes",
                                    "const_size_bytes",
                                    "local_size_bytes",
                                    "num_regs",
                                    "ptx_version",
                                    "binary_version",
                                    "cache_mode_ca",
                                    "max_dynamic_shared_size_bytes",
                                    "preferred_shared_memory_carveout"};

static PyObject *get_kernel_info(PyObject *o, PyObject *name_object) {
    ad_kernel_facts f;
    const char *name = PyUnicode_AsUTF8AndSize(name_object, NULL);
    if (!name) return NULL;
    ad__py_release();
    int status = ad_kernel_get_facts(((module_object *)o)->handle, name, &f);
    ad__py_acquire();
    PyObject *dict = status ? ad__py_fail(status) : PyDict_New();
    for (size_t i = 0; dict && i < sizeof facts / sizeof *facts; i++) {
        PyObject *value = PyLong_FromLongLong((&f.max_threads_per_block)[i]);
        if (!value || PyDict_SetItemString(dict, facts[i], value) != 0) Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

/* set(name, max_dynamic_shared=-1, carveout=-1, cooperative=False): that it is not needs no saying */
static PyObject *set_kernel(PyObject *o, PyObject *const *args, Py_ssize_t npos, PyObject *kwnames) {
    static const char *const names[] = {"name", "max_dynamic_shared", "carveout", "cooperative", NULL};
    PyObject *v[4];
    int64_t shared = -1, carveout = -1;
    if (ad__py_arguments("set", names, args, npos, kwnames, v) != 0) return NULL;
    const char *name = v[0] ? PyUnicode_AsUTF8AndSize(v[0], NULL) : NULL;
    if (!name) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "set() takes the name of a kernel");
        return NULL;
    }
    if ((v[1] && ad__py_int64(v[1], &shared) != 0) || (v[2] && ad__py_int64(v[2], &carveout) != 0)) return NULL;
    ad_module *m = ((module_object *)o)->handle;
    int status = v[3] && PyObject_IsTrue(v[3]) ? ad_kernel_set_cooperative(m, name, true) : 0;
    if (!status && (v[1] || v[2])) status = ad_kernel_set(m, name, shared, carveout);
    ad__py_ensure();
    return status ? ad__py_fail(status) : Py_NewRef(Py_None);
}

static PyObject *get_global(PyObject *o, PyObject *name_object) {
    ad_array *array = NULL;
    const char *name = PyUnicode_AsUTF8AndSize(name_object, NULL);
    if (!name) return NULL;
    ad__py_release();
    int status = ad_module_get_global(((module_object *)o)->handle, name, &array);
    ad__py_acquire();
    return ad__py_result(status, &array, ((module_object *)o)->session);
}

static PyObject *get_log(PyObject *o, PyObject *unused) {
    const char *log = ((module_object *)o)->log;
    (void)unused;
    return PyUnicode_DecodeUTF8(log ? log : "", (Py_ssize_t)strlen(log ? log : ""), "replace");
}

/* ---- the type ---- */

static void free_module(PyObject *o) {
    module_object *self = (module_object *)o;
    PyTypeObject *type = Py_TYPE(o);
    ad_module_release(self->handle);
    free(self->log);
    ad__py_ensure();
    ad__py_session_leave(self->session);
    PyObject_Free(o);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"launch", (PyCFunction)(void (*)(void))launch_kernel, METH_FASTCALL,
     "launch(name, grid, block, shared, arguments, written): without waiting. grid and block are tuples of three "
     "ints;\n"
     "arguments are ndarrays (their address) or bytes (the value itself); bit i of written: argument i may be "
     "written."},
    {"log", get_log, METH_NOARGS, "log(): what the compiler said, such as warnings."},
    {"info", get_kernel_info, METH_O, "info(name): the kernel's attributes."},
    {"set", (PyCFunction)(void (*)(void))set_kernel, METH_FASTCALL | METH_KEYWORDS,
     "set(name, max_dynamic_shared=-1, carveout=-1, cooperative=False): change the kernel's attributes; negative ones "
     "stay. cooperative: blocks of its launches run all at once, from now on."},
    {"get_global", get_global, METH_O, "get_global(name): a variable's memory, as an ndarray of uint8."},
    {NULL, NULL, 0, NULL},
};

int ad__py_kernels_init(PyObject *module) {
    static PyType_Slot slots[] = {{Py_tp_doc, "Kernels that the server has compiled."},
                                  {Py_tp_methods, methods},
                                  {Py_tp_dealloc, free_module},
                                  {0, NULL}};
    static PyType_Spec spec = {"arrayd._core.Module", sizeof(module_object), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    module_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return module_type ? PyModule_AddObjectRef(module, "Module", (PyObject *)module_type) : -1;
}
