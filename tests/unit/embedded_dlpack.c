/* Arrays as DLPack's tensors and back, with the real server, embedded; passed over where it has not been built. */
#include <criterion/criterion.h>
#include <dlpack/dlpack.h>
#include <string.h>

#include "protocol/tables.h"
#include "tests/unit/embedded.h"

static ad_array *make_matrix(ad_session *s, int dtype) {
    static const int64_t shape[] = {3, 4};
    ad_array *line, *typed, *a;
    cr_assert_eq(ad_arange(s, ad_int(0), ad_int(12), ad_int(1), AD_INT64, &line), 0, "%s", ad_error_message());
    cr_assert_eq(ad_astype(line, dtype, &typed), 0);
    cr_assert_eq(ad_reshape_view(typed, 2, shape, &a), 0, "%s", ad_error_message());
    ad_array_release(typed);
    ad_array_release(line);
    return a;
}

/* A tensor of this test's own, which counts how often it is deleted. */
typedef struct own_tensor {
    DLManagedTensorVersioned managed;
    int64_t shape[3], strides[3];
    int deleted;
} own_tensor;

static void count_deletion(DLManagedTensorVersioned *m) { ((own_tensor *)m->manager_ctx)->deleted++; }

static void init_tensor(own_tensor *t, void *data, DLDataType dtype, int64_t rows, int64_t columns) {
    memset(t, 0, sizeof *t);
    t->shape[0] = rows;
    t->shape[1] = columns;
    t->managed = (DLManagedTensorVersioned){
        .version = {1, 0},
        .manager_ctx = t,
        .deleter = count_deletion,
        .dl_tensor = {.data = data, .device = {kDLCPU, 0}, .ndim = 2, .dtype = dtype, .shape = t->shape}};
}

Test(embedded_dlpack, a_tensor_is_the_arrays_memory) {
    ad_session *s = open_embedded();
    ad_array *a = make_matrix(s, AD_FLOAT64), *turned, *column;
    DLManagedTensorVersioned *m;
    double seen[12];
    cr_assert_eq(ad_transpose(a, NULL, &turned), 0);
    cr_assert_eq(ad_slice(turned, 0, 3, -5, -2, &column), 0, "%s", ad_error_message()); /* rows 3 and 1 of the turned */
    cr_assert_eq(ad_to_dlpack(column, NULL, NULL, &m), 0, "%s", ad_error_message());
    const DLTensor *t = &m->dl_tensor;
    cr_assert(m->version.major == DLPACK_MAJOR_VERSION && m->flags == 0 && t->byte_offset == 0);
    cr_assert(t->device.device_type == kDLCPU && t->ndim == 2 && t->shape[0] == 2 && t->shape[1] == 3);
    cr_assert(t->strides[0] == -2 && t->strides[1] == 4);
    cr_assert(t->dtype.code == kDLFloat && t->dtype.bits == 64 && t->dtype.lanes == 1);
    double *x = t->data;
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 3; k++) cr_assert_eq(x[i * t->strides[0] + k * t->strides[1]], 4 * k + 3 - 2 * i);
    x[0] = 100;
    cr_assert_eq(ad_download(a, seen, sizeof seen), 0);
    cr_assert_eq(seen[3], 100);
    ad_array_release(column);
    ad_array_release(turned);
    ad_array_release(a);
    ad_session_close(s);
    cr_assert_eq(x[4], 7); /* the tensor needs neither */
    m->deleter(m);
}

Test(embedded_dlpack, a_lease_may_be_shared) {
    ad_session *s = open_embedded();
    ad_array *a = make_matrix(s, AD_INT32), *row;
    ad_lease *lease;
    DLManagedTensorVersioned *m;
    void *data;
    cr_assert_eq(ad_slice(a, 0, 2, 3, 1, &row), 0);
    cr_assert_eq(ad_export(a, &lease), 0, "%s", ad_error_message());
    cr_assert_eq(ad_to_dlpack(row, lease, NULL, &m), AD_E_VALUE);
    cr_assert(strstr(ad_error_message(), "not mapped"));
    cr_assert_eq(ad_import(lease, NULL, &data), 0);
    cr_assert_eq(ad_to_dlpack(row, lease, NULL, &m), 0, "%s", ad_error_message());
    ad_export_close(lease);
    cr_assert_eq(m->dl_tensor.data, (int32_t *)data + 8);
    cr_assert_eq(((int32_t *)m->dl_tensor.data)[1], 9);
    m->deleter(m);
    ad_array_release(row);
    ad_array_release(a);
    ad_session_close(s);
}

