/* Changes since the checkpoint. */
#include "server/common/os.h"
#include "server/worker/checkpoint/inside.h"
#include "server/worker/session.h"

bool ad__session_is_recoverable(const ad_worker_session *s) { return ad__checkpoint_is_recoverable(&s->checkpoint); }

bool ad__session_commits_late(const ad_worker_session *s) {
    return s->checkpoint.late && ad__session_is_recoverable(s);
}

void ad__checkpoint_give_up(ad_worker_session *s) {
    ad_checkpoint *v = &s->checkpoint;
    if (!v->at) return;
    ad__journal_store(&v->at->alive, 0);
    ad__output_settle(&s->output, UINT64_MAX);
}

/* ---- changes ---- */

static void append_change(ad_worker_session *s, ad_changed change) {
    ad_checkpoint *v = &s->checkpoint;
    if (!ad__checkpoint_is_recoverable(v)) return;
    ad_changed *list = ad__os_grow(v->rows.changed.list, v->rows.changed.count, &v->rows.changed.room, sizeof *list);
    if (!list) {
        ad__checkpoint_give_up(s);
        return;
    }
    v->rows.changed.list = list;
    list[v->rows.changed.count++] = change;
}

/* Prefetch a row that will be written soon: of many sessions' rows few are in the cache. */
static void prefetch_row(const ad_checkpoint *v, uint32_t place) {
    const ad_journal_row *row = &ad__checkpoint_table(v)->row[place];
    __builtin_prefetch(row, 1);
    __builtin_prefetch((const char *)(row + 1) - 1, 1);
}

void ad__checkpoint_mark_row(ad_worker_session *s, ad_journal_kind kind, uint64_t id) {
    append_change(s, (ad_changed){id, kind, 0});
}

void ad__checkpoint_remove_row(ad_worker_session *s, uint32_t place) {
    if (!place) return;
    prefetch_row(&s->checkpoint, place);
    append_change(s, (ad_changed){0, AD_JOURNAL_NONE, place});
}

void ad__checkpoint_mark_freed(ad_worker_session *s, ad_buffer *b) {
    b->changed = true; /* nothing else of the buffer needs to be written */
    ad__checkpoint_remove_row(s, b->place);
}

void ad__checkpoint_mark_buffer(ad_worker_session *s, ad_buffer *b) {
    if (!s->checkpoint.at || b->changed || !b->id) return;
    b->changed = true;
    ad__checkpoint_mark_row(s, AD_JOURNAL_BUFFER, b->id);
}

/* The row is written again, but the buffer does not count as changed: the committed checkpoint has its memory, and a
 * write in place gives it other memory. Two changes of one buffer do no harm. */
void ad__checkpoint_end_filling(ad_worker_session *s, ad_buffer *b) {
    if (!b->filling) return;
    b->filling = false;
    if (s->checkpoint.at && !b->changed) ad__checkpoint_mark_row(s, AD_JOURNAL_BUFFER, b->id);
}

/* ---- descriptors ---- */

void ad__checkpoint_release_descriptor_now(ad_worker_session *s, uint64_t number) {
    const ad_note note = {.kind = AD_NOTE_DESCRIPTOR_GONE, .id = s->id, .size = number};
    if (s->checkpoint.at) ad__worker_tell(s->worker, &note, -1);
}

void ad__checkpoint_release_descriptor(ad_worker_session *s, uint64_t number) {
    ad_checkpoint *v = &s->checkpoint;
    if (!ad__checkpoint_is_recoverable(v)) {
        ad__checkpoint_release_descriptor_now(s, number);
        return;
    }
    uint64_t *list = ad__os_grow(v->unneeded.list, v->unneeded.count, &v->unneeded.room, sizeof *list);
    if (!list) return; /* arrayd keeps the descriptor until the session is over */
    v->unneeded.list = list;
    list[v->unneeded.count++] = number;
}
