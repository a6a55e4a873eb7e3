/* Executing queries, and copies of views. Runner only. */
#ifndef AD_SERVER_WORKER_EXEC_EXEC_H
#define AD_SERVER_WORKER_EXEC_EXEC_H

#include "server/worker/session.h"

/* Execute a query, whose outputs are sized; values has 8 places. NULL: done; otherwise the failure, owned by the
 * caller. */
ad_poison *ad__exec_query(ad_worker_session *s, ad_message *m, int64_t *values, int *nvalues);
/* Copy a view into a contiguous block of scratch memory. */
int ad__exec_contiguous(ad_worker_session *s, ad_stream_queue *stream_queue, const ad_operand *view, uint64_t size,
                        ad_block *out, ad_fault *fault);

#endif
