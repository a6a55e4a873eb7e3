/* Memory that comes as a descriptor. */
#ifndef AD_PROTOCOL_MEMFD_H
#define AD_PROTOCOL_MEMFD_H

#include "protocol/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Check that fd is a memfd of at least size bytes, open for reading and writing, whose mapped pages nobody can take
 * away. It must be sealed against shrinking, and have ordinary pages: a hole of hugetlbfs ends the process by SIGBUS
 * when its pool is empty. AD_E_VALUE, AD_E_EXTENT, AD_E_SYSTEM; the fault begins with `what`. */
int ad__memfd_check(const char *what, int fd, uint64_t size, ad_fault *fault);

#ifdef __cplusplus
}
#endif
#endif
