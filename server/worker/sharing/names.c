/* Names: published arrays, which outlive their session. Any session that is allowed to can attach one. Each
 * principal has names of its own. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/desc.h"
#include "server/common/os.h"
#include "server/common/report.h"
#include "server/worker/handlers.h"
#include "server/worker/exec/job.h"
#include "server/worker/sharing/sharing.h"
#include "server/worker/io/reply.h"
#include "server/worker/session/ops.h"
#include "server/worker/checkpoint/buffer_free.h"

#define NAME_MOST 200   /* characters of a name */
#define GRANT_MOST 4096 /* characters of the list of principals that may attach a name */

struct ad_name {
    ad_holder holder;
    ad_name *next;
    char name[NAME_MOST + 1];
    char *grant; /* principals that may attach it: "uid:1000,uid:1001" or "*"; "": only its own */
    bool writable, column_major;
    bool moving; /* another worker may have its memory by now */
    uint8_t dtype, ndim;
    int64_t shape[AD_MAX_NDIM];
};

static ad_name **find_name(ad_worker *w, const char *principal, const char *name) {
    ad_name **at = &w->sharing->names;
    while (*at && (strcmp((*at)->name, name) || strcmp((*at)->holder.principal, principal))) at = &(*at)->next;
    return at;
}

static void free_name(ad_holder *h) {
    ad_name *n = (ad_name *)h;
    free(n->grant);
    free(n);
}

/* Take a name from the list, so that nobody finds it. */
static ad_name *remove_name(ad_worker *w, ad_name **at) {
    ad_name *n = *at;
    *at = n->next;
    w->sharing->published--;
    return n;
}

static void drop_name(ad_worker *w, ad_name **at) {
    ad_name *n = remove_name(w, at);
    ad__holder_end(w, &n->holder);
    free_name(&n->holder);
}

/* ---- checks ---- */

static bool is_plain_text(const char *text, size_t size, const char *more) {
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && (!c || !strchr(more, c))) return false;
    }
    return true;
}

/* Copy a field of a message. Errors and lists print names and principals, so these have only plain characters. */
static int copy_text(const ad_string *from, size_t most, const char *more, const char *what, char *out,
                     ad_fault *fault) {
    if (from->size > most)
        return ad__fault(fault, AD_E_VALUE, "%s has %zu characters, and may have %zu", what, (size_t)from->size, most);
    if (!is_plain_text(from->data, from->size, more))
        return ad__fault(fault, AD_E_VALUE, "%s may have letters, digits and \"%s\" only", what, more);
    memcpy(out, from->data, from->size);
    out[from->size] = 0;
    return 0;
}

static int copy_name(const ad_string *from, char *out, ad_fault *fault) {
    if (!from->size) return ad__fault(fault, AD_E_VALUE, "a name must not be empty");
    return copy_text(from, NAME_MOST, "._-/", "a name", out, fault);
}

/* Check that the view is a whole buffer, in C or Fortran order. A name must not give access to other bytes. */
static int check_view(const ad_desc *d, const ad_buffer *b, ad_fault *fault) {
    int64_t count = 0;
    int status = ad__desc_check(d, (int64_t)b->size, "publish", fault);
    if (!status) status = ad__shape_count(d->ndim, d->shape, d->dtype, &count, fault);
    if (status) return status;
    bool whole = d->offset == 0 && (uint64_t)count * ad__dtypes[d->dtype].size == b->size;
    if (whole && (ad__is_contiguous(d) || ad__is_f_contiguous(d))) return 0;
    return ad__fault(fault, AD_E_VALUE, "publish: the array is a view of a part of its buffer");
}

/* ---- publishing ---- */

static void write_name(ad_worker *w, ad_holder *holder) {
    const ad_name *n = (const ad_name *)holder;
    const size_t size = strlen(n->grant) + 1;
    uint64_t *grant = ad__journal_alloc(w->journal, sizeof *grant + size);
    ad_journal_holder *h = grant ? ad__holder_make_row(w, holder, AD_HOLDER_NAME) : NULL;
    if (!h) {
        ad__journal_free(w->journal, grant);
        return;
    }
    *grant = size;
    memcpy(grant + 1, n->grant, size);
    h->grant = ad__journal_at(w->journal, grant);
    h->writable = n->writable;
    h->column_major = n->column_major;
    h->dtype = n->dtype;
    h->ndim = n->ndim;
    memcpy(h->name, n->name, sizeof n->name);
    memcpy(h->shape, n->shape, sizeof h->shape);
    holder->place = ad__journal_hold(w->journal, h);
}

