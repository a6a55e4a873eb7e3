/* The jail of a process that reads a user's source: it limits files, system calls and resources. It cannot be
 * undone. */
#ifndef AD_SERVER_COMPILE_JAIL_H
#define AD_SERVER_COMPILE_JAIL_H

#include "protocol/base.h"

typedef struct ad_jail {
    const char *const *read; /* folders and files that may be read, and executed if `programs`; NULL at the end */
    const char *write;       /* a folder that may be written; NULL: none */
    bool programs;           /* the process may start programs */
    uint64_t memory;         /* limit of address space in bytes */
    uint32_t seconds;        /* limit of processor time */
    bool optional;           /* continue without Landlock where the kernel has none */
} ad_jail;

/* Tell whether this kernel has Landlock. */
bool ad__jail_possible(void);
/* Put this process, which has one thread, into the jail. AD_E_UNSUPPORTED: there is no Landlock; AD_E_SYSTEM. */
int ad__jail_close(const ad_jail *jail, ad_fault *fault);

#endif
