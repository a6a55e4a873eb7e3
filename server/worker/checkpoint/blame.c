#include "server/worker/checkpoint/blame.h"

#include <inttypes.h>
#include <signal.h>

#include "protocol/infer.h"
#include "server/common/log.h"
#include "server/worker/session.h"

#define CRASHES 3 /* crashed workers after which the message at hand is left out */
#define DEATHS 8  /* killed workers after which it is left out; a session is given up after more (recover/recover.c) */

/* ---- what has ended workers ---- */

bool ad__blame_suffices(const ad_blame *b) { return b->crashes >= CRASHES || b->crashes + b->kills >= DEATHS; }

/* Tell whether one more death would be enough to leave the message out. */
static bool needs_one_more_death(const ad_blame *b) {
    return b->crashes + 1 >= CRASHES || b->crashes + b->kills + 1 >= DEATHS;
}

static uint64_t find_checkpoint_place(const ad_journal_session *at) {
    const ad_journal_checkpoint *state = &at->checkpoint[at->current % AD_JOURNAL_CHECKPOINTS];
    return state->frame + AD_FRAME_HEADER + state->used;
}

ad_blame ad__blame_recall(const ad_journal_session *at, ad_death death, uint64_t candidates) {
    ad_blame b = at->blame;
    if (!at->at_hand || death == AD_DEATH_LEFT) return b;
    const uint64_t last = at->at_hand / 2, first = at->at_hand & 1 ? last : find_checkpoint_place(at);
    if (!b.last || first > b.last || last < b.first) b = (ad_blame){.first = first, .last = last};
    if (first > b.first) b.first = first;
    if (last < b.last) b.last = last;
    b.crashes += death == AD_DEATH_CRASHED;
    b.kills += death == AD_DEATH_KILLED;
    b.certain = at->at_hand & 1 && candidates == 1;
    return b;
}

/* ---- the thread that crashes ---- */

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
static struct sigaction before[sizeof signals / sizeof *signals];
static _Thread_local ad_journal_session *executing; /* the session whose message this thread executes */

/* Record in the journal that this thread's session is guilty. Then the process goes on as if this handler had not been
 * installed: it repeats the instruction, or gets the signal again. */
static void handle_crash(int number, siginfo_t *info, void *unused) {
    (void)unused;
    if (executing) ad__journal_store(&executing->guilty, 1);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (signals[i] == number) sigaction(number, &before[i], NULL);
    if (info->si_code <= 0) raise(number);
}

void ad__blame_catch_signals(void) {
    struct sigaction a = {.sa_sigaction = handle_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) sigaction(signals[i], &a, &before[i]);
}

/* ---- executing ---- */

static void store_at_hand(ad_worker_session *s, uint64_t at_hand) {
    ad__journal_store(&s->checkpoint.at->at_hand, at_hand);
}

/* Set the session that this thread executes. With an asynchronous backend a crash may come from an earlier session's
 * operation, so no session is set. */
static void set_executing(const ad_worker_session *s, bool does) {
    executing = does && !s->checkpoint.late ? s->checkpoint.at : NULL;
}

/* Wait until no session has anything under way on a device. */
static void await_other_sessions(ad_worker_session *s) {
    ad_worker *w = s->worker;
    pthread_mutex_lock(&w->sessions_lock);
    for (ad_worker_session *other = w->sessions; other; other = other->next) {
        if (ad__run_is_dropping(other) || !w->backend->asynchronous) continue;
        ad__stream_queues_wait(other, NULL);
        if (other->checkpoint.at) store_at_hand(other, 0);
    }
    pthread_mutex_unlock(&w->sessions_lock);
}

/* Tell whether the message at hand, or queued operations before it, may be to blame. Once all suspected messages are
 * behind the valid checkpoint, the suspicion ends. */
