/* Index arrays of a key: int64 arrays on the server, of one shape. */
#include "index.h"
#include "protocol/rows_call.h"

/* ---- axes ---- */

ad_array *ad__py_axes_first(ad_array *view, int count, const int *axes) {
    ad_array_info info;
    int order[AD_MAX_NDIM], n = 0;
    uint64_t chosen = 0;
    ad_array *turned = NULL;
    ad_array_get_info(view, &info);
    for (int i = 0; i < count; i++) {
        order[n++] = axes[i];
        chosen |= (uint64_t)1 << axes[i];
    }
    for (int i = 0; i < info.ndim; i++)
        if (!(chosen >> i & 1)) order[n++] = i;
    int status = ad_transpose(view, order, &turned);
    if (status) ad__py_fail(status);
    return turned;
}

ad_array *ad__py_axes_moved(ad_array *view, int from, int n, int to) {
    ad_array_info info;
    int order[AD_MAX_NDIM], rest[AD_MAX_NDIM], nrest = 0, at = 0;
    ad_array *turned = NULL;
    ad_array_get_info(view, &info);
    for (int i = 0; i < info.ndim; i++)
        if (i < from || i >= from + n) rest[nrest++] = i;
    for (int i = 0; i < to; i++) order[at++] = rest[i];
    for (int i = 0; i < n; i++) order[at++] = from + i;
    for (int i = to; i < nrest; i++) order[at++] = rest[i];
    int status = ad_transpose(view, order, &turned);
    if (status) ad__py_fail(status);
    return turned;
}

/* ---- arrays of this process ---- */

static int out_of_bounds(int64_t i, int axis, int64_t size) {
    PyErr_Format(PyExc_IndexError, "index %lld is out of bounds for axis %d with size %lld", (long long)i, axis,
                 (long long)size);
    return -1;
}

static int check_bounds(PyObject *host, int axis, int64_t size) {
    Py_buffer buffer;
    int status = 0;
    if (PyObject_GetBuffer(host, &buffer, PyBUF_C_CONTIGUOUS) != 0) return -1;
    const int64_t *index = buffer.buf;
    for (Py_ssize_t i = 0; i < buffer.len / (Py_ssize_t)sizeof *index && !status; i++)
        if (index[i] < -size || index[i] >= size) status = out_of_bounds(index[i], axis, size);
    PyBuffer_Release(&buffer);
    return status;
}

/* Upload one index array, checked. Returns the handle, or NULL. */
static ad_array *upload_index(PyObject *host, int axis, int64_t size, ad__py_session *s) {
    PyObject *dtype = ad__py_dtype_get(AD_INT64), *array = NULL;
    PyObject *packed = dtype ? PyObject_CallFunction(ad__py.np_asarray, "OOs", host, dtype, "C") : NULL;
    ad_array *handle = NULL;
    if (packed && check_bounds(packed, axis, size) == 0) array = ad__py_from_host(packed, AD_INT64, s);
    if (array) handle = ad_array_retain(ad__py_handle(array));
    Py_XDECREF(dtype);
    Py_XDECREF(packed);
    Py_XDECREF(array);
    return handle;
}

/* ---- kinds of index arrays ---- */

static void add_array(ad__py_indices *x, int axis, ad_array *array) {
    x->axes[x->count] = axis;
    x->array[x->count++] = array;
}

static int add_index(ad__py_indices *x, const ad__py_fancy *f, int64_t size, ad__py_session *s) {
    ad_array *array = NULL;
    if (f->item->host) {
        array = upload_index(f->item->object, f->of, size, s);
    } else if (ad__py_info(f->item->object).dtype == AD_INT64) {
        array = ad_array_retain(ad__py_handle(f->item->object));
    } else {
        int status = ad_astype(ad__py_handle(f->item->object), AD_INT64, &array);
        if (status) ad__py_fail(status);
    }
    if (!array) return -1;
    add_array(x, f->axis, array);
    return 0;
}

/* Rows of what nonzero gives, one for each axis of the mask. */
static int add_rows(ad__py_indices *x, const ad__py_fancy *f, ad_array *found) {
    ad_array_info info;
    ad_array *row;
    ad_array_get_info(found, &info);
    for (int i = 0; i < f->item->naxes; i++) {
        int status = ad_view(found, AD_INT64, info.offset + (info.count ? i * info.strides[0] : 0), 1, info.shape + 1,
                             info.strides + 1, &row);
        if (status) {
            ad__py_fail(status);
            return -1;
        }
        add_array(x, f->axis + i, row);
    }
    return 0;
}

