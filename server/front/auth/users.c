/* Whether the kernel's word on who a user is tells users apart. */
#include <stdio.h>

#include "server/front/front.h"

#define OTHERS 65534 /* what the kernel says for users that have no number here, unless it was told otherwise */
#define EVERYBODY 4294967295U

static unsigned long number_in(const char *path, unsigned long otherwise) {
    FILE *file = fopen(path, "re");
    unsigned long n;
    if (!file) return otherwise;
    if (fscanf(file, "%lu", &n) != 1) n = otherwise;
    fclose(file);
    return n;
}

/* Every user has a number in the first namespace, and in one that maps all of them. */
static bool everybody_is_mapped(void) {
    unsigned long inside, outside, count;
    FILE *file = fopen("/proc/self/uid_map", "re");
    if (!file) return true;
    int n = fscanf(file, "%lu %lu %lu", &inside, &outside, &count);
    fclose(file);
    return n != 3 || (inside == 0 && count == EVERYBODY);
}

bool ad__users_apart(uid_t uid) {
    return uid != number_in("/proc/sys/kernel/overflowuid", OTHERS) || everybody_is_mapped();
}
