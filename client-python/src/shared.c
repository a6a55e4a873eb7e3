/* Host memory that the server shares: an object with the buffer protocol, on which NumPy arrays are built. The array
 * keeps the object, and the object the memory. And pointers to host memory, with the buffer protocol. */
#include "core.h"

typedef struct host_memory {
    PyObject_HEAD ad_host *host;
    Py_ssize_t size;
} host_memory;

static int get_buffer(PyObject *o, Py_buffer *view, int flags) {
    host_memory *self = (host_memory *)o;
    return PyBuffer_FillInfo(view, o, ad_host_data(self->host), self->size, 0, flags);
}

static void free_host_memory(PyObject *o) {
    PyTypeObject *type = Py_TYPE(o);
    ad_host_release(((host_memory *)o)->host);
    PyObject_Free(o);
    Py_DECREF(type);
}

/* ---- pointers ---- */

typedef struct host_pointer {
    PyObject_HEAD PyObject *mem; /* what keeps the memory */
    unsigned long long ptr;
    Py_ssize_t size; /* bytes from there on */
} host_pointer;

/* An attribute of what keeps memory. 0, or -1 with an exception. */
static int read_int(PyObject *mem, const char *name, int64_t *out) {
    PyObject *value = PyObject_GetAttrString(mem, name);
    int status = value ? ad__py_int64(value, out) : -1;
    Py_XDECREF(value);
    return status;
}

/* HostPointer(mem, offset) */
static PyObject *pointer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"mem", "offset", NULL};
    PyObject *mem;
    int64_t ptr, size;
    Py_ssize_t offset;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "On:HostPointer", names, &mem, &offset) ||
        read_int(mem, "ptr", &ptr) != 0 || read_int(mem, "size", &size) != 0)
        return NULL;
    host_pointer *self = (host_pointer *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!self) return NULL;
    self->mem = Py_NewRef(mem);
    self->ptr = (unsigned long long)ptr + (unsigned long long)offset;
    self->size = (Py_ssize_t)size - offset;
    return (PyObject *)self;
}

static void pointer_dealloc(PyObject *o) {
    PyTypeObject *type = Py_TYPE(o);
    Py_XDECREF(((host_pointer *)o)->mem);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(o);
    Py_DECREF(type);
}

static int pointer_buffer(PyObject *o, Py_buffer *view, int flags) {
    const host_pointer *self = (host_pointer *)o;
    if (self->size >= 0) return PyBuffer_FillInfo(view, o, (void *)(uintptr_t)self->ptr, self->size, 0, flags);
    PyErr_SetString(PyExc_BufferError, "the pointer lies behind its memory");
    return -1;
}

static int add_type(PyObject *module, const char *name, PyType_Spec *spec, PyTypeObject **to) {
    PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    int status = type ? PyModule_AddObjectRef(module, name, (PyObject *)type) : -1;
    if (to) *to = type;
    else Py_XDECREF((PyObject *)type);
    return status;
}

