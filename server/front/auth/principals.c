/* Reading and searching the files of principals and tokens: see principals.h. */
#include "server/front/auth/principals.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "protocol/owner.h"
#include "server/common/os.h"
#include "server/common/secret.h"
#include "server/front/auth/grants.h"

#define MOST_ENTRIES 65536
#define MOST_LINE 1024
#define CHAINS 16384
#define BLANKS " \t\r\n"

typedef struct entry {
    char who[AD_PRINCIPAL_SIZE]; /* "token:alice", "uid:1000", "gid:*" ... */
    uint8_t hash[AD_SHA256_SIZE];
    ad_grants grants;
    int64_t expires; /* seconds since 1970; 0: never */
    size_t next;     /* position of the next entry of the chain, from 1; 0: there is none */
} entry;

/* Entries in the order of their lines, and a hash table of chains by their names. */
typedef struct entries {
    entry *list;
    size_t count, capacity;
    size_t chains[CHAINS]; /* position of the first entry of each chain, from 1; 0: there is none */
} entries;

struct ad_principals {
    entries tokens, others;
};

/* The position of a line, for messages. */
typedef struct place {
    const char *option, *path;
    int line;
    bool secret; /* the file holds secrets, so that nobody else may read it */
    ad_fault *fault;
} place;

/* ---- lines ---- */

/* Report an error in a line. Text that may be a token is not shown. AD_E_VALUE. */
static int report_bad_line(const place *at, const char *what, const char *text) {
    if (strstr(text, "ad1_")) text = "(a token)";
    return ad__fault(at->fault, AD_E_VALUE, "option %s: %.100s:%d: \"%.60s\": %s", at->option, at->path, at->line, text,
                     what);
}

bool ad__principals_is_name(const char *text) {
    size_t n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._@-");
    return n > 0 && n <= AD_PRINCIPAL_SIZE - 8 && !text[n];
}

static int parse_token_head(const place *at, char **rest, entry *e) {
    const char *name = strtok_r(NULL, BLANKS, rest);
    if (!ad__principals_is_name(name))
        return report_bad_line(at, "expected a name of at most 56 letters, digits and . _ @ -", name);
    snprintf(e->who, sizeof e->who, "token:%.56s", name);
    const char *hash = strtok_r(NULL, BLANKS, rest);
    if (hash && ad__sha256_parse(hash, e->hash)) return 0;
    return report_bad_line(at, "expected sha256: and 64 digits after the name", name);
}

static bool is_principal_pattern(const char *text) {
    const char *colon = strchr(text, ':');
    if (!colon || !colon[1] || strlen(text) >= AD_PRINCIPAL_SIZE) return false;
    bool all = !strcmp(colon, ":*");
    if (!strncmp(text, "uid:", 4) || !strncmp(text, "gid:", 4))
        return (all && *text == 'u') || (strlen(colon + 1) <= 10 && !colon[1 + strspn(colon + 1, "0123456789")]);
    return !strncmp(text, "cert:", 5) || !strcmp(text, "token:*");
}

static int parse_principal_head(const place *at, char **rest, entry *e) {
    const char *who = strtok_r(NULL, BLANKS, rest);
    if (!is_principal_pattern(who))
        return report_bad_line(at, "expected uid:N, gid:N, uid:*, cert:NAME, cert:* or token:*", who);
    snprintf(e->who, sizeof e->who, "%s", who);
    return 0;
}

/* ---- the table ---- */

static size_t find_chain(const char *who) {
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (; *who; who++) hash = (hash ^ (unsigned char)*who) * 16777619u;
    return hash % CHAINS;
}

static const entry *find_entry(const entries *list, const char *who) {
    for (size_t at = list->chains[find_chain(who)]; at; at = list->list[at - 1].next)
        if (!strcmp(list->list[at - 1].who, who)) return &list->list[at - 1];
    return NULL;
}

static void link_entry(entries *list, size_t at) {
    entry *e = &list->list[at - 1];
    size_t *chain = &list->chains[find_chain(e->who)];
    e->next = *chain;
    *chain = at;
}

