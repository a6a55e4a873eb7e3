/* OpenSSL whose functions fail: each one in turn, while a certificate is made, both ends are prepared, and bytes go
 * from one to the other. Each failure is an error that says why, and nothing crashes. The linker gives dlopen and dlsym
 * of the library to this file (Makefile, WRAPS_embedded). Passed over where there is no OpenSSL. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/tls/digest.h"
#include "protocol/tls/openssl.h"
#include "protocol/tls/tls.h"

/* ---- a function that fails at one of its calls ---- */

static const char *failing; /* its name, or that of a library that cannot be loaded */
static unsigned calls;      /* calls until it fails; 0: there is no such function */
static long failure;        /* what it returns then */
static long (*real)(long, long, long, long, long, long, long);

/* Call the real function, with as many arguments as any of them has, or fail: most do so by 0 or NULL. */
static long fail_or_call(long a, long b, long c, long d, long e, long f, long g) {
    return --calls ? real(a, b, c, d, e, f, g) : failure;
}

void *__real_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name) {
    void *found = __real_dlsym(library, name), *stub;
    if (!failing || strcmp(name, failing)) return found;
    if (!calls) return NULL;
    memcpy(&real, &found, sizeof found);
    long (*const ours)(long, long, long, long, long, long, long) = fail_or_call;
    memcpy(&stub, &ours, sizeof stub);
    return stub;
}

void *__real_dlopen(const char *path, int flags);
void *__wrap_dlopen(const char *path, int flags);
void *__wrap_dlopen(const char *path, int flags) {
    return __real_dlopen(failing && strstr(path, failing) ? "/nowhere/libnothing.so" : path, flags);
}

/* ---- what is done with OpenSSL ---- */

static char pem[64];

static int make_certificate(ad_fault *fault) {
    ad_bytes text = AD_BYTES_INIT;
    FILE *file = fopen(pem, "w");
    chmod(pem, 0600);
    int status = ad__tls_make_certificate("localhost", &text, fault);
    if (!status) fwrite(text.data, 1, text.size, file);
    fclose(file);
    ad__bytes_free(&text);
    return status;
}

/* Let both ends go on in turn until both have finished or one has failed. */
static int shake_hands(ad_tls *end[2], ad_fault *fault) {
    int done[2] = {0, 0};
    for (int i = 0; !(done[0] && done[1]); i ^= 1)
        if (!done[i] && (done[i] = ad__tls_handshake(end[i], fault)) < 0) return done[i];
    return 0;
}

static int exchange_bytes(ad_tls *end[2], ad_fault *fault) {
    char name[AD_TLS_NAME], got[8] = "";
    ssize_t n = ad__tls_write(end[0], "question", 8, fault);
    if (n > 0) n = ad__tls_read(end[1], got, sizeof got, fault);
    if (n < 0) return (int)n;
    if (n != 8 || memcmp(got, "question", 8)) return ad__fault(fault, AD_E_INTERNAL, "other bytes have come");
    if (!ad__tls_peer(end[1], name, fault)) return ad__fault(fault, AD_E_INTERNAL, "the client has no certificate");
    if (fault->code) return fault->code;
    return ad__tls_say_goodbye(end[0]) < 0 ? AD_E_CONNECTION : 0;
}

static int connect_ends(ad_tls_context *client, ad_tls_context *server, const char *host, ad_fault *fault) {
    int fd[2];
    ad_tls *end[2] = {NULL, NULL};
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    int status = ad__tls_open(client, &fd[0], host, &end[0], fault);
    if (!status) status = ad__tls_open(server, &fd[1], NULL, &end[1], fault);
    if (!status) status = shake_hands(end, fault);
    if (!status) status = exchange_bytes(end, fault);
    ad__tls_close(end[0]);
    ad__tls_close(end[1]);
    close(fd[0]);
    close(fd[1]);
    return status;
}

