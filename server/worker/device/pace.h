/* Ratio of measured to estimated device time of a session. */
#ifndef AD_SERVER_WORKER_DEVICE_PACE_H
#define AD_SERVER_WORKER_DEVICE_PACE_H

#include <stdbool.h>
#include <stdint.h>

/* Measurements so far. Initialised with zeros. */
typedef struct ad_pace {
    double expected, measured; /* ns; older measurements count less and less */
} ad_pace;

/* Get the factor to multiply an estimate by. */
double ad__pace(const ad_pace *p);
/* Add a measurement: work estimated at `expected` ns was enqueued at `asked` and complete at `now`. The work before it
 * on its stream was complete at `before`; `sessions` sessions were using the device. Work that did not have to wait is
 * ignored: its time would include the delays of starting it and of noticing its end. */
void ad__pace_note(ad_pace *p, double expected, int64_t asked, int64_t before, int64_t now, unsigned sessions);

#endif
