/* Resuming: sessions whose connection is closed, and how their clients come back.
 *
 *     connected ──connection closes──▶ away ──resume with secret──▶ connected
 *                                       │
 *                                       └─resume-time is over, or the client's process ends──▶ the session ends
 *
 * Both directions of a session are streams of bytes that each end counts. A closed connection does not change the
 * session. Complete frames are executed, and half a frame stays half read. Output that the client has not acknowledged
 * is held (output.h). A new connection with the session's id and secret continues both streams at exactly these bytes.
 * So every frame is executed once. I/O thread. */
#ifndef AD_SERVER_WORKER_SESSION_RESUME_H
#define AD_SERVER_WORKER_SESSION_RESUME_H

#include "server/worker/base/component.h"

struct ad_worker_session;

typedef struct ad_comeback {
    bool able;     /* the client may come back at all */
    bool native;   /* the connection is the fork's socket pair, which no other process has */
    bool left;     /* the client has said that it will not come back */
    int64_t until; /* without a connection, the session waits for one until then */
    uint8_t secret[AD_SECRET];
    ad_offers offers;
    uint64_t key;     /* key of the fork, which names the session to the client until its welcome; 0: not a fork */
    uint64_t process; /* the client's process, as the kernel says, too; 0: unknown */
    int process_fd;   /* pidfd of the process while the client is away; -1: none */
    uint64_t count;   /* how often the client has come back */
} ad_comeback;

extern const ad_component ad__component_comeback;

/* Wait for the client after its connection was closed. False: it cannot come back, and the session must end. */
bool ad__session_await_client(struct ad_worker_session *s, const char *why);
/* Tell whether the client's process is known to have ended. Any thread. */
bool ad__session_client_ended(const struct ad_worker_session *s);
/* Tell whether the client is away and will not come back. */
bool ad__session_is_forsaken(struct ad_worker_session *s, int64_t now);
/* Confirm the client and its secret, because it has sent bytes. */
void ad__session_confirm_client(struct ad_worker_session *s);
/* Send bye to a client that gets no session, as far as the socket takes it, and close the socket. */
void ad__session_refuse(const char *who, int fd, int code, const char *why);
/* Take a note (frame.h) from the client. AD_E_PROTOCOL. */
int ad__session_take_note(struct ad_worker_session *s, const ad_frame *note, ad_fault *fault);
/* Let a connection from arrayd resume the session (NULL: there is none), or refuse it. Nobody watches the session's
 * socket meanwhile (session.h, ad__session_resume). */
void ad__session_take_up(struct ad_worker_session *s, const ad_note *note, int fd);
/* End a session that waits for its client, because another session needs its place. */
void ad__session_forsake(struct ad_worker_session *s);

#endif
