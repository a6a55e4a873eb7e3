/* Windows: memfds that this process and the server have both mapped. Private to windows.c, parts.c and fork.c, where
 * the lock guards all of it. Parts of a window are handed out; a pool is a session's windows and outlives the session
 * while parts are in use. */
#ifndef AD_CLIENT_C_MEMORY_WINDOWS_H
#define AD_CLIENT_C_MEMORY_WINDOWS_H

#include "client-c/client.h"

typedef struct ad_host_window {
    struct ad_host_window *next;
    uint64_t id, idle_since;
    uint8_t *base;
    size_t size;
    ad_host *first;
    size_t live, used; /* parts that somebody has; with those that the server may still use */
} ad_host_window;

struct ad_pool {
    ad_pool *next;
    ad_session *session;     /* NULL: it has gone, or is the parent process's */
    bool left;               /* it has gone, and the pool goes with its last part */
    _Atomic uint64_t looked; /* for idle windows */
    ad_host_window *windows;
    ad_host *free, *draining;
    size_t bytes, draining_bytes;
    _Atomic size_t limit;
    atomic_bool off; /* the server does not want windows */
};

extern pthread_mutex_t ad__pools_lock;
extern ad_pool *ad__pools;
/* The session's pool, made when there is none; NULL: it can have none. Locks. */
ad_pool *ad__pool_of(ad_session *s);
/* These are called with the lock held. */
void ad__pool_add(ad_pool *pool, ad_host_window *w, ad_host *whole);
ad_host_window *ad__pool_take_idle(ad_pool *pool, uint64_t since); /* out of the pool; NULL: none idle for so long */
void ad__window_free(ad_host_window *w);
void ad__pool_tidy(ad_pool *pool); /* after the session: unmaps what is not in use, and frees the pool with the last */
/* Share size bytes more with the server. AD_E_UNSUPPORTED and others. */
int ad__pool_grow(ad_session *s, ad_pool *pool, size_t size);
/* Gives back windows that have been idle since then. */
int ad__pool_shrink(ad_session *s, ad_pool *pool, uint64_t since);
/* The lock is held from the first to one of the others. */
void ad__pools_before_fork(void);
void ad__pools_forked(void);
void ad__pools_in_child(void);

#endif
