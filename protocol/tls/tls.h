/* TLS 1.3 over a connected socket, for both ends. Nothing here blocks or raises a signal; waiting is the caller's. */
#ifndef AD_TLS_H
#define AD_TLS_H

#include <sys/types.h>

#include "protocol/base.h"

typedef struct ad_tls_context ad_tls_context;
typedef struct ad_tls ad_tls;

#define AD_TLS_NAME 128

/* The files of one end, in PEM. */
typedef struct ad_tls_files {
    const char *certificate; /* with the chain below its root; NULL: none (a client) */
    const char *key;         /* NULL: it is in the file of the certificate */
    const char *ca; /* who may have signed the other end's; NULL: a client asks the system's, a server nobody */
} ad_tls_files;

/* What many connections share. AD_E_TLS, AD_E_MEMORY; the fault names the file. */
int ad__tls_server(const ad_tls_files *files, ad_tls_context **out, ad_fault *fault);
int ad__tls_client(const ad_tls_files *files, ad_tls_context **out, ad_fault *fault);
void ad__tls_context_free(ad_tls_context *c); /* connections keep what they need of it */

/* A connection over *fd, which must stay where it is and stays the caller's. host: of a client, whom the certificate
 * must name. */
int ad__tls_open(ad_tls_context *c, const int *fd, const char *host, ad_tls **out, ad_fault *fault);
void ad__tls_close(ad_tls *t);

/* Not for two threads at a time. 1: done; 0: not yet, see ad__tls_wants_write; AD_E_TLS, AD_E_CONNECTION. */
int ad__tls_handshake(ad_tls *t, ad_fault *fault);
/* Bytes; 0: not yet; AD_E_CONNECTION: the other end has closed, with or without a word (then the fault says so);
 * AD_E_TLS. */
ssize_t ad__tls_read(ad_tls *t, void *data, size_t size, ad_fault *fault);
/* What gives 0 must be repeated with the same bytes, at least as many of them. */
ssize_t ad__tls_write(ad_tls *t, const void *data, size_t size, ad_fault *fault);
/* Tell the other end that nothing more comes. 1 told, 0 not yet, AD_E_CONNECTION. */
int ad__tls_say_goodbye(ad_tls *t);
/* The last 0 was because the socket cannot be written; else it cannot be read. */
bool ad__tls_wants_write(const ad_tls *t);

/* The name in the certificate that the other end has shown: the subject's common name, else its first DNS name or mail
 * address. False: it has shown none. AD_E_TLS in the fault: it has, but without a name that can be used. */
bool ad__tls_peer(ad_tls *t, char name[AD_TLS_NAME], ad_fault *fault);

#endif
