/* arrayd: the front of the server, from its command line to its end.
 *
 *     main -> run_server -> start_loop -> start_server -> uv_run
 *                                           | files and listening sockets
 *                                           | first worker
 *                                           v
 *     ad__front_ready   a worker is ready: clients are served
 *     ad__front_stop    listening ends, workers stop, then uv_run returns */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/common/fdpass.h"
#include "server/common/log.h"
#include "server/common/os.h"
#include "server/common/secret.h"
#include "server/front/front.h"
#include "server/front/peers/peers.h"

#define PATIENCE 5000 /* ms within which workers must stop */
#define GOING "the server is shutting down"

static ad_front front;

/* ---- the end ---- */

static void on_stop_timeout(uv_timer_t *timer) { ad__domain_kill_all(timer->data); }

void ad__front_stop(ad_front *f, int status, const char *why) {
    if (f->stopping) return;
    f->stopping = true;
    f->status = status;
    ad__notify("STOPPING=1");
    ad__upgrade_cancel(f);
    ad__listen_close(f);
    ad__observability_close(f);
    ad__pull_end(f, 0);
    ad__handshake_close_all(f, why);
    ad__domain_stop_all(f);
    uv_timer_start(&f->timers.patience, on_stop_timeout, PATIENCE, 0);
    uv_unref((uv_handle_t *)&f->timers.patience);
    for (int i = 0; i < AD_FRONT_SIGNALS; i++) uv_close((uv_handle_t *)&f->signals[i], NULL);
    if (uv_is_active((uv_handle_t *)&f->parent)) uv_close((uv_handle_t *)&f->parent, NULL);
    if (uv_is_active((uv_handle_t *)&f->door.poll)) uv_close((uv_handle_t *)&f->door.poll, NULL);
}

int ad__front_reload(ad_front *f, ad_fault *fault) {
    ad_config fresh;
    ad_config_action action;
    int unused;
    const ad_config_private private[] = {{"embedded-fd", &unused}, {"embedded-door", &unused}, {NULL, NULL}};
    int status = ad__config_load(&fresh, f->started.argc, f->started.argv, private, &action, fault);
    if (!status) status = ad__entrance_load(f, fault);
    if (status) {
        ad__log(not_reloaded, fault->text);
    } else {
        ad__log_set(ad__log_level(fresh.log_level));
        ad__domain_reserve_all(f);
        ad__log(reloaded, fresh.log_level);
    }
    ad__config_free(&fresh);
    return status;
}

static void on_signal(uv_signal_t *handle, int number) {
    ad_front *f = handle->data;
    ad_fault fault = {0};
    if (number == SIGHUP) {
        ad__front_reload(f, &fault);
        return;
    }
    if (number == SIGUSR2) {
        ad__upgrade_begin(f, false, "signal", &fault);
        return;
    }
    ad__log(stopping, number, f->sessions);
    ad__front_stop(f, 0, GOING);
}

/* ---- the beginning ---- */

void ad__front_ready(ad_front *f) {
    char where[512];
    if (!f->ready && !f->stopping) {
        f->ready = true;
        ad__listen_text(f, where, sizeof where);
        ad__http_text(f, where, sizeof where);
        if (!f->embedded) ad__log(ready, where, AD_VERSION);
        ad__notify("READY=1");
    }
    ad__handshake_wake(f);
}

static void on_parent_gone(uv_poll_t *poll, int status, int events) {
    (void)status;
    (void)events;
    ad__front_stop(poll->data, 0, GOING);
}

/* End an embedded server with its client's process. The socket's end is not enough, as a forked child may hold it
 * open. PR_SET_PDEATHSIG is not either, as it is sent when the thread that started this process ends. */
static void watch_parent(ad_front *f) {
    int fd = (int)syscall(SYS_pidfd_open, getppid(), 0);
    if (fd < 0 || uv_poll_init(&f->loop, &f->parent, fd)) return;
    f->parent.data = f;
    uv_poll_start(&f->parent, UV_READABLE, on_parent_gone);
    uv_unref((uv_handle_t *)&f->parent);
}

