/* Memory of arrays in this process: an object with the buffer protocol and an address, which needs neither the array
 * any more nor its session, and DLPack's capsules, whose tensors keep their arrays. */
#include <stdlib.h>

#include "client-c/interop/dlpack.h"
#include "dlpack.h"

typedef struct exported {
    PyObject_HEAD ad_lease *lease;
} exported;

static ad_lease_info info_of(PyObject *o) {
    ad_lease_info info;
    ad_export_get_info(((exported *)o)->lease, &info);
    return info;
}

static int get_buffer(PyObject *o, Py_buffer *view, int flags) {
    ad_lease_info info = info_of(o);
    if (!info.cuda) return PyBuffer_FillInfo(view, o, info.base, (Py_ssize_t)info.size, 0, flags);
    PyErr_SetString(PyExc_BufferError, "the memory is a GPU's");
    return -1;
}

static void free_exported(PyObject *o) {
    PyTypeObject *type = Py_TYPE(o);
    ad_export_close(((exported *)o)->lease);
    PyObject_Free(o);
    Py_DECREF(type);
}

static PyObject *get_base(PyObject *o, void *unused) {
    (void)unused;
    return PyLong_FromVoidPtr(info_of(o).base);
}

static PyObject *get_device(PyObject *o, void *unused) {
    (void)unused;
    return PyLong_FromLong(info_of(o).device);
}

