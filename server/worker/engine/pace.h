/* How much longer, or shorter, a device takes for what a session has it do than was estimated. */
#ifndef AD_SERVER_WORKER_ENGINE_PACE_H
#define AD_SERVER_WORKER_ENGINE_PACE_H

#include <stdbool.h>
#include <stdint.h>

/* Zero at first. */
typedef struct ad_pace {
    double expected, measured; /* ns; what is old counts less and less */
} ad_pace;

/* By what an estimate is to be multiplied. */
double ad__pace(const ad_pace *p);
/* Work that was estimated at `expected` ns was asked for at `asked`, and complete at `now`; what came before it on its
 * stream was complete at `before`, and so many sessions were using the device. Only what had to wait for that tells
 * something: other work took as long as it takes to begin and to notice the end. */
void ad__pace_note(ad_pace *p, double expected, int64_t asked, int64_t before, int64_t now, unsigned sessions);

#endif
