/* Numbers between Python, NumPy and arrayd. */
#include <math.h>

#include "core.h"

/* ---- Python's numbers as operands ---- */

static int weak_int(PyObject *o, ad_value *v) {
    int overflow;
    v->dtype = -1;
    v->kind = AD_VALUE_INT;
    v->as.i = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (!overflow) return v->as.i == -1 && PyErr_Occurred() ? -1 : 1;
    if (overflow > 0) {
        v->as.u = PyLong_AsUnsignedLongLong(o);
        v->kind = AD_VALUE_UINT;
        if (!PyErr_Occurred()) return 1;
        PyErr_Clear();
    }
    v->as.i = overflow;
    return AD_PY_HUGE;
}

static int weak_complex(PyObject *o, ad_value *v) {
    v->dtype = -1;
    v->kind = AD_VALUE_COMPLEX;
    v->as.c[0] = PyComplex_RealAsDouble(o);
    v->as.c[1] = PyComplex_ImagAsDouble(o);
    return PyErr_Occurred() ? -1 : 1;
}

static int weak_float(PyObject *o, ad_value *v) {
    v->dtype = -1;
    v->kind = AD_VALUE_FLOAT;
    v->as.f = PyFloat_AsDouble(o);
    return v->as.f == -1.0 && PyErr_Occurred() ? -1 : 1;
}

/* ---- NumPy's ---- */

static int strong_int(PyObject *o, ad_value *v) {
    PyObject *number = PyNumber_Index(o);
    int status = number ? weak_int(number, v) : -1;
    Py_XDECREF(number);
    return status;
}

static int strong_float(PyObject *o, ad_value *v) {
    PyObject *number = PyNumber_Float(o);
    int status = number ? weak_float(number, v) : -1;
    Py_XDECREF(number);
    return status;
}

static int strong_complex(PyObject *o, ad_value *v) {
    PyObject *number = PyObject_CallMethod(o, "item", NULL);
    int status = number ? weak_complex(number, v) : -1;
    Py_XDECREF(number);
    return status;
}

static int numpy_scalar(PyObject *o, ad_value *v) {
    int status, id = ad__py_scalar_type(Py_TYPE(o));
    if (id < 0) {
        PyErr_Format(PyExc_TypeError, "arrayd has no dtype for a value of type %S", Py_TYPE(o));
        return -1;
    }
    switch (ad__dtypes[id].kind) {
    case 'b':
        v->kind = AD_VALUE_BOOL;
        v->as.i = PyObject_IsTrue(o);
        status = v->as.i < 0 ? -1 : 1;
        break;
    case 'f': status = strong_float(o, v); break;
    case 'c': status = strong_complex(o, v); break;
    default: status = strong_int(o, v);
    }
    v->dtype = id;
    return status;
}

static int numpy_array(void) {
    PyErr_SetString(PyExc_TypeError, "unsupported operand: numpy.ndarray; arrayd does not upload arrays by itself, "
                                     "arrayd.asarray(x) does");
    return -1;
}

/* ---- operands ---- */

static int other_operand(PyObject *o, ad_in *in) {
    if (PyObject_TypeCheck(o, ad__py.array)) {
        in->array = ad__py_handle(o);
        return 1;
    }
    if (PyObject_TypeCheck(o, ad__py.np_generic)) return numpy_scalar(o, &in->value);
    if (PyObject_TypeCheck(o, ad__py.np_ndarray)) return numpy_array();
    if (PyLong_Check(o)) return weak_int(o, &in->value);
    if (PyFloat_Check(o)) return weak_float(o, &in->value);
    return PyComplex_Check(o) ? weak_complex(o, &in->value) : 0;
}

