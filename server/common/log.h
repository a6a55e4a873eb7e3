/* The log: one logfmt line on standard error for each event. */
#ifndef AD_SERVER_LOG_H
#define AD_SERVER_LOG_H

typedef enum ad_log_level { AD_LOG_ERROR, AD_LOG_WARN, AD_LOG_INFO, AD_LOG_DEBUG } ad_log_level;

/* Find a level by its name; -1: there is none. */
int ad__log_level(const char *name);
/* From now on write only events up to this level. */
void ad__log_set(int level);
/* Set the component that every line names, such as "front" or "worker". The string must stay. */
void ad__log_name(const char *component);
/* Write one line: time, level, component, event, then the pairs "key=%s key=%d". Strings are quoted where necessary.
 * Of other conversions only d, u and x and their l and z forms are there. */
void ad__log(ad_log_level level, const char *event, const char *pairs, ...) __attribute__((format(printf, 3, 4)));

#endif
