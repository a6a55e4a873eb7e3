/* Threads that help to copy from host memory to host memory: one does not keep a PCIe link busy. */
#ifndef AD_KERNELS_CUDA_BACKEND_TEAM_H
#define AD_KERNELS_CUDA_BACKEND_TEAM_H

#include <stddef.h>

struct ad_cuda_team;

ad_cuda_team *ad_cuda_team_open(); /* NULL: out of memory. Its threads start with the first large copy. */
void ad_cuda_team_close(ad_cuda_team *team);
/* Copy with a team. One caller at a time. */
void ad_cuda_team_copy(ad_cuda_team *team, void *to, const void *from, size_t size);

#endif
