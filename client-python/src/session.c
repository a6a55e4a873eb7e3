/* Sessions of this process and the GIL.
 *
 * Calls that are known to wait release the GIL. An operation is only sent, and keeps the GIL, as releasing it would
 * cost more than the operation. Sometimes an operation has to wait after all, because the server is behind. Then the
 * interrupt function that libarrayd calls from time to time releases the GIL until the operation returns. */
#include <pthread.h>

#include "core.h"
#include "client-c/net/connect.h"
#include "protocol/counters.h"

_Thread_local PyThreadState *ad__py_released;

static ad__py_session *current;
static uint64_t opened_so_far;
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

void ad__py_release(void) { ad__py_released = PyEval_SaveThread(); }

void ad__py_acquire(void) {
    PyThreadState *state = ad__py_released;
    ad__py_released = NULL;
    PyEval_RestoreThread(state);
    if (ad__py_watching) ad__py_note();
}

/* libarrayd asks whether to go on waiting. Ctrl-C cancels what the session has sent as well, so that the next statement
 * need not wait for it. A wait that this ends may ask once more. */
static int check_interrupt(void *handle) {
    ad__py_ensure();
    const bool again = PyErr_Occurred();
    const int stop = again || PyErr_CheckSignals();
    const bool cancels = stop && !again && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
    ad__py_release();
    if (cancels) ad_cancel(handle); /* an older server cannot, and goes on */
    return stop;
}

/* ---- life ---- */

static void close_at_exit(void) {
    if (current) ad_session_close(current->handle);
}

static bool forked;

static void note_fork(void) {
    forked = true;
    pthread_mutex_init(&opening, NULL);
}

/* Look after the session in a fork's child. Where libarrayd goes on with the parent's arrays, it does so with another
 * connection. So objects of the parent's (streams, events) are known to be strangers. Else a connection of its own is
 * opened when needed. */
static void look_after_fork(void) {
    forked = false;
    if (!current) return;
    if (ad_session_usable(current->handle)) {
        current->serial = ++opened_so_far;
        return;
    }
    current->current = false;
    current = NULL;
}

int ad__py_session_init(void) {
    ad_watch_forks(); /* its handlers come before this one */
    if (pthread_atfork(NULL, NULL, note_fork) != 0 || Py_AtExit(close_at_exit) != 0) {
        PyErr_SetString(PyExc_RuntimeError, "arrayd: no handler for fork or exit can be registered");
        return -1;
    }
    return 0;
}

static void free_session(ad__py_session *s) {
    if (s->current || s->users > 0) return;
    ad__py_release();
    ad_session_close(s->handle);
    ad__py_acquire();
    PyMem_Free(s);
}

void ad__py_session_leave(ad__py_session *s) {
    if (--s->users == 0 && !s->current) free_session(s);
}

static void leave_current(void) {
    ad__py_session *s = current;
    if (!s) return;
    current = NULL;
    s->current = false;
    free_session(s);
}

static ad__py_session *wrap_session(ad_session *handle) {
    ad__py_session *s = PyMem_Malloc(sizeof *s);
    if (!s) {
        ad_session_close(handle);
        PyErr_NoMemory();
        return NULL;
    }
    *s = (ad__py_session){.handle = handle, .serial = ++opened_so_far, .current = true};
    ad_session_set_interrupt(handle, check_interrupt, handle);
    ad__py_watch(handle);
    leave_current();
    return current = s;
}

/* Get the name that the package has for this program, as text that lives as long as the result. NULL: it does not
 * know. */
static PyObject *name_program(const char **text) {
    PyObject *name = ad__py.program_name ? PyObject_CallNoArgs(ad__py.program_name) : NULL;
    *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    PyErr_Clear();
    return name;
}

/* Open the session. One thread opens while others that need a session wait for it. */
static ad__py_session *open_session(const char *url, const ad_connection *with, bool another) {
    ad__py_session *s = NULL;
    ad_session *handle = NULL;
    int status = 0;
    ad_connection named = with ? *with : (ad_connection){0};
    PyObject *name = named.name ? NULL : name_program(&named.name);
    ad__py_release();
    pthread_mutex_lock(&opening);
    if (forked) look_after_fork();
    if (another || !current) status = ad_session_open_with(url, &named, &handle);
    ad__py_acquire();
    Py_XDECREF(name);
    if (status) ad__py_fail(status);
    else s = handle ? wrap_session(handle) : current;
    pthread_mutex_unlock(&opening);
    return s;
}

