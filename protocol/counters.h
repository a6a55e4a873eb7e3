/* Ids of the rows of counter.def, AD_COUNTER_ops_done ..., and their texts.
 *
 * Only files that count include this header, so that a new counter does not rebuild the others. */
#ifndef AD_PROTOCOL_COUNTERS_H
#define AD_PROTOCOL_COUNTERS_H

enum {
#define AD_COUNTER(index, name, ...) AD_COUNTER_##name = (index),
#include "protocol/counter.def"
#undef AD_COUNTER
    AD_NCOUNTER,
};

typedef struct ad_counter_row {
    const char *name, *doc;
} ad_counter_row;
extern const ad_counter_row ad__counters[AD_NCOUNTER]; /* name NULL: there is no counter of that index */

#endif
