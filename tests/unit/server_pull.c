/* Fetching arrays of peers, beside a worker that is the test and a program that is a script. */
#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/front/peers/peers.h"
#include "tests/unit/server_front.h"
#include "tests/unit/text_file.h"

#define OWNER "uid:7" /* the principal of the session that asks */
#define SESSION 5

static ad_front front;
static ad_domain *shared;
static ad_channel worker;
static char folder[] = "/tmp/arrayd-test-XXXXXX", path[64], peers[80], program[80];

static void set_up(void) {
    ad_note note = {.id = SESSION, .who = OWNER, .resumable = 1};
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "--worker=%s/arrayd-worker", folder);
    snprintf(peers, sizeof peers, "--peers=%s/peers", folder);
    snprintf(program, sizeof program, "%s/arrayd-pull", folder);
    write_text(peers + strlen("--peers="), "giver tcp:127.0.0.1:1\n", 0600);
    begin_front(&front, (const char *const[]){path, peers, NULL});
    shared = add_domain(&front, AD_DOMAIN_SHARED, &worker);
    cr_assert_eq(ad__session_entry_add(&front, &note, shared), 0);
}

static void tear_down(void) {
    ad__pull_end(&front, 0);
    end_front(&front);
    ad__channel_close(&worker);
    unlink(program);
    unlink(peers + strlen("--peers="));
    rmdir(folder);
}

TestSuite(pull, .init = set_up, .fini = tear_down);

/* Let the program be a script. */
static void write_program(const char *script) {
    char text[256];
    snprintf(text, sizeof text, "#!/bin/sh\nread -r job <&3\n%s\n", script);
    write_text(program, text, 0700);
}

/* Ask for an array, as the worker of the session does at a place of its messages. */
static void ask_for_array(uint64_t place, const char *peer, const char *who) {
    ad_note note = {.kind = AD_NOTE_PULL, .id = SESSION, .size = place};
    snprintf(note.text, sizeof note.text, "%s", peer);
    snprintf(note.who, sizeof note.who, "%s", who);
    ad__pull_handle(shared, &note);
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
