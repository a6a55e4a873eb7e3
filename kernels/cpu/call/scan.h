/* Running sums and products of what a chain makes (kernels/cpu/fuse/chain.h). */
#ifndef AD_KERNELS_CPU_CALL_SCAN_H
#define AD_KERNELS_CPU_CALL_SCAN_H

#include "kernels/call.h"

struct ad_chain_program;

/* Tell whether the operation is a scan that reads its input, of its own type and in row-major order, in long runs. A
 * chain can then make the elements where they are read. */
bool ad_cpu_scan_takes(const ad_op *op);
/* The operation is a scan that works as well where its input lies in its output's memory. */
bool ad_cpu_scan_stays(const ad_op *op);
/* A scan. values: makes the elements of its input, which has no memory; NULL: it has. */
int ad_cpu_scan(ad_call *c, const ad_chain_program *values);

#endif
