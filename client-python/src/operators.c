/* Python's operators: from objects to an encoded operation without making tuples, dicts or anything else on the way. */
#include "core.h"
#include "protocol/rows_ufunc.h"

/* ---- integers beyond 64 bits ---- */

/* Comparing with them has an answer: it is put as a comparison with a number that stands on the same side of every
 * element. *id: the comparison, mirrored where the number that there is lies on the other side. */
static bool compare_huge(ad_value *v, int dtype, int *id) {
    static const struct {
        int id, mirrored;
    } rows[] = {{AD_UFUNC_equal, AD_UFUNC_equal},  {AD_UFUNC_not_equal, AD_UFUNC_not_equal},
                {AD_UFUNC_less, AD_UFUNC_greater}, {AD_UFUNC_less_equal, AD_UFUNC_greater_equal},
                {AD_UFUNC_greater, AD_UFUNC_less}, {AD_UFUNC_greater_equal, AD_UFUNC_less_equal}};
    const bool below = v->as.i < 0, is_unsigned = ad__dtypes[dtype].kind == 'u';
    for (size_t i = 0; i < sizeof rows / sizeof *rows && dtype != AD_BOOL; i++) {
        if (rows[i].id != *id) continue;
        if (below != is_unsigned) *id = rows[i].mirrored;
        if (is_unsigned) *v = (ad_value){-1, AD_VALUE_INT, {.i = -1}};
        else *v = (ad_value){-1, AD_VALUE_UINT, {.u = UINT64_MAX}};
        return true;
    }
    return false;
}

int ad__py_settle(PyObject *o, ad_in *in, int dtype, int *id) {
    const int got = ad__py_huge_float(o, dtype, &in->value);
    if (got) return got < 0 ? -1 : 0;
    return compare_huge(&in->value, dtype, id) ? 0 : ad__py_huge(o, dtype);
}

/* ---- calls ---- */

static PyObject *refuse_operand(int got) {
    if (got < 0) return NULL;
    Py_RETURN_NOTIMPLEMENTED;
}

/* Results are of the subclass that model is of, if any. */
static PyObject *finish_result(int status, PyObject *owner, PyObject *model, ad_array **outs, int nout) {
    ad__py_session *s = ((ad__py_array *)owner)->session;
    if (nout == 1) return ad__py_like(ad__py_result(status, &outs[0], s), model);
    ad__py_ensure();
    if (status) return ad__py_fail(status);
    PyObject *first = ad__py_like(ad__py_wrap(outs[0], s, NULL), model);
    PyObject *second = ad__py_like(ad__py_wrap(outs[1], s, NULL), model);
    PyObject *both = first && second ? PyTuple_Pack(2, first, second) : NULL;
    Py_XDECREF(first);
    Py_XDECREF(second);
    return both;
}

static PyObject *call_binary(PyObject *x, PyObject *y, int id, int nout) {
    ad_in in[2];
    ad_array *outs[AD_MAX_OUT];
    int got = ad__py_operand(x, &in[0]), second;
    if (got <= 0) return refuse_operand(got);
    second = ad__py_operand(y, &in[1]);
    if (second <= 0) return refuse_operand(second);
    if (got == AD_PY_HUGE && ad__py_settle(x, &in[0], ad__py_info(y).dtype, &id) != 0) return NULL;
    if (second == AD_PY_HUGE && ad__py_settle(y, &in[1], ad__py_info(x).dtype, &id) != 0) return NULL;
    PyObject *owner = in[0].array ? x : y;
    PyObject *model = Py_IS_TYPE(owner, ad__py.array) && in[1].array ? y : owner;
    return finish_result(ad_ufunc_call(NULL, id, in, NULL, outs), owner, model, outs, nout);
}

static PyObject *call_unary(PyObject *x, int id) {
    ad_in in = ad_of(ad__py_handle(x));
    ad_array *out;
    return finish_result(ad_ufunc_call(NULL, id, &in, NULL, &out), x, x, &out, 1);
}

