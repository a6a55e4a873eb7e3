/* The grants of a principal. arrayd reads them from its file of principals, and workers apply them. */
#ifndef AD_SERVER_GRANTS_H
#define AD_SERVER_GRANTS_H

#include "protocol/base.h"

enum {
    AD_GRANT_CONNECT = 1, /* open sessions */
    AD_GRANT_KERNELS = 2, /* run kernels of its own */
    AD_GRANT_EXPORTS = 4, /* hand arrays to other sessions by capability, or out of the server */
    AD_GRANT_NAMES = 8,   /* publish arrays under names, and look names up */
    AD_GRANT_ADMIN = 16,  /* see and end what belongs to others */
    AD_GRANT_PEER = 32,   /* a server: come for another principal, for arrays of which it has capabilities. Of sessions
                             only those that have come so have it */
};

typedef enum ad_priority { AD_PRIORITY_LOW = -1, AD_PRIORITY_NORMAL, AD_PRIORITY_HIGH } ad_priority;

typedef struct ad_grants {
    uint64_t may;        /* AD_GRANT_* */
    uint64_t named;      /* the bits of `may` that a file gives or refuses; options decide the others */
    uint64_t sessions;   /* sessions at a time; 0: as many as the server takes */
    uint64_t memory;     /* bytes of device memory; 0: as many as the server has */
    uint64_t each;       /* bytes of memory of each session, on all devices together; 0: no limit for sessions */
    uint64_t reserve;    /* bytes of each of its devices that no other principal gets */
    uint64_t names;      /* names that it may publish; 0: as many as the server takes */
    uint64_t buffers;    /* buffers of each of its sessions; 0: as many as the server takes */
    uint64_t operations; /* operations sent and not yet executed, in all its sessions; 0: as many as the windows of its
                            sessions hold */
    uint64_t
        bytes; /* bytes of operations sent and not yet executed, in all its sessions; 0: as many as the windows hold */
    uint64_t kernel_time; /* ns that one of its kernels may take; 0: option kernel-time decides */
    uint64_t sm_share;    /* multiprocessors that are reserved for it; AD_GRANT_NO_SHARE; 0: option sm-share decides */
    uint64_t devices;     /* bit mask of the devices that it may use */
    int64_t priority;     /* AD_PRIORITY_* */
} ad_grants;

#define AD_GRANT_ALL_DEVICES UINT64_MAX
#define AD_GRANT_NO_SHARE UINT64_MAX

#endif
