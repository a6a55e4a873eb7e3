#include <criterion/criterion.h>
#include <string.h>

#include "protocol/counters.h"
#include "protocol/tables.h"

/* Every row is found under its id, with its own name. */
Test(tables, every_row_is_found) {
#define AD_UFUNC(id, row, nin_, nout_, ...)      \
    cr_expect_str_eq(ad__ufunc(id)->name, #row); \
    cr_expect(ad__ufunc(id)->nin == nin_ && ad__ufunc(id)->nout == nout_);
#include "protocol/ufunc.def"
#undef AD_UFUNC
#define AD_REDUCTION(id, row, ...) cr_expect_str_eq(ad__reduction(id)->name, #row);
#include "protocol/reduction.def"
#undef AD_REDUCTION
#define AD_CALL(id, row, ...) cr_expect_str_eq(ad__call(id)->name, #row);
#include "protocol/call.def"
#undef AD_CALL
#define AD_REQUEST(id, NAME, row, ...) cr_expect_str_eq(ad__request(id)->name, #row);
#include "protocol/request.def"
#undef AD_REQUEST
#define AD_COUNTER(id, row, ...) cr_expect_str_eq(ad__counters[id].name, #row);
#include "protocol/counter.def"
#undef AD_COUNTER
#define AD_DTYPE(id, NAME, row, bytes, kind_, letter_) \
    cr_expect_str_eq(ad__dtypes[id].name, #row);       \
    cr_expect(ad__dtypes[id].size == bytes && ad__dtypes[id].kind == kind_);
#include "protocol/dtype.def"
#undef AD_DTYPE
}

/* As many ids give a row as the table has rows; all others, however large, give none. */
Test(tables, other_ids_give_none) {
    int ufuncs = 0, reductions = 0, calls = 0, requests = 0;

    for (uint64_t id = 0; id < 1000; id++) {
        ufuncs += ad__ufunc(id) != NULL;
        reductions += ad__reduction(id) != NULL;
        calls += ad__call(id) != NULL;
        requests += ad__request(id) != NULL;
    }
#define AD_UFUNC(...) ufuncs--;
#include "protocol/ufunc.def"
#undef AD_UFUNC
#define AD_REDUCTION(...) reductions--;
#include "protocol/reduction.def"
#undef AD_REDUCTION
#define AD_CALL(...) calls--;
#include "protocol/call.def"
#undef AD_CALL
#define AD_REQUEST(...) requests--;
#include "protocol/request.def"
#undef AD_REQUEST
    cr_expect(ufuncs == 0 && reductions == 0 && calls == 0 && requests == 0);
    for (int bit = 8; bit < 64; bit++) {
        uint64_t id = (uint64_t)1 << bit;
        cr_expect_null(ad__ufunc(id));
        cr_expect_null(ad__ufunc(id + 1));
        cr_expect_null(ad__reduction(id + 1));
        cr_expect_null(ad__call(id + 1));
        cr_expect_null(ad__request(id + 1));
    }
    cr_expect_null(ad__ufunc(UINT64_MAX));
}

/* The rest of the library relies on these properties of the rows. */
Test(tables, rows_are_consistent) {
    for (uint64_t id = 0; id < AD_UFUNC_LIMIT; id++) {
        const ad_ufunc_row *row = ad__ufunc(id);
        if (row == NULL) continue;
        const ad_rule_row *rule = &ad__rules[row->rule];
        for (int i = 0; i < row->nin; i++)
            cr_expect(rule->in[i] != AD_CODE_N, "%s needs a rule with %d inputs", row->name, row->nin);
        for (int i = 0; i < row->nout; i++)
            cr_expect(rule->out[i] != AD_CODE_N, "%s needs a rule with %d outputs", row->name, row->nout);
        cr_expect(row->nout <= AD_MAX_OUT && row->doc[strlen(row->doc) - 1] == '.' && row->expression[0] != '\0');
        cr_expect(rule->fallback >= AD_SUMINT || (rule->loops & AD_BIT(rule->fallback)));
    }
    for (uint64_t id = 0; id < AD_CALL_LIMIT; id++) {
        const ad_call_row *row = ad__call(id);
        if (row != NULL)
            cr_expect(row->nin_max <= AD_MAX_IN && row->nout <= AD_MAX_OUT && strlen(row->params) <= AD_MAX_PARAM &&
                      strspn(row->params, "ifbv") == strlen(row->params));
    }
}

/* The checker of messages has a reader for every letter that a row uses. */
Test(tables, signatures_can_be_read) {
    for (uint64_t id = 0; id < 256; id++) {
        const ad_request_row *row = ad__request(id);
        for (const char *at = row == NULL ? "" : row->fields; *at != '\0'; at += *at == '[' ? 3 : 1) {
            if (*at == '[') cr_expect(strchr("uFDvsy", at[1]) != NULL && at[2] == ']', "%s", row->name);
            else cr_expect(strchr("usymFDtk", *at) != NULL, "%s", row->name);
        }
        if (row != NULL && row->cls == AD_CLASS_ASK)
            cr_expect(row->fields[0] == 'u', "%s begins with its request id", row->name);
    }
}

Test(tables, errors) {
#define AD_ERROR(code, NAME, exception, text) cr_expect_str_eq(ad__error_text(-(code)), text);
#include "protocol/error.def"
#undef AD_ERROR
    cr_expect_str_eq(ad__error_text(0), "ok");
    const int others[] = {1, 99, 1000, -99, -1000, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        cr_expect_str_eq(ad__error_text(others[i]), "unknown error");
}

Test(tables, fault) {
    ad_fault fault = {0};
    char many[2 * AD_FAULT_TEXT];

    cr_expect_eq(ad__fault(NULL, AD_E_VALUE, "nobody listens to %d", 1), AD_E_VALUE);
    cr_expect_eq(ad__fault(&fault, AD_E_TYPE, "%s %d", "a", 7), AD_E_TYPE);
    cr_expect_eq(fault.code, AD_E_TYPE);
    cr_expect_str_eq(fault.text, "a 7");
    /* A text is cut between characters. */
    for (int shift = 0; shift < 4; shift++) {
        memset(many, 'x', sizeof many);
        for (size_t i = (size_t)shift; i + 3 < sizeof many - 1; i += 3) memcpy(many + i, "\xe2\x82\xac", 3);
        many[sizeof many - 1] = '\0';
        ad__fault(&fault, AD_E_VALUE, "%s", many);
        size_t size = strlen(fault.text);
        cr_expect(size >= AD_FAULT_TEXT - 4 && size < AD_FAULT_TEXT);
        cr_expect((size - (size_t)shift) % 3 == 0, "cut at %zu", size);
    }
}
