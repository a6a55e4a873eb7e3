/* What a principal may do, as the front finds it and a worker applies it. */
#ifndef AD_SERVER_GRANTS_H
#define AD_SERVER_GRANTS_H

#include "protocol/base.h"

enum {
    AD_GRANT_CONNECT = 1, /* have sessions at all */
    AD_GRANT_KERNELS = 2, /* run kernels of its own */
    AD_GRANT_EXPORTS = 4, /* hand arrays to other sessions by capability, or out of the server */
    AD_GRANT_NAMES = 8,   /* publish arrays under names, and look names up */
    AD_GRANT_ADMIN = 16,  /* see and end what is others' */
};

typedef enum ad_priority { AD_PRIORITY_LOW = -1, AD_PRIORITY_NORMAL, AD_PRIORITY_HIGH } ad_priority;

typedef struct ad_grants {
    uint64_t may;         /* AD_GRANT_* */
    uint64_t named;       /* those that a file gives or refuses; the others are as for everybody */
    uint64_t sessions;    /* at a time; 0: as many as the server takes */
    uint64_t memory;      /* bytes of a device; 0: as many as the server has */
    uint64_t each;        /* the same for each of its sessions, on all devices together; 0: no limit of its own */
    uint64_t reserve;     /* bytes of each of its devices that nobody else gets */
    uint64_t names;       /* that it may publish; 0: as many as the server takes */
    uint64_t buffers;     /* of each of its sessions; 0: as many as the server takes */
    uint64_t operations;  /* in flight: sent and not executed, in all its sessions; 0: as many as each session may */
    uint64_t bytes;       /* the same */
    uint64_t kernel_time; /* ns that one of its kernels may take; 0: as the option kernel-time says */
    uint64_t devices;     /* bit mask of those that it may use */
    int64_t priority;     /* AD_PRIORITY_* */
} ad_grants;

#define AD_GRANT_ALL_DEVICES UINT64_MAX

#endif
