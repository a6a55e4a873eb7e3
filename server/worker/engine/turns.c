#include "server/worker/engine/turns.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/common/os.h"

#define MODEST 10 /* rounds of debt up to which a session counts as a light user */

#define OF(type, member, pointer) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

static ad_party *find_party(ad_shares *all, const char *principal) {
    ad_party *p = all->first;
    while (p && strcmp(p->principal, principal) != 0) p = p->next;
    if (p || !(p = ad__os.calloc(1, sizeof *p))) return p;
    snprintf(p->principal, sizeof p->principal, "%s", principal);
    p->next = all->first;
    p->link = &all->first;
    if (p->next) p->next->link = &p->next;
    return all->first = p;
}

int ad__share_open(ad_shares *all, ad_share *s, const char *principal, int64_t quantum) {
    ad_party *p = find_party(all, principal);
    if (!p) return AD_E_MEMORY;
    p->members++;
    p->node.quantum = p->sessions.quantum = quantum;
    s->party = p;
    return 0;
}

void ad__share_close(ad_shares *all, ad_share *s) {
    ad_party *p = s->party;
    if (!p) return;
    ad__share_remove(all, s);
    ad__share_set_waiting(s, 0, 0);
    s->party = NULL;
    if (--p->members) return;
    *p->link = p->next;
    if (p->next) p->next->link = p->link;
    free(p);
}

/* Tell whether a session has used at most little more than its share. */
static bool is_modest(const ad_shares *all, const ad_share *s) {
    return ad__drr_debt(&all->parties, &s->party->node) <= MODEST &&
           ad__drr_debt(&s->party->sessions, &s->node) <= MODEST;
}

void ad__share_add(ad_shares *all, ad_share *s) {
    if (s->node.queued) return;
    ad__drr_add(&s->party->sessions, &s->node);
    ad__drr_add(&all->parties, &s->party->node);
    s->joined = all->turns;
    s->waiting = s->node.credit > 0 && s->party->node.credit > 0;
    if (all->staying && is_modest(all, s)) all->staying = NULL;
}

void ad__share_remove(ad_shares *all, ad_share *s) {
    if (all->staying == s) all->staying = NULL;
    ad__drr_remove(&s->party->sessions, &s->node);
    if (!s->party->sessions.head) ad__drr_remove(&all->parties, &s->party->node);
}

void ad__share_set_waiting(ad_share *s, uint64_t operations, uint64_t bytes) {
    s->party->operations += operations - s->operations;
    s->party->bytes += bytes - s->bytes;
    s->operations = operations;
    s->bytes = bytes;
}

static void count_turn(ad_shares *all, ad_share *s) {
    if (s->waiting && all->turns - s->joined > s->waited) s->waited = all->turns - s->joined;
    s->waiting = false;
    if (all->last == s) return;
    all->last = s;
    all->turns++;
    s->turns++;
}

ad_share *ad__share_next(ad_shares *all) {
    ad_drr_node *party = ad__drr_next(&all->parties);
    if (!party) return NULL;
    ad_share *s = OF(ad_share, node, ad__drr_next(&OF(ad_party, node, party)->sessions));
    count_turn(all, s);
    return s;
}

void ad__share_charge(ad_shares *all, ad_share *s, int64_t used) {
    ad__drr_charge(&s->party->sessions, &s->node, used);
    ad__drr_charge(&all->parties, &s->party->node, used);
}
