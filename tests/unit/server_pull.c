/* Fetching arrays of peers, beside a worker that is the test and a program that is a script. */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/common/os.h"
#include "server/front/peers/peers.h"
#include "tests/unit/server_front.h"
#include "tests/unit/text_file.h"

#define OWNER "uid:7" /* the principal of the session that asks */
#define SESSION 5

static ad_front front;
static ad_domain *shared;
static ad_channel worker;
static char folder[] = "/tmp/arrayd-test-XXXXXX", path[64], peers[80], program[80], pid_file[96], go_file[96];

/* Begin a session of a principal. */
static void add_session(uint64_t id, const char *who) {
    ad_note note = {.id = id, .resumable = 1};
    snprintf(note.who, sizeof note.who, "%s", who);
    cr_assert_eq(ad__session_entry_add(&front, &note, shared), 0);
}

static void set_up(void) {
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "--worker=%s/arrayd-worker", folder);
    snprintf(peers, sizeof peers, "--peers=%s/peers", folder);
    snprintf(program, sizeof program, "%s/arrayd-pull", folder);
    snprintf(pid_file, sizeof pid_file, "%s.pid", program);
    snprintf(go_file, sizeof go_file, "%s.go", program);
    write_text(peers + strlen("--peers="), "giver tcp:127.0.0.1:1\n", 0600);
    begin_front(&front, (const char *const[]){path, peers, NULL});
    shared = add_domain(&front, AD_DOMAIN_SHARED, &worker);
    add_session(SESSION, OWNER);
}

static void count_program(uv_handle_t *handle, void *number) { *(unsigned *)number += handle->type == UV_PROCESS; }

/* Wait for the programs to end, which they do when they are killed or their file has gone: what they hold is freed
 * then. */
static void await_programs(void) {
    for (unsigned number = 1; number;) {
        number = 0;
        uv_walk(&front.loop, count_program, &number);
        if (number) uv_run(&front.loop, UV_RUN_ONCE);
    }
}

static void tear_down(void) {
    ad__pull_end(&front, 0);
    unlink(program);
    unlink(go_file);
    await_programs();
    end_front(&front);
    ad__channel_close(&worker);
    unlink(peers + strlen("--peers="));
    rmdir(folder);
}

TestSuite(pull, .init = set_up, .fini = tear_down);

/* Let the program be a script, which reads the job or does not. */
static void write_script(const char *first, const char *script) {
    char text[256];
    snprintf(text, sizeof text, "#!/bin/sh\n%s\n%s\n", first, script);
    write_text(program, text, 0700);
}

static void write_program(const char *script) { write_script("read -r job <&3", script); }

/* Ask for an array, as the worker of a session does at a place of its messages. */
static void ask_for_session(uint64_t session, uint64_t place, const char *peer, const char *who) {
    ad_note note = {.kind = AD_NOTE_PULL, .id = session, .size = place};
    snprintf(note.text, sizeof note.text, "%s", peer);
    snprintf(note.who, sizeof note.who, "%s", who);
    ad__pull_handle(shared, &note);
}

static void ask_for_array(uint64_t place, const char *peer, const char *who) {
    ask_for_session(SESSION, place, peer, who);
}

/* Wait for the answer to the question of a place, which must be this code and contain this text. */
static ad_note expect_answer(uint64_t place, int code, const char *text) {
    struct pollfd told = {.fd = worker.fd, .events = POLLIN};
    while (!poll(&told, 1, 0)) uv_run(&front.loop, UV_RUN_ONCE);
    const ad_note note = take_note(&worker, AD_NOTE_PULLED, NULL);
    cr_expect(note.id == SESSION && note.size == place);
    cr_expect_eq(note.process, (uint64_t)-code, "%d", -(int)note.process);
    cr_expect(strstr(note.text, text), "%s: %s", text, note.text);
    return note;
}

Test(pull, a_program_says_what_has_come) {
    uint64_t half[2];
    write_program("case $job in tcp:127.0.0.1:1*uid:9*) printf '0\\t12\\t34\\n' >&3;; esac");
    ask_for_array(1, "giver", "uid:9");
    memcpy(half, expect_answer(1, 0, "").secret, sizeof half);
    cr_expect(half[0] == 0x12 && half[1] == 0x34);
    ask_for_array(1, "giver", "uid:9");
    memcpy(half, expect_answer(1, 0, "").secret, sizeof half);
    cr_expect(half[0] == 0x12 && half[1] == 0x34, "another worker gets the same answer");
    run_front(&front);
    cr_expect(is_told_nothing(&worker), "an answer comes once");
}

