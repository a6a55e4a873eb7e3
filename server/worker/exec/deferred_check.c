#include "server/worker/exec/deferred_check.h"

#include <stdio.h>
#include <string.h>

#include "server/worker/exec/job.h"

int ad__verdicts_place(ad_session *s, ad_check **out, ad_fault *fault) {
    const ad_backend *b = s->worker->backend;
    ad_verdicts *v = &s->verdicts;
    *out = NULL;
    if (!b->asynchronous) return 0;
    if (!v->check) {
        int status = b->check_open(s->worker->gpu[0].device, AD_VERDICTS, &v->check, fault);
        if (status) return ad__session_status(s, status, fault);
    }
    *out = &v->check[v->count];
    return 0;
}

uint64_t ad__verdicts_add(ad_session *s, uint64_t number, const char *name, bool kept) {
    ad_verdicts *v = &s->verdicts;
    ad_verdict *one = &v->of[v->count];
    *one = (ad_verdict){.number = number, .kept = kept};
    snprintf(one->name, sizeof one->name, "%s", name);
    return 1ull << v->count++;
}

uint64_t ad__verdicts_of(const ad_session *s, const ad_buffer *b) {
    return b->epoch == s->verdicts.epoch ? b->suspects : 0;
}

void ad__verdicts_set(const ad_session *s, ad_buffer *b, uint64_t suspects) {
    b->suspects = suspects;
    b->epoch = s->verdicts.epoch;
}

typedef struct spread {
    ad_session *s;
    ad_poison *poison;
    uint64_t bit;
} spread;

static void poison_one(void *user, ad_buffer *b) {
    spread *p = user;
    if (b->poison || !(ad__verdicts_of(p->s, b) & p->bit)) return;
    ad__buffer_give_memory(p->s, b);
    b->poison = ad__poison_share(p->poison);
}

static void condemn(ad_session *s, unsigned i) {
    ad_verdict *one = &s->verdicts.of[i];
    ad_fault fault = {0};
    fault.code = s->worker->backend->check_fault(&s->verdicts.check[i], &fault);
    ad_poison *p = ad__poison_new(&fault, one->number, one->name);
    spread to = {s, p, 1ull << i};
    if (one->kept) ad__session_pending(s, p);
    else ad__buffers_each(&s->buffers, poison_one, &to);
    ad__poison_release(p);
    one->told = true;
    s->failed++;
    ad__survival_spoil(&s->survival);
}

void ad__verdicts_read(ad_session *s, bool idle) {
    ad_verdicts *v = &s->verdicts;
    for (unsigned i = 0; i < v->count; i++)
        if (!v->of[i].told && __atomic_load_n(&v->check[i].code, __ATOMIC_ACQUIRE)) condemn(s, i);
    if (!idle || !v->count) return;
    memset(v->check, 0, v->count * sizeof *v->check);
    v->count = 0;
    v->epoch++;
}

void ad__verdicts_close(ad_session *s) {
    if (s->verdicts.check) s->worker->backend->check_close(s->worker->gpu[0].device, s->verdicts.check);
    s->verdicts.check = NULL;
    s->verdicts.count = 0;
}
