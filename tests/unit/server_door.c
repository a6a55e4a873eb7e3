/* The front's handshakes, beside a worker that is the test: who says what when, who is told why, and who goes on. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/frame.h"
#include "protocol/message.h"
#include "server/common/os.h"
#include "tests/unit/server_front.h"

#define ANONYMOUS "tcp:anonymous" /* who comes over TCP here */

static ad_front front;
static ad_domain *shared;
static ad_channel worker;
static char answer[8192];

static void set_up(void) {
    static const char *const options[] = {"--tcp-open=yes", "--sessions-each=2", NULL};
    begin_front(&front, options);
    shared = add_domain(&front, AD_DOMAIN_SHARED, &worker);
}

static void tear_down(void) {
    on_front_stop = NULL;
    end_front(&front);
    ad__channel_close(&worker);
}

TestSuite(door, .init = set_up, .fini = tear_down);

/* ---- clients ---- */

/* The principal of who comes over a Unix socket here. */
static const char *name_user(void) {
    static char who[AD_PRINCIPAL_SIZE];
    snprintf(who, sizeof who, "uid:%u", (unsigned)getuid());
    return who;
}

static int open_client(ad_way way) {
    int fd[2];
    make_connection(fd);
    ad__handshake_begin(&front, fd[1], way);
    return fd[0];
}

static void say_message(int fd, const ad_bytes *control) {
    uint8_t frame[1024];
    ad__frame_encode(&(ad_frame){.control = (uint32_t)control->size}, frame);
    memcpy(frame + AD_FRAME_HEADER, control->data, control->size);
    send_to_front(&front, fd, frame, AD_FRAME_HEADER + control->size);
}

static int open_and_say_hello(ad_way way) {
    const int fd = open_client(way);
    ad_bytes b = AD_BYTES_INIT;
    ad__encode_hello(&b, AD_PROTOCOL_VERSION, AD_PROTOCOL_VERSION, AD_FEATURE_RESUME, "a test", NULL, 0);
    say_message(fd, &b);
    ad__bytes_free(&b);
    return fd;
}

static int open_and_return(uint64_t session) {
    const int fd = open_client(AD_WAY_TCP);
    const uint64_t numbers[4] = {AD_PROTOCOL_VERSION, front.instance, session, 0};
    ad_bytes b = AD_BYTES_INIT;
    ad__encode_resume(&b, numbers, (const uint8_t *)"0123456789abcdef", NULL, 0);
    say_message(fd, &b);
    ad__bytes_free(&b);
    return fd;
}

/* Check that a client is told this, and that its connection is over. NULL: it is told nothing. */
static void check_end(int fd, const char *expected) {
    run_front(&front);
    const ssize_t n = read_text(fd, answer, sizeof answer);
    if (expected) cr_expect(n > 0 && memmem(answer, (size_t)n, expected, strlen(expected)), "%s", expected);
    else cr_expect_leq(n, 0, "nothing is said");
    cr_expect_eq(read_text(fd, answer, sizeof answer), -1, "%s: the connection is over", expected ? expected : "");
    close(fd);
}

static void check_waits(int fd) { cr_expect_eq(read_text(fd, answer, sizeof answer), 0, "the client waits"); }

/* ---- strangers ---- */

