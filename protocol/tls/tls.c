/* TLS connections: see tls.h. */
#include "protocol/tls/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/tls/openssl.h"

struct ad_tls {
    const ad_openssl *ssl;
    SSL *connection;
    ad_wire wire;
    bool wants_write, met_other, is_client;
};

/* ---- what went wrong ---- */

static const char *describe_reason(const ad_openssl *ssl, unsigned long error) {
    const char *text = ssl->ERR_reason_error_string(error);
    return text ? text : "it is not known why";
}

/* Take OpenSSL's first error, and clear the thread's error queue, which other users of it expect empty. */
static unsigned long take_error(const ad_openssl *ssl) {
    unsigned long error = ssl->ERR_get_error();
    ssl->ERR_clear_error();
    return error;
}

/* Tell whether what came had not the form of TLS. */
static bool is_other_protocol(unsigned long error) {
    const int reason = ERR_GET_REASON(error);
    return reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_PACKET_LENGTH_TOO_LONG ||
           reason == SSL_R_HTTP_REQUEST || reason == SSL_R_HTTPS_PROXY_REQUEST;
}

/* Say how a client comes to trust a server whose certificate no authority that it knows has signed. */
static const char *advise_trust(const ad_tls *t, long result) {
    bool unknown = result == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT || result == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN ||
                   result == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY ||
                   result == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE;
    if (!unknown || !t->is_client) return "";
    return "; use the url that `arrayctl invite` prints on the server, or name the file of its authority (ARRAYD_CA)";
}

static int report_verify_error(ad_tls *t, ad_fault *fault) {
    long result = t->ssl->SSL_get_verify_result(t->connection);
    unsigned long error = take_error(t->ssl);
    const char *why = describe_reason(t->ssl, error);
    if (result == X509_V_ERR_APPLICATION_VERIFICATION)
        return ad__fault(fault, AD_E_TLS,
                         "TLS: the server's key is not the one that the url names (#sha256:...), and nothing was sent: "
                         "another server answers there, or its key is new. Ask its administrator for a new url");
    if (result != X509_V_OK)
        return ad__fault(fault, AD_E_TLS, "TLS: the certificate is refused: %s%s",
                         t->ssl->X509_verify_cert_error_string(result), advise_trust(t, result));
    if ((t->met_other = is_other_protocol(error)))
        return ad__fault(fault, AD_E_TLS,
                         "TLS: the other end does not speak TLS (%s): an address tls: is that of option tls, and tcp: "
                         "that of option tcp",
                         why);
    return ad__fault(fault, AD_E_TLS, "TLS: %s", why);
}

/* Convert the result of a call that did not succeed. 0: not yet; AD_E_TLS, AD_E_CONNECTION. */
static int convert_result(ad_tls *t, int result, int error, ad_fault *fault) {
    switch (t->ssl->SSL_get_error(t->connection, result)) {
    case SSL_ERROR_WANT_READ: t->wants_write = false; return 0;
    case SSL_ERROR_WANT_WRITE: t->wants_write = true; return 0;
    case SSL_ERROR_ZERO_RETURN: return ad__fault(fault, AD_E_CONNECTION, "the other end has closed the connection");
    case SSL_ERROR_SYSCALL:
        t->ssl->ERR_clear_error();
        return ad__fault(fault, AD_E_CONNECTION, "%s", error ? strerror(error) : "the other end has gone");
    default: return report_verify_error(t, fault);
    }
}

/* ---- a connection ---- */

