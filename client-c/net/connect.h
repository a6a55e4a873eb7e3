/* Declarations of what connects to servers: addresses, credentials, TLS, sockets. Included by session.h. */
#ifndef AD_CLIENT_C_NET_CONNECT_H
#define AD_CLIENT_C_NET_CONNECT_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "arrayd.h"
#include "protocol/tls/digest.h"

/* Whether there can be a server on this machine. Servers run on Linux; other systems reach them over a network. */
#ifndef AD_LOCAL_SERVERS
#ifdef __linux__
#define AD_LOCAL_SERVERS true
#else
#define AD_LOCAL_SERVERS false
#endif
#endif

/* ---- net/url.c: addresses of servers ---- */
#define AD_TOKEN_SIZE 257
typedef enum ad_transport { AD_URL_UNIX, AD_URL_TCP, AD_URL_TLS, AD_URL_EMBEDDED } ad_transport;
typedef struct ad_server_address {
    ad_transport transport;
    char url[256];  /* URL as it is shown to the user */
    char host[128]; /* path of a Unix socket, host, or backend of an embedded server */
    char port[16];
    /* Of a url as arrayctl invite prints it, tls://token@host:port#sha256:pin. */
    char token[AD_TOKEN_SIZE]; /* "": none; it is not kept in the session */
    bool pinned;
    uint8_t pin[AD_SHA256_SIZE]; /* hash of the server's public key */
} ad_server_address;
/* AD_E_URL. */
int ad__url_parse(const char *url, ad_server_address *out);
/* List the addresses that are tried in turn when no URL was given, and return their number. The last one is embedded.
 * There are none where all servers are on other machines. */
#define AD_URL_CANDIDATES 3
int ad__url_candidates(ad_server_address out[AD_URL_CANDIDATES]);

/* Tell whether the server may run on another machine, with which no memory can be shared. */
static inline bool ad__is_remote(const ad_server_address *a) {
    return a->transport == AD_URL_TCP || a->transport == AD_URL_TLS;
}

/* ---- net/credentials.c: proof of the user's identity ---- */
typedef struct ad_credentials {
    char token[AD_TOKEN_SIZE]; /* "": there is none */
    char ca[1024], cert[1024], key[1024];
    char name[65]; /* name of this program */
} ad_credentials;
/* Collect the credentials that the address needs. They come from the options (NULL: none), else from the environment,
 * else from the user's file. No message shows the token.
 * AD_E_VALUE, AD_E_SYSTEM; AD_E_DENIED: other users may read the token file. */
int ad__credentials_find(const ad_server_address *address, const ad_connection *options, ad_credentials *out);
/* Overwrite the credentials in memory. */
void ad__credentials_forget(ad_credentials *c);

/* ---- net/secure.c: TLS ---- */
typedef struct ad_secure ad_secure;
/* Begin TLS over the socket *fd. The pointer fd must stay valid until the close.
 * AD_E_TLS, AD_E_TIMEOUT, AD_E_CONNECTION, AD_E_MEMORY. */
int ad__secure_open(const ad_server_address *address, const ad_credentials *c, uint64_t deadline, const int *fd,
                    ad_secure **out);
void ad__secure_close(ad_secure *s);
/* Receive and send as recv and sendmsg do, without raising SIGPIPE. Any thread. */
ssize_t ad__secure_receive(ad_secure *s, void *data, size_t size, int flags);
ssize_t ad__secure_send(ad_secure *s, const struct iovec *part);
/* Describe the last failure of these two. */
void ad__secure_error(ad_secure *s, char *out, size_t size);

/* ---- net/connect.c, net/denied.c, net/embedded.c: sockets ---- */
/* An embedded server: a child process of this one, see net/embedded.c. */
typedef struct ad_embedded {
    pid_t pid; /* 0: the server is not embedded, or is the child of this process's parent */
    int door;  /* socket through which the server gets further connections; -1: there is none */
} ad_embedded;
/* Open a connected socket, close-on-exec, over which nothing has been sent. An embedded server is started unless it has
 * a door already. deadline: in ad__now's time.
 * AD_E_CONNECTION: there is no server; AD_E_TIMEOUT, AD_E_DENIED, AD_E_SYSTEM. */
int ad__connect(const ad_server_address *address, uint64_t deadline, int *fd, ad_embedded *embedded);
/* Explain why a Unix socket may not be opened and what to do, as AD_E_DENIED. error: the errno of connect. */
int ad__fail_denied(const ad_server_address *address, int error);
/* Start an embedded server. backend: "auto" leaves the choice to the server. */
int ad__embedded_start(const char *backend, int *fd, ad_embedded *out);
/* Open another connection to a running embedded server. AD_E_CONNECTION: the server has ended. */
int ad__embedded_connect(const ad_embedded *e, int *fd);
/* Wait until an embedded server whose socket has been shut down ends, and kill it after two seconds. */
void ad__embedded_reap(ad_embedded *e);
/* Describe how an embedded server ended: "; the embedded arrayd exited with status 1". The text is "" when the server
 * still runs after two seconds. */
void ad__embedded_describe_exit(pid_t pid, char *text, size_t size);

#endif
