/* Certificates that are signed by themselves, for servers that clients know by their pin: see tls.h. */
#include <stdio.h>
#include <sys/random.h>

#include "protocol/tls/openssl.h"
#include "protocol/tls/tls.h"

#define VALID_SECONDS (3650L * 24 * 3600) /* clients check the key, not the date */

static bool set_serial(const ad_openssl *ssl, X509 *x) {
    uint64_t number;
    return getrandom(&number, sizeof number, 0) == (ssize_t)sizeof number &&
           ssl->ASN1_INTEGER_set_uint64(ssl->X509_get_serialNumber(x), number >> 1);
}

static bool set_name(const ad_openssl *ssl, X509 *x, const char *name) {
    X509_NAME *subject = ssl->X509_get_subject_name(x);
    return ssl->X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)name, -1, -1, 0) &&
           ssl->X509_set_issuer_name(x, subject);
}

static bool add_dns_name(const ad_openssl *ssl, X509 *x, const char *name) {
    char text[300];
    snprintf(text, sizeof text, "DNS:%.250s", name);
    X509_EXTENSION *e = ssl->X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, text);
    const bool good = e && ssl->X509_add_ext(x, e, -1);
    if (e) ssl->X509_EXTENSION_free(e);
    return good;
}

static bool fill_certificate(const ad_openssl *ssl, X509 *x, EVP_PKEY *key, const char *name) {
    return ssl->X509_set_version(x, 2) && set_serial(ssl, x) && ssl->X509_gmtime_adj(ssl->X509_getm_notBefore(x), 0) &&
           ssl->X509_gmtime_adj(ssl->X509_getm_notAfter(x), VALID_SECONDS) && ssl->X509_set_pubkey(x, key) &&
           set_name(ssl, x, name) && add_dns_name(ssl, x, name) && ssl->X509_sign(x, key, NULL) > 0;
}

static bool write_pem(const ad_openssl *ssl, X509 *x, EVP_PKEY *key, ad_bytes *out) {
    char *text = NULL;
    BIO *b = ssl->BIO_new(ssl->BIO_s_mem());
    bool good = b && ssl->PEM_write_bio_PrivateKey(b, key, NULL, NULL, 0, NULL, NULL) && ssl->PEM_write_bio_X509(b, x);
    const long n = good ? ssl->BIO_ctrl(b, BIO_CTRL_INFO, 0, &text) : 0;
    if (n > 0) ad__bytes_append(out, text, (size_t)n);
    if (b) ssl->BIO_free(b);
    return n > 0 && !out->failed;
}

int ad__tls_make_certificate(const char *name, ad_bytes *out, ad_fault *fault) {
    const ad_openssl *ssl;
    int status = ad__openssl_load(&ssl, fault);
    if (status) return status;
    EVP_PKEY *key = ssl->EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    X509 *x = ssl->X509_new();
    const bool good = key && x && fill_certificate(ssl, x, key, name) && write_pem(ssl, x, key, out);
    if (!good) {
        const char *why = ssl->ERR_reason_error_string(ssl->ERR_get_error());
        status = ad__fault(fault, AD_E_TLS, "TLS: a certificate cannot be made: %s", why ? why : "out of memory");
    }
    ssl->ERR_clear_error();
    if (x) ssl->X509_free(x);
    if (key) ssl->EVP_PKEY_free(key);
    return status;
}
