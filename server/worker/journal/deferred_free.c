/* What has been given up and stays for a while: until a state is valid that does not have it, it might be needed to
 * execute something again. */
#include <stdlib.h>
#include <string.h>

#include "server/common/os.h"
#include "server/worker/sharing/sharing.h"
#include "server/worker/memory/spill/spill.h"
#include "server/worker/journal/session_journal_inside.h"

/* One of the three. */
typedef struct ad_parked {
    ad_stream_arena *home;
    ad_block block;
    uint32_t place; /* of the row that has the block: of this buffer, after so many moves */
    uint64_t id, moves;
    ad_window window; /* id 0: none */
    ad_shared *share;
} ad_parked;

bool ad__survival_parks(const ad_session *s, const ad_buffer *b) {
    const ad_survival *v = &s->survival;
    return v->late && b->place && ad__survival_lives(v);
}

static bool park(ad_session *s, const ad_parked *p) {
    ad_survival *v = &s->survival;
    if (!ad__survival_lives(v)) return false;
    ad_parked *list = ad__os_grow(v->parked, v->nparked, &v->parked_room, sizeof *list);
    if (!list) {
        ad__survival_over(s);
        return false;
    }
    v->parked = list;
    list[v->nparked++] = *p;
    v->parked_shares += p->share != NULL;
    return true;
}

bool ad__survival_park(ad_session *s, ad_stream_arena *home, const ad_block *block, const ad_buffer *b) {
    ad_parked p = {.home = home, .block = *block};
    if (b) {
        p.place = b->place;
        p.id = b->id;
        p.moves = ad__buffer_moves(b);
    }
    return park(s, &p);
}

bool ad__survival_park_window(ad_session *s, const ad_window *w) {
    return s->survival.late && park(s, &(ad_parked){.window = *w});
}

bool ad__survival_park_share(ad_session *s, ad_shared *m) { return park(s, &(ad_parked){.share = m}); }

bool ad__survival_parks_of(const ad_session *s, const char *principal) {
    const ad_survival *v = &s->survival;
    size_t i = 0;
    while (i < v->nparked && !(v->parked[i].share && ad__shared_is_of(v->parked[i].share, principal))) i++;
    return i < v->nparked;
}

static void release(ad_session *s, ad_parked *p) {
    if (p->home) ad__memory_give(p->home, &p->block);
    else if (p->share) ad__shared_release(s->worker, p->share, s->principal);
    else if (p->window.id) ad__window_release(s, &p->window);
}

void ad__survival_unpark(ad_session *s, size_t n) {
    ad_survival *v = &s->survival;
    for (size_t i = 0; i < n; i++) {
        v->parked_shares -= v->parked[i].share != NULL;
        release(s, &v->parked[i]);
    }
    v->nparked -= n;
    if (v->nparked) memmove(v->parked, v->parked + n, v->nparked * sizeof *v->parked);
    v->parked_taken = 0;
    v->parked_begun = v->parked_begun > n ? v->parked_begun - n : 0;
    ad__spill_settle(s->worker);
}

/* ---- no memory ---- */

static bool flush(ad_session *s, bool judge) {
    const ad_survival *v = &s->survival;
    const size_t before = v->nparked + v->nleaving;
    if (!before) return false;
    ad__survival_flush(s, judge);
    return v->nparked + v->nleaving < before;
}

static bool flush_others(const ad_session *s) {
    ad_worker *w = s->worker;
    bool done = false;
    pthread_mutex_lock(&w->sessions_lock);
    for (ad_session *other = w->sessions; other; other = other->next)
        if (other != s && !other->dropping && !other->beside) done = flush(other, true) || done;
    pthread_mutex_unlock(&w->sessions_lock);
    return done;
}

bool ad__survival_evacuate(ad_session *s, ad_stream_queue *queue) {
    ad_survival *v = &s->survival;
    bool done = false;
    if (!v->nparked || ad__stream_queues_wait(s, NULL)) return false;
    for (size_t i = 0; i < v->nparked; i++) {
        ad_parked *p = &v->parked[i];
        ad_block from = p->block;
        if (!p->place || !p->home || !ad__spill_copy(s->worker, queue, p->home, &from, &p->block)) continue;
        ad_journal_place now = {.id = p->id, .moves = ++p->moves, .block = p->block.size};
        ad__memory_place(&p->block, &now.slab, &now.offset);
        ad__survival_placed(s, p->place, &now);
        ad__memory_give(p->home, &from);
        p->home = s->worker->spill->stream_arena;
        done = true;
    }
    return done;
}

/* In the middle of held operations, or while the device may yet find something wrong, no state can be taken: what is
 * lost if the worker is killed now says so. */
bool ad__survival_sacrifice(ad_session *s) {
    ad_survival *v = &s->survival;
    bool done = false;
    if (!v->nparked || ad__stream_queues_wait(s, NULL)) return false;
    for (size_t i = 0; i < v->nparked; i++) {
        ad_parked *p = &v->parked[i];
        if (!p->home) continue;
        ad__survival_lose(s, p->place);
        ad__memory_give(p->home, &p->block);
        p->home = NULL;
        done = true;
    }
    return done;
}

bool ad__survival_relieve(ad_session *s) { return s->worker->journal && (flush_others(s) || flush(s, false)); }
