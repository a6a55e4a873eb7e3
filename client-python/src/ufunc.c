/* ufunc objects: one for each row of ufunc.def. */
#include <math.h>

#include "core.h"
#include "protocol/rows_ufunc.h"

#define MAX_INPUTS 3

typedef struct ufunc {
    PyObject_HEAD int id;
    const ad_ufunc_row *row;
} ufunc;

/* A method of a ufunc, as reduction.def describes it. */
typedef struct method {
    const char *reduction; /* the row that is its reduce */
    char scan[16];         /* the function of its running values; "-": none */
    int scatter;           /* mode of call scatter; -1: none */
} method;

/* Find the reduction whose method begins with the ufunc's name. */
static bool find_method(PyObject *self, method *out) {
    char name[32];
    for (uint64_t id = 0; id < AD_REDUCTION_LIMIT; id++) {
        const ad_reduction_row *row = ad__reduction(id);
        if (!row || sscanf(row->method, "%31s %15s %d", name, out->scan, &out->scatter) != 3) continue;
        out->reduction = row->name;
        if (!strcmp(name, ((ufunc *)self)->row->name)) return true;
    }
    return false;
}

/* ---- out= and where= ---- */

static int wrong_out(const char *what) {
    PyErr_Format(PyExc_TypeError, "%s: return arrays must be of arrayd.ndarray", what);
    return -1;
}

int ad__py_outputs(const char *what, PyObject *o, int n, PyObject **out) {
    for (int i = 0; i < n; i++) out[i] = NULL;
    if (!o || o == Py_None) return 0;
    if (!PyTuple_Check(o)) {
        if (n > 1) {
            PyErr_Format(PyExc_TypeError, "%s: 'out' must be a tuple of arrays", what);
            return -1;
        }
        out[0] = o;
        return ad__py_is_array(o) ? 0 : wrong_out(what);
    }
    if (PyTuple_Size(o) != n) {
        PyErr_SetString(PyExc_ValueError, "The 'out' tuple must have exactly one entry per ufunc output");
        return -1;
    }
    for (int i = 0; i < n; i++) {
        PyObject *one = PyTuple_GetItem(o, i);
        if (one != Py_None && !ad__py_is_array(one)) return wrong_out(what);
        out[i] = one == Py_None ? NULL : one;
    }
    return 0;
}

int ad__py_where(PyObject *o, ad__py_session *s, ad_array **mask) {
    *mask = NULL;
    if (!o || o == Py_True || o == Py_None) return 0;
    if (ad__py_is_array(o)) {
        *mask = ad_array_retain(ad__py_handle(o));
        return 0;
    }
    if (!PyBool_Check(o) && !(PyObject_TypeCheck(o, ad__py.np_generic) && ad__py_scalar_type(Py_TYPE(o)) == AD_BOOL)) {
        PyErr_Format(PyExc_TypeError, "where must be a bool array of the server or a bool, not %S", Py_TYPE(o));
        return -1;
    }
    int truth = PyObject_IsTrue(o), status;
    if (truth) return truth < 0 ? -1 : 0;
    status = ad_full(s->handle, AD_BOOL, 0, NULL, ad_int(0), mask);
    ad__py_ensure();
    if (status) ad__py_fail(status);
    return status ? -1 : 0;
}

/* ---- calls ---- */

typedef struct call {
    const ufunc *f;
    int id;
    PyObject *input[MAX_INPUTS], *out[AD_MAX_OUT];
    PyObject *out_given, *where, *dtype, *casting;
    PyObject *adopted[MAX_INPUTS]; /* owned: inputs that were made of other objects */
    PyObject *other;               /* the first input that sees to ufuncs itself */
    ad_in in[MAX_INPUTS];
    ad_options options;
} call;

static int read_keyword(call *c, PyObject *name, PyObject *value) {
    static const char *const ignored[] = {"order", "subok", "stream"};
    const struct {
        const char *name;
        PyObject **to;
    } known[] = {{"out", &c->out_given}, {"where", &c->where}, {"dtype", &c->dtype}, {"casting", &c->casting}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (PyUnicode_CompareWithASCIIString(name, known[i].name) == 0) {
            *known[i].to = value;
            return 0;
        }
    }
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        if (PyUnicode_CompareWithASCIIString(name, ignored[i]) == 0) return 0;
    PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument %R", c->f->row->name, name);
    return -1;
}

