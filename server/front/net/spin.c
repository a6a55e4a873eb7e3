/* Busy waiting of the loop. All bytes of TLS connections pass through this process, and where a client waits for each
 * answer, sleeping and waking cost more than all else.
 *
 *     poll -> bytes relayed -> idle --(spin at most 50 us, yielding)--> poll -> sleep
 *
 * The loop spins before it sleeps as long as bytes have often come soon of late; the worker's loop does likewise. */
#include <sched.h>

#include "server/common/os.h"
#include "server/front/front.h"

#define SPIN 50000  /* ns that the loop spins before it sleeps */
#define SOON 100000 /* ns within which the next bytes must come for spinning to be worth it, waking included */
#define QUICK_MOST 8
#define QUICK_ENOUGH 3

static void on_idle_turn(uv_idle_t *idle) {
    (void)idle;
    sched_yield();
}

static bool must_spin(ad_spin *s) {
    int64_t now = ad__os_now();
    if (s->idle <= s->heard) s->idle = now;
    return s->quick >= QUICK_ENOUGH && now - s->idle < SPIN;
}

static void on_poll_done(uv_check_t *check) {
    ad_spin *s = check->data;
    if (must_spin(s)) uv_idle_start(&s->busy, on_idle_turn);
    else uv_idle_stop(&s->busy);
}

void ad__spin_init(ad_front *f) {
    ad_spin *s = &f->spin;
    uv_check_init(&f->loop, &s->after_poll);
    uv_idle_init(&f->loop, &s->busy);
    s->after_poll.data = s;
    uv_check_start(&s->after_poll, on_poll_done);
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