static bool claim_descriptor(int fd) {
    return !fcntl(fd, F_SETFD, FD_CLOEXEC) && !fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/* Take the other end of a connection that the client has made, or notice that it has closed the door. */
static void on_door_readable(uv_poll_t *poll, int status, int events) {
    ad_front *f = poll->data;
    char byte;
    int fd = -1;
    (void)events;
    const ssize_t n = status ? 0 : ad__fdpass_receive("", f->door.fd, &byte, 1, &fd);
    if (fd >= 0 && claim_descriptor(fd)) ad__handshake_begin(f, fd, AD_WAY_UNIX);
    else if (fd >= 0) close(fd);
    if (!n) ad__front_stop(f, 0, GOING);
}

static int open_door(ad_front *f, ad_fault *fault) {
    if (f->door.fd < 0) return 0;
    if (!claim_descriptor(f->door.fd) || uv_poll_init(&f->loop, &f->door.poll, f->door.fd))
        return ad__fault(fault, AD_E_VALUE, "option embedded-door: %d is not a socket", f->door.fd);
    f->door.poll.data = f;
    uv_poll_start(&f->door.poll, UV_READABLE, on_door_readable);
    uv_unref((uv_handle_t *)&f->door.poll);
    return 0;
}

static int serve_embedded(ad_front *f, int fd, ad_fault *fault) {
    if (!claim_descriptor(fd)) return ad__fault(fault, AD_E_VALUE, "option embedded-fd: %d is not a descriptor", fd);
    if (open_door(f, fault)) return fault->code;
    watch_parent(f);
    ad__handshake_begin(f, fd, AD_WAY_UNIX);
    return f->handshakes ? 0 : ad__fault(fault, AD_E_SYSTEM, "cannot serve descriptor %d", fd);
}

static int start_loop(ad_front *f) {
    int error = uv_loop_init(&f->loop);
    if (!error) error = uv_timer_init(&f->loop, &f->timers.patience);
    if (!error) error = uv_timer_init(&f->loop, &f->timers.retry);
    if (!error) error = uv_timer_init(&f->loop, &f->timers.expiry);
    if (!error) error = ad__silence_watch(f);
    if (error) return error;
    f->timers.patience.data = f->timers.retry.data = f;
    ad__observability_init(f);
    ad__upgrade_init(f);
    if (*f->config.tls && !f->embedded) ad__spin_init(f);
    uv_unref((uv_handle_t *)&f->timers.retry);
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < AD_FRONT_SIGNALS; i++) {
        const int number = ad__front_signals[i];
        int status = uv_signal_init(&f->loop, &f->signals[i]);
        if (status) return status;
        f->signals[i].data = f;
        uv_unref((uv_handle_t *)&f->signals[i]);
        /* An interrupt from the terminal is meant for an embedded server's client, with which the server ends. */
        if (f->embedded && (number == SIGINT || number == SIGUSR2)) signal(number, SIG_IGN);
        else if ((status = uv_signal_start(&f->signals[i], on_signal, number))) return status;
    }
    ad__handover_let_signals_in();
    return 0;
}

/* Start the first worker at once: it shows whether the backend works, and the first client need not wait.
 * AD_E_CONNECTION, AD_E_MEMORY. */
static int start_own_worker(ad_front *f, ad_fault *fault) {
    ad_entrant own;
    ad_domain_state state;
    const gid_t group = getegid();
    ad__principals_user(f->principals, geteuid(), 1, &group, own.who, &own.grants);
    return ad__domain_of(f, &own, &state, fault) && state != AD_DOMAIN_FAILED ? 0 : fault->code;
}

/* Check that libcrypto is there if secrets or tokens must be compared. Without it clients could not come in, and
 * would not learn why. An embedded server then works without resuming sessions. */
static int require_crypto(ad_front *f, ad_fault *fault) {
    ad_fault why = {0};
    if ((!ad__front_resumes(f) && !*f->config.tokens) || !ad__crypto_load(&why)) return 0;
    if (!f->embedded)
        return ad__fault(fault, why.code,
                         "%s; what clients show is compared with it, but for resume-time = 0 and no tokens", why.text);
    ad__log(sessions_do_not_come_back, why.text);
    f->config.resume_time = 0;
    return 0;
}

