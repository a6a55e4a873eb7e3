/* Apache Arrow's C data and C device data interfaces: capsules of an array in one dimension. Structures and rules are
 * those of arrow.apache.org/docs/format/CDataInterface.html and CDeviceDataInterface.html. */
#include <stdlib.h>
#include <string.h>

#include "core.h"

typedef struct arrow_schema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct arrow_schema **children, *dictionary;
    void (*release)(struct arrow_schema *);
    void *private_data;
} arrow_schema;

typedef struct arrow_array {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct arrow_array **children, *dictionary;
    void (*release)(struct arrow_array *);
    void *private_data;
} arrow_array;

/* The structure of Arrow. On a GPU nothing has to be waited for, so there is no event. */
typedef struct arrow_device_array {
    arrow_array array;
    int64_t device_id;
    int32_t device_type;
    void *sync_event;
    int64_t reserved[3];
} arrow_device_array;

enum { BUFFERS = 2 }; /* bits of the elements that are there (NULL: all), and the elements */

/* The objects that a consumer holds until it releases them. */
typedef struct holding {
    PyObject *owner; /* of the memory */
    const void *buffers[BUFFERS];
} holding;

/* ---- releasing: by whatever thread, with the GIL or without it; once ---- */

static void release_schema(arrow_schema *s) {
    free(s->private_data);
    s->release = NULL;
}

static void drop_owner(void *owner) { Py_DECREF((PyObject *)owner); }

static void release_array(arrow_array *a) {
    holding *h = a->private_data;
    ad__py_with_gil(drop_owner, h->owner);
    free(h);
    a->release = NULL;
}

/* A consumer that takes a structure out of its capsule sets release to NULL. */
static void destroy_schema(PyObject *capsule) {
    arrow_schema *s = PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule));
    if (s->release) s->release(s);
    free(s);
}

static void destroy_array(PyObject *capsule) { /* both structures begin with this one */
    arrow_array *a = PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule));
    if (a->release) a->release(a);
    free(a);
}

/* ---- making ---- */

/* arrow_schema(format) */
static PyObject *py_arrow_schema(PyObject *module, PyObject *args) {
    const char *format;
    (void)module;
    if (!PyArg_ParseTuple(args, "s:arrow_schema", &format)) return NULL;
    arrow_schema *s = calloc(1, sizeof *s);
    char *copy = strdup(format);
    if (!s || !copy) goto no_memory;
    *s = (arrow_schema){.format = copy, .name = "", .release = release_schema, .private_data = copy};
    PyObject *capsule = PyCapsule_New(s, "arrow_schema", destroy_schema);
    if (capsule) return capsule;
    free(copy);
    free(s);
    return NULL;

no_memory:
    free(copy);
    free(s);
    return PyErr_NoMemory();
}

static void fill_device_array(arrow_device_array *a, holding *h, PyObject *owner, const void *data, int64_t length) {
    h->owner = Py_NewRef(owner);
    h->buffers[1] = data;
    a->array = (arrow_array){
        .length = length, .n_buffers = BUFFERS, .buffers = h->buffers, .release = release_array, .private_data = h};
}

/* arrow_array(owner, address, length, device) */
static PyObject *py_arrow_array(PyObject *module, PyObject *args) {
    PyObject *owner, *device;
    unsigned long long address;
    long long length;
    (void)module;
    if (!PyArg_ParseTuple(args, "OKLO:arrow_array", &owner, &address, &length, &device)) return NULL;
    arrow_device_array *a = calloc(1, sizeof *a);
    holding *h = calloc(1, sizeof *h);
    if (!a || !h) {
        free(a);
        free(h);
        return PyErr_NoMemory();
    }
    fill_device_array(a, h, owner, (const void *)(uintptr_t)address, length);
    const char *name = device == Py_None ? "arrow_array" : "arrow_device_array";
    PyObject *capsule = NULL;
    if (device == Py_None || PyArg_ParseTuple(device, "iL:arrow_array", &a->device_type, &a->device_id))
        capsule = PyCapsule_New(a, name, destroy_array);
    if (capsule) return capsule;
    release_array(&a->array);
    free(a);
    return NULL;
}

PyMethodDef ad__py_arrow_methods[] = {
    {"arrow_schema", py_arrow_schema, METH_VARARGS, "arrow_schema(format): a capsule of Arrow's name for a type."},
    {"arrow_array", py_arrow_array, METH_VARARGS,
     "arrow_array(owner, address, length, device): a capsule of elements that owner keeps; device: None, or (Arrow's "
     "type of device, its number) for a device array."},
    {0}};
