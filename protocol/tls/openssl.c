/* Loading OpenSSL, and its access to sockets: see openssl.h. */
#include "protocol/tls/openssl.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>

#include "protocol/tls/tls.h"

static const char *const names[] = {
#define AD_OPENSSL(name) #name,
#include "protocol/tls/openssl.def"
#undef AD_OPENSSL
};
enum { COUNT = sizeof names / sizeof *names };

static ad_openssl loaded;
static ad_fault failure;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- the socket, as OpenSSL sees it ---- */

static int finish_transfer(BIO *b, ssize_t n, size_t *done, int retry) {
    loaded.BIO_clear_flags(b, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
    *done = n > 0 ? (size_t)n : 0;
    if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS))
        loaded.BIO_set_flags(b, retry | BIO_FLAGS_SHOULD_RETRY);
    return n > 0;
}

static int wire_read(BIO *b, char *data, size_t size, size_t *done) {
    const ad_wire *w = loaded.BIO_get_data(b);
    return finish_transfer(b, recv(*w->fd, data, size, MSG_DONTWAIT), done, BIO_FLAGS_READ);
}

static int wire_write(BIO *b, const char *data, size_t size, size_t *done) {
    const ad_wire *w = loaded.BIO_get_data(b);
    const int flags = MSG_DONTWAIT | MSG_NOSIGNAL | (w->more ? MSG_MORE : 0);
    return finish_transfer(b, send(*w->fd, data, size, flags), done, BIO_FLAGS_WRITE);
}

static long wire_control(BIO *b, int command, long number, void *pointer) {
    (void)b, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static int make_wire(void) {
    loaded.wire = loaded.BIO_meth_new(BIO_TYPE_SOURCE_SINK, "arrayd");
    if (!loaded.wire || !loaded.BIO_meth_set_read_ex(loaded.wire, wire_read) ||
        !loaded.BIO_meth_set_write_ex(loaded.wire, wire_write) || !loaded.BIO_meth_set_ctrl(loaded.wire, wire_control))
        return ad__fault(&failure, AD_E_MEMORY, "out of memory");
    return 0;
}

/* ---- loading ---- */

static int find_functions(void *library) {
    void **member = (void **)&loaded; /* the pointers to functions, in the order of the table */
    _Static_assert(offsetof(ad_openssl, wire) == COUNT * sizeof(void *), "one pointer for each row");
    for (int i = 0; i < COUNT; i++)
        if (!(member[i] = dlsym(library, names[i])))
            return ad__fault(&failure, AD_E_TLS, "TLS: OpenSSL has no function %s", names[i]);
    return 0;
}

/* Load and initialise libssl. It stays loaded without clean-up at exit, as other threads may use it then. */
static void load_openssl(void) {
    void *library = ad__openssl_open("ssl");
    if (!library) {
        ad__fault(&failure, AD_E_TLS, "TLS needs OpenSSL 3, which cannot be loaded: %s", dlerror());
        return;
    }
    if (find_functions(library)) return;
    if (!loaded.OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL))
        ad__fault(&failure, AD_E_TLS, "TLS: OpenSSL cannot be initialised");
    else make_wire();
}

int ad__openssl_load(const ad_openssl **out, ad_fault *fault) {
    pthread_once(&once, load_openssl);
    if (failure.code) return ad__fault(fault, failure.code, "%s", failure.text);
    *out = &loaded;
    return 0;
}

const ad_openssl *ad__openssl_loaded(void) { return &loaded; }
