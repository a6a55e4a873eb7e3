/* The report of a worker on itself and its sessions, in a memory file that arrayd asks for:
 *
 *     +------+----------+------------+---------+-------+
 *     | head | sessions | principals | devices | names |
 *     +------+----------+------------+---------+-------+
 *
 * The head counts the rows of each section. Both programs are of one build; arrayd checks sizes and texts all the
 * same, because a kernel may have taken over the worker. */
#ifndef AD_SERVER_REPORT_H
#define AD_SERVER_REPORT_H

#include "protocol/counters.h"
#include "server/common/channel.h"

#define AD_REPORT_MAGIC (0x61647265706f7274ull ^ AD_NCOUNTER)
#define AD_REPORT_SESSIONS 65536 /* most sessions in a report */
#define AD_REPORT_NAMES 65536
#define AD_REPORT_PRINCIPALS \
    1024 /* principals whose ended sessions are counted apart; the others' are counted together */
#define AD_REPORT_DEVICES 64

#define AD_FORKED_SESSION \
    (UINT64_C(1) << 62) /* bit of the ids of sessions that a fork began; the others are root and number */
#define AD_PROBE_SESSION \
    (UINT64_C(1) << 61) /* bit of the ids of arrayd's own sessions, which check that a worker works */

/* The root of a line of forks: the session that arrayd began. */
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
    int64_t counter[AD_NCOUNTER]; /* the worker's counters; those of sessions are 0 */
} ad_report_head;

typedef struct ad_report_session {
    uint64_t id;
    int64_t idle;                  /* ns since the session last had something executed */
    uint64_t ending, away, traced; /* away: the session waits for its client, whose connection is gone */
    char principal[AD_PRINCIPAL_SIZE], client[128];
    char doing[40];   /* the long operation that is executed for it; "": none */
    int64_t doing_ns; /* since it began */
    int64_t counter[AD_NCOUNTER];
} ad_report_session;

/* The ended sessions of a principal, added up. */
typedef struct ad_report_principal {
    uint64_t sessions;
    char principal[AD_PRINCIPAL_SIZE];
    int64_t counter[AD_NCOUNTER];
} ad_report_principal;

typedef struct ad_report_device {
    uint64_t index, open; /* 1: the worker has opened it; all that follows is 0 otherwise */
    uint64_t memory, limit, slab_bytes, slabs, used;
    uint64_t reserved; /* multiprocessors kept free for light sessions (option sm-share) */
    char name[64];
} ad_report_device;

typedef struct ad_report_name {
    char name[208], principal[AD_PRINCIPAL_SIZE];
    uint64_t bytes, device, dtype, ndim, writable;
    int64_t shape[AD_MAX_NDIM];
} ad_report_name;

/* The sections in their order: member of the head, type of a row. */
#define AD_REPORT_SECTIONS(X)          \
    X(sessions, ad_report_session)     \
    X(principals, ad_report_principal) \
    X(devices, ad_report_device)       \
    X(names, ad_report_name)

/* A report in memory; head is NULL: there is none. */
typedef struct ad_report {
    const ad_report_head *head; /* owns the memory of all sections */
#define X(member, type) const type *member;
    AD_REPORT_SECTIONS(X)
#undef X
} ad_report;

/* Read and check a report of size bytes from a file. AD_E_PROTOCOL: it is not a report; AD_E_MEMORY. *out is
 * untouched then. */
int ad__report_read(int fd, uint64_t size, ad_report *out);
void ad__report_free(ad_report *r);

#endif
