/* Recovering memory: buffers in the slabs of the worker before, and what names and capabilities hold. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/common/log.h"
#include "server/common/os.h"
#include "server/worker/sharing/imports.h"
#include "server/worker/exec/job.h"
#include "server/worker/recover/inside.h"
#include "server/worker/sharing/sharing.h"
#include "server/worker/spill/spill.h"

#define FIRST_COMMONS 256
#define END_TEXT 192 /* how a worker ended: what fits into a fault behind what became of an array */

ad_poison *ad__recovery_poison(const ad_recovery *r, ad_at at) {
    const ad_journal_poison *p = ad__recovery_get(r, at, sizeof *p);
    ad_fault why;
    char name[sizeof p->name + 1];
    if (!at) return NULL;
    if (!p) {
        ad__fault(&why, AD_E_DEVICE_LOST, "the worker was killed, and the error of this array was lost");
        return ad__poison_new(&why, 0, "");
    }
    ad__fault(&why, p->code, "%.*s", (int)sizeof p->text - 1, p->text);
    snprintf(name, sizeof name, "%.*s", (int)sizeof p->name - 1, p->name);
    return ad__poison_new(&why, p->number, name);
}

/* ---- memory with several holders ---- */

static struct ad_common *find_common_slot(const ad_recovery *r, uint64_t slab, uint64_t offset) {
    uint64_t mask = r->common_room - 1, i = (slab * 31 + offset / 64) * 0x9e3779b97f4a7c15u >> 20 & mask;
    while (r->common[i].slab && (r->common[i].slab != slab || r->common[i].offset != offset)) i = (i + 1) & mask;
    return &r->common[i];
}

static bool grow_commons(ad_recovery *r) {
    struct ad_common *old = r->common;
    uint64_t room = r->common_room;
    r->common_room = room ? 2 * room : FIRST_COMMONS;
    if (!(r->common = ad__os.calloc(r->common_room, sizeof *r->common))) {
        r->common = old;
        r->common_room = room;
        return false;
    }
    for (uint64_t i = 0; i < room; i++)
        if (old[i].slab) *find_common_slot(r, old[i].slab, old[i].offset) = old[i];
    free(old);
    return true;
}

/* Find the entry of a row's memory. NULL: the memory has one holder. */
static struct ad_common *find_common(const ad_recovery *r, const ad_journal_row *row) {
    if (!row->slab || !r->common_room) return NULL;
    struct ad_common *c = find_common_slot(r, row->slab, row->offset);
    return c->slab ? c : NULL;
}

/* Find or make the entry of a row's memory. NULL: no memory. */
static struct ad_common *add_common(ad_recovery *r, const ad_journal_row *row) {
    if (2 * r->commons >= r->common_room && !grow_commons(r)) return NULL;
    struct ad_common *c = find_common_slot(r, row->slab, row->offset);
    if (!c->slab) {
        *c = (struct ad_common){.slab = row->slab, .offset = row->offset};
        r->commons++;
    }
    c->common = c->common || row->common;
    c->read = c->read || row->read;
    return c;
}

/* ---- listing it ---- */

static bool was_changing(const ad_journal_row *row, const ad_journal_checkpoint *state) {
    return (row->writing & ~AD_JOURNAL_REUSED) > state->operations;
}

/* Copy a row, with the place that its buffer was moved to last. Memory that may have been used again is not the
 * buffer's any more. */
static ad_journal_row settle_row(const ad_recovery *r, const ad_journal_row *row, const ad_journal_checkpoint *state) {
    ad_journal_row out = *row;
    ad__journal_settle(&out, ad__recovery_get(r, row->elsewhere, sizeof(ad_journal_place)));
    if (out.kind == AD_JOURNAL_BUFFER && was_changing(row, state) && row->writing & AD_JOURNAL_REUSED) out.slab = 0;
    return out;
}

