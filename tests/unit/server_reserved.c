/* Reservations as they come from arrayd, and in the accounts of the devices that are open. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "server/worker/worker.h"

#define MIB (1ull << 20)

static ad_note make_entry(uint64_t id, uint64_t size, const char *who, uint64_t bytes, uint64_t devices) {
    ad_note note = {.kind = AD_NOTE_RESERVE, .id = id, .size = size, .grants = {.reserve = bytes, .devices = devices}};
    snprintf(note.who, sizeof note.who, "%s", who);
    return note;
}

static ad_worker w;

static int take_memory(ad_note note) { return ad__reserved_take(&w.reserved, &note); }

static uint64_t get_reserved(int device, const char *who) {
    const ad_account *a = ad__account_find(w.device.gpu[device].memory.accounts, who);
    return a ? a->reserve : 0;
}

Test(reserved, holds_from_when_all_has_come_until_something_else_does) {
    ad__reserved_init(&w.reserved);
    w.device.count = 2;
    for (int i = 0; i < 2; i++) {
        w.device.gpu[i].index = i;
        w.device.gpu[i].device = (ad_device *)(void *)&w; /* open */
    }
    cr_assert_eq(take_memory(make_entry(0, 2, "token:a", 5 * MIB, UINT64_MAX)), 0);
    ad__reserved_apply(&w);
    cr_assert_eq(get_reserved(0, "token:a"), 0, "half of it");
    cr_assert_eq(take_memory(make_entry(1, 2, "uid:7", 3 * MIB, 2)), 0);
    ad__reserved_apply(&w);
    cr_assert(get_reserved(0, "token:a") == 5 * MIB && get_reserved(1, "token:a") == 5 * MIB);
    cr_assert(get_reserved(0, "uid:7") == 0 && get_reserved(1, "uid:7") == 3 * MIB);
    cr_assert_eq(take_memory(make_entry(0, 1, "uid:7", 1 * MIB, 1)), 0);
    ad__reserved_apply(&w);
    cr_assert(get_reserved(0, "uid:7") == MIB && get_reserved(1, "uid:7") == 0 && get_reserved(0, "token:a") == 0);
    cr_assert_eq(take_memory(make_entry(0, 0, "", 0, 0)), 0);
    ad__reserved_apply(&w);
    cr_assert_null(w.device.gpu[0].memory.accounts);
    cr_assert_null(w.device.gpu[1].memory.accounts);
    ad__reserved_close(&w.reserved);
}

Test(reserved, what_makes_no_sense_is_refused) {
    ad__reserved_init(&w.reserved);
    cr_assert_eq(take_memory(make_entry(2, 2, "uid:1", 1, 1)), AD_E_PROTOCOL);
    cr_assert_eq(take_memory(make_entry(0, UINT64_MAX, "uid:1", 1, 1)), AD_E_PROTOCOL);
    cr_assert_eq(take_memory(make_entry(1, 2, "uid:1", 1, 1)), AD_E_PROTOCOL, "the first one is missing");
    cr_assert_eq(take_memory(make_entry(0, 2, "uid:1", 1, 1)), 0);
    cr_assert_eq(take_memory(make_entry(1, 3, "uid:1", 1, 1)), AD_E_PROTOCOL, "of another list");
    ad__reserved_close(&w.reserved);
}