/* A name without anything but its functions and the principals that may attach it. NULL: there is no memory. */
static ad_name *create_name(const char *grant) {
    ad_name *n = ad__os.calloc(1, sizeof *n);
    if (!n || !(n->grant = ad__os.malloc(strlen(grant) + 1))) {
        free(n);
        return NULL;
    }
    strcpy(n->grant, grant);
    n->holder.write = write_name;
    n->holder.free = free_name;
    return n;
}

static int make_name(ad_worker_session *s, const ad_message *m, ad_buffer *b, ad_name **out, ad_fault *fault) {
    const ad_desc *d = &m->operand.desc;
    char name[NAME_MOST + 1], grant[GRANT_MOST + 1];
    ad_name *n;
    int status = copy_name(&m->s[0], name, fault);
    if (!status) status = copy_text(&m->s[1], GRANT_MOST, "._-:,*", "a list of principals", grant, fault);
    if (!status) status = check_view(d, b, fault);
    if (status) return status;
    if (!(n = create_name(grant))) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    strcpy(n->name, name);
    memcpy(n->holder.principal, s->principal, sizeof n->holder.principal);
    n->writable = m->u[1] != 0;
    n->column_major = !ad__is_contiguous(d);
    n->dtype = d->dtype;
    n->ndim = d->ndim;
    memcpy(n->shape, d->shape, d->ndim * sizeof *n->shape);
    *out = n;
    return 0;
}

/* Let the name hold the buffer's memory. Memory that others may write must be no snapshot. */
static int hold_buffer(ad_worker_session *s, ad_buffer *b, ad_name *n, ad_fault *fault) {
    ad_shared *shared = b->shared;
    if (n->writable && b->readonly)
        return ad__fault(fault, AD_E_VALUE, "publish: the array is read-only, so others cannot be let write it");
    if (n->writable && b->import)
        return ad__fault(fault, AD_E_VALUE,
                         "publish: the array is memory of its program, and others could be let write a copy only: "
                         "publish that");
    int status = n->writable && shared && !shared->common ? ad__shared_detach(s, b, fault) : 0;
    if (status) return status;
    if (!(shared = ad__shared_give(s, b, fault))) return fault->code;
    if (n->writable) shared->common = true;
    ad__checkpoint_mark_buffer(s, b);
    n->holder.shared = shared;
    return 0;
}

static int check_name_limit(ad_worker_session *s, const ad_name *n, ad_fault *fault) {
    uint64_t most = s->worker->config.published, own = s->grants.names, has = 0;
    if (*find_name(s->worker, n->holder.principal, n->name)) return 0;
    for (const ad_name *other = s->worker->sharing->names; other && own; other = other->next)
        has += !strcmp(other->holder.principal, s->principal);
    if (own && has >= own)
        return ad__fault(fault, AD_E_LIMIT,
                         "publish: %s has %" PRIu64
                         " names, as many as it may have (grant names=N in the file of option principals or "
                         "tokens, or option published-each)",
                         s->principal, has);
    if (s->worker->sharing->published < most) return 0;
    return ad__fault(fault, AD_E_LIMIT,
                     "publish: there are %" PRIu64 " names, and no more are allowed (option published)", most);
}

static void add_name(ad_worker *w, ad_name *n) {
    n->next = w->sharing->names;
    w->sharing->names = n;
    w->sharing->published++;
    ad__holder_begin(w, &n->holder);
}

int ad__name_restore(ad_worker *w, const ad_journal_holder *h, const char *grant, ad_shared *shared) {
    ad_name *n = create_name(grant);
    if (!n) return AD_E_MEMORY;
    memcpy(n->holder.principal, h->who, sizeof n->holder.principal - 1);
    memcpy(n->name, h->name, sizeof n->name - 1);
    n->writable = h->writable;
    n->column_major = h->column_major;
    n->dtype = h->dtype < AD_NDTYPE ? h->dtype : 0;
    n->ndim = h->ndim <= AD_MAX_NDIM ? h->ndim : 0;
    memcpy(n->shape, h->shape, sizeof n->shape);
    n->holder.shared = shared;
    n->holder.by = h->by;
    n->holder.at = h->at;
    if (n->writable) shared->common = true;
    ad__shared_hold(shared, n->holder.principal);
    if (h->by) ad__holder_take_up_ended(w, &n->holder);
    else add_name(w, n);
    return 0;
}