static int set_host(ad_tls *t, const char *host, ad_fault *fault) {
    unsigned char address[16];
    SSL *s = t->connection;
    bool is_address = inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
    bool ok;
    if (is_address) {
        ok = t->ssl->X509_VERIFY_PARAM_set1_ip_asc(t->ssl->SSL_get0_param(s), host);
    } else {
        t->ssl->SSL_set_hostflags(s, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
        ok = t->ssl->SSL_set1_host(s, host) &&
             t->ssl->SSL_ctrl(s, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, (void *)(uintptr_t)host);
    }
    return ok ? 0
              : ad__fault(fault, AD_E_TLS, "TLS: \"%.100s\" is no name of a host: %s", host,
                          describe_reason(t->ssl, take_error(t->ssl)));
}

static int set_wire(ad_tls *t, const int *fd) {
    BIO *b = t->ssl->BIO_new(t->ssl->wire);
    if (!b) return AD_E_MEMORY;
    t->wire.fd = fd;
    t->ssl->BIO_set_data(b, &t->wire);
    t->ssl->BIO_set_init(b, 1);
    t->ssl->SSL_set_bio(t->connection, b, b);
    return 0;
}

int ad__tls_open(ad_tls_context *c, const int *fd, const char *host, ad_tls **out, ad_fault *fault) {
    ad_tls *t = calloc(1, sizeof *t);
    int status = t ? ad__openssl_load(&t->ssl, fault) : AD_E_MEMORY;
    if (!status && !(t->connection = t->ssl->SSL_new((SSL_CTX *)c))) status = AD_E_MEMORY;
    if (!status) status = set_wire(t, fd);
    if (status == AD_E_MEMORY) ad__fault(fault, status, "out of memory");
    if (!status && host) status = set_host(t, host, fault);
    if (status) {
        ad__tls_close(t);
        return status;
    }
    t->is_client = host != NULL;
    if (host) t->ssl->SSL_set_connect_state(t->connection);
    else t->ssl->SSL_set_accept_state(t->connection);
    *out = t;
    return 0;
}

void ad__tls_close(ad_tls *t) {
    if (!t) return;
    if (t->connection) t->ssl->SSL_free(t->connection);
    free(t);
}

int ad__tls_handshake(ad_tls *t, ad_fault *fault) {
    t->ssl->ERR_clear_error();
    errno = 0;
    int result = t->ssl->SSL_do_handshake(t->connection), error = errno;
    return result == 1 ? 1 : convert_result(t, result, error, fault);
}

ssize_t ad__tls_read(ad_tls *t, void *data, size_t size, ad_fault *fault) {
    size_t n = 0;
    t->ssl->ERR_clear_error();
    errno = 0;
    int result = t->ssl->SSL_read_ex(t->connection, data, size, &n), error = errno;
    return result == 1 ? (ssize_t)n : convert_result(t, result, error, fault);
}

ssize_t ad__tls_write(ad_tls *t, const void *data, size_t size, ad_fault *fault) {
    size_t n = 0;
    t->ssl->ERR_clear_error();
    errno = 0;
    t->wire.more = size > SSL3_RT_MAX_PLAIN_LENGTH; /* SSL_write_ex sends one record */
    int result = t->ssl->SSL_write_ex(t->connection, data, size, &n), error = errno;
    t->wire.more = false;
    return result == 1 ? (ssize_t)n : convert_result(t, result, error, fault);
}

int ad__tls_say_goodbye(ad_tls *t) {
    t->ssl->ERR_clear_error();
    errno = 0;
    int result = t->ssl->SSL_shutdown(t->connection), error = errno;
    return result >= 0 ? 1 : convert_result(t, result, error, NULL);
}

bool ad__tls_wants_write(const ad_tls *t) { return t->wants_write; }

bool ad__tls_met_other_protocol(const ad_tls *t) { return t->met_other; }

/* ---- who the other end is ---- */

/* Copy a name. False: it is too long, or not printable ASCII without blanks, as names go into logs and
 * configuration. */
static bool copy_name(const char *text, int size, char name[AD_TLS_NAME]) {
    if (size <= 0 || size >= AD_TLS_NAME) return false;
    for (int i = 0; i < size; i++)
        if (text[i] <= ' ' || text[i] > '~') return false;
    memcpy(name, text, (size_t)size);
    name[size] = 0;
    return true;
}

static bool read_common_name(const ad_openssl *ssl, X509 *x, char name[AD_TLS_NAME]) {
    char text[AD_TLS_NAME];
    int n = ssl->X509_NAME_get_text_by_NID(ssl->X509_get_subject_name(x), NID_commonName, text, sizeof text);
    return n > 0 && copy_name(text, n, name);
}

static bool read_alternative_name(const ad_openssl *ssl, X509 *x, char name[AD_TLS_NAME]) {
    GENERAL_NAMES *list = ssl->X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
    bool found = false;
    for (int i = 0; list && !found && i < ssl->OPENSSL_sk_num((const OPENSSL_STACK *)list); i++) {
        const GENERAL_NAME *g = ssl->OPENSSL_sk_value((const OPENSSL_STACK *)list, i);
        if (g->type != GEN_DNS && g->type != GEN_EMAIL) continue;
        found = copy_name((const char *)ssl->ASN1_STRING_get0_data(g->d.ia5), ssl->ASN1_STRING_length(g->d.ia5), name);
    }
    if (list) ssl->GENERAL_NAMES_free(list);
    return found;
}

bool ad__tls_peer(ad_tls *t, char name[AD_TLS_NAME], ad_fault *fault) {
    X509 *x = t->ssl->SSL_get1_peer_certificate(t->connection);
    if (!x) return false;
    *name = 0;
    if (!read_common_name(t->ssl, x, name) && !read_alternative_name(t->ssl, x, name))
        ad__fault(fault, AD_E_TLS,
                  "TLS: the certificate has no common name, DNS name or mail address of printable ASCII");
    t->ssl->X509_free(x);
    return true;
}
