/* Devices, streams, events and memory, by number. arrayd.cuda makes objects of them. Each function takes the serial of
 * the session first (see session_serial), so that an object of one session is not used with another. */
#include "core.h"

static ad__py_session *session_of(PyObject *serial) {
    ad__py_session *s = ad__py_session_get();
    unsigned long long wanted = s ? PyLong_AsUnsignedLongLong(serial) : 0;
    if (!s) return NULL;
    if (!PyErr_Occurred() && s->serial == wanted) return s;
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "it belongs to another connection than the current one");
    ad__py_session_leave(s);
    return NULL;
}

/* Read the unsigned numbers that follow the serial among the arguments. */
static int read_numbers(PyObject *const *args, Py_ssize_t n, Py_ssize_t wanted, uint64_t *out) {
    if (n != wanted + 1) {
        PyErr_SetString(PyExc_TypeError, "wrong number of arguments");
        return -1;
    }
    for (Py_ssize_t i = 0; i < wanted; i++) {
        out[i] = PyLong_AsUnsignedLongLong(args[i + 1]);
        if (PyErr_Occurred()) return -1;
    }
    return 0;
}

static PyObject *return_none(int status) { return status ? ad__py_fail(status) : Py_NewRef(Py_None); }

typedef PyObject *action(ad_session *handle, const uint64_t *v);

/* All functions but one: numbers in, something out; they may wait. */
static PyObject *run_action(PyObject *const *args, Py_ssize_t n, Py_ssize_t wanted, action *act) {
    uint64_t v[4];
    if (read_numbers(args, n, wanted, v) != 0) return NULL;
    ad__py_session *s = session_of(args[0]);
    if (!s) return NULL;
    PyObject *result = act(s->handle, v);
    ad__py_session_leave(s);
    return result;
}

#define WAITING(call)    \
    ad__py_release();    \
    int status = (call); \
    ad__py_acquire()

static PyObject *stream_open(ad_session *h, const uint64_t *v) {
    uint64_t stream = 0;
    WAITING(ad_stream_open(h, v[0] > INT_MAX ? INT_MAX : (int)v[0], v[1] > 0, &stream));
    return status ? ad__py_fail(status) : PyLong_FromUnsignedLongLong(stream);
}

static PyObject *stream_drop(ad_session *h, const uint64_t *v) {
    WAITING(ad_stream_drop(h, v[0]));
    return return_none(status);
}

static PyObject *stream_use(ad_session *h, const uint64_t *v) { return return_none(ad_stream_use(h, v[0])); }

static PyObject *stream_wait(ad_session *h, const uint64_t *v) {
    WAITING(ad_stream_wait(h, v[0]));
    return return_none(status);
}

static PyObject *stream_done(ad_session *h, const uint64_t *v) {
    bool done = false;
    WAITING(ad_stream_done(h, v[0], &done));
    return status ? ad__py_fail(status) : PyBool_FromLong(done);
}

static PyObject *stream_follow(ad_session *h, const uint64_t *v) {
    WAITING(ad_stream_follow(h, v[0], v[1]));
    return return_none(status);
}

static PyObject *event_record(ad_session *h, const uint64_t *v) {
    uint64_t event = v[1];
    WAITING(ad_event_record(h, v[0], v[2] != 0, &event));
    return status ? ad__py_fail(status) : PyLong_FromUnsignedLongLong(event);
}

static PyObject *event_drop(ad_session *h, const uint64_t *v) {
    WAITING(ad_event_drop(h, v[0]));
    return return_none(status);
}

static PyObject *event_wait(ad_session *h, const uint64_t *v) {
    WAITING(ad_event_wait(h, v[0]));
    return return_none(status);
}

static PyObject *event_done(ad_session *h, const uint64_t *v) {
    bool done = false;
    WAITING(ad_event_done(h, v[0], &done));
    return status ? ad__py_fail(status) : PyBool_FromLong(done);
}

static PyObject *event_elapsed(ad_session *h, const uint64_t *v) {
    double ms = 0;
    WAITING(ad_event_elapsed(h, v[0], v[1], &ms));
    return status ? ad__py_fail(status) : PyFloat_FromDouble(ms);
}

#define GRAPH "arrayd.graph"

static void release_graph(PyObject *capsule) { ad_graph_release(PyCapsule_GetPointer(capsule, GRAPH)); }

static PyObject *graph_new(ad_session *h, const uint64_t *v) {
    ad_graph *graph = NULL;
    (void)v;
    int status = ad_graph_new(h, &graph);
    if (status) return ad__py_fail(status);
    PyObject *capsule = PyCapsule_New(graph, GRAPH, release_graph);
    if (!capsule) ad_graph_release(graph);
    return capsule;
}

static PyObject *device_facts(ad_session *h, const uint64_t *v) {
    ad_device_facts f = {0};
    WAITING(ad_device_get_facts(h, v[0] > INT_MAX ? INT_MAX : (int)v[0], &f));
    return status ? ad__py_fail(status)
                  : Py_BuildValue("KKiiiKii", (unsigned long long)f.memory, (unsigned long long)f.free, f.major,
                                  f.minor, f.multiprocessors, (unsigned long long)f.peers, f.runtime, f.driver);
}

static PyObject *pool_ask(ad_session *h, const uint64_t *v) {
    ad_pool_facts f = {0};
    WAITING(ad_pool_ask(h, v[0] > INT_MAX ? INT_MAX : (int)v[0], (ad_pool_action)v[1], v[2], &f));
    return status ? ad__py_fail(status)
                  : Py_BuildValue("KKKK", (unsigned long long)f.used, (unsigned long long)f.total,
                                  (unsigned long long)f.free_blocks, (unsigned long long)f.limit);
}