static int add_entry(const place *at, entries *list, const entry *e) {
    if (list->count == MOST_ENTRIES)
        return ad__fault(at->fault, AD_E_LIMIT, "option %s: %.100s:%d: expected at most %d principals", at->option,
                         at->path, at->line, MOST_ENTRIES);
    entry *grown = ad__os_grow(list->list, list->count, &list->capacity, sizeof *grown);
    if (!grown) return ad__fault(at->fault, AD_E_MEMORY, "out of host memory");
    list->list = grown;
    list->list[list->count++] = *e;
    link_entry(list, list->count);
    return 0;
}

/* ---- fields ---- */

/* Read a date of UTC, as 2026-12-31 or 2026-12-31T23:59:59Z. */
static bool parse_date(const char *text, int64_t *out) {
    struct tm t = {0};
    const char *end = strptime(text, "%Y-%m-%d", &t);
    if (end && *end == 'T') end = strptime(end, "T%H:%M:%SZ", &t);
    if (!end || *end) return false;
    *out = (int64_t)timegm(&t);
    return *out > 0;
}

static int parse_field(const place *at, char *field, bool tokens, entry *e) {
    static const char expires[] = "expires=";
    const char *text, *expected;
    if (tokens && !strncmp(field, expires, sizeof expires - 1)) {
        text = field + sizeof expires - 1;
        expected =
            parse_date(text, &e->expires) ? NULL : "expected a date of UTC, as 2026-12-31 or 2026-12-31T23:59:59Z";
    } else {
        expected = ad__grant_take(field, &e->grants, &text);
    }
    return expected ? report_bad_line(at, expected, text) : 0;
}

static int parse_line(const place *at, char *line, bool tokens, entries *list, const ad_principals *p) {
    entry e = {0};
    char *rest = line + strspn(line, BLANKS), *field;
    rest[strcspn(rest, "#")] = 0;
    if (!rest[strspn(rest, BLANKS)]) return 0;
    int status = tokens ? parse_token_head(at, &rest, &e) : parse_principal_head(at, &rest, &e);
    if (status) return status;
    if (find_entry(list, e.who)) return report_bad_line(at, "it has a line already", e.who);
    const entry *all = tokens ? find_entry(&p->others, "token:*") : NULL;
    e.grants = all ? all->grants : ad__grants_of_nobody(e.who);
    while (!status && (field = strtok_r(NULL, BLANKS, &rest))) status = parse_field(at, field, tokens, &e);
    const char *why = status ? NULL : ad__grants_check(e.who, &e.grants);
    if (why) status = report_bad_line(at, why, e.who);
    return status ? status : add_entry(at, list, &e);
}

/* ---- files ---- */

/* Check who may write the file, as its writer could come in as anybody. AD_E_VALUE, AD_E_DENIED. */
static int check_file(const place *at, FILE *f) {
    struct stat st;
    if (fstat(fileno(f), &st) || !S_ISREG(st.st_mode))
        return ad__fault(at->fault, AD_E_VALUE, "option %s: %.150s is not a file", at->option, at->path);
    if (at->secret) return ad__owner_check_secret(&st, "option tokens:", at->path, at->fault);
    if (st.st_mode & (S_IWGRP | S_IWOTH) || (st.st_uid != 0 && st.st_uid != geteuid()))
        return ad__fault(at->fault, AD_E_DENIED,
                         "option %s: %.120s must be its owner's alone to write, and belong to root or to "
                         "the user that arrayd runs as",
                         at->option, at->path);
    return 0;
}

static int load_principals_file(const char *option, const char *path, entries *list, const ad_principals *p,
                                ad_fault *fault) {
    place at = {.option = option, .path = path, .secret = list == &p->tokens, .fault = fault};
    char line[MOST_LINE];
    if (!*path) return 0;
    FILE *f = fopen(path, "re");
    if (!f) return ad__fault(fault, AD_E_SYSTEM, "option %s: cannot open %.150s: %s", option, path, strerror(errno));
    int status = check_file(&at, f);
    while (!status && fgets(line, sizeof line, f)) {
        at.line++;
        if (!strchr(line, '\n') && !feof(f)) status = report_bad_line(&at, "the line is too long", "...");
        else status = parse_line(&at, line, list == &p->tokens, list, p);
    }
    if (!status && ferror(f)) status = ad__fault(fault, AD_E_SYSTEM, "option %s: %.150s: read error", option, path);
    explicit_bzero(line, sizeof line);
    fclose(f);
    return status;
}

