/* The entrance tells a client's principal by its connection, whatever address the kernel says. */
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/common/secret.h"
#include "tests/unit/server_front.h"

static const char *peer; /* the address of whom the kernel speaks; NULL: it says what it does; "": it says nothing */

int __real_getpeername(int fd, struct sockaddr *address, socklen_t *size);
int __wrap_getpeername(int fd, struct sockaddr *address, socklen_t *size);
int __wrap_getpeername(int fd, struct sockaddr *address, socklen_t *size) {
    struct sockaddr_in6 a = {.sin6_family = AF_INET6};
    if (!peer) return __real_getpeername(fd, address, size);
    if (inet_pton(AF_INET6, peer, &a.sin6_addr) != 1) return -1;
    memcpy(address, &a, sizeof a);
    return 0;
}

Test(entrance, clients_of_one_network_are_one) {
    static const char *const rows[][2] = {{"2001:db8:1:2:3:4:5:6", "tls:2001:db8:1:2::/64"},
                                          {"::1", "tls:::/64"},
                                          {"::ffff:192.0.2.7", "tls:192.0.2.7"},
                                          {"0:1::ffff:c000:207", "tls:0:1::/64"},
                                          {"::1:0:ffff:c000:207", "tls:0:0:0:1::/64"},
                                          {"", "tls:?"}};
    char from[64];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        peer = rows[i][0];
        ad__entrance_from(-1, AD_WAY_TLS, from, sizeof from);
        cr_expect_str_eq(from, rows[i][1]);
    }
    ad__entrance_from(-1, AD_WAY_TCP, from, sizeof from);
    cr_expect_str_eq(from, "tcp:?");
    peer = NULL;
}

Test(entrance, of_whom_the_kernel_says_nothing_is_no_administrator) {
    ad_front front;
    ad_entrant who;
    begin_front(&front, NULL);
    cr_expect_not(ad__entrance_admin(&front, -1, &who));
    cr_expect_str_eq(who.who, "");
    end_front(&front);
}

/* ---- servers that come for others ---- */

#define TAKER "ad1_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"
#define OTHER "ad1_another-token-of-the-same-length-0123456789"
#define LATE "ad1_a-token-that-has-expired-long-ago-0123456789"
#define SOON "ad1_a-token-that-will-expire-in-a-century-456789"

static char tokens[] = "/tmp/arrayd-test-XXXXXX";

/* Write the file of tokens; soon: what the last one is granted. */
static void fill_tokens(FILE *f, const char *soon) {
    const char *const rows[][3] = {{"taker", TAKER, "peer=yes"},
                                   {"other", OTHER, "memory=1M"},
                                   {"late", LATE, "peer=yes expires=2001-01-01"},
                                   {"soon", SOON, soon}};
    cr_assert_not_null(f);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char digits[2 * AD_SHA256_SIZE + 1];
        uint8_t hash[AD_SHA256_SIZE];
        cr_assert_eq(ad__token_hash(rows[i][1], strlen(rows[i][1]), hash, NULL), 0);
        ad__sha256_text(hash, digits);
        fprintf(f, "%s sha256:%s %s\n", rows[i][0], digits, rows[i][2]);
    }
    fclose(f);
}

static void write_tokens(void) { fill_tokens(fdopen(mkstemp(tokens), "w"), "peer=yes expires=2101-01-01"); }

/* Come by a token over TLS. Returns the fault's text; "": who comes is let in. */
static const char *come_by(const ad_front *f, const char *token, const char *certificate, ad_entrant *who) {
    static ad_fault fault;
    *who = (ad_entrant){0};
    fault.text[0] = 0;
    ad__entrance_check(f, AD_WAY_TLS, -1, (ad_string){token, strlen(token)}, certificate, who, &fault);
    return fault.text;
}

