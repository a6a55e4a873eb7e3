/* Credentials for servers that are not reached by a Unix socket: tokens and certificates. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client-c/client.h"
#include "protocol/owner.h"

/* Check a token and copy it. No error message shows the text. */
static int store_token(const char *text, size_t size, const char *source, ad_credentials *out) {
    while (size && strchr(" \t\r\n", text[size - 1])) size--;
    bool good = size > 0 && size < sizeof out->token;
    for (size_t i = 0; i < size && good; i++) good = text[i] > ' ' && text[i] <= '~';
    if (!good)
        return ad__fail(AD_E_VALUE, "%s: not a token: expected one word of at most %d letters", source,
                        AD_TOKEN_SIZE - 1);
    memcpy(out->token, text, size);
    out->token[size] = 0;
    return 0;
}

static int read_token(const char *path, ad_credentials *out) {
    char text[AD_TOKEN_SIZE + 64];
    struct stat st;
    ad_fault fault;
    int status = 0, fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return ad__fail(AD_E_SYSTEM, "token file %.300s: %s", path, strerror(errno));
    if (fstat(fd, &st) == 0 && ad__owner_check_secret(&st, "token file", path, &fault)) status = ad__fail_fault(&fault);
    ssize_t n = status ? 0 : read(fd, text, sizeof text);
    if (n < 0) status = ad__fail(AD_E_SYSTEM, "token file %.300s: %s", path, strerror(errno));
    if (!status) status = store_token(text, (size_t)n, path, out);
    explicit_bzero(text, sizeof text);
    close(fd);
    return status;
}

static bool find_own_file(char *out, size_t size) {
    const char *folder = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    int n = 0;
    if (folder && *folder) n = snprintf(out, size, "%s/arrayd/token", folder);
    else if (home && *home) n = snprintf(out, size, "%s/.config/arrayd/token", home);
    return n > 0 && n < (int)size && access(out, F_OK) == 0;
}

/* Find the token. certified: a certificate identifies the user, so the user's file, which serves every server, is not
 * read. */
static int find_token(const ad_server_address *address, const ad_connection *options, bool certified,
                      ad_credentials *out) {
    const char *named = getenv("ARRAYD_TOKEN_FILE"), *token = getenv("ARRAYD_TOKEN");
    char path[1100];
    if (options && options->token) return store_token(options->token, strlen(options->token), "option token", out);
    if (*address->token) return store_token(address->token, strlen(address->token), "the url", out);
    if (token && *token) return store_token(token, strlen(token), "ARRAYD_TOKEN", out);
    if (named && *named) return read_token(named, out);
    return !certified && find_own_file(path, sizeof path) ? read_token(path, out) : 0;
}

static int find_path(const char *given, const char *variable, const char *what, char *out, size_t size) {
    const char *path = given ? given : getenv(variable);
    if (!path) return 0;
    if (strlen(path) >= size) return ad__fail(AD_E_VALUE, "option %s: longer than %zu bytes", what, size - 1);
    strcpy(out, path);
    return 0;
}

/* Find this program's name. A text that is too long is cut, as it is only shown to people. */
static void find_name(const ad_connection *options, char *out, size_t size) {
    const char *named = getenv("ARRAYD_NAME");
    const char *name = options->name ? options->name : named && *named ? named : program_invocation_short_name;
    size_t n = strnlen(name, size - 1);
    while (n && n < strlen(name) && ((unsigned char)name[n] & 0xc0) == 0x80) n--; /* no character is cut in two */
    memcpy(out, name, n);
    out[n] = 0;
}

int ad__credentials_find(const ad_server_address *address, const ad_connection *options, ad_credentials *out) {
    static const ad_connection none;
    const ad_connection *o = options ? options : &none;
    memset(out, 0, sizeof *out);
    find_name(o, out->name, sizeof out->name);
    bool certified = address->transport == AD_URL_TLS && (o->cert || getenv("ARRAYD_CERT"));
    int status = ad__is_remote(address) ? find_token(address, options, certified, out) : 0;
    if (status || address->transport != AD_URL_TLS) return status;
    status = find_path(o->ca, "ARRAYD_CA", "ca", out->ca, sizeof out->ca);
    if (!status) status = find_path(o->cert, "ARRAYD_CERT", "cert", out->cert, sizeof out->cert);
    if (!status) status = find_path(o->key, "ARRAYD_KEY", "key", out->key, sizeof out->key);
    return status;
}

void ad__credentials_forget(ad_credentials *c) { explicit_bzero(c, sizeof *c); }