/* Open all that serves clients. After an upgrade missing parts are only logged, as there are sessions to serve. */
static int start_server(ad_front *f, int embedded_fd, int record, ad_fault *fault) {
    int status = record < 0 ? 0 : ad__handover_read(f, record, fault);
    if (!status && f->embedded) /* Before all else: the client is told why anything later fails. */
        status = serve_embedded(f, embedded_fd, fault);
    if (!status && !f->embedded) status = ad__self_signed_prepare(&f->config, fault);
    if (!status) status = ad__entrance_load(f, fault);
    if (!status && !f->embedded) status = ad__listen_open(f, fault);
    if (!status && !f->embedded) status = ad__upgrade_tolerate(f, ad__control_open(f, fault), fault);
    if (!status && !f->embedded) status = ad__upgrade_tolerate(f, ad__http_open(f, fault), fault);
    if (status) return status;
    status = start_own_worker(f, fault);
    if (!status) status = require_crypto(f, fault);
    if (record >= 0) {
        if (status) ad__log(worker_not_started, "shared", fault->text);
        ad__handover_done(f);
        return 0;
    }
    return status;
}

static void raise_file_limit(void) {
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files)) return;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

/* Open /dev/null for standard descriptors that are closed: a socket or a file would get their number, and the log. */
static void fill_standard_descriptors(void) {
    int fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd < 3) fd = dup(fd);
    if (fd >= 3) close(fd);
}

/* Set the log's level. An embedded server logs to its client's standard error, where only problems belong. */
static int set_log_level(ad_front *f) {
    ad_fault fault;
    if (f->embedded && !strcmp(f->config.log_level, "info") &&
        ad__config_set(&f->config, "log-level", "warn", "the program", &fault))
        return 1;
    ad__log_set(ad__log_level(f->config.log_level));
    return 0;
}

static int run_server(ad_front *f, int embedded_fd, int record) {
    ad_fault fault = {0};
    f->embedded = embedded_fd >= 0;
    if (set_log_level(f)) return 1;
    f->lock = -1;
    if (getrandom(&f->instance, sizeof f->instance, 0) != (ssize_t)sizeof f->instance) return 1;
    raise_file_limit();
    int status = start_loop(f);
    if (status) {
        ad__log(cannot_start, uv_strerror(status));
        return 1;
    }
    if (start_server(f, embedded_fd, record, &fault)) {
        ad__log(cannot_start, fault.text);
        ad__front_stop(f, 1, fault.text);
    }
    uv_run(&f->loop, UV_RUN_DEFAULT);
    ad__domain_free_all(f);
    ad__session_entry_remove_all(f, NULL);
    ad__entrance_free(f);
    free(f->socket);
    if (f->status == 0) ad__log(stopped, f->last_session);
    return f->status;
}

/* Find the name in "--make-token NAME", which is no option of the configuration. NULL: the command line asks for
 * something else. */
static const char *find_token_name(int argc, char **argv) {
    static const char option[] = "--make-token";
    size_t n = sizeof option - 1;
    if (argc < 2 || strncmp(argv[1], option, n)) return NULL;
    if (argv[1][n] == '=') return argv[1] + n + 1;
    return argv[1][n] ? NULL : argc > 2 ? argv[2] : "";
}

/* Print a new token and its line for the file of tokens. The token itself is stored nowhere. */
static int make_token(const char *name) {
    char token[AD_TOKEN_TEXT], digits[2 * AD_SHA256_SIZE + 1];
    uint8_t hash[AD_SHA256_SIZE];
    ad_fault fault;
    if (!ad__principals_is_name(name)) {
        fprintf(stderr, "arrayd: --make-token: expected a name of at most 56 letters, digits and . _ @ -\n");
        return 2;
    }
    if (ad__token_make(token, &fault) || ad__token_hash(token, strlen(token), hash, &fault)) {
        fprintf(stderr, "arrayd: %s\n", fault.text);
        return 1;
    }
    ad__sha256_text(hash, digits);
    printf("token  %s\nline   %s sha256:%s\n", token, name, digits);
    explicit_bzero(token, sizeof token);
    return ferror(stdout) || fflush(stdout) ? 1 : 0;
}

