/* Windows: memfds that this process and the server have both mapped. A pool has the windows of a session, and outlives
 * the session while parts are in use. Private to windows.c, parts.c and fork.c. ad__pools_lock guards all of it.
 *
 *   pool --> window [ LIVE | FREE        | DRAINING | FREE   ]      first -> after -> after -> after
 *        --> window [ FREE                                   ]      idle: it may be given back */
#ifndef AD_CLIENT_C_MEMORY_WINDOWS_H
#define AD_CLIENT_C_MEMORY_WINDOWS_H

#include "client-c/client.h"

typedef struct ad_host_window {
    struct ad_host_window *next;
    uint64_t id, idle_since;
    uint8_t *base;
    size_t size;
    ad_host *first;
    size_t live, used; /* live: parts in the program's use; used: those and the draining ones */
} ad_host_window;

struct ad_pool {
    ad_pool *next;
    ad_session *session;       /* NULL: the session has ended, or is the parent process's */
    bool detached;             /* the session has ended, and the pool is freed with its last part */
    _Atomic uint64_t searched; /* time of the last search for idle windows */
    ad_host_window *windows;
    ad_host *free, *draining;
    size_t bytes, draining_bytes;
    _Atomic size_t limit;
    atomic_bool refused; /* the server refuses windows */
};

extern pthread_mutex_t ad__pools_lock;
extern ad_pool *ad__pools;
/* Return the session's pool, which is made when there is none; NULL: the session can have none. Takes the lock. */
ad_pool *ad__pool_of(ad_session *s);
/* The caller of the following four holds the lock. */
void ad__pool_add(ad_pool *pool, ad_host_window *w, ad_host *whole);
/* Remove a window that has been idle since then from the pool; NULL: there is none. */
ad_host_window *ad__pool_take_idle(ad_pool *pool, uint64_t since);
void ad__window_free(ad_host_window *w);
/* Unmap the windows that are not in use; after the session, free the pool with the last one. */
void ad__pool_tidy(ad_pool *pool);
/* Share at least size bytes more with the server. AD_E_UNSUPPORTED: the server refuses, or a limit is reached. */
int ad__pool_grow(ad_session *s, ad_pool *pool, size_t size);
/* Ask, where another worker may have taken over, whether the server still has the pool's windows. If one is lost, none is
 * used any more. AD_E_INTERRUPTED, AD_E_CONNECTION, AD_E_MEMORY. */
int ad__pool_check(ad_session *s, ad_pool *pool);
/* Give back windows that have been idle since then. */
int ad__pool_shrink(ad_session *s, ad_pool *pool, uint64_t since);
/* Prepare a fork, and continue in the parent or in the child. The lock is held in between. */
void ad__pools_before_fork(void);
void ad__pools_forked(void);
void ad__pools_in_child(void);

#endif
