/* OpenSSL, loaded when it is first needed: programs that do not use tls: run where it is not installed. */
#ifndef AD_TLS_OPENSSL_H
#define AD_TLS_OPENSSL_H

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "protocol/base.h"

/* The socket of an ad_tls, as its BIO finds it. */
typedef struct ad_wire {
    const int *fd;
    bool more; /* another record follows at once, so the kernel need not send this one alone */
} ad_wire;

typedef struct ad_openssl {
#define AD_OPENSSL(name) __typeof__(&(name)) name;
#include "protocol/tls/openssl.def"
#undef AD_OPENSSL
    BIO_METHOD *wire; /* reads and writes the socket of an ad_tls; it never blocks and raises no signal */
} ad_openssl;

/* Any thread: load OpenSSL, once in a process. AD_E_TLS: it is not there, or lacks a function. */
int ad__openssl_load(const ad_openssl **out, ad_fault *fault);
/* OpenSSL for those who have a context, which is made with it. */
const ad_openssl *ad__openssl_loaded(void);

#endif
