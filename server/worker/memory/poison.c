#include "server/worker/memory/poison.h"

#include <stdio.h>
#include <stdlib.h>

#include "server/common/os.h"
#include "server/worker/session.h"

/* Replaces every poison for which there was no memory; never counted, never freed. */
static ad_poison last_resort = {.code = AD_E_MEMORY, .text = "out of host memory"};

ad_poison *ad__poison_new(const ad_fault *fault, uint64_t number, const char *name) {
    ad_poison *p = ad__os.malloc(sizeof *p);
    if (!p) return &last_resort;
    p->users = 1;
    p->code = fault->code;
    p->number = number;
    snprintf(p->name, sizeof p->name, "%s", name);
    snprintf(p->text, sizeof p->text, "%s", *fault->text ? fault->text : ad__error_text(fault->code));
    return p;
}

ad_poison *ad__poison_hold(ad_poison *p) {
    if (p != &last_resort) p->users++;
    return p;
}

void ad__poison_release(ad_poison *p) {
    if (p && p != &last_resort && --p->users == 0) free(p);
}

void ad__session_keep_failure(ad_worker_session *s, ad_poison *p) {
    if (!s->progress.pending) s->progress.pending = ad__poison_hold(p);
}
