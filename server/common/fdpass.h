/* Packets with a descriptor over a Unix socket. */
#ifndef AD_SERVER_FDPASS_H
#define AD_SERVER_FDPASS_H

#include <stddef.h>
#include <sys/types.h>

/* Send one packet, with fd unless it is -1. The result is that of sendmsg: -1 and errno on failure. */
ssize_t ad__fdpass_send(int socket, const void *data, size_t size, int fd);
#define AD_FD_LOST (-2)
/* Receive one packet; *fd is its descriptor, close-on-exec, or -1, or AD_FD_LOST: it had one, but this process can
 * open no more. A packet longer than size gives -1 and EMSGSIZE. Otherwise the result is that of recvmsg. Descriptors
 * that nobody wants are closed as those of the client `who` (discard.h; "": a process of arrayd's own). */
ssize_t ad__fdpass_receive(const char *who, int socket, void *data, size_t size, int *fd);

#endif
