/* Charging shared memory. The session that shared it pays, and on the device that session's principal, for as long
 * as either holds the memory in any way. Then another holder pays. */
#include <string.h>

#include "server/worker/sharing/holders.h"
#include "server/worker/sharing/sharing.h"

void ad__shared_pay(ad_shared *m, ad_worker_session *payer) {
    if (m->payer) {
        m->payer->held.buffer_bytes -= m->size;
        *m->paid_link = m->paid_next;
        if (m->paid_next) m->paid_next->paid_link = m->paid_link;
    }
    m->payer = payer;
    if (!payer) return;
    payer->held.buffer_bytes += m->size;
    m->paid_link = &payer->sharing.pays;
    m->paid_next = payer->sharing.pays;
    if (m->paid_next) m->paid_next->paid_link = &m->paid_next;
    payer->sharing.pays = m;
}

void ad__paying_end(ad_worker_session *s) {
    while (s->sharing.pays) ad__shared_pay(s->sharing.pays, NULL);
}

static bool is_paid_by(const ad_shared *m, const char *principal) {
    return m->block.slab && !strcmp(m->block.payer->principal, principal);
}

void ad__shared_hold(ad_shared *m, const char *principal) {
    for (ad_buffer *b = m->holders <= AD_SHARED_APART ? m->buffers : NULL; b; b = b->sharing.next) ad__spill_remove(b);
    m->holders++;
    m->paying += is_paid_by(m, principal);
}

/* Choose the principal that pays next, and count its holders. Principals with a buffer come first: they can free it. */
static uint64_t count_next_payer(const ad_shared *m, const char **who) {
    uint64_t n = 0;
    if (m->buffers) *who = m->buffers->sharing.holder->principal;
    else if (m->others) *who = m->others->principal;
    for (const ad_buffer *b = m->buffers; b; b = b->sharing.next) n += !strcmp(b->sharing.holder->principal, *who);
    for (const ad_holder *h = m->others; h; h = h->next) n += !strcmp(h->principal, *who);
    return n;
}

static void find_payer(ad_shared *m) {
    const char *who = NULL;
    uint64_t n = count_next_payer(m, &who);
    ad_account *a = n ? ad__account_open(&m->home->gpu->memory.accounts, who) : NULL;
    if (!a) return; /* no host memory: the account that pays stays the same */
    ad__memory_charge(&m->block, a);
    ad__account_close(a);
    m->paying = n;
}

void ad__paying_release(ad_shared *m, const char *principal) {
    if (is_paid_by(m, principal) && !--m->paying && m->holders > 1) find_payer(m);
}