static PyObject *in_place(PyObject *x, PyObject *y, int id) {
    ad_options options = AD_OPTIONS_INIT;
    ad_array *outs[AD_MAX_OUT];
    ad_in in[2];
    int got;
    in[0] = ad_of(ad__py_handle(x));
    got = ad__py_operand(y, &in[1]);
    if (got <= 0) return refuse_operand(got);
    if (got == AD_PY_HUGE && ad__py_settle(y, &in[1], ad__py_info(x).dtype, &id) != 0) return NULL;
    options.out[0] = ad__py_handle(x);
    int status = ad_ufunc_call(NULL, id, in, &options, outs);
    ad__py_ensure();
    if (status) return ad__py_fail(status);
    ad_array_release(outs[0]);
    return Py_NewRef(x);
}

#define BINARY(slot, name)                                                                                 \
    static PyObject *nb_##slot(PyObject *x, PyObject *y) { return call_binary(x, y, AD_UFUNC_##name, 1); } \
    static PyObject *nb_inplace_##slot(PyObject *x, PyObject *y) { return in_place(x, y, AD_UFUNC_##name); }
BINARY(add, add)
BINARY(subtract, subtract)
BINARY(multiply, multiply)
BINARY(true_divide, divide)
BINARY(floor_divide, floor_divide)
BINARY(remainder, remainder)
BINARY(lshift, left_shift)
BINARY(rshift, right_shift)
BINARY(and, bitwise_and)
BINARY(or, bitwise_or)
BINARY(xor, bitwise_xor)
#undef BINARY

#define UNARY(slot, name) \
    static PyObject *nb_##slot(PyObject *x) { return call_unary(x, AD_UFUNC_##name); }
UNARY(negative, negative)
UNARY(positive, positive)
UNARY(absolute, absolute)
UNARY(invert, invert)
#undef UNARY

static PyObject *nb_divmod(PyObject *x, PyObject *y) { return call_binary(x, y, AD_UFUNC_divmod, 2); }

/* The function of one input that is this power, as in NumPy's operator; -1: none. */
static int row_of_power(int dtype, double exponent) {
    const bool inexact = (AD_M_FLOAT | AD_M_COMPLEX) & AD_BIT(dtype);
    if (exponent == 2) return AD_UFUNC_square;
    if (dtype == AD_BOOL) return -1;
    if (exponent == 1) return AD_UFUNC_positive;
    if (!inexact) return -1;
    return exponent == 0.5 ? AD_UFUNC_sqrt : exponent == -1 ? AD_UFUNC_reciprocal : -1;
}

static int simple_power(PyObject *x, PyObject *y) {
    if (!ad__py_is_array(x)) return -1;
    const int dtype = ad__py_info(x).dtype;
    if (PyFloat_CheckExact(y) && !((AD_M_BOOL | AD_M_INT) & AD_BIT(dtype)))
        return row_of_power(dtype, PyFloat_AsDouble(y));
    if (!PyLong_CheckExact(y)) return -1;
    int overflow;
    long exponent = PyLong_AsLongAndOverflow(y, &overflow);
    return overflow ? -1 : row_of_power(dtype, (double)exponent);
}

static PyObject *nb_power(PyObject *x, PyObject *y, PyObject *modulus) {
    if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
    const int id = simple_power(x, y);
    return id < 0 ? call_binary(x, y, AD_UFUNC_power, 1) : call_unary(x, id);
}

static PyObject *nb_inplace_power(PyObject *x, PyObject *y, PyObject *modulus) {
    if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
    const int id = simple_power(x, y);
    return in_place(x, y, id < 0 ? AD_UFUNC_power : id);
}

static PyObject *nb_matrix_multiply(PyObject *x, PyObject *y) { return ad__py_matmul(x, y, NULL); }
static PyObject *nb_inplace_matrix_multiply(PyObject *x, PyObject *y) { return ad__py_matmul(x, y, x); }

/* Equality with what is no number has an answer for each element, too: see _array/equality.py. */
static PyObject *compare_object(PyObject *x, PyObject *y, int op) {
    PyObject *module = PyImport_ImportModule("arrayd._array.equality");
    PyObject *compare = module ? PyObject_GetAttrString(module, "compare") : NULL;
    PyObject *result =
        compare ? PyObject_CallFunctionObjArgs(compare, x, y, op == Py_NE ? Py_True : Py_False, NULL) : NULL;
    Py_XDECREF(compare);
    Py_XDECREF(module);
    return result;
}

