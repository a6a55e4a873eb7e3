/* Sessions: opened, read, executed turn by turn, answered and dropped. */
#ifndef AD_SERVER_WORKER_SESSION_SESSION_H
#define AD_SERVER_WORKER_SESSION_SESSION_H

#include "server/worker/session.h"

/* I/O thread: open a session on a client's socket, which it owns from here on; closed on failure. AD_E_MEMORY,
 * AD_E_SYSTEM. */
int ad__session_open(ad_worker *w, const ad_note *note, int fd);
/* The two halves of ad__session_open. Any thread may call the first; NULL: no memory, and the socket is closed. The I/O
 * thread calls the second; after its failure the session must be ended. */
ad_worker_session *ad__session_new(ad_worker *w, const ad_note *note, int fd);
int ad__session_begin(ad_worker_session *s);
/* I/O thread: end a session whose client is gone, after the forks that it has sent. */
void ad__session_end_after_forks(ad_worker_session *s);
/* I/O thread: read once what the client has sent, and queue whole frames for the engine. */
void ad__session_read(ad_worker_session *s);
/* I/O thread: receive all that the client has sent over its connection, which takes nothing more from it. */
void ad__session_drain(ad_worker_session *s);
/* I/O thread: queue received frames for the engine, without reading the socket. */
void ad__session_go_on(ad_worker_session *s);
/* I/O thread: look at a session after the runner has changed something. */
void ad__session_attend(ad_worker_session *s);
/* I/O thread: watch the socket for these events of libuv's; 0: none. */
void ad__session_watch(ad_worker_session *s, int events);
/* I/O thread: start the clock that calls ad__sessions_tick. */
void ad__sessions_watch(ad_worker *w);
/* I/O thread: take a connection from arrayd that resumes a session, or refuse it. */
void ad__session_resume(ad_worker *w, const ad_note *note, int fd);
/* Any thread: send bye, as far as the socket takes it. */
void ad__session_say_bye(ad_worker_session *s, int code, const char *text);
/* I/O thread: send bye and end the session. */
void ad__session_bye(ad_worker_session *s, int code, const char *text);
/* I/O thread, periodically: handle time-outs. True: some session must be watched further. */
bool ad__sessions_tick(ad_worker *w);
/* I/O thread: find a session by id; NULL: none. */
ad_worker_session *ad__session_find(ad_worker *w, uint64_t id);

/* ---- session_run.c: turns ---- */
/* Execute messages for `budget` ns from turns.since on; a hook of engine/. */
ad_turn ad__session_turn(ad_worker_session *s, int64_t budget, int64_t limit);
ad_turn ad__session_drop(ad_worker_session *s); /* hook of engine/ */

/* ---- execute.c, reads.c; runner only ---- */
/* Execute a message (class OP or ASK). Its failure is recorded in the session, or answered. False: the session waits,
 * or earlier operations need more than this turn; call it again. */
bool ad__execute(ad_worker_session *s, ad_message *m);
/* Give back the memory that a read holds; no effect without a read. */
void ad__reading_end(ad_worker_session *s);

/* The components of a session in this room. */
extern const ad_component ad__component_socket, ad__component_reading, ad__component_messages;

#endif
