/* Migration: a principal gets a worker of its own with its first kernel (docs/internals/migration.md).
 *
 *     shared worker          front                    own worker
 *       |--MIGRATION_ASKED-->| AWAITED -> COMING
 *       |                    |---------- start ---------->|
 *       |<-----MIGRATE-------| GOING <------- READY ------|
 *       |------MIGRATED----->| NONE: slabs, descriptors and sessions change domains
 *       |<--MIGRATION_DONE---|--------- RECOVER --------->|
 *
 * With MIGRATED the front has a journal of all that the principal has. From then on the own worker goes on with it
 * as a successor does. Before that nothing has happened, whichever worker dies. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/common/log.h"
#include "server/common/os.h"
#include "server/front/workers/domain_inside.h"

static void send_migration_note(ad_domain *shared, uint32_t kind, const char *who, const char *why) {
    ad_note note = {.kind = kind};
    snprintf(note.who, sizeof note.who, "%s", who);
    snprintf(note.text, sizeof note.text, "%s", why);
    if (shared) ad__domain_tell(shared, &note, -1); /* the successor of a dying worker asks again */
}

/* Leave the principal in the shared worker. */
static void keep_in_shared(ad_domain *d, const char *why) {
    d->migration = AD_MIGRATION_AWAITED;
    ad__log(principal_not_moved, d->name, why);
    ad__handshake_wake(d->front);
}

static void abandon_migration(ad_domain *d, const char *why) {
    ad_front *f = d->front;
    if (f->stopping || ad__upgrade_leaves(f)) { /* the workers of the next program ask again */
        d->migration = AD_MIGRATION_AWAITED;
        return;
    }
    send_migration_note(ad__domain_named(f, AD_DOMAIN_SHARED), AD_NOTE_MIGRATION_REFUSED, d->name, why);
    keep_in_shared(d, why);
}

/* ---- asking for a worker ---- */

void ad__migration_is_ready(ad_domain *d) {
    if (d->migration != AD_MIGRATION_COMING) return;
    d->migration = AD_MIGRATION_GOING;
    d->migrating_since = ad__os_now();
    send_migration_note(ad__domain_named(d->front, AD_DOMAIN_SHARED), AD_NOTE_MIGRATE, d->name, "");
}

static ad_domain *find_or_add_domain(ad_front *f, const char *who) {
    ad_domain *d = ad__domain_named(f, who);
    if (!d && (d = ad__domain_new(f, who))) d->migration = AD_MIGRATION_AWAITED;
    return d;
}

void ad__migration_is_asked(ad_domain *from, const ad_note *note) {
    ad_domain *d = ad__domain_is_shared(from) ? find_or_add_domain(from->front, note->who) : NULL;
    if (!d || d->migration == AD_MIGRATION_NONE) {
        send_migration_note(from, AD_NOTE_MIGRATION_REFUSED, note->who,
                            d ? "the principal has one already, where its other sessions are: connect again"
                              : "out of host memory");
        return;
    }
    if (d->migration != AD_MIGRATION_AWAITED) return;
    const int64_t before = d->not_before;
    d->migration = AD_MIGRATION_COMING;
    ad__domain_restart(d);
    if (d->state == AD_DOMAIN_READY) ad__migration_is_ready(d);
    else if (d->state == AD_DOMAIN_FAILED && d->not_before != before) abandon_migration(d, d->why.text);
}

void ad__migration_lose(ad_domain *gone) {
    if (gone->migration == AD_MIGRATION_COMING) abandon_migration(gone, gone->why.text);
    if (!ad__domain_is_shared(gone)) return;
    for (ad_domain *d = gone->front->domains; d; d = d->next)
        if (d->migration) d->migration = AD_MIGRATION_AWAITED;
}

void ad__migration_fail(const ad_domain *from, const ad_note *note) {
    ad_domain *d = ad__domain_is_shared(from) ? ad__domain_named(from->front, note->who) : NULL;
    if (d && d->migration == AD_MIGRATION_GOING) keep_in_shared(d, note->text);
}

bool ad__migration_is_under_way(const ad_front *f, const char *who) {
    const ad_domain *d = ad__domain_named(f, who);
    return d && d->migration == AD_MIGRATION_GOING;
}

/* ---- going ---- */

/* Move the principal's slabs to its domain. AD_E_MEMORY, AD_E_PROTOCOL. */
static int move_slabs(ad_domain *from, ad_domain *d) {
    if (!d->slabs && !(d->slabs = ad__slabs_new())) return AD_E_MEMORY;
    return ad__slabs_migrate(from->slabs, d->slabs, d->name);
}

static void move_sessions(ad_domain *from, ad_domain *d) {
    const uint64_t n = ad__session_entry_migrate(d->front, from, d);
    from->sessions -= n < from->sessions ? n : from->sessions;
    d->sessions += n;
}

void ad__migration_complete(ad_domain *from, const ad_note *note, int fd) {
    ad_front *f = from->front;
    ad_domain *d = ad__domain_is_shared(from) ? ad__domain_named(f, note->who) : NULL;
    if (!d || d->migration != AD_MIGRATION_GOING) {
        if (fd >= 0) close(fd);
        return;
    }
    int status = fd < 0 ? AD_E_SYSTEM : ad__worker_files_reserve(&d->files, &from->files);
    if (!status) status = move_slabs(from, d);
    if (status) {
        if (fd >= 0) close(fd);
        abandon_migration(d, ad__error_text(status));
        return;
    }
    move_sessions(from, d);
    ad__worker_files_migrate(f, &from->files, d, &d->files, fd);
    d->migration = AD_MIGRATION_NONE;
    send_migration_note(from, AD_NOTE_MIGRATION_DONE, d->name, "");
    ad__log(principal_moved, d->name, d->alive ? (int)d->process.pid : 0, d->sessions,
            (long)((ad__os_now() - d->migrating_since) / 1000000));
    if (d->state == AD_DOMAIN_READY) ad__domain_recover(d);
    else ad__domain_restart(d);
    ad__handshake_wake(f);
}

void ad__migration_tell(ad_domain *shared) {
    if (!ad__domain_is_shared(shared)) return;
    for (const ad_domain *d = shared->front->domains; d; d = d->next)
        if (d != shared && !d->migration) send_migration_note(shared, AD_NOTE_MIGRATION_DONE, d->name, "");
}
