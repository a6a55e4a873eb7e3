/* Input: the thread that reads decodes the server's frames. A payload goes straight to the memory of the call that
 * waits for it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client-c/client.h"
#include "protocol/rows_request.h"

#define INPUT_SIZE (32u << 10)

int ad__receiver_open(ad_receiver *in) {
    in->data = malloc(INPUT_SIZE);
    in->capacity = INPUT_SIZE;
    if (!in->data || ad__reader_new(&in->reader)) return AD_E_MEMORY;
    return 0;
}

void ad__receiver_close(ad_receiver *in) {
    free(in->data);
    if (in->reader) ad__reader_free(in->reader);
    ad__arena_free(&in->arena);
}

void ad__trace_messages(ad_session *s, const char *arrow, ad_reader *reader, ad_arena *arena, const uint8_t *control,
                        size_t size) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    ad_message m;
    char text[512];
    if (ad__reader_begin(reader, control, size, NULL)) return;
    while (ad__reader_next(reader, arena, ~0u, &m, NULL) == 1) {
        pthread_mutex_lock(&lock); /* the threads that send and receive print both */
        ad__message_hide(&m, &s->tracing.secret);
        pthread_mutex_unlock(&lock);
        ad__message_text(&m, text, sizeof text);
        fprintf(stderr, "arrayd[%d.%llu] %s %s\n", (int)getpid(), (unsigned long long)s->welcome.session, arrow, text);
        ad__arena_reset(arena);
    }
}

/* ---- messages ---- */

static void copy_string(char *out, size_t size, const ad_string *s) {
    snprintf(out, size, "%.*s", (int)(s->size < size ? s->size : size), s->data);
}

static void handle_welcome(ad_session *s, const ad_message *m) {
    if (s->handshake.welcomed && !s->handshake.inherited) {
        ad__kill_session_locked(s, "protocol violated: a second welcome");
        return;
    }
    const ad_welcome before = s->welcome;
    s->welcome = *m->welcome;
    if (s->handshake.inherited) { /* a session may be resumed before its welcome, and resuming changes the secret */
        s->welcome.instance = before.instance;
        memcpy(s->welcome.name, before.name, sizeof before.name);
        memcpy(s->welcome.principal, before.principal, sizeof before.principal);
        memcpy(s->welcome.peers, before.peers, sizeof before.peers);
        memcpy(s->welcome.secret, before.secret, sizeof before.secret);
    }
    s->handshake.welcomed = true;
    s->handshake.inherited = false;
    ad__wake_all(s);
}

/* Record that the server has received and answered a request. */
static void record_answer(ad_session *s, const ad_message *m) {
    if (m->u[0] > s->input.replied && m->u[0] < s->next_id.request) s->input.replied = m->u[0];
    ad__record_ack(s, m->u[1]);
}

static void finish_slot(ad_session *s, ad_slot *slot) {
    ad__slot_remove(s, slot);
    slot->done = true;
    ad__wake_all(s);
}

static int64_t convert_to_int(const ad_scalar *v) {
    switch (v->kind) {
    case AD_SCALAR_INT: return v->as.i;
    case AD_SCALAR_UINT: return INT64_MAX;
    case AD_SCALAR_BOOL: return v->as.b;
    default: return 0;
    }
}

/* Check a frame of a reply whose payload is part of an array, and set the payload's destination. */
static void place_array_reply(ad_session *s, ad_slot *slot, const ad_message *m) {
    ad_receiver *in = &s->input.receiver;
    uint64_t size = in->frame.payload;
    if (m->nvalues != 2 || (uint64_t)slot->values[0] != slot->size || (uint64_t)slot->values[1] != slot->got ||
        size > slot->size - slot->got || (size == 0 && slot->size)) {
        ad__kill_session_locked(s, "protocol violated: a reply of another size than the array's");
        return;
    }
    in->request = m->u[0];
    in->offset = slot->got;
    if (slot->size == 0) finish_slot(s, slot);
}

static void place_sized_reply(ad_session *s, ad_slot *slot, const ad_message *m) {
    ad_receiver *in = &s->input.receiver;
    if (in->frame.payload > slot->size || in->frame.flags & AD_FRAME_MORE) {
        ad__kill_session_locked(s, "protocol violated: a reply that is too long");
        return;
    }
    in->request = m->u[0];
    in->offset = 0;
    slot->size = in->frame.payload;
    if (slot->size == 0) finish_slot(s, slot);
}

static void handle_reply(ad_session *s, const ad_message *m) {
    ad_slot *slot = ad__slot_find(s, m->u[0]);
    record_answer(s, m);
    if (!slot) { /* the caller was interrupted */
        s->input.receiver.request = 0;
        return;
    }
    slot->nvalues = m->nvalues < AD_SLOT_VALUES ? (int)m->nvalues : AD_SLOT_VALUES;
    for (int i = 0; i < slot->nvalues; i++) slot->values[i] = convert_to_int(&m->values[i]);
    if (slot->nvalues && m->values[0].kind == AD_SCALAR_FLOAT) slot->real = m->values[0].as.f;
    if (slot->variable) place_sized_reply(s, slot, m);
    else if (slot->data) place_array_reply(s, slot, m);
    else finish_slot(s, slot);
}