static bool is_suspected(ad_worker_session *s) {
    ad_checkpoint *v = &s->checkpoint;
    if (v->suspect.at <= v->suspect.blame.last) return true;
    if (find_checkpoint_place(v->at) > v->suspect.blame.last) v->at->blame = v->suspect.blame = (ad_blame){0};
    return false;
}

static void log_left_out(const ad_worker_session *s) {
    const ad_message *m = &s->messages.message;
    ad__log(operation_left_out, s->id, s->principal, m->op.opcode ? ad__op_name(&m->op) : m->row->name,
            s->checkpoint.suspect.blame.crashes, s->checkpoint.suspect.blame.kills, s->worker->before.ended_by);
}

bool ad__blame_must_wait(ad_worker_session *s) {
    const ad_blame *b = &s->checkpoint.suspect.blame;
    if (!b->last || !needs_one_more_death(b) || s->messages.place > b->last || !s->worker->engine.in_background)
        return false;
    ad__session_await(s, AD_WAIT_BACKGROUND, NULL, NULL);
    return true;
}

void ad__blame_begin_message(ad_worker_session *s) {
    ad_checkpoint *v = &s->checkpoint;
    if (!v->at) return;
    v->suspect.at = s->messages.place;
    const bool concerned = v->suspect.blame.last && is_suspected(s);
    v->suspect.careful = concerned && needs_one_more_death(&v->suspect.blame);
    v->suspect.left_out = v->suspect.careful && v->suspect.blame.certain && v->suspect.at == v->suspect.blame.first &&
                          ad__blame_suffices(&v->suspect.blame);
    set_executing(s, true);
    if (v->suspect.careful) await_other_sessions(s);
    if (v->suspect.left_out) log_left_out(s);
    store_at_hand(s, 2 * v->suspect.at + (v->suspect.careful || !(s->fusion.count || v->late)));
}

void ad__blame_end_message(ad_worker_session *s) {
    ad_checkpoint *v = &s->checkpoint;
    if (!v->at) return;
    set_executing(s, s->fusion.count);
    if (v->suspect.careful) {
        ad__stream_queues_wait(s, NULL);
        if (!s->messages.at_hand) ad__checkpoint_flush(s, true);
        v->suspect.careful = v->suspect.left_out = false;
        atomic_store(&s->turns.background_since, 0);
        store_at_hand(s, 0);
    } else if (!v->late) {
        store_at_hand(s, s->fusion.count ? 2 * v->suspect.at : 0);
    }
}

void ad__blame_begin_turn(ad_worker_session *s) {
    if (!s->checkpoint.at || !s->fusion.count) return;
    set_executing(s, true);
    store_at_hand(s, 2 * s->checkpoint.suspect.at);
}

void ad__blame_update(ad_worker_session *s) {
    const ad_checkpoint *v = &s->checkpoint;
    set_executing(s, v->inside);
    if (v->at && v->at->at_hand && !v->inside && (!v->late || ad__stream_queues_idle(s))) store_at_hand(s, 0);
}

/* ---- leaving a message out ---- */

int ad__blame_check(const ad_worker_session *s, const char *name, ad_fault *fault) {
    const ad_blame *b = &s->checkpoint.suspect.blame;
    const char *why = *s->worker->before.died_of ? s->worker->before.died_of : s->worker->before.ended_by;
    if (s->messages.cancelled)
        return ad__fault(fault, AD_E_CANCELLED, "%s%scancelled by its client", name, *name ? ": " : "");
    if (!s->checkpoint.suspect.left_out) return 0;
    const bool own = !(s->messages.message.row->flags & AD_R_USER_KERNEL);
    return ad__fault(fault, own ? AD_E_INTERNAL : AD_E_DEVICE_LOST,
                     "%s%sthe worker %s %" PRIu64 " times while executing it%s%.100s%s, so it was left out%s", name,
                     *name ? ": " : "", b->crashes ? "crashed" : "was killed", b->crashes + b->kills, *why ? " (" : "",
                     why, *why ? ")" : "", own ? "; please report this" : "");
}
