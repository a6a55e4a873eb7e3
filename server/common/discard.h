/* Closing descriptors that clients have passed.
 *
 * close() of such a descriptor may wait for as long as its client wants: a TCP socket lingers until its peer has read,
 * and the daemon of a FUSE file system answers late or never. The last close() of a socket closes descriptors in its
 * queue, too, which nobody has received. Threads that serve several clients leave both to the threads here.
 *
 * Waiting for a socket is interrupted after some ms. Waiting for a FUSE file cannot be ended, so each client has a
 * thread of its own, and no descriptors are received from a client of which too many wait already. */
#ifndef AD_SERVER_DISCARD_H
#define AD_SERVER_DISCARD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

#define AD_DISCARD_LIMIT 256 /* descriptors of one client that may wait to be closed, when others are received */
/* Room for all descriptors that can come at once (Linux: SCM_MAX_FD). The kernel closes those for which there is none,
 * and then the receiving thread waits. */
#define AD_DISCARD_MOST 253

#define AD_DISCARD_STRANGER "?" /* a client of which nothing is known yet */

/* Close a descriptor that the client `who` has passed; "": it is of a process of arrayd's own, and is closed at once.
 * It never waits for the client. Any thread. */
void ad__discard(const char *who, int fd);
/* Close the last descriptor of a client's connection. It is done at once if nothing unread is in its queue. */
void ad__discard_connection(const char *who, int fd);
/* Tell whether so many descriptors of the client wait to be closed that no more may be received. */
bool ad__discard_is_full(const char *who);
/* Tell whether a descriptor is of a kind that clients pass for a purpose: memory, or a Unix socket. It asks nothing of
 * the file system that the descriptor may belong to. */
bool ad__discard_is_useful(int fd);
/* Discard all descriptors of a received message but the first, and return that one. -1: there is none. */
int ad__discard_others(const char *who, struct msghdr *m);
/* Receive bytes as recv() does, and discard the descriptors beside them. -1 with errno EDQUOT: too many wait already.
 */
ssize_t ad__discard_receive(const char *who, int socket, void *data, size_t size);

#endif
