/* Arrays for, and of, other libraries of this process, by DLPack. */
#include "client-c/interop/dlpack.h"

#include <stdlib.h>
#include <string.h>

#include "client-c/client.h"

/* ---- types: a code and a number of bits ---- */

static DLDataTypeCode get_code(int dtype) {
    if (dtype == AD_BFLOAT16) return kDLBfloat;
    switch (ad__dtypes[dtype].kind) {
    case 'b': return kDLBool;
    case 'i': return kDLInt;
    case 'u': return kDLUInt;
    case 'c': return kDLComplex;
    default: return kDLFloat;
    }
}

int ad__dlpack_dtype(const DLTensor *t) {
    for (int id = 0; id < AD_NDTYPE && t->dtype.lanes == 1; id++)
        if (t->dtype.code == get_code(id) && t->dtype.bits == 8 * ad__dtypes[id].size) return id;
    return ad__fail(AD_E_TYPE, "arrayd has no type with DLPack's code %d, %d bits and %d lanes", t->dtype.code,
                    t->dtype.bits, t->dtype.lanes);
}

/* ---- an array as a tensor ---- */

/* A tensor, and what it refers to, in one piece. */
typedef struct exported_tensor {
    DLManagedTensorVersioned managed;
    ad_array *array;
    ad_lease *lease;
    int64_t dims[2 * AD_MAX_NDIM];
} exported_tensor;

static void delete_tensor(DLManagedTensorVersioned *m) {
    exported_tensor *e = m->manager_ctx;
    ad_export_close(e->lease);
    ad_array_release(e->array);
    free(e);
}

const ad_array *ad__dlpack_array(const ad_session *s, const DLManagedTensorVersioned *tensor) {
    const exported_tensor *e = tensor->deleter == delete_tensor ? tensor->manager_ctx : NULL;
    return e && e->array->session == s ? e->array : NULL;
}

/* Describe the array; strides of DLPack count elements. AD_E_VALUE. */
static int describe_array(exported_tensor *e, const ad_array_info *a) {
    const int size = ad__dtypes[a->dtype].size;
    DLTensor *t = &e->managed.dl_tensor;
    t->ndim = a->ndim;
    t->dtype = (DLDataType){(uint8_t)get_code(a->dtype), (uint8_t)(8 * size), 1};
    t->shape = e->dims;
    t->strides = e->dims + a->ndim;
    for (int i = 0; i < a->ndim; i++) {
        if (a->strides[i] % size != 0)
            return ad__fail(AD_E_VALUE, "DLPack: the strides are no multiples of an element; export a copy");
        t->shape[i] = a->shape[i];
        t->strides[i] = a->strides[i] / size;
    }
    return 0;
}

/* Get the memory: by a reference to a lease of the array's buffer, or by a new one. */
static int take_lease(exported_tensor *e, const ad_array *a, ad_lease *lease, void *stream) {
    ad_lease_info info;
    ad_array_info array;
    if (!lease) {
        int status = ad_export(a, &e->lease);
        return status ? status : ad_import(e->lease, stream, &e->managed.dl_tensor.data);
    }
    ad_export_get_info(lease, &info);
    ad_array_get_info(a, &array);
    if (!info.base) return ad__fail(AD_E_VALUE, "DLPack: the lease is not mapped; call ad_import first");
    e->lease = ad_export_retain(lease);
    e->managed.dl_tensor.data = (char *)info.base + array.offset;
    return 0;
}

