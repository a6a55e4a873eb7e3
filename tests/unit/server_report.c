/* Reports of workers, which may have been taken over, and texts that come from strangers. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "server/common/metric.h"
#include "server/common/put.h"
#include "server/common/report.h"

static ad_bytes bytes;

static void release_report(void) { ad__bytes_free(&bytes); }

/* A report of two sessions, a principal, a device and a name, in a file; as many bytes of it as there are. */
static int file_of(const ad_bytes *b) {
    int fd = memfd_create("report", MFD_CLOEXEC);
    cr_assert(fd >= 0 && write(fd, b->data, b->size) == (ssize_t)b->size);
    return fd;
}

static void make_report(void) {
    ad_report_head head = {.magic = AD_REPORT_MAGIC, .sessions = 2, .principals = 1, .devices = 1, .names = 1};
    ad_report_session session = {.id = 7, .principal = "uid:1", .client = "a"};
    ad_report_principal principal = {.sessions = 3, .principal = "uid:2"};
    ad_report_device device = {.open = 1, .used = 5, .name = "cpu"};
    ad_report_name name = {.name = "n", .principal = "uid:3", .ndim = 1, .shape = {4}};
    head.counter[AD_COUNTER_used_bytes] = 11;
    bytes.size = 0;
    ad__bytes_append(&bytes, &head, sizeof head);
    ad__bytes_append(&bytes, &session, sizeof session);
    session.id = 8;
    ad__bytes_append(&bytes, &session, sizeof session);
    ad__bytes_append(&bytes, &principal, sizeof principal);
    ad__bytes_append(&bytes, &device, sizeof device);
    ad__bytes_append(&bytes, &name, sizeof name);
}

static int read_back(uint64_t size, ad_report *out) {
    int fd = file_of(&bytes), status = ad__report_read(fd, size, out);
    close(fd);
    return status;
}

TestSuite(report, .init = make_report, .fini = release_report);
TestSuite(put, .fini = release_report);

Test(report, comes_back) {
    ad_report r = {0};
    cr_assert_eq(read_back(bytes.size, &r), 0);
    cr_assert_eq(r.head->counter[AD_COUNTER_used_bytes], 11);
    cr_assert(r.sessions[0].id == 7 && r.sessions[1].id == 8 && !strcmp(r.sessions[1].principal, "uid:1"));
    cr_assert(r.principals[0].sessions == 3 && !strcmp(r.principals[0].principal, "uid:2"));
    cr_assert(r.devices[0].used == 5 && !strcmp(r.devices[0].name, "cpu"));
    cr_assert(!strcmp(r.names[0].name, "n") && r.names[0].shape[0] == 4);
    ad__report_free(&r);
    cr_assert_null(r.head);
}

/* Each with one thing wrong; none is taken, and none leaves anything behind. */
Test(report, is_refused_when_it_is_none) {
    ad_report r = {0};
    cr_assert_eq(read_back(bytes.size - 1, &r), AD_E_PROTOCOL);
    cr_assert_eq(read_back(bytes.size + 1, &r), AD_E_PROTOCOL);
    cr_assert_eq(read_back(sizeof(ad_report_head) - 1, &r), AD_E_PROTOCOL);
    cr_assert_eq(read_back(0, &r), AD_E_PROTOCOL);
    cr_assert_eq(read_back(UINT64_MAX, &r), AD_E_PROTOCOL);
#define WRONG(type, at, change)                                 \
    do {                                                        \
        make_report();                                          \
        type *x = (type *)(void *)(bytes.data + (at));          \
        change;                                                 \
        cr_assert_eq(read_back(bytes.size, &r), AD_E_PROTOCOL); \
    } while (0)
    const size_t sessions = sizeof(ad_report_head), principals = sessions + 2 * sizeof(ad_report_session),
                 devices = principals + sizeof(ad_report_principal), names = devices + sizeof(ad_report_device);
    WRONG(ad_report_head, 0, x->magic++);
    WRONG(ad_report_head, 0, x->sessions++);
    WRONG(ad_report_head, 0, x->sessions = UINT32_MAX);
    WRONG(ad_report_head, 0, x->principals = UINT32_MAX);
    WRONG(ad_report_head, 0, x->devices = UINT32_MAX);
    WRONG(ad_report_head, 0, x->names = UINT32_MAX);
    WRONG(ad_report_head, 0, x->names = 0);
    WRONG(ad_report_session, sessions, memset(x->principal, 'x', sizeof x->principal));
    WRONG(ad_report_session, sessions, memset(x->client, 'x', sizeof x->client));
    WRONG(ad_report_session, sessions, memset(x->doing, 'x', sizeof x->doing));
    WRONG(ad_report_principal, principals, memset(x->principal, 'x', sizeof x->principal));
    WRONG(ad_report_device, devices, memset(x->name, 'x', sizeof x->name));
    WRONG(ad_report_name, names, memset(x->name, 'x', sizeof x->name));
    WRONG(ad_report_name, names, memset(x->principal, 'x', sizeof x->principal));
    WRONG(ad_report_name, names, x->ndim = AD_MAX_NDIM + 1);
    WRONG(ad_report_name, names, x->dtype = AD_NDTYPE);
    cr_assert_null(r.head);
}