ad__py_session *ad__py_session_get(void) {
    if (forked) look_after_fork();
    ad__py_session *s = current;
    while (!s && !PyErr_Occurred()) s = open_session(NULL, NULL, false);
    if (s) s->users++;
    return s;
}

uint64_t ad__py_session_serial(void) {
    if (forked) look_after_fork();
    return current ? current->serial : 0;
}

bool ad__py_session_issued(uint64_t *serial, uint64_t *number) {
    ad_session_info info;
    if (!current || forked) return false;
    ad_session_get_info(current->handle, &info);
    *serial = current->serial;
    *number = info.operations;
    return true;
}

ad__py_session *ad__py_session_of(PyObject *const *objects, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < n; i++) {
        if (objects[i] && ad__py_is_array(objects[i])) {
            ad__py_session *s = ((ad__py_array *)objects[i])->session;
            s->users++;
            return s;
        }
    }
    return ad__py_session_get();
}

/* ---- functions ---- */

/* Get a text, or NULL for None and what was not given. False with a TypeError, which names only the type of a wrong
 * value: it may be a token. */
static bool text_or_none(const char *name, PyObject *o, const char **out) {
    Py_ssize_t size = 0;
    *out = NULL;
    if (!o || o == Py_None) return true;
    if (!PyUnicode_Check(o)) {
        PyErr_Format(PyExc_TypeError, "connect(): %s must be a str or None", name);
        return false;
    }
    if (!(*out = PyUnicode_AsUTF8AndSize(o, &size))) return false;
    if ((size_t)size == strlen(*out)) return true;
    PyErr_Format(PyExc_ValueError, "connect(): %s has a NUL in it", name);
    return false;
}

static PyObject *py_connect(PyObject *module, PyObject *const *args, Py_ssize_t npos, PyObject *kwnames) {
    static const char *const names[] = {"url", "token", "ca", "cert", "key", "name", NULL};
    PyObject *value[6];
    const char *text[6];
    (void)module;
    if (ad__py_arguments("connect", names, args, npos, kwnames, value) != 0) return NULL;
    for (int i = 0; i < 6; i++)
        if (!text_or_none(names[i], value[i], &text[i])) return NULL;
    const ad_connection with = {.token = text[1], .ca = text[2], .cert = text[3], .key = text[4], .name = text[5]};
    return open_session(text[0], &with, true) ? Py_NewRef(Py_None) : NULL;
}

static PyObject *py_close(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    if (forked) look_after_fork();
    leave_current();
    Py_RETURN_NONE;
}

static PyObject *finish_wait(int status) { return status ? ad__py_fail(status) : Py_NewRef(Py_None); }

static PyObject *py_sync(PyObject *module, PyObject *unused) {
    ad__py_session *s = ad__py_session_get();
    (void)module;
    (void)unused;
    if (!s) return NULL;
    ad__py_release();
    int status = ad_sync(s->handle);
    ad__py_acquire();
    PyObject *result = finish_wait(status);
    ad__py_session_leave(s);
    return result;
}

/* Call a function of libarrayd with the current session, where there is one. */
static PyObject *call_current(int (*function)(ad_session *)) {
    if (forked) look_after_fork();
    ad__py_session *s = current;
    if (!s) Py_RETURN_NONE;
    s->users++;
    ad__py_release();
    int status = function(s->handle);
    ad__py_acquire();
    PyObject *result = finish_wait(status);
    ad__py_session_leave(s);
    return result;
}

static PyObject *py_flush(PyObject *module, PyObject *unused) {
    return (void)module, (void)unused, call_current(ad_flush);
}

static PyObject *py_cancel(PyObject *module, PyObject *unused) {
    return (void)module, (void)unused, call_current(ad_cancel);
}

/* Set dict[name] = value, which is taken over. */
static int put_value(PyObject *dict, const char *name, PyObject *value) {
    int status = value ? PyDict_SetItemString(dict, name, value) : -1;
    Py_XDECREF(value);
    return status;
}

