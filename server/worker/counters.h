/* The values of the counters that stat and reports have. */
#ifndef AD_SERVER_WORKER_COUNTERS_H
#define AD_SERVER_WORKER_COUNTERS_H

#include "protocol/counters.h"
#include "server/worker/session.h"

/* Runner: evaluate the column "value" of each row of counter.def. */
void ad__counters_get(ad_worker_session *s, int64_t values[AD_NCOUNTER]);

#endif
