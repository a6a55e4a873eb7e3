/* Memory that other libraries of this process have on a GPU, as arrays. Its owner is kept until the server has let go,
 * which libarrayd says on a thread of its own. Owners are dropped on the main thread, as soon as that comes to it:
 * there the other library has the GPU's context. */
#include <stdatomic.h>
#include <unistd.h>

#include "dlpack.h"

typedef struct lent_owner {
    struct lent_owner *next;
    PyObject *owner;
    pid_t pid; /* a fork's child has it, too, and leaves it alone */
} lent_owner;

static lent_owner *_Atomic dropped;
static atomic_bool asked;
static pid_t lender; /* who has lent anything; 0: nobody */

/* Drop loans that have ended. The caller has the GIL. */
static int drop_lent(void *unused) {
    (void)unused;
    atomic_store(&asked, false);
    for (lent_owner *k = atomic_exchange(&dropped, NULL), *next; k; k = next) {
        next = k->next;
        if (k->pid == getpid()) Py_DECREF(k->owner);
        free(k);
    }
    return 0;
}

/* Release a loan. Any thread calls it. */
static void release_loan(void *argument) {
    lent_owner *k = argument;
    k->next = atomic_load(&dropped);
    while (!atomic_compare_exchange_weak(&dropped, &k->next, k))
        ;
    if (!atomic_exchange(&asked, true) && !ad__py_on_main(drop_lent)) atomic_store(&asked, false);
}

/* A tensor of the host's memory has been copied: its capsule frees it. */
static void leave_tensor(void *unused) { (void)unused; }

static void begin_releasing(void) {
    if (lender != getpid()) { /* a fork's child has not been asked for anything */
        atomic_store(&asked, false);
        lender = getpid();
    }
    drop_lent(NULL);
}

/* An owner that is to be kept until release() is called with what this returns. NULL with an exception. */
static lent_owner *keep_owner(PyObject *owner) {
    begin_releasing();
    lent_owner *k = malloc(sizeof *k);
    if (!k) {
        PyErr_NoMemory();
        return NULL;
    }
    *k = (lent_owner){NULL, Py_NewRef(owner), lender};
    return k;
}

/* The array that was made with the owner kept, or, after a failure, an exception and the owner's end. */
static PyObject *finish_lending(int status, lent_owner *k, ad_array *const *made, ad__py_session *s) {
    if (status) {
        Py_DECREF(k->owner);
        free(k);
    }
    PyObject *result = ad__py_result(status, made, s);
    ad__py_session_leave(s);
    return result;
}

/* lend(owner, device, address, readonly, dtype, shape, strides) */
static PyObject *py_lend(PyObject *module, PyObject *args) {
    PyObject *owner, *dtype, *shape_object, *strides_object;
    ad__py_shape shape, strides;
    unsigned long long address;
    ad_loan loan = {0};
    int readonly;
    (void)module;
    if (!PyArg_ParseTuple(args, "OiKpOOO:lend", &owner, &loan.device, &address, &readonly, &dtype, &shape_object,
                          &strides_object))
        return NULL;
    const int id = ad__py_dtype_id(dtype);
    if (id < 0 || ad__py_shape_of(shape_object, &shape) != 0 || ad__py_shape_of(strides_object, &strides) != 0)
        return NULL;
    if (shape.ndim != strides.ndim) {
        PyErr_SetString(PyExc_ValueError, "lend(): shape and strides differ in length");
        return NULL;
    }
    ad__py_session *s = ad__py_session_get();
    lent_owner *k = s ? keep_owner(owner) : NULL;
    if (!k) {
        if (s) ad__py_session_leave(s);
        return NULL;
    }
    loan.data = (void *)(uintptr_t)address;
    loan.readonly = readonly;
    loan.release = release_loan;
    loan.argument = k;
    ad_array *made;
    ad__py_release();
    int status = ad_lend(s->handle, &loan, &(ad_layout){id, shape.ndim, 0, shape.dim, strides.dim}, &made);
    ad__py_acquire();
    return finish_lending(status, k, &made, s);
}

/* ---- DLPack ---- */

/* Read a capsule as a versioned tensor. false with an exception. */
static bool open_capsule(PyObject *capsule, DLManagedTensorVersioned *tensor) {
    if (PyCapsule_IsValid(capsule, AD_PY_DL_VERSIONED)) {
        *tensor = *(DLManagedTensorVersioned *)PyCapsule_GetPointer(capsule, AD_PY_DL_VERSIONED);
        return true;
    }
    const DLManagedTensor *m = PyCapsule_GetPointer(capsule, AD_PY_DL_PLAIN);
    if (!m) return false;
    *tensor = (DLManagedTensorVersioned){.version = {DLPACK_MAJOR_VERSION, 0}, .dl_tensor = m->dl_tensor};
    return true;
}

