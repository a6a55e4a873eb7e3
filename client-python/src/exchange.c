/* DLPack's C exchange API: tables of functions by which libraries take each other's arrays without Python's calls. A
 * type has its library's table in a capsule, __dlpack_c_exchange_api__. */
#include "client-c/interop/dlpack.h"
#include "dlpack.h"

#define NAME "__dlpack_c_exchange_api__"
#define CAPSULE "dlpack_exchange_api"

/* ---- arrayd's table: others' calls. Arrays that they get are complete, so they may use any stream. ---- */

/* Take the tensor out of what a.__dlpack__ gives, as consumers do. NULL with an exception. */
static DLManagedTensorVersioned *open_export(PyObject *a) {
    DLManagedTensorVersioned *tensor = NULL;
    PyObject *method = PyObject_GetAttrString(a, "__dlpack__"), *none = PyTuple_New(0);
    PyObject *named = Py_BuildValue("{s(ii)}", "max_version", DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION);
    PyObject *capsule = method && none && named ? PyObject_Call(method, none, named) : NULL;
    if (capsule && (tensor = PyCapsule_GetPointer(capsule, AD_PY_DL_VERSIONED)))
        PyCapsule_SetName(capsule, "used_" AD_PY_DL_VERSIONED); /* its destructor leaves the tensor alone then */
    Py_XDECREF(capsule);
    Py_XDECREF(named);
    Py_XDECREF(none);
    Py_XDECREF(method);
    return tensor;
}

static int export_array(void *array, DLManagedTensorVersioned **out) {
    *out = open_export(array);
    return *out ? 0 : -1;
}

/* Copy a tensor in memory of a GPU that the server has, and wait. A status. */
static int copy_tensor(ad_session *s, const DLTensor *t, ad_array **made) {
    const int dtype = ad__dlpack_dtype(t);
    int status = dtype < 0 ? dtype : ad_zeros(s, dtype, t->ndim, t->shape, made);
    if (status) return status;
    ad_array_info info;
    ad_array_get_info(*made, &info);
    if (!(status = ad_write_device(*made, t->device.device_id, (const char *)t->data + t->byte_offset,
                                   (size_t)info.count * ad__dtypes[dtype].size)))
        return 0;
    ad_array_release(*made);
    return status;
}

/* Make an array of a tensor whose memory its library cannot lend, as what it has from the server itself. */
static PyObject *import_copy(const DLTensor *t) {
    ad__py_session *s = ad__py_session_get();
    ad_array *made = NULL;
    if (!s) return NULL;
    ad__py_release();
    int status = copy_tensor(s->handle, t, &made);
    ad__py_acquire();
    PyObject *result = ad__py_result(status, &made, s);
    ad__py_session_leave(s);
    return result;
}

/* When this fails the tensor is the caller's. */
static int import_tensor(DLManagedTensorVersioned *tensor, void **out) {
    const DLTensor *t = &tensor->dl_tensor;
    PyObject *capsule = ad__py_make_capsule(tensor, true);
    PyObject *made = capsule ? ad__py_take_capsule(capsule, NULL) : NULL;
    if (!made && t->device.device_type == kDLCUDA && ad__dlpack_is_row_major(t) &&
        PyErr_ExceptionMatches(PyExc_NotImplementedError)) {
        PyErr_Clear();
        made = import_copy(t);
    }
    if (capsule && !made) PyCapsule_SetDestructor(capsule, NULL);
    Py_XDECREF(capsule);
    *out = made;
    return made ? 0 : -1;
}

static int current_stream(DLDeviceType type, int32_t device, void **out) {
    (void)type, (void)device;
    *out = NULL;
    return 0;
}

/* A call of the allocator, on whatever thread. */
typedef struct allocation {
    const DLTensor *like;
    DLManagedTensorVersioned *made;
    char message[256];
} allocation;

/* Write an exception's text into the allocation. */
static void note_exception(allocation *a) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *text = value ? PyObject_Str(value) : NULL;
    const char *words = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    snprintf(a->message, sizeof a->message, "%s", words ? words : "no session can be opened");
    PyErr_Clear();
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
}

