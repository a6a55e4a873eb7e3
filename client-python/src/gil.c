/* The interpreter, on whatever thread: libarrayd's, and other libraries' that Python knows nothing of. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "core.h"

static PyInterpreterState *interpreter;
static atomic_bool over;  /* it ends */
static atomic_int inside; /* threads that use it */

/* Python has a lock on the list of its threads, which a thread that is not one yet takes without the GIL. A child that
 * is forked meanwhile would wait for it for ever (until 3.12), so forks wait. */
static pthread_mutex_t threads = PTHREAD_MUTEX_INITIALIZER;

static void hold_threads(void) { pthread_mutex_lock(&threads); }
static void let_threads(void) { pthread_mutex_unlock(&threads); }

/* A fork's child has none of its parent's other threads. */
static void begin_child(void) {
    atomic_store(&inside, 0);
    let_threads();
}

static bool enter_call(void) {
    atomic_fetch_add(&inside, 1);
    if (!atomic_load(&over)) return true;
    atomic_fetch_sub(&inside, 1);
    return false;
}

static void leave_call(void) { atomic_fetch_sub(&inside, 1); }

static PyThreadState *thread_new(void) {
    hold_threads();
    PyThreadState *own = PyThreadState_New(interpreter);
    let_threads();
    return own;
}

static void thread_delete(PyThreadState *own) {
    hold_threads();
    PyThreadState_Delete(own);
    let_threads();
}

static void run_with_gil(void (*f)(void *), void *argument) {
    if (PyGILState_GetThisThreadState()) { /* a thread of the program's */
        PyGILState_STATE state = PyGILState_Ensure();
        f(argument);
        PyGILState_Release(state);
        return;
    }
    PyThreadState *own = thread_new();
    if (!own) return;
    PyEval_RestoreThread(own);
    f(argument);
    PyThreadState_Clear(own);
    PyEval_SaveThread();
    thread_delete(own);
}

void ad__py_with_gil(void (*f)(void *), void *argument) {
    if (!enter_call()) return;
    run_with_gil(f, argument);
    leave_call();
}

static void do_nothing(void *unused) { (void)unused; }

bool ad__py_on_main(int (*f)(void *)) {
    if (!enter_call()) return false;
    const bool asked = Py_AddPendingCall(f, NULL) == 0;
    run_with_gil(do_nothing, NULL); /* Python 3.11 looks for calls only when it has to let go of the GIL */
    leave_call();
    return asked;
}

/* gil_stop(): the interpreter ends. */
static PyObject *py_gil_stop(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    atomic_store(&over, true);
    Py_BEGIN_ALLOW_THREADS while (atomic_load(&inside)) sched_yield();
    Py_END_ALLOW_THREADS return Py_NewRef(Py_None);
}

int ad__py_gil_init(PyObject *module) {
    (void)module;
    interpreter = PyInterpreterState_Get();
    return pthread_atfork(hold_threads, let_threads, begin_child) ? -1 : 0;
}

PyMethodDef ad__py_gil_methods[] = {
    {"gil_stop", py_gil_stop, METH_NOARGS, "The interpreter ends: other libraries' threads do without it from now on."},
    {0}};