static PyObject *py_stat(PyObject *module, PyObject *unused) {
    uint64_t counters[AD_NCOUNTER];
    int got = 0;
    ad__py_session *s = ad__py_session_get();
    (void)module;
    (void)unused;
    if (!s) return NULL;
    ad__py_release();
    int status = ad_stat(s->handle, AD_NCOUNTER, counters, &got);
    ad__py_acquire();
    PyObject *dict = status ? ad__py_fail(status) : PyDict_New();
    for (int i = 0; dict && i < got; i++)
        if (put_value(dict, ad__counters[i].name, PyLong_FromUnsignedLongLong(counters[i])) != 0) Py_CLEAR(dict);
    ad__py_session_leave(s);
    return dict;
}

static PyObject *py_info(PyObject *module, PyObject *unused) {
    ad_session_info info;
    ad__py_session *s = ad__py_session_get();
    (void)module;
    (void)unused;
    if (!s) return NULL;
    ad_session_get_info(s->handle, &info);
    PyObject *dict = Py_BuildValue(
        "{s:s,s:s,s:s,s:s,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:O,s:s,s:s,s:s}", "url", info.url, "server",
        info.server, "backend", info.backend, "device_name", info.device_name, "session",
        (unsigned long long)info.session, "version", (unsigned long long)info.version, "devices",
        (unsigned long long)info.devices, "memory", (unsigned long long)info.memory, "operations",
        (unsigned long long)info.operations, "frees", (unsigned long long)info.frees, "round_trips",
        (unsigned long long)info.round_trips, "lent", (unsigned long long)info.lent, "copied",
        (unsigned long long)info.copied, "messages_bytes", (unsigned long long)info.messages_bytes, "kernels",
        info.kernels ? Py_True : Py_False, "name", info.name, "principal", info.principal, "peers", info.peers);
    ad__py_session_leave(s);
    return dict;
}

/* The addresses that are tried in turn where no url is given. */
static PyObject *py_addresses(PyObject *module, PyObject *unused) {
    ad_server_address places[AD_URL_CANDIDATES];
    const char *named = getenv("ARRAYD_URL");
    (void)module;
    (void)unused;
    if (named && *named) return Py_BuildValue("[s]", named);
    int n = ad__url_candidates(places);
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < n; i++) {
        PyObject *url = PyUnicode_FromString(places[i].url);
        if (!url || PyList_Append(list, url) != 0) Py_CLEAR(list);
        Py_XDECREF(url);
    }
    return list;
}

/* The server's options, whose names are those of environment variables as well. */
static PyObject *py_options(PyObject *module, PyObject *unused) {
    static const char *const names[] = {
#define AD_OPTION(name, ...) name,
#include "protocol/option.def"
#undef AD_OPTION
    };
    (void)module;
    (void)unused;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < sizeof names / sizeof *names; i++) {
        PyObject *name = PyUnicode_FromString(names[i]);
        if (!name || PyList_Append(list, name) != 0) Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

static PyObject *py_set_program_name(PyObject *module, PyObject *function) {
    (void)module;
    ad__py_replace(&ad__py.program_name, Py_NewRef(function));
    Py_RETURN_NONE;
}

static PyObject *py_version(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    return PyUnicode_FromString(ad_version());
}

PyMethodDef ad__py_session_methods[] = {
    {"connect", (PyCFunction)(void (*)(void))py_connect, METH_FASTCALL | METH_KEYWORDS,
     "connect(url=None, token=None, ca=None, cert=None, key=None, name=None): open a session and make it the current "
     "one."},
    {"set_program_name", py_set_program_name, METH_O, "What gives the name of this program, or None."},
    {"close", py_close, METH_NOARGS, "Leave the current session; its last array closes it."},
    {"sync", py_sync, METH_NOARGS, "Wait for all operations; raises the first error that no array carries."},
    {"flush", py_flush, METH_NOARGS, "Send what is buffered."},
    {"cancel", py_cancel, METH_NOARGS,
     "Cancel what has been sent and not begun, and what is under way where the server can do that."},
    {"stat", py_stat, METH_NOARGS, "The server's counters by name."},
    {"session_info", py_info, METH_NOARGS, "What is known of the session without asking."},
    {"addresses", py_addresses, METH_NOARGS, "The addresses that are tried in turn where connect() gets no url."},
    {"options", py_options, METH_NOARGS, "The names of the server's options."},
    {"version", py_version, METH_NOARGS, "The version of libarrayd."},
    {NULL, NULL, 0, NULL},
};
