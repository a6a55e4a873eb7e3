/* Memory that other libraries of this process have on a GPU, as arrays. What owns it is kept until the server has let
 * go, which libarrayd says on a thread of its own. Owners are dropped on the main thread, as soon as that comes to it:
 * there the other library has the GPU's context. */
#include <stdatomic.h>
#include <unistd.h>

#include "core.h"
#include "dlpack.h"

typedef struct kept {
    struct kept *next;
    PyObject *owner;
    pid_t pid; /* a fork's child has it, too, and leaves it alone */
} kept;

static kept *_Atomic dropped;
static atomic_bool asked;
static pid_t lender; /* who has lent anything; 0: nobody */

/* With the GIL. */
static int drop_lent(void *unused) {
    (void)unused;
    atomic_store(&asked, false);
    for (kept *k = atomic_exchange(&dropped, NULL), *next; k; k = next) {
        next = k->next;
        if (k->pid == getpid()) Py_DECREF(k->owner);
        free(k);
    }
    return 0;
}

/* On whatever thread. */
static void release(void *argument) {
    kept *k = argument;
    k->next = atomic_load(&dropped);
    while (!atomic_compare_exchange_weak(&dropped, &k->next, k))
        ;
    if (!atomic_exchange(&asked, true) && !ad__py_on_main(drop_lent)) atomic_store(&asked, false);
}

static void begin(void) {
    if (lender != getpid()) { /* a fork's child has not been asked for anything */
        atomic_store(&asked, false);
        lender = getpid();
    }
    drop_lent(NULL);
}

static PyObject *lend(PyObject *owner, ad_loan *loan, const ad_layout *layout) {
    ad_array *a;
    begin();
    kept *k = malloc(sizeof *k);
    if (!k) return PyErr_NoMemory();
    ad__py_session *s = ad__py_session_get();
    if (!s) {
        free(k);
        return NULL;
    }
    *k = (kept){NULL, Py_NewRef(owner), lender};
    loan->release = release;
    loan->argument = k;
    ad__py_release();
    int status = ad_lend(s->handle, loan, layout, &a);
    ad__py_acquire();
    if (status) {
        Py_DECREF(owner);
        free(k);
    }
    PyObject *result = ad__py_result(status, &a, s);
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
    loan.data = (void *)(uintptr_t)address;
    loan.readonly = readonly;
    return lend(owner, &loan, &(ad_layout){id, shape.ndim, 0, shape.dim, strides.dim});
}

/* ---- DLPack ---- */

static const char kinds[] = {[DL_INT] = 'i', [DL_UINT] = 'u', [DL_FLOAT] = 'f', [DL_COMPLEX] = 'c', [DL_BOOL] = 'b'};

/* -1 with an exception. */
static int dtype_of(const dl_tensor *t) {
    if (t->lanes == 1 && t->code == DL_BFLOAT && t->bits == 16) return AD_BFLOAT16;
    for (int id = 0; id < AD_NDTYPE; id++)
        if (t->lanes == 1 && t->code < sizeof kinds && id != AD_BFLOAT16 && ad__dtypes[id].kind == kinds[t->code] &&
            8 * ad__dtypes[id].size == t->bits)
            return id;
    PyErr_Format(PyExc_BufferError, "arrayd has no type with DLPack's code %d and %d bits", t->code, t->bits);
    return -1;
}

/* Strides in bytes. CuPy 14 divides negative ones by the size as if they were unsigned: multiplied again, modulo 2^64,
 * they are right. Whether all elements lie in the allocation is checked later. */
static int strides_of(const dl_tensor *t, int size, int64_t *strides) {
    int64_t step = size;
    for (int i = t->ndim - 1; i >= 0; i--) {
        strides[i] = t->strides ? (int64_t)((uint64_t)t->strides[i] * (uint64_t)size) : step;
        if (__builtin_mul_overflow(step, t->shape[i] ? t->shape[i] : 1, &step)) {
            PyErr_SetString(PyExc_BufferError, "the tensor is too big");
            return -1;
        }
    }
    return 0;
}

/* The capsule is kept as it is, and frees the tensor when it goes. */
static PyObject *lend_tensor(PyObject *capsule, const dl_tensor *t, bool readonly) {
    int64_t strides[AD_MAX_NDIM];
    if (t->device_type != DL_CUDA || t->ndim < 0 || t->ndim > AD_MAX_NDIM) {
        PyErr_SetString(PyExc_BufferError, "the tensor is not in memory of a GPU, or has too many dimensions");
        return NULL;
    }
    const int id = dtype_of(t);
    PyObject *dtype = id < 0 ? NULL : ad__py_dtype_get(id); /* a package that it needs may be missing */
    if (!dtype || strides_of(t, ad__dtypes[id].size, strides) != 0) {
        Py_XDECREF(dtype);
        return NULL;
    }
    Py_DECREF(dtype);
    ad_loan loan = {.data = (char *)t->data + t->byte_offset,
                    .device = t->device_id,
                    .readonly = readonly,
                    .stream = (void *)1}; /* the legacy default stream, for which the producer was asked */
    return lend(capsule, &loan, &(ad_layout){id, t->ndim, 0, t->shape, strides});
}

/* lend_dlpack(capsule): one that was asked for with stream=1 */
static PyObject *py_lend_dlpack(PyObject *module, PyObject *capsule) {
    (void)module;
    if (PyCapsule_IsValid(capsule, AD_PY_DL_VERSIONED)) {
        const dl_managed_versioned *m = PyCapsule_GetPointer(capsule, AD_PY_DL_VERSIONED);
        if (m->major == 1) return lend_tensor(capsule, &m->tensor, m->flags & DL_READ_ONLY);
        PyErr_Format(PyExc_BufferError, "the tensor is of version %u of DLPack, and this is 1", m->major);
        return NULL;
    }
    const dl_managed *m = PyCapsule_GetPointer(capsule, AD_PY_DL_PLAIN);
    return m ? lend_tensor(capsule, &m->tensor, false) : NULL;
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
    {"lend_dlpack", py_lend_dlpack, METH_O,
     "lend_dlpack(capsule): an array that is a tensor's memory, of which the capsule was made with stream=1."},
    {"is_lent", py_is_lent, METH_O, "Whether an array is memory of this process."},
    {"settle", py_settle, METH_NOARGS, "Wait for what was called on the current stream; errors stay for later."},
    {NULL, NULL, 0, NULL},
};