int ad_to_dlpack(const ad_array *a, ad_lease *lease, void *stream, DLManagedTensorVersioned **out) {
    exported_tensor *e = calloc(1, sizeof *e);
    ad_array_info array;
    ad_lease_info info;
    if (!e) return ad__fail(AD_E_MEMORY, "DLPack: out of memory");
    ad_array_get_info(a, &array);
    int status = describe_array(e, &array);
    if (!status) status = take_lease(e, a, lease, stream);
    if (status) {
        if (e->lease) ad_export_close(e->lease);
        free(e);
        return status;
    }
    ad_export_get_info(e->lease, &info);
    e->array = ad_array_retain((ad_array *)(uintptr_t)a);
    e->managed.version = (DLPackVersion){DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    e->managed.manager_ctx = e;
    e->managed.deleter = delete_tensor;
    e->managed.flags = array.writable ? 0 : DLPACK_FLAG_BITMASK_READ_ONLY;
    e->managed.dl_tensor.device = info.cuda ? (DLDevice){kDLCUDA, info.device} : (DLDevice){kDLCPU, 0};
    *out = &e->managed;
    return 0;
}

/* ---- a tensor as an array ---- */

/* Get the strides in bytes. Some libraries divide negative ones by the size as if they were unsigned: multiplied again,
 * modulo 2^64, they are right. AD_E_VALUE. */
static int get_strides(const DLTensor *t, int size, int64_t *strides) {
    int64_t step = size;
    for (int i = t->ndim - 1; i >= 0; i--) {
        strides[i] = t->strides ? (int64_t)((uint64_t)t->strides[i] * (uint64_t)size) : step;
        if (t->shape[i] < 0 || __builtin_mul_overflow(step, t->shape[i] ? t->shape[i] : 1, &step))
            return ad__fail(AD_E_VALUE, "DLPack: the tensor is too big");
    }
    return 0;
}

static bool is_row_major(const ad_layout *l, int size) {
    int64_t step = size;
    for (int i = l->ndim - 1; i >= 0; i--) {
        if (l->shape[i] != 1 && l->strides[i] != step) return false;
        step *= l->shape[i];
    }
    return true;
}

bool ad__dlpack_is_row_major(const DLTensor *t) {
    int64_t strides[AD_MAX_NDIM];
    const int dtype = ad__dlpack_dtype(t);
    if (dtype < 0 || t->ndim > AD_MAX_NDIM || get_strides(t, ad__dtypes[dtype].size, strides)) return false;
    const ad_layout layout = {.dtype = dtype, .ndim = t->ndim, .shape = t->shape, .strides = strides};
    return is_row_major(&layout, ad__dtypes[dtype].size);
}

/* Copy the elements of axis `axis` and those behind it to a row-major place; returns its end. */
static char *pack_elements(const ad_layout *l, int size, int axis, const char *from, char *to) {
    if (axis == l->ndim) {
        memcpy(to, from, (size_t)size);
        return to + size;
    }
    for (int64_t i = 0; i < l->shape[axis]; i++) to = pack_elements(l, size, axis + 1, from + i * l->strides[axis], to);
    return to;
}

static int upload_host(ad_session *s, const ad_layout *l, const char *data, ad_array **out) {
    const int size = ad__dtypes[l->dtype].size;
    int64_t count = 1;
    for (int i = 0; i < l->ndim; i++) count *= l->shape[i];
    const size_t bytes = (size_t)count * (size_t)size;
    if (count == 0 || is_row_major(l, size)) return ad_upload(s, l->dtype, l->ndim, l->shape, data, bytes, out);
    char *packed = malloc(bytes);
    if (!packed) return ad__fail(AD_E_MEMORY, "DLPack: out of memory for a row-major copy of %zu bytes", bytes);
    pack_elements(l, size, 0, data, packed);
    int status = ad_upload(s, l->dtype, l->ndim, l->shape, packed, bytes, out);
    free(packed);
    return status;
}

/* Check a tensor and find its layout; strides has AD_MAX_NDIM places. */
static int get_layout(const DLManagedTensorVersioned *m, int64_t *strides, ad_layout *layout) {
    const DLTensor *t = &m->dl_tensor;
    if (m->version.major != DLPACK_MAJOR_VERSION)
        return ad__fail(AD_E_UNSUPPORTED, "the tensor is of version %u of DLPack, and this is %d", m->version.major,
                        DLPACK_MAJOR_VERSION);
    if (t->ndim < 0 || t->ndim > AD_MAX_NDIM)
        return ad__fail(AD_E_VALUE, "DLPack: the tensor has %d dimensions; arrayd's have at most %d", t->ndim,
                        AD_MAX_NDIM);
    const int dtype = ad__dlpack_dtype(t);
    if (dtype < 0) return dtype;
    *layout = (ad_layout){dtype, t->ndim, 0, t->shape, strides};
    return get_strides(t, ad__dtypes[dtype].size, strides);
}

static void call_deleter(void *argument) {
    DLManagedTensorVersioned *m = argument;
    if (m->deleter) m->deleter(m);
}

static bool is_host(DLDeviceType type) { return type == kDLCPU || type == kDLCUDAHost || type == kDLROCMHost; }

int ad_from_dlpack(ad_session *s, DLManagedTensorVersioned *tensor, void *stream, void (*release)(void *argument),
                   void *argument, ad_array **out) {
    const DLTensor *t = &tensor->dl_tensor;
    int64_t strides[AD_MAX_NDIM];
    ad_layout layout;
    int status = get_layout(tensor, strides, &layout);
    if (status) return status;
    if (!release) {
        release = call_deleter;
        argument = tensor;
    }
    if (is_host(t->device.device_type)) {
        status = upload_host(s, &layout, (const char *)t->data + t->byte_offset, out);
        if (!status) release(argument);
        return status;
    }
    if (t->device.device_type != kDLCUDA)
        return ad__fail(AD_E_UNSUPPORTED,
                        "DLPack: the tensor is on a device of type %d; arrayd takes CUDA's (%d) and "
                        "the host's memory (%d)",
                        t->device.device_type, kDLCUDA, kDLCPU);
    const ad_loan loan = {.data = (char *)t->data + t->byte_offset,
                          .device = t->device.device_id,
                          .readonly = tensor->flags & DLPACK_FLAG_BITMASK_READ_ONLY,
                          .stream = stream,
                          .release = release,
                          .argument = argument};
    return ad_lend(s, &loan, &layout, out);
}