/* Defer the failure of an earlier operation to the program's next call. */
static void defer_failure(ad_session *s, const ad_slot *slot) {
    ad_deferred *d = &s->input.deferred;
    if (d->status || !slot->number) return;
    d->status = slot->status;
    d->number = slot->number;
    memcpy(d->name, slot->name, sizeof d->name);
    memcpy(d->text, slot->text, sizeof d->text);
}

static void handle_fail(ad_session *s, const ad_message *m) {
    ad_slot *slot = ad__slot_find(s, m->u[0]);
    record_answer(s, m);
    if (!slot) return;
    slot->status = m->u[2] > 0 && m->u[2] < 1000 ? -(int)m->u[2] : AD_E_INTERNAL;
    slot->number = m->u[3];
    copy_string(slot->name, sizeof slot->name, &m->s[0]);
    copy_string(slot->text, sizeof slot->text, &m->s[1]);
    if (slot->internal) defer_failure(s, slot);
    finish_slot(s, slot);
}

static void handle_ack(ad_session *s, const ad_message *m) { ad__record_ack(s, m->u[0]); }

static void handle_bye(ad_session *s, const ad_message *m) {
    char text[AD_FAULT_TEXT - 40], why[AD_FAULT_TEXT];
    copy_string(text, sizeof text, &m->s[0]);
    snprintf(why, sizeof why, "the server closed the connection: %s", text);
    int status = m->u[0] > 0 && m->u[0] < 1000 ? -(int)m->u[0] : AD_E_CONNECTION;
    if (!s->handshake.welcomed || status == AD_E_DEVICE_LOST) s->handshake.refused = status;
    ad__kill_session_locked(s, why);
}

static void dispatch_message(ad_session *s, const ad_message *m) {
    static void (*const handlers[AD_REQUEST_LIMIT])(ad_session *, const ad_message *) = {
        [AD_REQ_WELCOME] = handle_welcome, [AD_REQ_REPLY] = handle_reply, [AD_REQ_FAIL] = handle_fail,
        [AD_REQ_ACK] = handle_ack,         [AD_REQ_BYE] = handle_bye,
    };
    if (!s->handshake.welcomed && m->opcode != AD_REQ_WELCOME && m->opcode != AD_REQ_BYE)
        ad__kill_session_locked(s, "protocol violated: the server did not begin with welcome");
    else if (handlers[m->opcode]) handlers[m->opcode](s, m);
}

/* Handle all messages of a control block. */
static void handle_control(ad_session *s, const uint8_t *control, size_t size) {
    ad_receiver *in = &s->input.receiver;
    ad_fault fault;
    ad_message m = {0};
    int result = ad__reader_begin(in->reader, control, size, &fault);
    in->request = 0;
    pthread_mutex_lock(&s->lock);
    while (result >= 0 && !s->dead) {
        result = ad__reader_next(in->reader, &in->arena, AD_BIT(AD_CLASS_TELL), &m, &fault);
        if (result <= 0) break;
        dispatch_message(s, &m);
    }
    if (result < 0) ad__kill_session_locked(s, fault.text);
    else if (in->frame.payload && m.opcode != AD_REQ_REPLY)
        ad__kill_session_locked(s, "protocol violated: a payload that nothing claims");
    pthread_mutex_unlock(&s->lock);
    ad__arena_reset(&in->arena);
}

/* ---- payloads ---- */

/* Return the destination of the payload's next bytes, and let the slot stay until end_piece. NULL: the caller has given
 * up, and the bytes are dropped. */
static uint8_t *begin_piece(ad_session *s, ad_slot **slot) {
    pthread_mutex_lock(&s->lock);
    *slot = s->input.receiver.request ? ad__slot_find(s, s->input.receiver.request) : NULL;
    if (*slot) (*slot)->receiving = true;
    pthread_mutex_unlock(&s->lock);
    return *slot ? (*slot)->data + s->input.receiver.offset : NULL;
}

/* Record that n bytes of the payload have been stored or dropped. */
static void end_piece(ad_session *s, ad_slot *slot, size_t n) {
    ad_receiver *in = &s->input.receiver;
    in->left -= n;
    in->offset += n;
    if (!slot) return;
    pthread_mutex_lock(&s->lock);
    slot->receiving = false;
    slot->got += n;
    if (in->left == 0 && !(in->frame.flags & AD_FRAME_MORE)) {
        if (slot->got < slot->size)
            ad__kill_session_locked(s, "protocol violated: a reply of another size than the array's");
        else finish_slot(s, slot);
    } else if (s->waiting.threads) {
        ad__wake_all(s); /* abandon_slot may wait for the end of the piece */
    }
    pthread_mutex_unlock(&s->lock);
}

