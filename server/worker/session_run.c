/* The runner's side of a session: from frames to executed messages. */
#include <stdlib.h>

#include "server/common/log.h"
#include "server/common/os.h"
#include "server/worker/session.h"

#define ALLOWED (AD_BIT(AD_CLASS_OP) | AD_BIT(AD_CLASS_ASK))
#define CLOCK_EVERY 32  /* cheap messages between two looks at the clock */
#define CHEAP 5000.0    /* ns: above that the clock is looked at each time */
#define ROOM (1u << 20) /* bytes queued below which a paused client is read again */
#define FLUSH_AT (64u << 10)

static int protocol_error(ad_session *s, int status, const ad_fault *fault) {
    ad__reply_bye(s, status, *fault->text ? fault->text : ad__error_text(status));
    ad__log(AD_LOG_WARN, "session refused", "session=%lu principal=%s why=%s", s->id, s->principal, fault->text);
    return status;
}

/* Pop the next frame and begin to read it: 1, 0 none, negative: the session is over. */
static int begin_frame(ad_session *s) {
    ad_engine *e = &s->worker->engine;
    ad_fault fault = {0};
    pthread_mutex_lock(&e->lock);
    bool got = !s->over && ad__input_pop(&s->queue, &s->frame);
    if (got && s->want_room && s->queue.bytes < ROOM) {
        s->want_room = false;
        pthread_mutex_unlock(&e->lock);
        ad__engine_attend(s);
    } else {
        pthread_mutex_unlock(&e->lock);
    }
    if (!got) return 0;
    if (!s->frame.block) return protocol_error(s, s->refusal.code, &s->refusal);
    s->in_frame = true;
    s->payload_used = false;
    s->frame_used = 0;
    s->bytes_in += AD_FRAME_HEADER + s->frame.control_size + (uint64_t)s->frame.payload_size;
    if (s->worker->config.trace) ad__trace(s, "<-", s->frame.control, s->frame.control_size);
    int status = s->reader ? 0 : ad__reader_new(&s->reader);
    if (!status) status = ad__reader_begin(s->reader, s->frame.control, s->frame.control_size, &fault);
    return status ? protocol_error(s, status, &fault) : 1;
}

static int end_frame(ad_session *s) {
    ad_fault fault;
    bool claimed = s->payload_used || !s->frame.payload_size;
    s->in_frame = false;
    s->bytes_done += AD_FRAME_HEADER + s->frame.control_size + (uint64_t)s->frame.payload_size;
    ad__input_release(&s->frame);
    if (claimed) return 0;
    int status = ad__fault(&fault, AD_E_PROTOCOL, "a payload that no message claims");
    return protocol_error(s, status, &fault);
}

/* write claims the payload: only as the last message of its block, and only when there is one. */
static int check_payload(ad_session *s, ad_fault *fault) {
    if (s->message.opcode != AD_REQ_WRITE) return 0;
    if (s->frame_used != s->frame.control_size)
        return ad__fault(fault, AD_E_PROTOCOL, "write is not the last message of its frame");
    if (!s->frame.payload_size) return ad__fault(fault, AD_E_PROTOCOL, "write without a payload");
    s->payload_used = true;
    return 0;
}

/* 1: s->message is the next one; 0: none has come; negative: the session is over. */
static int next_message(ad_session *s) {
    ad_fault fault = {0};
    if (s->has_message) return 1;
    for (;;) {
        int status = s->in_frame ? 1 : begin_frame(s);
        if (status <= 0) return status;
        ad__arena_reset(&s->arena);
        status = ad__reader_next(s->reader, &s->arena, ALLOWED, &s->message, &fault);
        if (status > 0) {
            s->frame_used += s->message.size;
            status = check_payload(s, &fault);
            if (status) return protocol_error(s, status, &fault);
            s->cost = ad__exec_cost(s, &s->message);
            s->has_message = true;
            return 1;
        }
        if (status < 0) return protocol_error(s, status, &fault);
        if ((status = end_frame(s))) return status;
    }
}

/* False: the message waits for output to shrink. */
static bool execute(ad_session *s) {
    if (s->message.row->cls == AD_CLASS_ASK) {
        if (!ad__ask(s, &s->message)) return false;
        s->requests++;
    } else {
        ad__exec_op(s, &s->message);
        s->done++;
    }
    s->has_message = false;
    return true;
}

ad_turn ad__session_turn(ad_session *s, int64_t budget, double limit) {
    int64_t until = ad__os_now() + budget;
    for (unsigned i = 1;; i++) {
        int status = next_message(s);
        if (status < 0 || atomic_load_explicit(&s->output.broken, memory_order_relaxed)) return AD_TURN_OVER;
        if (status == 0) break;
        double cost = s->cost;
        if (cost > limit) return AD_TURN_HEAVY;
        if (cost > CHEAP * 10 && ad__output_flush(&s->output)) ad__engine_attend(s);
        if (!execute(s)) return AD_TURN_STALLED;
        ad__reply_ack(s, false);
        if (atomic_load_explicit(&s->output.queued, memory_order_relaxed) > FLUSH_AT && ad__output_flush(&s->output))
            ad__engine_attend(s);
        if ((cost > CHEAP || i % CLOCK_EVERY == 0) && ad__os_now() >= until) return AD_TURN_MORE;
    }
    ad__reply_ack(s, true);
    return AD_TURN_EMPTY;
}

static void free_buffer(void *user, ad_buffer *b) {
    ad_session *s = user;
    ad__memory_give(s->estate, &b->block);
    ad__poison_release(b->poison);
}

void ad__session_drop(ad_session *s) {
    ad_engine *e = &s->worker->engine;
    pthread_mutex_lock(&e->lock);
    bool again = s->dropped;
    ad__input_clear(&s->queue);
    pthread_mutex_unlock(&e->lock);
    if (again) return;
    if (s->in_frame) ad__input_release(&s->frame);
    s->in_frame = s->has_message = false;
    if (s->reading.active) ad__memory_give(s->estate, &s->reading.copy);
    ad__buffers_clear(&s->buffers, free_buffer, s);
    if (s->stream) s->worker->backend->stream_close(s->stream);
    if (s->estate) ad__estate_close(s->estate);
    ad__poison_release(s->pending);
    ad__reader_free(s->reader);
    ad__arena_free(&s->arena);
    s->stream = NULL;
    s->estate = NULL;
    s->pending = NULL;
    s->reader = NULL;
}

ad_stream *ad__session_stream(ad_session *s, ad_fault *fault) {
    ad_worker *w = s->worker;
    if (!s->estate && !(s->estate = ad__estate_open(&w->memory, s->principal))) {
        ad__fault(fault, AD_E_MEMORY, "out of host memory");
        return NULL;
    }
    if (!s->stream && ad__session_status(s, w->backend->stream_open(w->device, 0, &s->stream, fault), fault))
        return NULL;
    return s->stream;
}

int ad__session_status(ad_session *s, int status, const ad_fault *fault) {
    if (status == AD_E_DEVICE_LOST) ad__worker_lost(s->worker, fault ? fault->text : "device lost");
    return status;
}
