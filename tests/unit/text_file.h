/* Files that a test writes. */
#ifndef AD_TESTS_UNIT_TEXT_FILE_H
#define AD_TESTS_UNIT_TEXT_FILE_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <sys/stat.h>

static inline void write_text(const char *path, const char *text, mode_t mode) {
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f);
    fputs(text, f);
    fclose(f);
    cr_assert_eq(chmod(path, mode), 0);
}

#endif