static int add_server_mask(ad__py_indices *x, const ad__py_fancy *f) {
    ad_array *mask = ad_array_retain(ad__py_handle(f->item->object)), *found;
    const ad_in in = ad_of(mask);
    int64_t values[AD_MAX_PARAM];
    ad__py_release();
    int status = ad_call_call(NULL, AD_CALL_nonzero, -1, 1, &in, 0, NULL, NULL, &found, values);
    ad__py_acquire();
    ad_array_release(mask);
    if (status) {
        ad__py_fail(status);
        return -1;
    }
    status = add_rows(x, f, found);
    ad_array_release(found);
    return status;
}

static int add_host_mask(ad__py_indices *x, const ad__py_fancy *f, const ad_array_info *view, ad__py_session *s) {
    PyObject *found = PyObject_CallMethod(f->item->object, "nonzero", NULL);
    int status = found ? 0 : -1;
    for (int i = 0; i < f->item->naxes && !status; i++) {
        ad_array *array = upload_index(PyTuple_GetItem(found, i), f->of + i, view->shape[f->axis + i], s);
        if (array) add_array(x, f->axis + i, array);
        else status = -1;
    }
    Py_XDECREF(found);
    return status;
}

/* True takes the axis of size 1 that was made for it, False nothing of it. */
static int add_bool(ad__py_indices *x, const ad__py_fancy *f, ad__py_session *s) {
    const int64_t shape = f->item->value;
    ad_array *array;
    int status = ad_zeros(s->handle, AD_INT64, 1, &shape, &array);
    ad__py_ensure();
    if (status) ad__py_fail(status);
    else add_array(x, f->axis, array);
    return status ? -1 : 0;
}

static int add_fancy(ad__py_indices *x, const ad__py_fancy *f, const ad_array_info *view, ad__py_session *s) {
    switch (f->item->kind) {
    case ITEM_INDEX: return add_index(x, f, view->shape[f->axis], s);
    case ITEM_BOOL: return add_bool(x, f, s);
    default: return f->item->host ? add_host_mask(x, f, view, s) : add_server_mask(x, f);
    }
}

/* ---- one shape ---- */

static int no_broadcast(const ad__py_indices *x) {
    PyObject *text =
        PyUnicode_FromString("shape mismatch: indexing arrays could not be broadcast together with shapes");
    for (int i = 0; i < x->count && text; i++) {
        ad_array_info info;
        PyObject *shape;
        ad_array_get_info(x->array[i], &info);
        shape = ad__py_tuple(info.ndim, info.shape);
        ad__py_replace(&text, shape ? PyUnicode_FromFormat("%U %R", text, shape) : NULL);
        Py_XDECREF(shape);
    }
    if (text) PyErr_SetObject(PyExc_IndexError, text);
    Py_XDECREF(text);
    return -1;
}

static int broadcast_indices(ad__py_indices *x) {
    ad_operand operand[AD_MAX_NDIM];
    const ad_operand *operands[AD_MAX_NDIM];
    ad_array *wide;
    for (int i = 0; i < x->count; i++) {
        ad_array_info info;
        ad_array_get_info(x->array[i], &info);
        operand[i] = (ad_operand){.desc = {.shape = info.shape, .strides = info.strides, .ndim = info.ndim}};
        operands[i] = &operand[i];
    }
    if (ad__broadcast(x->count, operands, &x->ndim, x->shape, NULL)) return no_broadcast(x);
    for (int i = 0; i < x->count; i++) {
        int status = ad_broadcast_to(x->array[i], x->ndim, x->shape, &wide);
        if (status) {
            ad__py_fail(status);
            return -1;
        }
        ad_array_release(x->array[i]);
        x->array[i] = wide;
    }
    return 0;
}

int ad__py_indices_make(ad__py_indices *x, const ad__py_key *k, const ad_array_info *view, ad__py_session *s) {
    int status = 0;
    x->count = x->ndim = 0;
    for (int i = 0; i < k->nfancy && !status; i++) status = add_fancy(x, &k->fancy[i], view, s);
    return !status ? broadcast_indices(x) : -1;
}

void ad__py_indices_free(ad__py_indices *x) {
    for (int i = 0; i < x->count; i++) ad_array_release(x->array[i]);
    x->count = 0;
}

PyObject *ad__py_mask(const ad__py_key_item *item, ad__py_session *s) {
    return item->host ? ad__py_from_host(item->object, AD_BOOL, s) : Py_NewRef(item->object);
}
