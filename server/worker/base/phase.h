/* Phases of a session, seen from its socket and from the runner.
 *
 *     socket   NEW ─▶ OPEN ◀──▶ AWAY        ENDING: bye is being sent; LINGERING: it is being read
 *               │       │ └──────┐│
 *               │       ▼        ▼▼
 *               │     ENDING ──▶ CLOSED
 *               │       └─▶ LINGERING ─▶ CLOSED
 *               └──────────────▶ CLOSED
 *
 *     runner   LIVE ◀──▶ STALLED ─▶ OVER ─▶ DROPPING ─▶ DROPPED
 *                └──────────────────▲
 *
 * One function changes each. Where sanitizers watch (AD_DEBUG), a step that the drawing lacks ends the process. */
#ifndef AD_SERVER_WORKER_BASE_PHASE_H
#define AD_SERVER_WORKER_BASE_PHASE_H

#include <stdbool.h>

struct ad_worker_session;

typedef enum ad_socket_phase {
    AD_SOCKET_NEW,       /* nobody watches the socket yet, or that has failed */
    AD_SOCKET_OPEN,      /* the session reads and sends */
    AD_SOCKET_AWAY,      /* the connection is closed, and the session waits for another (session/resume.h) */
    AD_SOCKET_ENDING,    /* the last output is sent */
    AD_SOCKET_LINGERING, /* all is sent: input is discarded until the client closes */
    AD_SOCKET_CLOSED
} ad_socket_phase;

typedef enum ad_run_phase {
    AD_RUN_LIVE,
    AD_RUN_STALLED,  /* the session waits for its output to shrink */
    AD_RUN_OVER,     /* nothing more is executed */
    AD_RUN_DROPPING, /* nothing of the session is under way any more: what it has is freed */
    AD_RUN_DROPPED   /* all is freed: the I/O thread may close the session */
} ad_run_phase;

/* True if the step is in the drawing. */
bool ad__socket_may_enter(ad_socket_phase from, ad_socket_phase to);
bool ad__run_may_enter(ad_run_phase from, ad_run_phase to);
/* I/O thread: change the phase of the socket. */
void ad__socket_enter(struct ad_worker_session *s, ad_socket_phase to);
/* Change the phase of the runner. The engine's lock is held. */
void ad__run_enter(struct ad_worker_session *s, ad_run_phase to);

/* Get the runner's phase. Any thread; it may change at once unless the engine's lock is held. */
ad_run_phase ad__run_phase(const struct ad_worker_session *s);
/* True if nothing more of the session is executed. */
bool ad__run_is_over(const struct ad_worker_session *s);
/* True if nothing of the session is under way any more: it is being freed, or was. */
bool ad__run_is_dropping(const struct ad_worker_session *s);

#endif
