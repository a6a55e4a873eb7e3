#include "server/worker/memory/account.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/common/os.h"

#define NAMED 2 /* other holders whose names an error gives to a principal that may see them */

/* ---- accounts ---- */

ad_account *ad__account_find(ad_account *list, const char *principal) {
    ad_account *a = list;
    while (a && strcmp(a->principal, principal)) a = a->next;
    return a;
}

ad_account *ad__account_open(ad_account **list, const char *principal) {
    ad_account *a = ad__account_find(*list, principal);
    if (!a) {
        if (!(a = ad__os.calloc(1, sizeof *a))) return NULL;
        snprintf(a->principal, sizeof a->principal, "%s", principal);
        a->list = list;
        a->next = *list;
        *list = a;
    }
    a->users++;
    return a;
}

static void free_if_unused(ad_account *a) {
    ad_account **at = a->list;
    if (a->users || a->total || a->reserve) return;
    while (*at != a) at = &(*at)->next;
    *at = a->next;
    free(a);
}

void ad__account_close(ad_account *a) {
    a->users--;
    free_if_unused(a);
}

void ad__account_grant(ad_account *a, const ad_grants *g) {
    if (g->may & AD_GRANT_PEER) return; /* a server that comes for the principal has limits of its own */
    a->most = g->memory;
    a->sees_others = g->may & AD_GRANT_ADMIN;
}

bool ad__account_reserve(ad_account **list, const char *principal, uint64_t bytes) {
    ad_account *a = ad__account_open(list, principal);
    if (!a) return false;
    a->reserve = bytes;
    ad__account_close(a);
    return true;
}

void ad__accounts_unreserve(ad_account **list) {
    for (ad_account *a = *list, *next; a; a = next) {
        next = a->next;
        a->reserve = 0;
        free_if_unused(a);
    }
}

void ad__account_charge(ad_account *a, ad_use use, uint64_t size) {
    a->used[use] += size;
    a->total += size;
}

void ad__account_return(ad_account *a, ad_use use, uint64_t size) {
    a->used[use] -= size;
    a->total -= size;
    if (!a->total) free_if_unused(a);
}

uint64_t ad__account_room(const ad_account *a, uint64_t limit) {
    for (const ad_account *other = *a->list; other; other = other->next) {
        uint64_t theirs = other->slab_bytes > other->reserve ? other->slab_bytes : other->reserve;
        if (other == a) continue;
        if (theirs >= limit) return 0;
        limit -= theirs;
    }
    return limit;
}

uint64_t ad__account_most(const ad_account *a, uint64_t limit) {
    for (const ad_account *other = *a->list; other; other = other->next) {
        if (other == a) continue;
        if (other->reserve >= limit) return 0;
        limit -= other->reserve;
    }
    return limit;
}

/* ---- what is said ---- */

void ad__bytes_text(uint64_t n, char out[16]) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double x = (double)n;
    int u = 0;
    for (; x >= 1024 && u < 5; u++) x /= 1024;
    snprintf(out, 16, x < 10 && u ? "%.1f %s" : "%.0f %s", x, units[u]);
}

void ad__uses_text(const uint64_t used[AD_USES], char out[AD_USES_TEXT]) {
    static const char *const what[AD_USES] = {"buffers",   "workspaces", "windows",
                                              "variables", "imports",    "host memory"};
    char bytes[16];
    size_t at = 0;
    snprintf(out, AD_USES_TEXT, "nothing");
    for (int i = 0; i < AD_USES; i++) {
        if (!used[i]) continue;
        ad__bytes_text(used[i], bytes);
        at += (size_t)snprintf(out + at, AD_USES_TEXT - at, "%s%s in %s", at ? ", " : "", bytes, what[i]);
    }
}

bool ad__account_has_room(const ad_account *a, uint64_t size) {
    return !a->most || (size <= a->most && a->total <= a->most - size);
}

int ad__account_refuse(const ad_account *a, uint64_t size, ad_fault *fault) {
    char want[16], limit[16], uses[AD_USES_TEXT];
    ad__bytes_text(size, want);
    ad__bytes_text(a->most, limit);
    ad__uses_text(a->used, uses);
    return ad__fault(fault, AD_E_MEMORY,
                     "out of memory: %s more are above the %s of a device that %s may have (grant memory); it has %s",
                     want, limit, a->principal, uses);
}

int ad__account_check(const ad_account *a, uint64_t size, ad_fault *fault) {
    return ad__account_has_room(a, size) ? 0 : ad__account_refuse(a, size, fault);
}

/* Find the other holder with the most bytes after `last`. Holders of equal size keep the order of the list. NULL:
 * there is none. */
static const ad_account *find_next_holder(const ad_account *mine, const ad_account *last) {
    const ad_account *best = NULL;
    bool passed = false; /* `last` has been seen: equally large ones follow */
    for (const ad_account *a = *mine->list; a; a = a->next) {
        bool later = !last || a->total < last->total || (a->total == last->total && passed);
        passed = passed || a == last;
        if (a != mine && later && a->total && (!best || a->total > best->total)) best = a;
    }
    return best;
}

static size_t put_other(char *out, size_t size, const char *who, uint64_t bytes) {
    char text[16];
    ad__bytes_text(bytes, text);
    return (size_t)snprintf(out, size, ", %s %s", who, text);
}

/* Write ", others 40 MiB", with names for a principal that may see them. */
static void put_others(const ad_account *mine, char *out, size_t size) {
    uint64_t rest = 0;
    size_t at = 0;
    for (const ad_account *a = *mine->list; a; a = a->next) rest += a == mine ? 0 : a->total;
    const ad_account *a = mine->sees_others ? find_next_holder(mine, NULL) : NULL;
    for (int i = 0; a && i < NAMED; i++, a = find_next_holder(mine, a)) {
        at += put_other(out + at, size - at, a->principal, a->total);
        rest -= a->total;
    }
    put_other(out + at, size - at, "others", rest);
    if (at && !rest) out[at] = 0;
}

int ad__account_full(const ad_account *a, uint64_t size, uint64_t limit, ad_fault *fault) {
    char want[16], all[16], why[64] = "the device has no more", mine[AD_USES_TEXT], others[NAMED * 84 + 32],
                            reserved_text[48] = "";
    uint64_t reserved = 0;
    ad__bytes_text(size, want);
    ad__bytes_text(limit, all);
    if (limit) snprintf(why, sizeof why, "they do not fit in %s (option memory)", all);
    ad__uses_text(a->used, mine);
    put_others(a, others, sizeof others);
    for (const ad_account *other = *a->list; other; other = other->next)
        if (other != a && other->reserve > other->slab_bytes) reserved += other->reserve - other->slab_bytes;
    if (reserved) put_other(reserved_text, sizeof reserved_text, "reserved for others", reserved);
    return ad__fault(fault, AD_E_MEMORY, "out of device memory for %s more: %s; %s holds %s%s%s", want, why,
                     a->principal, mine, others, reserved_text);
}
