/* Reports that arrayd asks for, and traces of sessions. */
#ifndef AD_SERVER_WORKER_REPORT_H
#define AD_SERVER_WORKER_REPORT_H

#include "server/worker/session.h"

/* Sums over ended sessions, by principal. */
typedef struct ad_past ad_past;

/* Runner: send arrayd a report. question, what: from its note. */
void ad__report_send(ad_worker *w, uint64_t question, uint64_t what);
extern const ad_component ad__component_past; /* adds an ended session to the sums of its principal */
/* Free the sums, after the last session. */
void ad__report_close(ad_worker *w);

/* I/O thread: execute arrayd's notes KILL and TRACE. fd as in the note. */
void ad__report_kill_session(ad_worker *w, const ad_note *note);
void ad__report_trace_session(ad_worker *w, const ad_note *note, int fd);

#endif
