/* Writing and reading the record of an upgrade: see record.h. */
#include "server/front/upgrade/record.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/common/os.h"

static void transfer_bytes(ad_hand *h, void *place, size_t size) {
    if (!h->reading) {
        ad__bytes_append(&h->out, place, size);
        h->failed = h->failed || h->out.failed;
        return;
    }
    if (h->failed || size > (size_t)(h->end - h->at)) {
        h->failed = true;
        memset(place, 0, size);
        return;
    }
    memcpy(place, h->at, size);
    h->at += size;
}

void ad__hand_number(ad_hand *h, uint64_t *x) { transfer_bytes(h, x, sizeof *x); }

void ad__hand_flag(ad_hand *h, bool *x) {
    uint64_t n = *x;
    ad__hand_number(h, &n);
    if (n > 1) h->failed = true;
    *x = n == 1;
}

void ad__hand_text(ad_hand *h, char *text, size_t size) {
    transfer_bytes(h, text, size);
    if (!h->reading || memchr(text, 0, size)) return;
    h->failed = true;
    *text = 0;
}

void ad__hand_string(ad_hand *h, char **text) {
    bool there = *text != NULL;
    ad__hand_flag(h, &there);
    if (h->reading) *text = NULL;
    if (!there) return;
    size_t n = ad__hand_count(h, h->reading ? 0 : strlen(*text));
    if (h->reading) *text = h->failed ? NULL : ad__os.calloc(1, n + 1);
    if (*text) transfer_bytes(h, *text, n);
    else h->failed = true;
}

void ad__hand_fd(ad_hand *h, int *fd) {
    uint64_t n = *fd < 0 ? 0 : (uint64_t)*fd + 1;
    ad__hand_number(h, &n);
    if (!h->reading) {
        int *list = n ? ad__os_grow(h->fd, h->count, &h->room, sizeof *list) : NULL;
        if (n && !list) h->failed = true;
        if (!list) return;
        h->fd = list;
        list[h->count++] = *fd;
        return;
    }
    *fd = -1;
    if (!n) return;
    /* Descriptors of the record are not closed on exec; all others that are open here are. */
    int flags = n > 3 && n <= INT32_MAX ? fcntl((int)n - 1, F_GETFD) : -1;
    if (flags < 0 || flags & FD_CLOEXEC || fcntl((int)n - 1, F_SETFD, FD_CLOEXEC)) h->failed = true;
    else *fd = (int)n - 1;
}

size_t ad__hand_count(ad_hand *h, size_t count) {
    uint64_t n = count;
    ad__hand_number(h, &n);
    if (h->reading && n > (uint64_t)(h->end - h->at)) h->failed = true;
    return h->failed ? 0 : (size_t)n;
}

void ad__hand_free(ad_hand *h) {
    ad__bytes_free(&h->out);
    free(h->fd);
    *h = (ad_hand){0};
}
