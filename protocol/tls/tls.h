/* TLS 1.3 over a connected socket, for both ends. Nothing here blocks or raises a signal: callers wait. */
#ifndef AD_TLS_H
#define AD_TLS_H

#include <sys/types.h>

#include "protocol/message.h"
#include "protocol/tls/digest.h"

typedef struct ad_tls_context ad_tls_context;
typedef struct ad_tls ad_tls;

#define AD_TLS_NAME 128

/* The files of one end, in PEM. */
typedef struct ad_tls_files {
    const char *certificate; /* certificate with the chain below its root; NULL: none (only for a client) */
    const char *key;         /* key; NULL: the certificate's file has it */
    const char
        *ca; /* authorities that sign the other end's certificate; NULL: a client trusts the system's, a server none */
    const uint8_t *pin; /* hash of the server's public key (ad__tls_pin), which then says who it is instead of `ca` and
                           its name; must stay until the handshake is over. NULL: none */
} ad_tls_files;

/* Name the files by paths, of which an empty one names none. */
static inline ad_tls_files ad__tls_files(const char *certificate, const char *key, const char *ca) {
    return (ad_tls_files){
        .certificate = *certificate ? certificate : NULL, .key = *key ? key : NULL, .ca = *ca ? ca : NULL};
}

/* Make a context for many connections. AD_E_TLS, AD_E_MEMORY; the fault names the file. */
int ad__tls_server(const ad_tls_files *files, ad_tls_context **out, ad_fault *fault);
int ad__tls_client(const ad_tls_files *files, ad_tls_context **out, ad_fault *fault);
void ad__tls_context_free(ad_tls_context *c); /* connections hold their own references */

/* Get the pin of a server's certificate: the SHA-256 of its public key (SubjectPublicKeyInfo, DER), which stays when
 * the certificate is made anew for the same key. AD_E_TLS, AD_E_MEMORY, AD_E_UNSUPPORTED. */
int ad__tls_pin(const ad_tls_context *c, uint8_t out[AD_SHA256_SIZE], ad_fault *fault);
/* Append a new key and a certificate for it, signed by itself, in PEM: of a server that clients know by its pin. name:
 * its common name and the DNS name that it is for. AD_E_TLS, AD_E_MEMORY. */
int ad__tls_make_certificate(const char *name, ad_bytes *out, ad_fault *fault);

/* Begin a connection over *fd, which the caller owns and must not move. host: only for a client: the name that the
 * certificate must have. AD_E_TLS, AD_E_MEMORY. */
int ad__tls_open(ad_tls_context *c, const int *fd, const char *host, ad_tls **out, ad_fault *fault);
void ad__tls_close(ad_tls *t);

/* Shake hands. One thread at a time. 1: done; 0: not yet, see ad__tls_wants_write; AD_E_TLS, AD_E_CONNECTION. */
int ad__tls_handshake(ad_tls *t, ad_fault *fault);
/* Read bytes. 0: none yet; AD_E_CONNECTION: the other end has closed, properly or not (the fault says which);
 * AD_E_TLS. */
ssize_t ad__tls_read(ad_tls *t, void *data, size_t size, ad_fault *fault);
/* Write bytes. 0: not yet: repeat the call with the same bytes, at least as many of them. AD_E_CONNECTION, AD_E_TLS. */
ssize_t ad__tls_write(ad_tls *t, const void *data, size_t size, ad_fault *fault);
/* Tell the other end that nothing more comes. 1: told; 0: not yet; AD_E_CONNECTION. */
int ad__tls_say_goodbye(ad_tls *t);
/* Tell whether the last 0 means that the socket cannot be written; otherwise it cannot be read. */
bool ad__tls_wants_write(const ad_tls *t);
/* Tell whether the handshake failed because what came was not TLS. OpenSSL sends no alert then. */
bool ad__tls_met_other_protocol(const ad_tls *t);

/* Get the name in the other end's certificate: the subject's common name, else its first DNS name or mail address.
 * False: there is no certificate. AD_E_TLS in the fault: there is one, but without a usable name. */
bool ad__tls_peer(ad_tls *t, char name[AD_TLS_NAME], ad_fault *fault);

#endif
