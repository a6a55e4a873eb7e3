/* Elements between here and there, and what else waits for the server. */
#include <string.h>

#include "client-c/client.h"

static int wrong_size(size_t size, const ad_array *a) {
    return ad__fail(AD_E_VALUE, "%zu bytes given for an array of %lld", size,
                    (long long)(a->count * ad__dtypes[a->dtype].size));
}

int ad_upload(ad_session *s, int dtype, int ndim, const int64_t *shape, const void *data, size_t size, ad_array **out) {
    ad_array *a;
    int status = ad_empty(s, dtype, ndim, shape, &a);
    if (status) return status;
    if (size != (size_t)a->size) status = wrong_size(size, a);
    else status = ad__send_bytes(s, a->buffer, 0, data, size);
    return ad__hand_out(status, 1, &a, out);
}

int ad_write(const ad_array *a, const void *data, size_t size) {
    if (!a->contiguous) return ad__fail(AD_E_VALUE, "the array is not contiguous");
    if (size != (size_t)(a->count * ad__dtypes[a->dtype].size)) return wrong_size(size, a);
    return ad__send_bytes(a->session, a->buffer, (uint64_t)a->offset, data, size);
}

int ad_download(const ad_array *a, void *data, size_t size) {
    ad_session *s = a->session;
    uint8_t nothing;
    ad_slot slot;
    if (size != (size_t)(a->count * ad__dtypes[a->dtype].size)) return wrong_size(size, a);
    int status = ad__begin_ask(s);
    if (status) return status;
    ad__slot_init(&slot, size ? data : &nothing, size);
    size_t mark = s->out.size;
    ad__slot_add(s, &slot);
    ad_desc d = ad__array_desc(a);
    return ad__ask(s, mark, ad__encode_read(&s->out, slot.request, &d), &slot);
}

int ad_sync(ad_session *s) {
    ad_slot slot;
    int status = ad__begin_ask(s);
    if (status) return status;
    ad__slot_init(&slot, NULL, 0);
    size_t mark = s->out.size;
    ad__slot_add(s, &slot);
    return ad__ask(s, mark, ad__encode_sync(&s->out, slot.request), &slot);
}

int ad_stat(ad_session *s, int n, uint64_t *counters, int *got) {
    ad_slot slot;
    int status = ad__begin_ask(s);
    if (status) return status;
    ad__slot_init(&slot, NULL, 0);
    size_t mark = s->out.size;
    ad__slot_add(s, &slot);
    status = ad__ask(s, mark, ad__encode_stat(&s->out, slot.request), &slot);
    if (status) return status;
    *got = n < slot.nvalues ? n : slot.nvalues;
    for (int i = 0; i < *got; i++) counters[i] = (uint64_t)slot.values[i];
    return 0;
}
