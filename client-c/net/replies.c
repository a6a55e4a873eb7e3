/* Waiting for replies. One of the waiting threads reads for all of them; there is no thread that only reads. */
#include <sched.h>
#include <sys/socket.h>
#include <time.h>

#include "client-c/client.h"

#define STEP_NS 50000000u /* time between two checks of the interrupt */
#define SPIN_NS 40000u
#define SPIN_CREDIT_MOST 16
#define SPIN_PAUSE 32 /* waits without spinning after the credit is used up */

void ad__slot_init(ad_slot *slot, void *data, uint64_t size) {
    slot->data = data;
    slot->size = size;
    slot->got = slot->number = 0;
    slot->done = slot->receiving = slot->persistent = slot->variable = slot->internal = false;
    slot->status = slot->nvalues = 0;
    slot->real = 0;
}

ad_slot *ad__slot_find(ad_session *s, uint64_t request) {
    ad_slot *slot = s->input.slots;
    while (slot && slot->request != request) slot = slot->next;
    return slot;
}

void ad__slot_add(ad_session *s, ad_slot *slot) {
    slot->request = s->next_id.request++;
    slot->next = s->input.slots;
    s->input.slots = slot;
}

void ad__slot_remove(ad_session *s, ad_slot *slot) {
    for (ad_slot **p = &s->input.slots; *p; p = &(*p)->next) {
        if (*p == slot) {
            *p = slot->next;
            return;
        }
    }
}

void ad__wake_all(ad_session *s) {
    if (s->waiting.threads) pthread_cond_broadcast(&s->waiting.changed);
}

void ad__wait_changed(ad_session *s) {
    uint64_t until = ad__now() + STEP_NS;
    struct timespec t = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
    s->waiting.threads++;
    pthread_cond_timedwait(&s->waiting.changed, &s->lock, &t);
    s->waiting.threads--;
}

/* Read without sleeping for a short time; true: bytes have come, or the connection has ended. Most replies come within
 * microseconds, less than a sleep and a wake-up take. Yielding lets a server on the same processor run. Where other
 * programs want the processor yielding takes long: the credit drops, and spinning stops for a while. */
static bool spin_for_input(ad_session *s) {
    const uint64_t begin = ad__now();
    uint64_t now = begin;
    int came = 0;
    const bool ring = atomic_load_explicit(&s->ring.memory, memory_order_relaxed) != NULL;
    while (!s->input.receiver.closed && now - begin < SPIN_NS) {
        if (!ring || ad__ring_await(s)) came = ad__receiver_run(s, MSG_DONTWAIT);
        if (came) break;
        sched_yield();
        now = ad__now();
    }
    if (came)
        s->input.receiver.spin_credit =
            s->input.receiver.spin_credit < SPIN_CREDIT_MOST ? s->input.receiver.spin_credit + 1 : SPIN_CREDIT_MOST;
    else
        s->input.receiver.spin_credit =
            s->input.receiver.spin_credit > 2 ? s->input.receiver.spin_credit - 2 : -SPIN_PAUSE;
    return came || s->input.receiver.closed;
}

static void read_for_all(ad_session *s) {
    s->input.reading = true;
    pthread_mutex_unlock(&s->lock);
    if (s->input.receiver.spin_credit < 0) s->input.receiver.spin_credit++;
    if (s->input.receiver.spin_credit < 0 || !spin_for_input(s)) ad__receiver_run(s, 0);
    pthread_mutex_lock(&s->lock);
    s->input.reading = false;
    ad__wake_all(s);
    if (ad__must_send_receipt(s)) ad__push_output(s); /* a failure ends the session, and is reported there */
}

void ad__read_now(ad_session *s, bool all) {
    s->input.reading = true;
    pthread_mutex_unlock(&s->lock);
    for (bool more = !s->input.receiver.closed; more;) more = ad__receiver_run(s, MSG_DONTWAIT) && all;
    pthread_mutex_lock(&s->lock);
    s->input.reading = false;
    ad__wake_all(s);
}

/* Ask the program whether to go on, every STEP_NS. AD_E_INTERRUPTED. The caller holds the lock, which is released
 * meanwhile. */
