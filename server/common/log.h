/* The log: one logfmt line on standard error for each event. */
#ifndef AD_SERVER_LOG_H
#define AD_SERVER_LOG_H

typedef enum ad_log_level { AD_LOG_ERROR, AD_LOG_WARN, AD_LOG_INFO, AD_LOG_DEBUG } ad_log_level;

/* The level by its name, or -1. */
int ad__log_level(const char *name);
/* Only events up to this level are written from now on. */
void ad__log_set(int level);
/* The component that every line names: "front", "worker". The string must stay. */
void ad__log_name(const char *component);
/* One line: time, level, component, event, then the pairs "key=%s key=%d". %s is quoted where it must be; of the other
 * conversions d, u, x and their l and z forms are there. */
void ad__log(ad_log_level level, const char *event, const char *pairs, ...) __attribute__((format(printf, 3, 4)));

#endif
