/* Memory that comes as a descriptor. */
#ifndef AD_PROTOCOL_MEMFD_H
#define AD_PROTOCOL_MEMFD_H

#include "protocol/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Is fd a memfd of size bytes, open for reading and writing, of which nobody can take a page away once it has been
 * mapped? It must be sealed against shrinking, and be of ordinary pages: those of hugetlbfs come from a pool that may
 * be empty when a hole is touched, which ends the process by SIGBUS. AD_E_VALUE, AD_E_EXTENT with a fault that begins
 * with `what`, says what is wrong and what was expected; AD_E_SYSTEM. */
int ad__memfd_check(const char *what, int fd, uint64_t size, ad_fault *fault);

#ifdef __cplusplus
}
#endif
#endif
