/* Windows: memory of a client from and to which arrays are copied without a socket in between.
 *
 *     client: np.ndarray ──▶ [ window: a memfd mapped by both ] ──▶ server: upload to the device
 *
 * A window is a memfd of the client's, sealed against shrinking: otherwise the client could make the server fault. Its
 * descriptor comes over the Unix socket. Each window request takes the next descriptor, in the order in which they
 * came. Runner only. */
#ifndef AD_SERVER_WORKER_SESSION_WINDOWS_H
#define AD_SERVER_WORKER_SESSION_WINDOWS_H

#include "kernels/backend.h"
#include "protocol/message.h"
#include "server/worker/base/component.h"
#include "server/worker/io/descriptors.h"

struct ad_worker_session;

#define AD_WINDOWS 256        /* most windows of a session */
#define AD_REFUSED_WINDOWS 16 /* the last refused windows, of which the session knows why */

/* Close the next descriptor, because its message is not executed. */
void ad__descriptor_skip(struct ad_worker_session *s);

typedef struct ad_window {
    uint64_t id, size;
    void *base;
    int fd;
    uint64_t descriptor; /* number of the descriptor fd */
    bool pinned;         /* the backend copies to and from it directly */
    bool lost;           /* the memory is not the client's: its descriptor went with a worker */
    uint32_t place;      /* its row in the journal; 0: none */
} ad_window;

/* A window for which there was no room, and what a request that uses it is told. */
typedef struct ad_refused_window {
    uint64_t id; /* 0: none */
    struct ad_poison *why;
} ad_refused_window;

typedef struct ad_windows {
    ad_window *list;
    size_t count, capacity;
    uint64_t bytes;
    ad_descriptors descriptors;
    ad_refused_window refused[AD_REFUSED_WINDOWS];
    size_t refusals; /* number of windows that were refused so far */
} ad_windows;

/* Find a window that has size bytes at offset. NULL with a fault. */
ad_window *ad__window_find(struct ad_worker_session *s, uint64_t id, uint64_t offset, uint64_t size, const char *what,
                           ad_fault *fault);

extern const ad_component ad__component_windows;

#endif