/* Make an array, whose memory outlives it as a tensor. A status. */
static int make_tensor(ad_session *s, const DLTensor *like, DLManagedTensorVersioned **made) {
    ad_array *a;
    const int dtype = ad__dlpack_dtype(like);
    int status = dtype < 0 ? dtype : ad_zeros(s, dtype, like->ndim, like->shape, &a);
    if (status) return status;
    status = ad_to_dlpack(a, NULL, NULL, made);
    ad_array_release(a);
    return status;
}

static void make_like(void *argument) {
    allocation *a = argument;
    ad__py_session *s = ad__py_session_get();
    if (!s) {
        note_exception(a);
        return;
    }
    ad__py_release();
    if (make_tensor(s->handle, a->like, &a->made)) snprintf(a->message, sizeof a->message, "%s", ad_error_message());
    ad__py_acquire();
    ad__py_session_leave(s);
}

static int allocate_tensor(DLTensor *like, DLManagedTensorVersioned **out, void *context,
                           void (*fail)(void *context, const char *kind, const char *message)) {
    allocation a = {like, NULL, "the interpreter ends"};
    ad__py_with_gil(make_like, &a);
    if (a.made) {
        const DLDevice have = a.made->dl_tensor.device;
        if (have.device_type == like->device.device_type && have.device_id == like->device.device_id) {
            *out = a.made;
            return 0;
        }
        a.made->deleter(a.made);
        snprintf(a.message, sizeof a.message, "the server's memory is on DLPack's device (%d, %d), not (%d, %d)",
                 (int)have.device_type, (int)have.device_id, (int)like->device.device_type,
                 (int)like->device.device_id);
    }
    *out = NULL;
    fail(context, "BufferError", a.message);
    return -1;
}

static DLPackExchangeAPI table = {.header = {.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION}},
                                  .managed_tensor_allocator = allocate_tensor,
                                  .managed_tensor_from_py_object_no_sync = export_array,
                                  .managed_tensor_to_py_object_no_sync = import_tensor,
                                  .current_work_stream = current_stream};

int ad__py_exchange_init(PyObject *module) {
    (void)module;
    PyObject *capsule = PyCapsule_New(&table, CAPSULE, NULL);
    int status = capsule ? PyObject_SetAttrString((PyObject *)ad__py.array, NAME, capsule) : -1;
    Py_XDECREF(capsule);
    return status;
}

/* ---- other libraries' tables ---- */

/* Find the table of a type that is of this version of DLPack. NULL: it has none; with an exception, if any. */
static const DLPackExchangeAPI *find_table(PyTypeObject *type) {
    PyObject *capsule = PyObject_GetAttrString((PyObject *)type, NAME);
    if (!capsule) {
        if (PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
        return NULL;
    }
    const DLPackExchangeAPIHeader *h =
        PyCapsule_IsValid(capsule, CAPSULE) ? PyCapsule_GetPointer(capsule, CAPSULE) : NULL;
    Py_DECREF(capsule);
    while (h && h->version.major > DLPACK_MAJOR_VERSION) h = h->prev_api;
    return h && h->version.major == DLPACK_MAJOR_VERSION ? (const DLPackExchangeAPI *)h : NULL;
}

/* exchange(x): a capsule of a tensor, and the stream on which its library works; None: its type has no table. */
static PyObject *py_exchange(PyObject *module, PyObject *x) {
    DLManagedTensorVersioned *tensor = NULL;
    void *stream = NULL;
    (void)module;
    const DLPackExchangeAPI *api = find_table(Py_TYPE(x));
    if (!api) return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    if (api->managed_tensor_from_py_object_no_sync(x, &tensor) != 0) return NULL;
    const DLDevice device = tensor->dl_tensor.device;
    PyObject *capsule = ad__py_make_capsule(tensor, true);
    if (!capsule) return NULL;
    if (device.device_type == kDLCUDA && api->current_work_stream(device.device_type, device.device_id, &stream) != 0) {
        Py_DECREF(capsule);
        return NULL;
    }
    /* the default stream is CUDA's legacy one, 1 */
    return Py_BuildValue("(NK)", capsule, (unsigned long long)(stream ? (uintptr_t)stream : 1));
}

PyMethodDef ad__py_exchange_methods[] = {
    {"exchange", py_exchange, METH_O,
     "exchange(x): by the C exchange API of DLPack that x's type has, a capsule of the tensor and the stream that its "
     "library uses; None where the type has none."},
    {NULL, NULL, 0, NULL},
};
