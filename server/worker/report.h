/* What arrayd asks for: reports, and a session's messages as text. */
#ifndef AD_SERVER_WORKER_REPORT_H
#define AD_SERVER_WORKER_REPORT_H

#include "server/worker/net/session.h"

/* What ended sessions have done, by principal. */
typedef struct ad_past ad_past;

/* Runner: tell arrayd what is known. question, what: of the note. */
void ad__report_send(ad_worker *w, uint64_t question, uint64_t what);
/* Runner: a session is over, and what it has done is kept. */
void ad__report_add_ended(ad_session *s);
/* After the last session. */
void ad__report_close(ad_worker *w);

/* I/O thread: KILL and TRACE. fd as in the note. */
void ad__report_kill_session(ad_worker *w, const ad_note *note);
void ad__report_trace_session(ad_worker *w, const ad_note *note, int fd);

#endif
