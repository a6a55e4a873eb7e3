/* Reductions and the rows of call.def by name. */
#include "core.h"
#include "protocol/rows_call.h"

static PyObject *reductions, *calls; /* name: wire id */

int ad__py_names_add(PyObject *names, const char *name, int id) {
    PyObject *number = PyLong_FromLong(id);
    int status = number ? PyDict_SetItemString(names, name, number) : -1;
    Py_XDECREF(number);
    return status;
}

int ad__py_row(PyObject *names, PyObject *o, const char *what) {
    PyObject *id = PyLong_Check(o) ? o : PyDict_GetItemWithError(names, o);
    if (!id && !PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "arrayd has no %s %R", what, o);
    return id ? (int)PyLong_AsLong(id) : -1;
}

/* ---- reductions ---- */

static int set_axes(PyObject *axis, int ndim, ad_options *options) {
    ad__py_shape given;
    options->all = !axis || axis == Py_None;
    if (options->all) return 0;
    if (ad__py_shape_of(axis, &given) != 0) return -1;
    if (ndim == 0 && PyLong_Check(axis) && (given.dim[0] == 0 || given.dim[0] == -1)) {
        options->all = true;
        return 0;
    }
    for (int k = 0; k < given.ndim; k++) {
        int i = ad__py_axis(given.dim[k], ndim, NULL);
        if (i < 0) return -1;
        if (options->axes >> i & 1) {
            PyErr_SetString(PyExc_ValueError, "duplicate value in 'axis'");
            return -1;
        }
        options->axes |= (uint32_t)1 << i;
    }
    return 0;
}

enum { ROW, A, AXIS, DTYPE, OUT, KEEPDIMS, INITIAL, WHERE, DDOF, NREDUCE };

static bool is_given(PyObject *o) { return o && o != Py_None; }

static int set_options(PyObject **v, ad_options *options, ad_value *initial, PyObject **out) {
    int truth = is_given(v[KEEPDIMS]) ? PyObject_IsTrue(v[KEEPDIMS]) : 0;
    if (truth < 0 || set_axes(v[AXIS], ad__py_info(v[A]).ndim, options)) return -1;
    options->keepdims = truth;
    options->casting = AD_CAST_UNSAFE; /* to out=, as NumPy's reductions */
    if (is_given(v[DTYPE]) && (options->dtype = ad__py_dtype_id(v[DTYPE])) < 0) return -1;
    if (is_given(v[INITIAL])) {
        if (ad__py_value("initial", v[INITIAL], initial) != 0) return -1;
        options->initial = initial;
    }
    if (is_given(v[DDOF])) {
        options->ddof = PyFloat_AsDouble(v[DDOF]);
        if (options->ddof == -1.0 && PyErr_Occurred()) return -1;
    }
    if (ad__py_outputs("reduce", v[OUT], 1, out) != 0) return -1;
    options->out[0] = *out ? ad__py_handle(*out) : NULL;
    return 0;
}

/* Give the result the type of dtype=, also where the loop is a wider one: sums of int16 are made in int64. */
static PyObject *as_asked(int row, const ad_options *options, PyObject *result) {
    int code = ad__rules[ad__reduction((uint64_t)row)->rule].out[0];
    if (!result || options->dtype < 0 || (code != AD_CODE_T && code != AD_CODE_R)) return result;
    if (options->dtype != ad__py_info(result).dtype)
        ad__py_replace(&result, ad__py_astype(result, options->dtype, 'C'));
    return result;
}

static PyObject *py_reduce(PyObject *module, PyObject *const *args, Py_ssize_t npos, PyObject *kwnames) {
    static const char *const names[] = {"name",     "a",       "axis",  "dtype", "out",
                                        "keepdims", "initial", "where", "ddof",  NULL};
    ad_options options = AD_OPTIONS_INIT;
    PyObject *v[NREDUCE], *out;
    ad_array *mask, *result;
    ad_value initial;
    int row;
    (void)module;
    if (ad__py_arguments("reduce", names, args, npos, kwnames, v) != 0) return NULL;
    if (!v[ROW] || !v[A] || !ad__py_is_array(v[A])) {
        PyErr_SetString(PyExc_TypeError, "reduce() takes the name of a reduction and an arrayd.ndarray");
        return NULL;
    }
    ad__py_session *s = ((ad__py_array *)v[A])->session;
    if ((row = ad__py_row(reductions, v[ROW], "reduction")) < 0 || set_options(v, &options, &initial, &out) != 0 ||
        ad__py_where(v[WHERE], s, &mask))
        return NULL;
    options.where = mask;
    int status = ad_reduce_call(row, ad_of(ad__py_handle(v[A])), &options, &result);
    ad__py_ensure();
    ad_array_release(mask);
    if (status || !out) return as_asked(row, &options, ad__py_result(status, &result, s));
    ad_array_release(result);
    return Py_NewRef(out);
}