int ad__py_export_init(PyObject *module) {
    static PyGetSetDef attributes[] = {{"base", get_base, NULL, "Its address.", NULL},
                                       {"device", get_device, NULL, "Number of its GPU here; -1: the host.", NULL},
                                       {0}};
    static PyType_Slot slots[] = {{Py_tp_doc, "Memory of an array that this process has, too."},
                                  {Py_bf_getbuffer, get_buffer},
                                  {Py_tp_dealloc, free_exported},
                                  {Py_tp_getset, attributes},
                                  {0, NULL}};
    static PyType_Spec spec = {"arrayd._core.Exported", sizeof(exported), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    ad__py.exported = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    if (!ad__py.exported) return -1;
    return PyModule_AddObjectRef(module, "Exported", (PyObject *)ad__py.exported);
}

static bool is_array(PyObject *a) {
    if (ad__py_is_array(a)) return true;
    PyErr_SetString(PyExc_TypeError, "only an ndarray has memory on a server");
    return false;
}

/* Takes the lease over. */
static PyObject *wrap_lease(ad_lease *lease) {
    exported *o = PyObject_Malloc(sizeof *o);
    if (!o) {
        ad_export_close(lease);
        return PyErr_NoMemory();
    }
    PyObject_Init((PyObject *)o, ad__py.exported);
    o->lease = lease;
    return (PyObject *)o;
}

/* The array's memory, mapped here; stream: a number that stands for a CUstream. 0, or -1 with an exception. */
static int lease_of(PyObject *a, unsigned long long stream, ad_lease **lease, void **data) {
    if (!is_array(a)) return -1;
    ad_array *handle = ad_array_retain(ad__py_handle(a));
    ad__py_release();
    int status = ad_export(handle, lease);
    if (!status && (status = ad_import(*lease, (void *)(uintptr_t)stream, data))) ad_export_close(*lease);
    ad_array_release(handle);
    ad__py_acquire();
    if (status) ad__py_fail(status);
    return status ? -1 : 0;
}

/* export_memory(a, stream) */
static PyObject *py_export_memory(PyObject *module, PyObject *args) {
    PyObject *a;
    unsigned long long stream;
    ad_lease *lease;
    void *data;
    (void)module;
    if (!PyArg_ParseTuple(args, "OK:export_memory", &a, &stream) || lease_of(a, stream, &lease, &data)) return NULL;
    return wrap_lease(lease);
}

/* is_readonly(a) */
static PyObject *py_is_readonly(PyObject *module, PyObject *a) {
    (void)module;
    return is_array(a) ? PyBool_FromLong(!ad__py_info(a).writable) : NULL;
}

/* export_handle(a): what keeps it, the handle, the offset, the GPU's id. */
static PyObject *py_export_handle(PyObject *module, PyObject *a) {
    ad_lease *lease;
    char handle[64];
    (void)module;
    if (!is_array(a)) return NULL;
    ad_array *array = ad_array_retain(ad__py_handle(a));
    ad__py_release();
    int status = ad_ipc_handle(array, handle, &lease);
    ad_array_release(array);
    ad__py_acquire();
    if (status) return ad__py_fail(status);
    PyObject *o = wrap_lease(lease);
    if (!o) return NULL;
    ad_lease_info info = info_of(o);
    return Py_BuildValue("Ny#Ls", o, handle, (Py_ssize_t)sizeof handle, (long long)info.offset, info.id);
}

/* export_wait(a): what was called for the array so far is complete, on whatever stream. */
static PyObject *py_export_wait(PyObject *module, PyObject *a) {
    ad_lease *lease;
    (void)module;
    if (!is_array(a)) return NULL;
    ad_array *handle = ad_array_retain(ad__py_handle(a));
    ad__py_release();
    int status = ad_export(handle, &lease);
    if (!status) ad_export_close(lease);
    ad_array_release(handle);
    ad__py_acquire();
    return status ? ad__py_fail(status) : Py_NewRef(Py_None);
}

/* ---- DLPack ---- */

/* A capsule for consumers that know no versions. */
typedef struct plain_capsule {
    DLManagedTensor managed;
    DLManagedTensorVersioned *tensor;
} plain_capsule;

/* Consumers call deleters on whatever thread, with the GIL or without it. */
static void delete_plain(DLManagedTensor *m) {
    plain_capsule *p = m->manager_ctx;
    p->tensor->deleter(p->tensor);
    free(p);
}

/* Free a capsule that nobody has taken: a consumer that takes it renames it. Some consumers also take its destructor
 * away, so that nothing but the tensor may be freed here. */
static void destroy_capsule(PyObject *o) {
    if (PyCapsule_IsValid(o, AD_PY_DL_PLAIN)) {
        DLManagedTensor *m = PyCapsule_GetPointer(o, AD_PY_DL_PLAIN);
        m->deleter(m);
    } else if (PyCapsule_IsValid(o, AD_PY_DL_VERSIONED)) {
        DLManagedTensorVersioned *m = PyCapsule_GetPointer(o, AD_PY_DL_VERSIONED);
        m->deleter(m);
    }
}

PyObject *ad__py_make_capsule(DLManagedTensorVersioned *tensor, bool versioned) {
    PyObject *o = NULL;
    plain_capsule *p = NULL;
    if (versioned) o = PyCapsule_New(tensor, AD_PY_DL_VERSIONED, destroy_capsule);
    else if ((p = malloc(sizeof *p))) {
        *p = (plain_capsule){{tensor->dl_tensor, p, delete_plain}, tensor};
        o = PyCapsule_New(&p->managed, AD_PY_DL_PLAIN, destroy_capsule);
    } else PyErr_NoMemory();
    if (o) return o;
    tensor->deleter(tensor);
    free(p);
    return NULL;
}

/* export_dlpack(a, stream, versioned, memory=None) */
static PyObject *py_export_dlpack(PyObject *module, PyObject *args) {
    PyObject *a, *memory = NULL;
    unsigned long long stream;
    int versioned;
    DLManagedTensorVersioned *tensor;
    (void)module;
    if (!PyArg_ParseTuple(args, "OKp|O:export_dlpack", &a, &stream, &versioned, &memory) || !is_array(a)) return NULL;
    if (!versioned && !ad__py_info(a).writable) {
        PyErr_SetString(PyExc_BufferError, "the array is read-only, which only version 1 of DLPack can tell");
        return NULL;
    }
    const bool leased = memory && memory != Py_None;
    if (leased && !Py_IS_TYPE(memory, ad__py.exported)) {
        PyErr_SetString(PyExc_TypeError, "export_dlpack() takes what export_memory() gives");
        return NULL;
    }
    ad_lease *lease = leased ? ad_export_retain(((exported *)memory)->lease) : NULL;
    ad_array *handle = ad_array_retain(ad__py_handle(a));
    ad__py_release();
    int status = ad_to_dlpack(handle, lease, (void *)(uintptr_t)stream, &tensor);
    ad_array_release(handle);
    if (lease) ad_export_close(lease);
    ad__py_acquire();
    if (status) return ad__py_fail(status);
    return ad__py_make_capsule(tensor, versioned);
}

/* The tensor of a capsule that nobody has taken. NULL: somebody has, or it is no such capsule. */
static DLManagedTensorVersioned *find_tensor(PyObject *capsule) {
    if (!PyCapsule_CheckExact(capsule) || PyCapsule_GetDestructor(capsule) != destroy_capsule) return NULL;
    if (PyCapsule_IsValid(capsule, AD_PY_DL_VERSIONED)) return PyCapsule_GetPointer(capsule, AD_PY_DL_VERSIONED);
    if (!PyCapsule_IsValid(capsule, AD_PY_DL_PLAIN)) return NULL;
    return ((plain_capsule *)PyCapsule_GetPointer(capsule, AD_PY_DL_PLAIN))->tensor;
}

static PyObject *make_view(const ad_array *a, ad__py_session *s) {
    ad_array_info info;
    ad_array *view;
    ad_array_get_info(a, &info);
    return ad__py_result(ad_view(a, info.dtype, info.offset, info.ndim, info.shape, info.strides, &view), &view, s);
}

/* take_own(capsule): a view of the array that it was made of. The capsule is taken then, as by any consumer. */
static PyObject *py_take_own(PyObject *module, PyObject *capsule) {
    (void)module;
    DLManagedTensorVersioned *tensor = find_tensor(capsule);
    if (!tensor) return Py_NewRef(Py_None);
    ad__py_session *s = ad__py_session_get();
    if (!s) return NULL;
    const ad_array *a = ad__dlpack_array(s->handle, tensor);
    PyObject *made = a ? make_view(a, s) : NULL;
    ad__py_session_leave(s);
    if (!a) return Py_NewRef(Py_None);
    if (!made) return NULL;
    const bool plain = PyCapsule_IsValid(capsule, AD_PY_DL_PLAIN);
    destroy_capsule(capsule);
    PyCapsule_SetName(capsule, plain ? "used_" AD_PY_DL_PLAIN : "used_" AD_PY_DL_VERSIONED);
    return made;
}

/* ---- from a GPU ---- */

/* write_device(a, device, address) */
static PyObject *py_write_device(PyObject *module, PyObject *args) {
    PyObject *a;
    int device;
    unsigned long long address;
    (void)module;
    if (!PyArg_ParseTuple(args, "OiK:write_device", &a, &device, &address)) return NULL;
    if (!is_array(a)) return NULL;
    ad_array *handle = ad_array_retain(ad__py_handle(a));
    ad_array_info info = ad__py_info(a);
    ad__py_release();
    int status = ad_write_device(handle, device, (const void *)(uintptr_t)address,
                                 (size_t)info.count * ad__dtypes[info.dtype].size);
    ad_array_release(handle);
    ad__py_acquire();
    return status ? ad__py_fail(status) : Py_NewRef(Py_None);
}

PyMethodDef ad__py_export_methods[] = {
    {"write_device", py_write_device, METH_VARARGS,
     "write_device(a, device, address): all of a contiguous array from memory of this process on its GPU."},
    {"is_readonly", py_is_readonly, METH_O,
     "is_readonly(a): whether the array cannot be written, whatever its strides are."},
    {"export_memory", py_export_memory, METH_VARARGS,
     "export_memory(a, stream): the array's memory, mapped into this process."},
    {"take_own", py_take_own, METH_O,
     "take_own(capsule): a view of the array of which export_dlpack() made the capsule, which nobody else can take "
     "then; None for another library's, and for one that was taken."},
    {"export_dlpack", py_export_dlpack, METH_VARARGS,
     "export_dlpack(a, stream, versioned, memory=None): a DLPack capsule of the array's memory itself, which "
     "export_memory has given before, or which is mapped for it."},
    {"export_handle", py_export_handle, METH_O,
     "export_handle(a): what keeps the array's memory, its 64-byte handle, the array's offset, the GPU's id."},
    {"export_wait", py_export_wait, METH_O, "Wait for what was called for the array so far."},
    {NULL, NULL, 0, NULL},
};