/* A file may shrink between being told of and being read. */
Test(report, shrinks) {
    ad_report r = {0};
    int fd = file_of(&bytes);
    cr_assert_eq(ftruncate(fd, (off_t)(bytes.size / 2)), 0);
    cr_assert_eq(ad__report_read(fd, bytes.size, &r), AD_E_PROTOCOL);
    close(fd);
}

static const char *format_json(const char *text) {
    bytes.size = 0;
    ad__put_json(&bytes, text);
    ad__bytes_append(&bytes, "", 1);
    return (const char *)bytes.data;
}

static const char *format_label(const char *text) {
    bytes.size = 0;
    ad__put_label(&bytes, text);
    ad__bytes_append(&bytes, "", 1);
    return (const char *)bytes.data;
}

#define LOST "\xEF\xBF\xBD"

Test(put, texts) {
    cr_expect_str_eq(format_json(""), "\"\"");
    cr_expect_str_eq(format_json("a\"b\\c\n\x01\x7f"), "\"a\\\"b\\\\c\\u000a\\u0001\\u007f\"");
    cr_expect_str_eq(format_json("é€😀"), "\"é€😀\"");
    cr_expect_str_eq(format_label("a\"b\\c\nd"), "\"a\\\"b\\\\c\\nd\"");
    cr_expect_str_eq(format_label("\xff"), "\"" LOST "\"");
}

Test(put, what_is_no_utf8_is_replaced) {
    cr_expect_str_eq(format_json("\x80x"), "\"" LOST "x\"");
    cr_expect_str_eq(format_json("\xC3"), "\"" LOST "\"");                            /* cut off */
    cr_expect_str_eq(format_json("\xE2\x82"), "\"" LOST LOST "\"");                   /* the same */
    cr_expect_str_eq(format_json("\xC0\x80"), "\"" LOST LOST "\"");                   /* overlong */
    cr_expect_str_eq(format_json("\xE0\x9F\xBF"), "\"" LOST LOST LOST "\"");          /* overlong */
    cr_expect_str_eq(format_json("\xED\xA0\x80"), "\"" LOST LOST LOST "\"");          /* half of a pair */
    cr_expect_str_eq(format_json("\xF4\x90\x80\x80"), "\"" LOST LOST LOST LOST "\""); /* beyond U+10FFFF */
    cr_expect_str_eq(format_json("\xF4\x8F\xBF\xBF"), "\"\xF4\x8F\xBF\xBF\"");
}

Test(put, numbers_and_growth) {
    for (int i = 0; i < 10000; i++) ad__put(&bytes, "%d,", i);
    cr_assert_eq(bytes.size, 10 * 2 + 90 * 3 + 900 * 4 + 9000 * 5);
    cr_assert(!memcmp(bytes.data + bytes.size - 10, "9998,9999,", 10));
}

Test(metric, every_counter_is_shown) {
    for (int i = 0; i < AD_NCOUNTER; i++) {
        cr_expect_eq(ad__metrics[i].counter, i);
        cr_expect(ad__metrics[i].name && ad__metrics[i].scale > 0, "%s", ad__counters[i].name);
    }
}
