/* Embedded servers: child processes that end with this process.
 *
 *   this process                          arrayd
 *     connection  <--- socket pair --->  --embedded-fd 3      the server ends when this is closed
 *     door        <--- socket pair --->  --embedded-door 4    ends of further connections come through it
 *
 * A session is resumed over a further connection when the server's worker has died. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client-c/client.h"

#define CHILD_FD 3
#define CHILD_DOOR 4
#define END_MS 2000

extern char **environ;

/* The search for the program: its path, or all paths that were tried. */
typedef struct search {
    char path[PATH_MAX];
    char tried[2 * AD_FAULT_TEXT];
} search;

static bool try_path(search *s, const char *folder, size_t size, const char *rest) {
    if (snprintf(s->path, sizeof s->path, "%.*s%s", (int)size, folder, rest) >= (int)sizeof s->path) return false;
    struct stat found; /* a folder of the same name lies beside an installed library */
    if (stat(s->path, &found) == 0 && S_ISREG(found.st_mode) && access(s->path, X_OK) == 0) return true;
    size_t used = strlen(s->tried);
    snprintf(s->tried + used, sizeof s->tried - used, "%s%s", used ? ", " : "", s->path);
    return false;
}

/* Find the folder of the file that this code was loaded from: the shared library, the extension or the program. */
static size_t find_own_folder(char *out, size_t size) {
    Dl_info info;
    ssize_t n;
    if (dladdr((void *)(uintptr_t)ad_session_open, &info) && info.dli_fname && strchr(info.dli_fname, '/')) {
        n = snprintf(out, size, "%s", info.dli_fname);
    } else {
        n = readlink("/proc/self/exe", out, size - 1);
        out[n < 0 ? 0 : n] = 0;
    }
    char *slash = strrchr(out, '/');
    return slash ? (size_t)(slash - out) : 0;
}

static bool find_beside_library(search *s) {
    static const char *const places[] = {"/bin/arrayd", "/arrayd", "/../bin/arrayd", "/../libexec/arrayd",
                                         "/../../bin/arrayd"};
    char folder[PATH_MAX];
    size_t n = find_own_folder(folder, sizeof folder);
    for (size_t i = 0; n && i < sizeof places / sizeof *places; i++)
        if (try_path(s, folder, n, places[i])) return true;
    return false;
}

static bool find_in_path(search *s) {
    const char *p = getenv("PATH");
    while (p && *p) {
        size_t n = strcspn(p, ":");
        if (n && try_path(s, p, n, "/arrayd")) return true;
        p += n + (p[n] == ':');
    }
    return false;
}

static int find_program(search *s) {
    const char *named = getenv("ARRAYD_BIN");
    s->tried[0] = 0;
    if (named && *named) {
        if (try_path(s, named, strlen(named), "")) return 0;
        return ad__fail(AD_E_CONNECTION, "no embedded arrayd: ARRAYD_BIN is %s: %s", named, strerror(errno));
    }
    if (find_beside_library(s) || find_in_path(s)) return 0;
    return ad__fail(AD_E_CONNECTION,
                    "no arrayd program to embed: `pip install arrayd-server` brings it; or set ARRAYD_BIN to its path, "
                    "or ARRAYD_URL to a running server; looked for %s",
                    s->tried);
}

/* Isolate the server from this process. It gets two sockets and stderr, no other descriptor, no signal settings, and no
 * Ctrl-C from the terminal. */
static int prepare_files(posix_spawn_file_actions_t *files, posix_spawnattr_t *attributes, int fd, int door) {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int error = posix_spawn_file_actions_adddup2(files, fd, CHILD_FD);
    if (!error) error = posix_spawn_file_actions_adddup2(files, door, CHILD_DOOR);
    if (!error) error = posix_spawn_file_actions_addopen(files, 0, "/dev/null", 0, 0);
    if (!error) error = posix_spawn_file_actions_addopen(files, 1, "/dev/null", 1, 0);
    if (!error) error = posix_spawn_file_actions_addclosefrom_np(files, CHILD_DOOR + 1);
    if (!error) error = posix_spawnattr_setsigmask(attributes, &none);
    if (!error) error = posix_spawnattr_setsigdefault(attributes, &all);
    if (!error)
        error =
            posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    return error;
}

