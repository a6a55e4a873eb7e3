/* The jail: what a process that reads a user's source may still do. Once closed it cannot be left. */
#ifndef AD_SERVER_COMPILE_JAIL_H
#define AD_SERVER_COMPILE_JAIL_H

#include "protocol/base.h"

typedef struct ad_jail {
    const char *const *read; /* folders and files that may be read, and run where `programs`; NULL at the end */
    const char *write;       /* folder that may be written; NULL: none */
    bool programs;           /* may start programs */
    uint64_t memory;         /* bytes of address space */
    uint32_t seconds;        /* of processor time */
    bool optional;           /* go on where the kernel has no Landlock */
} ad_jail;

/* Does this kernel have Landlock? */
bool ad__jail_possible(void);
/* Close it around this process, which has one thread. AD_E_UNSUPPORTED: no Landlock; AD_E_SYSTEM. */
int ad__jail_close(const ad_jail *jail, ad_fault *fault);

#endif