int ad__py_operand(PyObject *o, ad_in *in) {
    PyTypeObject *type = Py_TYPE(o);
    in->array = NULL;
    if (type == ad__py.array) {
        in->array = ad__py_handle(o);
        return 1;
    }
    if (type == &PyFloat_Type) return weak_float(o, &in->value);
    if (type == &PyLong_Type) return weak_int(o, &in->value);
    if (type == &PyBool_Type) {
        in->value = (ad_value){-1, AD_VALUE_BOOL, {.i = o == Py_True}};
        return 1;
    }
    return other_operand(o, in);
}

int ad__py_huge(PyObject *o, int dtype) {
    if (dtype < 0 || ad__dtypes[dtype].size == 8)
        PyErr_SetString(PyExc_OverflowError, "Python int too large to convert to C long");
    else PyErr_Format(PyExc_OverflowError, "Python integer %R out of bounds for %s", o, ad__dtypes[dtype].name);
    return -1;
}

int ad__py_huge_float(PyObject *o, int dtype, ad_value *v) {
    const char kind = ad__dtypes[dtype].kind;
    if (kind != 'f' && kind != 'c') return 0;
    *v = (ad_value){-1, AD_VALUE_FLOAT, {.f = PyLong_AsDouble(o)}};
    return v->as.f == -1.0 && PyErr_Occurred() ? -1 : 1;
}

int ad__py_huge_stored(PyObject *o, int dtype, ad_value *v) {
    const int got = ad__py_huge_float(o, dtype, v);
    if (got) return got;
    if (dtype != AD_BOOL) return ad__py_huge(o, dtype);
    *v = (ad_value){-1, AD_VALUE_BOOL, {.i = 1}};
    return 1;
}

int ad__py_refuse(PyObject *o, const char *what) {
    PyErr_Format(PyExc_TypeError, "%s: unsupported operand of type %S", what, Py_TYPE(o));
    return -1;
}

int ad__py_operand_of(const char *what, PyObject *o, ad_in *in) {
    switch (ad__py_operand(o, in)) {
    case 1: return 0;
    case 0: return ad__py_refuse(o, what);
    case AD_PY_HUGE: return ad__py_huge(o, -1);
    default: return -1;
    }
}

int ad__py_value(const char *what, PyObject *o, ad_value *value) {
    ad_in in;
    if (ad__py_operand_of(what, o, &in) != 0) return -1;
    if (in.array) return ad__py_refuse(o, what);
    *value = in.value;
    return 0;
}

/* ---- storing ---- */

static int out_of_bounds(const ad_value *v, int dtype) {
    if (v->kind == AD_VALUE_UINT)
        PyErr_Format(PyExc_OverflowError, "Python integer %llu out of bounds for %s", (unsigned long long)v->as.u,
                     ad__dtypes[dtype].name);
    else
        PyErr_Format(PyExc_OverflowError, "Python integer %lld out of bounds for %s", (long long)v->as.i,
                     ad__dtypes[dtype].name);
    return -1;
}

static bool int_fits(const ad_value *v, int dtype) {
    const int bits = 8 * ad__dtypes[dtype].size;
    const bool large = v->kind == AD_VALUE_UINT && v->as.u > INT64_MAX;
    if (ad__dtypes[dtype].kind == 'u') return (large || v->as.i >= 0) && (bits == 64 || v->as.u >> bits == 0);
    return !large && (bits == 64 || (v->as.i >> (bits - 1) == 0) || v->as.i >> (bits - 1) == -1);
}

static int float_to_int(double value) {
    if (isnan(value)) PyErr_SetString(PyExc_ValueError, "cannot convert float NaN to integer");
    else if (isinf(value)) PyErr_SetString(PyExc_OverflowError, "cannot convert float infinity to integer");
    return isfinite(value) ? 0 : -1;
}

