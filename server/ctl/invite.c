/* The commands invite, invites and revoke. The token is printed once; the file of tokens has its hash. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "server/common/config.h"
#include "server/common/secret.h"
#include "server/ctl/ctl.h"
#include "server/ctl/token_file.h"
#include "server/front/auth/principals.h"

#define DAYS 30
#define DAY_SECONDS 86400.0
#define MOST_DAYS 36500

typedef struct invitation {
    const char *name, *host;
    char memory[40];  /* grant of memory, as " memory=8589934592"; "" for none */
    char expires[40]; /* date of UTC; "": never */
    bool peer;        /* for a server, which fetches arrays for others */
} invitation;

/* ---- arguments ---- */

/* Read a size, also as people write it: 8G, 8GiB. */
static bool parse_memory(const char *text, char *out, size_t size) {
    char copy[32];
    uint64_t bytes;
    size_t n = strlen(text);
    if (n >= sizeof copy) return false;
    strcpy(copy, text);
    if (n > 3 && !strcmp(copy + n - 2, "iB")) copy[n - 2] = 0;
    if (!ad__config_parse_size(copy, &bytes) || !bytes) return false;
    snprintf(out, size, " memory=%lu", (unsigned long)bytes);
    return true;
}

/* Format a time as the file of tokens has it. Texts of times are in their order. */
static void format_time(time_t at, char *out, size_t size) {
    struct tm t;
    if (gmtime_r(&at, &t)) strftime(out, size, "%Y-%m-%dT%H:%M:%SZ", &t);
}

static bool parse_days(const char *text, char *out, size_t size) {
    char *end;
    const double days = strtod(text, &end);
    *out = 0;
    if (!*text || *end || !(days >= 0 && days <= MOST_DAYS)) return false;
    if (days > 0) format_time(time(NULL) + (time_t)(days * DAY_SECONDS + 0.999), out, size);
    return true;
}

static bool is_host(const char *text) {
    return *text && strlen(text) < 120 &&
           !text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-:[]")];
}

static int parse_arguments(const ad_ctl *c, invitation *v) {
    char days[8];
    snprintf(days, sizeof days, "%d", DAYS);
    parse_days(days, v->expires, sizeof v->expires);
    for (int i = 1; i < c->argc; i++) {
        const char *text;
        if ((text = ad__ctl_value("--memory", c->argc, c->argv, &i))) {
            if (!parse_memory(text, v->memory, sizeof v->memory))
                return ad__ctl_error(c, AD_CTL_USAGE, "option --memory: expected a size, as 8G or 512M, not \"%s\"",
                                     text);
        } else if ((text = ad__ctl_value("--days", c->argc, c->argv, &i))) {
            if (!parse_days(text, v->expires, sizeof v->expires))
                return ad__ctl_error(c, AD_CTL_USAGE,
                                     "option --days: expected a number of days, 0 for ever, not \"%s\"", text);
        } else if ((text = ad__ctl_value("--host", c->argc, c->argv, &i))) {
            if (!is_host(text))
                return ad__ctl_error(c, AD_CTL_USAGE, "option --host: expected a name or address, not \"%s\"", text);
            v->host = text;
        } else if (!strcmp(c->argv[i], "--peer")) {
            v->peer = true;
        } else if (c->argv[i][0] == '-' && c->argv[i][1]) {
            return ad__ctl_error(c, AD_CTL_USAGE, "no such option: %s (see arrayctl --help)", c->argv[i]);
        } else if (v->name) {
            return ad__ctl_error(c, AD_CTL_USAGE, "expected one name, and no \"%s\"", c->argv[i]);
        } else {
            v->name = c->argv[i];
        }
    }
    if (v->name && ad__principals_is_name(v->name)) return AD_CTL_GOOD;
    return ad__ctl_error(c, AD_CTL_USAGE, "expected a name of at most 56 letters, digits and . _ @ -");
}

/* ---- the url ---- */

/* Choose the host of a url: the given one, else the address that is served, else (for all addresses) this machine's
 * name. */
static const char *choose_host(const char *given, const char *address, char *out, size_t size) {
    const size_t n = (size_t)(strrchr(address, ':') - address);
    if (given) return given;
    snprintf(out, size, "%.*s", (int)n, address);
    if (strcmp(out, "0.0.0.0") != 0 && strcmp(out, "[::]") != 0) return out;
    if (gethostname(out, size - 1) || !is_host(out)) snprintf(out, size, "127.0.0.1");
    return out;
}

static int print_invitation(const ad_ctl *c, const invitation *v, const char *token, const json_t *server) {
    char own[128], url[600];
    const char *address = ad__json_text(server, "address");
    const char *host = choose_host(v->host, address, own, sizeof own), *open = "", *close = "";
    if (strchr(host, ':') && *host != '[') open = "[", close = "]";
    snprintf(url, sizeof url, "tls://%s@%s%s%s%s#sha256:%s", token, open, host, close, strrchr(address, ':'),
             ad__json_text(server, "pin"));
    int status = AD_CTL_GOOD;
    if (c->json) {
        json_t *answer = json_pack("{s:s, s:s, s:s}", "name", v->name, "url", url, "expires", v->expires);
        status = answer ? ad__ctl_print(c, answer) : AD_CTL_BAD;
        json_decref(answer);
    } else {
        printf("%s\n", url);
        fprintf(stderr, "%s may come in by this url%s%s. It is a password: send it as one. It is not shown again.\n",
                v->name, *v->expires ? " until " : "", v->expires);
    }
    explicit_bzero(url, sizeof url);
    return status;
}

