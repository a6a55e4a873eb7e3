#include "server/worker/io/spin.h"

#include <string.h>

#include "server/common/os.h"
#include "server/worker/worker.h"

/* Spinning before sleeping. Sleeping and being woken costs 20 to 50 us on a virtual machine, as much as the rest of a
 * round trip. So while clients keep asking, the loop polls its sockets for a moment before it sleeps, as long as that
 * has paid lately. It yields in between: a client on the same processor runs at once.
 *
 * A round trip between two processes on two processors has a median of 40 us with sleep, and of 16 us with this. It has
 * one of 7 us when the client spins, too, but of 65 us when one of them spins without yielding. */
#define SPIN 50000  /* ns that the loop spins */
#define SOON 100000 /* ns until the next message for which spinning would have paid, waking included */
#define QUICK_MOST 8
#define QUICK_ENOUGH 3

void ad__worker_record_message(ad_worker *w) {
    int64_t now = ad__os_now();
    if (now - w->io.idle > SOON) w->io.quick -= w->io.quick > 0;
    else w->io.quick += w->io.quick < QUICK_MOST;
    w->io.heard = now;
}

bool ad__worker_spins(const ad_worker *w) {
    return (w->io.quick >= QUICK_ENOUGH || !strcmp(w->config.ring, "all")) && !w->ending.stopping;
}

bool ad__worker_must_spin(ad_worker *w) {
    int64_t now = ad__os_now();
    if (w->io.idle <= w->io.heard) w->io.idle = now;
    return ad__worker_spins(w) && now - w->io.idle < SPIN;
}
