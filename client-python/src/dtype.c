/* numpy.dtype objects for the rows of dtype.def, and back. NumPy is used through its Python interface only. */
#include "core.h"

#define BFLOAT16_MISSING "bfloat16 needs the package ml_dtypes, which is not installed"

static PyObject *dtypes[AD_NDTYPE];      /* numpy.dtype; bfloat16's when first needed */
static PyTypeObject *scalars[AD_NDTYPE]; /* numpy.float32 ... */

static int remember_type(int id, PyObject *type) {
    PyObject *dtype = type ? ad__py_call1((PyObject *)ad__py.np_dtype, type) : NULL;
    if (!dtype) return -1;
    scalars[id] = (PyTypeObject *)Py_NewRef(type);
    dtypes[id] = dtype;
    return 0;
}

int ad__py_dtype_init(void) {
    for (int id = 0; id < AD_NDTYPE; id++) {
        if (id == AD_BFLOAT16) continue;
        PyObject *type = PyObject_GetAttrString(ad__py.numpy, id == AD_BOOL ? "bool_" : ad__dtypes[id].name);
        int status = remember_type(id, type);
        Py_XDECREF(type);
        if (status) return -1;
    }
    return 0;
}

static int load_bfloat16(void) {
    PyObject *module = PyImport_ImportModule("ml_dtypes"), *type;
    if (!module) {
        if (PyErr_ExceptionMatches(PyExc_ImportError)) {
            PyErr_Clear();
            PyErr_SetString(PyExc_TypeError, BFLOAT16_MISSING);
        }
        return -1;
    }
    type = PyObject_GetAttrString(module, "bfloat16");
    int status = remember_type(AD_BFLOAT16, type);
    Py_XDECREF(type);
    Py_DECREF(module);
    return status;
}

PyObject *ad__py_dtype_get(int id) {
    if (!dtypes[id] && load_bfloat16() != 0) return NULL;
    return Py_NewRef(dtypes[id]);
}

/* ---- from NumPy ---- */

/* A string attribute's characters are compared; false where there is no such attribute. */
static bool attribute_is(PyObject *o, const char *name, const char *text) {
    PyObject *value = PyObject_GetAttrString(o, name);
    bool same = value && PyUnicode_Check(value) && PyUnicode_CompareWithASCIIString(value, text) == 0;
    Py_XDECREF(value);
    PyErr_Clear();
    return same;
}

static long attribute_int(PyObject *o, const char *name) {
    PyObject *value = PyObject_GetAttrString(o, name);
    long n = value ? PyLong_AsLong(value) : -1;
    Py_XDECREF(value);
    PyErr_Clear();
    return n;
}

/* int64 has two dtypes in NumPy (long and long long), others a byte order. */
static int known_slowly(PyObject *dtype) {
    const char kind[][2] = {"b", "i", "u", "f", "c"};
    long size = attribute_int(dtype, "itemsize");
    if (attribute_int(dtype, "isnative") != 1) return -1;
    if (attribute_is(dtype, "name", "bfloat16") && attribute_is(dtype, "kind", "V")) /* ml_dtypes before 0.5 */
        return AD_BFLOAT16;
    if (attribute_is(dtype, "name", "bfloat16")) return AD_BFLOAT16;
    for (size_t k = 0; k < sizeof kind / sizeof *kind; k++) {
        if (!attribute_is(dtype, "kind", kind[k])) continue;
        for (int id = 0; id < AD_NDTYPE; id++)
            if (id != AD_BFLOAT16 && ad__dtypes[id].kind == kind[k][0] && ad__dtypes[id].size == size &&
                attribute_int(dtype, "num") < 24)
                return id;
    }
    return -1;
}

int ad__py_dtype_known(PyObject *dtype) {
    for (int id = 0; id < AD_NDTYPE; id++)
        if (dtypes[id] == dtype) return id;
    return known_slowly(dtype);
}

static bool names_bfloat16(PyObject *o) {
    return PyUnicode_Check(o) && PyUnicode_CompareWithASCIIString(o, "bfloat16") == 0;
}

static void refuse_dtype(PyObject *dtype) {
    const bool swapped = attribute_int(dtype, "isnative") != 1;
    PyErr_Format(ad__py.dtype_error, "arrayd has no dtype %R%s", dtype,
                 swapped ? ": elements have the machine's byte-order" : ": numbers and bool only");
}

