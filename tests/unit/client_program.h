/* A program with one session and an array, for tests of connections that are lost, full or inherited. */
#ifndef AD_TESTS_UNIT_CLIENT_PROGRAM_H
#define AD_TESTS_UNIT_CLIENT_PROGRAM_H

#include "client-c/client.h"
#include "tests/unit/client_connection.h"
#include "tests/unit/client_fake.h"

#define RESUME_MS 60000 /* time in which a session of these tests may be taken up: more than a test takes */

extern struct program {
    fake *f;
    ad_session *s;
    ad_array *a; /* three numbers */
    bool alone;  /* the session gets no thread of its own */
} program;

/* Open the session, and let the server have the array. */
void program_begin(const fake_options *options);
/* As program_begin, without a thread of the session's, and with a connection that takes nothing from now on, where a
 * call that waits is interrupted. */
void program_begin_full(const fake_options *options);
/* Close it, and let connections take everything again. */
void program_end(void);
/* Check that the server has the array. */
void program_check(void);
/* Close the connection, and let the session find it. To the session it was LONG ago: no fork waits for another one. */
#define LONG INT64_C(10000000000)
void program_lose(void);
/* Move the time at which the connection was lost by so many ns. */
void program_move_loss(int64_t ns);
/* Pass a new window. *fd: its descriptor; NULL: nobody wants to know. Returns the library's status. */
int program_pass_window(int *fd);
/* Tell whether the process has the descriptor. */
bool program_has(int fd);
/* Interrupt whatever waits: for ad_session_set_interrupt. */
int program_interrupt(void *unused);
/* Let the process get no more descriptors, until they are given again. */
void program_take_descriptors(void);
void program_give_descriptors(void);
/* Take the connection as it is for a child that has just been forked. */
void program_become_child(void);
/* Fork a child that ends at once, after it has let go what it has. */
void program_fork(void);

#endif
