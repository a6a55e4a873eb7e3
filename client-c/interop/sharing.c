/* Sharing arrays with other processes: capabilities and names. */
#include <stdlib.h>
#include <string.h>

#include "client-c/client.h"
#include "protocol/rows_request.h"

#define MILLISECONDS_MOST 1e15

int ad__check_writable(const ad_array *a, const char *what) {
    return a->readonly ? ad__fail(AD_E_VALUE, "%s is read-only", what) : 0;
}

/* ---- requests ---- */

/* Send a request that makes a buffer, and wait for its reply. *buffer: the buffer's id. */
static int ask_new_buffer(ad_session *s, int opcode, size_t n, const uint64_t *fields, size_t ntexts,
                          const char *const *texts, ad_slot *slot, uint64_t *buffer) {
    uint64_t all[8];
    int status = ad__begin_ask(s);
    if (status) return status;
    ad__slot_init(slot, NULL, 0);
    size_t mark = s->output.gathered.size, used = 2;
    ad__slot_add(s, slot);
    all[0] = slot->request;
    all[1] = *buffer = s->next_id.buffer++;
    for (size_t i = 0; i < n; i++) all[used++] = fields[i];
    status = ad__commit_ask(s, mark, ad__encode_named(&s->output.gathered, opcode, used, all, ntexts, texts), slot);
    if (status && ad__slot_is_made(slot, status)) ad__queue_free(s, *buffer, 0);
    return status;
}

static int fail_reply(ad_session *s, uint64_t buffer, const char *what) {
    ad__queue_free(s, buffer, 0);
    return ad__fail(AD_E_PROTOCOL, "%s: a reply of another form", what);
}

/* ---- arrays of another session's buffer ---- */

/* Make an array that is all of the buffer. column_major: its dimensions lie in memory in reverse. On failure the buffer
 * is freed. */
static int make_whole_array(ad_session *s, uint64_t buffer, int dtype, int ndim, const int64_t *shape,
                            bool column_major, ad_array **out) {
    int64_t turned[AD_MAX_NDIM];
    ad_array *a;
    for (int i = 0; i < ndim; i++) turned[i] = shape[column_major ? ndim - 1 - i : i];
    int status = ad__array_new(s, dtype, ndim, turned, &a);
    if (status) {
        ad__queue_free(s, buffer, 0);
        return status;
    }
    a->buffer = buffer;
    if (column_major) ad__array_reverse(a);
    *out = a;
    return 0;
}

static int make_view(ad_array *bytes, const ad_layout *l, bool unchecked, ad_array **out) {
    int status = unchecked ? ad__array_view(bytes, l->dtype, l->offset, l->ndim, l->shape, l->strides, out)
                           : ad_view(bytes, l->dtype, l->offset, l->ndim, l->shape, l->strides, out);
    ad_array_release(bytes); /* the view has a reference */
    return status;
}

static int check_layout(const ad_layout *l) { return ad__shape_check(l->ndim, l->shape, l->dtype); }

/* Tell whether a layout is all of a buffer of size bytes: 0 no, 1 yes, in row-major order, 2 yes, in column-major
 * order. */
static int match_whole_buffer(const ad_layout *l, int64_t size) {
    ad_desc d = {.shape = l->shape, .strides = l->strides, .dtype = (uint8_t)l->dtype, .ndim = (uint8_t)l->ndim};
    int64_t count;
    if (l->offset || ad__shape_count(l->ndim, l->shape, l->dtype, &count, NULL) || count == 0) return 0;
    if (count > size / ad__dtypes[l->dtype].size || count * ad__dtypes[l->dtype].size != size) return 0;
    return ad__is_contiguous(&d) ? 1 : ad__is_f_contiguous(&d) ? 2 : 0;
}

int ad__lay_out(ad_session *s, uint64_t buffer, int64_t size, uint8_t device, bool readonly, const ad_layout *l,
                ad_array **out) {
    ad_array *a;
    const bool poisoned = size < 0; /* a read reports why; the size is unknown */
    const int all = poisoned ? 0 : match_whole_buffer(l, size);
    if (poisoned) size = 0;
    int status = all ? make_whole_array(s, buffer, l->dtype, l->ndim, l->shape, all == 2, &a)
                     : make_whole_array(s, buffer, AD_UINT8, 1, &size, false, &a);
    if (status) return status;
    a->device = device;
    a->readonly = readonly;
    if (!all) status = make_view(a, l, poisoned, &a);
    if (!status) *out = a;
    return status;
}

/* ---- capabilities ---- */

static uint64_t convert_to_milliseconds(double seconds) {
    double ms = seconds * 1e3;
    return ms > 0 ? ms < MILLISECONDS_MOST ? (uint64_t)(ms + 0.999) : (uint64_t)MILLISECONDS_MOST : 0;
}

int ad_capability_make(const ad_array *a, uint64_t uses, double lease, double linger, ad_capability *out) {
    ad__array_disown(a);
    const uint64_t fields[] = {a->buffer, uses, convert_to_milliseconds(lease), convert_to_milliseconds(linger)};
    ad_slot slot;
    ad__slot_init(&slot, NULL, 0);
    int status = ad__ask_numbers(a->session, AD_REQ_SHARE, 4, fields, &slot);
    if (!status && slot.nvalues < 3) status = ad__fail(AD_E_PROTOCOL, "share: a reply of another form");
    if (!status) *out = (ad_capability){{(uint64_t)slot.values[0], (uint64_t)slot.values[1]}, (uint64_t)slot.values[2]};
    else if (slot.done && slot.nvalues == 3) /* nobody will hear of it */
        ad__send_numbers(a->session, AD_REQ_REVOKE, 2,
                         (uint64_t[]){(uint64_t)slot.values[0], (uint64_t)slot.values[1]});
    return status;
}

