/* Tokens, the files of those who may come in, and secrets. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/common/secret.h"
#include "server/front/auth/principals.h"
#include "tests/unit/text_file.h"

static char folder[] = "/tmp/arrayd-test-XXXXXX", tokens[64], principals[64];
static ad_principals *p;
static ad_fault fault;
static int64_t expires;

static void set_up(void) {
    strcpy(folder, "/tmp/arrayd-test-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(tokens, sizeof tokens, "%s/tokens", folder);
    snprintf(principals, sizeof principals, "%s/principals", folder);
}

static void tear_down(void) {
    ad__principals_free(p);
    p = NULL;
    unlink(tokens);
    unlink(principals);
    rmdir(folder);
}

TestSuite(auth, .init = set_up, .fini = tear_down);

/* NULL: no such file is named. */
static int load_files(const char *token_text, const char *principal_text) {
    if (token_text) write_text(tokens, token_text, 0600);
    if (principal_text) write_text(principals, principal_text, 0600);
    ad__principals_free(p);
    p = NULL;
    memset(&fault, 0, sizeof fault);
    return ad__principals_load(token_text ? tokens : "", principal_text ? principals : "", &p, &fault);
}

static const char *line_of(const char *name, const char *token, const char *grants) {
    static char line[4][400];
    static int turn;
    char digits[2 * AD_SHA256_SIZE + 1], *out = line[turn++ % 4];
    uint8_t hash[AD_SHA256_SIZE];
    cr_assert_eq(ad__token_hash(token, strlen(token), hash, &fault), 0);
    ad__sha256_text(hash, digits);
    snprintf(out, sizeof line[0], "%s sha256:%s %s\n", name, digits, grants);
    return out;
}

#define ALICE "ad1_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"
#define BOB "ad1_another-token-of-the-same-length-0123456789"

