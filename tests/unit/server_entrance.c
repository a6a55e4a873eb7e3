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

static void write_tokens(void) {
    static const char *const rows[][3] = {{"taker", TAKER, "peer=yes"},
                                          {"other", OTHER, "memory=1M"},
                                          {"late", LATE, "peer=yes expires=2001-01-01"},
                                          {"soon", SOON, "peer=yes expires=2101-01-01"}};
    FILE *f = fdopen(mkstemp(tokens), "w");
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