/* A row's statement about shared memory is true for all holders. The row of who has just published memory does not say
 * yet that it is shared, but the row of its name does, which was visited before. */
int ad__recovery_collect_common(ad_recovery *r, const ad_journal_table *t, const ad_journal_checkpoint *state) {
    for (uint64_t i = 0; i < t->capacity; i++) {
        const ad_journal_row row = settle_row(r, &t->row[i], state);
        if (row.kind != AD_JOURNAL_BUFFER || !row.slab) continue;
        struct ad_common *c = row.shared ? add_common(r, &row) : find_common(r, &row);
        if (!c && row.shared) return AD_E_MEMORY;
        if (c && was_changing(&row, state)) c->changing = true;
    }
    return 0;
}

/* ---- slabs ---- */

static ad_old_slab *find_slab(const ad_recovery *r, uint64_t id) {
    size_t low = 0, high = r->nslabs;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (r->slab[middle].id < id) low = middle + 1;
        else high = middle;
    }
    return low < r->nslabs && r->slab[low].id == id ? &r->slab[low] : NULL;
}

static bool is_host_slab(const ad_old_slab *o) { return !strcmp(o->who, AD_SPILL_NOBODY); }

/* Adopt a slab as memory of a device or of the host. NULL with a fault, or if it is adopted as other memory. */
static ad_slab *adopt_slab(ad_worker *w, ad_old_slab *o, ad_memory *memory, ad_fault *fault) {
    ad_slab_map map;
    int status;
    if (o->slab) return o->memory == memory ? o->slab : NULL;
    if (o->fd < 0) return NULL;
    if (is_host_slab(o)) status = ad__spill_attach(w, o->fd, o->size, &map, fault);
    else status = w->backend->slab_attach(memory->device, o->fd, o->size, &map, fault);
    if (status) return NULL;
    if (!(o->slab = ad__memory_adopt(memory, o->who, o->id, &map))) {
        memory->backend->slab_close(memory->device, &map);
        ad__fault(fault, AD_E_MEMORY, "out of host memory");
    }
    o->memory = memory;
    return o->slab;
}

static void tell_slab_gone(ad_worker *w, uint64_t id) {
    ad__worker_tell(w, &(ad_note){.kind = AD_NOTE_SLAB_GONE, .id = id}, -1);
}

static int report_not_kept(ad_fault *fault) {
    return ad__fault(fault, AD_E_DEVICE_LOST, "the worker was killed, and this array's memory was not kept");
}

static int restore_block(ad_worker *w, const ad_journal_row *row, ad_stream_queue *queue, ad_block *out,
                         ad_fault *fault) {
    ad_old_slab *o = find_slab(w->before.left, row->slab);
    ad_slab *slab = o && !is_host_slab(o) ? adopt_slab(w, o, &queue->gpu->memory, fault) : NULL;
    if (!slab) return report_not_kept(fault);
    if (row->size > row->block || ad__memory_restore(queue->stream_arena, slab, row->offset, row->block, out))
        return ad__fault(fault, AD_E_DEVICE_LOST, "the worker was killed, and this array's memory is not where it was");
    if (row->open) ad__memory_expose(out);
    return 0;
}

/* Restore a buffer that was in host memory. Returns 1, or 0: it was not there. */
static int restore_moved(ad_worker *w, const ad_journal_row *row, ad_stream_queue *queue, ad_buffer *b,
                         ad_fault *fault) {
    ad_old_slab *o = find_slab(w->before.left, row->slab);
    if (!o || !is_host_slab(o)) return 0;
    if (!w->spill)
        return ad__fault(fault, AD_E_DEVICE_LOST,
                         "the worker was killed, this array was in host memory, and there is "
                         "to be none any more (option host-memory)");
    ad_slab *slab = adopt_slab(w, o, &w->spill->host, fault);
    if (!slab) return report_not_kept(fault);
    return ad__spill_take_up(w, queue, b, slab, row) ? report_not_kept(fault) : 1;
}

