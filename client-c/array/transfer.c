/* Uploads and downloads, and other calls that wait for the server. */
#include <stdlib.h>
#include <string.h>

#include "client-c/client.h"

#define READ_MOST ((size_t)64 << 20) /* bytes of one request of a large transfer */

static int fail_size(size_t size, const ad_array *a) {
    return ad__fail(AD_E_VALUE, "%zu bytes given for an array of %lld", size,
                    (long long)(a->count * ad__dtypes[a->dtype].size));
}

int ad_upload(ad_session *s, int dtype, int ndim, const int64_t *shape, const void *data, size_t size, ad_array **out) {
    ad_array *a;
    int status = ad_empty(s, dtype, ndim, shape, &a);
    if (status) return status;
    if (size != (size_t)a->size) status = fail_size(size, a);
    else status = ad__upload_bytes(s, a->buffer, 0, data, size);
    return ad__hand_out(status, 1, &a, out);
}

int ad_write(const ad_array *a, const void *data, size_t size) {
    if (ad__check_not_recording("an upload")) return AD_E_DEVICE;
    if (ad__check_writable(a, "assignment destination")) return AD_E_VALUE;
    if (!a->contiguous) return ad__fail(AD_E_VALUE, "the array is not contiguous");
    if (size != (size_t)(a->count * ad__dtypes[a->dtype].size)) return fail_size(size, a);
    return ad__upload_bytes(a->session, a->buffer, (uint64_t)a->offset, data, size);
}

int ad__ask_bytes(const ad_array *a, uint64_t at, void *data, size_t size, ad_slot *slot) {
    ad_session *s = a->session;
    ad_byte_view part;
    ad__slot_init(slot, data, size);
    int status = ad__begin_reading(s);
    if (status) return status;
    size_t mark = s->output.gathered.size;
    ad__slot_add(s, slot);
    status = ad__encode_read(&s->output.gathered, slot->request, ad__describe_bytes(a, at, size, &part));
    status = ad__commit_ask_async(s, mark, status, slot);
    if (!status) return 0;
    pthread_mutex_lock(&s->lock);
    ad__slot_remove(s, slot);
    pthread_mutex_unlock(&s->lock);
    return status;
}

static int read_desc(ad_session *s, const ad_desc *d, void *data, size_t size) {
    uint8_t nothing;
    ad_slot slot;
    int status = ad__begin_reading(s);
    if (status) return status;
    ad__slot_init(&slot, size ? data : &nothing, size);
    size_t mark = s->output.gathered.size;
    ad__slot_add(s, &slot);
    return ad__commit_ask(s, mark, ad__encode_read(&s->output.gathered, slot.request, d), &slot);
}

/* Read an array over the socket, a large one in several requests with a report of progress between them. */
static int read_array(const ad_array *a, uint8_t *data, size_t size) {
    ad_byte_view part;
    int status = 0;
    if (!a->contiguous || size <= AD_PROGRESS_LEAST) {
        ad_desc d = ad__array_desc(a);
        return read_desc(a->session, &d, data, size);
    }
    for (size_t at = 0, n; at < size && !status; at += n) {
        n = size - at < READ_MOST ? size - at : READ_MOST;
        status = read_desc(a->session, ad__describe_bytes(a, at, n, &part), data + at, n);
        ad__report_progress(a->session, at + n, size, false);
    }
    return status;
}

/* Read all of a small buffer, keep that as its mirror, and copy the array out of it. */
static int read_through_mirror(const ad_array *a, void *data, size_t size, uint64_t stamp) {
    const ad_array *owner = ad__array_owner(a);
    ad_byte_view all;
    uint8_t *bytes = malloc((size_t)owner->size);
    if (!bytes) return ad__fail_memory();
    const ad_desc *d = ad__describe_bytes(owner, 0, (uint64_t)owner->size, &all);
    int status = read_desc(a->session, d, bytes, (size_t)owner->size);
    if (status) {
        free(bytes);
        return status;
    }
    memcpy(data, bytes + a->offset, size);
    ad__mirror_keep(a, bytes, stamp);
    return 0;
}

int ad_download(const ad_array *a, void *data, size_t size) {
    if (ad__check_not_recording("a download")) return AD_E_DEVICE;
    if (size != (size_t)(a->count * ad__dtypes[a->dtype].size)) return fail_size(size, a);
    int status = AD_E_UNSUPPORTED;
    uint64_t stamp;
    switch (ad__mirror_read(a, data, size, &stamp)) {
    case AD_MIRROR_READ: return 0;
    case AD_MIRROR_FETCH: return read_through_mirror(a, data, size, stamp);
    case AD_MIRROR_NONE: break;
    }
    if (size >= AD_SHARED_LEAST) status = ad__download_through_windows(a, data, size);
    return status == AD_E_UNSUPPORTED ? read_array(a, data, size) : status;
}

int ad_sync(ad_session *s) {
    ad_slot slot;
    int status = ad__begin_reading(s);
    if (status) return status;
    ad__slot_init(&slot, NULL, 0);
    size_t mark = s->output.gathered.size;
    ad__slot_add(s, &slot);
    return ad__commit_ask(s, mark, ad__encode_sync(&s->output.gathered, slot.request), &slot);
}

int ad_stat(ad_session *s, int n, uint64_t *counters, int *got) {
    ad_slot slot;
    int status = ad__begin_ask(s);
    if (status) return status;
    ad__slot_init(&slot, NULL, 0);
    size_t mark = s->output.gathered.size;
    ad__slot_add(s, &slot);
    status = ad__commit_ask(s, mark, ad__encode_stat(&s->output.gathered, slot.request), &slot);
    if (status) return status;
    *got = n < slot.nvalues ? n : slot.nvalues;
    for (int i = 0; i < *got; i++) counters[i] = (uint64_t)slot.values[i];
    return 0;
}