/* ---- commands ---- */

/* Ask the server to do one thing, whose answer is not needed. */
static int tell_server(ad_ctl *c, const char *line, json_t **out) {
    json_t *answer = NULL;
    int status = ad__ctl_ask(c, line, -1, &answer);
    if (out) *out = answer;
    else json_decref(answer);
    return status;
}

static int add_token(ad_ctl *c, const invitation *v, const char *token, const json_t *server) {
    uint8_t hash[AD_SHA256_SIZE];
    char digits[2 * AD_SHA256_SIZE + 1], line[300];
    unsigned had;
    ad_fault fault = {0};
    if (ad__token_hash(token, strlen(token), hash, &fault)) return ad__ctl_error(c, AD_CTL_BAD, "%s", fault.text);
    ad__sha256_text(hash, digits);
    snprintf(line, sizeof line, "%s sha256:%s%s%s%s%s\n", v->name, digits, v->memory, v->peer ? " peer=yes" : "",
             *v->expires ? " expires=" : "", v->expires);
    int status = ad__token_file_change(c, ad__json_text(server, "tokens"), v->name, line, &had);
    return status ? status : tell_server(c, "reload\n", NULL);
}

int ad__ctl_invite(ad_ctl *c) {
    invitation v = {0};
    char token[AD_TOKEN_TEXT];
    json_t *server = NULL;
    ad_fault fault = {0};
    int status = parse_arguments(c, &v);
    if (!status) status = ad__ctl_ask(c, "invite\n", -1, &server);
    if (!status && ad__token_make(token, &fault)) status = ad__ctl_error(c, AD_CTL_BAD, "%s", fault.text);
    if (!status) status = add_token(c, &v, token, server);
    if (!status) status = print_invitation(c, &v, token, server);
    explicit_bzero(token, sizeof token);
    json_decref(server);
    return status;
}

/* A line of the file of tokens as a row of the list. */
static void add_row(void *argument, char *line) {
    static const char mark[] = "expires=";
    char *rest = NULL, *name = strtok_r(line, " \t", &rest), grants[512] = "", expires[40] = "";
    strtok_r(NULL, " \t", &rest); /* the hash */
    for (char *field; (field = strtok_r(NULL, " \t", &rest));) {
        const size_t n = strlen(grants);
        if (!strncmp(field, mark, sizeof mark - 1)) snprintf(expires, sizeof expires, "%s", field + sizeof mark - 1);
        else snprintf(grants + n, sizeof grants - n, "%s%s", n ? " " : "", field);
    }
    char now[40] = "";
    format_time(time(NULL), now, sizeof now);
    json_t *row = json_pack("{s:s, s:s, s:s, s:b}", "name", name, "expires", expires, "grants", grants, "expired",
                            *expires && strncmp(expires, now, strlen(expires)) <= 0);
    if (row) json_array_append_new(argument, row);
}

static int print_rows(const json_t *rows) {
    static const char *const head[] = {"name", "until", "", "grants", NULL};
    ad_table table;
    size_t i;
    json_t *row;
    ad__table_begin(&table, head);
    json_array_foreach(rows, i, row) {
        const char *expires = ad__json_text(row, "expires");
        ad__table_add(&table, "%s", ad__json_text(row, "name"));
        ad__table_add(&table, "%s", *expires ? expires : "for ever");
        ad__table_add(&table, "%s", json_is_true(json_object_get(row, "expired")) ? "expired" : "");
        ad__table_add(&table, "%s", ad__json_text(row, "grants"));
    }
    ad__table_end(&table, 0);
    return AD_CTL_GOOD;
}

int ad__ctl_invites(ad_ctl *c) {
    json_t *server = NULL, *rows = json_array();
    int status = ad__ctl_alone(c);
    if (!status) status = ad__ctl_ask(c, "invite\n", -1, &server);
    if (!status) status = ad__token_file_read(c, ad__json_text(server, "tokens"), add_row, rows);
    if (!status) status = c->json ? ad__ctl_print(c, rows) : print_rows(rows);
    json_decref(server);
    json_decref(rows);
    return status;
}

int ad__ctl_revoke(ad_ctl *c) {
    json_t *server = NULL, *ended = NULL;
    char line[AD_PRINCIPAL_SIZE + 16];
    unsigned removed = 0;
    if (c->argc != 2 || !ad__principals_is_name(c->argv[1]))
        return ad__ctl_error(c, AD_CTL_USAGE, "expected one name, as arrayctl invites shows them");
    int status = ad__ctl_ask(c, "invite\n", -1, &server);
    if (!status) status = ad__token_file_change(c, ad__json_text(server, "tokens"), c->argv[1], NULL, &removed);
    if (!status && !removed)
        status = ad__ctl_error(c, AD_CTL_BAD, "%s has no token in %s", c->argv[1], ad__json_text(server, "tokens"));
    if (!status) status = tell_server(c, "reload\n", NULL);
    snprintf(line, sizeof line, "dismiss %s\n", c->argv[1]);
    if (!status) status = tell_server(c, line, &ended);
    if (!status && c->json) status = ad__ctl_print(c, ended);
    else if (!status)
        printf("%s is out: %.0f session%s ended\n", c->argv[1], ad__json_number(ended, "dismissed"),
               ad__ctl_plural(ad__json_number(ended, "dismissed")));
    json_decref(server);
    json_decref(ended);
    return status;
}