int ad__py_dtype_id(PyObject *o) {
    PyObject *dtype;
    if (o == (PyObject *)&PyFloat_Type) return AD_FLOAT64;
    for (int id = 0; id < AD_NDTYPE; id++)
        if (o == dtypes[id] || o == (PyObject *)scalars[id]) return id;
    if (names_bfloat16(o)) return dtypes[AD_BFLOAT16] || load_bfloat16() == 0 ? AD_BFLOAT16 : -1;
    dtype = ad__py_call1((PyObject *)ad__py.np_dtype, o);
    if (!dtype) return -1;
    int id = ad__py_dtype_known(dtype);
    if (id == AD_BFLOAT16 && !dtypes[id] && load_bfloat16() != 0) id = -1;
    else if (id < 0) refuse_dtype(dtype);
    Py_DECREF(dtype);
    return id;
}

bool ad__py_refused_structured(PyObject *o) {
    PyObject *type, *value, *trace;
    if (!PyErr_ExceptionMatches(ad__py.dtype_error)) return false;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *dtype = ad__py_call1((PyObject *)ad__py.np_dtype, o);
    PyErr_Clear();
    const bool structured = dtype && attribute_is(dtype, "kind", "V");
    Py_XDECREF(dtype);
    PyErr_Restore(type, value, trace);
    if (structured) PyErr_Clear();
    return structured;
}

PyObject *ad__py_structured(const char *function, PyObject *args) {
    PyObject *module = args ? PyImport_ImportModule("arrayd._array.structured") : NULL;
    PyObject *found = module ? PyObject_GetAttrString(module, function) : NULL;
    PyObject *result = found ? PyObject_CallObject(found, args) : NULL;
    Py_XDECREF(found);
    Py_XDECREF(module);
    Py_XDECREF(args);
    return result;
}

PyObject *ad__py_elements(PyObject *o) {
    PyObject *elements = !o || ad__py_is_array(o) ? Py_XNewRef(o) : PyObject_GetAttrString(o, "_units");
    if (elements && ad__py_is_array(elements)) return elements;
    Py_XDECREF(elements);
    PyErr_SetString(PyExc_TypeError, "an arrayd.ndarray is needed");
    return NULL;
}

int ad__py_scalar_type(PyTypeObject *type) {
    for (int id = 0; id < AD_NDTYPE; id++)
        if (scalars[id] == type) return id;
    PyObject *dtype = ad__py_call1((PyObject *)ad__py.np_dtype, (PyObject *)type);
    int id = dtype ? ad__py_dtype_known(dtype) : -1;
    Py_XDECREF(dtype);
    PyErr_Clear();
    return id;
}

int ad__py_casting(PyObject *o, int otherwise) {
    static const char *const names[] = {"no", "equiv", "safe", "same_kind", "unsafe"};
    if (!o) return otherwise;
    for (int i = 0; PyUnicode_Check(o) && i < 5; i++)
        if (PyUnicode_CompareWithASCIIString(o, names[i]) == 0) return i;
    PyErr_Format(PyExc_ValueError, "casting must be one of 'no', 'equiv', 'safe', 'same_kind', 'unsafe' (got %R)", o);
    return -1;
}

/* ---- functions ---- */

static PyObject *py_as_dtype(PyObject *module, PyObject *o) {
    int id = ad__py_dtype_id(o);
    (void)module;
    return id < 0 ? NULL : ad__py_dtype_get(id);
}

/* Get the type of an argument of result_dtype in promotion; -1 with an exception. */
static int promotion_type(PyObject *o) {
    ad_in in;
    if (!PyType_Check(o) && !PyUnicode_Check(o) && !PyObject_TypeCheck(o, ad__py.np_dtype)) {
        if (ad__py_operand_of("result_dtype", o, &in) != 0) return -1;
        if (in.array) return ad__py_info(o).dtype;
        if (in.value.dtype >= 0) return in.value.dtype;
        switch (in.value.kind) {
        case AD_VALUE_BOOL: return AD_BOOL;
        case AD_VALUE_FLOAT: return AD_WEAK_FLOAT;
        case AD_VALUE_COMPLEX: return AD_WEAK_COMPLEX;
        default: return AD_WEAK_INT;
        }
    }
    return ad__py_dtype_id(o);
}

static PyObject *py_result_dtype(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    uint8_t types[64];
    (void)module;
    if (n < 1 || n > 64) {
        PyErr_SetString(PyExc_ValueError, "result_dtype takes 1 to 64 arguments");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        int type = promotion_type(args[i]);
        if (type < 0) return NULL;
        types[i] = (uint8_t)type;
    }
    return ad__py_dtype_get(ad__promote_all((int)n, types));
}

PyMethodDef ad__py_dtype_methods[] = {
    {"as_dtype", py_as_dtype, METH_O, "The numpy.dtype that an object names; TypeError when arrayd has no such type."},
    {"result_dtype", (PyCFunction)(void (*)(void))py_result_dtype, METH_FASTCALL,
     "Promotion of operands and dtypes, as NEP 50 has it."},
    {NULL, NULL, 0, NULL},
};
