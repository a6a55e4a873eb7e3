#include "server/worker/sharing/leases.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "server/common/discard.h"
#include "server/worker/sharing/sharing.h"

bool ad__is_stream_socket(int fd) {
    int domain = 0, type = 0;
    socklen_t size = sizeof domain;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) || domain != AF_UNIX) return false;
    size = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

int ad__lease_watch(ad_worker *w, ad_held_lease *l, ad_fault *fault) {
    struct epoll_event end = {.events = EPOLLRDHUP, .data.ptr = l};
    if (!epoll_ctl(w->io.leases, EPOLL_CTL_ADD, l->fd, &end)) return 0;
    return ad__fault(fault, AD_E_SYSTEM, "a lease: %s", strerror(errno));
}

/* Stop watching a lease. Closing its descriptor is not enough, because other processes may have the same socket. */
static void unwatch_lease(ad_worker *w, const ad_held_lease *l) { epoll_ctl(w->io.leases, EPOLL_CTL_DEL, l->fd, NULL); }

void ad__lease_close(ad_worker *w, const char *who, ad_held_lease *l) {
    ad_held_lease **at = &w->sharing->ended;
    pthread_mutex_lock(&w->engine.lock);
    unwatch_lease(w, l);
    while (*at && *at != l) at = &(*at)->next;
    if (*at) *at = l->next;
    pthread_mutex_unlock(&w->engine.lock);
    ad__discard(who, l->fd);
}

/* A closed socket is listed under the lock, before the runner can close the lease. */
void ad__leases_look(ad_worker *w) {
    struct epoll_event event[64];
    pthread_mutex_lock(&w->engine.lock);
    int n = epoll_wait(w->io.leases, event, 64, 0);
    for (int i = 0; i < n; i++) {
        ad_held_lease *l = event[i].data.ptr;
        unwatch_lease(w, l);
        l->next = w->sharing->ended;
        w->sharing->ended = l;
    }
    pthread_mutex_unlock(&w->engine.lock);
}

static ad_held_lease *take_ended(ad_worker *w) {
    pthread_mutex_lock(&w->engine.lock);
    ad_held_lease *l = w->sharing->ended;
    if (l) w->sharing->ended = l->next;
    pthread_mutex_unlock(&w->engine.lock);
    return l;
}

void ad__leases_sweep(ad_worker *w) {
    for (ad_held_lease *l; (l = take_ended(w));) l->over(w, l);
}
