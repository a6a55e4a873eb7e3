/* Phases of a session: the steps that the drawing of base/phase.h has, and no others. */
#include <criterion/criterion.h>

#include "server/worker/base/phase.h"

Test(phase, of_the_socket) {
    static const char *const may[] = {/* from, to any of */ "NOC",
                                      "OAEC",
                                      "AOC",
                                      "ELC",
                                      "LC",
                                      "C"};
    static const char letters[] = "NOAELC";
    for (int from = 0; from < 6; from++)
        for (int to = 0; to < 6; to++) {
            bool expected = false;
            for (const char *c = may[from] + 1; *c; c++) expected = expected || *c == letters[to];
            cr_assert_eq(ad__socket_may_enter((ad_socket_phase)from, (ad_socket_phase)to), expected, "%c to %c",
                         letters[from], letters[to]);
        }
}

Test(phase, of_the_runner) {
    for (int from = 0; from <= AD_RUN_DROPPED; from++) {
        cr_assert_not(ad__run_may_enter((ad_run_phase)from, (ad_run_phase)from));
        for (int to = AD_RUN_OVER; to < from; to++)
            cr_assert_not(ad__run_may_enter((ad_run_phase)from, (ad_run_phase)to), "%d to %d", from, to);
    }
    cr_assert(ad__run_may_enter(AD_RUN_STALLED, AD_RUN_LIVE));
    cr_assert(ad__run_may_enter(AD_RUN_LIVE, AD_RUN_OVER) && ad__run_may_enter(AD_RUN_STALLED, AD_RUN_OVER));
    cr_assert_not(ad__run_may_enter(AD_RUN_OVER, AD_RUN_LIVE));
    cr_assert_not(ad__run_may_enter(AD_RUN_OVER, AD_RUN_DROPPED));
}
