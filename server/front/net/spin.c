/* Waiting awake. Each byte of a TLS connection comes through here, and where a client asks and waits for the answer,
 * being put to sleep and woken twice costs more than all the rest. So the loop looks again for a moment before it
 * sleeps, as long as that has paid of late, as the worker's does; it yields in between. */
#include <sched.h>

#include "server/common/os.h"
#include "server/front/front.h"

#define SPIN 50000  /* ns */
#define SOON 100000 /* ns until the next bytes that would have been worth it, waking included */
#define QUICK_MOST 8
#define QUICK_ENOUGH 3

static void on_busy(uv_idle_t *idle) {
    (void)idle;
    sched_yield();
}

static bool spins(ad_spin *s) {
    int64_t now = ad__os_now();
    if (s->idle <= s->heard) s->idle = now;
    return s->quick >= QUICK_ENOUGH && now - s->idle < SPIN;
}

static void on_polled(uv_check_t *check) {
    ad_spin *s = check->data;
    if (spins(s)) uv_idle_start(&s->busy, on_busy);
    else uv_idle_stop(&s->busy);
}

void ad__spin_init(ad_front *f) {
    ad_spin *s = &f->spin;
    uv_check_init(&f->loop, &s->after_poll);
    uv_idle_init(&f->loop, &s->busy);
    s->after_poll.data = s;
    uv_check_start(&s->after_poll, on_polled);
    uv_unref((uv_handle_t *)&s->after_poll);
    uv_unref((uv_handle_t *)&s->busy);
}

void ad__spin_heard(ad_front *f) {
    ad_spin *s = &f->spin;
    int64_t now = ad__os_now();
    if (now - s->idle > SOON) s->quick -= s->quick > 0;
    else s->quick += s->quick < QUICK_MOST;
    s->heard = now;
}
