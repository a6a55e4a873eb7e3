/* OpenBLAS's kernels fit the processor, also one that this OpenBLAS does not know. */
#include <cblas.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/backend/blas_core.h"

extern "C" {
void gotoblas_dynamic_init(void);
void gotoblas_dynamic_quit(void);
}

namespace {

const char *or_none(const char *core) { return core ? core : "none"; }

void found(const char *core) {
    setenv("OPENBLAS_CORETYPE", core, 1);
    gotoblas_dynamic_quit();
    gotoblas_dynamic_init();
    unsetenv("OPENBLAS_CORETYPE");
    cr_assert_str_eq(openblas_get_corename(), core);
}

} // namespace

Test(blas_core, fits_the_processor) {
    const struct {
        const char *found;
        ad_blas_processor has;
        const char *want;
    } rows[] = {
        {"Prescott", {false, true, true}, "SkylakeX"}, {"Prescott", {false, true, false}, "Haswell"},
        {"Prescott", {true, true, true}, "Zen"},       {"Opteron_SSE3", {true, true, false}, "Zen"},
        {"Prescott", {false, false, false}, "none"},   {"Sandybridge", {false, true, false}, "Haswell"},
        {"Haswell", {false, true, true}, "none"},      {"SkylakeX", {false, true, true}, "none"},
        {"Zen", {true, true, true}, "none"},           {"Sapphirerapids", {false, true, true}, "none"},
    };
    for (const auto &row : rows)
        cr_assert_str_eq(or_none(ad_cpu_blas_core(row.found, row.has)), row.want, "%s", row.found);
}

Test(blas_core, is_chosen_again) {
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return;
    const float a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8};
    float c[4];
    found("Prescott");
    ad_cpu_blas_open();
    cr_assert_str_neq(openblas_get_corename(), "Prescott");
    cr_assert_null(getenv("OPENBLAS_CORETYPE"));
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 2, 2, 2, 1, a, 2, b, 2, 0, c, 2);
    cr_assert(c[0] == 19 && c[1] == 22 && c[2] == 43 && c[3] == 50);
}

Test(blas_core, is_left_to_who_says_it) {
    found("Prescott");
    setenv("OPENBLAS_CORETYPE", "Prescott", 1);
    ad_cpu_blas_open();
    cr_assert_str_eq(openblas_get_corename(), "Prescott");
}