int ad__handle_publish(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    ad_worker *w = s->worker;
    ad_name *n = NULL, **old;
    ad_buffer *b = NULL;
    int status = ad__sharing_begin(s, m, AD_GRANT_NAMES, fault);
    if (status) return status;
    if (m->u[1] > 1) return ad__fault(fault, AD_E_VALUE, "publish: 0 or 1, not %" PRIu64, m->u[1]);
    if ((status = ad__shared_buffer(s, m->operand.desc.buffer, "publish", &b, fault))) return status;
    if (b->poison) {
        ad__reply_fail(s, m->u[0], b->poison);
        return 0;
    }
    if ((status = make_name(s, m, b, &n, fault))) return status;
    status = check_name_limit(s, n, fault);
    if (!status) status = hold_buffer(s, b, n, fault);
    if (status) {
        free_name(&n->holder);
        return status;
    }
    if (*(old = find_name(w, n->holder.principal, n->name)))
        drop_name(w, old); /* sessions with the old array keep it */
    add_name(w, n);
    ad__reply_values(s, m->u[0], 0, NULL);
    return 0;
}

/* ---- using them ---- */

static bool may_attach(const ad_worker_session *s, const ad_name *n) {
    size_t size = strlen(s->principal);
    if (!strcmp(n->holder.principal, s->principal)) return true;
    for (const char *at = n->grant; at; at = strchr(at, ',')) {
        at += *at == ',';
        size_t part = strcspn(at, ",");
        if ((part == 1 && *at == '*') || (part == size && !memcmp(at, s->principal, size))) return true;
    }
    return false;
}

/* Find a name that the session may attach. The error is the same for names that do not exist. */
static ad_name **find_allowed(ad_worker_session *s, const char *principal, const char *name, ad_fault *fault) {
    ad_name **at = find_name(s->worker, *principal ? principal : s->principal, name);
    if (*at && !(*at)->moving && may_attach(s, *at)) return at;
    ad__fault(fault, AD_E_NAME, "%s has published nothing as \"%s\" for %s", *principal ? principal : s->principal,
              name, s->principal);
    return NULL;
}

/* Tell whether a snapshot must be copied for the session: programs of another user could write where it lies, as they
 * have it to read. */
static bool needs_copy(const ad_worker_session *s, const ad_shared *m) {
    return m->block.open && !m->common && !m->poison && !ad__shared_is_of(m, s->principal);
}

/* Make a buffer of the session for a name's memory, or for a copy of it. */
static int join_name(ad_worker_session *s, const ad_name *n, uint64_t id, ad_fault *fault) {
    ad_shared *m = n->holder.shared;
    int status = ad__shared_join(s, m, id, !n->writable, fault);
    if (status || !needs_copy(s, m)) return status;
    ad_buffer *b = ad__buffers_find(&s->buffers, id);
    status = ad__shared_detach(s, b, fault);
    if (!status) {
        b->readonly = !n->writable;
        return 0;
    }
    ad__buffer_give_memory(s, b);
    ad__buffers_remove(&s->buffers, b);
    return status;
}

int ad__handle_attach_name(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    char principal[AD_PRINCIPAL_SIZE], name[NAME_MOST + 1];
    int64_t values[6 + AD_MAX_NDIM];
    int status = ad__sharing_begin(s, m, AD_GRANT_NAMES, fault);
    if (!status) status = copy_text(&m->s[0], sizeof principal - 1, "._-:", "a principal", principal, fault);
    if (!status) status = copy_name(&m->s[1], name, fault);
    if (status) return status;
    ad_name **at = find_allowed(s, principal, name, fault);
    if (!at) return fault->code;
    const ad_name *n = *at;
    status = join_name(s, n, m->u[1], fault);
    if (status) return status;
    values[0] = (int64_t)n->holder.shared->size;
    values[1] = n->writable;
    values[2] = n->holder.shared->home ? n->holder.shared->home->gpu->index : 0;
    values[3] = n->dtype;
    values[4] = n->column_major;
    for (int i = 0; i < n->ndim; i++) values[5 + i] = n->shape[i];
    ad__reply_ints(s, m->u[0], 5u + n->ndim, values);
    return 0;
}

