/* The configuration: sources, types, and errors that say what is wrong. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/common/config.h"

static ad_config config;
static ad_fault fault;
static ad_config_action action;

static int load_config(int argc, const char *const *argv) {
    memset(&fault, 0, sizeof fault);
    return ad__config_load(&config, argc, (char **)(uintptr_t)argv, NULL, &action, &fault);
}
#define LOAD(...)                                                                        \
    load_config((int)(sizeof((const char *[]){"arrayd", __VA_ARGS__}) / sizeof(char *)), \
                (const char *[]){"arrayd", __VA_ARGS__})

static void release_config(void) { ad__config_free(&config); }

static void check_refused(const char *option, const char *source, const char *expected) {
    cr_assert_neq(strstr(fault.text, option), NULL, "%s", fault.text);
    cr_assert_neq(strstr(fault.text, source), NULL, "%s", fault.text);
    cr_assert_neq(strstr(fault.text, expected), NULL, "%s", fault.text);
}

TestSuite(config, .fini = release_config);

Test(config, defaults_come_from_the_table) {
    cr_assert_eq(LOAD(), 0, "%s", fault.text);
    cr_assert_str_eq(config.backend, "auto");
    cr_assert_eq(config.slab, 64ull << 20);
    cr_assert_eq(config.window_ops, 65536);
    cr_assert_eq(config.hello_timeout, 5.0);
    cr_assert_not(config.trace);
}

Test(config, command_line_takes_both_forms) {
    cr_assert_eq(LOAD("--memory=3G", "--threads", "7", "--trace=yes", "--output-timeout=0.25"), 0, "%s", fault.text);
    cr_assert_eq(config.memory, 3ull << 30);
    cr_assert_eq(config.threads, 7);
    cr_assert(config.trace);
    cr_assert_eq(config.output_timeout, 0.25);
}

Test(config, sizes) {
    static const struct {
        const char *text;
        uint64_t value;
    } good[] = {{"0", 0}, {"5", 5}, {"2k", 2048}, {"2K", 2048}, {"3M", 3 << 20}, {"1T", 1ull << 40}};
    static const char *const bad[] = {"", "K", "-1", "1.5G", "1KB", "99999999999999999999", "20000000T", "0x10", " 1"};
    cr_assert_eq(LOAD(), 0);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        cr_assert_eq(ad__config_set(&config, "slab", good[i].text, "a test", &fault), 0, "%s", good[i].text);
        cr_assert_eq(config.slab, good[i].value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_assert_eq(ad__config_set(&config, "slab", bad[i], "a test", &fault), AD_E_VALUE, "%s", bad[i]);
        check_refused("option slab", "a test", "a size in bytes");
    }
}

Test(config, a_size_may_be_left_to_the_server) {
    cr_assert_eq(LOAD(), 0);
    cr_assert_eq(config.host_memory, UINT64_MAX);
    release_config();
    cr_assert_eq(LOAD("--host-memory=3M"), 0);
    cr_assert_eq(config.host_memory, 3 << 20);
    release_config();
    cr_assert_eq(LOAD("--host-memory=0"), 0);
    cr_assert_eq(config.host_memory, 0);
    release_config();
    cr_assert_eq(LOAD("--host-memory=Auto"), 0);
    cr_assert_eq(config.host_memory, UINT64_MAX);
    release_config();
    cr_assert_eq(LOAD("--host-memory=much"), AD_E_VALUE);
    check_refused("option host-memory", "\"much\"", "auto, or a size");
    release_config();
    cr_assert_eq(LOAD("--memory=auto"), AD_E_VALUE, "only where it says so");
}

Test(config, environment_loses_to_the_command_line) {
    setenv("ARRAYD_WINDOW_OPS", "100", 1);
    setenv("ARRAYD_SESSIONS", "3", 1);
    cr_assert_eq(LOAD("--window-ops=200"), 0, "%s", fault.text);
    cr_assert_eq(config.window_ops, 200);
    cr_assert_eq(config.sessions, 3);
}

Test(config, errors_name_option_source_and_expectation) {
    setenv("ARRAYD_THREADS", "many", 1);
    cr_assert_eq(LOAD(), AD_E_VALUE);
    check_refused("option threads", "ARRAYD_THREADS", "a whole number");
    unsetenv("ARRAYD_THREADS");
    release_config();
    cr_assert_eq(LOAD("--domains=all"), AD_E_VALUE);
    check_refused("option domains", "the command line", "shared principal");
    release_config();
    cr_assert_eq(LOAD("--domain=shared"), AD_E_VALUE);
    check_refused("no option \"domain\"", "the command line", "");
    release_config();
    cr_assert_eq(LOAD("--nonsense"), AD_E_VALUE);
    check_refused("no option \"nonsense\"", "the command line", "");
    release_config();
    cr_assert_eq(LOAD("--slab"), AD_E_VALUE);
    check_refused("slab", "the command line", "missing");
    release_config();
    cr_assert_eq(LOAD("stray"), AD_E_VALUE);
    check_refused("stray", "the command line", "expected");
}

static void write_file(char *path, const char *text) {
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

Test(config, file_loses_to_the_environment) {
    char path[] = "/tmp/arrayd-config-XXXXXX";
    write_file(path, "# a comment\nslab = 1M ; another\nsessions = 5\n\nwindow-ops=9\n");
    setenv("ARRAYD_SESSIONS", "6", 1);
    int status = LOAD("--config", path);
    cr_assert_eq(status, 0, "%s", fault.text);
    cr_assert_eq(config.slab, 1 << 20);
    cr_assert_eq(config.sessions, 6);
    cr_assert_eq(config.window_ops, 9);
    unlink(path);
}

Test(config, file_errors_name_the_line) {
    static const struct {
        const char *text, *where, *what;
    } bad[] = {
        {"slab = 1M\nthreads = x\n", ":2:", "option threads"},
        {"colour = red\n", ":1:", "no option \"colour\""},
        {"\n\nnonsense\n", ":3:", "name = value"},
        {"[server]\nslab = 1M\n", ":2:", "section"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char path[] = "/tmp/arrayd-config-XXXXXX";
        write_file(path, bad[i].text);
        cr_assert_eq(LOAD("--config", path), AD_E_VALUE, "%s", bad[i].text);
        check_refused(bad[i].where, path, bad[i].what);
        unlink(path);
        release_config();
    }
    cr_assert_eq(LOAD("--config=/no/such/file"), AD_E_SYSTEM);
    check_refused("option config", "/no/such/file", "No such file");
}

Test(config, observers) {
    cr_assert_eq(LOAD("--help"), 0);
    cr_assert_eq(action, AD_CONFIG_HELP);
    release_config();
    cr_assert_eq(LOAD("--version"), 0);
    cr_assert_eq(action, AD_CONFIG_VERSION);
    release_config();
    cr_assert_eq(LOAD(), 0);
    cr_assert_eq(action, AD_CONFIG_RUN);
}

Test(config, help_has_every_row) {
    char *text = ad__config_help("arrayd");
    cr_assert_not_null(text);
#define AD_OPTION(name, field, type, value, doc)     \
    cr_assert_not_null(strstr(text, "--" name "=")); \
    cr_assert_not_null(strstr(text, doc));
#include "protocol/option.def"
#undef AD_OPTION
    free(text);
}

Test(config, arguments_reproduce_the_configuration) {
    ad_config first;
    cr_assert_eq(LOAD("--memory=5M", "--socket=/a path/with=signs", "--output-timeout=2.5", "--trace=on"), 0);
    first = config;
    char **list = ad__config_arguments(&first);
    cr_assert_not_null(list);
    int argc = 1;
    char *argv[64] = {(char *)(uintptr_t) "worker"};
    for (char **p = list; *p; p++) argv[argc++] = *p;
    cr_assert_eq(ad__config_load(&config, argc, argv, NULL, &action, &fault), 0, "%s", fault.text);
    cr_assert_eq(config.memory, 5 << 20);
    cr_assert_str_eq(config.socket, "/a path/with=signs");
    cr_assert_eq(config.output_timeout, 2.5);
    cr_assert(config.trace);
    cr_assert_str_eq(config.backend, first.backend);
    free(list);
    ad__config_free(&first);
}

Test(config, private_arguments) {
    int fd = -1;
    const ad_config_private rows[] = {{"channel-fd", &fd}, {NULL, NULL}};
    const char *argv[] = {"worker", "--channel-fd=5", NULL};
    cr_assert_eq(ad__config_load(&config, 2, (char **)(uintptr_t)argv, rows, &action, &fault), 0);
    cr_assert_eq(fd, 5);
    release_config();
    argv[1] = "--channel-fd=five";
    cr_assert_eq(ad__config_load(&config, 2, (char **)(uintptr_t)argv, rows, &action, &fault), AD_E_VALUE);
    release_config();
    cr_assert_eq(ad__config_load(&config, 2, (char **)(uintptr_t)argv, NULL, &action, &fault), AD_E_VALUE);
}
