/* Calls of the system that fail in a test, as nothing else makes them fail. The linker gives them to the test, by
 * --wrap (Makefile, WRAPS_...).
 *
 * A test defines CALLS(X) before it includes this file: X(call, result, parameters, arguments, what a failure returns)
 * for each. After it the test says which uses fail: must_fail, for which is_due is enough in most. */
#ifndef AD_TESTS_UNIT_FAILING_CALLS_H
#define AD_TESTS_UNIT_FAILING_CALLS_H

#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef enum call {
#define X(name, ...) CALL_##name,
    CALLS(X)
#undef X
        CALLS_ALL
} call;

static struct {
    atomic_int call; /* -1: none fails */
    int error;
    atomic_int left; /* uses until it fails */
} failing = {.call = -1};

static bool must_fail(call c);

static inline bool is_due(call c) { return failing.call == (int)c && atomic_fetch_sub(&failing.left, 1) == 1; }

/* Let the n-th use of a call from now on fail with the error. */
static inline void arm_failure(int c, int error, int n) {
    failing.error = error;
    failing.left = n;
    failing.call = c;
}

static inline void disarm_failure(void) { failing.call = -1; }

#define X(name, type, parameters, arguments, value)                  \
    type __real_##name parameters;                                   \
    type __wrap_##name parameters;                                   \
    type __wrap_##name parameters {                                  \
        if (!must_fail(CALL_##name)) return __real_##name arguments; \
        errno = failing.error;                                       \
        return value;                                                \
    }
CALLS(X)
#undef X

/* Count the descriptors that this process has. */
static inline unsigned count_descriptors(void) {
    unsigned n = 0;
    DIR *open = opendir("/proc/self/fd");
    while (readdir(open)) n++;
    closedir(open);
    return n;
}

#endif