static int check_interrupt(ad_session *s, uint64_t *checked) {
    if (!s->calls.interrupt.check) return 0;
    uint64_t now = ad__now();
    if (now - *checked < STEP_NS) return 0;
    *checked = now;
    int (*check)(void *) = s->calls.interrupt.check;
    void *argument = s->calls.interrupt.argument;
    pthread_mutex_unlock(&s->lock);
    int stop = check(argument);
    pthread_mutex_lock(&s->lock);
    return stop ? ad__fail(AD_E_INTERRUPTED, "interrupted") : 0;
}

int ad__wait(ad_session *s, uint64_t *checked) {
    if (s->input.reading || s->resume.lost) ad__wait_changed(s);
    else read_for_all(s);
    return check_interrupt(s, checked);
}

int ad__wait_writer(ad_session *s, uint64_t *checked) {
    ad__wait_changed(s);
    return check_interrupt(s, checked);
}

/* Give up waiting: the reply will be dropped. Waits while the reading thread writes into the slot's data. */
static void abandon_slot(ad_session *s, ad_slot *slot) {
    while (slot->receiving) ad__wait_changed(s);
    if (!slot->persistent) ad__slot_remove(s, slot);
}

/* Fail with the deferred failure, and clear it. */
static int fail_deferred(ad_session *s) {
    ad_deferred d = s->input.deferred;
    s->input.deferred.status = 0;
    return ad__fail_remote(d.status, d.number, d.name, d.text);
}

static int get_outcome(ad_session *s, const ad_slot *slot) {
    if (!slot->done) return ad__fail_dead(s);
    if (slot->status) return ad__fail_remote(slot->status, slot->number, slot->name, slot->text);
    return s->input.deferred.status && !slot->internal ? fail_deferred(s) : 0;
}

/* Send a request that has been encoded, or take it back when that failed. The caller holds the lock. */
static int submit_request(ad_session *s, size_t mark, int status, ad_slot *slot) {
    if (!status && !s->output.gathered.failed) return ad__push_output(s);
    s->output.gathered.size = mark;
    s->output.gathered.failed = false;
    ad__slot_remove(s, slot);
    slot->persistent = false;
    return ad__fail_memory();
}

/* Wait for the reply, and release the lock, which the caller holds. */
static int await_reply(ad_session *s, int status, ad_slot *slot) {
    uint64_t checked = ad__now();
    while (!status && !slot->done && !s->dead) status = ad__wait(s, &checked);
    if (!slot->done) abandon_slot(s, slot);
    if (!status) status = get_outcome(s, slot);
    pthread_mutex_unlock(&s->lock);
    return status;
}

int ad__commit_ask(ad_session *s, size_t mark, int status, ad_slot *slot) {
    s->counts.round_trips++;
    return await_reply(s, submit_request(s, mark, status, slot), slot);
}

int ad__commit_ask_async(ad_session *s, size_t mark, int status, ad_slot *slot) {
    s->counts.round_trips++;
    status = submit_request(s, mark, status, slot);
    pthread_mutex_unlock(&s->lock);
    return status;
}

int ad__await_ask(ad_session *s, ad_slot *slot) {
    pthread_mutex_lock(&s->lock);
    return await_reply(s, 0, slot);
}

int ad__send_numbers(ad_session *s, int opcode, size_t n, const uint64_t *fields) {
    int status = ad__begin(s);
    if (status) return status;
    size_t mark = s->output.gathered.size;
    return ad__commit(s, mark, ad__encode_numbers(&s->output.gathered, opcode, n, fields));
}

int ad__ask_numbers(ad_session *s, int opcode, size_t n, const uint64_t *fields, ad_slot *slot) {
    uint64_t all[8];
    int status = ad__begin_ask(s);
    if (status) return status;
    size_t mark = s->output.gathered.size;
    ad__slot_add(s, slot);
    all[0] = slot->request;
    for (size_t i = 0; i < n; i++) all[i + 1] = fields[i];
    return ad__commit_ask(s, mark, ad__encode_numbers(&s->output.gathered, opcode, n + 1, all), slot);
}
