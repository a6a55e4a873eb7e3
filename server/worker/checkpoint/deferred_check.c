#include "server/worker/checkpoint/deferred_check.h"

#include <string.h>

#include "server/worker/exec/job.h"
#include "server/worker/checkpoint/buffer_free.h"

int ad__deferred_checks_find_place(ad_worker_session *s, ad_check **out, ad_fault *fault) {
    const ad_backend *b = s->worker->backend;
    ad_deferred_checks *v = &s->deferred_checks;
    *out = NULL;
    if (!b->asynchronous) return 0;
    if (v->count == AD_DEFERRED_CHECKS)
        return ad__fault(fault, AD_E_LIMIT, "more than %d operations under way may fail; please report this",
                         AD_DEFERRED_CHECKS);
    if (!v->check) {
        int status = b->check_open(s->worker->device.gpu[0].device, AD_DEFERRED_CHECKS, &v->check, fault);
        if (status) return ad__session_status(s, status, fault);
    }
    *out = &v->check[v->count];
    return 0;
}

uint64_t ad__deferred_checks_add(ad_worker_session *s, uint64_t number, const char *name, bool kept) {
    ad_deferred_checks *v = &s->deferred_checks;
    ad_deferred_check *one = &v->of[v->count];
    *one = (ad_deferred_check){.number = number, .kept = kept};
    memcpy(one->name, name, strnlen(name, sizeof one->name - 1));
    return 1ull << v->count++;
}

uint64_t ad__deferred_checks_of(const ad_worker_session *s, const ad_buffer *b) {
    return b->epoch == s->deferred_checks.epoch ? b->suspects : 0;
}

void ad__deferred_checks_set(const ad_worker_session *s, ad_buffer *b, uint64_t suspects) {
    b->suspects = suspects;
    b->epoch = s->deferred_checks.epoch;
}

typedef struct spread {
    ad_worker_session *s;
    ad_poison *poison;
    uint64_t bit;
} spread;

static void poison_dependent(void *user, ad_buffer *b) {
    spread *p = user;
    if (b->poison || !(ad__deferred_checks_of(p->s, b) & p->bit)) return;
    ad__buffer_give_memory(p->s, b);
    b->poison = ad__poison_hold(p->poison);
}

static void poison_dependents(ad_worker_session *s, unsigned i) {
    ad_deferred_check *one = &s->deferred_checks.of[i];
    ad_fault fault = {0};
    fault.code = s->worker->backend->check_fault(&s->deferred_checks.check[i], &fault);
    ad_poison *p = ad__poison_new(&fault, one->number, one->name);
    spread to = {s, p, 1ull << i};
    if (one->kept) ad__session_keep_failure(s, p);
    else ad__buffers_each(&s->buffers, poison_dependent, &to);
    ad__poison_release(p);
    one->told = true;
    s->progress.failed++;
    ad__checkpoint_invalidate(&s->checkpoint);
}

void ad__deferred_checks_read(ad_worker_session *s, bool idle) {
    ad_deferred_checks *v = &s->deferred_checks;
    for (unsigned i = 0; i < v->count; i++)
        if (!v->of[i].told && __atomic_load_n(&v->check[i].code, __ATOMIC_ACQUIRE)) poison_dependents(s, i);
    if (!idle || !v->count) return;
    memset(v->check, 0, v->count * sizeof *v->check);
    v->count = 0;
    v->epoch++;
}

void ad__deferred_checks_make_room(ad_worker_session *s) {
    if (!ad__deferred_checks_full(&s->deferred_checks) || ad__stream_queues_wait(s, NULL)) return;
    ad__deferred_checks_read(s, true);
}

static void close_checks(ad_worker_session *s) {
    if (s->deferred_checks.check)
        s->worker->backend->check_close(s->worker->device.gpu[0].device, s->deferred_checks.check);
    s->deferred_checks.check = NULL;
    s->deferred_checks.count = 0;
}

const ad_component ad__component_checks = {.name = "deferred checks", .drop = close_checks};
