/* Texts that sources of users are compiled with, embedded in the backends. */
#ifndef AD_KERNELS_RUN_H
#define AD_KERNELS_RUN_H

#include "kernels/compile.h"

/* Get the text that comes before a source for the host. */
ad_text ad_run_prelude();
/* Headers that a source may include by name. host: also those that a source for the host finds nothing more in. */
const ad_compile_header *ad_run_headers(bool host, size_t *n);

#endif
