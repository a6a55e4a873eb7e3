/* SHA-256 and comparing secrets: see digest.h. */
#include "protocol/tls/digest.h"

#include <dlfcn.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static struct {
    __typeof__(&OPENSSL_init_crypto) init;
    __typeof__(&EVP_MD_fetch) fetch;
    __typeof__(&EVP_MD_CTX_new) begin;
    __typeof__(&EVP_DigestInit_ex2) set;
    __typeof__(&EVP_DigestUpdate) add;
    __typeof__(&EVP_DigestFinal_ex) finish;
    __typeof__(&EVP_MD_CTX_free) end;
    __typeof__(&CRYPTO_memcmp) compare;
} crypto;

static const char *const names[] = {"OPENSSL_init_crypto", "EVP_MD_fetch",     "EVP_MD_CTX_new",
                                    "EVP_DigestInit_ex2",  "EVP_DigestUpdate", "EVP_DigestFinal_ex",
                                    "EVP_MD_CTX_free",     "CRYPTO_memcmp"};
_Static_assert(sizeof crypto == sizeof names, "one name for each function");

static EVP_MD *sha256;
static ad_fault missing;
static pthread_once_t loaded = PTHREAD_ONCE_INIT, prepared = PTHREAD_ONCE_INIT;

/* Where the libraries lie, in the order in which they are tried: on macOS they are Homebrew's. */
static const char *const places[] = {
#ifdef __APPLE__
    "/opt/homebrew/opt/openssl@3/lib/lib%s.3.dylib",
    "/usr/local/opt/openssl@3/lib/lib%s.3.dylib",
    "lib%s.3.dylib",
#else
    "lib%s.so.3",
#endif
};

void *ad__openssl_open(const char *name) {
    char path[80];
    void *library = NULL;
    for (size_t i = 0; i < sizeof places / sizeof *places && !library; i++) {
        snprintf(path, sizeof path, places[i], name);
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return library;
}

/* Load libcrypto, which stays loaded, as other threads may use it when the process ends. */
static void load_library(void) {
    void **member = (void **)&crypto;
    void *library = ad__openssl_open("crypto");
    if (!library) {
        ad__fault(&missing, AD_E_UNSUPPORTED, "OpenSSL 3 cannot be loaded: %s (Debian's package is libssl3)",
                  dlerror());
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!(member[i] = dlsym(library, names[i])))
            ad__fault(&missing, AD_E_UNSUPPORTED, "libcrypto.so.3 has no function %s", names[i]);
}

int ad__crypto_load(ad_fault *fault) {
    pthread_once(&loaded, load_library);
    return missing.code ? ad__fault(fault, missing.code, "%s", missing.text) : 0;
}

/* Prepare SHA-256, which comparing does not need and which takes as long as loading. */
static void prepare_digests(void) {
    if (crypto.init(OPENSSL_INIT_NO_ATEXIT, NULL)) sha256 = crypto.fetch(NULL, "SHA2-256", NULL);
}

int ad__sha256(const ad_digest_part *parts, size_t n, uint8_t out[AD_SHA256_SIZE], ad_fault *fault) {
    int status = ad__crypto_load(fault);
    if (status) return status;
    pthread_once(&prepared, prepare_digests);
    if (!sha256) return ad__fault(fault, AD_E_UNSUPPORTED, "libcrypto.so.3 has no SHA-256");
    EVP_MD_CTX *c = crypto.begin();
    bool good = c && crypto.set(c, sha256, NULL);
    for (size_t i = 0; good && i < n; i++) good = !parts[i].size || crypto.add(c, parts[i].data, parts[i].size);
    good = good && crypto.finish(c, out, NULL);
    crypto.end(c);
    return good ? 0 : ad__fault(fault, AD_E_MEMORY, "SHA-256: out of host memory");
}

void ad__sha256_text(const uint8_t hash[AD_SHA256_SIZE], char out[2 * AD_SHA256_SIZE + 1]) {
    for (int i = 0; i < AD_SHA256_SIZE; i++) {
        out[2 * i] = "0123456789abcdef"[hash[i] >> 4];
        out[2 * i + 1] = "0123456789abcdef"[hash[i] & 15];
    }
    out[2 * AD_SHA256_SIZE] = 0;
}

static int parse_hex_digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

bool ad__sha256_parse(const char *text, uint8_t out[AD_SHA256_SIZE]) {
    if (strncmp(text, "sha256:", 7) != 0 || strlen(text += 7) != 2 * AD_SHA256_SIZE) return false;
    for (int i = 0; i < AD_SHA256_SIZE; i++) {
        const int high = parse_hex_digit(text[2 * i]), low = parse_hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0) return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

bool ad__secret_differs(const void *a, const void *b, size_t size) {
    return ad__crypto_load(NULL) || crypto.compare(a, b, size) != 0;
}
