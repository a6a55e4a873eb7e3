/* What arrayd keeps of a worker so that another one can go on when it is killed: its ledger, and the descriptors that
 * clients have passed to it. (Slabs: slabs.c.) */
#include <stdlib.h>
#include <unistd.h>

#include "server/common/log.h"
#include "server/common/os.h"
#include "server/front/front.h"

#define DEATHS 60    /* until what the worker before has left is given up ... */
#define OWN_DEATH 10 /* ... where one that nobody has killed counts as so many */

void ad__keep_init(ad_keep *k) { *k = (ad_keep){.ledger = -1, .old = -1}; }

static void set(int *to, int fd) {
    if (*to >= 0) close(*to);
    *to = fd;
}

void ad__keep_ledger(ad_keep *k, int fd) { set(&k->ledger, fd); }

static void drop_window(ad_keep *k, size_t i) {
    close(k->window[i].fd);
    for (k->count--; i < k->count; i++) k->window[i] = k->window[i + 1];
}

void ad__keep_clear(ad_keep *k) {
    set(&k->ledger, -1);
    set(&k->old, -1);
    while (k->count) drop_window(k, k->count - 1);
    free(k->window);
    ad__keep_init(k);
}

/* The first descriptor of the session that is this window (0: none yet); count: there is none. */
static size_t find(const ad_keep *k, uint64_t session, uint64_t window) {
    size_t i = 0;
    while (i < k->count && (k->window[i].session != session || k->window[i].id != window)) i++;
    return i;
}

static size_t find_came(const ad_keep *k, uint64_t session, uint64_t before) {
    size_t i = 0;
    while (i < k->count && (k->window[i].session != session || k->window[i].id || k->window[i].before != before)) i++;
    return i;
}

void ad__keep_window(ad_keep *k, const ad_note *note, int fd) {
    size_t i;
    switch (note->kind) {
    case AD_NOTE_WINDOW: {
        struct ad_kept_window *list = fd < 0 ? NULL : ad__os_grow(k->window, k->count, &k->capacity, sizeof *list);
        if (list) {
            k->window = list;
            k->window[k->count++] = (struct ad_kept_window){note->id, 0, note->process, fd};
        } else if (fd >= 0) {
            close(fd);
        }
        break;
    }
    case AD_NOTE_WINDOW_NAMED: /* by one worker, and again by the next if the first did not come to write it down */
        if (find(k, note->id, note->size) == k->count && (i = find(k, note->id, 0)) < k->count)
            k->window[i].id = note->size;
        break;
    default:
        i = note->process ? find_came(k, note->id, note->process - 1) : find(k, note->id, note->size);
        if (i < k->count) drop_window(k, i);
        break;
    }
}

void ad__keep_session_over(ad_keep *k, uint64_t session) {
    for (size_t i = k->count; i-- > 0;)
        if (k->window[i].session == session) drop_window(k, i);
}

bool ad__keep_can_recover(const ad_keep *k) { return k->ledger >= 0 || k->old >= 0; }

/* A worker that died before it had taken everything over leaves what it was to take over. */
bool ad__keep_worker_gone(ad_keep *k, bool killed) {
    if (k->old >= 0) {
        set(&k->ledger, -1);
        return (k->deaths += killed ? 1 : OWN_DEATH) < DEATHS;
    }
    k->old = k->ledger;
    k->ledger = -1;
    k->deaths = 0;
    return true;
}

void ad__keep_recovered(ad_keep *k) { set(&k->old, -1); }

static void hand_window(struct ad_kept_window *w, ad_hand *h) {
    ad__hand_number(h, &w->session);
    ad__hand_number(h, &w->id);
    ad__hand_number(h, &w->before);
    ad__hand_fd(h, &w->fd);
    if (w->fd < 0) h->failed = true;
}

void ad__keep_hand(ad_keep *k, ad_hand *h) {
    uint64_t deaths = k->deaths;
    ad__hand_number(h, &deaths);
    k->deaths = (unsigned)deaths;
    ad__hand_fd(h, &k->ledger);
    ad__hand_fd(h, &k->old);
    size_t count = ad__hand_count(h, k->count);
    for (size_t i = 0; i < count && !h->failed; i++) {
        struct ad_kept_window *list =
            h->reading ? ad__os_grow(k->window, k->count, &k->capacity, sizeof *list) : k->window;
        if (!list) {
            h->failed = true;
            return;
        }
        k->window = list;
        if (h->reading) list[k->count++] = (struct ad_kept_window){.fd = -1};
        hand_window(&list[i], h);
    }
}

int ad__keep_tell(const ad_keep *k, ad_channel *c, ad_slabs *slabs) {
    int status = ad__slabs_tell(slabs, c);
    for (size_t i = 0; i < k->count && !status; i++) {
        int fd = ad__os.dup(k->window[i].fd);
        if (fd < 0) return AD_E_SYSTEM;
        status = ad__channel_send(c,
                                  &(ad_note){.kind = AD_NOTE_OLD_WINDOW,
                                             .id = k->window[i].session,
                                             .size = k->window[i].id,
                                             .process = k->window[i].before},
                                  fd);
    }
    int fd = status ? -1 : ad__os.dup(k->old);
    if (fd < 0) return status ? status : AD_E_SYSTEM;
    return ad__channel_send(c, &(ad_note){.kind = AD_NOTE_RECOVER, .id = ad__slabs_last(slabs)}, fd);
}
