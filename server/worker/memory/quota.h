/* Memory of a device for a session: within what the session may have, and its principal (account.h), and the device.
 * Only whoever runs the engine calls these. */
#ifndef AD_SERVER_WORKER_MEMORY_QUOTA_H
#define AD_SERVER_WORKER_MEMORY_QUOTA_H

#include "server/worker/net/session.h"

/* A block for a buffer, of a stream queue. AD_E_MEMORY: the fault names the limit, and who holds what. */
int ad__quota_take(ad_session *s, ad_stream_queue *queue, uint64_t size, ad_block *out, ad_fault *fault);
/* The same with a slab to itself (ad__memory_take_apart, or with plain ad__memory_take_plain). */
int ad__quota_take_apart(ad_session *s, ad_stream_queue *queue, uint64_t size, bool plain, ad_block *out,
                         ad_fault *fault);
/* The same for one that comes back from host memory, and counts for the session already. */
int ad__quota_return(ad_session *s, ad_stream_queue *queue, uint64_t size, ad_block *out, ad_fault *fault);
/* The same for what an operation needs until it is enqueued, and its end. */
int ad__quota_borrow(ad_session *s, ad_stream_queue *queue, uint64_t size, ad_block *out, ad_fault *fault);
void ad__quota_repay(ad_session *s, ad_stream_queue *queue, ad_block *b);
/* Memory that is not cut from slabs: a variable of a module, an import. */
int ad__quota_adopt(ad_session *s, ad_stream_queue *queue, ad_use use, uint64_t size, ad_fault *fault);
void ad__quota_leave(ad_stream_queue *queue, ad_use use, uint64_t size);
/* A window. AD_E_LIMIT. */
int ad__quota_window(ad_session *s, uint64_t size, ad_fault *fault);
void ad__quota_window_gone(ad_session *s, uint64_t size);
uint64_t ad__quota_counter(const ad_session *s, int index);

#endif
