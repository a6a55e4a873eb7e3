/* Declarations that the files of moved buffers share. */
#ifndef AD_SERVER_WORKER_SPILL_INSIDE_H
#define AD_SERVER_WORKER_SPILL_INSIDE_H

#include "server/worker/spill/spill.h"

/* A buffer's bytes in host memory, and the copy to them or from them. Neither side's memory is used again before the
 * copy is complete, and the journal says where the bytes are now. */
struct ad_moved {
    ad_moved *next, *prev; /* neighbours in the list of copies under way; next also links spare objects */
    ad_block block;        /* memory in the host */
    ad_gpu *gpu;           /* device of the event */
    ad_event *event;       /* event after the copy; NULL: copies are complete when they return */
    ad_stream *stream;     /* stream of the copy */
    bool under_way;
    bool leaving; /* no buffer has its bytes here any more */
    ad_worker_session *session;
    ad_stream_arena *home; /* stream arena of `left`, which the buffer has left; left.slab NULL: none */
    ad_block left;
    uint32_t place; /* place of the row that gets `now`, once the copy is complete; 0: none */
    ad_journal_place now;
};

/* ---- spill.c ---- */
/* Charge the copy that was enqueued to its stream, and record its event. */
void ad__spill_end_copy(ad_worker *w, ad_worker_session *s, ad_stream_queue *queue, ad_moved *m);
/* Set the place of the buffer's bytes, which the journal gets when the copy is complete. */
void ad__spill_set_place(ad_worker_session *s, ad_buffer *b, ad_moved *m, const ad_block *block);
/* Give up a buffer's host memory. While other buffers are moved, spare host memory is kept for them. */
void ad__spill_leave_host(ad_worker *w, ad_buffer *b);

#endif
