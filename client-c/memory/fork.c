/* Windows during a fork; resume/inherit.c calls these. Parent, child and server would see each other's writes in
 * windows that all have mapped. So the child copies the parts in use into memory of its own before any of its code
 * runs. The parent waits for that. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client-c/memory/windows.h"

static int copied[2] = {-1,
                        -1}; /* pipe whose end tells the parent that the child has copied; ad__pools_lock guards it */

static bool has_live_parts(void) {
    for (const ad_pool *pool = ad__pools; pool; pool = pool->next)
        for (const ad_host_window *w = pool->windows; w; w = w->next)
            if (w->live) return true;
    return false;
}

void ad__pools_before_fork(void) {
    pthread_mutex_lock(&ad__pools_lock);
    if (has_live_parts() && pipe2(copied, O_CLOEXEC) != 0) copied[0] = copied[1] = -1;
}

static void close_pipe_end(int end) {
    if (copied[end] >= 0) close(copied[end]);
    copied[end] = -1;
}

void ad__pools_forked(void) {
    char nothing;
    close_pipe_end(1);
    while (copied[0] >= 0 && read(copied[0], &nothing, 1) < 0 && errno == EINTR)
        ;
    close_pipe_end(0);
    pthread_mutex_unlock(&ad__pools_lock);
}

/* Replace a window by a copy in private memory. Without memory for it the child goes on sharing the window. */
static void copy_window(ad_host_window *w) {
    char *own = mmap(NULL, w->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (own == MAP_FAILED) return;
    for (const ad_host *h = w->first; h; h = h->after)
        if (h->state == AD_HOST_LIVE) memcpy(own + h->offset, w->base + h->offset, h->size);
    if (mremap(own, w->size, w->size, MREMAP_MAYMOVE | MREMAP_FIXED, w->base) == MAP_FAILED) munmap(own, w->size);
}

void ad__pools_in_child(void) {
    for (ad_pool *pool = ad__pools, *next; pool; pool = next) {
        next = pool->next;
        pool->session = NULL; /* the session is the parent's */
        pool->free = pool->draining = NULL;
        ad__pool_tidy(pool);
    }
    for (ad_pool *pool = ad__pools; pool; pool = pool->next)
        for (ad_host_window *w = pool->windows; w; w = w->next) copy_window(w);
    close_pipe_end(0);
    close_pipe_end(1);
    pthread_mutex_unlock(&ad__pools_lock);
}
