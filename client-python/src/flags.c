/* ndarray.flags: facts about an array's layout, and whether it may be written, which can be ended. */
#include "core.h"

enum { C_CONTIGUOUS = 1, F_CONTIGUOUS = 2, OWNDATA = 4, WRITEABLE = 8, ALIGNED = 16 };

typedef struct flags_object {
    PyObject_HEAD int bits;
    PyObject *array;
} flags_object;

/* Rows of flags. all: bits that must be set; any: of which one must be; none: that must not be. */
static const struct flag_row {
    const char *key, *attribute;
    int all, any, none;
} rows[] = {
    {"C_CONTIGUOUS", "c_contiguous", C_CONTIGUOUS, 0, 0},
    {"F_CONTIGUOUS", "f_contiguous", F_CONTIGUOUS, 0, 0},
    {"OWNDATA", "owndata", OWNDATA, 0, 0},
    {"WRITEABLE", "writeable", WRITEABLE, 0, 0},
    {"ALIGNED", "aligned", ALIGNED, 0, 0},
    {"CONTIGUOUS", "contiguous", C_CONTIGUOUS, 0, 0},
    {"FORTRAN", "fortran", F_CONTIGUOUS, 0, 0},
    {"FNC", "fnc", F_CONTIGUOUS, 0, C_CONTIGUOUS},
    {"FORC", "forc", 0, C_CONTIGUOUS | F_CONTIGUOUS, 0},
    {"C", "carray", C_CONTIGUOUS | WRITEABLE | ALIGNED, 0, 0},
    {"F", "farray", F_CONTIGUOUS | WRITEABLE | ALIGNED, 0, C_CONTIGUOUS},
};
#define NSHOWN 5

static bool has_flag(int bits, const struct flag_row *row) {
    return (bits & row->all) == row->all && (!row->any || bits & row->any) && !(bits & row->none);
}

static PyObject *get_flag(PyObject *self, void *row) {
    return PyBool_FromLong(has_flag(((flags_object *)self)->bits, row));
}

/* flags.writeable = False: the array, and views that are made of it from now on, cannot be written any more. */
static int set_writeable(PyObject *self, PyObject *value, void *row) {
    flags_object *flags = (flags_object *)self;
    const int wanted = value ? PyObject_IsTrue(value) : -1;
    if (!value) PyErr_SetString(PyExc_AttributeError, "flags cannot be deleted");
    if (wanted < 0) return -1;
    if (wanted && !has_flag(flags->bits, row)) {
        PyErr_SetString(PyExc_ValueError,
                        "cannot set WRITEABLE flag to True of this array: what is read-only stays so; take a copy");
        return -1;
    }
    if (wanted) return 0;
    ad_freeze(ad__py_handle(flags->array));
    flags->bits &= ~WRITEABLE;
    return 0;
}

static PyObject *find_flag(PyObject *self, PyObject *key) {
    for (size_t i = 0; PyUnicode_Check(key) && i < sizeof rows / sizeof *rows; i++)
        if (PyUnicode_CompareWithASCIIString(key, rows[i].key) == 0) return get_flag(self, (void *)(uintptr_t)&rows[i]);
    PyErr_SetString(PyExc_KeyError, "Unknown flag");
    return NULL;
}

static PyObject *format_flags(PyObject *self) {
    char text[200];
    int at = 0;
    for (int i = 0; i < NSHOWN; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s  %s : %s", i ? "\n" : "", rows[i].key,
                       has_flag(((flags_object *)self)->bits, &rows[i]) ? "True" : "False");
    return PyUnicode_FromString(text);
}

static PyObject *compare_flags(PyObject *self, PyObject *other, int op) {
    if (!Py_IS_TYPE(other, ad__py.flags) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong((((flags_object *)self)->bits == ((flags_object *)other)->bits) == (op == Py_EQ));
}

static void free_flags(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    Py_DECREF(((flags_object *)self)->array);
    PyObject_Free(self);
    Py_DECREF(type);
}

int ad__py_flags_init(PyObject *module) {
    static PyGetSetDef attributes[sizeof rows / sizeof *rows + 1];
    static PyType_Slot slots[] = {{Py_tp_getset, attributes},
                                  {Py_mp_subscript, find_flag},
                                  {Py_tp_repr, format_flags},
                                  {Py_tp_dealloc, free_flags},
                                  {Py_tp_richcompare, compare_flags},
                                  {Py_tp_hash, PyObject_HashNotImplemented},
                                  {0, NULL}};
    PyType_Spec spec = {"arrayd.flagsobj", sizeof(flags_object), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        attributes[i] = (PyGetSetDef){rows[i].attribute, get_flag, rows[i].all == WRITEABLE ? set_writeable : NULL,
                                      NULL, (void *)(uintptr_t)&rows[i]};
    ad__py.flags = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return ad__py.flags ? 0 : -1;
}

static bool repeats_elements(const ad_array_info *info) {
    for (int i = 0; i < info->ndim; i++)
        if (info->shape[i] > 1 && info->strides[i] == 0) return info->count > 0;
    return false;
}

PyObject *ad__py_flags(PyObject *a, void *unused) {
    ad_array_info info = ad__py_info(a);
    flags_object *flags = PyObject_Malloc(sizeof *flags);
    (void)unused;
    if (!flags) return PyErr_NoMemory();
    PyObject_Init((PyObject *)flags, ad__py.flags);
    flags->array = Py_NewRef(a);
    flags->bits = ALIGNED | (info.contiguous ? C_CONTIGUOUS : 0) | (info.f_contiguous ? F_CONTIGUOUS : 0) |
                  (((ad__py_array *)a)->base ? 0 : OWNDATA) |
                  (repeats_elements(&info) || !info.writable ? 0 : WRITEABLE);
    return (PyObject *)flags;
}
