/* Charging shared memory. The session that shared it pays, and on the device that session's principal, for as long
 * as either holds the memory in any way. Then another holder pays. */
#include <string.h>

#include "server/worker/sharing/holders.h"
#include "server/worker/sharing/sharing.h"
#include "server/worker/spill/quota.h"

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

/* ---- copies for all ---- */

static ad_account *find_account(const ad_buffer *b) { return ad__stream_arena_account(b->home->stream_arena); }

/* True if the buffer's principal and its session may have a copy for each of their buffers of the memory. A principal
 * or a session that pays for the memory has the bytes of one copy already. */
static bool has_room_for_copies(const ad_shared *m, const ad_buffer *b) {
    const ad_worker_session *s = b->sharing.holder;
    const ad_account *a = find_account(b);
    uint64_t of_principal = 0, of_session = 0;
    for (const ad_buffer *at = m->buffers; at; at = at->sharing.next) {
        of_principal += find_account(at) == a;
        of_session += at->sharing.holder == s;
    }
    of_principal -= m->block.payer == a;
    of_session -= m->payer == s;
    return (!of_principal || ad__account_has_room(a, of_principal * m->size)) &&
           (!of_session || ad__quota_has_room(s, of_session * m->size));
}

bool ad__paying_may_part(const ad_shared *m) {
    if (!ad__shared_may_part(m)) return false;
    for (const ad_buffer *b = m->buffers; b; b = b->sharing.next)
        if (!has_room_for_copies(m, b)) return false;
    return true;
}