Test(pull, a_program_that_fails_or_says_nonsense) {
    static const struct {
        const char *script;
        int code;
        const char *text;
    } rows[] = {{"printf '5\\tno such array\\n' >&3", -5, "pull from giver: no such array"},
                {"printf '5\\ta\\033b\\177c\\n' >&3", -5, "pull from giver: a?b?c"},
                {"exit 1", AD_E_SYSTEM, "ended without an answer"},
                {"printf 'yes\\n' >&3", AD_E_INTERNAL, "nonsense"},
                {"printf '0\\n' >&3", AD_E_INTERNAL, "nonsense"},
                {"printf '0\\tx\\n' >&3", AD_E_INTERNAL, "nonsense"},
                {"printf '100\\tx\\n' >&3", AD_E_INTERNAL, "nonsense"},
                {"head -c 5000 /dev/zero >&3; sleep 100", AD_E_INTERNAL, "nonsense"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_program(rows[i].script);
        ask_for_array(i, "giver", "uid:9");
        expect_answer(i, rows[i].code, rows[i].text);
    }
}

Test(pull, what_is_refused_at_once) {
    ask_for_array(1, "another", "uid:9");
    expect_answer(1, AD_E_NAME, "it is no peer of this server");
    ask_for_array(2, "giver", "uid:9\ttcp:127.0.0.1:2");
    expect_answer(2, AD_E_VALUE, "letters that no principal has");
    ask_for_array(3, "giver", "uid:9");
    expect_answer(3, AD_E_SYSTEM, "cannot start");
    front.stopping = true;
    ask_for_array(4, "giver", "uid:9");
    expect_answer(4, AD_E_CONNECTION, "shutting down");
    fail_calloc(1);
    ask_for_array(5, "giver", "uid:9");
    restore_calls();
    expect_answer(5, AD_E_MEMORY, "out of host memory");
    ad__pull_handle(shared, &(ad_note){.kind = AD_NOTE_PULL, .id = SESSION + 1, .text = "giver"});
    cr_expect(is_told_nothing(&worker), "no session of the worker's asks");
}

Test(pull, a_loop_that_takes_no_socket) {
    const unsigned before = count_open();
    write_program("sleep 100");
    for (int n = 1; n < 3; n++) {
        fail_poll_init(n);
        ask_for_array((uint64_t)n, "giver", "uid:9");
        fail_poll_init(0);
        expect_answer((uint64_t)n, AD_E_SYSTEM, "out of descriptors");
        run_front(&front);
    }
    cr_expect_eq(count_open(), before);
}

/* ---- programs that end, or do not ---- */

/* Ask for an array by a program of which a part goes on when it has ended itself, and wait until it has. */
static void ask_and_await_end(uint64_t place) {
    char line[16];
    FILE *f;
    write_program(
        "echo $$ >$0.new; mv $0.new $0.pid; { until [ -e $0.go -o ! -e $0 ]; do :; done; printf 'yes\\n' >&3; } &");
    ask_for_array(place, "giver", "uid:9");
    while (!(f = fopen(pid_file, "r"))) uv_run(&front.loop, UV_RUN_NOWAIT);
    cr_assert_not_null(fgets(line, sizeof line, f));
    fclose(f);
    unlink(pid_file);
    while (!kill(atoi(line), 0)) uv_run(&front.loop, UV_RUN_NOWAIT);
    cr_expect(is_told_nothing(&worker));
}

Test(pull, a_part_of_the_program_goes_on) {
    ask_and_await_end(1);
    write_text(go_file, "", 0600);
    expect_answer(1, AD_E_INTERNAL, "nonsense");
    unlink(go_file);
    ask_and_await_end(2);
    ad__pull_end(&front, SESSION);
    write_text(go_file, "", 0600); /* its socket has gone */
    run_front(&front);
    cr_expect(is_told_nothing(&worker));
}

Test(pull, an_answer_in_two_parts) {
    write_program(
        "printf '5\\tno such ' >&3; : >$0.pid; until [ -e $0.go -o ! -e $0 ]; do :; done; printf 'array\\n' >&3");
    ask_for_array(1, "giver", "uid:9");
    while (access(pid_file, F_OK)) uv_run(&front.loop, UV_RUN_NOWAIT);
    run_front(&front);
    cr_expect(is_told_nothing(&worker));
    write_text(go_file, "", 0600);
    expect_answer(1, -5, "no such array");
}

Test(pull, a_program_that_does_not_read_its_job) {
    write_script("exit 0", "");
    ask_for_array(1, "giver", "uid:9");
    expect_answer(1, AD_E_SYSTEM, "ended without an answer");
}

Test(pull, a_program_that_takes_its_time) {
    write_program("exec sleep 100");
    front.config.operation_time = 0.01;
    ask_for_array(1, "giver", "uid:9");
    expect_answer(1, AD_E_TIMEOUT, "longer than operation-time");
    front.config.operation_time = 0; /* as long as it takes */
    write_program("printf '5\\tno such array\\n' >&3");
    ask_for_array(2, "giver", "uid:9");
    expect_answer(2, -5, "no such array");
}

Test(pull, a_program_on_no_path) {
    char none[] = "arrayd-no-worker", *const worker_path = front.config.worker;
    front.config.worker = none;
    ask_for_array(1, "giver", "uid:9");
    expect_answer(1, AD_E_SYSTEM, "cannot start arrayd-pull");
    front.config.worker = worker_path;
}

/* ---- calls that fail ---- */

static int sockets_left;

static int fail_socketpair(int family, int type, int protocol, int fd[2]) {
    errno = EMFILE;
    return sockets_left-- ? socketpair(family, type, protocol, fd) : -1;
}

static ssize_t fail_send(int fd, const void *data, size_t size, int flags) {
    (void)fd, (void)data, (void)size, (void)flags;
    errno = ENOBUFS;
    return -1;
}

Test(pull, no_sockets) {
    const ad_os os = ad__os;
    const unsigned before = count_open();
    for (int n = 0; n < 3; n++) {
        ad__os.socketpair = n < 2 ? fail_socketpair : os.socketpair;
        ad__os.send = n < 2 ? os.send : fail_send;
        sockets_left = n;
        ask_for_array((uint64_t)n, "giver", "uid:9");
        ad__os = os;
        expect_answer((uint64_t)n, AD_E_SYSTEM, n < 2 ? "socketpair: " : "the job does not fit");
    }
    cr_expect_eq(count_open(), before);
}

/* ---- sessions ---- */

/* Let the loop run until the program's sockets are closed, as it has answered. */
static void run_until_closed(unsigned open) {
    while (count_open() > open) uv_run(&front.loop, UV_RUN_ONCE);
}

Test(pull, who_asked_is_no_longer_there) {
    const unsigned open = count_open();
    for (uint64_t i = 0; i < 3; i++) {
        write_program("printf '5\\tno such array\\n' >&3");
        ask_for_array(i, "giver", "uid:9");
        if (i < 2) ad__session_entry_remove(&front, SESSION, shared);
        if (i == 1) add_session(SESSION, "uid:8");
        if (i == 2) shared->state = AD_DOMAIN_STARTING;
        run_until_closed(open);
        cr_expect(is_told_nothing(&worker), "%d", (int)i);
        ad__session_entry_remove(&front, SESSION, shared);
        add_session(SESSION, OWNER);
    }
}

Test(pull, what_was_fetched_for_a_lost_session_is_dropped) {
    const unsigned open = count_open();
    write_program("exec sleep 100");
    add_session(6, "uid:8");
    ask_for_session(6, 1, "giver", "uid:9");
    ad__session_entry_remove(&front, 6, shared); /* its worker was killed */
    write_program("printf '5\\tno such array\\n' >&3");
    ask_for_array(1, "giver", "uid:9");
    expect_answer(1, -5, "no such array");
    cr_expect_eq(count_open(), open);
}

Test(pull, as_many_as_are_fetched_at_a_time) {
    const unsigned open = count_open();
    write_program("exec sleep 100");
    for (uint64_t i = 0; i < 64; i++) {
        char who[16];
        snprintf(who, sizeof who, "uid:%d", 100 + (int)i / 16);
        add_session(100 + i, who);
        ask_for_session(100 + i, 1, "giver", "uid:9");
    }
    cr_expect(is_told_nothing(&worker), "all are under way");
    ask_for_array(1, "giver", "uid:9");
    expect_answer(1, AD_E_LIMIT, "at most 64 arrays");
    ad__pull_end(&front, 163);
    add_session(200, "uid:100");
    ask_for_session(200, 1, "giver", "uid:9");
    cr_expect(strstr(take_note(&worker, AD_NOTE_PULLED, NULL).text, "16 for one principal"));
    ask_for_array(2, "giver", "uid:9");
    cr_expect(is_told_nothing(&worker), "there is room for another principal");
    ad__pull_end(&front, 0);
    cr_expect_eq(count_open(), open);
}

Test(pull, an_upgrade_begins) {
    front.upgrade.step = AD_UPGRADE_LEAVING;
    ask_for_array(1, "giver", "uid:9");
    front.upgrade.step = AD_UPGRADE_NONE;
    expect_answer(1, AD_E_CONNECTION, "shutting down");
    ask_for_array(2, "giver", "uid:\177");
    expect_answer(2, AD_E_VALUE, "letters that no principal has");
}

/* ---- the file ---- */

static const char *load_peers(const char *text, ad_peers **out) {
    static ad_fault fault;
    *fault.text = 0;
    write_text(peers + strlen("--peers="), text, 0600);
    ad__peers_load("", peers + strlen("--peers="), out, &fault);
    return fault.text;
}

Test(pull, lines_of_peers) {
    char names[8];
    ad_peers *p;
    ad_fault fault;
    cr_assert_str_eq(load_peers("a unix:/run/a\n\n# none\nb tcp:h:1 # the last\nc tls:h:2#sha256:00", &p), "");
    cr_expect_str_eq(ad__peers_url(p, "a"), "unix:/run/a");
    cr_expect_str_eq(ad__peers_url(p, "c"), "tls:h:2#sha256:00");
    cr_expect_null(ad__peers_url(p, "d"));
    ad__peers_names(p, names, sizeof names);
    cr_expect_str_eq(names, "a,b,c");
    ad__peers_names(p, names, 5);
    cr_expect_str_eq(names, "a,b", "as many as fit");
    ad__peers_free(p);
    ad__peers_free(NULL);
    cr_expect_eq(ad__peers_load("", folder, &p, &fault), AD_E_VALUE);
    cr_expect(strstr(fault.text, "is not a file"));
}
