/* Telling the package where operations are issued, if it wants to know. */
#include "core.h"

bool ad__py_watching;

static PyObject *note, *place;
static uint64_t noted_serial, noted_number;
static _Thread_local bool inside; /* what is called issues nothing, but it may wait for others' */

/* Clear what a function of the package raised: a place that is not known is no reason to fail. A Ctrl-C that came while it
 * ran is not lost: the program gets it at its next chance. */
static void clear_error(void) {
    if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
    PyErr_Clear();
}

void ad__py_note(void) {
    uint64_t serial, number;
    if (inside || !ad__py_session_issued(&serial, &number)) return;
    if (serial == noted_serial && number == noted_number) return;
    noted_serial = serial;
    noted_number = number;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    inside = true;
    PyObject *done = PyObject_CallFunction(note, "KK", (unsigned long long)serial, (unsigned long long)number);
    inside = false;
    if (!done) clear_error();
    Py_XDECREF(done);
    PyErr_Restore(type, value, traceback);
}

PyObject *ad__py_place(uint64_t number) {
    if (!ad__py_watching) return NULL;
    PyObject *text = PyObject_CallFunction(place, "K", (unsigned long long)number);
    if (!text || !PyUnicode_Check(text)) {
        if (!text) clear_error();
        Py_CLEAR(text);
    }
    return text;
}

static void replace_function(PyObject **function, PyObject *o) {
    PyObject *old = *function;
    *function = o == Py_None ? NULL : Py_NewRef(o);
    Py_XDECREF(old);
}

static PyObject *py_watch(PyObject *module, PyObject *args) {
    PyObject *first, *second;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO:watch_operations", &first, &second)) return NULL;
    ad__py_watching = false;
    replace_function(&note, first);
    replace_function(&place, second);
    ad__py_watching = note && place;
    Py_RETURN_NONE;
}

PyMethodDef ad__py_watch_methods[] = {
    {"watch_operations", py_watch, METH_VARARGS,
     "watch_operations(note, place): call note(session, number) when operations up to number have been issued, and "
     "append "
     "place(number) to the errors of an operation. None, None: stop."},
    {NULL, NULL, 0, NULL},
};
