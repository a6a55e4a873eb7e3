/* Runs the tests that criterion/criterion.h here has gathered: [--xml=FILE], as Criterion's own main takes it. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define SKIPPED 77
#define LONGEST 120 /* seconds of a test */

static plain_test *tests, *suites;
static int wrong;

static void push_test(plain_test **list, plain_test *test) {
    test->next = *list;
    *list = test;
}

void plain_add(plain_test *test) { push_test(test->name ? &tests : &suites, test); }

void plain_check(int holds, int fatal, const char *file, int line, const char *what) {
    if (holds) return;
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
    wrong = 1;
    if (fatal) _exit(1);
}

void plain_skip(void) { _exit(SKIPPED); }

static void call_function(void (*f)(void)) {
    if (f) f();
}

static void run_here(const plain_test *test) {
    const plain_test *suite = suites;
    while (suite && strcmp(suite->suite, test->suite)) suite = suite->next;
    alarm(LONGEST);
    if (suite) call_function(suite->init);
    call_function(test->init);
    test->run();
    call_function(test->fini);
    if (suite) call_function(suite->fini);
    exit(wrong); /* not _exit: the sanitizer has its say */
}

/* 0 passed, 77 skipped, anything else failed. */
static int run_test(const plain_test *test) {
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) run_here(test);
    if (child < 0 || waitpid(child, &status, 0) != child) return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void report_test(FILE *xml, const plain_test *test, int result) {
    const char *state = result == 0 ? "" : result == SKIPPED ? "<skipped/>" : "<failure/>";
    if (xml) fprintf(xml, "<testcase classname=\"%s\" name=\"%s\">%s</testcase>\n", test->suite, test->name, state);
    if (result && result != SKIPPED) fprintf(stderr, "FAILED %s::%s\n", test->suite, test->name);
}

int main(int argc, char **argv) {
    FILE *xml = NULL;
    int failed = 0, count = 0;
    for (int i = 1; i < argc; i++)
        if (!strncmp(argv[i], "--xml=", 6) && !(xml = fopen(argv[i] + 6, "w"))) return 2;
    if (xml) fputs("<testsuite>\n", xml);
    for (const plain_test *test = tests; test; test = test->next, count++) {
        int result = run_test(test);
        failed += result && result != SKIPPED;
        report_test(xml, test, result);
    }
    if (xml) {
        fputs("</testsuite>\n", xml);
        fclose(xml);
    }
    printf("%d tests, %d failed\n", count, failed);
    return failed != 0;
}
