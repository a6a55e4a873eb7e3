/* Windows: memory that a client shares, from and to which arrays are copied without a socket in between.
 *
 * A window is a memfd of the client's, sealed against shrinking (else the client could make the server fault), whose
 * descriptor came over its Unix socket. Descriptors are taken off the socket in the order in which they came, each by
 * the next window request. Only whoever runs the engine calls these, but for ad__descriptors_*. */
#ifndef AD_SERVER_WORKER_NET_WINDOWS_H
#define AD_SERVER_WORKER_NET_WINDOWS_H

#include <pthread.h>

#include "kernels/backend.h"
#include "protocol/message.h"

struct ad_session;

#define AD_WINDOWS 256    /* of a session */
#define AD_DESCRIPTORS 16 /* come, and not yet asked for */

/* Descriptors on their way from the I/O thread to the engine. They are numbered from 0 on as they come. */
typedef struct ad_descriptors {
    pthread_mutex_t lock;
    int fd[AD_DESCRIPTORS];
    unsigned count;
    uint64_t taken;                                    /* so many have been */
    void (*seen)(void *user, int fd, uint64_t number); /* told of each that comes; NULL: nobody is */
    void *user;
} ad_descriptors;

void ad__descriptors_init(ad_descriptors *d);
void ad__descriptors_close(ad_descriptors *d);
int ad__descriptors_put(ad_descriptors *d, int fd);    /* AD_E_LIMIT: closed */
bool ad__descriptors_has_unclaimed(ad_descriptors *d); /* nobody has asked for some of them yet */
/* The next one, and its number; -1: none has come. */
int ad__descriptors_take(ad_descriptors *d, uint64_t *number);
/* The next one is for a message that is not executed. */
void ad__descriptor_skip(struct ad_session *s);

typedef struct ad_window {
    uint64_t id, size;
    void *base;
    int fd;
    uint64_t descriptor; /* the number that fd had */
    bool pinned;         /* copies reach it without a detour */
    uint32_t place;      /* its row's in the journal; 0: it has none */
} ad_window;

typedef struct ad_windows {
    ad_window *list;
    size_t count, capacity;
    uint64_t bytes;
    ad_descriptors descriptors;
} ad_windows;

/* WINDOW, WINDOW_DROP, LOAD: a status, with a fault that names the request. */
int ad__windows_op(struct ad_session *s, const ad_message *m, ad_fault *fault);
/* size bytes at offset of a window; NULL with a fault. */
ad_window *ad__window_find(struct ad_session *s, uint64_t id, uint64_t offset, uint64_t size, const char *what,
                           ad_fault *fault);
ad_window *ad__window_known(struct ad_session *s, uint64_t id); /* NULL: there is none */
/* One that another worker had; fd is the window's on success. AD_E_MEMORY and others. */
int ad__window_restore(struct ad_session *s, uint64_t id, uint64_t size, int fd, uint64_t number, ad_fault *fault);
/* One that is not in the list any more is done with. */
void ad__window_release(struct ad_session *s, const ad_window *w);
/* Once nothing is under way. */
void ad__windows_close(struct ad_session *s);

#endif
