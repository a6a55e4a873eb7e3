/* Owners of files, and checks of files of secrets: see owner.h. */
#include "protocol/owner.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORD 4096 /* bytes of a line of passwd or group that are read for a name */

/* ---- names ---- */

static void write_name(const char *name, unsigned number, char out[AD_OWNER_NAME]) {
    if (name) snprintf(out, AD_OWNER_NAME, "%s", name);
    else snprintf(out, AD_OWNER_NAME, "%u", number);
}

void ad__owner_user(uid_t user, char out[AD_OWNER_NAME]) {
    char room[RECORD];
    struct passwd record, *found = NULL;
    getpwuid_r(user, &record, room, sizeof room, &found);
    write_name(found ? found->pw_name : NULL, (unsigned)user, out);
}

void ad__owner_group(gid_t group, char out[AD_OWNER_NAME]) {
    char room[RECORD];
    struct group record, *found = NULL;
    getgrgid_r(group, &record, room, sizeof room, &found);
    write_name(found ? found->gr_name : NULL, (unsigned)group, out);
}

void ad__owner_text(const struct stat *st, char out[AD_OWNER_TEXT]) {
    char user[AD_OWNER_NAME], group[AD_OWNER_NAME];
    ad__owner_user(st->st_uid, user);
    ad__owner_group(st->st_gid, group);
    snprintf(out, AD_OWNER_TEXT, "mode %04o, owner %s:%s", (unsigned)st->st_mode & 07777, user, group);
}

bool ad__owner_in_group(gid_t group) {
    int n = getgroups(0, NULL);
    gid_t *list = n > 0 ? calloc((size_t)n, sizeof *list) : NULL;
    bool in = group == getegid();
    if (list) n = getgroups(n, list);
    for (int i = 0; list && i < n; i++) in = in || list[i] == group;
    free(list);
    return in;
}

#define PATH_SHOWN 80 /* characters of a path in a message */

const char *ad__path_end(const char *path) {
    const size_t n = strlen(path);
    return n > PATH_SHOWN ? path + n - PATH_SHOWN : path;
}

/* ---- secrets ---- */

/* Find the bits of the mode that give access to others. Those of root's own group do not. systemd's credentials have
 * them, as their access list is shown there. */
static mode_t find_open_bits(const struct stat *st) {
    bool trusted = st->st_uid == 0 && (st->st_gid == 0 || ad__owner_in_group(st->st_gid));
    return st->st_mode & (S_IRWXO | (trusted ? S_IWGRP : S_IRWXG));
}

int ad__owner_check_secret(const struct stat *st, const char *what, const char *path, ad_fault *fault) {
    char text[AD_OWNER_TEXT];
    ad__owner_text(st, text);
    if (st->st_uid != 0 && st->st_uid != geteuid())
        return ad__fault(fault, AD_E_DENIED, "%s %s is somebody else's (%s): chown it to the user who needs it", what,
                         ad__path_end(path), text);
    if (find_open_bits(st))
        return ad__fault(fault, AD_E_DENIED, "%s %s is open to others (%s): chmod 600 it", what, ad__path_end(path),
                         text);
    return 0;
}

int ad__owner_check_path(const char *what, const char *path, ad_fault *fault) {
    struct stat st;
    return stat(path, &st) ? 0 : ad__owner_check_secret(&st, what, path, fault);
}