int ad__py_storable(const ad_value *v, int dtype) {
    const char kind = ad__dtypes[dtype].kind;
    const bool integer = kind == 'i' || kind == 'u';
    if (v->dtype >= 0) return 0;
    if (v->kind == AD_VALUE_COMPLEX && kind != 'c' && kind != 'b') {
        PyErr_Format(PyExc_TypeError, "%s() argument must be a string or a real number, not 'complex'",
                     integer ? "int" : "float");
        return -1;
    }
    if (v->kind == AD_VALUE_FLOAT) return integer ? float_to_int(v->as.f) : 0;
    return v->kind == AD_VALUE_BOOL || !integer || int_fits(v, dtype) ? 0 : out_of_bounds(v, dtype);
}

/* ---- elements as Python's numbers ---- */

static double from_bits(uint16_t bits, int exponent_bits, int fraction_bits) {
    const int bias = (1 << (exponent_bits - 1)) - 1, most = (1 << exponent_bits) - 1;
    const int exponent = bits >> fraction_bits & most, fraction = bits & ((1 << fraction_bits) - 1);
    double value;
    if (exponent == most) value = fraction ? (double)NAN : (double)INFINITY;
    else if (exponent == 0) value = ldexp(fraction, 1 - bias - fraction_bits);
    else value = ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
    return bits >> 15 ? -value : value;
}

PyObject *ad__py_element(int dtype, const void *data) {
    union {
        uint8_t u8;
        int8_t i8;
        int16_t i16;
        uint16_t u16;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
        float f[2];
        double d[2];
    } u = {0};
    memcpy(&u, data, ad__dtypes[dtype].size);
    switch (dtype) {
    case AD_BOOL: return PyBool_FromLong(u.u8);
    case AD_INT8: return PyLong_FromLong(u.i8);
    case AD_INT16: return PyLong_FromLong(u.i16);
    case AD_INT32: return PyLong_FromLong(u.i32);
    case AD_INT64: return PyLong_FromLongLong(u.i64);
    case AD_UINT8: return PyLong_FromLong(u.u8);
    case AD_UINT16: return PyLong_FromLong(u.u16);
    case AD_UINT32: return PyLong_FromUnsignedLong(u.u32);
    case AD_UINT64: return PyLong_FromUnsignedLongLong(u.u64);
    case AD_FLOAT16: return PyFloat_FromDouble(from_bits(u.u16, 5, 10));
    case AD_BFLOAT16: return PyFloat_FromDouble(from_bits(u.u16, 8, 7));
    case AD_FLOAT32: return PyFloat_FromDouble((double)u.f[0]);
    case AD_FLOAT64: return PyFloat_FromDouble(u.d[0]);
    case AD_COMPLEX64: return PyComplex_FromDoubles((double)u.f[0], (double)u.f[1]);
    default: return PyComplex_FromDoubles(u.d[0], u.d[1]);
    }
}

/* ---- shapes ---- */

int ad__py_int64(PyObject *o, int64_t *out) {
    PyObject *number = PyLong_Check(o) ? Py_NewRef(o) : PyNumber_Index(o);
    if (!number) return -1;
    *out = PyLong_AsLongLong(number);
    Py_DECREF(number);
    return *out == -1 && PyErr_Occurred() ? -1 : 0;
}

static int check_ndim(Py_ssize_t n) {
    if (n <= AD_MAX_NDIM) return n < 0 ? -1 : 0;
    PyErr_Format(PyExc_ValueError, "maximum supported dimension for an ndarray is currently %d, found %zd", AD_MAX_NDIM,
                 n);
    return -1;
}

static int add_dimension(ad__py_shape *shape, PyObject *o) {
    if (!o) return -1;
    if (PyBool_Check(o)) {
        PyErr_SetString(PyExc_TypeError, "an integer is required for a dimension, not a bool");
        return -1;
    }
    if (ad__py_int64(o, &shape->dim[shape->ndim++]) == 0) return 0;
    if (PyErr_ExceptionMatches(PyExc_OverflowError))
        PyErr_SetString(PyExc_ValueError, "Maximum allowed dimension exceeded");
    return -1;
}

