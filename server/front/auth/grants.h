/* Grants as text in files, such as "memory=2G"; principals.c reads the lines. */
#ifndef AD_SERVER_FRONT_AUTH_GRANTS_H
#define AD_SERVER_FRONT_AUTH_GRANTS_H

#include "server/common/grants.h"

/* The grants of a principal without a line. who: "uid:1000", "token:alice" ... */
ad_grants ad__grants_of_nobody(const char *who);
/* Apply one grant's text, which this changes. NULL: done; else what was expected, and *at is the wrong part. */
const char *ad__grant_take(char *field, ad_grants *g, const char **at);
/* Check that the grants of one line fit each other. NULL: they do; else why not. */
const char *ad__grants_check(const char *who, const ad_grants *g);

#endif
