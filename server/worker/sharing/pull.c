/* Arrays of other servers: see pull.h. */
#include "server/worker/sharing/pull.h"

#include <stdio.h>
#include <string.h>

#include "server/worker/handlers.h"
#include "server/worker/io/cancel.h"
#include "server/worker/sharing/sharing.h"

static bool change_state(ad_session_pull *p, unsigned from, unsigned to) {
    return atomic_compare_exchange_strong(&p->state, &from, to);
}

void ad__pull_take_answer(ad_worker_session *s, const ad_note *note) {
    ad_session_pull *p = &s->sharing.pull;
    if (!change_state(p, AD_PULL_ASKED, AD_PULL_ANSWERING)) return;
    if (atomic_load(&p->place) != note->size) {
        atomic_store(&p->state, AD_PULL_ASKED);
        return;
    }
    p->code = -(int)note->process;
    memcpy(p->half, note->secret, sizeof p->half);
    snprintf(p->why, sizeof p->why, "%.*s", (int)sizeof note->text - 1, note->text);
    atomic_store(&p->state, AD_PULL_ANSWERED);
}

/* Ask arrayd for the array, or tell it that nobody waits any more. */
static void tell_arrayd(ad_worker_session *s, const ad_message *m, bool over) {
    ad_note note = {.kind = AD_NOTE_PULL, .id = s->id, .size = s->messages.place, .process = over, .grants = s->grants};
    memcpy(note.secret, &m->u[2], sizeof note.secret);
    snprintf(note.text, sizeof note.text, "%.*s", (int)m->s[0].size, m->s[0].data);
    snprintf(note.who, sizeof note.who, "%.*s", (int)m->s[1].size, m->s[1].data);
    ad__worker_tell(s->worker, &note, -1);
}

static int begin_pull(ad_worker_session *s, const ad_message *m, ad_fault *fault) {
    ad_session_pull *p = &s->sharing.pull;
    int status = ad__sharing_begin(s, m, 0, fault);
    if (status) return status;
    if (!m->s[0].size) return ad__fault(fault, AD_E_VALUE, "pull: server must be the name of a server, and is empty");
    if (m->s[1].size >= AD_PRINCIPAL_SIZE)
        return ad__fault(fault, AD_E_VALUE, "pull: principal must have at most %d bytes", AD_PRINCIPAL_SIZE - 1);
    atomic_store(&p->place, s->messages.place);
    atomic_store(&p->state, AD_PULL_ASKED);
    tell_arrayd(s, m, false);
    return 0;
}

/* Attach the array that has come. */
static int end_pull(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    ad_session_pull *p = &s->sharing.pull;
    int status = p->code;
    if (status) {
        ad__fault(fault, status, "%s", p->why);
    } else {
        memcpy(&m->u[2], p->half, sizeof p->half);
        status = ad__handle_attach(s, m, fault);
    }
    if (status != AD_WAITS) atomic_store(&p->state, AD_PULL_NONE);
    return status;
}

int ad__handle_pull(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    ad_session_pull *p = &s->sharing.pull;
    int status = atomic_load(&p->state) == AD_PULL_NONE ? begin_pull(s, m, fault) : 0;
    if (status) return status;
    if (ad__cancel_covers(s, s->messages.place) && change_state(p, AD_PULL_ASKED, AD_PULL_NONE)) {
        tell_arrayd(s, m, true);
        return ad__fault(fault, AD_E_CANCELLED, "pull: the client has cancelled it");
    }
    if (atomic_load(&p->state) == AD_PULL_ANSWERED) return end_pull(s, m, fault);
    ad__session_await(s, AD_WAIT_PULL, NULL, NULL);
    return AD_WAITS;
}
