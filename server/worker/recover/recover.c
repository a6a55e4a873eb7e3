#include "server/worker/recover/inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/common/log.h"
#include "server/common/os.h"
#include "server/worker/checkpoint/blame.h"
#include "server/worker/sharing/sharing.h"
#include "server/worker/session/session.h"

#define LIVES 8 /* workers that may die of one checkpoint before its session is dropped */

/* ---- reading the journal ---- */

static int open_journal(ad_recovery *r, int fd, ad_fault *fault) {
    struct stat st;
    if (fstat(fd, &st) || st.st_size < (off_t)sizeof(ad_journal_head))
        return ad__fault(fault, AD_E_PROTOCOL, "the journal is too short");
    void *base = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (base == MAP_FAILED) return ad__fault(fault, AD_E_MEMORY, "the journal cannot be mapped");
    madvise(base, (size_t)st.st_size, MADV_DONTDUMP);
    r->base = base;
    r->size = (uint64_t)st.st_size;
    r->memory = (uint64_t)st.st_blocks * 512;
    const ad_journal_head *head = base;
    if (head->magic != AD_JOURNAL_MAGIC || head->version != AD_JOURNAL_VERSION)
        return ad__fault(fault, AD_E_VERSION, "the journal is of another version");
    return 0;
}

static ad_journal_table *get_table(const ad_recovery *r, ad_at at) {
    ad_journal_table *t = ad__recovery_get(r, at, sizeof *t);
    if (!t || t->capacity > r->memory / sizeof *t->row) return NULL;
    return ad__recovery_get(r, at, sizeof *t + t->capacity * sizeof *t->row);
}

/* Copy the rows of the committed checkpoint's log into the table, and get it. NULL: they are not whole. */
static ad_journal_table *settle_table(const ad_recovery *r, const ad_journal_session *at,
                                      const ad_journal_checkpoint *state) {
    ad_journal_table *t = get_table(r, at->table);
    ad_journal_log *log = ad__recovery_get(r, state->log, sizeof *log);
    if (!t || !state->entries) return t;
    if (!log || state->entries > log->capacity || log->capacity > r->memory / sizeof *log->entry ||
        !ad__recovery_get(r, state->log, sizeof *log + log->capacity * sizeof *log->entry))
        return NULL;
    for (uint64_t i = 0; i < state->entries; i++)
        if (log->entry[i].place >= t->capacity) return NULL;
    for (uint64_t i = 0; i < state->entries; i++) {
        ad_journal_row *to = &t->row[log->entry[i].place];
        ad_journal_row row = log->entry[i].row;
        row.writing = to->writing;
        row.elsewhere = to->elsewhere;
        *to = row;
    }
    return t;
}

/* ---- the rest of a session ---- */

static ad_old_descriptor *find_descriptor(const ad_recovery *r, uint64_t session, uint64_t number) {
    for (size_t i = 0; i < r->npassed; i++)
        if (r->passed[i].session == session && r->passed[i].number == number && r->passed[i].fd >= 0)
            return &r->passed[i];
    return NULL;
}

/* Restore descriptors that no request has asked for yet, in their order, and release the others. */
static void restore_descriptors(ad_worker_session *s, const ad_journal_checkpoint *state, uint64_t received) {
    ad_recovery *r = s->worker->before.left;
    ad_descriptors *d = &s->windows.descriptors;
    d->seen = NULL;
    d->taken = s->checkpoint.descriptors = state->descriptors;
    for (size_t i = 0; i < r->npassed; i++) {
        ad_old_descriptor *o = &r->passed[i];
        if (o->session != s->id || o->fd < 0) continue;
        if (o->number < state->descriptors || o->before >= received) { /* the client passes the descriptor again */
            ad__checkpoint_release_descriptor_now(s, o->number);
            continue;
        }
        while (d->taken + d->count < o->number && !ad__descriptors_put(d, -1)) {} /* a descriptor that is missing */
        ad__descriptors_put(d, o->fd);
        o->fd = -1;
    }
    ad__checkpoint_watch_descriptors(s);
}

