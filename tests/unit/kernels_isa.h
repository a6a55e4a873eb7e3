/* What is compiled once for each instruction set, tested once for each. */
#ifndef AD_TESTS_KERNELS_ISA_H
#define AD_TESTS_KERNELS_ISA_H

#include <criterion/criterion.h>

#include "kernels/cpu/kernels.h"

/* check() on every instruction set that this processor has. */
template <class F> void every_instruction_set(F check) {
    int found = 0;
    for (const char *name : {"v2", "v3", "v4", "plain"}) {
        if (!ad_cpu_kernels_select(name)) continue;
        found++;
        check();
    }
    cr_assert_gt(found, 0);
}

#endif