PyMethodDef ad__py_reduce_methods[] = {
    {"reduce", (PyCFunction)(void (*)(void))py_reduce, METH_FASTCALL | METH_KEYWORDS,
     "reduce(name, a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None, ddof=0): a row of "
     "reduction.def."},
    {NULL, NULL, 0, NULL},
};

int ad__py_reduce_init(PyObject *module) {
    reductions = PyDict_New();
    for (int id = 0; reductions && id < AD_REDUCTION_LIMIT; id++) {
        const ad_reduction_row *row = ad__reduction((uint64_t)id);
        if (row && ad__py_names_add(reductions, row->name, id) != 0) return -1;
    }
    return reductions ? PyModule_AddObjectRef(module, "reductions", reductions) : -1;
}

/* ---- calls ---- */

typedef struct library_call {
    int id, nin, nparam, dtype;
    const ad_call_row *row;
    PyObject *input[AD_MAX_IN], *out[AD_MAX_OUT];
    ad_in in[AD_MAX_IN];
    ad_value param[AD_MAX_PARAM];
    ad_array *given[AD_MAX_OUT];
    bool shaped; /* the output is to be made, with this shape */
    ad__py_shape shape;
} library_call;

static int take_inputs(library_call *c, PyObject *inputs) {
    Py_ssize_t n = PySequence_Size(inputs);
    if (n < 0 || n > AD_MAX_IN) {
        if (n > 0) PyErr_Format(PyExc_ValueError, "%s: too many inputs", c->row->name);
        return -1;
    }
    for (; c->nin < n; c->nin++) {
        PyObject *o = c->input[c->nin] = PySequence_GetItem(inputs, c->nin);
        if (!o) return -1;
        if (ad__py_operand_of(c->row->name, o, &c->in[c->nin]) != 0) {
            c->nin++;
            return -1;
        }
    }
    return 0;
}

static int take_param(library_call *c, char letter, PyObject *o) {
    ad_value *v = &c->param[c->nparam++];
    if (letter == 'b') {
        *v = (ad_value){-1, AD_VALUE_BOOL, {.i = PyObject_IsTrue(o)}};
        return v->as.i < 0 ? -1 : 0;
    }
    if (letter == 'i') {
        *v = (ad_value){-1, AD_VALUE_INT, {.i = 0}};
        return ad__py_int64(o, &v->as.i);
    }
    return ad__py_value(c->row->name, o, v);
}

static int take_params(library_call *c, PyObject *params) {
    Py_ssize_t n = params ? PySequence_Size(params) : 0;
    if (n != (Py_ssize_t)strlen(c->row->params) || n > AD_MAX_PARAM) {
        if (n >= 0) PyErr_Format(PyExc_ValueError, "%s takes %zu parameters", c->row->name, strlen(c->row->params));
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *o = PySequence_GetItem(params, i);
        int status = o ? take_param(c, c->row->params[i], o) : -1;
        Py_XDECREF(o);
        if (status) return -1;
    }
    return 0;
}

static PyObject *wrap_outputs(const library_call *c, ad_array **outs, ad__py_session *s) {
    PyObject *all = c->row->nout > 1 ? PyTuple_New(c->row->nout) : NULL;
    bool complete = true;
    for (int k = 0; k < c->row->nout; k++) {
        if (c->out[k]) ad_array_release(outs[k]);
        PyObject *one = c->out[k] ? Py_NewRef(c->out[k]) : ad__py_wrap(outs[k], s, NULL);
        if (c->row->nout == 1) return one;
        complete = all && one && PyTuple_SetItem(all, k, one) == 0 && complete;
        if (!all) Py_XDECREF(one);
    }
    if (!complete) Py_CLEAR(all);
    return all;
}