/* Tell whether a path leads to this program's file, as argv[0] may be anything. */
static bool is_this_program(const char *path) {
    struct stat there, here;
    return !stat(path, &there) && !stat("/proc/self/exe", &here) && there.st_dev == here.st_dev &&
           there.st_ino == here.st_ino;
}

static void find_program_in_path(ad_front *f, const char *name) {
    const char *folders = getenv("PATH");
    *f->started.path = 0;
    for (const char *at = folders; at && *at; at += strspn(at, ":")) {
        size_t n = strcspn(at, ":");
        snprintf(f->started.path, sizeof f->started.path, "%.*s/%s", (int)n, at, name);
        if (*at == '/' && is_this_program(f->started.path)) return;
        at += n;
    }
}

/* Set the path where an upgrade looks for a new program: as this one was called, as links on the way may change. */
static void set_program_path(ad_front *f, const char *called) {
    char folder[sizeof f->started.path];
    if (*called == '/') snprintf(f->started.path, sizeof f->started.path, "%s", called);
    else if (strchr(called, '/') && getcwd(folder, sizeof folder))
        snprintf(f->started.path, sizeof f->started.path, "%.*s/%s", (int)(sizeof f->started.path / 2), folder, called);
    else find_program_in_path(f, called);
    if (!is_this_program(f->started.path)) memcpy(f->started.path, f->started.program, sizeof f->started.path);
}

/* Remove the first argument if it is this option, and return its value. NULL: it is another one. */
static const char *take_first_option(int *argc, char **argv, const char *option) {
    size_t n = strlen(option);
    if (*argc < 2 || strncmp(argv[1], option, n)) return NULL;
    const char *value = argv[1] + n;
    memmove(argv + 1, argv + 2, (size_t)(*argc - 1) * sizeof *argv); /* also moves the NULL at the end */
    --*argc;
    return value;
}

static int check_takeover(ad_front *f, const char *from) {
    ad_fault fault;
    ad__handover_check(f, from, &fault);
    fprintf(stderr, "%s\n", fault.text);
    return 1;
}

static int print_help(void) {
    char *text = ad__config_help("arrayd");
    if (text) fputs(text, stdout);
    free(text);
    return text ? 0 : 1;
}

int main(int argc, char **argv) {
    ad_fault fault = {0};
    int embedded_fd = -1, status;
    front.door.fd = -1;
    ad_config_action action;
    const ad_config_private private[] = {
        {"embedded-fd", &embedded_fd}, {"embedded-door", &front.door.fd}, {NULL, NULL}};
    const char *token_for = find_token_name(argc, argv);
    const char *from = take_first_option(&argc, argv, "--can-take-over="),
               *handed = take_first_option(&argc, argv, "--take-over=");
    uint64_t record_fd;
    int record = -1;
    if (handed)
        record = ad__config_parse_count(handed, &record_fd) && record_fd < INT32_MAX ? (int)record_fd : INT32_MAX;
    fill_standard_descriptors();
    if (token_for) return make_token(token_for);
    ad__log_name("front");
    front.started.argc = argc;
    front.started.argv = argv;
    ad__os_init("arrayd");
    ssize_t n = readlink("/proc/self/exe", front.started.program, sizeof front.started.program - 1);
    front.started.program[n < 0 ? 0 : n] = 0;
    set_program_path(&front, argc > 0 ? argv[0] : "");
    if (ad__config_load(&front.config, argc, argv, private, &action, &fault)) {
        fprintf(stderr, "arrayd: %s\n", fault.text);
        status = 2;
    } else if (action == AD_CONFIG_HELP) {
        status = print_help();
    } else if (action == AD_CONFIG_VERSION) {
        puts("arrayd " AD_VERSION);
        status = 0;
    } else if (from) {
        status = check_takeover(&front, from);
    } else {
        status = run_server(&front, embedded_fd, record);
    }
    ad__config_free(&front.config);
    return status;
}