/* Make a certificate, and let a client and a server that both have it meet: by its pin, then by its name. */
static int use_openssl(ad_fault *fault) {
    uint8_t pin[AD_SHA256_SIZE], hash[AD_SHA256_SIZE];
    ad_tls_context *server = NULL, *client[2] = {NULL, NULL};
    int status = make_certificate(fault);
    if (!status) status = ad__tls_server(&(ad_tls_files){.certificate = pem, .ca = pem}, &server, fault);
    if (!status) status = ad__tls_pin(server, pin, fault);
    if (!status) status = ad__tls_client(&(ad_tls_files){.certificate = pem, .pin = pin}, &client[0], fault);
    if (!status) status = connect_ends(client[0], server, "127.0.0.1", fault);
    if (!status) status = ad__tls_client(&(ad_tls_files){.certificate = pem, .ca = pem}, &client[1], fault);
    if (!status) status = connect_ends(client[1], server, "localhost", fault);
    if (!status) status = ad__sha256(&(ad_digest_part){"abc", 3}, 1, hash, fault);
    ad__tls_context_free(server);
    ad__tls_context_free(client[0]);
    ad__tls_context_free(client[1]);
    return status;
}

/* Ask for what may not be there any more, of whatever status: nothing crashes. */
static void use_after_failure(void) {
    ad_tls_context *c[2] = {NULL, NULL};
    uint8_t pin[AD_SHA256_SIZE];
    if (!ad__tls_server(&(ad_tls_files){.certificate = pem}, &c[0], NULL)) ad__tls_pin(c[0], pin, NULL);
    ad__tls_client(&(ad_tls_files){0}, &c[1], NULL);
    ad__tls_context_free(c[0]);
    ad__tls_context_free(c[1]);
}

/* A client that trusts nobody in particular meets the server. */
static int meet_a_stranger(ad_fault *fault) {
    ad_tls_context *server = NULL, *client = NULL;
    int status = make_certificate(fault);
    if (!status) status = ad__tls_server(&(ad_tls_files){.certificate = pem}, &server, fault);
    if (!status) status = ad__tls_client(&(ad_tls_files){0}, &client, fault);
    if (!status) status = connect_ends(client, server, "::1", fault);
    ad__tls_context_free(server);
    ad__tls_context_free(client);
    return status;
}

/* ---- the tests ---- */

/* Functions that can fail, and at which of their calls. */
static const struct {
    const char *name;
    unsigned call;
} rows[] = {
    {"libssl", 1},
    {"libcrypto", 1},
    {"SSL_shutdown", 0},
    {"EVP_DigestFinal_ex", 0},
    {"OPENSSL_init_ssl", 1},
    {"BIO_meth_new", 1},
    {"BIO_meth_set_read_ex", 1},
    {"BIO_meth_set_write_ex", 1},
    {"BIO_meth_set_ctrl", 1},
    {"EVP_PKEY_Q_keygen", 1},
    {"X509_new", 1},
    {"X509_set_version", 1},
    {"ASN1_INTEGER_set_uint64", 1},
    {"X509_gmtime_adj", 1},
    {"X509_gmtime_adj", 2},
    {"X509_set_pubkey", 1},
    {"X509_NAME_add_entry_by_txt", 1},
    {"X509_set_issuer_name", 1},
    {"X509V3_EXT_conf_nid", 1},
    {"X509_add_ext", 1},
    {"X509_sign", 1},
    {"BIO_new", 1},
    {"PEM_write_bio_PrivateKey", 1},
    {"PEM_write_bio_X509", 1},
    {"BIO_ctrl", 1},
    {"SSL_CTX_new", 1},
    {"SSL_CTX_new", 2},
    {"SSL_CTX_ctrl", 1},
    {"SSL_CTX_use_certificate_chain_file", 1},
    {"SSL_CTX_use_PrivateKey_file", 1},
    {"SSL_CTX_check_private_key", 1},
    {"SSL_CTX_load_verify_locations", 1},
    {"SSL_CTX_load_verify_locations", 2},
    {"SSL_load_client_CA_file", 1},
    {"SSL_CTX_get0_certificate", 1},
    {"i2d_X509_PUBKEY", 1},
    {"i2d_X509_PUBKEY", 2},
    {"X509_STORE_CTX_get0_cert", 1},
    {"SSL_new", 1},
    {"BIO_new", 2},
    {"X509_VERIFY_PARAM_set1_ip_asc", 1},
    {"SSL_set1_host", 1},
    {"SSL_ctrl", 1},
    {"SSL_do_handshake", 1},
    {"SSL_read_ex", 1},
    {"SSL_write_ex", 1},
    {"SSL_get1_peer_certificate", 1},
    {"OPENSSL_init_crypto", 1},
    {"EVP_MD_fetch", 1},
    {"EVP_MD_CTX_new", 1},
    {"EVP_DigestInit_ex2", 1},
    {"EVP_DigestUpdate", 1},
    {"EVP_DigestFinal_ex", 1},
};