static void *get_left(void *recovery, ad_at at, uint64_t size) { return ad__recovery_get(recovery, at, size); }

static int take_descriptor(void *recovery, uint64_t session, uint64_t number) {
    ad_old_descriptor *o = find_descriptor(recovery, session, number);
    const int fd = o ? o->fd : -1;
    if (o) o->fd = -1;
    return fd;
}

static int restore_row(ad_worker_session *s, const ad_journal_row *row, const ad_journal_session *at,
                       const ad_journal_checkpoint *state, ad_fault *fault) {
    if (row->kind == AD_JOURNAL_BUFFER) return ad__recovery_restore_buffer(s, row, at, state, fault);
    const ad_component *c = ad__component_of(s->worker, row->kind);
    const ad_left_behind left = {s->worker->before.left, get_left, take_descriptor};
    return c ? c->restore(s, row, &left, fault) : 0;
}

/* ---- sessions ---- */

static bool was_at_hand(const ad_recovery *r, const ad_journal_session *at) {
    return at->at_hand && (at->guilty || !r->guilty);
}

/* Take the blame for the last worker's end. A module is to blame, and not the message, if workers ended while it was
 * set up. */
static void take_blame(ad_worker_session *s, const ad_journal_session *at) {
    const ad_recovery *r = s->worker->before.left;
    ad_checkpoint *v = &s->checkpoint;
    v->suspect.blame =
        was_at_hand(r, at) ? ad__blame_recall(at, r->death, r->guilty ? r->guilty : r->candidates) : at->blame;
    if (ad__blame_suffices(&v->suspect.blame) && at->loading) {
        v->resumed.fatal = at->loading;
        v->suspect.blame = (ad_blame){0};
    }
    if (v->at) v->at->blame = v->suspect.blame;
    if (v->suspect.blame.last)
        ad__log(operation_suspected, s->id, s->principal, v->suspect.blame.last, v->suspect.blame.crashes,
                v->suspect.blame.kills, v->suspect.blame.certain);
}

/* Choose the stream that the client had chosen. That of a device needs no row. */
static int restore_current_stream(ad_worker_session *s, const ad_journal_checkpoint *state, ad_fault *fault) {
    const uint64_t id = state->stream - 1;
    if (!state->stream) return 0;
    s->streams.current =
        id < AD_OWN_STREAMS ? ad__stream_queue_restore(s, id, id, true, fault) : ad__stream_queue_known(s, id);
    if (s->streams.current) return 0;
    return id < AD_OWN_STREAMS ? fault->code : ad__fault(fault, AD_E_STALE, "there is no stream %" PRIu64, id);
}

static int restore_state(ad_worker_session *s, const ad_journal_session *at, const ad_journal_checkpoint *state,
                         const ad_journal_table *t, ad_fault *fault) {
    int status = 0;
    s->progress.done = s->progress.complete = state->operations;
    s->progress.bytes_done = state->bytes;
    s->held.buffer_limit = state->buffer_limit;
    s->checkpoint.committed = state->operations;
    s->checkpoint.resumed.read = state->read;
    s->checkpoint.resumed.untold = state->told;
    s->checkpoint.resumed.quiet = state->answered;
    s->checkpoint.resumed.quiet_used = state->answered_used;
    if (*s->worker->before.died_of) { /* a kernel of the session may have ended the worker */
        s->checkpoint.resumed.fatal = at->loading;
        s->checkpoint.resumed.blamed = at->launched;
    }
    take_blame(s, at);
    for (int pass = 0; pass < 2 && !status; pass++) /* streams come before all other rows */
        for (uint64_t i = 0; i < t->capacity && !status; i++)
            if ((t->row[i].kind == AD_JOURNAL_STREAM) == !pass) status = restore_row(s, &t->row[i], at, state, fault);
    if (!status) status = restore_current_stream(s, state, fault);
    if (status) return status;
    s->progress.pending = ad__recovery_poison(s->worker->before.left, state->pending);
    restore_descriptors(s, state, at->received);
    if ((status = ad__recovery_restore_output(s, at, state, fault))) return status;
    return ad__recovery_restore_input(s, at, state, fault);
}