static int take_arguments(call *c, PyObject *args, PyObject *kwargs) {
    const ad_ufunc_row *row = c->f->row;
    Py_ssize_t n = PyTuple_Size(args), at = 0;
    PyObject *name, *value;
    if (n < row->nin || n > row->nin + row->nout) {
        PyErr_Format(PyExc_TypeError, "%s() takes from %d to %d positional arguments but %zd were given", row->name,
                     row->nin, row->nin + row->nout, n);
        return -1;
    }
    for (int i = 0; i < row->nin; i++) c->input[i] = PyTuple_GetItem(args, i);
    while (kwargs && PyDict_Next(kwargs, &at, &name, &value))
        if (read_keyword(c, name, value) != 0) return -1;
    if (ad__py_outputs(row->name, c->out_given, row->nout, c->out) != 0) return -1;
    for (Py_ssize_t i = row->nin; i < n; i++) {
        PyObject *one = PyTuple_GetItem(args, i);
        if (c->out_given) {
            PyErr_SetString(PyExc_TypeError, "cannot specify 'out' as both a positional and keyword argument");
            return -1;
        }
        if (one != Py_None && !ad__py_is_array(one)) return wrong_out(row->name);
        c->out[i - row->nin] = one == Py_None ? NULL : one;
    }
    return 0;
}

/* The type of the last array input, for integers that no type of 64 bits holds; -1: none. The first one may be a
 * condition. */
static int array_dtype(const call *c) {
    for (int i = c->f->row->nin; i-- > 0;)
        if (ad__py_is_array(c->input[i])) return ad__py_info(c->input[i]).dtype;
    return -1;
}

/* Note an object that sees to ufuncs itself (NEP 13). False: it does not. */
static bool note_override(call *c, PyObject *o) {
    PyObject *protocol = PyObject_GetAttrString((PyObject *)Py_TYPE(o), "__array_ufunc__");
    bool has = protocol && protocol != Py_None;
    PyErr_Clear();
    Py_XDECREF(protocol);
    if (has) c->other = o;
    return has;
}

