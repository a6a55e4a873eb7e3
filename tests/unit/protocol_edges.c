/* These tests meet the edges of each part of the protocol: conditions that no message of a usual client meets. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/curand.h"
#include "protocol/desc.h"
#include "protocol/distribution.h"
#include "protocol/infer.h"
#include "protocol/memfd.h"
#include "protocol/message.h"
#include "protocol/nearest.h"
#include "protocol/owner.h"
#include "protocol/ring.h"
#include "protocol/rows.h"
#include "protocol/rows_call.h"
#include "protocol/rows_request.h"
#include "protocol/text.h"

#define COUNT(list) (sizeof list / sizeof *list)

static ad_fault fault;

/* ---- random numbers ---- */

Test(edges, every_wrong_parameter_of_every_distribution_has_words) {
    for (int64_t id = -1; id <= AD_RANDOM_LIMIT; id++)
        for (int64_t wrong = -1; wrong <= 9; wrong++) {
            fault = (ad_fault){0};
            cr_expect_eq(ad__random_fault(id, wrong, &fault), AD_E_VALUE);
            cr_expect_neq(*fault.text, 0, "%d %d", (int)id, (int)wrong);
        }
}

Test(edges, costs_of_random_numbers) {
    int most = 0;
    for (int64_t id = -1; id <= AD_RANDOM_LIMIT; id++)
        for (int row = 0; row < 3; row++) {
            ad_scalar param = {AD_SCALAR_INT, {.i = id}};
            const int rows[] = {AD_CALL_random, AD_CALL_curand, AD_CALL_sort};
            ad_op op = {.opcode = AD_REQ_CALL, .row = (uint16_t)rows[row], .nparam = 1, .param = &param};
            const int cost = ad__random_cost(&op);
            cr_expect(cost >= 0 && (row < 2 || cost == 0));
            if (cost > most) most = cost;
            op.nparam = 0;
            cr_expect_eq(ad__random_cost(&op), 0);
        }
    cr_expect_gt(most, 0);
}

/* ---- texts ---- */

Test(edges, a_character_that_the_end_cuts_is_left_out) {
    char text[2 * AD_FAULT_TEXT];
    for (size_t before = AD_FAULT_TEXT - 6; before < AD_FAULT_TEXT; before++) {
        memset(text, 'x', sizeof text);
        strcpy(text + before, "\xe2\x82\xac and more, which does not fit");
        ad__fault(&fault, AD_E_VALUE, "%s", text);
        cr_expect(ad__is_utf8(fault.text, strlen(fault.text)), "%zu", before);
    }
    memset(text, '\x80', sizeof text - 1); /* no character begins anywhere */
    text[sizeof text - 1] = 0;
    ad__fault(&fault, AD_E_VALUE, "%s", text);
    cr_expect_eq(strlen(fault.text), AD_FAULT_TEXT - 1);
    cr_expect_eq(ad__fault(NULL, AD_E_VALUE, "nobody asks"), AD_E_VALUE);
}

Test(edges, numbers_of_errors_that_are_none) {
    cr_expect_str_eq(ad__error_text(1), "unknown error");
    cr_expect_str_eq(ad__error_text(-24), "unknown error");
    cr_expect_str_eq(ad__error_text(-1000), "unknown error");
    cr_expect_neq(strcmp(ad__error_text(AD_E_VALUE), "unknown error"), 0);
}

Test(edges, a_full_space_takes_no_more) {
    char space[4];
    ad_text_buffer t = {space, sizeof space, 0};
    for (int i = 0; i < 4; i++) ad__text_add(&t, "ab");
    cr_expect_str_eq(space, "aba");
    t.used = t.size;
    ad__text_add(&t, "c");
    cr_expect_str_eq(space, "aba");
    t.used = 1;
    ad__text_add(&t, "%s", "");
    cr_expect_eq(t.used, 1);
}

Test(edges, lines_of_words_are_of_one_kind) {
    ad_nearest n;
    ad__nearest_begin(&n, "Log_level", 9);
    ad__nearest_try(&n, "log-level");
    cr_expect_not_null(n.best);
}