/* A number of NumPy's that no type of arrays holds: text, a date. */
static bool is_foreign(PyObject *y) {
    return PyObject_TypeCheck(y, ad__py.np_generic) && ad__py_scalar_type(Py_TYPE(y)) < 0;
}

static PyObject *tp_richcompare(PyObject *x, PyObject *y, int op) {
    static const int ids[] = {
        [Py_LT] = AD_UFUNC_less,      [Py_LE] = AD_UFUNC_less_equal, [Py_EQ] = AD_UFUNC_equal,
        [Py_NE] = AD_UFUNC_not_equal, [Py_GT] = AD_UFUNC_greater,    [Py_GE] = AD_UFUNC_greater_equal};
    const bool equality = op == Py_EQ || op == Py_NE;
    if (equality && is_foreign(y)) return compare_object(x, y, op);
    PyObject *result = call_binary(x, y, ids[op], 1);
    if (result != Py_NotImplemented || !equality) return result;
    Py_DECREF(result);
    return compare_object(x, y, op);
}

/* ---- one element as a Python number: waits ---- */

static int nb_bool(PyObject *x) {
    int64_t count = ad__py_info(x).count;
    if (count != 1) {
        PyErr_SetString(PyExc_ValueError,
                        count ? "The truth value of an array with more than one element is ambiguous. Use a.any() or "
                                "a.all()"
                              : "The truth value of an empty array is ambiguous. Use `array.size > 0` to check that an "
                                "array is not empty.");
        return -1;
    }
    PyObject *item = ad__py_item(x);
    int truth = item ? PyObject_IsTrue(item) : -1;
    Py_XDECREF(item);
    return truth;
}

/* Return make(element) of a 0-d array. */
static PyObject *convert_element(PyObject *x, PyObject *(*make)(PyObject *)) {
    if (ad__py_info(x).ndim != 0) {
        PyErr_SetString(PyExc_TypeError, "only 0-dimensional arrays can be converted to Python scalars");
        return NULL;
    }
    PyObject *item = ad__py_item(x), *value = item ? make(item) : NULL;
    Py_XDECREF(item);
    return value;
}

static PyObject *nb_int(PyObject *x) { return convert_element(x, PyNumber_Long); }
static PyObject *nb_float(PyObject *x) { return convert_element(x, PyNumber_Float); }

static PyObject *make_complex(PyObject *item) { return ad__py_call1((PyObject *)&PyComplex_Type, item); }

PyObject *ad__py_complex(PyObject *x, PyObject *unused) {
    (void)unused;
    return convert_element(x, make_complex);
}

static PyObject *nb_index(PyObject *x) {
    ad_array_info info = ad__py_info(x);
    if (info.ndim != 0 || !(AD_M_INT & AD_BIT(info.dtype))) {
        PyErr_SetString(PyExc_TypeError, "only integer scalar arrays can be converted to a scalar index");
        return NULL;
    }
    return ad__py_item(x);
}

#define SLOT(name) \
    { Py_nb_##name, nb_##name }
#define SLOTS(name) SLOT(name), SLOT(inplace_##name)
const PyType_Slot ad__py_number_slots[] = {
    SLOTS(add),
    SLOTS(subtract),
    SLOTS(multiply),
    SLOTS(true_divide),
    SLOTS(floor_divide),
    SLOTS(remainder),
    SLOTS(lshift),
    SLOTS(rshift),
    SLOTS(and),
    SLOTS(or),
    SLOTS(xor),
    SLOTS(power),
    SLOTS(matrix_multiply),
    SLOT(negative),
    SLOT(positive),
    SLOT(absolute),
    SLOT(invert),
    SLOT(divmod),
    SLOT(bool),
    SLOT(int),
    SLOT(float),
    SLOT(index),
    {Py_tp_richcompare, tp_richcompare},
    {0, NULL},
};
