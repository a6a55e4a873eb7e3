/* The control socket: arrayctl sends one line and reads one JSON answer. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "protocol/message.h"
#include "server/common/fdpass.h"
#include "server/ctl/ctl.h"

/* ---- where ---- */

static bool is_path_there(const char *path) { return access(path, F_OK) == 0; }

bool ad__ctl_server_path(const ad_ctl *c, char *out, size_t size) {
    const char *url = getenv("ARRAYD_URL"), *runtime = getenv("XDG_RUNTIME_DIR");
    int n = -1;
    if (c->socket) n = snprintf(out, size, "%s", c->socket);
    else if (url && !strncmp(url, "unix:", 5)) n = snprintf(out, size, "%s", url + 5);
    else if (runtime && *runtime && (n = snprintf(out, size, "%s/arrayd.sock", runtime)) >= 0 && !is_path_there(out))
        n = -1;
    if (n < 0) n = snprintf(out, size, "/run/arrayd/arrayd.sock");
    return n >= 0 && (size_t)n < size;
}

static bool make_control_path(const ad_ctl *c, char *out, size_t size) {
    if (c->control) return (size_t)snprintf(out, size, "%s", c->control) < size;
    if (size < 5 || !ad__ctl_server_path(c, out, size - 4)) return false;
    strcat(out, ".ctl");
    return true;
}

int ad__ctl_fail_unreachable(const ad_ctl *c, const char *path, int error) {
    const char *url = getenv("ARRAYD_URL");
    bool elsewhere = !c->socket && !c->control && url && *url && strncmp(url, "unix:", 5) != 0;
    return ad__ctl_error(c, AD_CTL_NO_SERVER, "cannot reach a server at %s: %s%s", path, strerror(error),
                         elsewhere ? "; ARRAYD_URL names no socket of this machine: run arrayctl on the server's, "
                                     "with --socket=PATH if it is not at the well-known place"
                                   : "; `arrayd &` starts one, --socket=PATH names that of another place");
}

static int connect_control(const ad_ctl *c, int *out) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (!make_control_path(c, a.sun_path, sizeof a.sun_path))
        return ad__ctl_error(c, AD_CTL_USAGE, "the path of the socket is longer than %zu bytes", sizeof a.sun_path - 5);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) == 0) {
        *out = fd;
        return AD_CTL_GOOD;
    }
    int error = errno;
    if (fd >= 0) close(fd);
    return ad__ctl_fail_unreachable(c, a.sun_path, error);
}

/* ---- asking ---- */

static int send_request_line(const ad_ctl *c, int to, const char *line, int fd) {
    size_t n = strlen(line);
    if (ad__fdpass_send(to, line, n, fd) == (ssize_t)n) return AD_CTL_GOOD;
    return ad__ctl_error(c, AD_CTL_NO_SERVER, "cannot ask the server: %s", strerror(errno));
}

static int read_whole_answer(const ad_ctl *c, int from, ad_bytes *out) {
    char part[65536];
    ssize_t n;
    while ((n = read(from, part, sizeof part)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0) ad__bytes_append(out, part, (size_t)n);
    if (n == 0 && out->size && !out->failed) return AD_CTL_GOOD;
    return ad__ctl_error(c, AD_CTL_NO_SERVER, "the server has not answered%s%s", n < 0 ? ": " : "",
                         n < 0 ? strerror(errno) : "");
}

static int parse_json_answer(const ad_ctl *c, const ad_bytes *text, json_t **out) {
    json_error_t error;
    json_t *value = json_loadb((const char *)text->data, text->size, 0, &error);
    if (!value) return ad__ctl_error(c, AD_CTL_BAD, "the server's answer is not JSON: %s", error.text);
    const char *refusal = json_string_value(json_object_get(value, "error"));
    if (!refusal) {
        *out = value;
        return AD_CTL_GOOD;
    }
    ad__ctl_error(c, AD_CTL_BAD, "%s", refusal);
    json_decref(value);
    return AD_CTL_BAD;
}

int ad__ctl_ask(ad_ctl *c, const char *line, int fd, json_t **out) {
    ad_bytes text = AD_BYTES_INIT;
    int socket_fd = -1, status = connect_control(c, &socket_fd);
    if (status) return status;
    status = send_request_line(c, socket_fd, line, fd);
    if (!status) status = read_whole_answer(c, socket_fd, &text);
    if (!status) status = parse_json_answer(c, &text, out);
    ad__bytes_free(&text);
    close(socket_fd);
    return status;
}

int ad__ctl_print(const ad_ctl *c, json_t *value) {
    if (json_dumpf(value, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY) == 0 && putchar('\n') != EOF) return AD_CTL_GOOD;
    return ad__ctl_error(c, AD_CTL_BAD, "cannot write to standard output");
}

/* ---- members ---- */

const char *ad__json_text(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

double ad__json_number(const json_t *object, const char *key) {
    return json_number_value(json_object_get(object, key));
}

double ad__json_counter(const json_t *object, const char *key) {
    return ad__json_number(json_object_get(object, "counters"), key);
}