static int spawn_server(const char *path, const char *backend, int fd, int door, pid_t *pid) {
    bool chosen = strcmp(backend, "auto") != 0;
    char *const arguments[] = {
        "arrayd", "--embedded-fd", "3", "--embedded-door", "4", chosen ? "--backend" : NULL, (char *)(uintptr_t)backend,
        NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&files);
    if (error) goto out;
    error = posix_spawnattr_init(&attributes);
    if (error) goto files;
    error = prepare_files(&files, &attributes, fd, door);
    if (!error) error = posix_spawn(pid, path, &files, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
files:
    posix_spawn_file_actions_destroy(&files);
out:
    return error ? ad__fail(AD_E_CONNECTION, "cannot start %s: %s", path, strerror(error)) : 0;
}

/* Make a socket pair whose second end is none of the server's numbers: dup2 to that number would close it. */
static int make_socket_pair(int type, int pair[2]) {
    if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair))
        return ad__fail(AD_E_SYSTEM, "socketpair: %s", strerror(errno));
    int fd = pair[1] <= CHILD_DOOR ? fcntl(pair[1], F_DUPFD_CLOEXEC, CHILD_DOOR + 1) : pair[1];
    if (fd != pair[1]) close(pair[1]);
    pair[1] = fd;
    if (fd >= 0) return 0;
    close(pair[0]);
    return ad__fail(AD_E_SYSTEM, "socketpair: %s", strerror(errno));
}

int ad__embedded_start(const char *backend, int *fd, ad_embedded *out) {
    search *s = malloc(sizeof *s);
    int pair[2], door[2], status;
    if (!s) return ad__fail_memory();
    if ((status = find_program(s))) goto free_search;
    if ((status = make_socket_pair(SOCK_STREAM, pair))) goto free_search;
    if ((status = make_socket_pair(SOCK_SEQPACKET, door))) goto close_pair;
    status = spawn_server(s->path, backend, pair[1], door[1], &out->pid);
    close(door[1]);
    if (status) close(door[0]);
    else out->door = door[0];
close_pair:
    close(pair[1]);
    if (status) close(pair[0]);
    else *fd = pair[0];
free_search:
    free(s);
    return status;
}

int ad__embedded_connect(const ad_embedded *e, int *fd) {
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {0};
    int pair[2];
    struct msghdr m = {
        .msg_iov = &(struct iovec){"", 1}, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return ad__fail(AD_E_SYSTEM, "socketpair: %s", strerror(errno));
    control.header = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.header), &pair[1], sizeof(int));
    ssize_t n = sendmsg(e->door, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    const int error = errno;
    close(pair[1]);
    if (n == 1) {
        *fd = pair[0];
        return 0;
    }
    close(pair[0]);
    if (error == EAGAIN) return ad__fail(AD_E_TIMEOUT, "the embedded arrayd does not answer");
    return ad__fail(AD_E_CONNECTION, "the embedded arrayd has gone");
}

/* Wait until the server's process has ended, which is a moment after its socket is closed. False: it runs, or nobody
 * knows. */
static bool await_exit(pid_t pid) {
    const int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0) return errno == ESRCH;
    const bool ended = poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, END_MS) > 0;
    close(fd);
    return ended;
}

void ad__embedded_reap(ad_embedded *e) {
    const pid_t pid = e->pid;
    close(e->door);
    e->door = -1;
    if (!await_exit(pid)) kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

void ad__embedded_describe_exit(pid_t pid, char *text, size_t size) {
    siginfo_t info = {0};
    *text = 0;
    if (pid <= 0 || !await_exit(pid)) return;
    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return;
    if (info.si_code == CLD_EXITED) snprintf(text, size, "; the embedded arrayd exited with status %d", info.si_status);
    else snprintf(text, size, "; the embedded arrayd was ended by signal %d", info.si_status);
}
