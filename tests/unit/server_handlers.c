/* The table of handlers, and what the rows of request.def say of their messages. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "protocol/tables.h"
#include "server/worker/handlers.h"

static bool is_for_worker(const ad_request_row *row) {
    return row && (row->cls == AD_CLASS_OP || row->cls == AD_CLASS_ASK);
}

Test(handlers, every_op_and_ask_has_one_of_its_own) {
    int count = 0;
    for (int id = 0; id < AD_REQUEST_LIMIT; id++) {
        const ad_request_row *row = ad__request((uint64_t)id);
        cr_expect_eq(ad__handlers[id] != NULL, is_for_worker(row), "message %d", id);
        count += ad__handlers[id] != NULL;
        for (int other = 0; ad__handlers[id] && other < id; other++)
            cr_expect_neq(ad__handlers[id], ad__handlers[other], "%d and %d", id, other);
    }
    cr_expect_gt(count, 40);
}

/* Check that exactly these messages have the flag; names are separated by blanks. */
static void expect_flag(unsigned flag, const char *names) {
    char word[40];
    size_t found = 0, wanted = 0;
    for (const char *p = names; *p; p++) wanted += *p == ' ';
    for (int id = 0; id < AD_REQUEST_LIMIT; id++) {
        const ad_request_row *row = ad__request((uint64_t)id);
        if (!row || !(row->flags & flag)) continue;
        snprintf(word, sizeof word, " %s ", row->name);
        cr_expect(strstr(names, word), "%s has flag %u", row->name, flag);
        found++;
    }
    cr_expect_eq(found + 1, wanted, "flag %u", flag);
}

Test(handlers, flags) {
    expect_flag(AD_R_OUTPUT, " new empty write load ufunc reduce call query launch ");
    expect_flag(AD_R_PAYLOAD, " write ");
    expect_flag(AD_R_DESCRIPTOR, " window fork export import ");
    expect_flag(AD_R_MODULE, " launch kernel_set kernel global ");
    expect_flag(AD_R_REPEATABLE, " free ufunc reduce call ");
    expect_flag(AD_R_OVERTAKES, " free ufunc reduce call ");
    expect_flag(AD_R_ALLOCATES, " new empty ");
    expect_flag(AD_R_SETTLED, " fork ");
    expect_flag(AD_R_OWN_WORKER, " build import ");
    expect_flag(AD_R_HANDLE_OWN_WORKER, " export ");
    expect_flag(AD_R_USER_SOURCE, " build ");
    expect_flag(AD_R_USER_KERNEL, " launch ");
    expect_flag(AD_R_SECRET_REPLY, " share ");
}

/* The code that reads a flag relies on these properties. */
Test(handlers, flags_fit_their_messages) {
    for (int id = 0; id < AD_REQUEST_LIMIT; id++) {
        const ad_request_row *row = ad__request((uint64_t)id);
        if (!row) continue;
        const bool is_ask = row->cls == AD_CLASS_ASK;
        cr_expect_eq(row->cost != AD_COST_NONE, is_for_worker(row), "%s", row->name);
        cr_expect(!row->flags || is_for_worker(row), "%s", row->name);
        if (is_ask) cr_expect_eq(row->fields[0], 'u', "%s: the request id", row->name);
        if (row->flags & AD_R_MODULE) cr_expect_eq(row->fields[is_ask], 'u', "%s: the module", row->name);
        if (row->flags & AD_R_HANDLE_OWN_WORKER) cr_expect(!strncmp(row->fields, "uuu", 3), "%s: flags", row->name);
        if (row->flags & AD_R_SECRET_REPLY) cr_expect(is_ask, "%s", row->name);
        if (row->cost == AD_COST_LOAD) cr_expect_str_eq(row->fields, "uuuuu", "%s: bytes", row->name);
        if (row->cost == AD_COST_PAYLOAD) cr_expect(row->flags & AD_R_PAYLOAD, "%s", row->name);
        if (row->cost == AD_COST_FILL || row->cost == AD_COST_COPY)
            cr_expect(row->check == AD_CHECK_FRESH || row->check == AD_CHECK_ARRAY, "%s: an array", row->name);
    }
}
