/* The option self-signed: the server makes its own key, certificate and file of tokens where they are missing. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/common/log.h"
#include "server/common/os.h"
#include "server/front/front.h"
#include "server/front/net/address.h"

#define OPTION "option self-signed"
#define MOST_PATH 1024

/* Find the folder for files that no option names, and make it. */
static int find_folder(char out[MOST_PATH], ad_fault *fault) {
    const char *service = getenv("STATE_DIRECTORY"), *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (service && *service == '/') n = snprintf(out, MOST_PATH, "%s", service); /* set by systemd */
    else if (state && *state == '/') n = snprintf(out, MOST_PATH, "%s/arrayd", state);
    else if (geteuid() == 0) n = snprintf(out, MOST_PATH, "/var/lib/arrayd");
    else if (home && *home == '/') n = snprintf(out, MOST_PATH, "%s/.local/state/arrayd", home);
    if (n < 0 || n >= MOST_PATH - 32)
        return ad__fault(fault, AD_E_VALUE, OPTION ": name the files tls-cert and tokens, as there is no $HOME");
    return ad__os_make_folder(out)
               ? ad__fault(fault, AD_E_SYSTEM, OPTION ": cannot make the folder %.150s: %s", out, strerror(errno))
               : 0;
}

/* Make a file for its owner alone, whole or not at all. One that is there by now stays. */
static int make_file(const char *path, const void *data, size_t size, ad_fault *fault) {
    char fresh[MOST_PATH + 16];
    snprintf(fresh, sizeof fresh, "%s.XXXXXX", path);
    const int fd = mkstemp(fresh); /* of mode 0600 */
    bool good = fd >= 0 && !ad__os_write(fd, data, size) && !fsync(fd);
    if (fd >= 0) good = close(fd) == 0 && good;
    good = good && (link(fresh, path) == 0 || errno == EEXIST);
    const int error = errno;
    if (fd >= 0) unlink(fresh);
    return good ? 0 : ad__fault(fault, AD_E_SYSTEM, OPTION ": cannot make %.150s: %s", path, strerror(error));
}

static int make_certificate(const char *path, ad_fault *fault) {
    char name[256] = "";
    ad_bytes pem = AD_BYTES_INIT;
    if (gethostname(name, sizeof name - 1) || !*name) strcpy(name, "arrayd");
    name[63] = 0; /* a common name has at most 64 letters */
    int status = ad__tls_make_certificate(name, &pem, fault);
    if (!status) status = make_file(path, pem.data, pem.size, fault);
    if (pem.data) explicit_bzero(pem.data, pem.size);
    ad__bytes_free(&pem);
    if (!status) ad__log(certificate_made, path);
    return status;
}

/* Set an option that names no file to one of this name in the folder. */
static int name_file(ad_config *c, const char *option, const char *value, const char *folder, const char *name,
                     ad_fault *fault) {
    char path[MOST_PATH + 32];
    if (*value) return 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return ad__config_set(c, option, path, OPTION, fault);
}

int ad__self_signed_prepare(ad_config *c, ad_fault *fault) {
    static const char head[] = "# Who may come in by token: made by arrayd --self-signed, written by arrayctl invite\n";
    char folder[MOST_PATH] = "";
    if (!c->self_signed) return 0;
    int status = ad__check_self_signed(c, fault);
    if (!status && (!*c->tls_cert || !*c->tokens)) status = find_folder(folder, fault);
    if (!status) status = name_file(c, "tls-cert", c->tls_cert, folder, "server.pem", fault);
    if (!status) status = name_file(c, "tokens", c->tokens, folder, "tokens", fault);
    if (!status && access(c->tls_cert, F_OK)) status = make_certificate(c->tls_cert, fault);
    if (!status && access(c->tokens, F_OK)) status = make_file(c->tokens, head, sizeof head - 1, fault);
    return status;
}
