/* Device memory for a session, within the limits of the session, of its principal (account.h) and of the device.
 *
 * Runner: all functions here. */
#ifndef AD_SERVER_WORKER_SPILL_QUOTA_H
#define AD_SERVER_WORKER_SPILL_QUOTA_H

#include "server/worker/session.h"

/* Take a block of a stream queue for a buffer. AD_E_MEMORY: the fault names the limit, and who holds what. */
int ad__quota_take(ad_worker_session *s, ad_stream_queue *queue, uint64_t size, ad_block *out, ad_fault *fault);
/* Take a block with a slab of its own (plain: ad__memory_take_plain, else ad__memory_take_apart). */
int ad__quota_take_apart(ad_worker_session *s, ad_stream_queue *queue, uint64_t size, bool plain, ad_block *out,
                         ad_fault *fault);
/* Take a block for a buffer that comes back from host memory. The session's limit counts it already. */
int ad__quota_return(ad_worker_session *s, ad_stream_queue *queue, uint64_t size, ad_block *out, ad_fault *fault);
/* Take a block that an operation needs until it is enqueued, and give it back. */
int ad__quota_borrow(ad_worker_session *s, ad_stream_queue *queue, uint64_t size, ad_block *out, ad_fault *fault);
void ad__quota_repay(ad_worker_session *s, ad_stream_queue *queue, ad_block *b);
/* Charge memory that is not cut from slabs, for a variable of a module or an import, and end that. */
int ad__quota_adopt(ad_worker_session *s, ad_stream_queue *queue, ad_use use, uint64_t size, ad_fault *fault);
void ad__quota_leave(ad_stream_queue *queue, ad_use use, uint64_t size);
/* Charge a window, and end that. AD_E_LIMIT. */
int ad__quota_window(ad_worker_session *s, uint64_t size, ad_fault *fault);
void ad__quota_window_gone(ad_worker_session *s, uint64_t size);
/* Tell whether the session's own limits have room for `size` more bytes of buffers. */
bool ad__quota_has_room(const ad_worker_session *s, uint64_t size);
/* Count all bytes that the session's limit is for. */
uint64_t ad__quota_held(const ad_worker_session *s);
/* Find the account of the session's principal on the device of its current stream: an empty one if it has used none. */
const ad_account *ad__quota_account(const ad_worker_session *s);

#endif
