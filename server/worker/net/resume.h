/* Sessions whose connection is gone, and how their clients come back.
 *
 * Both directions of a session are streams of bytes that each end counts. Where a connection breaks nothing happens to
 * the session: what has come whole is executed, half a frame stays half read, and what the client has not said that it
 * has is kept (output.h). A new connection that shows the session's id and secret goes on at exactly these bytes, so
 * that every frame is executed once, whatever it asks for. The I/O thread's. */
#ifndef AD_SERVER_WORKER_NET_RESUME_H
#define AD_SERVER_WORKER_NET_RESUME_H

#include "server/worker/journal/journal.h"

struct ad_session;
struct ad_worker;

typedef struct ad_comeback {
    bool able;     /* the client may come back at all */
    bool native;   /* it has the connection with which a fork began the session, and no other process has that */
    bool left;     /* it has said that it will not */
    bool away;     /* there is no connection ... */
    int64_t until; /* ... and the session waits for one until then */
    uint8_t secret[AD_SECRET];
    ad_offers offers;
    uint64_t key;     /* of the fork, by which the client knows the session until it is welcomed; 0: of none */
    uint64_t process; /* the client's, as the kernel says, too; 0: not known */
    int process_fd;   /* while it is away; -1: none */
    uint64_t count;   /* how often it has come back */
} ad_comeback;

void ad__comeback_init(struct ad_session *s, const ad_note *note);
void ad__comeback_close(struct ad_session *s);
/* The connection is gone. False: nobody will come back, the session is to end. */
bool ad__session_await_client(struct ad_session *s, const char *why);
/* Its process is known, and has ended. Any thread. */
bool ad__session_client_ended(const struct ad_session *s);
/* It is away, and nobody will come back any more. */
bool ad__session_is_forsaken(struct ad_session *s, int64_t now);
/* Bytes have come. */
void ad__session_confirm_client(struct ad_session *s);
/* Say bye, as far as the socket takes it, to who gets no session, and close it. */
void ad__session_refuse(int fd, int code, const char *why);
/* A note (frame.h) has come. AD_E_PROTOCOL. */
int ad__session_take_note(struct ad_session *s, const ad_frame *note, ad_fault *fault);
/* arrayd has passed on a connection that is to take the place of a session's; refused where that is not so. */
void ad__session_take_up(struct ad_worker *w, const ad_note *note, int fd);
/* Another session wants its place: end it, if it waits. */
void ad__session_forsake(struct ad_worker *w, uint64_t id);

#endif
