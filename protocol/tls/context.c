/* TLS contexts, which the connections of one end share: certificate, key, and trusted authorities. */
#include <string.h>

#include "protocol/owner.h"
#include "protocol/tls/openssl.h"
#include "protocol/tls/tls.h"

#define READ_AHEAD (64u << 10) /* bytes that are read from the socket at a time: several records */
#define CHAIN_MOST (32u << 10) /* most bytes of certificates that the other end may send */

static int report_file_error(const ad_openssl *ssl, const char *what, const char *path, ad_fault *fault) {
    unsigned long error = ssl->ERR_get_error();
    const char *why = ssl->ERR_reason_error_string(error);
    ssl->ERR_clear_error();
    return ad__fault(fault, AD_E_TLS, "TLS: %s %.120s: %s", what, path, why ? why : "cannot be used");
}

/* Give no password for a key: OpenSSL would ask on the terminal, and wait. */
static int refuse_password(char *out, int size, int writing, void *unused) {
    (void)out, (void)size, (void)writing, (void)unused;
    return 0;
}

static int create_context(const ad_openssl *ssl, const SSL_METHOD *method, SSL_CTX **out, ad_fault *fault) {
    SSL_CTX *c = ssl->SSL_CTX_new(method);
    if (!c) return ad__fault(fault, AD_E_MEMORY, "out of memory");
    if (!ssl->SSL_CTX_ctrl(c, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION, NULL)) {
        ssl->SSL_CTX_free(c);
        return ad__fault(fault, AD_E_TLS, "TLS: this OpenSSL has no TLS 1.3");
    }
    ssl->SSL_CTX_ctrl(c, SSL_CTRL_MODE, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER, NULL);
    ssl->SSL_CTX_ctrl(c, SSL_CTRL_SET_MAX_CERT_LIST, CHAIN_MOST, NULL);
    ssl->SSL_CTX_ctrl(c, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, NULL);
    ssl->SSL_CTX_ctrl(c, SSL_CTRL_SET_READ_AHEAD, 1, NULL);
    ssl->SSL_CTX_set_default_read_buffer_len(c, READ_AHEAD);
    ssl->SSL_CTX_set_options(c, SSL_OP_NO_TICKET);
    ssl->SSL_CTX_set_num_tickets(c, 0);
    ssl->SSL_CTX_set_default_passwd_cb(c, refuse_password);
    *out = c;
    return 0;
}

static int use_certificate(const ad_openssl *ssl, SSL_CTX *c, const ad_tls_files *files, ad_fault *fault) {
    const char *key = files->key ? files->key : files->certificate;
    if (!files->certificate) return 0;
    int status = ad__owner_check_path("TLS: key", key, fault);
    if (status) return status;
    if (ssl->SSL_CTX_use_certificate_chain_file(c, files->certificate) != 1)
        return report_file_error(ssl, "certificate", files->certificate, fault);
    if (ssl->SSL_CTX_use_PrivateKey_file(c, key, SSL_FILETYPE_PEM) != 1)
        return report_file_error(ssl, "key", key, fault);
    return ssl->SSL_CTX_check_private_key(c) == 1 ? 0 : report_file_error(ssl, "key", key, fault);
}

static int finish_context(const ad_openssl *ssl, SSL_CTX *c, int status, ad_tls_context **out) {
    if (status) ssl->SSL_CTX_free(c);
    else *out = (ad_tls_context *)c;
    return status;
}

/* Ask clients for certificates, which must be good if they are there; clients without one have a token. AD_E_TLS. */
static int request_client_certificates(const ad_openssl *ssl, SSL_CTX *c, const char *ca, ad_fault *fault) {
    if (!ca) return 0;
    STACK_OF(X509_NAME) *names = NULL;
    if (ssl->SSL_CTX_load_verify_locations(c, ca, NULL) != 1 || !(names = ssl->SSL_load_client_CA_file(ca)))
        return report_file_error(ssl, "certificates of", ca, fault);
    ssl->SSL_CTX_set_client_CA_list(c, names);
    ssl->SSL_CTX_set_verify(c, SSL_VERIFY_PEER, NULL);
    return 0;
}

int ad__tls_server(const ad_tls_files *files, ad_tls_context **out, ad_fault *fault) {
    const ad_openssl *ssl;
    SSL_CTX *c;
    int status = ad__openssl_load(&ssl, fault);
    if (status) return status;
    ssl->ERR_clear_error();
    if ((status = create_context(ssl, ssl->TLS_server_method(), &c, fault))) return status;
    status = use_certificate(ssl, c, files, fault);
    if (!status) status = request_client_certificates(ssl, c, files->ca, fault);
    return finish_context(ssl, c, status, out);
}

/* ---- pins ---- */

/* Hash the public key of a certificate. */
static int hash_public_key(const ad_openssl *ssl, X509 *x, uint8_t out[AD_SHA256_SIZE], ad_fault *fault) {
    uint8_t *bytes = NULL;
    const int n = ssl->i2d_X509_PUBKEY(ssl->X509_get_X509_PUBKEY(x), &bytes); /* makes the bytes */
    if (n <= 0) return ad__fault(fault, AD_E_MEMORY, "out of memory");
    const ad_digest_part part = {bytes, (size_t)n};
    int status = ad__sha256(&part, 1, out, fault);
    ssl->CRYPTO_free(bytes, "", 0);
    return status;
}

/* Decide in the handshake about a server's certificate, by its key alone. OpenSSL checks that the server has that key.
 */
static int verify_pin(X509_STORE_CTX *store, void *pin) {
    const ad_openssl *ssl = ad__openssl_loaded();
    uint8_t hash[AD_SHA256_SIZE];
    X509 *x = ssl->X509_STORE_CTX_get0_cert(store);
    const bool good = x && !hash_public_key(ssl, x, hash, NULL) && !ad__secret_differs(hash, pin, sizeof hash);
    ssl->X509_STORE_CTX_set_error(store, good ? X509_V_OK : X509_V_ERR_APPLICATION_VERIFICATION);
    return good;
}

int ad__tls_pin(const ad_tls_context *c, uint8_t out[AD_SHA256_SIZE], ad_fault *fault) {
    const ad_openssl *ssl = ad__openssl_loaded();
    X509 *x = ssl->SSL_CTX_get0_certificate((const SSL_CTX *)c);
    return x ? hash_public_key(ssl, x, out, fault) : ad__fault(fault, AD_E_TLS, "TLS: there is no certificate");
}

/* ---- clients ---- */

int ad__tls_client(const ad_tls_files *files, ad_tls_context **out, ad_fault *fault) {
    const ad_openssl *ssl;
    SSL_CTX *c;
    int status = ad__openssl_load(&ssl, fault);
    if (status) return status;
    ssl->ERR_clear_error();
    if ((status = create_context(ssl, ssl->TLS_client_method(), &c, fault))) return status;
    ssl->SSL_CTX_set_verify(c, SSL_VERIFY_PEER, NULL);
    if (files->pin) ssl->SSL_CTX_set_cert_verify_callback(c, verify_pin, (void *)(uintptr_t)files->pin);
    else if (!files->ca) ssl->SSL_CTX_set_default_verify_paths(c);
    else if (ssl->SSL_CTX_load_verify_locations(c, files->ca, NULL) != 1)
        status = report_file_error(ssl, "certificates of", files->ca, fault);
    if (!status) status = use_certificate(ssl, c, files, fault);
    return finish_context(ssl, c, status, out);
}

void ad__tls_context_free(ad_tls_context *c) {
    if (c) ad__openssl_loaded()->SSL_CTX_free((SSL_CTX *)c);
}