/* The names that a certificate may have instead of a common one, whose function then fails. */
static const char *const harmless[] = {"ERR_reason_error_string", "X509_NAME_get_text_by_NID"};

/* Return the exit status of a process in which the function fails: 0 where OpenSSL was used without a failure, 1 where
 * the failure was told. A process of its own, as OpenSSL is loaded once. */
static int use_in_child(const char *name, unsigned call) {
    int state;
    const pid_t pid = fork();
    if (pid == 0) {
        ad_fault fault = {0};
        failing = name;
        calls = call;
        int status = use_openssl(&fault);
        if (status) use_after_failure();
        exit(!status ? 0 : *fault.text ? 1 : 2);
    }
    cr_assert_eq(waitpid(pid, &state, 0), pid);
    return WIFEXITED(state) ? WEXITSTATUS(state) : -WTERMSIG(state);
}

static void set_up(void) {
    strcpy(pem, "/tmp/arrayd-test-XXXXXX");
    const int fd = mkstemp(pem);
    cr_assert_geq(fd, 0);
    close(fd);
    /* The real libraries are loaded here, so that each child need not. */
    if (!__real_dlopen("libssl.so.3", RTLD_NOW | RTLD_LOCAL)) cr_skip_test("no OpenSSL");
}

static void tear_down(void) { unlink(pem); }

TestSuite(embedded_openssl, .init = set_up, .fini = tear_down);

Test(embedded_openssl, each_function_that_fails_is_an_error) {
    cr_assert_eq(use_in_child(NULL, 0), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(use_in_child(rows[i].name, rows[i].call), 1, "%s, call %u", rows[i].name, rows[i].call);
}

Test(embedded_openssl, what_only_describes_may_fail) {
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        cr_expect_eq(use_in_child(harmless[i], 1), 0, "%s", harmless[i]);
}

Test(embedded_openssl, secrets_differ_where_they_cannot_be_compared) {
    int state;
    const pid_t pid = fork();
    if (pid == 0) {
        failing = "libcrypto";
        exit(ad__secret_differs("same", "same", 4) ? 0 : 1);
    }
    cr_assert_eq(waitpid(pid, &state, 0), pid);
    cr_expect(WIFEXITED(state) && WEXITSTATUS(state) == 0);
}

Test(embedded_openssl, certificates_that_cannot_be_made) {
    ad_bytes full = {.failed = true}, text = AD_BYTES_INIT;
    ad_fault fault = {0};
    cr_expect_eq(ad__tls_make_certificate("localhost", &full, &fault), AD_E_TLS);
    cr_expect_not_null(strstr(fault.text, "out of memory"), "%s", fault.text);
    cr_expect_eq(
        ad__tls_make_certificate("a name of more than the sixty-four letters that the common name of a certificate "
                                 "has",
                                 &text, &fault),
        AD_E_TLS);
    cr_expect_not_null(strstr(fault.text, "string too long"), "%s", fault.text);
    ad__bytes_free(&text);
}

/* What OpenSSL says of a certificate, and whether a client is told how to trust its server. */
Test(embedded_openssl, certificates_that_are_not_trusted) {
    static const struct {
        long result;
        bool advised;
    } results[] = {{X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, true},
                   {X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, true},
                   {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, true},
                   {X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, true},
                   {X509_V_ERR_CERT_HAS_EXPIRED, false}};
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        int state;
        const pid_t pid = fork();
        if (pid == 0) {
            ad_fault fault = {0};
            failing = "SSL_get_verify_result";
            calls = 1;
            failure = results[i].result;
            const int status = meet_a_stranger(&fault);
            exit(status != AD_E_TLS ? 2 : strstr(fault.text, "arrayctl invite") != NULL);
        }
        cr_assert_eq(waitpid(pid, &state, 0), pid);
        cr_expect(WIFEXITED(state) && WEXITSTATUS(state) == results[i].advised, "%ld", results[i].result);
    }
}

Test(embedded_openssl, a_goodbye_that_fails) {
    failing = "SSL_shutdown";
    failure = -1;
    calls = 1;
    int state;
    const pid_t pid = fork();
    if (pid == 0) {
        ad_fault fault = {0};
        exit(use_openssl(&fault) ? 1 : 0);
    }
    cr_assert_eq(waitpid(pid, &state, 0), pid);
    cr_expect(WIFEXITED(state) && WEXITSTATUS(state) == 1, "who says goodbye is told that the connection is broken");
}
