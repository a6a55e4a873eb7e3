/* Reports, status, metrics and the control socket, of a front whose workers are the test: they report what a test says,
 * late, twice or never, and who asks sends what few send and leaves when nobody does. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/common/discard.h"
#include "server/common/fdpass.h"
#include "server/common/os.h"
#include "tests/unit/server_front.h"

static ad_front front;
static ad_domain *domain;
static ad_channel worker;
static char folder[32], path[64], tokens[64], text[1u << 16];

static void set_up(void) {
    char control[80], file[80];
    strcpy(folder, "/tmp/arrayd-test-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/control", folder);
    snprintf(tokens, sizeof tokens, "%s/tokens", folder);
    snprintf(control, sizeof control, "--control=%s", path);
    snprintf(file, sizeof file, "--tokens=%s", tokens);
    close(open(tokens, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    begin_front(&front, (const char *const[]){control, file, NULL});
    domain = add_domain(&front, "uid:1", &worker);
}

static void tear_down(void) {
    end_front(&front);
    ad__channel_close(&worker);
    unlink(tokens);
    rmdir(folder);
}

TestSuite(observe, .init = set_up, .fini = tear_down);

/* ---- what a worker reports ---- */

static struct {
    ad_report_head head;
    ad_report_session sessions[3];
    ad_report_principal principals[2];
    ad_report_device devices[2];
    ad_report_name names[2];
} report;

static void make_report(void) {
    memset(&report, 0, sizeof report);
    report.head = (ad_report_head){AD_REPORT_MAGIC, 3, 2, 2, 2, {0}};
    for (uint64_t i = 0; i < 3; i++) {
        report.sessions[i] = (ad_report_session){.id = i + 1, .ending = i == 2};
        strcpy(report.sessions[i].principal, i ? "uid:2" : "uid:1");
    }
    for (int i = 0; i < 2; i++) {
        strcpy(report.principals[i].principal, i ? "uid:3" : "uid:2");
        report.devices[i] = (ad_report_device){.index = (uint64_t)i, .open = !i, .name = "a device"};
        report.names[i] = (ad_report_name){.name = "weights", .dtype = AD_FLOAT32, .writable = (uint64_t)i};
    }
}

/* Send the report as the answer to a question. */
static void answer_question(uint64_t question) {
    const int fd = memfd_create("report", MFD_CLOEXEC);
    cr_assert_eq(write(fd, &report, sizeof report), (ssize_t)sizeof report);
    const ad_note note = {.kind = AD_NOTE_REPORTED, .id = question, .size = sizeof report};
    cr_assert_eq(ad__channel_send(&worker, &note, fd), 0);
}

static void note_done(ad_observer *w) { (void)w; }

/* Ask as the first or after the pause. */
static void ask_for_report(ad_observer *w) {
    front.observability.reports.last = 0;
    *w = (ad_observer){.done = note_done};
    ad__collect(&front, w);
}

Test(observe, each_question_has_one_answer) {
    ad_observer w;
    make_report();
    ask_for_report(&w);
    const uint64_t question = take_note(&worker, AD_NOTE_REPORT, NULL).id;
    answer_question(question + 1); /* nobody has asked that */
    run_front(&front);
    cr_expect(w.waiting && !domain->observation.report.head);
    answer_question(question);
    answer_question(question); /* once is enough */
    report.head.sessions = 1;
    run_front(&front);
    cr_expect(!w.waiting && domain->observation.report.head->sessions == 3);
    ask_for_report(&w);
    take_note(&worker, AD_NOTE_REPORT, NULL);
    answer_question(question); /* late */
    run_front(&front);
    cr_expect(w.waiting);
}

static void collect_report(void) {
    ad_observer w;
    make_report();
    ask_for_report(&w);
    answer_question(take_note(&worker, AD_NOTE_REPORT, NULL).id);
    run_front(&front);
    cr_assert_not(w.waiting);
}

static void expect_text(const ad_bytes *b, const char *expected, bool there) {
    cr_expect_eq(memmem(b->data, b->size, expected, strlen(expected)) != NULL, there, "%s", expected);
}

