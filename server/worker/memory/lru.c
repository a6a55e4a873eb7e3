#include "server/worker/memory/lru.h"

#include <stdlib.h>

#include "server/common/os.h"
#include "server/worker/memory/buffers.h"

ad_spill_owner *ad__spill_owner_open(ad_spill_list *list, const ad_account *account) {
    ad_spill_owner *o = list->owners;
    while (o && o->account != account) o = o->next;
    if (!o) {
        if (!(o = ad__os.calloc(1, sizeof *o))) return NULL;
        o->account = account;
        o->list = list;
        o->next = list->owners;
        list->owners = o;
    }
    o->users++;
    return o;
}

void ad__spill_owner_close(ad_spill_owner *owner) {
    if (!owner || --owner->users) return;
    ad_spill_owner **at = &owner->list->owners;
    while (*at != owner) at = &(*at)->next;
    *at = owner->next;
    free(owner);
}

void ad__spill_add(ad_spill_owner *owner, ad_buffer *b) {
    b->moving.owner = owner;
    b->listed = true;
    b->moving.used_at = ++owner->list->clock;
    b->moving.warmer = NULL;
    b->moving.colder = owner->warmest;
    if (owner->warmest) owner->warmest->moving.warmer = b;
    else owner->coldest = b;
    owner->warmest = b;
    owner->bytes += b->block.size;
    owner->list->bytes += b->block.size;
}

void ad__spill_remove(ad_buffer *b) {
    if (!b->listed) return;
    ad_spill_owner *owner = b->moving.owner;
    if (b->moving.warmer) b->moving.warmer->moving.colder = b->moving.colder;
    else owner->warmest = b->moving.colder;
    if (b->moving.colder) b->moving.colder->moving.warmer = b->moving.warmer;
    else owner->coldest = b->moving.warmer;
    owner->bytes -= b->block.size;
    owner->list->bytes -= b->block.size;
    b->listed = false;
}

ad_buffer *ad__spill_coldest(const ad_spill_list *list, uint64_t limit, const ad_spill_owner *mine) {
    const ad_spill_owner *greedy = NULL;
    ad_buffer *coldest = NULL;
    uint64_t sharers = 0;
    for (const ad_spill_owner *o = list->owners; o; o = o->next) {
        if (!o->bytes) continue;
        sharers++;
        if (o != mine && o->account->slab_bytes <= o->account->reserve) continue;
        if (!greedy || o->bytes > greedy->bytes) greedy = o;
        if (!coldest || o->coldest->moving.used_at < coldest->moving.used_at) coldest = o->coldest;
    }
    return greedy && sharers > 1 && greedy->bytes > limit / sharers ? greedy->coldest : coldest;
}
