/* Addresses of servers: URLs, and the addresses that are tried when there is none. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "client-c/client.h"

static int fail_url(const char *url, const char *why) {
    return ad__fail(AD_E_URL, "'%.200s' is not a server address: %s", url, why);
}

static int parse_unix(const char *url, const char *path, ad_server_address *out) {
    struct sockaddr_un address;
    if (!*path) return fail_url(url, "the path is missing");
    if (strlen(path) >= sizeof address.sun_path)
        return fail_url(url, "the path of a Unix socket has at most 107 bytes");
    strcpy(out->host, path);
    out->transport = AD_URL_UNIX;
    return 0;
}

static int parse_port(const char *url, const char *rest, ad_server_address *out) {
    const char *colon = strrchr(rest, ':'), *end = colon;
    if (strchr(rest, '@')) /* an address is shown in messages, and the token would be, too */
        return fail_url("...@...", "a token does not belong into it: see ARRAYD_TOKEN");
    if (!colon || colon == rest || !colon[1]) return fail_url(url, "expected tcp:host:port or tls:host:port");
    if (rest[0] == '[') {
        if (end[-1] != ']') return fail_url(url, "expected tcp:[address]:port or tls:[address]:port");
        rest++, end--;
    }
    if ((size_t)(end - rest) >= sizeof out->host || strlen(colon + 1) >= sizeof out->port)
        return fail_url(url, "host or port is too long");
    memcpy(out->host, rest, (size_t)(end - rest));
    strcpy(out->port, colon + 1);
    return 0;
}

static int parse_tcp(const char *url, const char *rest, ad_server_address *out) {
    out->transport = AD_URL_TCP;
    return parse_port(url, rest, out);
}

static int parse_tls(const char *url, const char *rest, ad_server_address *out) {
    out->transport = AD_URL_TLS;
    return parse_port(url, rest, out);
}

static int parse_embedded(const char *url, const char *backend, ad_server_address *out) {
    static const char *const backends[] = {"auto", "cpu", "cuda"};
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
        if (strcmp(backend, backends[i]) != 0) continue;
        strcpy(out->host, backend);
        out->transport = AD_URL_EMBEDDED;
        return 0;
    }
    return fail_url(url, "expected embedded:auto, embedded:cpu or embedded:cuda");
}

int ad__url_parse(const char *url, ad_server_address *out) {
    static const struct {
        const char *scheme;
        int (*parse)(const char *url, const char *rest, ad_server_address *out);
    } schemes[] = {{"unix:", parse_unix}, {"tcp:", parse_tcp}, {"tls:", parse_tls}, {"embedded:", parse_embedded}};
    memset(out, 0, sizeof *out);
    if (strlen(url) >= sizeof out->url) return fail_url(url, "it is too long");
    strcpy(out->url, url);
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        size_t n = strlen(schemes[i].scheme);
        if (strncmp(url, schemes[i].scheme, n) == 0) return schemes[i].parse(url, url + n, out);
    }
    return fail_url(url,
                    "expected unix:/path, tcp:host:port, tls:host:port, embedded:auto, embedded:cpu or embedded:cuda");
}

/* Tell whether the runtime folder is this user's. su and sudo leave another user's, which may not be searched, in the
 * environment. */
static bool is_runtime_folder_ours(const char *folder) {
    struct stat st;
    if (faccessat(AT_FDCWD, folder, X_OK, AT_EACCESS) == 0 || errno != EACCES) return true;
    return stat(folder, &st) == 0 && st.st_uid == geteuid();
}

static bool find_user_socket(ad_server_address *out) {
    char url[sizeof out->url];
    const char *folder = getenv("XDG_RUNTIME_DIR");
    if (!folder || !*folder || !is_runtime_folder_ours(folder)) return false;
    return snprintf(url, sizeof url, "unix:%s/arrayd.sock", folder) < (int)sizeof url && ad__url_parse(url, out) == 0;
}

int ad__url_candidates(ad_server_address out[AD_URL_CANDIDATES]) {
    int n = find_user_socket(out);
    n += ad__url_parse("unix:/run/arrayd/arrayd.sock", &out[n]) == 0;
    n += ad__url_parse("embedded:auto", &out[n]) == 0;
    return n;
}
