/* The operations of the fusion queue (queue.h). Runner only. */
#ifndef AD_SERVER_WORKER_FUSION_ENTRIES_H
#define AD_SERVER_WORKER_FUSION_ENTRIES_H

#include "protocol/rows_request.h"
#include "server/worker/session.h"

/* Tell whether an operand is a view of an array that exists. */
static inline bool ad__fusion_is_view(const ad_operand *o) { return !o->is_scalar && o->desc.form == AD_VIEW; }
/* Tell whether a fusible operation ends a chain: a reduction or scan, whose value no queued operation may use. */
static inline bool ad__fusion_is_end(const ad_op *op) {
    return op->opcode == AD_REQ_REDUCE || (op->opcode == AD_REQ_CALL && op->row != AD_CALL_random);
}
/* Get the description whose shape must be that of all operations queued for one stream queue. */
static inline const ad_desc *ad__fusion_shape_of(const ad_op *op) {
    return &op->operand[op->opcode == AD_REQ_REDUCE ? 1 : 0].desc;
}
/* Tell whether no input is a queued value. */
bool ad__fusion_is_root(const ad_op *op, ad_buffer *const *buffer);
/* Append an operation to the queue; its outputs have buffers. */
void ad__fusion_append(ad_worker_session *s, const ad_fusion_op *op);
/* Copy all that an operation points at into an arena. False: no host memory. */
bool ad__fusion_copy_op(ad_arena *to, ad_op *op);
/* Tell whether launching queued operations takes longer than executing them. Then independent groups are launched
 * together. */
bool ad__fusion_launch_costs_more(const ad_worker_session *s);
/* Release the buffers of queued operation i. */
void ad__fusion_release_op(ad_worker_session *s, unsigned i);
/* Allocate memory for a buffer that has none yet; the second fills new memory with zeros. */
int ad__fusion_provide_memory(ad_worker_session *s, ad_stream_queue *queue, ad_buffer *b, ad_fault *fault);
int ad__fusion_provide_zeros(ad_worker_session *s, ad_stream_queue *queue, ad_buffer *b, ad_fault *fault);

#endif
