/* The identity of a client, by its connection and by the token or certificate that it shows. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "server/common/log.h"
#include "server/common/os.h"
#include "server/common/secret.h"
#include "server/common/rights.h"
#include "server/front/front.h"
#include "server/front/auth/grants.h"
#include "server/front/peers/peers.h"

#define MOST_GROUPS 1024
#define PEER_MEMORY ((uint64_t)64 << 20) /* bytes that a session of another server may allocate */
#define EXPIRY_MS 2000                   /* time between two looks at tokens that end */
#define MOST_REFUSALS 100                /* refusals that are logged in a second */

/* ---- the files ---- */

static void watch_expiry(ad_front *f);

static int load_tls(const ad_config *c, ad_tls_context **out, ad_fault *fault) {
    const ad_tls_files files = ad__tls_files(c->tls_cert, c->tls_key, c->tls_ca);
    if (!*c->tls) return 0;
    if (!files.certificate)
        return ad__fault(fault, AD_E_VALUE, "option tls: a certificate is missing (options tls-cert and tls-key)");
    return ad__tls_server(&files, out, fault);
}

int ad__entrance_load(ad_front *f, ad_fault *fault) {
    const ad_config *c = &f->config;
    ad_principals *principals = NULL;
    ad_tls_context *tls = NULL;
    ad_peers *peers = NULL;
    const char *tokens = f->embedded ? "" : c->tokens;
    int status = ad__principals_load(tokens, f->embedded ? "" : c->principals, &principals, fault);
    if (!status) status = ad__reserved_check(f, principals, fault);
    if (!status) status = ad__peers_load(c->server_name, f->embedded ? "" : c->peers, &peers, fault);
    if (!status && !f->embedded) status = load_tls(c, &tls, fault);
    if (status) {
        ad__principals_free(principals);
        ad__peers_free(peers);
        return status;
    }
    ad__entrance_free(f);
    f->principals = principals;
    f->tls = tls;
    f->peers.known = peers;
    watch_expiry(f);
    if (*tokens) ad__log(tokens_read, tokens, ad__principals_tokens(principals));
    return 0;
}

void ad__entrance_free(ad_front *f) {
    ad__principals_free(f->principals);
    ad__peers_free(f->peers.known);
    ad__tls_context_free(f->tls);
    f->peers.known = NULL;
    f->principals = NULL;
    f->tls = NULL;
}

/* ---- where a connection comes from ---- */

static bool get_peer_credentials(int fd, struct ucred *peer) {
    socklen_t size = sizeof *peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &size) == 0;
}

uint64_t ad__entrance_process(ad_way way, int fd, uint64_t said) {
    struct ucred peer = {0};
    return way == AD_WAY_UNIX && get_peer_credentials(fd, &peer) && said == (uint64_t)peer.pid ? said : 0;
}

/* Format an IPv6 address as its /64 network, as each client has 2^64 addresses; an IPv4 address as it is. */
static void format_network(const struct sockaddr_in6 *a, char *out, size_t size) {
    struct in6_addr network = a->sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&network)) {
        inet_ntop(AF_INET, &network.s6_addr[12], out, (socklen_t)size);
        return;
    }
    memset(&network.s6_addr[8], 0, 8);
    inet_ntop(AF_INET6, &network, out, (socklen_t)size);
    size_t n = strlen(out);
    snprintf(out + n, size - n, "/64");
}

void ad__entrance_from(int fd, ad_way way, char *out, size_t size) {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } a = {0};
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t length = sizeof a;
    char host[64] = "?";
    if (way == AD_WAY_UNIX) {
        get_peer_credentials(fd, &peer);
        snprintf(out, size, "uid:%u", (unsigned)peer.uid);
        return;
    }
    if (getpeername(fd, &a.any, &length) == 0) {
        if (a.any.sa_family == AF_INET6) format_network(&a.v6, host, sizeof host);
        else inet_ntop(AF_INET, &a.v4.sin_addr, host, sizeof host);
    }
    snprintf(out, size, "%s:%s", way == AD_WAY_TLS ? "tls" : "tcp", host);
}

/* ---- who it is ---- */

static int check_user(const ad_front *f, int fd, ad_entrant *out, ad_fault *fault) {
    gid_t groups[MOST_GROUPS + 1];
    socklen_t size = MOST_GROUPS * sizeof *groups;
    struct ucred peer;
    if (!get_peer_credentials(fd, &peer) || peer.uid == (uid_t)-1)
        return ad__fault(fault, AD_E_DENIED, "the kernel does not say which user has connected");
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size)) size = 0;
    size_t n = size / sizeof *groups;
    groups[n++] = peer.gid;
    ad__principals_user(f->principals, peer.uid, n, groups, out->who, &out->grants);
    if (!f->embedded && !ad__users_are_distinct(peer.uid) && !ad__principals_names(f->principals, out->who))
        return ad__fault(fault, AD_E_DENIED,
                         "the server's user namespace has no number for you, so it cannot tell you from others; a line "
                         "for %s in the file of option principals lets all such users in as one",
                         out->who);
    return 0;
}

/* Make a server that has come by a token with the grant peer the principal for whom it comes. It may attach what it has
 * capabilities of, and nothing else. AD_E_DENIED. */
static int enter_for(const ad_front *f, ad_string who, ad_entrant *out, ad_fault *fault) {
    if (!(out->grants.may & AD_GRANT_PEER))
        return ad__fault(fault, AD_E_DENIED, "%s may not come for other principals (grant peer)", out->who);
    if (!who.size || who.size >= AD_PRINCIPAL_SIZE)
        return ad__fault(fault, AD_E_DENIED, "a server comes for a principal of 1 to %d letters",
                         AD_PRINCIPAL_SIZE - 1);
    snprintf(out->who, sizeof out->who, "%.*s", (int)who.size, who.data);
    out->grants = ad__grants_of_nobody(out->who);
    out->grants.may = AD_GRANT_CONNECT | AD_GRANT_PEER;
    out->grants.each = PEER_MEMORY;
    if (strcmp(f->config.domains, "principal") || ad__domain_named(f, out->who)) return 0;
    return ad__fault(fault, AD_E_DENIED, "%s has no arrays here", out->who);
}

