/* The log: one logfmt line on standard error for each event, which is a row of event.def. */
#ifndef AD_SERVER_LOG_H
#define AD_SERVER_LOG_H

#include <stdbool.h>

typedef enum ad_log_level { AD_LOG_NONE = -1, AD_LOG_ERROR, AD_LOG_WARN, AD_LOG_INFO, AD_LOG_DEBUG } ad_log_level;

/* Find a level by its name; -1: there is none. */
int ad__log_level(const char *name);
/* From now on write only events up to this level. */
void ad__log_set(int level);
/* Set the component that every line names, such as "front" or "worker". The string must stay. */
void ad__log_name(const char *component);

typedef enum ad_log_event {
#define AD_EVENT(id, ...) AD_EVENT_##id,
#include "server/common/event.def"
#undef AD_EVENT
    AD_NEVENT,
} ad_log_event;

/* The pairs of each row as constants, by which the compiler checks the arguments of ad__log. */
#define AD_EVENT(id, level, other, event, pairs, doc) \
    static const char ad__log_pairs_##id[] __attribute__((unused)) = pairs;
#include "server/common/event.def"
#undef AD_EVENT

/* Write one line: time, level, component, event, then its pairs with the arguments. Strings are quoted where necessary.
 * ad__log(session_lost, id, why) */
#define ad__log(id, ...) ad__log_event(AD_EVENT_##id, false, ad__log_pairs_##id, __VA_ARGS__)
/* Write one line, at the row's other level if is_other is true. */
#define ad__log_other(is_other, id, ...) ad__log_event(AD_EVENT_##id, is_other, ad__log_pairs_##id, __VA_ARGS__)
void ad__log_event(ad_log_event event, bool is_other, const char *pairs, ...) __attribute__((format(printf, 3, 4)));

#endif