int ad__principals_load(const char *tokens, const char *principals, ad_principals **out, ad_fault *fault) {
    ad_principals *p = ad__os.calloc(1, sizeof *p);
    if (!p) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    /* Before the tokens, whose grants begin with those of token:*. */
    int status = load_principals_file("principals", principals, &p->others, p, fault);
    if (!status) status = load_principals_file("tokens", tokens, &p->tokens, p, fault);
    if (status) ad__principals_free(p);
    else *out = p;
    return status;
}

void ad__principals_free(ad_principals *p) {
    if (!p) return;
    free(p->tokens.list);
    free(p->others.list);
    free(p);
}

size_t ad__principals_tokens(const ad_principals *p) { return p->tokens.count; }

const char *ad__principals_next(const ad_principals *p, size_t *at, ad_grants *grants) {
    size_t i = (*at)++;
    const entry *e = NULL;
    if (i < p->tokens.count) e = &p->tokens.list[i];
    else if (i - p->tokens.count < p->others.count) e = &p->others.list[i - p->tokens.count];
    if (e) *grants = e->grants;
    return e ? e->who : NULL;
}

/* ---- who it is ---- */

bool ad__principals_token(const ad_principals *p, const char *token, size_t size, char who[AD_PRINCIPAL_SIZE],
                          ad_grants *grants, int64_t *expires) {
    uint8_t hash[AD_SHA256_SIZE];
    size_t found = p->tokens.count;
    if (ad__token_hash(token, size, hash, NULL)) return false;
    for (size_t i = 0; i < p->tokens.count; i++) { /* compare all hashes, without a branch on the result */
        size_t same = (size_t)ad__secret_differs(hash, p->tokens.list[i].hash, sizeof hash) - 1; /* all bits, or none */
        found = (i & same) | (found & ~same);
    }
    if (found == p->tokens.count) return false;
    snprintf(who, AD_PRINCIPAL_SIZE, "%s", p->tokens.list[found].who);
    *grants = p->tokens.list[found].grants;
    *expires = p->tokens.list[found].expires;
    return true;
}

bool ad__principals_expiry(const ad_principals *p, const char *who, int64_t *expires) {
    const entry *e = find_entry(&p->tokens, who);
    if (e) *expires = e->expires;
    return e;
}

bool ad__principals_expire(const ad_principals *p) {
    for (size_t i = 0; i < p->tokens.count; i++)
        if (p->tokens.list[i].expires) return true;
    return false;
}

bool ad__principals_certificate(const ad_principals *p, const char *name, char who[AD_PRINCIPAL_SIZE],
                                ad_grants *grants) {
    if (snprintf(who, AD_PRINCIPAL_SIZE, "cert:%s", name) >= AD_PRINCIPAL_SIZE) return false;
    const entry *e = strcmp(name, "*") ? find_entry(&p->others, who) : NULL;
    if (!e) e = find_entry(&p->others, "cert:*");
    *grants = e ? e->grants : ad__grants_of_nobody(who);
    return true;
}

static const entry *find_group_entry(const ad_principals *p, size_t n, const gid_t *groups) {
    for (size_t i = 0; i < p->others.count; i++) {
        const entry *e = &p->others.list[i];
        if (strncmp(e->who, "gid:", 4)) continue;
        unsigned long gid = strtoul(e->who + 4, NULL, 10);
        for (size_t k = 0; k < n; k++)
            if (groups[k] == gid) return e;
    }
    return NULL;
}

bool ad__principals_names(const ad_principals *p, const char *who) { return find_entry(&p->others, who) != NULL; }

void ad__principals_user(const ad_principals *p, uid_t uid, size_t n, const gid_t *groups, char who[AD_PRINCIPAL_SIZE],
                         ad_grants *grants) {
    snprintf(who, AD_PRINCIPAL_SIZE, "uid:%lu", (unsigned long)uid);
    const entry *e = find_entry(&p->others, who);
    if (!e) e = find_group_entry(p, n, groups);
    if (!e) e = find_entry(&p->others, "uid:*");
    *grants = e ? e->grants : ad__grants_of_nobody(who);
    if (!e && (uid == 0 || uid == geteuid())) grants->may |= AD_GRANT_ADMIN;
}
