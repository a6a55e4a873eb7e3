#include "server/worker/device/pace.h"

#define ENOUGH 1e6  /* ns that must have been measured before a result counts */
#define RECENT 50e6 /* ns of measurements after which older ones count half */
#define LEAST 0.5
#define MOST 4096.0 /* an upper bound: a user's kernel may take any time */

double ad__pace(const ad_pace *p) {
    if (p->measured < ENOUGH) return 1;
    double factor = p->measured / p->expected;
    return factor < LEAST ? LEAST : factor > MOST ? MOST : factor;
}

void ad__pace_note(ad_pace *p, double expected, int64_t asked, int64_t before, int64_t now, unsigned sessions) {
    if (asked >= before || expected <= 0) return;
    p->expected += expected;
    p->measured += (double)(now - before) / (sessions ? sessions : 1);
    if (p->measured < RECENT) return;
    p->expected /= 2;
    p->measured /= 2;
}