Test(edges, words_that_are_too_long_or_empty_have_no_neighbours) {
    char word[AD_NEAREST_WORD + 10], hint[AD_NEAREST_HINT];
    ad_nearest n;
    memset(word, 'x', sizeof word);
    word[sizeof word - 1] = 0;
    for (int i = 0; i < 3; i++) {
        ad__nearest_begin(&n, i ? word : "near", i == 2 ? 0 : i ? strlen(word) : 4);
        ad__nearest_try(&n, "");
        ad__nearest_try(&n, word);
        cr_expect_null(n.best);
        ad__nearest_try(&n, "neat");
        cr_expect_eq(n.best != NULL, i == 0);
        cr_expect_eq(*ad__nearest_hint(&n, hint) != 0, i == 0);
    }
}

static const char *describe_message(const ad_message *m) {
    static char text[400];
    ad__message_text(m, text, sizeof text);
    return text;
}

Test(edges, messages_that_hold_what_no_reader_lets_through) {
    uint64_t ids[40] = {0};
    ad_scalar values[40] = {{AD_SCALAR_BOOL, {.b = false}}};
    const int64_t one[] = {4};
    ad_message m = {0};
    cr_expect_str_eq(describe_message(&m), "?");
    m.row = ad__request(AD_REQ_READ);
    m.operand.desc = (ad_desc){7, 0, one, one, 99, 1, AD_VIEW};
    cr_expect_not_null(strstr(describe_message(&m), "#7 ?[4]"));
    m = (ad_message){.row = ad__request(AD_REQ_FREE), .ids = ids, .nids = COUNT(ids)};
    cr_expect_not_null(strstr(describe_message(&m), "... 40 in all"));
    m = (ad_message){.row = ad__request(AD_REQ_REPLY), .values = values, .nvalues = COUNT(values)};
    cr_expect(strstr(describe_message(&m), "false") && strstr(describe_message(&m), ", ... 40 in all"));
    m = (ad_message){.row = ad__request(AD_REQ_UFUNC),
                     .opcode = AD_REQ_UFUNC,
                     .op = {.opcode = AD_REQ_UFUNC, .loop = 99, .row = 999}};
    cr_expect_not_null(strstr(describe_message(&m), "? ?"));
    m = (ad_message){.row = ad__request(AD_REQ_WELCOME), .s = {{"0123456789abcdef", 16}}};
    cr_expect_null(strstr(describe_message(&m), "0123"));
}

Test(edges, strings_are_printed_as_ascii) {
    char all[256];
    for (int i = 0; i < 256; i++) all[i] = (char)i;
    for (int i = 0; i < 256; i += 32) {
        ad_message m = {.row = ad__request(AD_REQ_BYE), .s = {{all + i, 32}}};
        for (const char *p = describe_message(&m); *p; p++) cr_expect(*p >= ' ' && *p <= '~');
    }
    ad_string value = {all, sizeof all};
    ad_message m = {.row = ad__request(AD_REQ_LAUNCH), .s = {{"f", 1}}, .list = {{&value, 1}}};
    cr_expect_not_null(strstr(describe_message(&m), "0f..."));
}

Test(edges, secret_requests_in_any_order) {
    ad_secret_requests secret = {0};
    for (uint64_t request = 9; request >= 7; request--) {
        ad_message m = {.row = ad__request(AD_REQ_SHARE), .u = {request}};
        ad__message_hide(&m, &secret);
    }
    cr_expect(secret.first == 7 && secret.last == 9);
}

/* ---- messages ---- */

/* Read one block; its status. */
static int read_block(const void *data, size_t size) {
    ad_reader *reader;
    ad_arena arena = AD_ARENA_INIT;
    ad_message m;
    cr_assert_eq(ad__reader_new(&reader), 0);
    int status = ad__reader_begin(reader, data, size, &fault);
    while (!status && (status = ad__reader_next(reader, &arena, ~0u, &m, &fault)) == 1) status = 0;
    ad__reader_free(reader);
    ad__arena_free(&arena);
    return status;
}

