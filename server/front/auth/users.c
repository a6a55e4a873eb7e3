/* User ids: does one that the kernel reports stand for one user only? */
#include <stdio.h>

#include "server/front/front.h"

/* User id that the kernel reports for users without a number here, unless configured otherwise. */
#define OTHERS 65534
#define EVERYBODY 4294967295U

static unsigned long read_file_number(const char *path, unsigned long otherwise) {
    FILE *file = fopen(path, "re");
    unsigned long n;
    if (!file) return otherwise;
    if (fscanf(file, "%lu", &n) != 1) n = otherwise;
    fclose(file);
    return n;
}

/* Tell whether every user has a number here: in the first user namespace, or in one that maps all of them. */
static bool is_everybody_mapped(void) {
    unsigned long inside, outside, count;
    FILE *file = fopen("/proc/self/uid_map", "re");
    if (!file) return true;
    int n = fscanf(file, "%lu %lu %lu", &inside, &outside, &count);
    fclose(file);
    return n != 3 || (inside == 0 && count == EVERYBODY);
}

bool ad__users_are_distinct(uid_t uid) {
    return uid != read_file_number("/proc/sys/kernel/overflowuid", OTHERS) || is_everybody_mapped();
}