Test(door, other_protocols_are_answered_in_their_language) {
    static const struct {
        const char *says, *expected;
    } rows[] = {{"GET / HTTP/1.1\r\n", "400 Bad Request"},
                {"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03tests", "TLS is spoken at a port without it"},
                {"SSH-2.0-OpenSSH_", "above the limit"},
                {"\0\0\0\0\4\0\0\0\0\0\0\0\0\0\0\0", "not the frame of a hello"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int fd = open_client(AD_WAY_TCP);
        send_to_front(&front, fd, rows[i].says, 16);
        check_end(fd, rows[i].expected);
    }
}

Test(door, one_who_sends_more_than_is_read) {
    const int fd = open_client(AD_WAY_UNIX);
    cr_assert_gt(fill_socket(fd), 32u * 4096, "there is more than the front reads");
    check_end(fd, "an empty frame");
}

Test(door, hello_comes_byte_by_byte) {
    uint8_t frame[200];
    ad_bytes b = AD_BYTES_INIT;
    const int fd = open_client(AD_WAY_TCP);
    ad__encode_hello(&b, 1, AD_PROTOCOL_VERSION, 0, "a test", NULL, 0);
    ad__frame_encode(&(ad_frame){.control = (uint32_t)b.size}, frame);
    memcpy(frame + AD_FRAME_HEADER, b.data, b.size);
    for (size_t i = 0; i < AD_FRAME_HEADER + b.size; i++) send_to_front(&front, fd, frame + i, 1);
    const ad_note note = take_note(&worker, AD_NOTE_SESSION, NULL);
    cr_expect_str_eq(note.who, ANONYMOUS);
    ad__handshake_begun(&front, note.id);
    cr_expect_gt(read_text(fd, answer, sizeof answer), 16);
    close(fd);
    ad__bytes_free(&b);
}

/* ---- those who wait ---- */

Test(door, who_is_told_that_the_server_ends) {
    const int given = open_and_say_hello(AD_WAY_TCP);
    take_note(&worker, AD_NOTE_SESSION, NULL);
    shared->state = AD_DOMAIN_STARTING;
    const int waiting = open_and_say_hello(AD_WAY_TCP), silent = open_client(AD_WAY_TCP),
              near = open_client(AD_WAY_UNIX);
    ad__handshake_close_all(&front, "it is late");
    check_end(given, "it is late");
    check_end(waiting, "it is late");
    check_end(silent, NULL);
    check_end(near, "it is late");
}

Test(door, who_is_refused_when_a_principal_is) {
    const int given = open_and_say_hello(AD_WAY_TCP);
    take_note(&worker, AD_NOTE_SESSION, NULL);
    ad_channel mine;
    add_domain(&front, name_user(), &mine)->state = shared->state = AD_DOMAIN_STARTING;
    const int near = open_and_say_hello(AD_WAY_UNIX), waiting = open_and_say_hello(AD_WAY_TCP),
              silent = open_client(AD_WAY_TCP);
    ad__handshake_refuse_all(&front, "token:another", "not wanted");
    check_waits(waiting);
    ad__handshake_refuse_all(&front, ANONYMOUS, "not wanted");
    check_end(waiting, "not wanted");
    check_waits(given);
    check_waits(silent);
    check_waits(near);
    close(given);
    close(silent);
    close(near);
    ad__channel_close(&mine);
}

Test(door, who_goes_to_the_next_front) {
    char text[8];
    int fd[7], program[2];
    const ad_entrant entrant = {.who = "uid:7", .grants = {.may = AD_GRANT_CONNECT}};
    fd[0] = open_client(AD_WAY_UNIX);
    fd[1] = open_client(AD_WAY_TCP);
    fd[2] = open_client(AD_WAY_TCP);
    send_to_front(&front, fd[2], "x", 1);
    fd[3] = open_and_say_hello(AD_WAY_TCP);
    take_note(&worker, AD_NOTE_SESSION, NULL);
    shared->state = AD_DOMAIN_STARTING;
    fd[4] = open_and_say_hello(AD_WAY_TCP);
    make_tls(&front);
    fd[5] = open_client(AD_WAY_TLS);
    make_connection(program);
    ad__handshake_begin_as(&front, program[1], &entrant); /* one of ours, which the next front would not know */
    fd[6] = program[0];
    cr_expect_eq(ad__handshake_pause(&front, true), 5);
    send_to_front(&front, fd[0], "x", 1);
    cr_expect_eq(ad__handshake_pause(&front, false), 5, "the byte is read later");
    cr_expect_eq(ad__handshake_pause(&front, true), 5);
    fail_calloc(1);
    cr_expect_eq(ad__handshake_offer(&front), AD_E_MEMORY);
    restore_calls();
    cr_expect_eq(ad__handshake_offer(&front), 0);
    cr_expect_geq(ad__inherit_any(&front, "hello-unix", text, sizeof text), 0);
    cr_expect_geq(ad__inherit_any(&front, "hello-tcp", text, sizeof text), 0);
    cr_expect_lt(ad__inherit_any(&front, "hello-tcp", text, sizeof text), 0, "the others have said something");
    ad__handshake_end_busy(&front);
    cr_expect_eq(ad__handshake_count(&front), 2);
    for (int i = 0; i < 7; i++) close(fd[i]);
}

Test(door, sessions_that_cannot_be_given) {
    int fd = open_client(AD_WAY_TCP);
    ad_bytes b = AD_BYTES_INIT;
    ad__encode_hello(&b, 1, AD_PROTOCOL_VERSION, 0, "a test", NULL, 0);
    snprintf(shared->name, sizeof shared->name, "another");
    fail_calloc(1);
    say_message(fd, &b);
    restore_calls();
    check_end(fd, "out of host memory");
    ad__bytes_free(&b);
    snprintf(shared->name, sizeof shared->name, AD_DOMAIN_SHARED);
    fd = open_and_say_hello(AD_WAY_TCP);
    take_note(&worker, AD_NOTE_SESSION, NULL);
    front.stopping = true;
    ad__handshake_lost(&front, shared, 0);
    check_end(fd, "the worker could not take the session");
    front.stopping = false;
}

Test(door, a_session_that_waits_longest_makes_room) {
    bool own;
    ad_note first = {0};
    for (int i = 0; i < 2; i++) {
        const int fd = open_and_say_hello(AD_WAY_TCP);
        const ad_note note = take_note(&worker, AD_NOTE_SESSION, NULL);
        if (!i) first = note;
        ad__handshake_begun(&front, note.id);
        cr_expect_gt(read_text(fd, answer, sizeof answer), 16);
        close(fd);
    }
    check_end(open_and_say_hello(AD_WAY_TCP), "sessions: tcp:anonymous has 2");
    ad__session_entry_set_away(&front, first.id, shared, true);
    const int fd = open_and_say_hello(AD_WAY_TCP);
    cr_expect_eq(take_note(&worker, AD_NOTE_FORSAKE, NULL).id, first.id);
    take_note(&worker, AD_NOTE_SESSION, NULL);
    cr_expect_null(ad__session_entry_find(&front, first.id, ANONYMOUS, &own), "a forsaken session is over");
    close(fd);
}

/* ---- those who come back ---- */

Test(door, one_who_comes_back_waits_while_its_sessions_move) {
    ad_note note = {.id = 5, .who = ANONYMOUS, .resumable = 1};
    cr_assert_eq(ad__session_entry_add(&front, &note, shared), 0);
    ad_domain *own = ad__domain_new(&front, ANONYMOUS);
    own->migration = AD_MIGRATION_GOING;
    const int fd = open_and_return(5);
    check_waits(fd);
    cr_expect(is_told_nothing(&worker));
    ad__handshake_begun(&front, 5); /* that of another connection */
    check_waits(fd);
    own->migration = AD_MIGRATION_NONE;
    ad__handshake_wake(&front);
    note = take_note(&worker, AD_NOTE_RESUME, NULL);
    cr_expect(note.id == 5 && !strcmp(note.who, ANONYMOUS));
    close(fd);
}

/* ---- an embedded server ---- */

static void end_others(ad_front *f) { ad__handshake_close_all(f, "the first was refused"); }

Test(door, the_end_of_one_ends_an_embedded_server) {
    ad_channel mine;
    ad_domain *own = add_domain(&front, name_user(), &mine);
    own->state = AD_DOMAIN_STARTING;
    front.embedded = true;
    const int fd[2] = {open_and_say_hello(AD_WAY_UNIX), open_and_say_hello(AD_WAY_UNIX)};
    own->state = AD_DOMAIN_FAILED;
    own->polled = false; /* there is no worker, and none may be started for long */
    own->not_before = INT64_MAX;
    on_front_stop = end_others;
    ad__handshake_wake(&front);
    check_end(fd[1], "no worker");
    check_end(fd[0], "the first was refused");
    ad__channel_close(&mine);
}

/* ---- the entries of sessions ---- */

static void add_entry(uint64_t id, const char *who, uint64_t key, ad_domain *d) {
    ad_note note = {.id = id, .size = key, .resumable = 1};
    snprintf(note.who, sizeof note.who, "%s", who);
    cr_assert_eq(ad__session_entry_add(&front, &note, d), 0);
}

Test(door, entries_of_several_principals) {
    const uint64_t key = AD_FORK_KEY | 9, a = ad__session_forked(1, 1), b = ad__session_forked(2, 1);
    bool own;
    add_entry(a, "uid:1", key, shared);
    add_entry(b, "uid:2", key, shared);
    cr_expect_eq(ad__session_entry_by_key(&front, key, "uid:1"), a);
    cr_expect_eq(ad__session_entry_by_key(&front, key, "uid:2"), b);
    cr_expect_eq(ad__session_entry_by_key(&front, key, "uid:3"), 0);
    cr_expect(ad__session_entry_find(&front, a, "uid:2", &own) && !own);
    ad__session_entry_set_away(&front, 77, shared, true); /* it is over by now */
    cr_expect_not(ad__session_entry_make_room(&front, NULL, AD_CLIENTS_ALL), "none waits");
}

Test(door, who_has_waited_longest) {
    const uint64_t order[] = {13, 10, 12, 11}; /* the order in which they begin to wait */
    for (uint64_t id = 10; id < 14; id++) add_entry(id, id == 13 ? "uid:2" : "uid:1", 0, shared);
    for (int i = 0; i < 4; i++) ad__session_entry_set_away(&front, order[i], shared, true);
    for (int i = 1; i < 3; i++) {
        cr_expect(ad__session_entry_make_room(&front, "uid:1", AD_CLIENTS_ALL));
        cr_expect_eq(take_note(&worker, AD_NOTE_FORSAKE, NULL).id, order[i]);
    }
    cr_expect_eq(ad__session_entry_count(&front, "uid:1", AD_CLIENTS_ALL), 1);
    cr_expect_eq(ad__session_entry_end(&front, "uid:1", "enough"), 1, "two are over");
    cr_expect_eq(take_note(&worker, AD_NOTE_KILL, NULL).id, 11);
    shared->state = AD_DOMAIN_STARTING;
    cr_expect_eq(ad__session_entry_end(&front, "uid:2", "enough"), 0, "the worker is not ready");
    shared->state = AD_DOMAIN_READY;
    ad__channel_close(&worker);
    cr_expect_eq(ad__session_entry_end(&front, "uid:2", "enough"), 0, "the worker has gone");
    cr_expect_not(ad__session_entry_make_room(&front, "uid:2", AD_CLIENTS_ALL));
}

/* Note that a session has come by a token that expires then. */
static void let_expire(uint64_t id, const char *token, int64_t expires) {
    ad_entrant who = {.expires = expires};
    snprintf(who.token, sizeof who.token, "%s", token);
    ad__session_entry_set_token(&front, id, shared, &who);
}

/* End what has expired by then: these sessions, in this order; 0 ends the list. */
static void check_expired(int64_t now, const uint64_t *order) {
    ad__session_entry_end_expired(&front, now, "enough");
    for (; *order; order++) cr_expect_eq(take_note(&worker, AD_NOTE_KILL, NULL).id, *order);
    cr_expect(is_told_nothing(&worker));
}

Test(door, sessions_expire_in_the_order_of_their_tokens) {
    ad_hand out = {.out = AD_BYTES_INIT};
    static const int64_t expires[] = {30, 10, 0, 20, 10, 20, 30};
    for (uint64_t id = 1; id < 8; id++) {
        add_entry(id, "uid:1", 0, shared);
        let_expire(id, id == 4 ? "token:b" : "token:a", expires[id - 1]);
    }
    check_expired(9, (const uint64_t[]){0});
    check_expired(10, (const uint64_t[]){2, 5, 0});
    ad__session_entry_hand_over(&front, &out);
    ad__session_entry_remove_all(&front, NULL);
    check_expired(99, (const uint64_t[]){0});
    ad_hand in = {.reading = true, .at = out.out.data, .end = out.out.data + out.out.size};
    ad__session_entry_hand_over(&front, &in);
    ad__hand_free(&out);
    check_expired(20, (const uint64_t[]){2, 5, 6, 4, 0});
    ad__session_entry_remove(&front, 2, shared);
    ad__session_entry_remove(&front, 6, shared);
    ad__session_entry_remove(&front, 7, shared);
    let_expire(5, "token:a", 0);
    shared->state = AD_DOMAIN_STARTING;
    check_expired(30, (const uint64_t[]){0});
    shared->state = AD_DOMAIN_READY;
    check_expired(30, (const uint64_t[]){4, 1, 0});
}

/* Read entries that were handed over, in a front that may not know their domain. */
static bool read_entries(const ad_hand *out, const char *domain, int failing) {
    ad_hand in = {.reading = true, .at = out->out.data, .end = out->out.data + out->out.size};
    ad__session_entry_remove_all(&front, NULL);
    snprintf(shared->name, sizeof shared->name, "%s", domain);
    fail_calloc(failing);
    ad__session_entry_hand_over(&front, &in);
    restore_calls();
    return !in.failed;
}

Test(door, entries_go_to_the_next_front) {
    ad_hand out = {.out = AD_BYTES_INIT};
    add_entry(1, "uid:1", 0, shared);
    add_entry(2, "uid:2", 0, shared);
    ad__session_entry_hand_over(&front, &out);
    cr_expect_not(read_entries(&out, "another", 0));
    cr_expect_eq(ad__session_entry_count(&front, NULL, AD_CLIENTS_ALL), 0);
    cr_expect_not(read_entries(&out, AD_DOMAIN_SHARED, 1));
    cr_expect(read_entries(&out, AD_DOMAIN_SHARED, 0));
    cr_expect_eq(ad__session_entry_count(&front, "uid:2", AD_CLIENTS_ALL), 1);
    ad__hand_free(&out);
}

/* ---- servers that come for others ---- */

/* Begin a session of a server that comes for a principal. */
static int open_for(const char *who) {
    int fd[2];
    ad_entrant entrant = {
        .token = "token:server", .expires = 1000, .grants = {.may = AD_GRANT_CONNECT | AD_GRANT_PEER, .sessions = 2}};
    ad_bytes b = AD_BYTES_INIT;
    snprintf(entrant.who, sizeof entrant.who, "%s", who);
    make_connection(fd);
    ad__handshake_begin_as(&front, fd[1], &entrant);
    ad__encode_hello(&b, AD_PROTOCOL_VERSION, AD_PROTOCOL_VERSION, AD_FEATURE_RESUME, "a server", NULL, 0);
    say_message(fd[0], &b);
    ad__bytes_free(&b);
    return fd[0];
}

/* A session that waits for its client, of a server that comes for a principal. Returns its number. */
static uint64_t leave_one_for(const char *who) {
    const int fd = open_for(who);
    const uint64_t id = take_note(&worker, AD_NOTE_SESSION, NULL).id;
    ad__handshake_begun(&front, id);
    ad__session_entry_set_away(&front, id, shared, true);
    close(fd);
    run_front(&front);
    return id;
}

Test(door, servers_that_come_for_a_principal_take_no_room_of_its_sessions) {
    int fd[3];
    add_entry(1, ANONYMOUS, 0, shared);
    ad__session_entry_set_away(&front, 1, shared, true);
    const uint64_t first = leave_one_for(ANONYMOUS);
    leave_one_for(ANONYMOUS);
    fd[0] = open_for(ANONYMOUS);
    cr_expect_eq(take_note(&worker, AD_NOTE_FORSAKE, NULL).id, first, "they make room among themselves");
    take_note(&worker, AD_NOTE_SESSION, NULL);
    fd[1] = open_and_say_hello(AD_WAY_TCP);
    take_note(&worker, AD_NOTE_SESSION, NULL); /* its second one, and nothing makes room */
    cr_expect_eq(ad__session_entry_count(&front, ANONYMOUS, AD_CLIENTS_OWN), 2);
    cr_expect_eq(ad__session_entry_count(&front, ANONYMOUS, AD_CLIENTS_PEERS), 2);
    fd[2] = open_and_say_hello(AD_WAY_TCP);
    cr_expect_eq(take_note(&worker, AD_NOTE_FORSAKE, NULL).id, 1);
    for (int i = 0; i < 3; i++) close(fd[i]);
}

Test(door, servers_that_come_for_others_have_a_quarter_of_all_sessions) {
    front.config.sessions = 8;
    add_entry(1, "uid:1", 0, shared);
    ad__session_entry_set_away(&front, 1, shared, true);
    const uint64_t first = leave_one_for("uid:2");
    const int second = open_for("uid:3"), third = open_for("uid:4");
    take_note(&worker, AD_NOTE_SESSION, NULL);
    cr_expect_eq(take_note(&worker, AD_NOTE_FORSAKE, NULL).id, first);
    take_note(&worker, AD_NOTE_SESSION, NULL);
    check_end(open_for("uid:5"), "2 sessions of servers that come for others");
    for (uint64_t id = 10; id < 15; id++) add_entry(id, "uid:6", 0, shared);
    ad__session_entry_remove(&front, 14, shared);
    close(open_and_say_hello(AD_WAY_TCP));
    take_note(&worker, AD_NOTE_SESSION, NULL);
    cr_expect(is_told_nothing(&worker), "there was room");
    close(second);
    close(third);
}

Test(door, a_server_whose_token_is_over) {
    const int given = open_for("uid:2");
    const uint64_t id = take_note(&worker, AD_NOTE_SESSION, NULL).id;
    shared->state = AD_DOMAIN_STARTING;
    const int waits = open_for("uid:2"), another = open_and_say_hello(AD_WAY_TCP);
    ad__handshake_refuse_expired(&front, 999, "it is over");
    check_waits(waits);
    ad__handshake_refuse_expired(&front, 1000, "it is over");
    check_end(waits, "it is over");
    const int revoked = open_for("uid:2");
    ad__handshake_refuse_all(&front, "token:server", "revoked");
    check_end(revoked, "revoked");
    check_waits(given);
    check_waits(another);
    shared->state = AD_DOMAIN_READY;
    check_expired(1000, (const uint64_t[]){id, 0});
    close(given);
    close(another);
}

Test(door, those_who_wait_for_a_worker_count_as_well) {
    int fd[5];
    add_entry(5, ANONYMOUS, 0, shared);
    shared->state = AD_DOMAIN_STARTING;
    fd[0] = open_and_return(5); /* who comes back has a session already */
    fd[1] = open_for("uid:1");
    fd[2] = open_and_say_hello(AD_WAY_TCP);
    check_end(open_and_say_hello(AD_WAY_TCP), "sessions: tcp:anonymous has 2");
    for (int i = 3; i < 5; i++) fd[i] = open_for(ANONYMOUS);
    check_end(open_for(ANONYMOUS), "sessions: tcp:anonymous has 2");
    for (int i = 0; i < 5; i++) check_waits(fd[i]);
    for (int i = 0; i < 5; i++) close(fd[i]);
}
