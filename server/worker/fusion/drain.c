/* When queued operations are executed, and how many in one turn:
 *
 *     begin_drain   all queued operations ──▶ groups
 *     run_next      a group (or several) per step, while the turn has time
 *     end_drain     what must stay goes back to the empty queue
 *
 * Groups are formed of all operations at once. A turn executes as many as it has time for, so that other sessions wait
 * for one chain and not for sixty-four. */
#include "protocol/infer.h"
#include "server/common/os.h"
#include "server/worker/fusion/entries.h"
#include "server/worker/fusion/queue.h"
#include "server/worker/session.h"

#define CLOCK_EVERY 8 /* cheap groups between two looks at the clock; on a device each group is a launch */

/* ---- forming groups ---- */

/* Fill in what the members depend on, now that no more operations come. */
static void complete_members(ad_fusion_queue *h) {
    for (unsigned i = 0; i < h->count; i++) {
        const ad_fusion_op *o = &h->ops->op[i];
        ad_member *m = &h->ops->member[i];
        for (int k = 0; k < m->operands; k++) {
            const ad_buffer *b = o->buffer[k];
            m->tie[k] = b && b->fusing.in_place ? b->fusing.tie : AD_NOWHERE;
            if (k < m->nout) m->wanted[k] = !b->freed && b->fusing.value == (int)(2 * i) + k + 1;
        }
    }
}

static void drop_unneeded(ad_worker_session *s, const ad_groups *groups) {
    for (unsigned i = 0; i < s->fusion.count; i++) {
        if (groups->needed[i]) continue;
        s->fusion.dropped++;
        ad__fusion_release_op(s, i);
    }
}

/* Count the operations in groups that have grown since operation `until`, and mark them in recent. */
static unsigned find_recent(const ad_groups *groups, unsigned until, bool *recent) {
    unsigned n = 0;
    for (unsigned i = 0; i < groups->count; i++) {
        const ad_group *g = &groups->group[i];
        for (unsigned at = g->first; at < (unsigned)g->first + g->count && g->last >= until; at++, n++)
            recent[groups->order[at]] = true;
    }
    return n;
}

/* Tell whether writing the output can be repeated: the operation does not read it, and nothing has read it since the
 * checkpoint. On a synchronous backend that is known only if nothing has been executed since then (`fresh`). */
static bool is_repeatable(const ad_worker_session *s, const ad_fusion_op *o, int output, bool fresh) {
    const ad_buffer *b = o->buffer[output];
    if (o->masked) return false;
    for (int k = o->op.nout; k < o->op.nout + o->op.nin; k++)
        if (o->buffer[k] == b) return false;
    if (!s->checkpoint.late) return fresh && b->queued == 1 && !b->shared;
    if (b->shared) return false;
    return o->repeatable >> output & 1 ||
           ad__checkpoint_is_repeatable_write(s, b, ad__checkpoint_extent(&o->op.operand[output].desc));
}

/* Announce to the checkpoint all writes to existing buffers that cannot be repeated. After the others a synchronous
 * backend commits as well, so that the next write can be repeated, too. */
static void announce_writes(ad_worker_session *s, bool fresh) {
    const ad_fusion_queue *h = &s->fusion;
    for (unsigned i = 0; i < h->count && s->checkpoint.at; i++) {
        const ad_fusion_op *o = &h->ops->op[i];
        for (int k = 0; k < o->op.nout; k++) {
            if (!o->buffer[k] || !ad__fusion_is_view(&o->op.operand[k])) continue;
            if (!is_repeatable(s, o, k, fresh))
                ad__checkpoint_before_write(s, o->buffer[k], o->number, ad__op_name(&o->op));
            else if (!s->checkpoint.late) s->checkpoint.announced = true;
        }
    }
}

/* Begin to execute all queued operations. thin: only make room, and leave groups that have grown lately. */
static void begin_drain(ad_worker_session *s, bool thin) {
    ad_fusion_queue *h = &s->fusion;
    ad_draining *d = &h->ops->draining;
    bool recent[AD_FUSION_OPS] = {false};
    const bool fresh = !s->checkpoint.behind;
    h->draining = true;
    ad__checkpoint_mark_executed(&s->checkpoint);
    d->group = d->at = d->tried = 0;
    d->apart = false;
    d->until = h->count;
    complete_members(h);
    ad__groups_form(h->ops->member, h->count, &d->groups);
    if (thin && !ad__checkpoint_is_full(&s->checkpoint)) {
        unsigned until = h->count > AD_FUSION_RECENT ? h->count - AD_FUSION_RECENT : 0;
        unsigned n = find_recent(&d->groups, until, recent);
        if (n && n < h->count && n <= AD_FUSION_OPS / 2) d->until = until;
    }
    if (s->worker->fuses == AD_FUSE_WHERE_IT_PAYS && h->count >= AD_FUSION_FEW && d->groups.count == h->count)
        h->vain = AD_FUSION_VAIN;
    drop_unneeded(s, &d->groups);
    announce_writes(s, fresh);
}

/* ---- executing them ---- */

