/* Estimates, in ns, of what messages and operations cost. */
#ifndef AD_SERVER_WORKER_DEVICE_COST_H
#define AD_SERVER_WORKER_DEVICE_COST_H

#include "protocol/message.h"

struct ad_worker_session;

/* Estimate the ns of a message, once where it comes again; INT64_MAX: too long to count. */
int64_t ad__exec_cost(const struct ad_worker_session *s, const ad_message *m);
/* Estimate the ns of an operation, above 0: of the host's processors, or of an asynchronous device. INT64_MAX: too long
 * to count. */
int64_t ad__op_cost(const ad_op *op);
int64_t ad__device_cost(const ad_op *op);
/* Estimate what an operation of the session takes its device, once where its message comes again; 0 where operations
 * are complete when they return. */
int64_t ad__cost_on_device(const struct ad_worker_session *s, const ad_op *op);
/* Count the elements of the largest operand that a kernel goes through, at least 1. */
int64_t ad__op_elements(const ad_op *op);
/* Tell whether the operation is a library call that cannot be interrupted. Its length must be estimated before. */
bool ad__op_decomposes(const ad_op *op);
/* Tell whether the operation is elementwise, and takes so long for each element that its length must be estimated
 * before a GPU begins it. */
bool ad__op_iterates(const ad_op *op);
/* Estimate the ns in which the host copies or sets so many bytes. */
static inline int64_t ad__bytes_cost(uint64_t bytes) { return 1 + (int64_t)(bytes / 8); }

#endif