Test(observe, what_is_told_of_workers_with_and_without_a_report) {
    ad_bytes b = AD_BYTES_INIT;
    uint64_t id;
    bool ending;
    ad_domain *silent = ad__domain_new(&front, "uid:9"); /* it comes first, and has no worker */
    collect_report();
    ad__status_json(&front, &b);
    expect_text(&b, "\"device\":0", true);
    expect_text(&b, "\"device\":1,\"name\"", false);
    expect_text(&b, "\"writable\":true", true);
    expect_text(&b, "\"writable\":false", true);
    b.size = 0;
    ad__metrics_text(&front, &b);
    expect_text(&b, "arrayd_sessions{domain=\"uid:1\",principal=\"uid:1\"} 1", true);
    expect_text(&b, "arrayd_sessions{domain=\"uid:1\",principal=\"uid:2\"} 2", true);
    expect_text(&b, "arrayd_sessions{domain=\"uid:1\",principal=\"uid:3\"} 0", true);
    expect_text(&b, "device=\"1\"", false);
    expect_text(&b, "process=\"worker\"", false);
    b.size = 0;
    domain->observation.probed = domain->observation.works = true;
    ad__health_json(&front, &b);
    expect_text(&b, "\"healthy\":true", true);
    expect_text(&b, "uid:9", false);
    cr_expect_eq(ad__status_session(&front, "3", &id, &ending), domain);
    cr_expect(id == 3 && ending);
    cr_expect_null(ad__status_session(&front, "4", &id, &ending));
    cr_expect_null(silent->observation.report.head);
    ad__bytes_free(&b);
}

Test(observe, what_a_process_costs_that_has_gone) {
    ad_process_cost cost;
    ad_pulse pulse;
    const pid_t pid = fork();
    if (!pid) _exit(0);
    waitpid(pid, NULL, 0);
    ad__process_cost(pid, &cost);
    cr_expect(!cost.resident && !cost.descriptors && cost.cpu == 0);
    cr_expect_not(ad__process_pulse(pid, &pulse));
    ad__process_cost(getpid(), &cost);
    cr_expect(cost.resident > 0 && cost.descriptors > 2 && ad__process_pulse(getpid(), &pulse));
}

/* ---- visitors of the control socket ---- */

static int begin_visit(void) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    ad_fault fault = {0};
    if (!front.observability.control) cr_assert_eq(ad__control_open(&front, &fault), 0, "%s", fault.text);
    strcpy(a.sun_path, path);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    run_front(&front);
    return fd;
}

static void send_line(int fd, const char *line) { send_to_front(&front, fd, line, strlen(line)); }

/* Check the answer, and that the visit is over. */
static void expect_answer(int fd, const char *expected) {
    run_front(&front);
    cr_expect_gt(read_text(fd, text, sizeof text), 0, "%s", expected);
    cr_expect_not_null(strstr(text, expected), "%s: %s", expected, text);
    cr_expect_eq(read_text(fd, text, sizeof text), -1);
    close(fd);
}

static void ask_and_expect(const char *line, const char *expected) {
    const int fd = begin_visit();
    send_line(fd, line);
    expect_answer(fd, expected);
}

Test(observe, requests_that_few_send) {
    ask_and_expect("s\x7f\xff\x01tus now\n", "no such request: s???tus");
    const int fd = begin_visit();
    cr_assert_gt(fill_socket(fd), 32u * 4096);
    expect_answer(fd, "the request is too long");
}

/* Let the worker report, and be told of what was asked, or be gone before that. */
static void ask_of_session(const char *line, int pipe_end, bool goes, const char *expected) {
    const int fd = begin_visit();
    make_report();
    front.observability.reports.last = 0;
    cr_assert_eq(ad__fdpass_send(fd, line, strlen(line), pipe_end), (ssize_t)strlen(line));
    run_front(&front);
    answer_question(take_note(&worker, AD_NOTE_REPORT, NULL).id);
    if (goes) shutdown(worker.fd, SHUT_RDWR);
    expect_answer(fd, expected);
}

Test(observe, sessions_that_end_are_killed_and_not_traced) {
    int ends[2];
    cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
    ask_of_session("trace 3\n", ends[1], false, "there is no session 3");
    ask_of_session("trace 4\n", ends[1], false, "there is no session 4");
    ask_of_session("kill 3 because\n", -1, false, "{\"killed\":\"3\"}");
    cr_expect_str_eq(take_note(&worker, AD_NOTE_KILL, NULL).text, "ended by an administrator: because");
    ask_of_session("trace 2\n", ends[1], false, "{\"traced\":\"2\"}");
    cr_expect_eq(take_note(&worker, AD_NOTE_TRACE, NULL).id, 2);
    ask_of_session("kill 1\n", -1, true, "cannot reach the worker of session 1");
    close(ends[0]);
    close(ends[1]);
}