/* The loop unless it is asked for: the first array's type, which is what -1 says, or the output's where that says more.
 */
static int default_dtype(const library_call *c) {
    const bool of_output = c->row->kind == AD_CALL_UPDATE || c->id == AD_CALL_iota || c->id == AD_CALL_bincount;
    return of_output && c->out[0] ? ad__py_info(c->out[0]).dtype : -1;
}

static PyObject *run_library_call(library_call *c, ad__py_session *s) {
    ad_array *outs[AD_MAX_OUT] = {NULL};
    int64_t values[AD_MAX_PARAM];
    bool any = false;
    for (int k = 0; k < c->row->nout; k++) {
        c->given[k] = c->out[k] ? ad__py_handle(c->out[k]) : NULL;
        any = any || c->given[k];
    }
    if (c->dtype < 0) c->dtype = default_dtype(c);
    if (c->row->kind == AD_CALL_ASK) ad__py_release();
    int status = c->shaped ? ad_call_shaped(s->handle, c->id, c->dtype, c->nin, c->in, c->nparam, c->param,
                                            c->shape.ndim, c->shape.dim, outs)
                           : ad_call_call(s->handle, c->id, c->dtype, c->nin, c->in, c->nparam, c->param,
                                          any ? c->given : NULL, outs, values);
    ad__py_ensure();
    return status ? ad__py_fail(status) : wrap_outputs(c, outs, s);
}

enum { CALL_ROW, CALL_INPUTS, CALL_PARAMS, CALL_OUT, CALL_DTYPE, CALL_SHAPE, NCALL };

static PyObject *py_call(PyObject *module, PyObject *const *args, Py_ssize_t npos, PyObject *kwnames) {
    static const char *const names[] = {"name", "inputs", "params", "out", "dtype", "shape", NULL};
    library_call c = {.dtype = -1};
    PyObject *v[NCALL], *result = NULL;
    (void)module;
    if (ad__py_arguments("call", names, args, npos, kwnames, v) != 0) return NULL;
    if (!v[CALL_ROW] || !v[CALL_INPUTS]) {
        PyErr_SetString(PyExc_TypeError, "call() takes the name of a call and its inputs");
        return NULL;
    }
    c.id = ad__py_row(calls, v[CALL_ROW], "call");
    c.row = c.id < 0 ? NULL : ad__call((uint64_t)c.id);
    if (!c.row) {
        if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "arrayd has no call %R", v[CALL_ROW]);
        return NULL;
    }
    c.shaped = is_given(v[CALL_SHAPE]);
    if (c.shaped && is_given(v[CALL_OUT])) {
        PyErr_SetString(PyExc_TypeError, "call() takes out or shape, not both");
        return NULL;
    }
    if ((!c.shaped || ad__py_shape_of(v[CALL_SHAPE], &c.shape) == 0) &&
        ad__py_outputs(c.row->name, v[CALL_OUT], c.row->nout, c.out) == 0 &&
        (!is_given(v[CALL_DTYPE]) || (c.dtype = ad__py_dtype_id(v[CALL_DTYPE])) >= 0) &&
        take_inputs(&c, v[CALL_INPUTS]) == 0 && take_params(&c, v[CALL_PARAMS]) == 0) {
        ad__py_session *s = ad__py_session_of(c.nin ? c.input : c.out, c.nin ? c.nin : c.row->nout);
        result = s ? run_library_call(&c, s) : NULL;
        if (s) ad__py_session_leave(s);
    }
    for (int i = 0; i < c.nin; i++) Py_DECREF(c.input[i]);
    return result;
}

PyMethodDef ad__py_call_methods[] = {
    {"call", (PyCFunction)(void (*)(void))py_call, METH_FASTCALL | METH_KEYWORDS,
     "call(name, inputs, params=(), out=None, dtype=None, shape=None): a row of call.def."},
    {NULL, NULL, 0, NULL},
};

int ad__py_call_init(PyObject *module) {
    calls = PyDict_New();
    for (int id = 0; calls && id < AD_CALL_LIMIT; id++) {
        const ad_call_row *row = ad__call((uint64_t)id);
        if (row && ad__py_names_add(calls, row->name, id) != 0) return -1;
    }
    return calls ? PyModule_AddObjectRef(module, "calls", calls) : -1;
}