Test(edges, unknown_options_of_any_kind_are_skipped) {
    /* hello with {"x": {1: 2.5f}, "y": [[], {}]}, and the same with a process that is no number */
    static const char good[] = "\x96\x01\x01\x01\x00\xa1x\x82\xa1x\x81\x01\xca\x40\x20\x00\x00\xa1y\x92\x90\x80";
    static const char bad[] = "\x96\x01\x01\x01\x00\xa1x\x81\xa7process\x90";
    cr_expect_eq(read_block(good, sizeof good - 1), 0, "%s", fault.text);
    cr_expect_eq(read_block(bad, sizeof bad - 1), AD_E_PROTOCOL);
}

Test(edges, more_than_a_row_may_have) {
    ad_bytes b = AD_BYTES_INIT;
    ad_scalar param[AD_MAX_PARAM + 1] = {{0}};
    ad_operand out = {.desc = {7, 0, NULL, NULL, AD_FLOAT32, 0, AD_FRESH}};
    ad_op op = {AD_REQ_UFUNC, AD_FLOAT32, 1, 0, AD_MAX_PARAM + 1, AD_UFUNC_add, &out, param};
    ad__encode_op(&b, &op);
    cr_expect_eq(read_block(b.data, b.size), AD_E_PROTOCOL);
    cr_expect_not_null(strstr(fault.text, "too many parameters"), "%s", fault.text);
    b.size = 0;
    uint8_t kind[AD_MAX_ARGUMENTS + 1];
    memset(kind, AD_KIND_VALUE, sizeof kind);
    op = (ad_op){.opcode = AD_REQ_LAUNCH};
    ad_launch_text l = {.module = 1, .kernel = "f", .nparams = sizeof kind, .kind = kind, .op = &op};
    ad__encode_launch(&b, &l);
    cr_expect_eq(read_block(b.data, b.size), AD_E_PROTOCOL);
    cr_expect_not_null(strstr(fault.text, "numbers, not 263"), "%s", fault.text);
    ad__bytes_free(&b);
}

Test(edges, numbers_of_every_size_come_back) {
    static const int64_t shape[] = {2, 2, 2, 2, 2}, strides[] = {-100, -200, -40000, -3000000000, 70000};
    ad_bytes b = AD_BYTES_INIT;
    const ad_desc d = {7, 1, shape, strides, AD_INT8, 5, AD_VIEW};
    ad__encode_read(&b, 1, &d);
    cr_expect_eq(read_block(b.data, b.size), 0, "%s", fault.text);
    const size_t n = 70000;
    uint64_t *ids = calloc(n, sizeof *ids);
    b.size = 0;
    ad__encode_free(&b, n, ids);
    cr_expect_eq(read_block(b.data, b.size), 0, "%s", fault.text);
    cr_expect_eq(ad__encode_free(&b, SIZE_MAX, ids), AD_E_MEMORY);
    cr_expect_eq(ad__scan_messages(b.data, b.size < 5 ? 0 : 5), 0);
    cr_expect_eq(ad__scan_messages((const uint8_t *)"\x91\x01\x92\x02\x03\xc1", 6), 2);
    free(ids);
    ad__bytes_free(&b);
}

Test(edges, beginnings_of_other_protocols) {
    for (int type = 0x10; type < 0x20; type++)
        for (uint8_t major = 2; major < 5; major++)
            for (uint8_t minor = 3; minor < 7; minor++) {
                const uint8_t head[5] = {(uint8_t)type, major, minor};
                const bool tls = type >= 0x14 && type <= 0x16 && major == 3 && minor <= 4;
                cr_expect_eq(ad__frame_name_stranger(head, 5) != NULL, tls);
            }
    cr_expect_null(ad__frame_name_stranger((const uint8_t *)"GET ", 4));
}

/* ---- views ---- */

