/* Criterion's names, as far as the tests here use them, for the thread sanitizer: under that Criterion itself does not
 * start. Each test is a process of its own, as with Criterion; `plain/main.c` runs them. */
#ifndef AD_TESTS_PLAIN_CRITERION_H
#define AD_TESTS_PLAIN_CRITERION_H

#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* a test names those that it has */
#pragma GCC diagnostic ignored "-Wunused-parameter"           /* messages are not shown, nor what goes into them */
#pragma GCC diagnostic ignored "-Wunused-variable"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct plain_test {
    struct plain_test *next;
    const char *suite, *name; /* name NULL: what holds for the whole suite */
    void (*run)(void);
    void (*init)(void);
    void (*fini)(void);
} plain_test;

void plain_add(plain_test *test);
/* Say where and what, once it is false; fatal: and end this test. */
void plain_check(int holds, int fatal, const char *file, int line, const char *what);
void plain_skip(void);

#ifdef __cplusplus
}
#endif

#define PLAIN_ADD(id, ...)                                         \
    static plain_test plain_test_##id = {__VA_ARGS__};             \
    __attribute__((constructor)) static void plain_add_##id(void); \
    static void plain_add_##id(void) { plain_add(&plain_test_##id); }
#define Test(suite_, name_, ...)                                                                                     \
    static void plain_run_##suite_##_##name_(void);                                                                  \
    PLAIN_ADD(suite_##_##name_, .next = NULL, .suite = #suite_, .name = #name_, .run = plain_run_##suite_##_##name_, \
              ##__VA_ARGS__)                                                                                         \
    static void plain_run_##suite_##_##name_(void)
#define TestSuite(suite_, ...) \
    PLAIN_ADD(suite_##_, .next = NULL, .suite = #suite_, .name = NULL, .run = NULL, ##__VA_ARGS__)

#define PLAIN(fatal, condition) plain_check(!!(condition), fatal, __FILE__, __LINE__, #condition)
#define cr_assert(c, ...) PLAIN(1, c)
#define cr_assert_not(c, ...) PLAIN(1, !(c))
#define cr_assert_eq(a, b, ...) PLAIN(1, (a) == (b))
#define cr_assert_neq(a, b, ...) PLAIN(1, (a) != (b))
#define cr_assert_lt(a, b, ...) PLAIN(1, (a) < (b))
#define cr_assert_leq(a, b, ...) PLAIN(1, (a) <= (b))
#define cr_assert_gt(a, b, ...) PLAIN(1, (a) > (b))
#define cr_assert_geq(a, b, ...) PLAIN(1, (a) >= (b))
#define cr_assert_null(p, ...) PLAIN(1, (p) == NULL)
#define cr_assert_not_null(p, ...) PLAIN(1, (p) != NULL)
#define cr_assert_str_eq(a, b, ...) PLAIN(1, strcmp(a, b) == 0)
#define cr_assert_str_neq(a, b, ...) PLAIN(1, strcmp(a, b) != 0)
#define cr_assert_arr_eq(a, b, size, ...) PLAIN(1, memcmp(a, b, size) == 0)
#define cr_assert_float_eq(a, b, by, ...) PLAIN(1, (a) - (b) <= (by) && (b) - (a) <= (by))
#define cr_expect(c, ...) PLAIN(0, c)
#define cr_expect_not(c, ...) PLAIN(0, !(c))
#define cr_expect_eq(a, b, ...) PLAIN(0, (a) == (b))
#define cr_expect_neq(a, b, ...) PLAIN(0, (a) != (b))
#define cr_expect_lt(a, b, ...) PLAIN(0, (a) < (b))
#define cr_expect_gt(a, b, ...) PLAIN(0, (a) > (b))
#define cr_expect_leq(a, b, ...) PLAIN(0, (a) <= (b))
#define cr_expect_geq(a, b, ...) PLAIN(0, (a) >= (b))
#define cr_expect_null(p, ...) PLAIN(0, (p) == NULL)
#define cr_expect_not_null(p, ...) PLAIN(0, (p) != NULL)
#define cr_expect_str_eq(a, b, ...) PLAIN(0, strcmp(a, b) == 0)
#define cr_skip_test(...) plain_skip()

#endif
