/* Moving arrays through windows. Memory in a window is loaded by the server from there, and ad_download_host fetches
 * into a window. All else passes through a ring of a few parts:
 *
 *   upload     this process copies into part 0 | part 1 | part 2 ...
 *              the server loads from             part 0 | part 1 ...
 *
 * A download goes the other way round. */
#include <string.h>

#include "client-c/client.h"
#include "protocol/rows_request.h"

#define PARTS 4
#define LARGE_PART ((size_t)16 << 20)
#define SMALL_PART ((size_t)256 << 10)
#define DRAINING_MOST ((size_t)64 << 20) /* bytes of uploads that the server has yet to load */
#define FETCH_MOST ((uint64_t)256 << 20) /* bytes of one request: the program's progress is reported between two */
#define SEND_MOST ((size_t)64 << 20)

/* ---- progress ---- */

void ad__report_progress(ad_session *s, uint64_t done, uint64_t total, bool up) {
    if (total > AD_PROGRESS_LEAST && s->calls.progress.report)
        s->calls.progress.report(s->calls.progress.argument, done, total, up);
}

void ad_session_set_progress(ad_session *s, void (*progress)(void *, uint64_t, uint64_t, bool), void *argument) {
    s->calls.progress.report = progress;
    s->calls.progress.argument = argument;
}

/* ---- parts ---- */

typedef struct part_ring {
    ad_session *session;
    size_t part; /* bytes of each part */
    int n;
    ad_host *host[PARTS];
    ad_copier *copier;
} part_ring;

/* Return a size that is worth a message, and small enough that both ends work at the same time. */
static size_t choose_part_size(size_t size) {
    size_t part = (size / 8 + 4095) & ~(size_t)4095;
    if (part < SMALL_PART) part = SMALL_PART;
    if (part > LARGE_PART) part = LARGE_PART;
    return part < size ? part : size;
}

/* Take the parts of a ring; one is enough where there are no more. */
static int open_ring(part_ring *b, ad_session *s, size_t size) {
    *b = (part_ring){.session = s, .part = choose_part_size(size)};
    size_t wanted = (size + b->part - 1) / b->part;
    while (b->n < PARTS && (size_t)b->n < wanted) {
        int status = ad_host_alloc(s, b->part, &b->host[b->n]);
        if (status && b->n && status == AD_E_UNSUPPORTED) break;
        if (status) {
            while (b->n) ad_host_release(b->host[--b->n]);
            return status;
        }
        b->n++;
    }
    b->copier = ad__copier_open(size);
    return 0;
}

static int close_ring(part_ring *b, int status) {
    ad__copier_close(b->copier);
    for (int i = 0; i < b->n; i++) ad_host_release(b->host[i]);
    return status;
}

/* Wait until the server has finished with a part. */
static int await_part(ad_session *s, ad_host *h) {
    if (!h->asked) return 0;
    int status = ad__await_ask(s, &h->slot);
    if (status == AD_E_INTERRUPTED || status == AD_E_CONNECTION) return status;
    h->asked = false;
    if (!h->slot.internal) return status;
    h->until = 0;
    return 0; /* the failure has been deferred to the program's next call */
}

/* ---- uploads ---- */

static int send_load(ad_session *s, uint64_t buffer, uint64_t offset, uint64_t window, uint64_t at, size_t size,
                     uint64_t *number) {
    const uint64_t fields[] = {buffer, offset, window, at, size};
    int status = ad__begin(s);
    if (status) return status;
    size_t mark = s->output.gathered.size;
    *number = s->encoded.ops + 1;
    return ad__commit(s, mark, ad__encode_numbers(&s->output.gathered, AD_REQ_LOAD, 5, fields));
}

/* Ask the server to reply when it has executed what the current stream holds. */
static int ask_stream_wait(ad_session *s, ad_host *h) {
    int status = ad__begin_ask(s);
    if (status) return status;
    ad__slot_init(&h->slot, NULL, 0);
    h->slot.internal = h->slot.persistent = h->asked = true;
    size_t mark = s->output.gathered.size;
    ad__slot_add(s, &h->slot);
    const uint64_t fields[] = {h->slot.request, 0, ad_stream_current(s)};
    status = ad__commit_ask_async(s, mark, ad__encode_numbers(&s->output.gathered, AD_REQ_WAIT, 3, fields), &h->slot);
    if (!h->slot.persistent) h->asked = false;
    return status;
}

int ad_settle(ad_session *s) {
    ad_slot slot;
    ad__slot_init(&slot, NULL, 0);
    slot.internal = true;
    int status = ad__ask_numbers(s, AD_REQ_WAIT, 2, (uint64_t[]){0, ad_stream_current(s)}, &slot);
    return status == AD_E_INTERRUPTED || status == AD_E_CONNECTION ? status : 0;
}

static int load_part(part_ring *b, int i, uint64_t buffer, uint64_t offset, const uint8_t *data, size_t size,
                     bool last) {
    ad_session *s = b->session;
    ad_host *h = b->host[i];
    int status = await_part(s, h);
    if (status) return status;
    ad__copier_copy(b->copier, ad__host_base(h), data, size);
    status = send_load(s, buffer, offset, ad__host_window(h), h->offset, size, &h->until);
    return status || last ? status : ask_stream_wait(s, h); /* the last parts are acknowledged by and by */
}

