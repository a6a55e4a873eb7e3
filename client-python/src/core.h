/* Types and functions that the files of the extension module arrayd._core share. They use only the limited API of
 * Python 3.11. */
#ifndef AD_PY_CORE_H
#define AD_PY_CORE_H

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <structmember.h>

#include <arrayd.h>

#include "protocol/desc.h"
#include "protocol/infer.h"
#include "protocol/tables.h"

/* ---- references ---- */

/* Python 3.12 and later do not count the users of None, True and their like. The macros of 3.11 do: a reference that
 * Python hands out uncounted would be taken off the count, until after some 2^32 of them True is freed. */
static inline void add_reference(PyObject *object) {
    if ((int32_t)Py_REFCNT(object) >= 0) Py_INCREF(object);
}

static inline void drop_reference(PyObject *object) {
    if ((int32_t)Py_REFCNT(object) >= 0) Py_DECREF(object);
}

static inline void add_reference_if_any(PyObject *object) {
    if (object) add_reference(object);
}

static inline void drop_reference_if_any(PyObject *object) {
    if (object) drop_reference(object);
}

static inline PyObject *share_reference(PyObject *object) {
    add_reference(object);
    return object;
}

#undef Py_INCREF
#undef Py_DECREF
#undef Py_XINCREF
#undef Py_XDECREF
#undef Py_NewRef
#define Py_INCREF(object) add_reference((PyObject *)(object))
#define Py_DECREF(object) drop_reference((PyObject *)(object))
#define Py_XINCREF(object) add_reference_if_any((PyObject *)(object))
#define Py_XDECREF(object) drop_reference_if_any((PyObject *)(object))
#define Py_NewRef(object) share_reference((PyObject *)(object))

/* ---- objects ---- */

/* A session of this process. It is closed when it is neither current nor needed by an array. */
typedef struct ad__py_session {
    ad_session *handle;
    uint64_t serial;  /* of all sessions of this process, from 1 */
    Py_ssize_t users; /* ndarray objects and calls under way; guarded, as everything here, by the GIL */
    bool current;
} ad__py_session;

typedef struct ad__py_array {
    PyObject_HEAD ad_array *array; /* owned; NULL only while the object is made */
    ad_array *former;              /* what array was before shape was set: another thread may be using it */
    ad__py_session *session;       /* counted in its users */
    PyObject *base;                /* of a view: the ndarray that owns the buffer */
    PyObject *weak;
} ad__py_array;

/* Objects that the module needs again and again; filled once by module.c and never changed. */
typedef struct ad__py_state {
    PyTypeObject *array, *flags, *ufunc;
    PyTypeObject *host_memory, *exported;
    PyObject *device_type;  /* makes a cuda.Device of a number */
    PyObject *program_name; /* gives this program's name, or None */
    PyObject *dtype_error;  /* a TypeError, as NumPy's, and a ValueError, as CuPy's */
    PyTypeObject *np_ndarray, *np_generic, *np_dtype;
    PyObject *numpy, *np_asarray, *np_empty, *np_axis_error, *np_complex_warning;
    bool tf32; /* the environment allows float32 products in TF32 */
    bool truncates_slices; /* a slice's ends may be of any type that int() takes, as in CuPy */
} ad__py_state;
extern ad__py_state ad__py;

typedef struct ad__py_shape {
    int ndim;
    int64_t dim[AD_MAX_NDIM];
} ad__py_shape;

/* Set *o to replacement, which is taken over. */
static inline void ad__py_replace(PyObject **o, PyObject *replacement) {
    PyObject *old = *o;
    *o = replacement;
    Py_XDECREF(old);
}
static inline PyObject *ad__py_call1(PyObject *f, PyObject *argument) {
    return PyObject_CallFunctionObjArgs(f, argument, NULL);
}
static inline bool ad__py_is_array(PyObject *o) {
    return Py_IS_TYPE(o, ad__py.array) || PyObject_TypeCheck(o, ad__py.array);
}
static inline ad_array *ad__py_handle(PyObject *o) { return ((ad__py_array *)o)->array; }
static inline ad_array_info ad__py_info(PyObject *o) {
    ad_array_info info;
    ad_array_get_info(ad__py_handle(o), &info);
    return info;
}