Test(entrance, servers_that_come_for_others) {
    static const char *const refused[][2] = {
        {TAKER "/", "for a principal of 1 to"},
        {TAKER "/0123456789012345678901234567890123456789012345678901234567890123", "for a principal of 1 to"},
        {"not a token/uid:7", "does not know the token"},
        {OTHER "/uid:7", "token:other may not come for other principals"},
        {LATE "/uid:7", "the token of token:late has expired"}};
    char option[64];
    ad_front front;
    ad_entrant who;
    write_tokens();
    snprintf(option, sizeof option, "--tokens=%s", tokens);
    begin_front(&front, (const char *const[]){option, NULL});
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const char *why = come_by(&front, refused[i][0], NULL, &who);
        cr_expect(strstr(why, refused[i][1]), "%s: %s", refused[i][0], why);
    }
    for (int i = 0; i < 3; i++) { /* a certificate says who has connected, and the token for whom */
        cr_expect_str_eq(come_by(&front, i == 1 ? SOON "/uid:7" : TAKER "/uid:7", i == 2 ? "host" : NULL, &who), "");
        cr_expect_str_eq(who.who, "uid:7");
        cr_expect_eq(who.grants.may, AD_GRANT_CONNECT | AD_GRANT_PEER);
    }
    cr_expect_str_eq(come_by(&front, TAKER, NULL, &who), "");
    cr_expect_str_eq(who.who, "token:taker");
    cr_expect_not(who.grants.may & AD_GRANT_PEER, "who comes for itself is no server");
    end_front(&front);
    unlink(tokens);
}

/* ---- tokens that expire ---- */

/* Begin a session of one who has come by a token. */
static void add_session(ad_front *f, uint64_t id, const char *token, ad_domain *d) {
    ad_note note = {.id = id, .resumable = 1};
    ad_entrant who;
    cr_assert_str_eq(come_by(f, token, NULL, &who), "");
    snprintf(note.who, sizeof note.who, "%s", who.who);
    cr_assert_eq(ad__session_entry_add(f, &note, d), 0);
    ad__session_entry_set_token(f, id, d, &who);
}

/* Read the file of tokens again, whose last one is granted this. */
static void grant_soon(ad_front *f, const char *soon) {
    ad_fault fault;
    fill_tokens(fopen(tokens, "w"), soon);
    cr_assert_eq(ad__entrance_load(f, &fault), 0);
    run_front(f);
}

Test(entrance, sessions_end_with_the_token_by_which_they_came) {
    char option[64];
    ad_front front;
    ad_channel worker;
    write_tokens();
    snprintf(option, sizeof option, "--tokens=%s", tokens);
    begin_front(&front, (const char *const[]){option, NULL});
    ad_domain *d = add_domain(&front, AD_DOMAIN_SHARED, &worker);
    add_session(&front, 1, SOON, d);
    add_session(&front, 2, SOON "/uid:7", d);
    add_session(&front, 3, TAKER "/uid:7", d);
    grant_soon(&front, "peer=yes expires=2102-01-01");
    cr_expect(is_told_nothing(&worker), "none expires today");
    grant_soon(&front, "peer=yes expires=2001-01-01");
    for (uint64_t id = 1; id < 3; id++) {
        const ad_note note = take_note(&worker, AD_NOTE_KILL, NULL);
        cr_expect_eq(note.id, id);
        cr_expect_str_eq(note.text, "the token has expired");
    }
    cr_expect(is_told_nothing(&worker), "the token of the last one does not expire");
    grant_soon(&front, "peer=yes");
    cr_expect(is_told_nothing(&worker), "the token is good again");
    cr_expect_eq(ad__entrance_dismiss(&front, "token:taker", "revoked"), 1, "of a server that has come for another");
    cr_expect_eq(take_note(&worker, AD_NOTE_KILL, NULL).id, 3);
    end_front(&front);
    ad__channel_close(&worker);
    unlink(tokens);
}

Test(entrance, a_server_finds_who_has_a_worker_of_its_own) {
    char option[64];
    ad_front front;
    ad_channel worker;
    ad_entrant who;
    write_tokens();
    snprintf(option, sizeof option, "--tokens=%s", tokens);
    begin_front(&front, (const char *const[]){option, "--domains=principal", NULL});
    cr_expect_str_eq(come_by(&front, TAKER "/uid:7", NULL, &who), "uid:7 has no arrays here");
    add_domain(&front, "uid:7", &worker);
    cr_expect_str_eq(come_by(&front, TAKER "/uid:7", NULL, &who), "");
    end_front(&front);
    ad__channel_close(&worker);
    unlink(tokens);
}
