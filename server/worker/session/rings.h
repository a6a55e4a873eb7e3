/* Rings of sessions: memory shared with clients that wait for answers again and again. docs/internals/ring.md.
 *
 *     no ring ──client often waits──▶ asleep ──bytes over the socket, spinning pays──▶ awake
 *                                        ▲                                              │
 *                                        └──── nothing came for a while, loop sleeps ───┘
 *
 * I/O thread only. */
#ifndef AD_SERVER_WORKER_SESSION_RINGS_H
#define AD_SERVER_WORKER_SESSION_RINGS_H

#include "server/worker/session.h"

/* Look at a session's ring from now on, or offer it one, if that is likely to pay. Call it when its client has sent
 * something over the socket. */
void ad__ring_attend(ad_worker_session *s);
/* Note that a session was read and nothing had come. The ring is not looked at until its socket has something, if the
 * next bytes come that way. */
void ad__ring_note_nothing(ad_worker_session *s);
/* Forget the ring; the connection is over, or about to be. */
void ad__ring_close(ad_worker_session *s);
/* Read all rings that have something, for whose sessions read is called. */
void ad__rings_read(ad_worker *w, void (*read)(ad_worker_session *s));
/* Look at all rings again and again, for a microsecond or for some (ad_ring_patience). True: one has something. */
bool ad__rings_await(ad_worker *w);
/* Let all rings sleep, because the loop is about to. False: something has come. */
bool ad__rings_sleep(ad_worker *w);

#endif