static int shape_of_sequence(PyObject *o, ad__py_shape *out) {
    Py_ssize_t n = PySequence_Size(o);
    int status = check_ndim(n);
    for (Py_ssize_t i = 0; i < n && !status; i++) {
        PyObject *item = PySequence_GetItem(o, i);
        status = add_dimension(out, item);
        Py_XDECREF(item);
    }
    return status;
}

int ad__py_shape_of(PyObject *o, ad__py_shape *out) {
    out->ndim = 0;
    if (PyLong_Check(o)) return add_dimension(out, o);
    if (PyTuple_Check(o) || PyList_Check(o)) return shape_of_sequence(o, out);
    if (PyIndex_Check(o)) {
        if (!add_dimension(out, o)) return 0;
        if (!PyErr_ExceptionMatches(PyExc_TypeError) || !PySequence_Check(o)) return -1;
        PyErr_Clear(); /* an array of several ints, say */
        out->ndim = 0;
    }
    return shape_of_sequence(o, out);
}

int ad__py_ints(PyObject *const *args, Py_ssize_t n, ad__py_shape *out) {
    out->ndim = 0;
    if (n == 1) return ad__py_shape_of(args[0], out);
    if (check_ndim(n)) return -1;
    for (Py_ssize_t i = 0; i < n; i++)
        if (add_dimension(out, args[i])) return -1;
    return 0;
}

PyObject *ad__py_tuple(int n, const int64_t *values) {
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; tuple && i < n; i++) {
        PyObject *value = PyLong_FromLongLong(values[i]);
        if (!value || PyTuple_SetItem(tuple, i, value) != 0) Py_CLEAR(tuple);
    }
    return tuple;
}

int ad__py_axis(int64_t axis, int ndim, const char *argument) {
    if (axis >= -ndim && axis < ndim) return (int)(axis < 0 ? axis + ndim : axis);
    ad__py_axis_error(axis, ndim, argument);
    return -1;
}

/* ---- arguments ---- */

static int place_keyword(const char *function, const char *const *names, PyObject *name, PyObject *value,
                         PyObject **values) {
    for (int i = 0; names[i]; i++) {
        if (PyUnicode_CompareWithASCIIString(name, names[i]) != 0) continue;
        if (values[i]) {
            PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%s'", function, names[i]);
            return -1;
        }
        values[i] = value;
        return 0;
    }
    PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument %R", function, name);
    return -1;
}

int ad__py_arguments(const char *function, const char *const *names, PyObject *const *args, Py_ssize_t npos,
                     PyObject *kwnames, PyObject **values) {
    Py_ssize_t most = 0, nkw = kwnames ? PyTuple_Size(kwnames) : 0;
    while (names[most]) values[most++] = NULL;
    if (npos > most) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %zd arguments (%zd given)", function, most, npos);
        return -1;
    }
    for (Py_ssize_t i = 0; i < npos; i++) values[i] = args[i];
    for (Py_ssize_t i = 0; i < nkw; i++)
        if (place_keyword(function, names, PyTuple_GetItem(kwnames, i), args[npos + i], values) != 0) return -1;
    return 0;
}

PyObject *ad__py_asarray(PyObject *o) {
    PyObject *module = PyImport_ImportModule("arrayd._array.creation");
    PyObject *array = module ? PyObject_CallMethod(module, "asarray", "O", o) : NULL;
    Py_XDECREF(module);
    if (!array || ad__py_is_array(array)) return array;
    Py_DECREF(array);
    PyErr_SetString(PyExc_TypeError, "an array of structures is no operand: its fields are, as in a['x']");
    return NULL;
}

PyObject *ad__py_adopt(PyObject *o) {
    if (!PyObject_HasAttrString(o, "__cupy_get_ndarray__") && !PyObject_HasAttrString(o, "__cuda_array_interface__"))
        return NULL;
    return ad__py_asarray(o);
}
