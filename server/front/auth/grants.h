/* Grants as they stand in files, for principals.c: "memory=2G". */
#ifndef AD_SERVER_FRONT_AUTH_GRANTS_H
#define AD_SERVER_FRONT_AUTH_GRANTS_H

#include "server/common/grants.h"

/* What everybody has who has no line. who: "uid:1000", "token:alice" ... */
ad_grants ad__grants_of_nobody(const char *who);
/* Take one from field, which is changed by that. NULL: done; else what was expected, and in *at of which piece. */
const char *ad__grant_take(char *field, ad_grants *g, const char **at);
/* Whether those of one line go together. NULL: they do; else why not. */
const char *ad__grants_check(const char *who, const ad_grants *g);

#endif