/* ---- buffers ---- */

/* Describe how the worker ended, for a text after "when its worker". */
static const char *describe_end(const ad_worker *w, char out[END_TEXT]) {
    const bool crashed = *w->before.ended_by;
    if (*w->before.died_of) snprintf(out, END_TEXT, "died: %.180s", w->before.died_of);
    else snprintf(out, END_TEXT, crashed ? "crashed (%s); please report this" : "was killed", w->before.ended_by);
    return out;
}

/* Fill a fault that explains why memory has lost its contents. 0: it has not. */
static int explain_loss(const ad_worker *w, const ad_journal_row *row, const ad_journal_checkpoint *state,
                        ad_fault *fault) {
    const ad_recovery *r = w->before.left;
    if (row->fleeting == AD_FLEETING_IMPORT) return ad__fault(fault, AD_E_DEVICE_LOST, AD_IMPORT_LOST);
    if (row->fleeting)
        return ad__fault(fault, AD_E_DEVICE_LOST, "the worker was killed, and the module's variables with it");
    const struct ad_common *c = find_common(r, row);
    if (!(c && c->common && c->changing) && !was_changing(row, state)) return 0;
    char end[END_TEXT];
    if (was_changing(row, state) && row->writing & AD_JOURNAL_REUSED)
        return ad__fault(fault, AD_E_DEVICE_LOST, "this array's memory had been used again when its worker %s",
                         describe_end(w, end));
    return ad__fault(fault, AD_E_DEVICE_LOST, "this array was being changed in place when its worker %s",
                     describe_end(w, end));
}

static void restore_value(ad_worker_session *s, const ad_journal_row *row, const ad_journal_session *at,
                          const ad_journal_checkpoint *state, ad_buffer *b) {
    ad_fault why;
    char name[sizeof at->name + 1] = "";
    if (b->poison || (b->poison = ad__recovery_poison(s->worker->before.left, row->poison))) return;
    if (!explain_loss(s->worker, row, state, &why)) return;
    if (was_changing(row, state) && row->writing == at->writing)
        snprintf(name, sizeof name, "%.*s", (int)sizeof at->name, at->name);
    b->poison = ad__poison_new(&why, was_changing(row, state) ? row->writing & ~AD_JOURNAL_REUSED : 0, name);
}

/* Describe the loss of a device, with the reason for which the session cannot use it. */
static ad_poison *poison_of_lost_device(ad_worker_session *s, unsigned device) {
    ad_fault why = {0}, lost;
    ad__session_gpu(s, device, &why);
    ad__fault(&lost, AD_E_DEVICE_LOST, "device %u is lost, and this array lay there: %.120s", device, why.text);
    return ad__poison_new(&lost, 0, "");
}

/* Restore a buffer that shares no restored memory. queue: NULL if its device is lost. */
static int restore_own(ad_worker_session *s, const ad_journal_row *row, const ad_journal_checkpoint *state,
                       ad_stream_queue *queue, ad_buffer **out, ad_fault *fault) {
    static _Alignas(64) char nothing[64];
    ad_buffer *b;
    ad_fault why;
    int result = ad__buffers_add(&s->buffers, row->id, &b, fault);
    if (result) return result;
    b->address = nothing;
    b->home = queue;
    b->readonly = row->readonly;
    b->filling = row->filling;
    *out = b;
    if (!row->slab) return 0;
    if (!queue) {
        b->poison = poison_of_lost_device(s, row->device);
        return 0;
    }
    result = restore_moved(s->worker, row, queue, b, &why);
    if (!result && !(result = restore_block(s->worker, row, queue, &b->block, &why))) b->address = b->block.address;
    if (result < 0) {
        explain_loss(s->worker, row, state, &why); /* a cause in the row explains more */
        b->poison = ad__poison_new(&why, 0, "");
        return 0;
    }
    b->size = row->size;
    s->held.buffer_bytes += row->size;
    return 0;
}

