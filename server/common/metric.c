#include "server/common/metric.h"

const ad_metric ad__metrics[AD_NCOUNTER] = {
#define AD_COUNTER(index, counter, scope, kind, metric, scale, value, doc) \
    [index] = {index, AD_METRIC_##scope, AD_METRIC_##kind, metric, scale},
#include "protocol/counter.def"
#undef AD_COUNTER
};
