/* The module arrayd._core. */
#include "core.h"

ad__py_state ad__py;

static int import_numpy(void) {
    const struct {
        const char *name;
        void *to;
    } names[] = {{"ndarray", &ad__py.np_ndarray},
                 {"generic", &ad__py.np_generic},
                 {"dtype", &ad__py.np_dtype},
                 {"asarray", &ad__py.np_asarray},
                 {"empty", &ad__py.np_empty}};
    ad__py.numpy = PyImport_ImportModule("numpy");
    for (size_t i = 0; ad__py.numpy && i < sizeof names / sizeof *names; i++) {
        PyObject *o = PyObject_GetAttrString(ad__py.numpy, names[i].name);
        if (!o) return -1;
        *(PyObject **)names[i].to = o;
    }
    PyObject *exceptions = ad__py.numpy ? PyImport_ImportModule("numpy.exceptions") : NULL;
    ad__py.np_axis_error = exceptions ? PyObject_GetAttrString(exceptions, "AxisError") : NULL;
    ad__py.np_complex_warning = exceptions ? PyObject_GetAttrString(exceptions, "ComplexWarning") : NULL;
    Py_XDECREF(exceptions);
    return ad__py.np_axis_error && ad__py.np_complex_warning ? 0 : -1;
}

static int add_functions(PyObject *module) {
    PyMethodDef *const tables[] = {ad__py_session_methods, ad__py_dtype_methods,    ad__py_host_methods,
                                   ad__py_create_methods,  ad__py_reduce_methods,   ad__py_call_methods,
                                   ad__py_ufunc_methods,   ad__py_shared_methods,   ad__py_device_methods,
                                   ad__py_kernel_methods,  ad__py_sharing_methods,  ad__py_watch_methods,
                                   ad__py_export_methods,  ad__py_lend_methods,     ad__py_arrow_methods,
                                   ad__py_gil_methods,     ad__py_exchange_methods, ad__py_index_methods};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (PyModule_AddFunctions(module, tables[i]) != 0) return -1;
    return 0;
}

static int fill_module(PyObject *module) {
    int (*const init[])(PyObject *) = {ad__py_errors_init, ad__py_flags_init,  ad__py_array_init,
                                       ad__py_ufunc_init,  ad__py_reduce_init, ad__py_call_init,
                                       ad__py_shared_init, ad__py_matmul_init, ad__py_kernels_init,
                                       ad__py_export_init, ad__py_gil_init,    ad__py_exchange_init};
    if (ad__py.array) { /* types and sessions are this process's, not an interpreter's */
        PyErr_SetString(PyExc_ImportError, "arrayd can be imported once in a process");
        return -1;
    }
    if (import_numpy() != 0 || ad__py_dtype_init() != 0 || ad__py_session_init() != 0) return -1;
    for (size_t i = 0; i < sizeof init / sizeof *init; i++)
        if (init[i](module) != 0) return -1;
    return add_functions(module);
}

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void) {
    static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)(uintptr_t)fill_module}, {0, NULL}};
    static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "arrayd._core", .m_slots = slots};
    return PyModuleDef_Init(&definition);
}