static int store_through_ring(ad_session *s, uint64_t buffer, uint64_t offset, const uint8_t *data, size_t size) {
    part_ring b;
    int status = 0;
    if (ad__pool_draining_bytes(s) > DRAINING_MOST && (status = ad_settle(s))) return status;
    status = open_ring(&b, s, size);
    if (status) return status;
    for (size_t at = 0, i = 0; at < size && !status; i++) {
        size_t n = size - at < b.part ? size - at : b.part;
        bool last = (size - at - n + b.part - 1) / b.part < (size_t)b.n;
        status = load_part(&b, (int)(i % (size_t)b.n), buffer, offset + at, data + at, n, last);
        at += n;
        ad__report_progress(s, at, size, true);
    }
    return close_ring(&b, status);
}

static int send_with_progress(ad_session *s, uint64_t buffer, uint64_t offset, const uint8_t *data, size_t size) {
    int status = 0;
    for (size_t at = 0; at < size && !status; at += SEND_MOST) {
        size_t n = size - at < SEND_MOST ? size - at : SEND_MOST;
        status = ad__send_bytes(s, buffer, offset + at, data + at, n);
        ad__report_progress(s, at + n, size, true);
    }
    return status;
}

int ad__upload_bytes(ad_session *s, uint64_t buffer, uint64_t offset, const uint8_t *data, size_t size) {
    uint64_t window, at, number;
    if (size < AD_SHARED_LEAST) return send_with_progress(s, buffer, offset, data, size);
    bool found;
    int status = ad__host_find(s, data, size, &window, &at, &found);
    if (!status && found) {
        status = send_load(s, buffer, offset, window, at, size, &number);
        return status ? status : ad_settle(s); /* the program may write there as soon as this returns */
    }
    if (!status) status = store_through_ring(s, buffer, offset, data, size);
    return status == AD_E_UNSUPPORTED ? send_with_progress(s, buffer, offset, data, size) : status;
}

/* ---- downloads ---- */

static int ask_fetch(ad_session *s, const ad_desc *d, ad_host *h, uint64_t at) {
    int status = ad__begin_ask(s);
    if (status) return status;
    ad__slot_init(&h->slot, NULL, 0);
    h->slot.persistent = h->asked = true;
    size_t mark = s->output.gathered.size;
    ad__slot_add(s, &h->slot);
    status = ad__commit_ask_async(
        s, mark, ad__encode_fetch(&s->output.gathered, h->slot.request, d, ad__host_window(h), h->offset + at),
        &h->slot);
    if (!h->slot.persistent) h->asked = false;
    return status;
}

const ad_desc *ad__describe_bytes(const ad_array *a, uint64_t at, uint64_t size, ad_byte_view *b) {
    b->size = (int64_t)size;
    b->step = 1;
    b->desc = (ad_desc){.buffer = a->buffer,
                        .offset = a->offset + (int64_t)at,
                        .shape = &b->size,
                        .strides = &b->step,
                        .dtype = AD_UINT8,
                        .ndim = 1,
                        .form = AD_VIEW};
    return &b->desc;
}

static int fetch_in_steps(const ad_array *a, ad_host *h, uint64_t size) {
    int status = 0;
    for (uint64_t at = 0; at < size && !status;) {
        uint64_t n = size - at < FETCH_MOST ? size - at : FETCH_MOST;
        ad_byte_view b;
        status = ask_fetch(a->session, ad__describe_bytes(a, at, n, &b), h, at);
        if (!status) status = await_part(a->session, h);
        at += n;
        ad__report_progress(a->session, at, size, false);
    }
    return status;
}

int ad_download_host(const ad_array *a, ad_host **host) {
    if (ad__check_not_recording("a download")) return AD_E_DEVICE;
    const uint64_t size = (uint64_t)a->count * ad__dtypes[a->dtype].size;
    ad_session *s = a->session;
    ad_host *h;
    if (size < AD_SHARED_LEAST) return ad__fail(AD_E_UNSUPPORTED, "too little for shared memory");
    int status = ad_host_alloc(s, size, &h);
    if (status) return status;
    if (a->contiguous && size > AD_PROGRESS_LEAST) {
        status = fetch_in_steps(a, h, size);
    } else {
        ad_desc d = ad__array_desc(a);
        status = ask_fetch(s, &d, h, 0);
        if (!status) status = await_part(s, h);
    }
    if (status) ad_host_release(h);
    else *host = h;
    return status;
}

/* Ask for the array's parts in turn, and copy them as they come. */
static int fetch_through_ring(const ad_array *a, part_ring *b, uint8_t *out, size_t size) {
    const size_t parts = (size + b->part - 1) / b->part, ahead = (size_t)b->n;
    int status = 0;
    for (size_t i = 0; i < parts + ahead && !status; i++) {
        ad_host *h = b->host[i % ahead];
        if (i >= ahead) {
            size_t at = (i - ahead) * b->part, n = size - at < b->part ? size - at : b->part;
            status = await_part(a->session, h);
            if (status) break;
            ad__copier_copy(b->copier, out + at, ad__host_base(h), n);
            ad__report_progress(a->session, at + n, size, false);
        }
        if (i < parts) {
            size_t at = i * b->part;
            ad_byte_view part;
            status = ask_fetch(a->session, ad__describe_bytes(a, at, size - at < b->part ? size - at : b->part, &part),
                               h, 0);
        }
    }
    return status;
}

int ad__download_through_windows(const ad_array *a, void *data, size_t size) {
    part_ring b;
    if (!a->contiguous) return AD_E_UNSUPPORTED;
    int status = open_ring(&b, a->session, size);
    return status ? status : close_ring(&b, fetch_through_ring(a, &b, data, size));
}
