/* A private folder for one compilation by the host's compiler, which its process keeps locked. */
#ifndef AD_SERVER_COMPILE_SCRATCH_H
#define AD_SERVER_COMPILE_SCRATCH_H

#include "protocol/base.h"

#define AD_SCRATCH_PATH 64

/* Make one; *lock is what keeps it, until that is closed or the process ends. AD_E_SYSTEM. */
int ad__scratch_make(char out[AD_SCRATCH_PATH], int *lock, ad_fault *fault);
/* Write a file in it; name may have folders in it, which are made. AD_E_SYSTEM. */
int ad__scratch_write(const char *folder, const char *name, const void *data, size_t size, ad_fault *fault);
/* Remove it with all that is in it. */
void ad__scratch_remove(const char *folder);
/* Remove what processes that were killed have left behind: folders that nobody has locked. */
void ad__scratch_sweep(void);

#endif