/* A type or a version that arrayd lacks is a BufferError, as the array API has it. */
static int check_tensor(const DLManagedTensorVersioned *m) {
    if (m->version.major != DLPACK_MAJOR_VERSION)
        PyErr_Format(PyExc_BufferError, "the tensor is of version %u of DLPack, and this is %d", m->version.major,
                     DLPACK_MAJOR_VERSION);
    else if (m->dl_tensor.ndim < 0 || m->dl_tensor.ndim > AD_MAX_NDIM)
        PyErr_Format(PyExc_BufferError, "the tensor has %d dimensions; arrayd's have at most %d", m->dl_tensor.ndim,
                     AD_MAX_NDIM);
    else return 0;
    return -1;
}

/* Make an array of a tensor; k: NULL, or what is kept until the server has let go. A status. */
static int make_array(ad__py_session *s, DLManagedTensorVersioned *tensor, void *stream, lent_owner *k,
                      ad_array **made) {
    ad__py_release();
    int status = ad_from_dlpack(s->handle, tensor, stream, k ? release_loan : leave_tensor, k, made);
    ad__py_acquire();
    return status;
}

/* Replace an error of a tensor's type by a BufferError, and fail where the package that has the array's type is
 * missing. A status, or 1 with an exception. */
static int check_made(int status, ad_array *made) {
    ad_array_info info;
    if (status == AD_E_TYPE) PyErr_SetString(PyExc_BufferError, ad_error_message());
    if (status) return status == AD_E_TYPE ? 1 : status;
    ad_array_get_info(made, &info);
    PyObject *dtype = ad__py_dtype_get(info.dtype);
    Py_XDECREF(dtype);
    if (dtype) return 0;
    ad_array_release(made);
    return 1;
}

PyObject *ad__py_take_capsule(PyObject *capsule, void *stream) {
    DLManagedTensorVersioned tensor;
    ad_array *made = NULL;
    if (!open_capsule(capsule, &tensor) || check_tensor(&tensor) != 0) return NULL;
    const bool lent = tensor.dl_tensor.device.device_type == kDLCUDA;
    ad__py_session *s = ad__py_session_get();
    lent_owner *k = s && lent ? keep_owner(capsule) : NULL;
    if (!s || (lent && !k)) {
        if (s) ad__py_session_leave(s);
        return NULL;
    }
    int status = make_array(s, &tensor, stream, k, &made);
    const bool used = !status; /* k is the loan's */
    if ((status = check_made(status, made)) && k && !used) {
        Py_DECREF(k->owner);
        free(k);
    }
    PyObject *result = status == 1 ? NULL : ad__py_result(status, &made, s);
    ad__py_session_leave(s);
    return result;
}

/* take_dlpack(capsule, stream=1): on a GPU the array is the tensor's memory, ordered behind what the stream has. The
 * capsule is kept as it is, and frees the tensor when it goes. */
static PyObject *py_take_dlpack(PyObject *module, PyObject *args) {
    PyObject *capsule;
    unsigned long long stream = 1; /* the legacy default stream, for which producers are asked, is CUDA's 1 */
    (void)module;
    if (!PyArg_ParseTuple(args, "O|K:take_dlpack", &capsule, &stream)) return NULL;
    return ad__py_take_capsule(capsule, (void *)(uintptr_t)stream);
}

/* settle(): what was called on the current stream is complete */
static PyObject *py_settle(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    ad__py_session *s = ad__py_session_get();
    if (!s) return NULL;
    ad__py_release();
    int status = ad_settle(s->handle);
    ad__py_acquire();
    ad__py_session_leave(s);
    return status ? ad__py_fail(status) : Py_NewRef(Py_None);
}

static PyObject *py_is_lent(PyObject *module, PyObject *a) {
    (void)module;
    return PyBool_FromLong(ad__py_is_array(a) && ad__py_info(a).lent);
}

PyMethodDef ad__py_lend_methods[] = {
    {"lend", py_lend, METH_VARARGS,
     "lend(owner, device, address, readonly, dtype, shape, strides): an array that is memory of this process on GPU "
     "`device` (-1: whichever has it); the owner is kept until the server has let go."},
    {"take_dlpack", py_take_dlpack, METH_VARARGS,
     "take_dlpack(capsule, stream=1): an array that is a tensor's memory on a GPU, which was asked for with that "
     "stream, "
     "or a copy of it in the host's."},
    {"is_lent", py_is_lent, METH_O, "Whether an array is memory of this process."},
    {"settle", py_settle, METH_NOARGS, "Wait for what was called on the current stream; errors stay for later."},
    {NULL, NULL, 0, NULL},
};