/* ---- errors.c ---- */
int ad__py_errors_init(PyObject *module);
/* Raises what the calling thread's last error says; returns NULL. */
PyObject *ad__py_fail(int code);
PyObject *ad__py_fail_text(int status, const char *text); /* the same with another text, perhaps longer */
PyObject *ad__py_axis_error(int64_t axis, int ndim, const char *argument);

/* ---- session.c ---- */
int ad__py_session_init(void);
ad__py_session *ad__py_session_get(void); /* the current one, opened when there is none; NULL with an exception */
bool ad__py_session_issued(uint64_t *serial, uint64_t *number); /* the last operation of the current one */
/* The session of the first ndarray among n objects, else the current one. */
ad__py_session *ad__py_session_of(PyObject *const *objects, Py_ssize_t n);
uint64_t ad__py_session_serial(void);         /* of the current one; 0: there is none */
void ad__py_session_leave(ad__py_session *s); /* what came from the two above is left so */
/* Around calls that wait for the server. */
void ad__py_release(void);
void ad__py_acquire(void);
/* After a call that may have waited with the GIL held: see session.c. */
extern _Thread_local PyThreadState *ad__py_released;
/* Somebody wants to know where operations are issued; what follows an operation is then noted: see watch.c. */
extern bool ad__py_watching;
void ad__py_note(void);
/* Describe the place where an operation was issued: a str, or NULL without an exception. */
PyObject *ad__py_place(uint64_t number);
static inline void ad__py_ensure(void) {
    if (ad__py_released) ad__py_acquire();
    else if (ad__py_watching) ad__py_note();
}
extern PyMethodDef ad__py_session_methods[], ad__py_watch_methods[];

/* ---- dtype.c ---- */
int ad__py_dtype_init(void);
int ad__py_dtype_id(PyObject *o);               /* of anything that names a dtype; -1 with an exception */
int ad__py_dtype_known(PyObject *dtype);        /* of a numpy.dtype; -1 without an exception: arrayd has none such */
PyObject *ad__py_dtype_get(int id);             /* a new reference */
int ad__py_scalar_type(PyTypeObject *type);     /* dtype of a NumPy scalar's type; -1 without an exception */
int ad__py_casting(PyObject *o, int otherwise); /* NULL: otherwise; -1 with an exception */
/* Tell whether ad__py_dtype_id has refused a type of structured elements. The exception is cleared then. */
bool ad__py_refused_structured(PyObject *o);
/* Call a function of arrayd._array.structured with a tuple of arguments, which is taken over. */
PyObject *ad__py_structured(const char *function, PyObject *args);
/* Get the array itself, or of a structured one the array of its bytes: a new reference. TypeError for anything else. */
PyObject *ad__py_elements(PyObject *o);
extern PyMethodDef ad__py_dtype_methods[];

/* ---- convert.c: numbers ---- */
#define AD_PY_HUGE 2 /* result of ad__py_operand: a Python int beyond 64 bits; as.i is its sign */
/* An operand: 1 (in is filled), AD_PY_HUGE, 0 (nothing that operations take), -1 with an exception. */
int ad__py_operand(PyObject *o, ad_in *in);
/* Get the array of an object that hands one out, or describes one by the CUDA array interface: a new reference. NULL
 * with an exception; NULL without one: the object is no such object. */
PyObject *ad__py_adopt(PyObject *o);
PyObject *ad__py_asarray(PyObject *o); /* arrayd.asarray(o) */
/* Get an operand where nothing else will do: 0, or -1 with an exception that names what. */
int ad__py_operand_of(const char *what, PyObject *o, ad_in *in);
int ad__py_value(const char *what, PyObject *o, ad_value *value); /* 0 or -1: a number, no array */
/* Check that a Python number may be stored as a dtype: 0, or -1 with NumPy's OverflowError, ValueError or TypeError. */
int ad__py_storable(const ad_value *v, int dtype);
int ad__py_huge(PyObject *o, int dtype); /* raises OverflowError; -1 */
/* Of a Python int beyond 64 bits fill *v: 1, or -1 with an exception. _float: beside an array of dtype, which has to be
 * of floats (0: it is not). _stored: as an element of dtype. */
