/* The commands that act on a single session, and upgrade. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/ctl/ctl.h"

#define LINE 500 /* bytes of a request */

/* Write the request: "verb SESSION rest of the arguments\n". */
static int compose_request(const ad_ctl *c, char line[LINE]) {
    size_t n = (size_t)snprintf(line, LINE, "%s", c->argv[0]);
    for (int i = 1; i < c->argc && n < LINE; i++) n += (size_t)snprintf(line + n, LINE - n, " %s", c->argv[i]);
    if (n + 1 >= LINE) return ad__ctl_error(c, AD_CTL_USAGE, "the arguments are longer than %d bytes", LINE - 2);
    for (size_t i = 0; i < n; i++)
        if (line[i] == '\n') line[i] = ' ';
    strcpy(line + n, "\n");
    return AD_CTL_GOOD;
}

static int check_session(const ad_ctl *c) {
    if (c->argc < 2) return ad__ctl_error(c, AD_CTL_USAGE, "expected a session, as arrayctl sessions names them");
    if (c->argv[1][0] && !strpbrk(c->argv[1], " \n")) return AD_CTL_GOOD;
    return ad__ctl_error(c, AD_CTL_USAGE, "\"%s\" is not the name of a session", c->argv[1]);
}

int ad__ctl_kill(ad_ctl *c) {
    char line[LINE];
    json_t *answer = NULL;
    int status = check_session(c);
    if (!status) status = compose_request(c, line);
    if (!status) status = ad__ctl_ask(c, line, -1, &answer);
    if (!status && c->json) status = ad__ctl_print(c, answer);
    else if (!status) printf("session %s is ended\n", c->argv[1]);
    json_decref(answer);
    return status;
}

int ad__ctl_upgrade(ad_ctl *c) {
    json_t *answer = NULL;
    int status = ad__ctl_alone(c);
    if (!status) status = ad__ctl_ask(c, c->force ? "upgrade force\n" : "upgrade\n", -1, &answer);
    if (!status && c->json) status = ad__ctl_print(c, answer);
    else if (!status)
        printf("upgraded from %s to %s: %.0f sessions go on, %.0f are lost, clients waited for %.3f s\n",
               ad__json_text(answer, "from"), ad__json_text(answer, "upgraded"), ad__json_number(answer, "sessions"),
               ad__json_number(answer, "lost"), ad__json_number(answer, "seconds"));
    json_decref(answer);
    return status;
}

/* Copy lines from the pipe until the session has ended or --count lines have come. */
static int copy_lines(const ad_ctl *c, int from) {
    char part[4096];
    uint64_t lines = 0;
    ssize_t n;
    while ((n = read(from, part, sizeof part)) > 0 || (n < 0 && errno == EINTR)) {
        for (ssize_t i = 0, begin = 0; i < n; i++) {
            if (part[i] != '\n' && i + 1 < n) continue;
            fwrite(part + begin, 1, (size_t)(i + 1 - begin), stdout);
            begin = i + 1;
            if (part[i] == '\n' && ++lines == c->count) return AD_CTL_GOOD;
        }
        if (fflush(stdout)) return ad__ctl_error(c, AD_CTL_BAD, "cannot write to standard output");
    }
    if (n < 0) return ad__ctl_error(c, AD_CTL_BAD, "cannot read: %s", strerror(errno));
    fputs("the session has ended\n", stderr);
    return AD_CTL_GOOD;
}

int ad__ctl_trace(ad_ctl *c) {
    char line[LINE];
    int ends[2];
    json_t *answer = NULL;
    int status = check_session(c);
    if (!status && c->argc > 2)
        status =
            ad__ctl_error(c, AD_CTL_USAGE, "expected one session and options, but there is \"%s\", too", c->argv[2]);
    if (!status) status = compose_request(c, line);
    if (status) return status;
    if (pipe2(ends, O_CLOEXEC)) return ad__ctl_error(c, AD_CTL_BAD, "pipe: %s", strerror(errno));
    status = ad__ctl_ask(c, line, ends[1], &answer);
    close(ends[1]);
    if (!status) status = copy_lines(c, ends[0]);
    close(ends[0]);
    json_decref(answer);
    return status;
}
