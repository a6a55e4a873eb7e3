/* A front in the test's own process, and domains whose worker is the test: it has the other end of their channels. */
#ifndef AD_TESTS_UNIT_SERVER_FRONT_H
#define AD_TESTS_UNIT_SERVER_FRONT_H

#include "server/front/workers/domain_inside.h"

/* What a test lets happen where the front stops; NULL: nothing. */
extern void (*on_front_stop)(ad_front *f);

/* Begin and end a front with these options (NULL behind the last), which listens to nothing. */
void begin_front(ad_front *f, const char *const *options);
void end_front(ad_front *f);
/* Let the loop do all that it can do now. */
void run_front(ad_front *f);
/* Send bytes, and let the front do what it can do with them. */
void send_to_front(ad_front *f, int fd, const void *bytes, size_t size);

/* Add a domain whose worker is ready. *worker: the worker's end of the channel. */
ad_domain *add_domain(ad_front *f, const char *name, ad_channel *worker);
/* Take the next note that the worker was sent, which must be of this kind, and close its descriptor unless fd is not
 * NULL. */
ad_note take_note(ad_channel *worker, uint32_t kind, int *fd);
/* Tell whether no note is left. */
bool is_told_nothing(ad_channel *worker);

/* Give the front a certificate of its own making. The test is passed over where there is no OpenSSL. */
void make_tls(ad_front *f);

/* Let the n-th allocation from now on fail, of those that clear their memory (0: none); and nothing fail any more. */
void fail_calloc(int n);
void restore_calls(void);

/* Let the n-th close from now on of the test's thread say that it has failed (0: none); the descriptor is closed. */
void fail_close(int n);
/* Let other threads wait in close, or go on. */
void hold_closing(bool hold);

/* Let the loop not take the n-th descriptor from now on (0: it takes all again); server_listen.c. */
void fail_poll_init(int n);
unsigned count_open(void); /* how many descriptors this process has */

/* Make a pair of connected sockets of a client and the front. */
void make_connection(int fd[2]);
/* Fill the socket's buffer for what it sends, and return how many bytes that took. */
size_t fill_socket(int fd);
/* Read what has come, without waiting; text is ended by a NUL. Returns its size; -1: the connection is over. */
ssize_t read_text(int fd, char *text, size_t room);

#endif
