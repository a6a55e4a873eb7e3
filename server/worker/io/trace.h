/* Traces of sessions' messages as text. Any thread. */
#ifndef AD_SERVER_WORKER_IO_TRACE_H
#define AD_SERVER_WORKER_IO_TRACE_H

#include "server/worker/session.h"

static inline bool ad__is_traced(const ad_worker_session *s) {
    return s->worker->config.trace || atomic_load_explicit(&s->tracer.on, memory_order_relaxed);
}
/* Print the messages of a traced session's block. direction: "<-" or "->". */
void ad__trace(ad_worker_session *s, const char *direction, const uint8_t *control, size_t size);
/* Trace the session to this pipe from now on, which is owned here; -1: stop. */
void ad__trace_to(ad_worker_session *s, int fd);

extern const ad_component ad__component_trace;

#endif
