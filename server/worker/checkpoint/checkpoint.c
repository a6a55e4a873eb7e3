#include "server/worker/checkpoint/checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "server/common/os.h"
#include "server/worker/exec/job.h"
#include "server/worker/sharing/sharing.h"
#include "server/worker/checkpoint/inside.h"
#include "server/worker/session.h"
#include "server/worker/checkpoint/buffer_free.h"

#define FIRST_ROWS 64

void ad__checkpoint_list(ad_worker_session *s) {
    ad_checkpoint *v = &s->checkpoint;
    if (!v->at || v->listed) return;
    v->listed = true;
    pthread_mutex_lock(&s->worker->sessions_lock);
    ad_journal_head *head = ad__journal_head(v->journal);
    v->at->next = head->sessions;
    ad__journal_store(&head->sessions, ad__journal_at(v->journal, v->at));
    pthread_mutex_unlock(&s->worker->sessions_lock);
}

static void pass_descriptor(void *session, int fd, uint64_t number) {
    const ad_worker_session *s = session;
    int own = ad__os.dup(fd);
    if (own < 0) return;
    const ad_note note = {.kind = AD_NOTE_DESCRIPTOR, .id = s->id, .size = number, .process = s->input.received};
    ad__worker_tell(s->worker, &note, own);
}

void ad__checkpoint_watch_descriptors(ad_worker_session *s) {
    if (!s->checkpoint.at) return;
    s->windows.descriptors.seen = pass_descriptor;
    s->windows.descriptors.user = s;
}

/* Give the session an entry in the journal. Without memory it is not journaled. */
static int open_checkpoint(ad_worker_session *s, const ad_note *note) {
    ad_checkpoint *v = &s->checkpoint;
    ad_journal *l = s->worker->journal;
    (void)note;
    if (!l || !s->comeback.able) return 0;
    ad_journal_session *at = ad__journal_alloc(l, sizeof *at);
    ad_journal_table *t = ad__checkpoint_table_new(l, FIRST_ROWS);
    for (int i = 0; i < 2; i++) v->log[i] = ad__checkpoint_log_new(l, FIRST_ROWS);
    if (!at || !t || !v->log[0] || !v->log[1]) {
        ad__journal_free(l, at);
        ad__journal_free(l, t);
        for (int i = 0; i < 2; i++) ad__journal_free(l, v->log[i]);
        return 0;
    }
    *at = (ad_journal_session){
        .id = s->id, .process = s->comeback.process, .key = s->comeback.key, .alive = 1, .grants = s->grants};
    memcpy(at->who, s->principal, sizeof at->who);
    memcpy(at->client, s->client, sizeof at->client);
    memcpy(at->secret, s->comeback.secret, sizeof at->secret);
    at->table = ad__journal_at(l, t);
    v->journal = l;
    v->at = at;
    v->rows.places = 1; /* place 0 stands for none */
    v->next = 1;
    v->late = s->worker->backend->asynchronous;
    s->input.journal = l;
    s->input.at = at;
    ad__checkpoint_watch_descriptors(s);
    ad__output_write_down(&s->output, l, at);
    return 0;
}

static void unlink_session(const ad_worker_session *s) {
    const ad_checkpoint *v = &s->checkpoint;
    pthread_mutex_lock(&s->worker->sessions_lock);
    ad_journal_head *head = ad__journal_head(v->journal);
    uint64_t *link = &head->sessions;
    const ad_at own = ad__journal_at(v->journal, v->at);
    while (*link && *link != own) link = &((ad_journal_session *)ad__journal_get(v->journal, *link))->next;
    if (*link) ad__journal_store(link, v->at->next);
    pthread_mutex_unlock(&s->worker->sessions_lock);
}

static void close_checkpoint(ad_worker_session *s) {
    ad_checkpoint *v = &s->checkpoint;
    if (!v->at) return;
    unlink_session(s);
    ad__checkpoint_drop_pending(s);
    ad_journal_table *t = ad__checkpoint_table(v);
    for (uint64_t i = 0; i < t->capacity; i++) ad__checkpoint_free_row_data(v->journal, &t->row[i]);
    ad__journal_free(v->journal, ad__journal_get(v->journal, v->at->checkpoint[v->at->current].pending));
    ad__journal_free(v->journal, t);
    for (int i = 0; i < 2; i++) ad__journal_free(v->journal, v->log[i]);
    ad__journal_free(v->journal, v->at);
    ad__poison_release(v->pending);
    free(v->rows.changed.list);
    free(v->pending_changes.list);
    free(v->frees.list);
    free(v->rows.spare);
    free(v->unneeded.list);
    free(v->kept.list);
    v->at = NULL;
}

void ad__checkpoint_mark_moved(ad_shared *m) {
    for (ad_buffer *b = m->buffers; b; b = b->sharing.next) {
        ad_worker_session *s = b->sharing.holder;
        ad__checkpoint_mark_buffer(s, b);
        if (s->checkpoint.late && s->checkpoint.inside) continue; /* the message keeps the old memory */
        if (s->fusion.count || (s->checkpoint.late && !ad__checkpoint_flush(s, true)))
            ad__checkpoint_give_up(s); /* its committed checkpoint has the old place */
        else ad__checkpoint_commit(s);
    }
}

static void drop_checkpoint(ad_worker_session *s) {
    ad__checkpoint_give_released_memory(s);
    ad__checkpoint_free_deferred(s, s->checkpoint.frees.count);
}

const ad_component ad__component_checkpoint = {
    .name = "checkpoint", .open = open_checkpoint, .drop = drop_checkpoint, .close = close_checkpoint};
const ad_checkpoint_hooks ad__checkpoint_hooks = {.is_recoverable = ad__session_is_recoverable,
                                                  .mark_buffer = ad__checkpoint_mark_buffer,
                                                  .record_place = ad__checkpoint_record_place,
                                                  .must_defer = ad__checkpoint_must_defer,
                                                  .defer_free = ad__checkpoint_defer_free,
                                                  .free_all_deferred = ad__checkpoint_free_all_deferred,
                                                  .give_released_memory = ad__checkpoint_give_released_memory,
                                                  .move_deferred_to_host = ad__checkpoint_move_deferred_to_host,
                                                  .drop_deferred = ad__checkpoint_drop_deferred};
