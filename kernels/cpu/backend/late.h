#ifndef AD_KERNELS_CPU_BACKEND_LATE_H
#define AD_KERNELS_CPU_BACKEND_LATE_H

#include "kernels/backend.h"

/* A backend that does later what `real` does at once. */
const ad_backend *ad_cpu_late(const ad_backend *real);

#endif
