#include "server/worker/migrate/migration.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/common/log.h"
#include "server/common/os.h"
#include "server/common/report.h"
#include "server/worker/migrate/inside.h"
#include "server/worker/sharing/exports.h"
#include "server/worker/recover/recover.h"
#include "server/worker/session/session.h"

static void tell_arrayd(ad_worker *w, uint32_t kind, const char *who, const char *why, int fd) {
    ad_note note = {.kind = kind};
    snprintf(note.who, sizeof note.who, "%s", who);
    snprintf(note.text, sizeof note.text, "%s", why);
    ad__worker_tell(w, &note, fd);
}

/* ---- asking ---- */

/* True if the message brings the user's code, or memory that goes with the user's process or with this one. */
static bool needs_own_worker(const ad_message *m) {
    const unsigned flags = m->row->flags;
    return flags & AD_R_OWN_WORKER || (flags & AD_R_HANDLE_OWN_WORKER && m->u[2] & AD_EXPORT_HANDLE);
}

static void ask_for_worker(ad_worker_session *s, uint64_t number) {
    s->move.at = number;
    atomic_store(&s->move.state, AD_SESSION_MIGRATES);
    tell_arrayd(s->worker, AD_NOTE_MIGRATION_ASKED, s->principal, "", -1);
    ad__log(own_worker_wanted, s->id, s->principal);
}

bool ad__migration_must_wait(ad_worker_session *s, const ad_message *m, ad_fault *refused) {
    const uint64_t number = s->progress.done + s->progress.requests; /* messages before this one */
    if (!needs_own_worker(m)) return false;
    if (atomic_load(&s->move.state) == AD_SESSION_REFUSED && s->move.at == number) {
        if (m->row->flags & AD_R_USER_SOURCE) /* other messages find the missing permission themselves */
            ad__fault(refused, AD_E_UNSUPPORTED,
                      "kernels run in a worker of one's own, and what %s has here cannot be moved to one: %s",
                      s->principal, s->move.refusal);
        return false;
    }
    if (atomic_load(&s->move.state) != AD_SESSION_MIGRATES) ask_for_worker(s, number);
    ad__session_await(s, AD_WAIT_MIGRATION, NULL, NULL);
    return true;
}

/* ---- stopping ---- */

bool ad__migration_ends_session(const ad_worker_session *s) {
    return s->sharing.exporting || (s->reading.active && s->reading.buffer->shared);
}

static void halt_session(ad_worker_session *s) {
    atomic_store(&s->move.halted, true);
    ad__session_watch(s, s->socket.events & ~UV_READABLE);
}

static void refuse_sessions(ad_worker *w, const char *who, const char *why) {
    for (ad_worker_session *s = w->sessions; s; s = s->next) {
        if (!ad__migration_is_of(s, who)) continue;
        if (atomic_load(&s->move.state) == AD_SESSION_MIGRATES) {
            snprintf(s->move.refusal, sizeof s->move.refusal, "%s", why);
            atomic_store(&s->move.state, AD_SESSION_REFUSED);
        }
        atomic_store(&s->move.halted, false);
        ad__session_attend(s);
    }
}

/* True if the session was dropped. *ending: it is over, so no worker takes it over, but it is not dropped yet. */
static bool is_dropped(ad_worker_session *s, bool *ending) {
    ad_engine *e = &s->worker->engine;
    pthread_mutex_lock(&e->lock);
    const bool over = ad__run_phase(s) == AD_RUN_DROPPED;
    *ending = !over && (ad__run_is_over(s) || atomic_load(&s->socket.ends_after_forks));
    pthread_mutex_unlock(&e->lock);
    return over;
}

/* True if the session's streams have passed all of it. Copies to host memory, which other sessions have asked for, are
 * watched by nobody else while it waits for its client. */
static bool is_idle(ad_worker_session *s) {
    if (ad__stream_queues_idle(s)) return true;
    return !ad__stream_queues_mark(s, NULL) && !ad__stream_queues_poll(s, NULL) && ad__stream_queues_idle(s);
}

/* Check that a session is quiet. 0: it is; 1: operations are under way; negative: no other worker could go on with
 * it. */
static int check_quiet(ad_worker_session *s, ad_fault *fault) {
    bool ending;
    if (is_dropped(s, &ending)) return 0;
    if (ending) return 1;
    if (!atomic_load(&s->move.halted)) halt_session(s);
    if (!ad__session_is_recoverable(s))
        return ad__fault(fault, AD_E_UNSUPPORTED,
                         "session %" PRIu64 " cannot be resumed (its client does not, or it was short of memory); "
                         "end it, or have users separated from the beginning (option domains = principal)",
                         s->id);
    return ad__migration_ends_session(s) || !is_idle(s);
}

/* True if a background operation uses memory that migrates, or that is separated from it. */
static bool is_in_background(const ad_worker_session *s, const char *who) {
    return s->turns.in_background && (s->sharing.shares || ad__migration_is_of(s, who));
}

static int check_all_quiet(ad_worker *w, const char *who, ad_fault *fault) {
    int result = 0;
    for (ad_worker_session *s = w->sessions; s; s = s->next) {
        int one = ad__migration_is_of(s, who) ? check_quiet(s, fault) : 0;
        if (one < 0) return one;
        result |= one || is_in_background(s, who);
    }
    return result;
}

