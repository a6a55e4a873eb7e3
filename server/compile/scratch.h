/* A private folder for one compilation by the host's compiler, locked as long as its process runs. */
#ifndef AD_SERVER_COMPILE_SCRATCH_H
#define AD_SERVER_COMPILE_SCRATCH_H

#include "protocol/base.h"

#define AD_SCRATCH_PATH 64

/* Make a folder; the descriptor *lock keeps it from being swept until it is closed. AD_E_SYSTEM. */
int ad__scratch_make(char out[AD_SCRATCH_PATH], int *lock, ad_fault *fault);
/* Write a file in the folder, and make the folders that are part of its name. AD_E_SYSTEM. */
int ad__scratch_write(const char *folder, const char *name, const void *data, size_t size, ad_fault *fault);
/* Remove the folder with all that is in it. */
void ad__scratch_remove(const char *folder);
/* Remove the folders that killed processes have left behind: those that nobody has locked. */
void ad__scratch_sweep(void);

#endif