/* Open a socket whose other end is closed. */
static int open_dead_connection(void) {
    int end[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, end)) return -1;
    close(end[1]);
    return end[0];
}

static ad_worker_session *make_session(ad_worker *w, const ad_journal_session *at) {
    ad_note note = {.kind = AD_NOTE_SESSION,
                    .id = at->id,
                    .size = at->key,
                    .grants = at->grants,
                    .process = at->process,
                    .resumable = 1};
    memcpy(note.who, at->who, sizeof note.who);
    memcpy(note.text, at->client, sizeof note.text);
    memcpy(note.secret, at->secret, sizeof note.secret);
    note.who[sizeof note.who - 1] = note.text[sizeof note.text - 1] = 0;
    int fd = open_dead_connection();
    ad_worker_session *s = fd < 0 ? NULL : ad__session_new(w, &note, fd);
    if (!s) return NULL;
    s->comeback.offers = at->offers;
    if (s->checkpoint.at) s->checkpoint.at->offers = at->offers;
    return s;
}

/* Count the workers that have died of what the session does next, as far as nobody killed them before they got there.
 */
static uint64_t count_lives(const ad_recovery *r, const ad_journal_session *at) {
    return at->lives > r->killed ? at->lives - r->killed : 0;
}

static const char *find_obstacle(const ad_recovery *r, const ad_journal_session *at) {
    if (!at->alive) return "it was over, or had what another worker cannot go on with";
    if (count_lives(r, at) >= LIVES) return "workers die of what it does next";
    return NULL;
}

static void drop_session(ad_worker *w, uint64_t id, const char *why) {
    ad__log(session_lost, id, why);
    ad__worker_tell(w, &(ad_note){.kind = AD_NOTE_SESSION_END, .id = id}, -1);
}

/* Tell whether the session has nothing to do with the death of the worker: another one was at hand, or none was when
 * the worker was killed from outside. */
static bool is_blameless(const ad_recovery *r, const ad_journal_session *at) {
    return r->candidates ? !was_at_hand(r, at) : r->death == AD_DEATH_KILLED;
}

/* Restore a session. False: it was dropped. */
static bool restore_session(ad_worker *w, ad_journal_session *at) {
    const ad_journal_checkpoint *state = &at->checkpoint[at->current % AD_JOURNAL_CHECKPOINTS];
    const ad_recovery *r = w->before.left;
    const char *why = find_obstacle(r, at);
    ad_journal_table *t = why ? NULL : settle_table(w->before.left, at, state);
    ad_fault fault = {0};
    const uint64_t before = count_lives(r, at), lives = before - (before && is_blameless(r, at));
    at->lives += state->frame < at->received;
    if (!why && !t) why = "its part of the journal is inconsistent";
    ad_worker_session *s = why ? NULL : make_session(w, at);
    if (!s) {
        drop_session(w, at->id, why ? why : "out of memory");
        return false;
    }
    int status = ad__session_begin(s);
    if (at->key) ad__fork_tell(s);
    if (!status) status = restore_state(s, at, state, t, &fault);
    const bool waits = !status && ad__session_await_client(s, "its worker has gone");
    if (waits) ad__sessions_watch(w);
    else
        ad__log(session_lost, s->id,
                status ? *fault.text ? fault.text : ad__error_text(status) : "its client has ended");
    if (status) {
        ad__engine_end(s);
        return false;
    }
    ad__checkpoint_commit(s);
    ad__session_go_on(s);
    if (s->checkpoint.at)
        s->checkpoint.at->lives = s->turns.queue.count ? lives + 1 : 0; /* idle sessions kill no worker */
    if (!waits) ad__session_end_after_forks(s);
    return waits;
}