/* ---- going ---- */

static void close_host(ad_migration *p) {
    if (!p->host) return;
    for (size_t i = 0; i < p->copies; i++) ad__memory_give(p->host, &p->copy[i]);
    ad__stream_arena_close(p->host);
    free(p->copy);
    p->host = NULL;
    p->copy = NULL;
    p->copies = p->room = 0;
}

static void end_migration(ad_worker *w, ad_migration *p) {
    ad_migration **at = &w->migrations;
    while (*at != p) at = &(*at)->next;
    *at = p->next;
    close_host(p);
    free(p);
}

static void tell_failed(ad_worker *w, const char *who, const char *why) {
    tell_arrayd(w, AD_NOTE_MIGRATION_FAILED, who, why, -1);
    refuse_sessions(w, who, why);
}

/* Receive what clients have sent: one that has forked and ended does not send the fork again. */
static void drain_sessions(ad_worker *w, const char *who) {
    for (ad_worker_session *s = w->sessions; s; s = s->next)
        if (ad__migration_is_of(s, who) && atomic_load(&s->move.halted)) ad__session_drain(s);
}

static int hand_over_principal(ad_worker *w, ad_migration *p, ad_fault *fault) {
    ad_journal *l = NULL;
    int status = ad__migration_unshare(w, p->who, fault);
    if (!status) drain_sessions(w, p->who);
    if (!status) status = ad__migration_write_journal(w, p, &l, fault);
    int fd = status ? -1 : ad__os.dup(ad__journal_descriptor(l));
    if (!status && fd < 0) status = ad__fault(fault, AD_E_SYSTEM, "no descriptor for the state");
    ad__journal_close(l);
    if (status) return status;
    ad__names_move(w, p->who, true);
    tell_arrayd(w, AD_NOTE_MIGRATED, p->who, "", fd);
    ad__log(principal_written_down, p->who, (unsigned long)p->copies);
    p->step = AD_MIGRATION_TOLD;
    return 0;
}

/* Free all that the principal has in this worker: another one has it now. */
static void release_principal(ad_worker *w, ad_migration *p) {
    ad__exports_part(w, p->who);
    ad__names_part(w, p->who);
    ad__capabilities_part(w, p->who);
    for (ad_worker_session *s = w->sessions; s; s = s->next) {
        if (!ad__migration_is_of(s, p->who)) continue;
        s->move.done = true;
        ad__engine_end(s);
    }
}

static void advance_migration(ad_worker *w, ad_migration *p) {
    ad_fault fault = {0};
    if (p->step == AD_MIGRATION_GONE) release_principal(w, p);
    if (p->step == AD_MIGRATION_REFUSED) ad__names_move(w, p->who, false);
    if (p->step != AD_MIGRATION_GOING) {
        if (p->step != AD_MIGRATION_TOLD) end_migration(w, p);
        return;
    }
    int result = w->journal ? check_all_quiet(w, p->who, &fault)
                            : ad__fault(&fault, AD_E_UNSUPPORTED, "nothing is written down of sessions here");
    if (result == 0) result = ad__migration_check_shared(w, p->who, &fault);
    if (result == 0) result = hand_over_principal(w, p, &fault);
    if (result >= 0) return; /* 1: operations are under way */
    tell_failed(w, p->who, *fault.text ? fault.text : ad__error_text(result));
    end_migration(w, p);
}

void ad__migration_advance(ad_worker *w) {
    if (!w->migrations || w->ending.stopping) return;
    if (!ad__engine_claim(w)) return; /* the other runner stops, and wakes this thread */
    ad__fork_births(w);
    for (ad_migration *p = w->migrations, *next; p; p = next) {
        next = p->next;
        advance_migration(w, p);
    }
    ad__engine_release(w);
}

/* ---- what arrayd says ---- */

static ad_migration *find_migration(const ad_worker *w, const char *who) {
    ad_migration *p = w->migrations;
    while (p && strcmp(p->who, who)) p = p->next;
    return p;
}

static void begin_migration(ad_worker *w, const ad_note *note) {
    ad_migration *p = ad__os.calloc(1, sizeof *p);
    if (!p) {
        tell_failed(w, note->who, "out of host memory");
        return;
    }
    memcpy(p->who, note->who, sizeof p->who);
    p->next = w->migrations;
    w->migrations = p;
}

void ad__migration_take_note(ad_worker *w, const ad_note *note) {
    ad_migration *p = find_migration(w, note->who);
    switch (note->kind) {
    case AD_NOTE_MIGRATE: begin_migration(w, note); break;
    case AD_NOTE_MIGRATION_DONE:
        if (p) p->step = AD_MIGRATION_GONE;
        else ad__recovery_without(w, note->who);
        break;
    default:
        refuse_sessions(w, note->who, note->text);
        if (p) p->step = AD_MIGRATION_REFUSED;
        break;
    }
}

void ad__migration_close(ad_worker *w) {
    while (w->migrations) end_migration(w, w->migrations);
}

const ad_migration_hooks ad__migration_hooks = {.must_wait = ad__migration_must_wait,
                                                .ends_session = ad__migration_ends_session};
