/* How each counter is shown: columns of counter.def. */
#ifndef AD_SERVER_METRIC_H
#define AD_SERVER_METRIC_H

#include "protocol/counters.h"
#include "protocol/base.h"

typedef enum ad_metric_scope { AD_METRIC_SESSION, AD_METRIC_WORKER } ad_metric_scope;
typedef enum ad_metric_kind { AD_METRIC_COUNTER, AD_METRIC_GAUGE } ad_metric_kind;

typedef struct ad_metric {
    int counter; /* index of counter.def */
    ad_metric_scope scope;
    ad_metric_kind kind;
    const char *name; /* "": Prometheus is not told */
    double scale;
} ad_metric;

extern const ad_metric ad__metrics[AD_NCOUNTER]; /* by the counter's index */

#endif
