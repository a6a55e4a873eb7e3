/* Statuses as Python exceptions: the column of error.def says which. */
#include "core.h"

#define NERROR 64

static PyObject *base;            /* ArraydError */
static PyObject *classes[NERROR]; /* by positive code */

static const struct {
    int code;
    const char *exception, *text;
} rows[] = {
#define AD_ERROR(code, NAME, exception, text) {code, #exception, text},
#include "protocol/error.def"
#undef AD_ERROR
};

/* LinAlgError is NumPy's as well, and DeviceError a RuntimeError, as CuPy's errors of CUDA are. */
static PyObject *bases_of(const char *exception) {
    if (strcmp(exception, "DeviceError") == 0) return PyTuple_Pack(2, base, PyExc_RuntimeError);
    if (strcmp(exception, "LinAlgError") != 0) return Py_NewRef(base);
    PyObject *linalg = PyImport_ImportModule("numpy.linalg"), *theirs = NULL, *both = NULL;
    if (linalg) theirs = PyObject_GetAttrString(linalg, exception);
    if (theirs) both = PyTuple_Pack(2, base, theirs);
    Py_XDECREF(linalg);
    Py_XDECREF(theirs);
    return both;
}

static PyObject *make_class(PyObject *module, const char *exception, const char *text) {
    char name[80];
    PyObject *bases = bases_of(exception), *cls = NULL;
    snprintf(name, sizeof name, "arrayd.%s", exception);
    if (bases) cls = PyErr_NewExceptionWithDoc(name, text, bases, NULL);
    Py_XDECREF(bases);
    if (cls && PyModule_AddObjectRef(module, exception, cls)) Py_CLEAR(cls);
    return cls;
}

/* A builtin class, one that an earlier row made, or a new one. */
static PyObject *find_class(PyObject *module, PyObject *builtins, const char *exception, const char *text) {
    PyObject *cls = PyObject_GetAttrString(builtins, exception);
    if (!cls) {
        PyErr_Clear();
        cls = PyObject_GetAttrString(module, exception);
    }
    if (!cls) {
        PyErr_Clear();
        cls = make_class(module, exception, text);
    }
    return cls;
}

static int add_dtype_error(PyObject *module) {
    PyObject *bases = PyTuple_Pack(2, PyExc_TypeError, PyExc_ValueError);
    ad__py.dtype_error = bases ? PyErr_NewExceptionWithDoc("arrayd.DTypeError",
                                                           "A dtype of NumPy's that arrays cannot have.", bases, NULL)
                               : NULL;
    Py_XDECREF(bases);
    return ad__py.dtype_error ? PyModule_AddObjectRef(module, "DTypeError", ad__py.dtype_error) : -1;
}

int ad__py_errors_init(PyObject *module) {
    PyObject *builtins = PyImport_ImportModule("builtins");
    base = PyErr_NewExceptionWithDoc("arrayd.ArraydError", "What goes wrong in arrayd and has no builtin exception.",
                                     NULL, NULL);
    int status = builtins && base ? PyModule_AddObjectRef(module, "ArraydError", base) : -1;
    if (!status) status = add_dtype_error(module);
    for (size_t i = 0; i < sizeof rows / sizeof *rows && !status; i++) {
        classes[rows[i].code] = find_class(module, builtins, rows[i].exception, rows[i].text);
        if (!classes[rows[i].code]) status = -1;
    }
    Py_XDECREF(builtins);
    return status;
}

/* A lost device may be a kernel's doing: the message says where that was launched, if it was by this package. Takes
 * text. */
static PyObject *add_launches(PyObject *text) {
    PyObject *name = PyUnicode_FromString("arrayd._kernel.sites"), *sites = name ? PyImport_GetModule(name) : NULL;
    PyObject *told = sites ? PyObject_CallMethod(sites, "told", "O", text) : NULL;
    PyErr_Clear();
    Py_XDECREF(sites);
    Py_XDECREF(name);
    if (!told) return text;
    Py_DECREF(text);
    return told;
}

/* Tell, where others have been issued since, how long ago an operation was issued, and how its place can be known. */
static PyObject *age_text(uint64_t number) {
    uint64_t serial, latest;
    if (!ad__py_session_issued(&serial, &latest) || latest <= number) return NULL;
    return PyUnicode_FromFormat("; issued %llu operation%s earlier (ARRAYD_SITES=1 tells where)",
                                (unsigned long long)(latest - number), latest - number == 1 ? "" : "s");
}

/* The message with the operation that it is about. */
static PyObject *operation_text(const char *name, uint64_t number) {
    PyObject *text = PyUnicode_FromFormat("%s%soperation %llu%s: %s", name, *name ? " (" : "",
                                          (unsigned long long)number, *name ? ")" : "", ad_error_message());
    PyObject *place = !text ? NULL : ad__py_watching ? ad__py_place(number) : age_text(number);
    PyObject *whole = place ? PyUnicode_Concat(text, place) : Py_XNewRef(text);
    Py_XDECREF(place);
    Py_XDECREF(text);
    return whole;
}

PyObject *ad__py_fail(int code) {
    const char *name = "";
    uint64_t number = ad_error_operation(&name);
    PyObject *cls = code < 0 && code > -NERROR && classes[-code] ? classes[-code] : PyExc_RuntimeError;
    if (PyErr_Occurred()) /* a signal's handler raised it while we waited */
        return NULL;
    PyObject *text = number ? operation_text(name, number) : PyUnicode_FromString(ad_error_message());
    if (text && code == AD_E_DEVICE_LOST) text = add_launches(text);
    if (text) PyErr_SetObject(cls, text);
    Py_XDECREF(text);
    return NULL;
}

PyObject *ad__py_fail_text(int status, const char *text) {
    PyObject *message = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    if (message) PyErr_SetObject(classes[-status] ? classes[-status] : PyExc_RuntimeError, message);
    Py_XDECREF(message);
    return NULL;
}

PyObject *ad__py_axis_error(int64_t axis, int ndim, const char *argument) {
    PyObject *error = PyObject_CallFunction(ad__py.np_axis_error, "Lis", (long long)axis, ndim, argument);
    if (error) PyErr_SetObject(ad__py.np_axis_error, error);
    Py_XDECREF(error);
    return NULL;
}
