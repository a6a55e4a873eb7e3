#include "server/worker/base/phase.h"

#include <stdio.h>
#include <stdlib.h>

#include "server/worker/session.h"

#define BIT(phase) (1u << (phase))

static const unsigned socket_steps[] = {
    [AD_SOCKET_NEW] = BIT(AD_SOCKET_OPEN) | BIT(AD_SOCKET_CLOSED),
    [AD_SOCKET_OPEN] = BIT(AD_SOCKET_AWAY) | BIT(AD_SOCKET_ENDING) | BIT(AD_SOCKET_CLOSED),
    [AD_SOCKET_AWAY] = BIT(AD_SOCKET_OPEN) | BIT(AD_SOCKET_CLOSED),
    [AD_SOCKET_ENDING] = BIT(AD_SOCKET_LINGERING) | BIT(AD_SOCKET_CLOSED),
    [AD_SOCKET_LINGERING] = BIT(AD_SOCKET_CLOSED),
    [AD_SOCKET_CLOSED] = 0,
};

static const unsigned run_steps[] = {
    [AD_RUN_LIVE] = BIT(AD_RUN_STALLED) | BIT(AD_RUN_OVER),
    [AD_RUN_STALLED] = BIT(AD_RUN_LIVE) | BIT(AD_RUN_OVER),
    [AD_RUN_OVER] = BIT(AD_RUN_DROPPING),
    [AD_RUN_DROPPING] = BIT(AD_RUN_DROPPED),
    [AD_RUN_DROPPED] = 0,
};

bool ad__socket_may_enter(ad_socket_phase from, ad_socket_phase to) { return socket_steps[from] >> to & 1; }

bool ad__run_may_enter(ad_run_phase from, ad_run_phase to) { return run_steps[from] >> to & 1; }

static void check_step(const ad_worker_session *s, const char *side, unsigned from, unsigned to, bool may) {
#ifdef AD_DEBUG
    if (may) return;
    fprintf(stderr, "session %lu: its %s went from phase %u to %u\n", (unsigned long)s->id, side, from, to);
    abort();
#else
    (void)s, (void)side, (void)from, (void)to, (void)may;
#endif
}

void ad__socket_enter(ad_worker_session *s, ad_socket_phase to) {
    check_step(s, "socket", s->socket.phase, to, ad__socket_may_enter(s->socket.phase, to));
    s->socket.phase = to;
}

void ad__run_enter(ad_worker_session *s, ad_run_phase to) {
    check_step(s, "runner", ad__run_phase(s), to, ad__run_may_enter(ad__run_phase(s), to));
    atomic_store_explicit(&s->turns.phase, to, memory_order_relaxed);
}

ad_run_phase ad__run_phase(const ad_worker_session *s) {
    return (ad_run_phase)atomic_load_explicit(&s->turns.phase, memory_order_relaxed);
}

bool ad__run_is_over(const ad_worker_session *s) { return ad__run_phase(s) >= AD_RUN_OVER; }

bool ad__run_is_dropping(const ad_worker_session *s) { return ad__run_phase(s) >= AD_RUN_DROPPING; }