/* Objects that asarray takes for the array that their method _as_array gives: polynomials and flat iterators. */
static int take_object(call *c, int i) {
    PyObject *made = PyObject_CallMethod(c->input[i], "_as_array", NULL);
    if (!made && !PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
    PyErr_Clear();
    if (!made && note_override(c, c->input[i])) return -1;
    if (!made || !ad__py_is_array(made)) {
        Py_XDECREF(made);
        return ad__py_refuse(c->input[i], c->f->row->name);
    }
    c->input[i] = c->adopted[i] = made;
    return ad__py_operand(made, &c->in[i]) == 1 ? 0 : -1;
}

static int take_inputs(call *c) {
    for (int i = 0; i < c->f->row->nin; i++) {
        int got = ad__py_operand(c->input[i], &c->in[i]), dtype;
        if (got == 0 && (c->adopted[i] = ad__py_adopt(c->input[i]))) {
            c->input[i] = c->adopted[i];
            got = ad__py_operand(c->input[i], &c->in[i]);
        } else if (got == 0 && PyErr_Occurred()) {
            return -1;
        }
        if (got == AD_PY_HUGE) {
            dtype = array_dtype(c);
            got = dtype < 0 ? ad__py_huge(c->input[i], -1) : ad__py_settle(c->input[i], &c->in[i], dtype, &c->id);
            if (got != 0) return -1;
        } else if (got < 0 || (got == 0 && take_object(c, i) != 0)) {
            return -1;
        }
    }
    return 0;
}

/* The loop whose outputs are of a type: -1 where they are of a type of their own, which is this; -2: none. */
static int loop_for(const call *c, int dtype) {
    const ad_rule_row *rule = &ad__rules[c->f->row->rule];
    int loop = rule->out[0] == AD_CODE_T || rule->out[0] == AD_CODE_R ? dtype : -1;
    if (rule->out[0] == AD_CODE_R && array_dtype(c) >= 0 && ad__dtypes[array_dtype(c)].kind == 'c')
        loop = dtype == AD_FLOAT32 ? AD_COMPLEX64 : dtype == AD_FLOAT64 ? AD_COMPLEX128 : dtype;
    for (int k = 0; k < c->f->row->nout; k++)
        if (ad__code_dtype(rule->out[k], loop < 0 ? AD_FLOAT64 : loop) != dtype) return -2;
    return loop;
}

/* Take dtype=, the type of the outputs. */
static int take_dtype(call *c) {
    int dtype, loop;
    if (!c->dtype || c->dtype == Py_None) return 0;
    dtype = ad__py_dtype_id(c->dtype);
    if (dtype < 0) return -1;
    loop = loop_for(c, dtype);
    if (loop > -2) {
        c->options.dtype = loop;
        return 0;
    }
    PyErr_Format(PyExc_TypeError, "No loop matching the specified signature and casting was found for ufunc %s",
                 c->f->row->name);
    return -1;
}

static int take_options(call *c) {
    c->options = (ad_options)AD_OPTIONS_INIT;
    c->options.casting = ad__py_casting(c->casting, AD_CAST_SAME_KIND);
    for (int i = 0; i < c->f->row->nout; i++) c->options.out[i] = c->out[i] ? ad__py_handle(c->out[i]) : NULL;
    return c->options.casting < 0 ? -1 : take_dtype(c);
}

/* Results are of the subclass that the first input of any is of. */
static PyObject *wrap_output(const call *c, ad_array *out, ad__py_session *s) {
    PyObject *made = ad__py_wrap(out, s, NULL);
    for (int i = 0; i < c->f->row->nin; i++)
        if (!Py_IS_TYPE(c->input[i], ad__py.array) && ad__py_is_array(c->input[i]))
            return ad__py_like(made, c->input[i]);
    return made;
}

/* Given outputs are returned as the objects that they are. */
static PyObject *give_outputs(const call *c, ad_array **outs, ad__py_session *s) {
    PyObject *result[AD_MAX_OUT] = {NULL, NULL}, *both;
    for (int i = 0; i < c->f->row->nout; i++) {
        if (c->out[i]) ad_array_release(outs[i]);
        result[i] = c->out[i] ? Py_NewRef(c->out[i]) : wrap_output(c, outs[i], s);
    }
    if (c->f->row->nout == 1) return result[0];
    both = result[0] && result[1] ? PyTuple_Pack(2, result[0], result[1]) : NULL;
    Py_XDECREF(result[0]);
    Py_XDECREF(result[1]);
    return both;
}

static PyObject *run_ufunc(call *c, ad__py_session *s) {
    ad_array *outs[AD_MAX_OUT], *mask;
    bool plain = !c->out[0] && !c->out[1] && !c->where && !c->dtype && !c->casting;
    int status = ad__py_where(c->where, s, &mask);
    if (status) return NULL;
    c->options.where = mask;
    status = ad_ufunc_call(s->handle, c->id, c->in, plain ? NULL : &c->options, outs);
    ad__py_ensure();
    ad_array_release(mask);
    return status ? ad__py_fail(status) : give_outputs(c, outs, s);
}

/* Call other.__array_ufunc__(this ufunc, "__call__", *args, **kwargs). */
static PyObject *call_override(PyObject *other, PyObject *self, PyObject *args, PyObject *kwargs) {
    PyObject *protocol = PyObject_GetAttrString(other, "__array_ufunc__");
    PyObject *head = protocol ? Py_BuildValue("(Os)", self, "__call__") : NULL;
    PyObject *all_args = head ? PySequence_Concat(head, args) : NULL;
    PyObject *result = all_args ? PyObject_Call(protocol, all_args, kwargs) : NULL;
    Py_XDECREF(all_args);
    Py_XDECREF(head);
    Py_XDECREF(protocol);
    return result;
}

static PyObject *ufunc_call(PyObject *self, PyObject *args, PyObject *kwargs) {
    call c = {.f = (const ufunc *)self, .id = ((ufunc *)self)->id};
    ad__py_session *s = NULL;
    PyObject *result = NULL;
    if (take_arguments(&c, args, kwargs) == 0 && take_inputs(&c) == 0 && take_options(&c) == 0 &&
        (s = ad__py_session_of(c.input, c.f->row->nin))) {
        result = run_ufunc(&c, s);
        ad__py_session_leave(s);
    }
    for (int i = 0; i < c.f->row->nin; i++) Py_XDECREF(c.adopted[i]);
    return c.other ? call_override(c.other, self, args, kwargs) : result;
}

/* ---- attributes ---- */

static PyObject *get_name(PyObject *self, void *unused) {
    (void)unused;
    return PyUnicode_FromString(((ufunc *)self)->row->name);
}

static PyObject *get_domain(PyObject *self, void *unused) {
    (void)unused;
    return PyUnicode_FromString(((ufunc *)self)->row->domain);
}

static PyObject *get_test(PyObject *self, void *unused) {
    (void)unused;
    return PyUnicode_FromString(((ufunc *)self)->row->test);
}

/* Tell whether it is a name of arrayd.special rather than of arrayd. */
static PyObject *get_special(PyObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(((ufunc *)self)->row->traits & AD_U_SPECIAL);
}

static PyObject *get_count(PyObject *self, void *which) {
    const ufunc *f = (ufunc *)self;
    const char what = *(const char *)which;
    return PyLong_FromLong(what == 'i'   ? f->row->nin
                           : what == 'o' ? f->row->nout
                           : what == 'a' ? f->row->nin + f->row->nout
                                         : f->id);
}

static PyObject *get_identity(PyObject *self, void *unused) {
    const unsigned traits = ((ufunc *)self)->row->traits;
    const unsigned bits = traits & AD_U_IDENTITY_ONES;
    const long one = bits == AD_U_IDENTITY_ONES ? -1 : bits == AD_U_IDENTITY_ONE;
    (void)unused;
    if (traits & AD_U_IDENTITY_LOWEST) return PyFloat_FromDouble(-(double)INFINITY);
    if (!bits) Py_RETURN_NONE;
    return traits & AD_U_IDENTITY_BOOL ? PyBool_FromLong(one) : PyLong_FromLong(one);
}

static PyObject *get_reduction(PyObject *self, void *unused) {
    method m;
    (void)unused;
    if (!find_method(self, &m)) Py_RETURN_NONE;
    return PyUnicode_FromString(m.reduction);
}

static PyObject *get_scan(PyObject *self, void *unused) {
    method m;
    (void)unused;
    if (!find_method(self, &m) || !strcmp(m.scan, "-")) Py_RETURN_NONE;
    return PyUnicode_FromString(m.scan);
}

static PyObject *get_scatter(PyObject *self, void *unused) {
    method m;
    (void)unused;
    if (!find_method(self, &m) || m.scatter < 0) Py_RETURN_NONE;
    return PyLong_FromLong(m.scatter);
}

/* NumPy's letters: int64 is 'l' there. */
static char get_letter(int code, int loop) {
    int dtype = ad__code_dtype(code, loop);
    return dtype == AD_INT64 ? 'l' : dtype == AD_UINT64 ? 'L' : ad__dtypes[dtype].letter;
}

/* The dtypes in NumPy's order, each signed type before the unsigned one of its size. */
static const int type_order[] = {AD_BOOL,    AD_INT8,    AD_UINT8,     AD_INT16,      AD_UINT16,
                                 AD_INT32,   AD_UINT32,  AD_INT64,     AD_UINT64,     AD_FLOAT16,
                                 AD_FLOAT32, AD_FLOAT64, AD_COMPLEX64, AD_COMPLEX128, AD_BFLOAT16};
_Static_assert(sizeof type_order / sizeof *type_order == AD_NDTYPE, "each dtype is there once");

/* "dd->d" for each loop. */
static PyObject *get_types(PyObject *self, void *unused) {
    const ad_ufunc_row *row = ((ufunc *)self)->row;
    const ad_rule_row *rule = &ad__rules[row->rule];
    PyObject *list = PyList_New(0);
    (void)unused;
    for (int i = 0; list && i < AD_NDTYPE; i++) {
        const int loop = type_order[i];
        char text[16];
        int n = 0;
        if (!(rule->loops & AD_BIT(loop))) continue;
        for (int k = 0; k < row->nin; k++) text[n++] = get_letter(rule->in[k], loop);
        text[n++] = '-';
        text[n++] = '>';
        for (int k = 0; k < row->nout; k++) text[n++] = get_letter(rule->out[k], loop);
        PyObject *one = PyUnicode_FromStringAndSize(text, n);
        if (!one || PyList_Append(list, one) != 0) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

static PyObject *get_ntypes(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(__builtin_popcount(ad__rules[((ufunc *)self)->row->rule].loops));
}

static PyObject *get_doc(PyObject *self, void *unused) {
    const ad_ufunc_row *row = ((ufunc *)self)->row;
    static const char *const inputs[] = {"x", "x, y", "x, y, z"}, *const outputs[] = {"out=None", "out=(None, None)"};
    const char *oracle = strchr(row->test, ' '); /* of a row that NumPy lacks */
    (void)unused;
    return PyUnicode_FromFormat(
        "%s(%s, /, %s, *, where=True, casting='same_kind', order='K', dtype=None)\n\n%s\n\n"
        "Parameters: %s: arrays or numbers; they are broadcast to one shape. out: array%s to write instead of making "
        "%s. where: bool array; elements where it is False are left as they are in out. casting: which casts are "
        "allowed. order: ignored. dtype: type of the result.\n"
        "Returns: %s.\n"
        "Raises: ValueError when shapes do not fit, TypeError for types; what fails on the server, when the result is "
        "read.\n"
        "Source: %s%s",
        row->name, inputs[row->nin - 1], outputs[row->nout - 1], row->doc, inputs[row->nin - 1],
        row->nout > 1 ? "s" : "", row->nout > 1 ? "new ones" : "a new one",
        row->nout > 1 ? "tuple of 2 ndarrays" : "ndarray", oracle ? "of arrayd; with NumPy it is" : "numpy.",
        oracle ? oracle : row->name);
}

static PyObject *format_ufunc(PyObject *self) {
    return PyUnicode_FromFormat("<ufunc '%s'>", ((ufunc *)self)->row->name);
}

static PyObject *all; /* the dict of the module */

static PyObject *py_ufunc_of(PyObject *module, PyObject *name) {
    PyObject *f = PyDict_GetItemWithError(all, name);
    (void)module;
    if (!f && !PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "arrayd has no ufunc %R", name);
    return Py_XNewRef(f);
}

/* Pickled by name. */
static PyObject *reduce_pickle(PyObject *self, PyObject *unused) {
    PyObject *module = PyImport_ImportModule("arrayd._core");
    PyObject *by_name = module ? PyObject_GetAttrString(module, "ufunc_of") : NULL;
    PyObject *result = by_name ? Py_BuildValue("O(s)", by_name, ((ufunc *)self)->row->name) : NULL;
    (void)unused;
    Py_XDECREF(module);
    Py_XDECREF(by_name);
    return result;
}

PyMethodDef ad__py_ufunc_methods[] = {
    {"ufunc_of", py_ufunc_of, METH_O, "ufunc_of(name): the ufunc of that name."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"__name__", get_name, NULL, NULL, NULL},
    {"__qualname__", get_name, NULL, NULL, NULL},
    {"__doc__", get_doc, NULL, NULL, NULL},
    {"nin", get_count, NULL, "Number of inputs.", "i"},
    {"nout", get_count, NULL, "Number of outputs.", "o"},
    {"nargs", get_count, NULL, "Number of inputs and outputs.", "a"},
    {"id", get_count, NULL, "Wire id of the row.", "n"},
    {"ntypes", get_ntypes, NULL, "Number of loops.", NULL},
    {"types", get_types, NULL, "The loops: \"dd->d\" ...", NULL},
    {"identity", get_identity, NULL, "What leaves the other operand as it is, or None.", NULL},
    {"special", get_special, NULL, "Whether it is a name of arrayd.special rather than of arrayd.", NULL},
    {"domain", get_domain, NULL, "What tests draw operands from.", NULL},
    {"test", get_test, NULL, "Units in the last place that tests allow, and NumPy's expression for it.", NULL},
    {"reduction", get_reduction, NULL, "The reduction made of it, or None.", NULL},
    {"scan", get_scan, NULL, "The call that accumulates with it, or None.", NULL},
    {"scatter", get_scatter, NULL, "The mode of call scatter that applies it, or None.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static void free_ufunc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* ---- the type and its instances ---- */

static PyObject *make_ufunc(int id, const ad_ufunc_row *row) {
    ufunc *f = PyObject_Malloc(sizeof *f);
    if (!f) return PyErr_NoMemory();
    PyObject_Init((PyObject *)f, ad__py.ufunc);
    f->id = id;
    f->row = row;
    return (PyObject *)f;
}

static int fill_tables(void) {
    for (int id = 0; id < AD_UFUNC_LIMIT; id++) {
        const ad_ufunc_row *row = ad__ufunc((uint64_t)id);
        PyObject *f = row ? make_ufunc(id, row) : NULL;
        int status = !row ? 0 : f ? PyDict_SetItemString(all, row->name, f) : -1;
        Py_XDECREF(f);
        if (status) return -1;
    }
    return 0;
}

int ad__py_ufunc_init(PyObject *module) {
    static PyMethodDef methods[] = {{"__reduce__", reduce_pickle, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
    PyType_Slot slots[] = {{Py_tp_call, ufunc_call}, {Py_tp_repr, format_ufunc},  {Py_tp_getset, attributes},
                           {Py_tp_methods, methods}, {Py_tp_dealloc, free_ufunc}, {0, NULL}};
    PyType_Spec spec = {"arrayd.ufunc", sizeof(ufunc), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                        slots};
    all = PyDict_New();
    ad__py.ufunc = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    int status = all && ad__py.ufunc ? fill_tables() : -1;
    if (!status) status = PyModule_AddObjectRef(module, "ufunc", (PyObject *)ad__py.ufunc);
    if (!status) status = PyModule_AddObjectRef(module, "ufuncs", all);
    return status;
}