Test(auth, differs_sees_every_bit) {
    uint8_t a[32], b[32];
    memset(a, 0x5a, sizeof a);
    memcpy(b, a, sizeof a);
    cr_assert_not(ad__secret_differs(a, b, sizeof a));
    cr_assert_not(ad__secret_differs(a, b, 0));
    for (int bit = 0; bit < 256; bit++) {
        b[bit / 8] ^= (uint8_t)(1 << bit % 8);
        cr_expect(ad__secret_differs(a, b, sizeof a), "bit %d", bit);
        cr_expect_not(ad__secret_differs(a, b, (size_t)bit / 8), "bit %d lies behind", bit);
        b[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

/* FIPS 180-4's examples, in parts of any size. */
static void hashes_to(const char *expected, const char *data, size_t size, size_t piece) {
    ad_digest_part parts[1000];
    uint8_t hash[AD_SHA256_SIZE];
    char got[2 * AD_SHA256_SIZE + 1];
    size_t n = 0;
    for (size_t i = 0; i < size; i += piece)
        parts[n++] = (ad_digest_part){data + i, size - i < piece ? size - i : piece};
    cr_assert_eq(ad__sha256(parts, n, hash, &fault), 0, "%s", fault.text);
    ad__sha256_text(hash, got);
    cr_expect_str_eq(got, expected);
}

Test(auth, hashes_are_sha256) {
    static char a[1000000];
    memset(a, 'a', sizeof a);
    hashes_to("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "", 0, 1);
    hashes_to("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "abc", 3, 1);
    hashes_to("248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
              "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, 56);
    for (size_t piece = 1001; piece < 500000; piece *= 7)
        hashes_to("cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0", a, sizeof a, piece);
}

Test(auth, tokens_are_made_of_random_bits) {
    char a[AD_TOKEN_TEXT], b[AD_TOKEN_TEXT];
    unsigned seen = 0;
    for (int i = 0; i < 64; i++) {
        cr_assert_eq(ad__token_make(a, &fault), 0);
        cr_assert_eq(ad__token_make(b, &fault), 0);
        cr_assert_eq(strlen(a), AD_TOKEN_TEXT - 1);
        cr_assert(ad__token_formed(a, strlen(a)));
        cr_assert_neq(strcmp(a, b), 0);
        seen |= 1u << (a[46] & 31); /* the last letter varies too */
    }
    cr_assert_gt(__builtin_popcount(seen), 4);
}

Test(auth, forms) {
    char most[AD_TOKEN_MOST + 2];
    memset(most, 'x', sizeof most);
    cr_assert(ad__token_formed(most, AD_TOKEN_LEAST) && ad__token_formed(most, AD_TOKEN_MOST));
    cr_assert_not(ad__token_formed(most, AD_TOKEN_LEAST - 1));
    cr_assert_not(ad__token_formed(most, AD_TOKEN_MOST + 1));
    static const char bad[] = {' ', '\n', 0, 0x7f, (char)0x80, '\t'};
    for (size_t i = 0; i < sizeof bad; i++) {
        most[5] = bad[i];
        cr_expect_not(ad__token_formed(most, 20), "%d", bad[i]);
    }
}

Test(auth, whose_token) {
    char text[2000], who[AD_PRINCIPAL_SIZE];
    ad_grants g;
    snprintf(text, sizeof text, "# a comment\n\n%s  %s%s", line_of("alice", ALICE, "memory=2G sessions=3 # hers"),
             line_of("bob@example.org", BOB, "kernels=yes admin=yes devices=0,2"), line_of("carol", "x", ""));
    cr_assert_eq(load_files(text, NULL), 0, "%s", fault.text);
    cr_assert_eq(ad__principals_tokens(p), 3);
    cr_assert(ad__principals_token(p, ALICE, strlen(ALICE), who, &g, &expires));
    cr_assert_str_eq(who, "token:alice");
    cr_assert(g.may == (AD_GRANT_CONNECT | AD_GRANT_EXPORTS) && g.sessions == 3 && g.memory == 2ull << 30 &&
              g.devices == AD_GRANT_ALL_DEVICES);
    cr_assert(ad__principals_token(p, BOB, strlen(BOB), who, &g, &expires));
    cr_assert_str_eq(who, "token:bob@example.org");
    cr_assert(g.may == (AD_GRANT_CONNECT | AD_GRANT_EXPORTS | AD_GRANT_KERNELS | AD_GRANT_ADMIN) && g.devices == 5 &&
              g.memory == 0);
    cr_assert_eq(g.named, AD_GRANT_KERNELS | AD_GRANT_ADMIN);
    strcpy(who, "nobody");
    cr_assert_not(ad__principals_token(p, ALICE, strlen(ALICE) - 1, who, &g, &expires));
    cr_assert_not(ad__principals_token(p, "", 0, who, &g, &expires));
    cr_assert_str_eq(who, "nobody");
}

Test(auth, when_tokens_end) {
    char who[AD_PRINCIPAL_SIZE];
    ad_grants g;
    const struct {
        const char *text;
        int64_t end;
    } rows[] = {{"expires=2001-09-09T01:46:40Z", 1000000000}, {"expires=1970-01-02", 86400}, {"memory=1M", 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_assert_eq(load_files(line_of("alice", ALICE, rows[i].text), NULL), 0, "%s", fault.text);
        cr_assert(ad__principals_token(p, ALICE, strlen(ALICE), who, &g, &expires));
        cr_expect_eq(expires, rows[i].end, "%s", rows[i].text);
        cr_expect_eq(ad__principals_expire(p), rows[i].end > 0);
    }
    static const char *const bad[] = {"expires=",
                                      "expires=tomorrow",
                                      "expires=2026-13-01",
                                      "expires=2026-12-31T",
                                      "expires=2026-12-31T25:00:00Z",
                                      "expires=2026-12-31x",
                                      "expires=1960-01-01"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_expect_eq(load_files(line_of("alice", ALICE, bad[i]), NULL), AD_E_VALUE, "%s", bad[i]);
    cr_expect_eq(load_files(NULL, "uid:7 expires=2026-12-31\n"), AD_E_VALUE, "only tokens end");
    cr_assert_eq(load_files(line_of("alice", ALICE, "expires=2001-09-09T01:46:40Z"), NULL), 0);
    cr_assert(ad__principals_expiry(p, "token:alice", &expires));
    cr_expect_eq(expires, 1000000000);
    cr_expect_not(ad__principals_expiry(p, "token:bob", &expires));
}

Test(auth, no_tokens_let_nobody_in) {
    char who[AD_PRINCIPAL_SIZE];
    ad_grants g;
    cr_assert_eq(load_files("", ""), 0);
    cr_assert_not(ad__principals_token(p, ALICE, strlen(ALICE), who, &g, &expires));
    cr_assert_eq(load_files(NULL, NULL), 0);
    cr_assert_not(ad__principals_token(p, ALICE, strlen(ALICE), who, &g, &expires));
}

Test(auth, users) {
    char who[AD_PRINCIPAL_SIZE];
    const gid_t groups[] = {7, 100};
    ad_grants g;
    cr_assert_eq(load_files(NULL, "gid:100 memory=1M\ngid:7 memory=2M\nuid:5 memory=3M connect=no\nuid:* memory=4M\n"),
                 0, "%s", fault.text);
    ad__principals_user(p, 5, 2, groups, who, &g);
    cr_assert_str_eq(who, "uid:5");
    cr_assert(g.memory == 3 << 20 && !(g.may & AD_GRANT_CONNECT));
    ad__principals_user(p, 6, 2, groups, who, &g);
    cr_assert_eq(g.memory, 1 << 20, "the first group in the file counts");
    ad__principals_user(p, 6, 1, groups, who, &g);
    cr_assert_eq(g.memory, 2 << 20);
    ad__principals_user(p, 6, 0, NULL, who, &g);
    cr_assert(g.memory == 4 << 20 && g.may & AD_GRANT_KERNELS);
    cr_assert_eq(load_files(NULL, NULL), 0);
    ad__principals_user(p, geteuid() + 1, 0, NULL, who, &g);
    cr_assert_eq(g.may, AD_GRANT_CONNECT | AD_GRANT_KERNELS | AD_GRANT_EXPORTS | AD_GRANT_NAMES);
    ad__principals_user(p, geteuid(), 0, NULL, who, &g);
    cr_assert(g.may & AD_GRANT_ADMIN);
}

Test(auth, certificates_and_defaults_of_tokens) {
    char who[AD_PRINCIPAL_SIZE], name[AD_PRINCIPAL_SIZE + 1];
    ad_grants g;
    cr_assert_eq(load_files(line_of("alice", ALICE, "exports=no"), "cert:a.b memory=1M\ncert:* memory=2M\n"
                                                                   "token:* exports=yes memory=3M\n"),
                 0, "%s", fault.text);
    cr_assert(ad__principals_certificate(p, "a.b", who, &g) && g.memory == 1 << 20);
    cr_assert_str_eq(who, "cert:a.b");
    cr_assert(ad__principals_certificate(p, "a.bc", who, &g) && g.memory == 2 << 20);
    cr_assert(ad__principals_certificate(p, "*", who, &g) && g.memory == 2 << 20);
    cr_assert(ad__principals_token(p, ALICE, strlen(ALICE), who, &g, &expires));
    cr_assert(g.memory == 3 << 20 && g.may == AD_GRANT_CONNECT);
    memset(name, 'n', sizeof name);
    name[AD_PRINCIPAL_SIZE - 6] = 0;
    cr_assert(ad__principals_certificate(p, name, who, &g));
    cr_assert_str_eq(who + 5, name);
    name[AD_PRINCIPAL_SIZE - 6] = 'n';
    name[AD_PRINCIPAL_SIZE] = 0;
    cr_assert_not(ad__principals_certificate(p, name, who, &g), "a name that is cut could be another's");
}

Test(auth, how_much_somebody_may_have) {
    char who[AD_PRINCIPAL_SIZE];
    ad_grants g;
    cr_assert_eq(load_files(line_of("alice", ALICE, "reserve=2M memory-each=1M names=3 buffers=50 priority=low"),
                            "uid:7 devices=all reserve=1G memory=1G priority=high names=0 operations=16 bytes=2M "
                            "kernel-time=1.5 "
                            "sm-share=16\nuid:8 names=yes priority=normal sm-share=0\nuid:9 names=1\n"),
                 0, "%s", fault.text);
    cr_assert(ad__principals_token(p, ALICE, strlen(ALICE), who, &g, &expires));
    cr_assert(g.reserve == 2 << 20 && g.each == 1 << 20 && g.names == 3 && g.may & AD_GRANT_NAMES && g.buffers == 50 &&
              g.priority == AD_PRIORITY_LOW);
    ad__principals_user(p, 7, 0, NULL, who, &g);
    cr_assert(g.reserve == 1 << 30 && !(g.may & AD_GRANT_NAMES) && g.priority == AD_PRIORITY_HIGH &&
              g.operations == 16 && g.bytes == 2 << 20 && g.kernel_time == 1500000000 && g.sm_share == 16);
    ad__principals_user(p, 8, 0, NULL, who, &g);
    cr_assert(g.names == 0 && g.may & AD_GRANT_NAMES && g.priority == AD_PRIORITY_NORMAL);
    cr_assert_eq(g.sm_share, AD_GRANT_NO_SHARE, "a share of 0 is none, and not what the option says");
    ad__principals_user(p, 9, 0, NULL, who, &g);
    cr_assert(g.names == 1 && g.may & AD_GRANT_NAMES, "1 is one name, and not yes");
    size_t at = 0;
    cr_assert_str_eq(ad__principals_next(p, &at, &g), "token:alice");
    cr_assert_str_eq(ad__principals_next(p, &at, &g), "uid:7");
    cr_assert_str_eq(ad__principals_next(p, &at, &g), "uid:8");
    cr_assert_str_eq(ad__principals_next(p, &at, &g), "uid:9");
    cr_assert_null(ad__principals_next(p, &at, &g));
}

Test(auth, broken_lines) {
    static const struct {
        const char *line, *expected;
    } bad_tokens[] =
        {
            {"alice\n", "sha256:"},
            {"alice " ALICE "\n", "sha256:"},
            {ALICE "\n", "sha256:"},
            {"alice sha256:0123\n", "sha256:"},
            {"al/ice sha256:0123\n", "a name"},
        },
      bad_principals[] = {
          {"uid:x memory=1\n", "expected uid:N"},
          {"uid: memory=1\n", "expected uid:N"},
          {"gid:* memory=1\n", "expected uid:N"},
          {"alice memory=1\n", "expected uid:N"},
          {"token:alice memory=1\n", "expected"},
          {"uid:1 memory\n", "expected a grant"},
          {"uid:1 memory=much\n", "a size"},
          {"uid:1 sessions=-1\n", "a whole number"},
          {"uid:1 kernels=maybe\n", "yes or no"},
          {"uid:1 kernel-time=long\n", "seconds"},
          {"uid:1 kernel-time=\n", "seconds"},
          {"uid:1 kernel-time=1e99\n", "seconds"},
          {"uid:1 sm-share=all\n", "how many multiprocessors"},
          {"uid:1 operations=x\n", "a whole number"},
          {"uid:1 operations=15\n", "fewer than 16"},
          {"uid:1 bytes=63K\n", "less than 64K"},
          {"uid:1 devices=64\n", "numbers of devices"},
          {"uid:1 devices=x\n", "numbers of devices"},
          {"uid:1 devices=1x\n", "numbers of devices"},
          {"cert:a-name-that-is-longer-than-any-principal-may-have-in-all-its-letters-and-digits-and-dots\n", "uid:N"},
          {"uid:1 devices=\n", "numbers of"},
          {"uid:1 devices=1,\n", "numbers of"},
          {"uid:1 fly=yes\n", "no such grant"},
          {"uid:1\nuid:1\n", ":2: "},
          {"cert: memory=1\n", "expected uid:N"},
          {"uid:1 " ALICE "\n", "expected a grant"},
          {"uid:99999999999 memory=1\n", "uid:N"},
          {"uid:1 reserve=much\n", "a size"},
          {"uid:1 memory-each=-1\n", "a size"},
          {"uid:1 buffers=x\n", "a whole number"},
          {"uid:1 names=some\n", "or how many"},
          {"uid:1 priority=5\n", "low, normal or high"},
          {"uid:* reserve=1M\n", "uid:N or cert:NAME only"},
          {"gid:7 reserve=1M\n", "uid:N or cert:NAME only"},
          {"cert:* reserve=1M\n", "uid:N or cert:NAME only"},
          {"token:* reserve=1M\n", "uid:N or cert:NAME only"},
          {"uid:1 memory=1M reserve=2M\n", "more reserved than it may have"},
      };
    for (size_t i = 0; i < sizeof bad_tokens / sizeof *bad_tokens; i++) {
        cr_expect_eq(load_files(bad_tokens[i].line, NULL), AD_E_VALUE, "%s", bad_tokens[i].line);
        cr_expect_not_null(strstr(fault.text, bad_tokens[i].expected), "%s", fault.text);
        cr_expect_not_null(strstr(fault.text, "/tokens:1: "), "%s", fault.text);
        cr_expect_null(strstr(fault.text, "ad1_"), "%s", fault.text);
    }
    for (size_t i = 0; i < sizeof bad_principals / sizeof *bad_principals; i++) {
        cr_expect_eq(load_files(NULL, bad_principals[i].line), AD_E_VALUE, "%s", bad_principals[i].line);
        cr_expect_not_null(strstr(fault.text, bad_principals[i].expected), "%s", fault.text);
        cr_expect_null(strstr(fault.text, "ad1_"), "%s", fault.text);
    }
}

Test(auth, digits_of_hashes_that_are_none) {
    char line[100];
    for (const char *bad = "/:`gG- "; *bad; bad++)
        for (int place = 0; place < 2; place++) {
            snprintf(line, sizeof line, "alice sha256:%064d\n", 0);
            line[13 + place] = *bad;
            cr_expect_eq(load_files(line, NULL), AD_E_VALUE, "%s", line);
        }
}

Test(auth, long_lines_and_wrong_files) {
    char text[1100];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    cr_assert_eq(load_files(text, NULL), AD_E_VALUE);
    cr_assert_not_null(strstr(fault.text, "too long"));
    write_text(tokens, "", 0600);
    cr_assert_eq(chmod(tokens, 0620), 0);
    cr_assert_eq(ad__principals_load(tokens, "", &p, &fault), AD_E_DENIED);
    cr_assert_eq(ad__principals_load("/no/such/file", "", &p, &fault), AD_E_SYSTEM);
    cr_assert_eq(ad__principals_load(folder, "", &p, &fault), AD_E_VALUE);
}

Test(auth, whose_a_file_of_principals_may_be) {
    cr_assert_eq(load_files(NULL, "uid:7 names=0\n"), 0);
    if (geteuid()) cr_skip_test("only root can give files away");
    cr_assert_eq(chown(principals, 54321, (gid_t)-1), 0);
    cr_assert_eq(chmod(folder, 0755), 0);
    cr_expect_eq(ad__principals_load("", principals, &p, &fault), AD_E_DENIED);
    cr_assert_eq(seteuid(54321), 0);
    ad__principals_free(p);
    cr_expect_eq(ad__principals_load("", principals, &p, &fault), 0, "%s", fault.text);
    cr_assert_eq(seteuid(0), 0);
}

#define MOST_LINES 65536

/* Write a file of the most lines that there may be, uid:0 and so on, and one more line. NULL: no more line. */
static int load_most_lines(const char *more) {
    const size_t room = MOST_LINES * 32u;
    char *text = malloc(room);
    size_t n = 0;
    cr_assert_not_null(text);
    for (int i = 0; i < MOST_LINES; i++) n += (size_t)snprintf(text + n, room - n, "uid:%d buffers=%d\n", i, i + 1);
    snprintf(text + n, room - n, "%s", more ? more : "");
    const int status = load_files(NULL, text);
    free(text);
    return status;
}

/* A line is compared with few others: with all of them this would take half a minute. */
Test(auth, a_file_of_the_most_lines) {
    char who[AD_PRINCIPAL_SIZE];
    ad_grants g;
    cr_assert_eq(load_most_lines(NULL), 0, "%s", fault.text);
    for (uid_t uid = 0; uid < MOST_LINES; uid++) {
        ad__principals_user(p, uid, 0, NULL, who, &g);
        cr_assert_eq(g.buffers, uid + 1, "uid:%u: %lu", uid, (unsigned long)g.buffers);
    }
    cr_assert_not(ad__principals_names(p, "uid:65536"));
    cr_assert_eq(load_most_lines("uid:0\n"), AD_E_VALUE, "a line that is there already");
    cr_expect_not_null(strstr(fault.text, ":65537: \"uid:0\": it has a line already"), "%s", fault.text);
    cr_assert_eq(load_most_lines("uid:65536\n"), AD_E_LIMIT);
    cr_expect_not_null(strstr(fault.text, ":65537: expected at most 65536 principals"), "%s", fault.text);
}

Test(auth, whatever_stands_in_a_file) {
    static const char pieces[][12] = {
        "uid:", "gid:",   "cert:",     "token:",   "*",   "1",   "x", " ",       "\t",   "\n",
        "=",    "memory", "sessions=", "devices=", "0,1", "yes", "#", "sha256:", "\xff", "kernels="};
    unsigned state = 12345;
    for (int round = 0; round < 200; round++) {
        char text[200] = "";
        for (int i = 0; i < 12; i++) {
            state = state * 1103515245 + 12345;
            strcat(text, pieces[(state >> 16) % (sizeof pieces / sizeof *pieces)]);
        }
        bool first = round & 1;
        int status = load_files(first ? text : NULL, first ? NULL : text);
        cr_assert(status == 0 || (status == AD_E_VALUE && *fault.text), "%s", text);
    }
}