Test(embedded_dlpack, types_go_both_ways) {
    ad_session *s = open_embedded();
    for (int dtype = 0; dtype < AD_NDTYPE; dtype++) {
        ad_array *a, *back;
        ad_array_info info;
        DLManagedTensorVersioned *m;
        char before[12 * 16], after[12 * 16];
        const size_t size = 12 * (size_t)ad__dtypes[dtype].size;
        a = make_matrix(s, dtype);
        cr_assert_eq(ad_to_dlpack(a, NULL, NULL, &m), 0, "%s", ad_error_message());
        cr_assert_eq(ad_from_dlpack(s, m, NULL, NULL, NULL, &back), 0, "%s", ad_error_message());
        ad_array_get_info(back, &info);
        cr_expect(info.dtype == dtype && info.ndim == 2 && info.shape[0] == 3 && info.shape[1] == 4);
        cr_assert_eq(ad_download(a, before, size), 0);
        cr_assert_eq(ad_download(back, after, size), 0);
        cr_expect_eq(memcmp(before, after, size), 0, "%s", ad__dtypes[dtype].name);
        ad_array_release(back);
        ad_array_release(a);
    }
    ad_session_close(s);
}

Test(embedded_dlpack, host_tensors_are_copied) {
    ad_session *s = open_embedded();
    int16_t data[20], seen[6];
    own_tensor t;
    ad_array *a;
    for (int i = 0; i < 20; i++) data[i] = (int16_t)i;
    init_tensor(&t, data + 10, (DLDataType){kDLInt, 16, 1}, 2, 3);
    t.managed.dl_tensor.strides = t.strides;
    t.managed.dl_tensor.byte_offset = 2;
    t.strides[0] = 5;
    t.strides[1] = -2;
    cr_assert_eq(ad_from_dlpack(s, &t.managed, NULL, NULL, NULL, &a), 0, "%s", ad_error_message());
    cr_expect_eq(t.deleted, 1);
    memset(data, 0, sizeof data);
    cr_assert_eq(ad_download(a, seen, sizeof seen), 0);
    const int16_t expected[] = {11, 9, 7, 16, 14, 12};
    cr_expect_eq(memcmp(seen, expected, sizeof seen), 0);
    ad_array_release(a);
    t.shape[0] = 0; /* no elements */
    cr_assert_eq(ad_from_dlpack(s, &t.managed, NULL, NULL, NULL, &a), 0, "%s", ad_error_message());
    cr_expect_eq(t.deleted, 2);
    ad_array_release(a);
    ad_session_close(s);
}

static void count_release(void *argument) { ++*(int *)argument; }

Test(embedded_dlpack, what_is_refused_stays_the_callers) {
    ad_session *s = open_embedded();
    double data[6] = {0};
    own_tensor t;
    ad_array *a;
    int released = 0;
    const DLDataType real = {kDLFloat, 64, 1};
    const struct {
        int major, ndim, device;
        int64_t rows;
        DLDataType dtype;
        int status;
    } wrong[] = {{2, 2, kDLCPU, 2, real, AD_E_UNSUPPORTED},
                 {1, AD_MAX_NDIM + 1, kDLCPU, 2, real, AD_E_VALUE},
                 {1, -1, kDLCPU, 2, real, AD_E_VALUE},
                 {1, 2, kDLOpenCL, 2, real, AD_E_UNSUPPORTED},
                 {1, 2, kDLCUDA, 2, real, AD_E_UNSUPPORTED}, /* the server computes on the CPU */
                 {1, 2, kDLCPU, INT64_MAX / 2, real, AD_E_VALUE},
                 {1, 2, kDLCPU, -1, real, AD_E_VALUE},
                 {1, 2, kDLCPU, 2, {kDLFloat, 64, 2}, AD_E_TYPE},
                 {1, 2, kDLCPU, 2, {kDLFloat8_e5m2, 8, 1}, AD_E_TYPE},
                 {1, 2, kDLCPU, 2, {kDLOpaqueHandle, 64, 1}, AD_E_TYPE}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        init_tensor(&t, data, wrong[i].dtype, wrong[i].rows, 3);
        t.managed.version.major = (uint32_t)wrong[i].major;
        t.managed.dl_tensor.ndim = wrong[i].ndim;
        t.managed.dl_tensor.device.device_type = (DLDeviceType)wrong[i].device;
        cr_expect_eq(ad_from_dlpack(s, &t.managed, NULL, NULL, NULL, &a), wrong[i].status, "%zu: %s", i,
                     ad_error_message());
        cr_expect_eq(t.deleted, 0);
    }
    init_tensor(&t, data, real, 2, 3);
    cr_assert_eq(ad_from_dlpack(s, &t.managed, NULL, count_release, &released, &a), 0, "%s", ad_error_message());
    cr_expect(released == 1 && t.deleted == 0); /* instead of the deleter */
    ad_array_release(a);
    ad_session_close(s);
}
