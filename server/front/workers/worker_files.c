/* arrayd holds this of a worker so that a successor can go on: its journal, and the descriptors that clients have
 * passed to it. Slabs are in slabs.c.
 *
 *     worker runs:       journal = its own      old = -1
 *     it dies:           journal = -1           old = its journal
 *     successor begins:  journal = new one      old = what it recovers from
 *     RECOVERED:         journal = new one      old = -1 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "server/common/discard.h"
#include "server/common/log.h"
#include "server/common/os.h"
#include "server/front/front.h"

#define DEATHS 60    /* deaths of successors until the old journal is given up */
#define OWN_DEATH 10 /* deaths that a worker's own crash counts as */

void ad__worker_files_init(ad_worker_files *k) { *k = (ad_worker_files){.journal = -1, .old = -1}; }

static void replace_descriptor(int *to, int fd) {
    if (*to >= 0) close(*to);
    *to = fd;
}

void ad__worker_files_set_journal(ad_worker_files *k, int fd) { replace_descriptor(&k->journal, fd); }

/* Close what a client has passed: see discard.h. */
static void close_passed(const struct ad_passed_descriptor *d) {
    char who[32];
    snprintf(who, sizeof who, "session %" PRIu64, d->session);
    ad__discard(who, d->fd);
}

static void remove_descriptor(ad_worker_files *k, size_t i) {
    close_passed(&k->passed[i]);
    for (k->count--; i < k->count; i++) k->passed[i] = k->passed[i + 1];
}

void ad__worker_files_clear(ad_worker_files *k) {
    replace_descriptor(&k->journal, -1);
    replace_descriptor(&k->old, -1);
    while (k->count) remove_descriptor(k, k->count - 1);
    free(k->passed);
    ad__worker_files_init(k);
}

static void add_descriptor(ad_worker_files *k, const struct ad_passed_descriptor *d) {
    struct ad_passed_descriptor *list = d->fd < 0 ? NULL : ad__os_grow(k->passed, k->count, &k->capacity, sizeof *list);
    if (list) {
        k->passed = list;
        list[k->count++] = *d;
    } else if (d->fd >= 0) {
        close_passed(d);
    }
}

void ad__worker_files_take_descriptor(ad_worker_files *k, const ad_note *note, int fd) {
    size_t i = 0;
    if (note->kind == AD_NOTE_DESCRIPTOR) {
        add_descriptor(k, &(struct ad_passed_descriptor){note->id, note->size, note->process, fd});
        return;
    }
    while (i < k->count && (k->passed[i].session != note->id || k->passed[i].number != note->size)) i++;
    if (i < k->count) remove_descriptor(k, i);
}

void ad__worker_files_end_session(ad_worker_files *k, uint64_t session) {
    for (size_t i = k->count; i-- > 0;)
        if (k->passed[i].session == session) remove_descriptor(k, i);
}

bool ad__worker_files_can_recover(const ad_worker_files *k) { return k->journal >= 0 || k->old >= 0; }

/* Keep the old journal of a worker that died before it had recovered all: its successor recovers from that again. */
bool ad__worker_files_lose_worker(ad_worker_files *k, ad_death death, const char *how) {
    if (k->old >= 0) {
        replace_descriptor(&k->journal, -1);
        if (death == AD_DEATH_UNFIT) return true;
        k->killed += death == AD_DEATH_KILLED;
        return (k->deaths += death == AD_DEATH_CRASHED ? OWN_DEATH : 1) < DEATHS;
    }
    k->old = k->journal;
    k->journal = -1;
    k->deaths = k->killed = 0;
    k->death = death;
    snprintf(k->how, sizeof k->how, "%s", how);
    return true;
}

void ad__worker_files_finish_recovery(ad_front *f, ad_worker_files *k, const ad_domain *d) {
    replace_descriptor(&k->old, -1);
    for (size_t i = k->count; i-- > 0;)
        if (!ad__session_entry_is_of(f, k->passed[i].session, d)) remove_descriptor(k, i);
}

int ad__worker_files_reserve(ad_worker_files *k, const ad_worker_files *other) {
    for (size_t i = 0; i < other->count; i++) {
        struct ad_passed_descriptor *list = ad__os_grow(k->passed, k->count + i, &k->capacity, sizeof *list);
        if (!list) return AD_E_MEMORY;
        k->passed = list;
    }
    return 0;
}

void ad__worker_files_migrate(ad_front *f, ad_worker_files *from, const ad_domain *to, ad_worker_files *k,
                              int journal) {
    size_t kept = 0;
    for (size_t i = 0; i < from->count; i++)
        if (ad__session_entry_is_of(f, from->passed[i].session, to)) k->passed[k->count++] = from->passed[i];
        else from->passed[kept++] = from->passed[i];
    from->count = kept;
    replace_descriptor(&k->old, journal);
    k->deaths = k->killed = 0;
    k->death = AD_DEATH_LEFT;
    *k->how = 0;
}

static void transfer_descriptor(struct ad_passed_descriptor *d, ad_hand *h) {
    ad__hand_number(h, &d->session);
    ad__hand_number(h, &d->number);
    ad__hand_number(h, &d->before);
    ad__hand_fd(h, &d->fd);
    if (d->fd < 0) h->failed = true;
}

void ad__worker_files_hand_over(ad_worker_files *k, ad_hand *h) {
    uint64_t deaths = k->deaths, death = k->death;
    ad__hand_number(h, &deaths);
    ad__hand_number(h, &death);
    ad__hand_text(h, k->how, sizeof k->how);
    k->deaths = (unsigned)deaths;
    k->death = (ad_death)death;
    ad__hand_fd(h, &k->journal);
    ad__hand_fd(h, &k->old);
    size_t count = ad__hand_count(h, k->count);
    for (size_t i = 0; i < count && !h->failed; i++) {
        struct ad_passed_descriptor *list =
            h->reading ? ad__os_grow(k->passed, k->count, &k->capacity, sizeof *list) : k->passed;
        if (!list) {
            h->failed = true;
            return;
        }
        k->passed = list;
        if (h->reading) list[k->count++] = (struct ad_passed_descriptor){.fd = -1};
        transfer_descriptor(&list[i], h);
    }
}

int ad__worker_files_tell(const ad_worker_files *k, ad_channel *c, ad_slabs *slabs) {
    int status = ad__slabs_tell(slabs, c);
    for (size_t i = 0; i < k->count && !status; i++) {
        const struct ad_passed_descriptor *d = &k->passed[i];
        int fd = ad__os.dup(d->fd);
        if (fd < 0) return AD_E_SYSTEM;
        const ad_note note = {
            .kind = AD_NOTE_OLD_DESCRIPTOR, .id = d->session, .size = d->number, .process = d->before};
        status = ad__channel_send(c, &note, fd);
    }
    int fd = status ? -1 : ad__os.dup(k->old);
    if (fd < 0) return status ? status : AD_E_SYSTEM;
    ad_note note = {.kind = AD_NOTE_RECOVER, .id = ad__slabs_last(slabs), .size = k->death, .process = k->killed};
    snprintf(note.text, sizeof note.text, "%s", k->how);
    return ad__channel_send(c, &note, fd);
}