Test(edges, views_that_no_buffer_has) {
    static int64_t shape[AD_MAX_NDIM + 1], strides[AD_MAX_NDIM + 1], own[AD_MAX_NDIM + 1], count;
    for (int i = 0; i <= AD_MAX_NDIM; i++) shape[i] = 1;
    ad_desc d = {1, 0, shape, strides, AD_FLOAT32, 1, AD_VIEW}, view, e;
    cr_expect_eq(ad__shape_count(-1, shape, AD_FLOAT32, &count, &fault), AD_E_VALUE);
    cr_expect_lt(ad__broadcast_to(&d, AD_MAX_NDIM + 1, shape, own, &view, &fault), 0);
    d.ndim = AD_MAX_NDIM + 1;
    cr_expect_lt(ad__desc_check(&d, 100, "x", &fault), 0);
    d.ndim = 1;
    d.offset = -4;
    cr_expect_lt(ad__desc_check(&d, 100, "x", &fault), 0);
    e = d;
    e.offset = 0;
    cr_expect(ad__desc_overlap(&d, &e) && ad__desc_overlap(&e, &d), "what has no extent may be anywhere");
    shape[0] = -1;
    cr_expect_not(ad__reshape_strides(&e, 1, strides, own));
    shape[0] = INT64_MAX;
    cr_expect_not(ad__reshape_strides(&e, 1, shape, own));
    shape[0] = shape[1] = 3;
    strides[1] = INT64_MAX / 2;
    e.ndim = 2;
    cr_expect_not(ad__reshape_strides(&e, 1, (const int64_t[]){9}, own), "the strides meet past the end of numbers");
}

Test(edges, what_makes_two_views_differ) {
    static const int64_t shape[] = {2, 1}, other[] = {3, 1}, strides[] = {4, 9}, wide[] = {8, 7};
    const ad_desc d = {1, 0, shape, strides, AD_FLOAT32, 2, AD_VIEW};
    ad_desc e[] = {d, d, d, d, d, d, d};
    e[1].buffer = 2;
    e[2].offset = 4;
    e[3].dtype = AD_INT32;
    e[4].ndim = 1;
    e[5].shape = other;
    e[6].strides = wide;
    for (size_t i = 0; i < COUNT(e); i++) cr_expect_eq(ad__desc_same(&d, &e[i]), i == 0, "%zu", i);
}

/* ---- loops ---- */

Test(edges, loops_of_every_row_for_every_type_that_is_asked_for) {
    int loop, found = 0;
    for (uint64_t id = 1; id < 512; id++) {
        const ad_ufunc_row *row = ad__ufunc(id);
        for (int type = 0; row && type <= AD_WEAK_COMPLEX; type++)
            for (int asked = 0; asked <= AD_NO_DTYPE; asked += asked < AD_NDTYPE ? 1 : AD_NO_DTYPE - AD_NDTYPE) {
                const uint8_t types[3] = {(uint8_t)type, (uint8_t)type, (uint8_t)type};
                fault = (ad_fault){0};
                const int status = ad__resolve_ufunc(row, types, asked, &loop, &fault);
                cr_expect(status == 0 || (status == AD_E_TYPE && *fault.text), "%s", row->name);
                found += status == 0;
            }
    }
    for (uint64_t id = 1; id < 256; id++)
        for (int type = 0; ad__reduction(id) && type < AD_NDTYPE; type++)
            for (int asked = 0; asked < AD_NDTYPE; asked++) {
                const int status = ad__resolve_reduction(ad__reduction(id), type, asked, &loop, &fault);
                cr_expect(status == 0 || status == AD_E_TYPE);
            }
    cr_expect_gt(found, 1000);
    cr_expect_eq(ad__safe_types(AD_NDTYPE), 0);
    const uint8_t none[3] = {AD_FLOAT32, AD_FLOAT32, AD_FLOAT32};
    cr_expect_eq(ad__resolve_ufunc(ad__ufunc(AD_UFUNC_add), none, 200, &loop, &fault), AD_E_TYPE);
    cr_expect_eq(ad__resolve_ufunc(ad__ufunc(AD_UFUNC_bitwise_and), none, AD_NO_DTYPE, &loop, &fault), AD_E_TYPE);
    cr_expect_not_null(strstr(fault.text, "'bitwise_and' not supported"), "%s", fault.text);
}

/* ---- owners and memory ---- */

/* The groups that the process is in (the linker's --wrap). */
static int groups = -1;
static gid_t group[4];
int __real_getgroups(int size, gid_t list[]);
int __wrap_getgroups(int size, gid_t list[]);
int __wrap_getgroups(int size, gid_t list[]) {
    if (groups < 0) return __real_getgroups(size, list);
    if (size) memcpy(list, group, (size_t)groups * sizeof *list);
    return groups;
}