int ad__py_huge_float(PyObject *o, int dtype, ad_value *v);
int ad__py_huge_stored(PyObject *o, int dtype, ad_value *v);
int ad__py_refuse(PyObject *o, const char *what); /* raises TypeError for an operand of that type; -1 */
PyObject *ad__py_element(int dtype, const void *data);
int ad__py_int64(PyObject *o, int64_t *out); /* of anything with __index__; -1 with an exception */
/* Ints, or one sequence of them. -1 with an exception. */
int ad__py_ints(PyObject *const *args, Py_ssize_t n, ad__py_shape *out);
int ad__py_shape_of(PyObject *o, ad__py_shape *out);
PyObject *ad__py_tuple(int n, const int64_t *values);
int ad__py_axis(int64_t axis, int ndim, const char *argument); /* counted from the front; -1 with AxisError */
/* Arguments by keyword of a METH_FASTCALL | METH_KEYWORDS function: fills values (NULL where missing, borrowed) from
 * npos positional ones and names, whose last one is NULL. -1 with a TypeError. */
int ad__py_arguments(const char *function, const char *const *names, PyObject *const *args, Py_ssize_t npos,
                     PyObject *kwnames, PyObject **values);

/* ---- array.c: the type ---- */
int ad__py_array_init(PyObject *module);
/* An ndarray around a handle, which it takes over (also on failure). base: of a view, the ndarray viewed; else NULL. */
PyObject *ad__py_wrap(ad_array *array, ad__py_session *session, PyObject *base);
/* set_on_memory(function): it is called with each array that owns a buffer, when it is made, by whatever thread; None:
 * no more. */
PyObject *ad__py_set_on_memory(PyObject *module, PyObject *function);
/* The end of most functions: raises for a status, else wraps. */
PyObject *ad__py_result(int status, ad_array *const *array, ad__py_session *session);
PyObject *ad__py_view_result(int status, ad_array *const *view, PyObject *base);
/* An array that was made of others, which is taken over: where model is of a subclass, as an object of that. */
PyObject *ad__py_like(PyObject *made, PyObject *model);
PyObject *ad__py_view_as(PyObject *a, PyTypeObject *type); /* a view of a that is of a subclass, or of none */
/* ndarray._set_shape_and_strides, a name of CuPy's inside. */
PyObject *ad__py_set_layout(PyObject *o, PyObject *args, PyObject *kwargs);
extern PyGetSetDef ad__py_array_attributes[];
extern PyMethodDef ad__py_array_methods[];      /* methods.c */
extern const PyType_Slot ad__py_number_slots[]; /* operators.c; both end with {0, NULL} */
extern const PyType_Slot ad__py_index_slots[];  /* index.c */
int ad__py_flags_init(PyObject *module);        /* flags.c */
PyObject *ad__py_flags(PyObject *a, void *unused);

/* ---- methods.c: shapes and copies ---- */
PyObject *ad__py_reshape(PyObject *a, const ad__py_shape *shape, char order, int copy); /* copy: -1 if needed, 0, 1 */
PyObject *ad__py_astype(PyObject *a, int dtype, char order); /* a new array; order 'C', 'F' or 'K' */
/* Resolve an order for a: 'C', 'F', or 'K' where a lies in neither; -1 with an exception. */
int ad__py_order(PyObject *order, PyObject *a, char otherwise);
int ad__py_order_letter(PyObject *order, char otherwise); /* C, F, A or K; -1 with an exception */
int ad__py_reshaped(const ad_array_info *info, const ad__py_shape *asked, ad__py_shape *shape); /* -1 resolved */
PyObject *ad__py_permuted(PyObject *a, const int *axes);

