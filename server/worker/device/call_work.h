/* How long calls take whose work is more than the elements of their largest operand. */
#ifndef AD_WORKER_DEVICE_CALL_WORK_H
#define AD_WORKER_DEVICE_CALL_WORK_H

#include "protocol/op.h"

/* Estimate the ns that a call takes beyond its cost for each element, by the kind of work in its row of call.def; 0 for
 * most. Neither shapes nor parameters need have been checked. */
int64_t ad__call_more_work(const ad_op *op);
/* Get the ns of a processor that a call counts as at least on a device, where a part of it is one block of threads: 0
 * for most. Nothing need have been checked. */
int64_t ad__call_least_on_device(const ad_op *op);

#endif
