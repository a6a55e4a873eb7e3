/* The error message for a Unix socket that exists and may not be opened: why, and what to do. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client-c/client.h"
#include "protocol/owner.h"

#define WAY_OUT "or set ARRAYD_URL (embedded:auto is a server of this process alone)"

/* Find the first folder of the path that may not be searched; false: there is none. */
static bool find_closed_folder(const char *path, char folder[sizeof((ad_server_address *)0)->host], struct stat *st) {
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        size_t n = slash == path ? 1 : (size_t)(slash - path);
        memcpy(folder, path, n);
        folder[n] = 0;
        if (stat(folder, st) != 0) return false;
        if (faccessat(AT_FDCWD, folder, X_OK, AT_EACCESS) != 0) return true;
    }
    return false;
}

/* Explain a missing permission. need: the group's permission bit that would help the user. */
static int fail_permission(const ad_server_address *a, const char *what, const struct stat *st, mode_t need) {
    char owner[AD_OWNER_TEXT], group[AD_OWNER_NAME], user[AD_OWNER_NAME];
    ad__owner_text(st, owner);
    ad__owner_group(st->st_gid, group);
    ad__owner_user(geteuid(), user);
    if (st->st_mode & need && !ad__owner_in_group(st->st_gid))
        return ad__fail(AD_E_DENIED,
                        "%s: user %s may not open %s (%s): add yourself to group %s and log in again, " WAY_OUT, a->url,
                        user, what, owner, group);
    ad__owner_user(st->st_uid, group);
    return ad__fail(AD_E_DENIED, "%s: user %s may not open %s (%s): ask %s for it (option socket-mode), " WAY_OUT,
                    a->url, user, what, owner, group);
}

int ad__fail_denied(const ad_server_address *a, int error) {
    char folder[sizeof a->host], what[sizeof a->host + 16];
    struct stat st;
    if (find_closed_folder(a->host, folder, &st)) {
        snprintf(what, sizeof what, "the folder %s", folder);
        return fail_permission(a, what, &st, S_IXGRP);
    }
    if (stat(a->host, &st) == 0) return fail_permission(a, "the socket", &st, S_IWGRP);
    return ad__fail(AD_E_DENIED, "%s: %s; " WAY_OUT, a->url, strerror(error));
}
