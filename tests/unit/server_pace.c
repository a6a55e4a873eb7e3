/* The pace of a device, which is learned from when work was complete. */
#include <criterion/criterion.h>

#include "server/worker/device/pace.h"

#define MS 1000000

/* n pieces of work, each estimated at `expected` and taking `real` ns, always with more asked for ahead. */
static int64_t flood_pace(ad_pace *p, int n, double expected, int64_t real, unsigned sessions, int64_t now) {
    for (int i = 0; i < n; i++, now += real) ad__pace_note(p, expected, now - real, now, now + real, sessions);
    return now;
}

Test(pace, work_behind_work_is_measured) {
    ad_pace p = {0};
    cr_assert_eq(ad__pace(&p), 1);
    int64_t now = flood_pace(&p, 100, 1000, 50000, 1, 0);
    cr_assert_float_eq(ad__pace(&p), 50, 1e-9);
    flood_pace(&p, 2000, 1000, 500, 1, now);
    cr_assert_lt(ad__pace(&p), 5, "what was long ago counts less");
}

Test(pace, sessions_that_use_a_device_together_are_not_charged_for_each_other) {
    ad_pace p = {0};
    flood_pace(&p, 1000, 10000, 40000, 4, 0);
    cr_assert_float_eq(ad__pace(&p), 1, 1e-9);
}

Test(pace, work_that_begins_at_once_tells_nothing) {
    ad_pace p = {0};
    for (int64_t i = 0; i < 1000; i++) ad__pace_note(&p, 10, i * MS, i * MS - 1, i * MS + 900000, 1);
    cr_assert_eq(ad__pace(&p), 1, "it is how long a round trip takes");
    ad__pace_note(&p, 0, 0, MS, 100 * MS, 1);
    cr_assert_eq(ad__pace(&p), 1);
}

Test(pace, it_is_not_believed_too_soon_nor_without_end) {
    ad_pace p = {0};
    flood_pace(&p, 3, 1, 300000, 1, 0);
    cr_assert_eq(ad__pace(&p), 1);
    flood_pace(&p, 1000, 1, 10 * MS, 1, 0);
    cr_assert_eq(ad__pace(&p), 4096);
    p = (ad_pace){0};
    flood_pace(&p, 1000, 1e9, 10 * MS, 1, 0);
    cr_assert_eq(ad__pace(&p), 0.5);
}
