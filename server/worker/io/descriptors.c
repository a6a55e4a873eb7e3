#include "server/worker/io/descriptors.h"

#include <sys/eventfd.h>

#include "server/common/discard.h"

void ad__descriptors_init(ad_descriptors *d, const char *who) {
    d->who = who;
    pthread_mutex_init(&d->lock, NULL);
}

void ad__descriptors_close(ad_descriptors *d) {
    uint64_t number;
    while (d->count) {
        int fd = ad__descriptors_take(d, &number);
        if (fd >= 0) ad__discard(d->who, fd);
    }
    pthread_mutex_destroy(&d->lock);
}

static int replace_useless(const char *who, int fd) {
    if (fd < 0 || ad__discard_is_useful(fd)) return fd;
    ad__discard(who, fd);
    return eventfd(0, EFD_CLOEXEC);
}

int ad__descriptors_put(ad_descriptors *d, int fd) {
    fd = replace_useless(d->who, fd);
    pthread_mutex_lock(&d->lock);
    const uint64_t number = d->taken + d->count;
    const bool room = d->count < AD_DESCRIPTORS;
    if (room) {
        if (d->seen && fd >= 0) d->seen(d->user, fd, number); /* before anyone can have taken and closed it */
        d->fd[number % AD_DESCRIPTORS] = fd;
        d->count++;
    }
    pthread_mutex_unlock(&d->lock);
    if (!room && fd >= 0) ad__discard(d->who, fd);
    return room ? 0 : AD_E_LIMIT;
}

bool ad__descriptors_has_unclaimed(ad_descriptors *d) {
    pthread_mutex_lock(&d->lock);
    const bool some = d->count;
    pthread_mutex_unlock(&d->lock);
    return some;
}

int ad__descriptors_take(ad_descriptors *d, uint64_t *number) {
    int fd = -1;
    pthread_mutex_lock(&d->lock);
    if (d->count) {
        *number = d->taken++;
        fd = d->fd[*number % AD_DESCRIPTORS];
        d->count--;
    }
    pthread_mutex_unlock(&d->lock);
    return fd;
}
