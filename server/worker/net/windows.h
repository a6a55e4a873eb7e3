/* Windows: memory of a client from and to which arrays are copied without a socket in between.
 *
 *     client: np.ndarray ──▶ [ window: a memfd mapped by both ] ──▶ server: upload to the device
 *
 * A window is a memfd of the client's, sealed against shrinking: otherwise the client could make the server fault. Its
 * descriptor comes over the Unix socket. Each window request takes the next descriptor, in the order in which they
 * came. Runner only, except for ad__descriptors_*. */
#ifndef AD_SERVER_WORKER_NET_WINDOWS_H
#define AD_SERVER_WORKER_NET_WINDOWS_H

#include <pthread.h>

#include "kernels/backend.h"
#include "protocol/message.h"

struct ad_session;

#define AD_WINDOWS 256    /* most windows of a session */
#define AD_DESCRIPTORS 16 /* most descriptors that have come and are not taken yet */

/* Descriptors on their way from the I/O thread to the runner, numbered from 0 as they come. */
typedef struct ad_descriptors {
    pthread_mutex_t lock;
    int fd[AD_DESCRIPTORS];
    unsigned count;
    uint64_t taken;                                    /* number of descriptors taken so far */
    void (*seen)(void *user, int fd, uint64_t number); /* called with each descriptor that comes; NULL: none */
    void *user;
} ad_descriptors;

void ad__descriptors_init(ad_descriptors *d);
void ad__descriptors_close(ad_descriptors *d);
/* Append a descriptor. AD_E_LIMIT: it is closed. */
int ad__descriptors_put(ad_descriptors *d, int fd);
/* Tell whether some descriptor is not taken yet. */
bool ad__descriptors_has_unclaimed(ad_descriptors *d);
/* Take the next descriptor and its number; -1: none has come. */
int ad__descriptors_take(ad_descriptors *d, uint64_t *number);
/* Close the next descriptor, because its message is not executed. */
void ad__descriptor_skip(struct ad_session *s);

typedef struct ad_window {
    uint64_t id, size;
    void *base;
    int fd;
    uint64_t descriptor; /* number of the descriptor fd */
    bool pinned;         /* the backend copies to and from it directly */
    uint32_t place;      /* its row in the journal; 0: none */
} ad_window;

typedef struct ad_windows {
    ad_window *list;
    size_t count, capacity;
    uint64_t bytes;
    ad_descriptors descriptors;
} ad_windows;

/* Execute WINDOW, WINDOW_DROP or LOAD. Returns a status, with a fault that names the request. */
int ad__windows_op(struct ad_session *s, const ad_message *m, ad_fault *fault);
/* Find a window that has size bytes at offset. NULL with a fault. */
ad_window *ad__window_find(struct ad_session *s, uint64_t id, uint64_t offset, uint64_t size, const char *what,
                           ad_fault *fault);
/* Find a window by id; NULL: none. */
ad_window *ad__window_known(struct ad_session *s, uint64_t id);
/* Restore a window of another worker; on success it owns fd. AD_E_MEMORY and others. */
int ad__window_restore(struct ad_session *s, uint64_t id, uint64_t size, int fd, uint64_t number, ad_fault *fault);
/* Release a window that is not in the list any more. */
void ad__window_release(struct ad_session *s, const ad_window *w);
/* Close all windows of a session, which must be idle. */
void ad__windows_close(struct ad_session *s);

#endif