/* Mark a buffer's row as shared, if other holders' rows say so, and get their entry. NULL: they do not. */
static struct ad_common *apply_common(const ad_recovery *r, ad_journal_row *row) {
    struct ad_common *c = find_common(r, row);
    if (!c) return NULL;
    row->shared = 1;
    row->common = c->common;
    if (c->shared && c->shared->size != row->size) row->block = 0; /* memory of another size is not restored */
    return c;
}

/* Let an entry have the memory that was restored, and say of it what the rows of its holders say. Programs that read it
 * have it still. The entry is a holder until recovery is over: those before may end meanwhile. */
static void enter_shared(struct ad_common *c, ad_shared *m) {
    c->shared = m;
    m->holders++;
    m->common = c->common;
    m->readers = c->read ? AD_READERS_UNKNOWN : 0;
}

/* End the entries' hold. Memory that one other has stays shared, as its row says. */
static void leave_shared(ad_worker *w) {
    ad_recovery *r = w->before.left;
    for (uint64_t i = 0; i < r->common_room; i++) {
        ad_shared *m = r->common[i].shared;
        r->common[i].shared = NULL;
        if (m && m->holders > 1) m->holders--;
        else if (m) ad__shared_release(w, m, ""); /* nobody is charged for an entry */
    }
}

int ad__recovery_restore_buffer(ad_worker_session *s, const ad_journal_row *written, const ad_journal_session *at,
                                const ad_journal_checkpoint *state, ad_fault *fault) {
    ad_journal_row row = settle_row(s->worker->before.left, written, state);
    const bool lost = ad__session_usable_device(s, row.device) != row.device;
    ad_stream_queue *queue = lost ? NULL : ad__stream_queue_find(s, row.device, fault);
    struct ad_common *c = apply_common(s->worker->before.left, &row);
    ad_buffer *b = NULL;
    if (!queue && !lost) return fault->code;
    ad_shared *shared = c && row.block ? c->shared : NULL;
    int status = shared ? ad__shared_join(s, shared, row.id, row.readonly, fault)
                        : restore_own(s, &row, state, queue, &b, fault);
    if (status) return status;
    if (!b) b = ad__buffers_find(&s->buffers, row.id);
    if (c && !shared && b->block.slab) {
        if (!(shared = ad__shared_of(s, b))) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
        enter_shared(c, shared);
    }
    restore_value(s, &row, at, state, b);
    ad__checkpoint_mark_buffer(s, b);
    return 0;
}

/* ---- names and capabilities ---- */

/* Restore memory that no session has, in a stream queue of its own. NULL with a fault. */
static ad_shared *restore_orphan(ad_worker *w, const ad_journal_holder *h, ad_fault *fault) {
    ad_block block;
    ad_stream_queue *queue = ad__stream_queue_alone(w, h->memory.device, h->who, fault);
    if (!queue) return NULL;
    if (restore_block(w, &h->memory, queue, &block, fault)) {
        ad__stream_queue_close(w->backend, queue);
        return NULL;
    }
    ad_shared *m = ad__shared_restore(w, queue, &block, h->memory.size);
    if (!m) {
        ad__memory_give(queue->stream_arena, &block);
        ad__stream_queue_close(w->backend, queue);
        ad__fault(fault, AD_E_MEMORY, "out of host memory");
        return NULL;
    }
    ad__sharing_orphan(w, queue);
    return m;
}

/* Find or restore the memory of a name or a capability. Without elements, or where they are lost, there is none, and
 * nobody else need have the same. NULL with a fault. */
static ad_shared *find_held(ad_worker *w, const ad_journal_holder *h, ad_fault *fault) {
    struct ad_common *c = find_common(w->before.left, &h->memory);
    if (!h->memory.slab) return ad__shared_without_memory(w, fault);
    if (!c) {
        ad__fault(fault, AD_E_PROTOCOL, "its part of the journal is inconsistent");
        return NULL;
    }
    ad_shared *m = c->shared ? NULL : restore_orphan(w, h, fault);
    if (m) enter_shared(c, m);
    return c->shared;
}

