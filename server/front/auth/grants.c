/* Reading and checking grants: see grants.h. */
#include "server/front/auth/grants.h"

#include <stdlib.h>
#include <string.h>

#include "server/common/config.h"

/* Grants without a line in a file. A user's kernel can reach all that its process can, and names need a machine in
 * common. So strangers must be granted both. Capabilities are useless to others, so that everybody may export. */
static const ad_grants of_strangers = {.may = AD_GRANT_CONNECT | AD_GRANT_EXPORTS, .devices = AD_GRANT_ALL_DEVICES};
static const ad_grants of_users = {.may = AD_GRANT_CONNECT | AD_GRANT_KERNELS | AD_GRANT_EXPORTS | AD_GRANT_NAMES,
                                   .devices = AD_GRANT_ALL_DEVICES};

ad_grants ad__grants_of_nobody(const char *who) {
    return strncmp(who, "uid:", 4) && strncmp(who, "gid:", 4) ? of_strangers : of_users;
}

/* The smallest window that a client can work with. */
#define LEAST_OPERATIONS 16
#define LEAST_BYTES (64u << 10)

static bool parse_devices(const char *text, uint64_t *out) {
    uint64_t mask = 0;
    if (!strcmp(text, "all")) {
        *out = AD_GRANT_ALL_DEVICES;
        return true;
    }
    for (;; text++) {
        char *end;
        unsigned long n = *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 64;
        if (n >= 64 || (*end && *end != ',')) return false;
        mask |= UINT64_C(1) << n;
        text = end;
        if (!*text) break;
    }
    *out = mask;
    return true;
}

static bool parse_nanoseconds(const char *text, uint64_t *out) {
    double seconds;
    if (!ad__config_parse_seconds(text, &seconds)) return false;
    *out = (uint64_t)(seconds * 1e9);
    return true;
}

/* A share of 0 is a decision against one, and differs from a grant that is not there. */
static bool parse_share(const char *text, uint64_t *out) {
    if (!ad__config_parse_count(text, out)) return false;
    if (!*out) *out = AD_GRANT_NO_SHARE;
    return true;
}

static bool parse_priority(const char *text, int64_t *out) {
    static const char *const names[] = {"low", "normal", "high"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, names[i])) continue;
        *out = AD_PRIORITY_LOW + i;
        return true;
    }
    return false;
}

static const struct {
    const char *name;
    uint64_t bit;
} permissions[] = {
    {"connect", AD_GRANT_CONNECT}, {"kernels", AD_GRANT_KERNELS}, {"exports", AD_GRANT_EXPORTS},
    {"names", AD_GRANT_NAMES},     {"admin", AD_GRANT_ADMIN},     {"peer", AD_GRANT_PEER},
};

static uint64_t find_permission(const char *name) {
    for (size_t i = 0; i < sizeof permissions / sizeof *permissions; i++)
        if (!strcmp(name, permissions[i].name)) return permissions[i].bit;
    return 0;
}

/* Set a permission from yes or no; for names also from a number. NULL, or what was expected. */
static const char *set_permission(uint64_t bit, const char *value, ad_grants *g) {
    uint64_t most = 0;
    bool yes;
    if (bit == AD_GRANT_NAMES && ad__config_parse_count(value, &most))
        yes = most > 0; /* names=1 is one name, not yes */
    else if (!ad__config_parse_bool(value, &yes))
        return bit == AD_GRANT_NAMES ? "expected yes, no or how many" : "expected yes or no";
    if (bit == AD_GRANT_NAMES) g->names = most;
    g->may = yes ? g->may | bit : g->may & ~bit;
    g->named |= bit;
    return NULL;
}

static const struct {
    const char *name;
    size_t member;
    bool (*parse)(const char *text, uint64_t *out);
    const char *expected;
} numbers[] = {
    {"sessions", offsetof(ad_grants, sessions), ad__config_parse_count, "expected a whole number"},
    {"buffers", offsetof(ad_grants, buffers), ad__config_parse_count, "expected a whole number"},
    {"operations", offsetof(ad_grants, operations), ad__config_parse_count, "expected a whole number"},
    {"bytes", offsetof(ad_grants, bytes), ad__config_parse_size, "expected a size, as 512K or 2M"},
    {"memory", offsetof(ad_grants, memory), ad__config_parse_size, "expected a size, as 512M or 2G"},
    {"memory-each", offsetof(ad_grants, each), ad__config_parse_size, "expected a size, as 512M or 2G"},
    {"reserve", offsetof(ad_grants, reserve), ad__config_parse_size, "expected a size, as 512M or 2G"},
    {"kernel-time", offsetof(ad_grants, kernel_time), parse_nanoseconds, "expected seconds"},
    {"sm-share", offsetof(ad_grants, sm_share), parse_share, "expected how many multiprocessors"},
    {"devices", offsetof(ad_grants, devices), parse_devices, "expected all, or numbers of devices as 0,1"},
};

const char *ad__grant_take(char *field, ad_grants *g, const char **at) {
    char *value = strchr(field, '=');
    *at = field;
    if (!value) return "expected a grant, as memory=2G";
    *value++ = 0;
    uint64_t bit = find_permission(field);
    if (bit) {
        *at = value;
        return set_permission(bit, value, g);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strcmp(field, numbers[i].name)) continue;
        *at = value;
        return numbers[i].parse(value, (uint64_t *)(void *)((char *)g + numbers[i].member)) ? NULL
                                                                                            : numbers[i].expected;
    }
    if (strcmp(field, "priority")) return "there is no such grant: docs/operations.md lists them";
    *at = value;
    return parse_priority(value, &g->priority) ? NULL : "expected low, normal or high";
}

/* Tell whether this names one principal: memory cannot be reserved for all who may come. */
static bool is_single_principal(const char *who) { return strncmp(who, "gid:", 4) && strcmp(strchr(who, ':'), ":*"); }

const char *ad__grants_check(const char *who, const ad_grants *g) {
    if (g->reserve && !is_single_principal(who)) return "memory can be reserved for a token, uid:N or cert:NAME only";
    if (g->operations && g->operations < LEAST_OPERATIONS)
        return "no client works with fewer than 16 operations in flight";
    if (g->bytes && g->bytes < LEAST_BYTES) return "no client works with less than 64K in flight (bytes)";
    if (g->reserve && g->memory && g->reserve > g->memory) return "it has more reserved than it may have (memory)";
    return NULL;
}