int ad__handle_unpublish(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    char name[NAME_MOST + 1];
    int status = ad__sharing_begin(s, m, AD_GRANT_NAMES, fault);
    if (!status) status = copy_name(&m->s[0], name, fault);
    if (status) return status;
    ad_holder *ended = ad__holder_find_ended(s, write_name);
    ad_name **at = ended ? NULL : find_allowed(s, "", name, fault);
    if (!at && !ended) return fault->code;
    ad__holder_end_late(s, ended ? ended : &remove_name(s->worker, at)->holder);
    ad__reply_values(s, m->u[0], 0, NULL);
    return 0;
}

/* Append a line "name\tprincipal\twritable\tdtype\tbytes\tshape\n". */
static void describe_name(ad_bytes *out, const ad_name *n) {
    char line[NAME_MOST + AD_PRINCIPAL_SIZE + 64 + 21 * AD_MAX_NDIM];
    int at = snprintf(line, sizeof line, "%s\t%s\t%d\t%s\t%" PRIu64 "\t", n->name, n->holder.principal, n->writable,
                      ad__dtypes[n->dtype].name, n->holder.shared->size);
    for (int i = 0; i < n->ndim; i++)
        at += snprintf(line + at, sizeof line - (size_t)at, "%s%" PRId64, i ? "," : "", n->shape[i]);
    ad__bytes_append(out, line, (size_t)at);
    ad__bytes_append(out, "\n", 1);
}

static int store_names(ad_worker_session *s, uint64_t id, const ad_bytes *text, ad_fault *fault) {
    ad_buffer *b;
    ad_stream_queue *queue = ad__stream_queue_current(s, fault);
    int status = queue ? ad__buffers_add(&s->buffers, id, &b, fault) : fault->code;
    if (status) return status;
    status = ad__buffer_take_memory(s, queue, b, text->size, false, fault);
    if (!status && text->size) status = ad__store(s, "names", id, 0, text->data, text->size, false, fault);
    if (!status) return 0;
    ad__buffer_give_memory(s, b);
    ad__buffers_remove(&s->buffers, b);
    return status;
}

int ad__handle_names(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    ad_bytes text = AD_BYTES_INIT;
    int status = ad__sharing_begin(s, m, AD_GRANT_NAMES, fault);
    if (status) return status;
    for (const ad_name *n = s->worker->sharing->names; n; n = n->next)
        if (may_attach(s, n)) describe_name(&text, n);
    status = text.failed ? ad__fault(fault, AD_E_MEMORY, "out of host memory") : store_names(s, m->u[1], &text, fault);
    int64_t size = (int64_t)text.size;
    ad__bytes_free(&text);
    if (!status) ad__reply_ints(s, m->u[0], 1, &size);
    return status;
}

void ad__names_close(ad_worker *w) {
    while (w->sharing->names) drop_name(w, &w->sharing->names);
}

void ad__names_holders(const ad_worker *w, ad_holder_visit visit, void *user) {
    for (const ad_name *n = w->sharing->names; n; n = n->next) visit(user, n->holder.principal, n->holder.shared);
}

void ad__names_move(ad_worker *w, const char *principal, bool moving) {
    for (ad_name *n = w->sharing->names; n; n = n->next)
        if (!strcmp(n->holder.principal, principal)) n->moving = moving;
}

void ad__names_part(ad_worker *w, const char *principal) {
    for (ad_name **at = &w->sharing->names; *at;)
        if (strcmp((*at)->holder.principal, principal)) at = &(*at)->next;
        else drop_name(w, at);
}

void ad__names_each(const ad_worker *w, void (*visit)(void *user, const ad_report_name *row), void *user) {
    for (const ad_name *n = w->sharing->names; n; n = n->next) {
        ad_report_name row = {.bytes = n->holder.shared->size,
                              .device = n->holder.shared->home ? (uint64_t)n->holder.shared->home->gpu->index : 0,
                              .dtype = n->dtype,
                              .ndim = n->ndim,
                              .writable = n->writable};
        snprintf(row.name, sizeof row.name, "%s", n->name);
        snprintf(row.principal, sizeof row.principal, "%s", n->holder.principal);
        memcpy(row.shape, n->shape, n->ndim * sizeof *n->shape);
        visit(user, &row);
    }
}