/* ---- host.c: elements between here and there ---- */
PyObject *ad__py_get(PyObject *a, char order);
PyObject *ad__py_from_host(PyObject *host, int dtype, ad__py_session *s); /* dtype -1: the array's own */
/* Elements into a contiguous array of the same shape, from a NumPy array. 0 or -1. */
int ad__py_write(PyObject *a, PyObject *host);
int ad__py_download(PyObject *a, void *data, size_t size);
PyObject *ad__py_item(PyObject *a); /* of size 1 */
PyObject *ad__py_get_method(PyObject *self, PyObject *const *args, Py_ssize_t npos, PyObject *kwnames);
PyObject *ad__py_set_method(PyObject *self, PyObject *const *args, Py_ssize_t npos, PyObject *kwnames);
extern PyMethodDef ad__py_host_methods[];

/* ---- shared.c, devices.c ---- */
int ad__py_shared_init(PyObject *module);
/* A NumPy array in host, which is taken over (also on failure). */
PyObject *ad__py_host(ad_host *host, int dtype, int ndim, const int64_t *shape);
void ad__py_watch(ad_session *handle); /* show how far large transfers are */
extern PyMethodDef ad__py_shared_methods[], ad__py_device_methods[];
extern PyMethodDef ad__py_sharing_methods[]; /* sharing.c */
int ad__py_export_init(PyObject *module);
extern PyMethodDef ad__py_export_methods[]; /* export.c */
extern PyMethodDef ad__py_lend_methods[];   /* lend.c */
int ad__py_exchange_init(PyObject *module);
extern PyMethodDef ad__py_exchange_methods[]; /* exchange.c */
extern PyMethodDef ad__py_index_methods[];    /* index_parse.c */
extern PyMethodDef ad__py_arrow_methods[];    /* arrow.c */

/* ---- gil.c: the interpreter, on whatever thread; where it ends, or there is no memory for a thread, nothing ---- */
void ad__py_with_gil(void (*f)(void *), void *argument);
bool ad__py_on_main(int (*f)(void *)); /* as soon as the main thread comes to it; false: it will not */
int ad__py_gil_init(PyObject *module);
extern PyMethodDef ad__py_gil_methods[];

/* ---- kernels.c: modules and launches ---- */
int ad__py_kernels_init(PyObject *module);
extern PyMethodDef ad__py_kernel_methods[];

/* ---- index*.c ---- */
PyObject *ad__py_subscript(PyObject *a, PyObject *key);
PyObject *ad__py_at(PyObject *a, Py_ssize_t i);  /* a[i] of the first axis; IndexError past the end */
int ad__py_assign(PyObject *a, PyObject *value); /* a[...] = value */
int ad__py_assign_subscript(PyObject *a, PyObject *key, PyObject *value);

/* ---- ufunc.c, operators.c, matmul.c, reduce.c, client-c/array/call.c, create.c ---- */
int ad__py_ufunc_init(PyObject *module);
/* Resolve an operand of which ad__py_operand said AD_PY_HUGE, beside an array of type dtype; the ufunc may become
 * another. 0, or -1 with an exception. */
int ad__py_settle(PyObject *o, ad_in *in, int dtype, int *id);
int ad__py_matmul_init(PyObject *module);
PyObject *ad__py_matmul(PyObject *x, PyObject *y, PyObject *out);
PyObject *ad__py_complex(PyObject *x, PyObject *unused); /* __complex__ */
extern PyMethodDef ad__py_ufunc_methods[], ad__py_reduce_methods[], ad__py_call_methods[], ad__py_create_methods[];
int ad__py_reduce_init(PyObject *module);
int ad__py_call_init(PyObject *module);
/* A row by name or wire id: its wire id; -1 with an exception. names: a dict of ids. */
int ad__py_row(PyObject *names, PyObject *o, const char *what);
int ad__py_names_add(PyObject *names, const char *name, int id);
/* out=: the n arrays that it gives, alone or in a tuple; NULL where there is none. 0, or -1 with an exception. */
int ad__py_outputs(const char *what, PyObject *o, int n, PyObject **out);
/* where=: *mask is NULL for everywhere, else a handle to release. 0, or -1 with an exception. */
int ad__py_where(PyObject *o, ad__py_session *s, ad_array **mask);

#endif