Test(edges, whose_a_secret_may_be) {
    const gid_t others = 54321;
    group[0] = 7;
    group[1] = others;
    for (groups = 0; groups <= 2; groups++) {
        cr_expect_eq(ad__owner_in_group(others), groups == 2);
        cr_expect(ad__owner_in_group(getegid()));
        const struct stat root = {.st_uid = 0, .st_gid = 0, .st_mode = 0640},
                          shown = {.st_gid = others, .st_mode = 0440}, open = {.st_mode = 0604},
                          foreign = {.st_uid = 54321, .st_mode = 0600},
                          own = {.st_uid = geteuid(), .st_gid = others, .st_mode = 0600};
        cr_expect_eq(ad__owner_check_secret(&root, "file", "/x", &fault), 0);
        cr_expect_eq(ad__owner_check_secret(&shown, "file", "/x", &fault), groups == 2 ? 0 : AD_E_DENIED);
        cr_expect_eq(ad__owner_check_secret(&open, "file", "/x", &fault), AD_E_DENIED);
        cr_expect_eq(ad__owner_check_secret(&foreign, "file", "/x", &fault), AD_E_DENIED);
        cr_expect_not_null(strstr(fault.text, "54321"), "%s", fault.text);
        cr_expect_eq(ad__owner_check_secret(&own, "file", "/x", &fault), 0);
    }
    groups = -1;
    if (geteuid() == 0) {
        const struct stat own = {.st_uid = 54321, .st_mode = 0600};
        cr_assert_eq(seteuid(54321), 0);
        cr_expect_eq(ad__owner_check_secret(&own, "file", "/x", &fault), 0);
        cr_assert_eq(seteuid(0), 0);
    }
    char long_path[200];
    memset(long_path, 'p', sizeof long_path);
    long_path[sizeof long_path - 1] = 0;
    cr_expect_lt(strlen(ad__path_end(long_path)), sizeof long_path - 1);
    cr_expect_eq(ad__owner_check_path("file", "/no/such/file", &fault), 0);
    cr_expect_eq(ad__owner_check_path("file", "/", &fault), AD_E_DENIED);
}

Test(edges, memory_that_is_no_memory_file_of_that_size) {
    const int file = memfd_create("test", MFD_ALLOW_SEALING | MFD_CLOEXEC), null = open("/dev/null", O_RDWR);
    cr_expect_eq(ad__memfd_check("x", null, 1, &fault), AD_E_VALUE);
    cr_expect_eq(ad__memfd_check("x", -1, 1, &fault), AD_E_VALUE);
    cr_expect_eq(ad__memfd_check("x", file, 1, &fault), AD_E_VALUE);
    cr_assert_eq(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    cr_expect_eq(ad__memfd_check("x", file, 1, &fault), AD_E_EXTENT);
    cr_expect_eq(ad__memfd_check("x", file, 0, &fault), 0);
    close(file);
    close(null);
}

Test(edges, a_reader_of_a_ring_that_is_told_to_sleep_twice) {
    ad_ring_memory *m;
    ad_ring_reader r;
    ad_ring_writer w;
    uint64_t size;
    char byte[20];
    int fd;
    cr_assert_eq(ad__ring_create(&m, &fd), 0);
    close(fd);
    ad__ring_read_begin(&r, &m->up, m->bytes[0], 0);
    ad__ring_write_begin(&w, &m->up, m->bytes[0], 0);
    cr_expect(ad__ring_sleep(&r));
    ad__ring_wake(&r);
    cr_expect(ad__ring_put(&w, &(struct iovec){"twenty bytes of text", 20}, 1));
    cr_expect_eq(ad__ring_look(&r, &size), AD_RING_RECORD);
    ad__ring_take(&r, byte, 5);
    cr_expect_not(ad__ring_sleep(&r), "a record has been begun");
    ad__ring_take(&r, byte, 15);
    r.asleep = false;
    cr_expect(ad__ring_sleep(&r));
    r.asleep = false; /* the end has slept already */
    cr_expect(ad__ring_sleep(&r));
    ad__ring_unmap(m);
}