Test(observe, an_invitation_without_a_certificate) {
    ad_fault fault = {0};
    ad_tls_context *none;
    if (ad__tls_client(&(ad_tls_files){0}, &none, &fault)) cr_skip_test("no OpenSSL");
    ask_and_expect("invite\n", "this server is not reached over a network");
    cr_assert_eq(ad__listen_add(&front, socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), AD_WAY_TLS, "tls:here", &fault),
                 0);
    front.tls = none;
    ask_and_expect("invite\n", "there is no certificate");
    ad__listen_close(&front);
}

/* ---- calls that fail, or do little ---- */

static unsigned each; /* bytes that a call sends; 0: none now */
static int (*real_accept)(int fd, struct sockaddr *address, socklen_t *size, int flags);

static ssize_t send_little(int fd, const void *data, size_t size, int flags) {
    if (each) return send(fd, data, size < each ? size : each, flags);
    errno = EAGAIN;
    return -1;
}

static int accept_none(int fd, struct sockaddr *address, socklen_t *size, int flags) {
    (void)fd, (void)address, (void)size, (void)flags;
    errno = EAGAIN;
    return -1;
}

Test(observe, an_answer_in_pieces_and_one_that_is_not_fetched) {
    ad__os.send = send_little;
    each = 5;
    ask_and_expect("nonsense\n", "no such request: nonsense\"}\n");
    const int fd = begin_visit();
    each = 0;
    send_line(fd, "nonsense\n");
    close(fd); /* while the front waits for room */
    run_front(&front);
    const int next = begin_visit();
    each = 3;
    send_line(next, "nonsense\n");
    each = 0;
    run_front(&front);
    ad__os.send = send;
    expect_answer(next, "no such request");
}

Test(observe, a_visitor_goes_with_an_answer_that_it_has_not_read) {
    const int fd = begin_visit();
    ad__os.send = send_little;
    each = 1;
    cr_assert_eq(send(fd, "nonsense\n", 9, MSG_NOSIGNAL), 9);
    while (recv(fd, text, 1, MSG_PEEK | MSG_DONTWAIT) < 0) uv_run(&front.loop, UV_RUN_NOWAIT);
    each = 0;
    close(fd); /* its byte is lost, which is an error of the other end */
    run_front(&front);
    ad__os.send = send;
    ask_and_expect("nonsense\n", "no such request");
}

Test(observe, visitors_that_cannot_come_in) {
    real_accept = ad__os.accept;
    const int first = begin_visit();
    ad__os.accept = accept_none;
    const int fd = begin_visit();
    cr_expect_eq(read_text(fd, text, sizeof text), 0);
    ad__os.accept = real_accept;
    send_line(fd, "nonsense\n");
    expect_answer(fd, "no such request");
    close(first);
}

Test(observe, the_visitor_of_an_upgrade_whom_the_next_front_cannot_adopt) {
    int a[2], b[2];
    make_connection(a);
    ad__control_upgraded(&front, "why not", NULL); /* there is no socket, and nobody waits */
    cr_expect_eq(ad__control_offer(&front), 0);
    ad__control_adopt(&front, a[1]);
    cr_expect_eq(read_text(a[0], text, sizeof text), -1);
    close(a[0]);
    const int fd = begin_visit();
    for (int others = 1; others >= 0; others--) {
        make_connection(b);
        fail_calloc(1);
        ad__control_adopt(&front, b[1]);
        restore_calls();
        cr_expect_eq(read_text(b[0], text, sizeof text), -1);
        close(b[0]);
        if (others) close(fd);
        run_front(&front);
    }
    fail_calloc(1);
    cr_expect_eq(ad__control_offer(&front), AD_E_MEMORY);
    restore_calls();
}

/* Descriptors that are slow to close are those that nobody can use. */
Test(observe, a_visitor_who_passes_more_than_is_closed) {
    int ends[2];
    char who[AD_PRINCIPAL_SIZE];
    snprintf(who, sizeof who, "uid:%u", (unsigned)getuid());
    cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
    const int fd = begin_visit();
    hold_closing(true);
    for (int i = 0; i < AD_DISCARD_LIMIT + 1; i++) ad__discard(who, dup(ends[0]));
    cr_assert_eq(send(fd, "nonsense\n", 9, MSG_NOSIGNAL), 9);
    run_front(&front);
    cr_expect_eq(read_text(fd, text, sizeof text), -1, "the visit is over");
    hold_closing(false);
    close(fd);
    while (ad__discard_is_full(who)) uv_run(&front.loop, UV_RUN_NOWAIT);
    close(ends[0]);
    close(ends[1]);
}
