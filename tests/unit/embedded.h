/* The real server, for tests of what is not worth a fake one. */
#ifndef AD_TESTS_EMBEDDED_H
#define AD_TESTS_EMBEDDED_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include <arrayd.h>

/* A session with a server of this process alone; the test is passed over where none has been built. */
static inline ad_session *open_embedded(void) {
    ad_session *s = NULL;
    unsetenv("ARRAYD_BIN");
    int status = ad_session_open("embedded:cpu", &s);
    if (status == AD_E_CONNECTION && strstr(ad_error_message(), "no arrayd program"))
        cr_skip_test("no arrayd beside this test");
    cr_assert_eq(status, 0, "%s", ad_error_message());
    return s;
}

#endif