static const char *get_grant(const ad_recovery *r, ad_at at) {
    const uint64_t *size = ad__recovery_get(r, at, sizeof *size);
    const char *text = size && *size ? ad__recovery_get(r, at, sizeof *size + *size) : NULL;
    return text && !text[sizeof *size + *size - 1] ? text + sizeof *size : NULL;
}

static int restore_holder(ad_worker *w, ad_journal_holder *h, ad_fault *fault) {
    ad_recovery *r = w->before.left;
    const ad_journal_checkpoint nothing = {.operations = UINT64_MAX};
    const char *grant = h->kind == AD_HOLDER_NAME ? get_grant(r, h->grant) : "";
    h->who[sizeof h->who - 1] = h->name[sizeof h->name - 1] = 0;
    if (!grant) return ad__fault(fault, AD_E_PROTOCOL, "its grant in the journal is inconsistent");
    ad_shared *shared = find_held(w, h, fault);
    if (!shared) return fault->code;
    if (!shared->poison) shared->poison = ad__recovery_poison(r, h->memory.poison);
    ad_fault why;
    if (!shared->poison && explain_loss(w, &h->memory, &nothing, &why)) shared->poison = ad__poison_new(&why, 0, "");
    int status =
        h->kind == AD_HOLDER_NAME ? ad__name_restore(w, h, grant, shared) : ad__capability_restore(w, h, shared);
    return status ? ad__fault(fault, status, "%s", ad__error_text(status)) : 0;
}

/* Call visit for each name, capability and lease in the journal. */
static void visit_holders(ad_recovery *r, const ad_journal_head *head, void (*visit)(void *user, ad_journal_holder *h),
                          void *user) {
    const ad_journal_index *index = ad__recovery_get(r, head->index, sizeof *index);
    if (!index || index->capacity > r->memory / sizeof *index->holder ||
        !ad__recovery_get(r, head->index, sizeof *index + index->capacity * sizeof *index->holder))
        return;
    for (uint64_t i = 0; i < index->capacity; i++) {
        ad_journal_holder *h = ad__recovery_get(r, index->holder[i], sizeof *h);
        if (h && !ad__recovery_skips(r, h->who)) visit(user, h);
    }
}

struct collecting {
    ad_recovery *recovery;
    int status;
};

static void add_holder(void *user, ad_journal_holder *h) {
    struct collecting *n = user;
    if (h->memory.slab && !add_common(n->recovery, &h->memory)) n->status = AD_E_MEMORY;
}

int ad__recovery_collect_holders(ad_recovery *r, const ad_journal_head *head) {
    struct collecting n = {.recovery = r};
    visit_holders(r, head, add_holder, &n);
    return n.status;
}

static void recover_holder(void *user, ad_journal_holder *h) {
    ad_fault fault = {0};
    if (h->kind == AD_HOLDER_LEASE || !restore_holder(user, h, &fault)) return;
    ad__log(shared_array_lost, h->who, h->kind == AD_HOLDER_NAME ? h->name : "", fault.text);
}

void ad__recovery_restore_holders(ad_worker *w, const ad_journal_head *head) {
    visit_holders(w->before.left, head, recover_holder, w);
}

/* ---- the end ---- */

/* Give back slabs that nothing is in. */
void ad__recovery_give_back(ad_worker *w) {
    const ad_recovery *r = w->before.left;
    leave_shared(w);
    ad__spill_recovered(w);
    for (size_t i = 0; i < r->nslabs; i++) {
        if (r->slab[i].slab) ad__memory_adopted(r->slab[i].memory, r->slab[i].slab);
        else tell_slab_gone(w, r->slab[i].id);
    }
    while (w->before.nmissed) tell_slab_gone(w, w->before.missed[--w->before.nmissed]);
}
