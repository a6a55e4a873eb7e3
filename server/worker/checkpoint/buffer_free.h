/* Freeing buffers. Runner only. */
#ifndef AD_SERVER_WORKER_CHECKPOINT_BUFFER_FREE_H
#define AD_SERVER_WORKER_CHECKPOINT_BUFFER_FREE_H

#include "server/worker/session.h"

/* Free the memory of a buffer, or leave it to other sessions that hold it; the buffer stays. */
void ad__buffer_give_memory(ad_worker_session *s, ad_buffer *b);
/* Free a buffer whose id is removed already: its memory, its poison and its record. */
void ad__buffer_give(ad_worker_session *s, ad_buffer *b);
/* Free a buffer now, or once a successor cannot need it any more (deferred free). */
void ad__buffer_free(ad_worker_session *s, ad_buffer *b);

#endif