/* ---- bytes ---- */

/* Explain bytes that no arrayd sends in answer to hello. */
static const char *explain_stranger(const ad_session *s) {
    const ad_receiver *in = &s->input.receiver;
    const char *other =
        s->handshake.welcomed ? NULL : ad__frame_name_stranger(in->data + in->begin, in->end - in->begin);
    if (!other) return NULL;
    if (!strcmp(other, "TLS")) return "the server speaks TLS there: write tls: for tcp:";
    return "that is a web server (HTTP): write the port of arrayd's option tcp or tls, not of its page (option "
           "metrics)";
}

/* Handle the next part of the bytes that have come; true: more bytes must come first. */
static bool parse_next(ad_session *s) {
    ad_receiver *in = &s->input.receiver;
    ad_fault fault;
    size_t there = in->end - in->begin;
    if (in->left) {
        ad_slot *slot;
        size_t n = there < in->left ? there : in->left;
        if (n == 0) return true;
        uint8_t *out = begin_piece(s, &slot);
        if (out) memcpy(out, in->data + in->begin, n);
        in->begin += n;
        end_piece(s, slot, n);
        return false;
    }
    if (there < AD_FRAME_HEADER) return true;
    if (ad__frame_decode(in->data + in->begin, AD_MAX_CONTROL, AD_MAX_PAYLOAD, &in->frame, &fault)) {
        const char *stranger = explain_stranger(s);
        ad__kill_session(s, stranger ? stranger : fault.text);
        return true;
    }
    if (there < AD_FRAME_HEADER + in->frame.control) return true;
    const uint8_t *control = in->data + in->begin + AD_FRAME_HEADER;
    if (s->tracing.on) ad__trace_messages(s, "<-", in->reader, &in->arena, control, in->frame.control);
    in->begin += AD_FRAME_HEADER + in->frame.control;
    in->left = in->frame.payload;
    handle_control(s, control, in->frame.control);
    return false;
}

/* Move the bytes to the front of the buffer, and make room for the rest of a large control block. */
static int make_input_room(ad_receiver *in) {
    size_t there = in->end - in->begin, need = INPUT_SIZE;
    if (there >= AD_FRAME_HEADER) need = AD_FRAME_HEADER + in->frame.control;
    if (in->begin) {
        memmove(in->data, in->data + in->begin, there);
        in->begin = 0;
        in->end = there;
    }
    if (need > in->capacity) {
        uint8_t *more = realloc(in->data, need);
        if (!more) return AD_E_MEMORY;
        in->data = more;
        in->capacity = need;
    }
    return 0;
}

static void lose_tls_connection(ad_session *s) {
    char why[AD_FAULT_TEXT];
    ad__secure_error(s->connection.secure, why, sizeof why);
    ad__lose_connection(s, "connection lost: %.200s", why);
}

static ssize_t receive_bytes(ad_session *s, void *data, size_t size, int flags) {
    ssize_t n = s->connection.secure ? ad__secure_receive(s->connection.secure, data, size, flags)
                                     : ad__ring_receive(s, data, size, flags);
    if (n > 0) {
        atomic_fetch_add_explicit(&s->input.received, (uint64_t)n, memory_order_relaxed);
        return n;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    s->input.receiver.closed = true;
    const char *stranger = explain_stranger(s); /* an alert of TLS is shorter than a frame */
    if (stranger) ad__kill_session(s, stranger);
    else if (n == 0) ad__lose_connection(s, "connection lost: the server has gone");
    else if (s->connection.secure) lose_tls_connection(s);
    else ad__lose_connection(s, "connection lost: %s", strerror(errno));
    return 0;
}

/* Receive a payload straight into its destination, when the buffer is empty. */
static int receive_payload(ad_session *s, int flags) {
    ad_receiver *in = &s->input.receiver;
    ad_slot *slot;
    uint8_t *out = begin_piece(s, &slot);
    size_t room = out ? in->left : in->left < in->capacity ? in->left : in->capacity;
    ssize_t n = receive_bytes(s, out ? out : in->data, room, flags);
    end_piece(s, slot, (size_t)n);
    return n > 0;
}

int ad__receiver_run(ad_session *s, int flags) {
    ad_receiver *in = &s->input.receiver;
    if (in->begin == in->end) {
        in->begin = in->end = 0;
        if (in->left) return receive_payload(s, flags);
    }
    if (make_input_room(in) != 0) {
        ad__kill_session(s, "connection lost: out of memory in this process");
        return 0;
    }
    ssize_t n = receive_bytes(s, in->data + in->end, in->capacity - in->end, flags);
    in->end += (size_t)n;
    while (n > 0 && !parse_next(s))
        ;
    return n > 0;
}
