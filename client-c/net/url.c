/* Addresses of servers: URLs, and the addresses that are tried when there is none. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "client-c/client.h"
#include "protocol/nearest.h"

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

/* Refuse an address with slashes, as browsers have them. */
static int fail_slashes(const char *url, const char *rest) {
    char why[300];
    const char *host = rest + strspn(rest, "/");
    snprintf(why, sizeof why, "host and port stand without slashes; did you mean %.*s%.*s?", (int)(rest - url), url,
             (int)strcspn(host, "/"), host);
    return fail_url(url, why);
}

static int parse_port(const char *url, const char *rest, ad_server_address *out) {
    const char *colon = strrchr(rest, ':'), *end = colon;
    if (strchr(rest, '@')) /* an address is shown in messages, and the token would be, too */
        return fail_url("...@...", "a token does not belong into it: see ARRAYD_TOKEN");
    if (strchr(rest, '/')) return fail_slashes(url, rest);
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

/* ---- invitations: tls://token@host:port#sha256:pin ---- */

#define HIDDEN "tls://...@..." /* what messages show of such a url, which is a secret */

/* Read such a url. `rest` begins with the token; out->url becomes tls:host:port, which may be shown. */
static int parse_invitation(const char *rest, ad_server_address *out) {
    const char *at = strchr(rest, '@'), *host = at + 1;
    const size_t token = (size_t)(at - rest), n = strcspn(host, "#/");
    const char *pin = host + n + strspn(host + n, "/");
    if (!token || token >= sizeof out->token)
        return fail_url(HIDDEN, "the token between // and @ is missing or too long");
    out->pinned = *pin == '#' && ad__sha256_parse(pin + 1, out->pin);
    if (*pin && !out->pinned)
        return fail_url(HIDDEN, "expected #sha256: and 64 digits (0-9, a-f) behind the port: copy the whole url");
    if (n >= sizeof out->url - 4) return fail_url(HIDDEN, "host or port is too long");
    memcpy(out->token, rest, token);
    snprintf(out->url, sizeof out->url, "tls:%.*s", (int)n, host);
    out->transport = AD_URL_TLS;
    return parse_port(out->url, out->url + 4, out);
}

static int parse_tcp(const char *url, const char *rest, ad_server_address *out) {
    out->transport = AD_URL_TCP;
    return parse_port(url, rest, out);
}

static int parse_tls(const char *url, const char *rest, ad_server_address *out) {
    out->transport = AD_URL_TLS;
    return parse_port(url, rest, out);
}

static const char *const backends[] = {"auto", "cpu", "cuda"};
#define NBACKEND (sizeof backends / sizeof *backends)

/* Find the backend that a word that is none was probably meant to be; NULL: none. */
static const char *guess_backend(const char *word) {
    ad_nearest n;
    if (!strcasecmp(word, "gpu")) return "cuda";
    ad__nearest_begin(&n, word, strlen(word));
    for (size_t i = 0; i < NBACKEND; i++) ad__nearest_try(&n, backends[i]);
    return n.best;
}

static int parse_embedded(const char *url, const char *backend, ad_server_address *out) {
    char why[120];
    for (size_t i = 0; i < NBACKEND; i++) {
        if (strcmp(backend, backends[i]) != 0) continue;
        strcpy(out->host, backend);
        out->transport = AD_URL_EMBEDDED;
        return 0;
    }
    const char *meant = guess_backend(backend);
    snprintf(why, sizeof why, "expected embedded:auto, embedded:cpu or embedded:cuda%s%s%s",
             meant ? "; did you mean embedded:" : "", meant ? meant : "", meant ? "?" : "");
    return fail_url(url, why);
}

static const struct {
    const char *scheme;
    int (*parse)(const char *url, const char *rest, ad_server_address *out);
} schemes[] = {{"unix:", parse_unix}, {"tcp:", parse_tcp}, {"tls:", parse_tls}, {"embedded:", parse_embedded}};
#define NSCHEME (sizeof schemes / sizeof *schemes)

static bool ends_in_port(const char *url) {
    const char *colon = strrchr(url, ':');
    return colon && colon != url && colon[1] && !colon[1 + strspn(colon + 1, "0123456789")];
}

/* Say what an address with a scheme was probably meant to be; its first `head` bytes are what stands for the scheme. */
static void guess_rest(const char *url, size_t head, const char *scheme, char *out, size_t size) {
    const char *rest = url[head] ? url + head + 1 : "...";
    if (strcmp(scheme, "unix:") != 0) rest += strspn(rest, "/");
    snprintf(out, size, "; did you mean %s%.150s?", scheme, rest);
}

/* Say what an address without a known scheme was probably meant to be, or nothing. */
static void guess_address(const char *url, char *out, size_t size) {
    const size_t head = strcspn(url, ":/");
    const char *backend = head == strlen(url) ? guess_backend(url) : NULL;
    ad_nearest n;
    *out = 0;
    ad__nearest_begin(&n, url, head + (url[head] == ':'));
    for (size_t i = 0; i < NSCHEME; i++) ad__nearest_try(&n, schemes[i].scheme);
    if (*url == '/' || *url == '.') snprintf(out, size, "; did you mean unix:%.150s?", url);
    else if (!strncasecmp(url, "http", 4))
        snprintf(out, size, "; HTTP is for browsers (option metrics), programs connect to another port");
    else if (backend) snprintf(out, size, "; did you mean embedded:%s?", backend);
    else if (n.best) guess_rest(url, head, n.best, out, size);
    else if (ends_in_port(url)) snprintf(out, size, "; did you mean tcp:%.100s or tls:%.100s?", url, url);
}

/* Refuse an address on this machine where there can be no server. */
static int check_reachable(const char *url, const ad_server_address *a) {
    if (AD_LOCAL_SERVERS || ad__is_remote(a)) return 0;
    return fail_url(url, "servers run on Linux, and this system reaches them by tcp:host:port, tls:host:port or the "
                         "url that arrayctl invite prints");
}

int ad__url_parse(const char *url, ad_server_address *out) {
    char guess[260], why[400];
    memset(out, 0, sizeof *out);
    if (!strncmp(url, "tls://", 6) && strchr(url, '@')) return parse_invitation(url + 6, out);
    if (strstr(url, "//") && strchr(url, '@') && strncmp(url, "unix:", 5) != 0) /* a token may be in it */
        return fail_url("...@...", "expected tls://token@host:port#sha256:pin, as arrayctl invite prints it");
    if (strlen(url) >= sizeof out->url) return fail_url(url, "it is too long");
    strcpy(out->url, url);
    for (size_t i = 0; i < NSCHEME; i++) {
        size_t n = strlen(schemes[i].scheme);
        if (strncmp(url, schemes[i].scheme, n) != 0) continue;
        int status = schemes[i].parse(url, url + n, out);
        return status ? status : check_reachable(url, out);
    }
    guess_address(url, guess, sizeof guess);
    snprintf(why, sizeof why,
             "expected unix:/path, tcp:host:port, tls:host:port, embedded:auto, embedded:cpu or embedded:cuda%s",
             guess);
    return fail_url(url, why);
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
    return snprintf(url, sizeof url, "unix:%s/arrayd.sock", folder) < (int)sizeof url && !ad__url_parse(url, out);
}

int ad__url_candidates(ad_server_address out[AD_URL_CANDIDATES]) {
    if (!AD_LOCAL_SERVERS) return 0;
    int n = find_user_socket(out);
    n += !ad__url_parse("unix:/run/arrayd/arrayd.sock", &out[n]);
    n += !ad__url_parse("embedded:auto", &out[n]);
    return n;
}