static ad_journal_session *get_session(const ad_recovery *r, ad_at at) {
    return ad__recovery_get(r, at, sizeof(ad_journal_session));
}

/* List memory with several holders, from the rows of all sessions, names and capabilities. AD_E_MEMORY;
 * AD_E_PROTOCOL: the list of sessions has no end. */
static int collect_all_common(ad_recovery *r, const ad_journal_head *head, ad_fault *fault) {
    uint64_t most = r->memory / sizeof(ad_journal_session);
    int status = ad__recovery_collect_holders(r, head);
    for (const ad_journal_session *at = get_session(r, head->sessions); at && !status; at = get_session(r, at->next)) {
        if (!most--) return ad__fault(fault, AD_E_PROTOCOL, "the journal's list of sessions has no end");
        const ad_journal_checkpoint *state = &at->checkpoint[at->current % AD_JOURNAL_CHECKPOINTS];
        const ad_journal_table *t = at->alive && !ad__recovery_skips(r, at->who) ? settle_table(r, at, state) : NULL;
        r->candidates += t && at->at_hand;
        r->guilty += t && at->guilty;
        if (t) status = ad__recovery_collect_common(r, t, state);
    }
    return status ? ad__fault(fault, status, "out of memory") : 0;
}

/* Recover sessions from the journal fd, then memory that only names and capabilities hold. */
static int recover_sessions(ad_worker *w, int fd, uint64_t *sessions, uint64_t *lost, ad_fault *fault) {
    ad_recovery *r = w->before.left;
    int status = open_journal(r, fd, fault);
    if (status) return status;
    const ad_journal_head *head = (const ad_journal_head *)(void *)r->base;
    snprintf(w->before.died_of, sizeof w->before.died_of, "%.*s", AD_FAULT_TEXT - 1, head->why);
    if ((status = collect_all_common(r, head, fault))) return status;
    for (ad_journal_session *old = get_session(r, head->sessions); old; old = get_session(r, old->next))
        if (!ad__recovery_skips(r, old->who)) ++*(restore_session(w, old) ? sessions : lost);
    if (!w->journal) return 0;
    w->sharing->number = ad__journal_head(w->journal)->number = head->number;
    w->sharing->forked = ad__journal_head(w->journal)->forked = head->forked;
    ad__recovery_restore_holders(w, head);
    return 0;
}

void ad__recovery_run(ad_worker *w, const ad_note *note, int fd) {
    ad_fault fault = {0};
    uint64_t sessions = 0, lost = 0;
    int64_t begun = ad__os_now();
    w->device.next_slab = note->id;
    snprintf(w->before.ended_by, sizeof w->before.ended_by, "%.*s", AD_DEATH_TEXT - 1, note->text);
    if (ad__recovery_left(w)) {
        w->before.left->death = (ad_death)note->size;
        w->before.left->killed = note->process;
    }
    int status = ad__recovery_left(w) ? recover_sessions(w, fd, &sessions, &lost, &fault)
                                      : ad__fault(&fault, AD_E_MEMORY, "out of memory");
    if (fd >= 0) close(fd);
    if (w->before.left) ad__recovery_give_back(w);
    ad__log_other(status || lost, recovered, sessions, lost, (long)((ad__os_now() - begun) / 1000000),
                  status ? fault.text : "");
    ad__recovery_close(w);
    ad__worker_tell(w, &(ad_note){.kind = AD_NOTE_RECOVERED, .id = sessions}, -1);
    /* Operations from here on may end this worker. By then arrayd must know that it has begun. */
    pthread_mutex_lock(&w->arrayd.lock);
    ad__channel_drain(&w->arrayd.channel);
    pthread_mutex_unlock(&w->arrayd.lock);
}
