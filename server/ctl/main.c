/* arrayctl: its command line. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/nearest.h"
#include "server/common/log.h"
#include "server/ctl/ctl.h"

typedef struct command {
    const char *name, *arguments, *doc;
    int (*run)(ad_ctl *c);
} command;

static const command commands[] = {
#define AD_COMMAND(name, arguments, doc) {#name, arguments, doc, ad__ctl_##name},
#include "server/ctl/command.def"
#undef AD_COMMAND
};
#define COMMANDS (sizeof commands / sizeof *commands)

static const char options[] =
    "\nOptions:\n"
    "  --socket=PATH    the server's socket; without it that of $ARRAYD_URL, the user's, or /run/arrayd/arrayd.sock\n"
    "  --control=PATH   the server's control socket; without it that beside its socket\n"
    "  --json           print what the server says as JSON\n"
    "  --help, --version\n"
    "\nExit status: 0, 1 it failed or something is not well, 2 wrong usage, 3 there is no server.\n";

static void print_usage(FILE *to, const command *one) {
    fprintf(to, "usage: arrayctl COMMAND [OPTION ...]\n\n");
    for (size_t i = 0; i < COMMANDS; i++) {
        const command *k = &commands[i];
        if (one && k != one) continue;
        fprintf(to, "  %s%s%s\n      %s\n", k->name, *k->arguments ? " " : "", k->arguments, k->doc);
    }
    fputs(options, to);
}

int ad__ctl_error(const ad_ctl *c, int status, const char *format, ...) {
    va_list list;
    fprintf(stderr, "arrayctl%s%s: ", c->argc ? " " : "", c->argc ? c->argv[0] : "");
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    return status;
}

int ad__ctl_alone(const ad_ctl *c) {
    if (c->argc == 1) return AD_CTL_GOOD;
    return ad__ctl_error(c, AD_CTL_USAGE, "expected nothing but options, but there is \"%s\"", c->argv[1]);
}

/* ---- options ---- */

const char *ad__ctl_value(const char *name, int argc, char **argv, int *i) {
    size_t n = strlen(name);
    if (strncmp(argv[*i], name, n)) return NULL;
    if (argv[*i][n] == '=') return argv[*i] + n + 1;
    return argv[*i][n] || *i + 1 >= argc ? NULL : argv[++*i];
}

static bool parse_number(const char *text, double *out) {
    char *end;
    *out = strtod(text, &end);
    return *text && !*end && *out > 0 && *out < 1e9;
}

/* Take the options that all commands share out of the arguments; what is left begins with the command. The exit status;
 * messages are printed here. */
static int parse_common_options(ad_ctl *c, int argc, char **argv) {
    static const char *const numbers[] = {"--interval", "--seconds", "--count"};
    double value[3] = {0};
    c->argv = argv;
    for (int i = 1; i < argc; i++) {
        const char *text;
        int n = 0, at = i;
        while (n < 3 && !(text = ad__ctl_value(numbers[n], argc, argv, &at))) n++;
        i = at;
        if (n < 3) {
            if (!parse_number(text, &value[n]))
                return ad__ctl_error(c, AD_CTL_USAGE, "option %s: expected a number above 0, not \"%s\"", numbers[n],
                                     text);
        } else if ((text = ad__ctl_value("--socket", argc, argv, &i))) {
            c->socket = text;
        } else if ((text = ad__ctl_value("--control", argc, argv, &i))) {
            c->control = text;
        } else if (!strcmp(argv[i], "--json")) {
            c->json = true;
        } else if (!strcmp(argv[i], "--force")) {
            c->force = true;
        } else {
            argv[c->argc++] = argv[i];
        }
    }
    c->interval = value[0];
    c->seconds = value[1];
    c->count = (uint64_t)value[2];
    return AD_CTL_GOOD;
}

/* Tell whether a command reads options itself: invite has some, and warm takes arrayd's. */
static bool has_own_options(const char *name) { return !strcmp(name, "warm") || !strcmp(name, "invite"); }

static int reject_unknown_options(const ad_ctl *c) {
    for (int i = 1; i < c->argc && !has_own_options(c->argv[0]); i++)
        if (c->argv[i][0] == '-' && c->argv[i][1])
            return ad__ctl_error(c, AD_CTL_USAGE, "no such option: %s (see arrayctl --help)", c->argv[i]);
    return AD_CTL_GOOD;
}

static bool has_help_option(const ad_ctl *c) {
    for (int i = 1; i < c->argc; i++)
        if (!strcmp(c->argv[i], "--help")) return true;
    return false;
}

static int run_command(ad_ctl *c, const command *k) {
    if (has_help_option(c)) {
        print_usage(stdout, k);
        return AD_CTL_GOOD;
    }
    int status = reject_unknown_options(c);
    if (status) return status;
    status = k->run(c);
    if (!fflush(stdout) && !ferror(stdout)) return status;
    return status ? status : ad__ctl_error(c, AD_CTL_BAD, "cannot write to standard output");
}

/* Say that there is no such command, and which one was probably meant. */
static int fail_unknown(const char *name) {
    char hint[AD_NEAREST_HINT];
    ad_nearest n;
    ad__nearest_begin(&n, name, strlen(name));
    for (size_t i = 0; i < COMMANDS; i++) ad__nearest_try(&n, commands[i].name);
    fprintf(stderr, "arrayctl: no such command: %s (see arrayctl --help)%s\n", name, ad__nearest_hint(&n, hint));
    return AD_CTL_USAGE;
}

static int fail_unknown_option(const char *name) {
    fprintf(stderr, "arrayctl: no such option before a command: %s (see arrayctl --help)\n", name);
    return AD_CTL_USAGE;
}

int main(int argc, char **argv) {
    ad_ctl c = {0};
    signal(SIGPIPE, SIG_IGN);
    ad__log_name("arrayctl");
    if (argc > 1 && !strcmp(argv[1], "--version")) {
        puts("arrayctl " AD_VERSION);
        return 0;
    }
    int status = parse_common_options(&c, argc, argv);
    if (status) return status;
    bool help = c.argc && !strcmp(c.argv[0], "--help");
    if (help || !c.argc) {
        print_usage(help ? stdout : stderr, NULL);
        return help ? AD_CTL_GOOD : AD_CTL_USAGE;
    }
    if (c.argv[0][0] == '-') return fail_unknown_option(c.argv[0]);
    for (size_t i = 0; i < COMMANDS; i++)
        if (!strcmp(commands[i].name, c.argv[0])) return run_command(&c, &commands[i]);
    return fail_unknown(c.argv[0]);
}
