#include "server/common/metric.h"

const ad_metric ad__metrics[] = {
#define AD_METRIC(counter, scope, kind, name, scale) \
    {AD_COUNTER_##counter, AD_METRIC_##scope, AD_METRIC_##kind, name, scale},
#include "server/common/metric.def"
#undef AD_METRIC
};
const int ad__metrics_count = sizeof ad__metrics / sizeof *ad__metrics;