#define FUNCTION(name, wanted)                                                          \
    static PyObject *py_##name(PyObject *module, PyObject *const *args, Py_ssize_t n) { \
        (void)module;                                                                   \
        return run_action(args, n, wanted, name);                                       \
    }
FUNCTION(graph_new, 0)
FUNCTION(stream_open, 2)
FUNCTION(stream_drop, 1)
FUNCTION(stream_use, 1)
FUNCTION(stream_wait, 1)
FUNCTION(stream_done, 1)
FUNCTION(stream_follow, 2)
FUNCTION(event_record, 3)
FUNCTION(event_drop, 1)
FUNCTION(event_wait, 1)
FUNCTION(event_done, 1)
FUNCTION(event_elapsed, 2)
FUNCTION(device_facts, 1)
FUNCTION(pool_ask, 3)

static PyObject *py_serial(PyObject *module, PyObject *unused) {
    ad__py_session *s = ad__py_session_get();
    (void)module;
    (void)unused;
    if (!s) return NULL;
    PyObject *serial = PyLong_FromUnsignedLongLong(s->serial);
    ad__py_session_leave(s);
    return serial;
}

/* Get the number of the current session, without opening one; 0: there is none. */
static PyObject *py_serial_now(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    return PyLong_FromUnsignedLongLong(ad__py_session_serial());
}

static PyObject *py_set_device_type(PyObject *module, PyObject *type) {
    (void)module;
    ad__py_replace(&ad__py.device_type, Py_NewRef(type));
    Py_RETURN_NONE;
}

/* Tell whether an array lies on another device than the calling thread's. */
static PyObject *py_is_elsewhere(PyObject *module, PyObject *a) {
    PyObject *elements = ad__py_elements(a);
    (void)module;
    if (!elements) return NULL;
    ad_array_info info = ad__py_info(elements);
    Py_DECREF(elements);
    return PyBool_FromLong(info.device != ad_stream_current(info.session) % AD_DEFAULT_STREAMS);
}

/* ---- graphs ---- */

static PyObject *py_graph_record(PyObject *module, PyObject *capsule) {
    ad_graph *graph = Py_IsNone(capsule) ? NULL : PyCapsule_GetPointer(capsule, GRAPH);
    (void)module;
    if (PyErr_Occurred()) return NULL;
    ad_graph_record(graph);
    Py_RETURN_NONE;
}

static PyObject *py_graph_size(PyObject *module, PyObject *capsule) {
    const ad_graph *graph = PyCapsule_GetPointer(capsule, GRAPH);
    (void)module;
    return graph ? PyLong_FromSize_t(ad_graph_size(graph)) : NULL;
}

static PyObject *py_graph_text(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    char text[512];
    uint64_t v[1];
    (void)module;
    if (read_numbers(args, n, 1, v) != 0) return NULL;
    ad_graph *graph = PyCapsule_GetPointer(args[0], GRAPH);
    if (!graph) return NULL;
    const int status = ad_graph_text(graph, v[0], sizeof text, text);
    if (status) return ad__py_fail(status);
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

static PyObject *py_graph_launch(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    uint64_t v[2];
    (void)module;
    if (read_numbers(args, n, 2, v) != 0) return NULL;
    ad_graph *graph = PyCapsule_GetPointer(args[0], GRAPH);
    if (!graph) return NULL;
    WAITING(ad_graph_launch(graph, v[0], v[1]));
    return return_none(status);
}

#define METHOD(name, doc) \
    { #name, (PyCFunction)(void (*)(void))py_##name, METH_FASTCALL, doc }
PyMethodDef ad__py_device_methods[] = {
    {"session_serial", py_serial, METH_NOARGS, "A number for the current session, opened when there is none."},
    {"session_serial_now", py_serial_now, METH_NOARGS, "The same; 0 when there is none."},
    {"set_device_type", py_set_device_type, METH_O, "What makes a device object of a number."},
    {"is_elsewhere", py_is_elsewhere, METH_O, "Whether an array lies on another device than the current one."},
    {"set_on_memory", ad__py_set_on_memory, METH_O, "What is called with each array that has new memory, or None."},
    METHOD(stream_open, "stream_open(serial, device, priority): its number."),
    METHOD(stream_drop, "stream_drop(serial, stream)"),
    METHOD(stream_use, "stream_use(serial, stream): of the calling thread."),
    METHOD(stream_wait, "stream_wait(serial, stream): until it is idle."),
    METHOD(stream_done, "stream_done(serial, stream): whether it is idle."),
    METHOD(stream_follow, "stream_follow(serial, stream, event): it waits for the event."),
    METHOD(event_record, "event_record(serial, stream, event or 0, timed): the event's number."),
    METHOD(event_drop, "event_drop(serial, event)"),
    METHOD(event_wait, "event_wait(serial, event)"),
    METHOD(event_done, "event_done(serial, event)"),
    METHOD(event_elapsed, "event_elapsed(serial, from, to): milliseconds; waits for both."),
    METHOD(device_facts,
           "device_facts(serial, device): memory, free, major, minor, multiprocessors, peers, runtime, driver."),
    METHOD(graph_new, "graph_new(serial): a capsule."),
    {"graph_record", py_graph_record, METH_O, "What keeps the thread's operations from now on: a graph, or None."},
    {"graph_size", py_graph_size, METH_O, "How many operations a graph has."},
    METHOD(graph_text, "graph_text(graph, i): operation i as $ARRAYD_TRACE prints it."),
    METHOD(graph_launch, "graph_launch(graph, first, n)"),
    METHOD(pool_ask, "pool_ask(serial, device, action, value): used, total, free blocks, limit."),
    {NULL, NULL, 0, NULL},
};