/* Send attach, or pull with its texts, and make an array of the buffer. layout NULL: all of its bytes, or one if it has
 * failed, and a read of that reports why. */
static int attach_buffer(ad_session *s, int opcode, const ad_capability *c, size_t ntexts, const char *const *texts,
                         const ad_layout *layout, ad_array **out) {
    static const int64_t byte[] = {1};
    ad_layout whole = {AD_UINT8, 1, 0, byte, byte};
    uint64_t buffer;
    ad_slot slot;
    int status = layout ? check_layout(layout) : 0;
    if (!status) status = ask_new_buffer(s, opcode, 2, c->half, ntexts, texts, &slot, &buffer);
    if (status) return status;
    if (slot.nvalues < 3 || slot.values[0] < -1) return fail_reply(s, buffer, ad__request((uint8_t)opcode)->name);
    if (slot.values[0] >= 0) whole.shape = &slot.values[0];
    return ad__lay_out(s, buffer, slot.values[0], (uint8_t)slot.values[2], slot.values[1] == 2,
                       layout ? layout : &whole, out);
}

int ad_capability_attach(ad_session *s, const ad_capability *c, const ad_layout *layout, ad_array **out) {
    return attach_buffer(s, AD_REQ_ATTACH, c, 0, NULL, layout, out);
}

int ad__capability_attach_bytes(ad_session *s, const ad_capability *c, ad_array **out) {
    return attach_buffer(s, AD_REQ_ATTACH, c, 0, NULL, NULL, out);
}

int ad_capability_pull(ad_session *s, const ad_capability *c, const char *server, const char *principal,
                       const ad_layout *layout, ad_array **out) {
    const char *const texts[] = {server, principal};
    return attach_buffer(s, AD_REQ_PULL, c, 2, texts, layout, out);
}

int ad_capability_revoke(ad_session *s, const ad_capability *c) {
    return ad__send_numbers(s, AD_REQ_REVOKE, 2, c->half);
}

/* ---- names ---- */

int ad_publish(const ad_array *a, const char *name, bool writable, const char *grant) {
    ad_session *s = a->session;
    ad_desc d = ad__array_desc(a);
    ad_slot slot;
    if (writable && a->readonly)
        return ad__fail(AD_E_VALUE, "the array is read-only, so others cannot be let write it");
    ad__array_disown(a);
    int status = ad__begin_ask(s);
    if (status) return status;
    ad__slot_init(&slot, NULL, 0);
    size_t mark = s->output.gathered.size;
    ad__slot_add(s, &slot);
    return ad__commit_ask(
        s, mark, ad__encode_publish(&s->output.gathered, slot.request, &d, writable, name, grant ? grant : ""), &slot);
}

int ad_attach(ad_session *s, const char *principal, const char *name, ad_array **out) {
    const char *const texts[] = {principal ? principal : "", name};
    uint64_t buffer;
    ad_slot slot;
    ad_array *a;
    int status = ask_new_buffer(s, AD_REQ_ATTACH_NAME, 0, NULL, 2, texts, &slot, &buffer);
    if (status) return status;
    const int ndim = slot.nvalues - 5;
    if (ndim < 0 || slot.values[3] < 0 || slot.values[3] >= AD_NDTYPE ||
        ad__shape_check(ndim, slot.values + 5, (int)slot.values[3]))
        return fail_reply(s, buffer, "attach_name");
    status = make_whole_array(s, buffer, (int)slot.values[3], ndim, slot.values + 5, slot.values[4] != 0, &a);
    if (status) return status;
    a->device = (uint8_t)slot.values[2];
    a->readonly = !slot.values[1];
    *out = a;
    return 0;
}

int ad_unpublish(ad_session *s, const char *name) {
    ad_slot slot;
    int status = ad__begin_ask(s);
    if (status) return status;
    ad__slot_init(&slot, NULL, 0);
    size_t mark = s->output.gathered.size;
    ad__slot_add(s, &slot);
    return ad__commit_ask(s, mark, ad__encode_named(&s->output.gathered, AD_REQ_UNPUBLISH, 1, &slot.request, 1, &name),
                          &slot);
}

int ad_names(ad_session *s, char **out) {
    uint64_t buffer;
    ad_slot slot;
    ad_array *a;
    int status = ask_new_buffer(s, AD_REQ_NAMES, 0, NULL, 0, NULL, &slot, &buffer);
    if (status) return status;
    if (slot.nvalues < 1 || slot.values[0] < 0) return fail_reply(s, buffer, "names");
    const int64_t size = slot.values[0];
    status = make_whole_array(s, buffer, AD_UINT8, 1, &size, false, &a);
    if (status) return status;
    char *text = malloc((size_t)size + 1);
    status = text ? ad_download(a, text, (size_t)size) : ad__fail_memory();
    ad_array_release(a);
    if (status) {
        free(text);
        return status;
    }
    text[size] = 0;
    *out = text;
    return 0;
}