static int check_token(const ad_front *f, ad_string token, ad_entrant *out, ad_fault *fault) {
    const char *slash = memchr(token.data, '/', token.size);
    bool known = ad__token_formed(token.data, token.size) &&
                 ad__principals_token(f->principals, token.data, token.size, out->who, &out->grants, &out->expires);
    const bool is_peer = !known && slash && ad__token_formed(token.data, (size_t)(slash - token.data));
    if (is_peer)
        known = ad__principals_token(f->principals, token.data, (size_t)(slash - token.data), out->who, &out->grants,
                                     &out->expires);
    if (!known) return ad__fault(fault, AD_E_DENIED, "this server does not know the token");
    snprintf(out->token, sizeof out->token, "%s", out->who);
    const bool expired = out->expires && out->expires <= time(NULL);
    if (is_peer && !expired)
        return enter_for(f, (ad_string){slash + 1, token.size - (size_t)(slash + 1 - token.data)}, out, fault);
    out->grants.may &= ~(uint64_t)AD_GRANT_PEER;
    if (!expired) return 0;
    return ad__fault(fault, AD_E_DENIED, "the token of %s has expired: ask the server's administrator for another one",
                     out->who);
}

/* ---- tokens that end ---- */

#define EXPIRED "the token has expired"

/* End the sessions of tokens that have expired, and refuse clients that wait. */
static void on_expiry_timer(uv_timer_t *timer) {
    ad_front *f = timer->data;
    const int64_t now = time(NULL);
    ad__handshake_refuse_expired(f, now, EXPIRED);
    ad__session_entry_end_expired(f, now, EXPIRED);
}

static void watch_expiry(ad_front *f) {
    uv_timer_t *t = &f->timers.expiry;
    t->data = f;
    ad__session_entry_renew(f);
    if (f->entries.first || ad__principals_expire(f->principals)) uv_timer_start(t, on_expiry_timer, 0, EXPIRY_MS);
    else uv_timer_stop(t);
    uv_unref((uv_handle_t *)t);
}

uint64_t ad__entrance_dismiss(ad_front *f, const char *who, const char *why) {
    ad__handshake_refuse_all(f, who, why);
    const uint64_t n = ad__session_entry_end(f, who, why);
    if (n) ad__log(sessions_dismissed, who, n, why);
    return n;
}

/* Identify a client that does not come over the Unix socket. A token that it shows must be right, whatever else it
 * shows. AD_E_DENIED. */
static int check_stranger(const ad_front *f, ad_way way, ad_string token, const char *certificate, ad_entrant *out,
                          ad_fault *fault) {
    if (token.size) return check_token(f, token, out, fault);
    if (certificate) {
        if (ad__principals_certificate(f->principals, certificate, out->who, &out->grants)) return 0;
        return ad__fault(fault, AD_E_DENIED, "the name in the certificate is longer than %d bytes",
                         AD_PRINCIPAL_SIZE - 6);
    }
    if (way == AD_WAY_TCP && f->config.tcp_open) {
        snprintf(out->who, sizeof out->who, "tcp:anonymous");
        out->grants = ad__grants_of_nobody(out->who);
        return 0;
    }
    return ad__fault(fault, AD_E_DENIED, "the server wants a token%s, and was shown none",
                     way == AD_WAY_TLS && *f->config.tls_ca ? " or a certificate" : "");
}

/* Limit principals without numbers of their own by the options. Root and the server's own user, who is often alone
 * here, have no such limits. */
static void apply_default_limits(const ad_front *f, ad_entrant *who) {
    if (f->embedded || ad__is_server_user_or_root(who->who)) return;
    if (!who->grants.sessions) who->grants.sessions = f->config.sessions_each;
    if (!who->grants.names) who->grants.names = f->config.published_each;
}

int ad__entrance_check(const ad_front *f, ad_way way, int fd, ad_string token, const char *certificate, ad_entrant *out,
                       ad_fault *fault) {
    out->token[0] = 0;
    out->expires = 0;
    int status =
        way == AD_WAY_UNIX ? check_user(f, fd, out, fault) : check_stranger(f, way, token, certificate, out, fault);
    if (status) return status;
    if (way == AD_WAY_UNIX || !token.size) out->grants.may &= ~(uint64_t)AD_GRANT_PEER; /* only tokens name others */
    apply_default_limits(f, out);
    if (out->grants.may & AD_GRANT_CONNECT) return 0;
    return ad__fault(fault, AD_E_DENIED, "%s may not connect to this server", out->who);
}

bool ad__entrance_admin(const ad_front *f, int fd, ad_entrant *out) {
    *out = (ad_entrant){0};
    return check_user(f, fd, out, NULL) == 0 && out->grants.may & AD_GRANT_ADMIN;
}

/* ---- the log ---- */

void ad__entrance_refused(ad_front *f, const char *who, const char *from, const char *why) {
    ad_rate *r = &f->refusals;
    int64_t now = ad__os_now();
    if (now - r->since >= 1000000000) {
        if (r->count > MOST_REFUSALS) ad__log(more_clients_refused, r->count - MOST_REFUSALS);
        *r = (ad_rate){.since = now};
    }
    f->observability.refused++;
    if (++r->count > MOST_REFUSALS) return;
    ad__log(client_refused, who, from, why);
}
