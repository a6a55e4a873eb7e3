/* The connection of a test's session, and what goes on around it: how many bytes it takes, what happens behind each
 * that it has taken, and what the clock says. The linker gives these calls of the library to client_connection.c
 * (Makefile, WRAPS_client). */
#ifndef AD_TESTS_UNIT_CLIENT_CONNECTION_H
#define AD_TESTS_UNIT_CLIENT_CONNECTION_H

#include <stdatomic.h>
#include <stdbool.h>

enum { ANY = -1, FULL = -2 };

struct connection {
    atomic_long room;                /* bytes that it takes before it is full; FULL: somebody has found it so */
    atomic_long sent;                /* bytes that it has taken */
    atomic_uint_fast64_t ahead;      /* ns that the clock has moved on while it was full, so that nobody has to wait */
    atomic_uint looks;               /* how often the clock was looked at */
    atomic_bool threadless;          /* no thread can be made: each call sends what it has gathered itself */
    atomic_bool refuses;             /* it takes no descriptors */
    atomic_uint later;               /* what TLS and a session that comes back send is taken so many times later */
    atomic_uint followed;            /* sends of TLS that announced another one */
    void (*_Atomic on_sent)(int fd); /* called behind each send over any socket, once at a time */
    void (*_Atomic on_peek)(void);   /* called before a look at what has come */
};
extern struct connection connection;

/* How often the calling thread looks at the clock until that has leapt: by more than anybody waits. 0: it does not. */
extern _Thread_local unsigned connection_leap;

/* Let the connection take everything from now on. */
void connection_clear(void);

#endif
