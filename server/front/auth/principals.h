/* Principals: who may come in, and what each of them may do, from the files of the options tokens and principals.
 *
 * Each principal has one line, with fields separated by blanks and # before a comment:
 *
 *     alice sha256:DIGITS memory=8G sessions=4                 tokens: name, hash of the token, grants
 *     uid:1000 kernels=no devices=0,1                          principals: who, grants
 *
 * who: uid:N, gid:N, uid:*, cert:NAME, cert:*, token:*. A user has the first of these lines that is there: its own, one
 * of its groups', that of uid:*.
 * expires=2026-12-31T23:59:59Z, only for tokens: nobody comes in by it from then on, and its sessions are ended.
 * grants: connect, kernels, exports, admin, peer (yes or no), names (yes, no or a number), sessions and buffers
 * (numbers), memory, memory-each and reserve (sizes), devices (numbers separated by commas, or all), priority (low,
 * normal or high). */
#ifndef AD_SERVER_FRONT_AUTH_PRINCIPALS_H
#define AD_SERVER_FRONT_AUTH_PRINCIPALS_H

#include <sys/types.h>

#include "server/common/channel.h"
#include "server/common/grants.h"

typedef struct ad_principals ad_principals;

/* Read both files; an empty path: there is none. The fault names file and line. AD_E_VALUE, AD_E_SYSTEM,
 * AD_E_MEMORY; AD_E_DENIED: others may write the file. */
int ad__principals_load(const char *tokens, const char *principals, ad_principals **out, ad_fault *fault);
void ad__principals_free(ad_principals *p);
/* Tell whether a text can be the name of a token's owner. */
bool ad__principals_is_name(const char *text);
size_t ad__principals_tokens(const ad_principals *p); /* number of tokens */
/* Iterate over the principals that have a line: *at is 0 at first. NULL: there are no more. */
const char *ad__principals_next(const ad_principals *p, size_t *at, ad_grants *grants);

/* Find the owner of a token: *who becomes "token:NAME", *expires the second since 1970 when it ends (0: never). False:
 * there is none. The time taken does not depend on the token's bytes. */
bool ad__principals_token(const ad_principals *p, const char *token, size_t size, char who[AD_PRINCIPAL_SIZE],
                          ad_grants *grants, int64_t *expires);
/* Find when the token of "token:NAME" expires, in seconds since 1970; 0: never. False: there is no such token. */
bool ad__principals_expiry(const ad_principals *p, const char *who, int64_t *expires);
bool ad__principals_expire(const ad_principals *p); /* whether a token will expire or has */
/* Make *who "cert:NAME" and find its grants. False: the name is too long. */
bool ad__principals_certificate(const ad_principals *p, const char *name, char who[AD_PRINCIPAL_SIZE],
                                ad_grants *grants);
/* Tell whether the file of principals has a line for who ("uid:1000"). */
bool ad__principals_names(const ad_principals *p, const char *who);
/* Make *who "uid:N" and find its grants. groups: all groups of the user. */
void ad__principals_user(const ad_principals *p, uid_t uid, size_t n, const gid_t *groups, char who[AD_PRINCIPAL_SIZE],
                         ad_grants *grants);

#endif