/* Execute several groups as one chain, where launches take longer than execution. False: nothing was executed. */
static bool run_together(ad_worker_session *s) {
    ad_draining *d = &s->fusion.ops->draining;
    if (d->apart || d->group < d->tried || !ad__fusion_launch_costs_more(s)) return false;
    const unsigned n = ad__groups_together(s->fusion.ops->member, &d->groups, d->group, d->until);
    if (n == 1) return false;
    const ad_group all = ad__groups_join(&d->groups, d->group, n);
    const bool done = ad__fusion_run_group(s, &d->groups, &all);
    if (done) d->group += n;
    else d->tried = d->group + n;
    return done;
}

/* Execute one group, or one operation of a group that cannot be a chain. False: all that were due have been executed.
 */
static bool run_next(ad_worker_session *s) {
    ad_draining *d = &s->fusion.ops->draining;
    const ad_group *g = &d->groups.group[d->group];
    while (d->group < d->groups.count && g->last >= d->until) g = &d->groups.group[++d->group];
    if (d->group == d->groups.count) return false;
    if (run_together(s)) return true;
    if (g->count > 1 && !d->apart) {
        d->apart = !ad__fusion_run_group(s, &d->groups, g);
        d->group += !d->apart;
        return true;
    }
    ad__fusion_run_one(s, d->groups.order[g->first + d->at++]);
    if (d->at < g->count) return true;
    d->group++;
    d->at = 0;
    d->apart = false;
    return true;
}

/* ---- operations that stay ---- */

/* Copy the operations that stay, in order, into an arena. Returns their number; negative: no host memory. */
static int copy_remaining(const ad_fusion_queue *h, ad_arena *arena, ad_fusion_op *out) {
    const ad_draining *d = &h->ops->draining;
    bool recent[AD_FUSION_OPS] = {false};
    int n = 0;
    find_recent(&d->groups, d->until, recent);
    for (unsigned i = 0; i < h->count; i++) {
        if (!recent[i]) continue;
        out[n] = h->ops->op[i];
        if (!ad__fusion_copy_op(arena, &out[n++].op)) return -1;
    }
    return n;
}

/* Reset the buffers' use counts, as if the operation had never been queued. */
static void reset_use(const ad_fusion_op *o) {
    for (int k = 0; k < o->op.nout + o->op.nin; k++) {
        if (o->buffer[k]) o->buffer[k]->queued = 0;
    }
}

static void empty_queue(ad_worker_session *s) {
    ad_fusion_queue *h = &s->fusion;
    h->draining = false;
    h->count = h->roots = 0;
    h->gone = 0;
    h->bytes = 0;
    h->cost = h->roots_cost = 0;
}

/* Finish after the due operations, and queue those that stay again. False: no host memory, so they must be executed as
 * well. */
static bool finish_drain(ad_worker_session *s) {
    ad_fusion_queue *h = &s->fusion;
    ad_draining *d = &h->ops->draining;
    ad_fusion_op left[AD_FUSION_OPS / 2];
    ad_arena arena = AD_ARENA_INIT;
    int n = d->until < h->count ? copy_remaining(h, &arena, left) : 0;
    if (n < 0) {
        ad__arena_free(&arena);
        return false;
    }
    const bool costly = h->cost > AD_CHEAP;
    empty_queue(s);
    for (int i = 0; i < n; i++) reset_use(&left[i]);
    for (int i = 0; i < n; i++) ad__fusion_append(s, &left[i]);
    if (n) {
        ad__arena_free(&h->arena);
        h->arena = arena;
    }
    ad__stream_queues_settle(s);
    if (s->checkpoint.inside)
        ad__checkpoint_begin_changes(&s->checkpoint); /* the message at hand has not changed anything yet */
    if (costly || s->checkpoint.late || ad__checkpoint_is_full(&s->checkpoint)) ad__checkpoint_commit(s);
    return true;
}

/* Execute the operations that were to stay, too. */
static void run_remaining(ad_worker_session *s) {
    ad_fusion_queue *h = &s->fusion;
    ad_draining *d = &h->ops->draining;
    for (unsigned i = 0; i < d->groups.count; i++) {
        const ad_group *g = &d->groups.group[i];
        if (g->last < d->until || (g->count > 1 && ad__fusion_run_group(s, &d->groups, g))) continue;
        for (unsigned at = 0; at < g->count; at++) ad__fusion_run_one(s, d->groups.order[g->first + at]);
    }
    d->until = h->count;
}

static void end_drain(ad_worker_session *s) {
    if (finish_drain(s)) return;
    run_remaining(s);
    finish_drain(s);
}

bool ad__fusion_continue(ad_worker_session *s) {
    const ad_fusion_queue *h = &s->fusion;
    const bool cheap = h->cost < AD_CHEAP * h->count;
    for (unsigned i = 1; h->draining; i++) {
        if (!ad__checkpoint_await_place(s)) return false;
        if (!run_next(s)) end_drain(s);
        else if ((!cheap || i % CLOCK_EVERY == 0) && ad__os_now() >= h->turn_until) return false;
    }
    return true;
}

bool ad__fusion_drain(ad_worker_session *s) {
    if (s->fusion.count && !s->fusion.draining) begin_drain(s, false);
    return ad__fusion_continue(s);
}

bool ad__fusion_make_room(ad_worker_session *s) {
    begin_drain(s, true);
    return ad__fusion_continue(s);
}

void ad__fusion_flush(ad_worker_session *s) {
    while (s->fusion.count) {
        if (!s->fusion.draining) begin_drain(s, false);
        while (run_next(s)) {}
        end_drain(s);
    }
}
