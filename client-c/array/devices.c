/* Devices, streams and events. */
#include "client-c/client.h"
#include "protocol/rows_request.h"

_Thread_local ad_stream_choice ad__stream_choice;

/* ---- devices ---- */

static int check_device(const ad_session *s, int device) {
    if (device >= 0 && device < AD_DEFAULT_STREAMS && (uint64_t)device < s->welcome.devices) return 0;
    return ad__fail(AD_E_VALUE, "device %d does not exist: the server has %llu, numbered from 0", device,
                    (unsigned long long)s->welcome.devices);
}

int ad_device_get_facts(ad_session *s, int device, ad_device_facts *facts) {
    ad_slot slot;
    int status = check_device(s, device);
    if (status) return status;
    ad__slot_init(&slot, NULL, 0);
    status = ad__ask_numbers(s, AD_REQ_DEVICE, 1, (uint64_t[]){(uint64_t)device}, &slot);
    if (status) return status;
    if (slot.nvalues < 6) return ad__fail(AD_E_PROTOCOL, "device: a reply of another form");
    *facts = (ad_device_facts){.memory = (uint64_t)slot.values[0],
                               .free = (uint64_t)slot.values[1],
                               .major = (int)slot.values[2],
                               .minor = (int)slot.values[3],
                               .multiprocessors = (int)slot.values[4],
                               .peers = (uint64_t)slot.values[5]};
    if (slot.nvalues < 8) return 0; /* an older server does not send these */
    facts->runtime = (int)slot.values[6];
    facts->driver = (int)slot.values[7];
    return 0;
}

int ad_pool_ask(ad_session *s, int device, ad_pool_action action, uint64_t value, ad_pool_facts *facts) {
    const uint64_t fields[] = {(uint64_t)device, (uint64_t)action, value};
    ad_slot slot;
    int status = check_device(s, device);
    if (status) return status;
    ad__slot_init(&slot, NULL, 0);
    status = ad__ask_numbers(s, AD_REQ_POOL, 3, fields, &slot);
    if (status) return status;
    if (slot.nvalues < 4) return ad__fail(AD_E_PROTOCOL, "pool: a reply of another form");
    *facts = (ad_pool_facts){(uint64_t)slot.values[0], (uint64_t)slot.values[1], (uint64_t)slot.values[2],
                             (uint64_t)slot.values[3]};
    return 0;
}

/* ---- the thread's stream ---- */

void ad__switch_stream(ad_session *s) {
    const uint64_t stream = ad__stream_choice.serial == s->serial ? ad__stream_choice.stream : 0;
    const size_t mark = s->output.gathered.size;
    if (stream == s->stream.current) return;
    if (ad__encode_numbers(&s->output.gathered, AD_REQ_ON, 1, &stream)) { /* the message that follows fails, too */
        s->output.gathered.size = mark;
        return;
    }
    s->encoded.ops++;
    s->stream.current = stream;
}

int ad_stream_use(ad_session *s, uint64_t stream) {
    if (ad__is_foreign(s)) return ad__fail_foreign();
    ad__stream_choice = (ad_stream_choice){s->serial, stream};
    pthread_mutex_lock(&s->lock);
    if (stream) s->stream.used = true;
    pthread_mutex_unlock(&s->lock);
    return 0;
}

uint64_t ad_stream_current(const ad_session *s) {
    return ad__stream_choice.serial == s->serial ? ad__stream_choice.stream : 0;
}

/* ---- streams ---- */

static uint64_t take_next_id(ad_session *s, uint64_t *counter) {
    pthread_mutex_lock(&s->lock);
    uint64_t id = (*counter)++;
    pthread_mutex_unlock(&s->lock);
    return id;
}

int ad_stream_open(ad_session *s, int device, int priority, uint64_t *stream) {
    if (ad__is_foreign(s)) return ad__fail_foreign();
    int status = check_device(s, device);
    if (status) return status;
    uint64_t id = take_next_id(s, &s->next_id.stream) * AD_DEFAULT_STREAMS + (uint64_t)device;
    status = ad__send_numbers(s, AD_REQ_STREAM, 3, (uint64_t[]){id, (uint64_t)device, priority > 0});
    if (!status) *stream = id;
    return status;
}

int ad_stream_drop(ad_session *s, uint64_t stream) {
    int status = ad__send_numbers(s, AD_REQ_STREAM_DROP, 1, &stream);
    if (status) return status;
    pthread_mutex_lock(&s->lock);
    if (s->stream.current == stream) s->stream.current = 0; /* the server then uses stream 0, too */
    pthread_mutex_unlock(&s->lock);
    return 0;
}

static int ask_two_fields(ad_session *s, int opcode, uint64_t event, uint64_t id, ad_slot *slot) {
    ad__slot_init(slot, NULL, 0);
    return ad__ask_numbers(s, opcode, 2, (uint64_t[]){event, id}, slot);
}

static int query_done(ad_session *s, uint64_t event, uint64_t id, bool *out) {
    ad_slot slot;
    int status = ask_two_fields(s, AD_REQ_DONE, event, id, &slot);
    if (!status) *out = slot.nvalues > 0 && slot.values[0] != 0;
    return status;
}

int ad_stream_wait(ad_session *s, uint64_t stream) {
    ad_slot slot;
    return ask_two_fields(s, AD_REQ_WAIT, 0, stream, &slot);
}

int ad_stream_done(ad_session *s, uint64_t stream, bool *out) { return query_done(s, 0, stream, out); }

int ad_stream_follow(ad_session *s, uint64_t stream, uint64_t event) {
    return ad__send_numbers(s, AD_REQ_AFTER, 2, (uint64_t[]){stream, event});
}

/* ---- events ---- */

int ad_event_record(ad_session *s, uint64_t stream, bool timed, uint64_t *event) {
    if (ad__is_foreign(s)) return ad__fail_foreign();
    uint64_t id = *event ? *event : take_next_id(s, &s->next_id.event);
    int status = ad__send_numbers(s, AD_REQ_EVENT, 3, (uint64_t[]){id, stream, timed});
    if (!status) *event = id;
    return status;
}

int ad_event_drop(ad_session *s, uint64_t event) { return ad__send_numbers(s, AD_REQ_EVENT_DROP, 1, &event); }

int ad_event_wait(ad_session *s, uint64_t event) {
    ad_slot slot;
    return ask_two_fields(s, AD_REQ_WAIT, 1, event, &slot);
}

int ad_event_done(ad_session *s, uint64_t event, bool *out) { return query_done(s, 1, event, out); }

int ad_event_elapsed(ad_session *s, uint64_t from, uint64_t to, double *milliseconds) {
    ad_slot slot;
    int status = ask_two_fields(s, AD_REQ_ELAPSED, from, to, &slot);
    if (!status) *milliseconds = slot.real;
    return status;
}
