/* What a worker knows of itself and its sessions, told to arrayd when that asks: a head, then sessions, principals,
 * devices and names, as many of each as the head says, in one memory file. Both ends are of one build; arrayd checks
 * sizes and texts all the same, because a worker may have been taken over by a kernel of its user. */
#ifndef AD_SERVER_REPORT_H
#define AD_SERVER_REPORT_H

#include "server/common/channel.h"

#define AD_REPORT_MAGIC (0x61647265706f7274ull ^ AD_NCOUNTER)
#define AD_REPORT_SESSIONS 65536 /* most in a report, ... */
#define AD_REPORT_NAMES 65536
#define AD_REPORT_PRINCIPALS 1024 /* ... whose ended sessions are counted apart; those of all others together */
#define AD_REPORT_DEVICES 64

#define AD_FORKED_SESSION (UINT64_C(1) << 62) /* ids of sessions that a fork began: root and number of the fork */
#define AD_PROBE_SESSION (UINT64_C(1) << 61)  /* ids of arrayd's own, with which it looks whether a worker works */

/* The root is the session of arrayd's with which a line of forks begins. */
static inline uint64_t ad__session_root(uint64_t id) {
    return (id & AD_FORKED_SESSION ? id >> 32 : id) & ((AD_PROBE_SESSION >> 32) - 1);
}
static inline uint64_t ad__session_forked(uint64_t parent, uint64_t number) {
    return AD_FORKED_SESSION | ad__session_root(parent) << 32 | (uint32_t)number;
}

static inline bool ad__session_is_probe(uint64_t id) { return !(id & AD_FORKED_SESSION) && id & AD_PROBE_SESSION; }

enum { AD_REPORT_WITH_NAMES = 1 };

typedef struct ad_report_head {
    uint64_t magic;
    uint32_t sessions, principals, devices, names;
    int64_t counter[AD_NCOUNTER]; /* the worker's; those of sessions are 0 */
} ad_report_head;

typedef struct ad_report_session {
    uint64_t id;
    int64_t idle;                  /* ns since it was last executed for */
    uint64_t ending, away, traced; /* away: it waits for its client, whose connection is gone */
    char principal[AD_PRINCIPAL_SIZE], client[128];
    int64_t counter[AD_NCOUNTER];
} ad_report_session;

/* Sessions of a principal that are over. */
typedef struct ad_report_principal {
    uint64_t sessions;
    char principal[AD_PRINCIPAL_SIZE];
    int64_t counter[AD_NCOUNTER];
} ad_report_principal;

typedef struct ad_report_device {
    uint64_t index, open; /* what follows is known of those that are open */
    uint64_t memory, limit, slab_bytes, slabs, used;
    char name[64];
} ad_report_device;

typedef struct ad_report_name {
    char name[208], principal[AD_PRINCIPAL_SIZE];
    uint64_t bytes, device, dtype, ndim, writable;
    int64_t shape[AD_MAX_NDIM];
} ad_report_name;

/* Sections in this order: member of the head, row type. */
#define AD_REPORT_SECTIONS(X)          \
    X(sessions, ad_report_session)     \
    X(principals, ad_report_principal) \
    X(devices, ad_report_device)       \
    X(names, ad_report_name)

/* A report in memory; head is NULL: there is none. */
typedef struct ad_report {
    const ad_report_head *head; /* owns all of it */
#define X(member, type) const type *member;
    AD_REPORT_SECTIONS(X)
#undef X
} ad_report;

/* Read and check a report of size bytes from a file. AD_E_PROTOCOL: it is none; AD_E_MEMORY. *out is untouched then. */
int ad__report_read(int fd, uint64_t size, ad_report *out);
void ad__report_free(ad_report *r);

#endif