static int add_pointer(PyObject *module) {
    static PyMemberDef members[] = {{"mem", T_OBJECT, offsetof(host_pointer, mem), READONLY, "What keeps the memory."},
                                    {"ptr", T_ULONGLONG, offsetof(host_pointer, ptr), READONLY, "The address."},
                                    {"nbytes", T_PYSSIZET, offsetof(host_pointer, size), READONLY, "Bytes there."},
                                    {NULL, 0, 0, 0, NULL}};
    static PyType_Slot slots[] = {{Py_tp_doc, "HostPointer(mem, offset)\n--\n\nA place in memory of this process."},
                                  {Py_tp_new, pointer_new},
                                  {Py_tp_dealloc, pointer_dealloc},
                                  {Py_tp_members, members},
                                  {Py_bf_getbuffer, pointer_buffer},
                                  {0, NULL}};
    static PyType_Spec spec = {"arrayd._core.HostPointer", sizeof(host_pointer), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
    return add_type(module, "HostPointer", &spec, NULL);
}

int ad__py_shared_init(PyObject *module) {
    static PyType_Slot slots[] = {{Py_tp_doc, "Memory that this process shares with the server."},
                                  {Py_bf_getbuffer, get_buffer},
                                  {Py_tp_dealloc, free_host_memory},
                                  {0, NULL}};
    static PyType_Spec spec = {"arrayd._core.HostMemory", sizeof(host_memory), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    return add_type(module, "HostMemory", &spec, &ad__py.host_memory) == 0 ? add_pointer(module) : -1;
}

PyObject *ad__py_host(ad_host *host, int dtype, int ndim, const int64_t *shape) {
    host_memory *memory = PyObject_Malloc(sizeof *memory);
    PyObject *result = NULL;
    if (!memory) {
        ad_host_release(host);
        return PyErr_NoMemory();
    }
    PyObject_Init((PyObject *)memory, ad__py.host_memory);
    memory->host = host;
    memory->size = ad__dtypes[dtype].size;
    for (int i = 0; i < ndim; i++) memory->size *= (Py_ssize_t)shape[i];
    PyObject *dims = ad__py_tuple(ndim, shape), *type = ad__py_dtype_get(dtype);
    if (dims && type)
        result = PyObject_CallFunctionObjArgs((PyObject *)ad__py.np_ndarray, dims, type, (PyObject *)memory, NULL);
    Py_XDECREF(dims);
    Py_XDECREF(type);
    Py_DECREF(memory);
    return result;
}

/* ---- functions ---- */

/* empty_pinned(shape, dtype): None where the server shares no memory. */
static PyObject *py_empty_pinned(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    ad__py_shape shape;
    ad_host *host = NULL;
    int64_t size;
    int dtype;
    (void)module;
    if (n != 2) {
        PyErr_SetString(PyExc_TypeError, "empty_pinned() takes a shape and a dtype");
        return NULL;
    }
    if (ad__py_shape_of(args[0], &shape) != 0 || (dtype = ad__py_dtype_id(args[1])) < 0) return NULL;
    size = ad__dtypes[dtype].size;
    for (int i = 0; i < shape.ndim; i++) {
        if (shape.dim[i] < 0) {
            PyErr_SetString(PyExc_ValueError, "negative dimensions are not allowed");
            return NULL;
        }
        if (__builtin_mul_overflow(size, shape.dim[i], &size)) Py_RETURN_NONE; /* numpy.empty will say why not */
    }
    ad__py_session *s = ad__py_session_get();
    if (!s) return NULL;
    ad__py_release();
    int status = ad_host_alloc(s->handle, (size_t)size, &host);
    ad__py_acquire();
    ad__py_session_leave(s);
    if (status == AD_E_UNSUPPORTED) Py_RETURN_NONE;
    return status ? ad__py_fail(status) : ad__py_host(host, dtype, shape.ndim, shape.dim);
}

static PyObject *py_host_count(PyObject *module, PyObject *unused) {
    uint64_t blocks, bytes;
    ad__py_session *s = ad__py_session_get();
    (void)module;
    (void)unused;
    if (!s) return NULL;
    ad_host_count(s->handle, &blocks, &bytes);
    ad__py_session_leave(s);
    return Py_BuildValue("KK", (unsigned long long)blocks, (unsigned long long)bytes);
}

static PyObject *py_host_trim(PyObject *module, PyObject *unused) {
    ad__py_session *s = ad__py_session_get();
    (void)module;
    (void)unused;
    if (!s) return NULL;
    ad__py_release();
    int status = ad_host_trim(s->handle);
    ad__py_acquire();
    ad__py_session_leave(s);
    return status ? ad__py_fail(status) : Py_NewRef(Py_None);
}

/* ---- progress ---- */

static PyObject *progress; /* called with done, total, up; NULL: nobody wants to know */

static void show_progress(void *unused, uint64_t done, uint64_t total, bool up) {
    (void)unused;
    if (!progress || !ad__py_released) return;
    ad__py_ensure();
    PyObject *call = progress ? Py_NewRef(progress) : NULL, *result = NULL;
    if (call && !PyErr_Occurred())
        result = PyObject_CallFunction(call, "KKO", (unsigned long long)done, (unsigned long long)total,
                                       up ? Py_True : Py_False);
    if (call && !result) PyErr_WriteUnraisable(call);
    Py_XDECREF(result);
    Py_XDECREF(call);
    ad__py_release();
}

void ad__py_watch(ad_session *handle) { ad_session_set_progress(handle, show_progress, NULL); }

static PyObject *py_set_progress(PyObject *module, PyObject *function) {
    (void)module;
    PyObject *old = progress;
    progress = function == Py_None ? NULL : Py_NewRef(function);
    Py_XDECREF(old);
    Py_RETURN_NONE;
}

PyMethodDef ad__py_shared_methods[] = {
    {"empty_pinned", (PyCFunction)(void (*)(void))py_empty_pinned, METH_FASTCALL,
     "empty_pinned(shape, dtype): a NumPy array in memory that the server shares; None where there is none."},
    {"host_count", py_host_count, METH_NOARGS, "Free blocks of that memory, and bytes in all."},
    {"host_trim", py_host_trim, METH_NOARGS, "Give back what is not in use."},
    {"set_progress", py_set_progress, METH_O,
     "A function of done, total, up for transfers of more than a GiB; or None."},
    {NULL, NULL, 0, NULL},
};
