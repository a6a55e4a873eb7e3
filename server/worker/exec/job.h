/* One operation while it is executed. Between exec.c and ops.c. */
#ifndef AD_SERVER_WORKER_EXEC_JOB_H
#define AD_SERVER_WORKER_EXEC_JOB_H

#include "server/worker/net/session.h"

#define JOB_SCRATCH 64

typedef struct job {
    ad_run run; /* first: the backend's callbacks get the job by it */
    ad_session *s;
    ad_stream_queue *stream_queue;
    ad_op *op;
    uint64_t number;
    ad_launching *launch; /* NULL: an operation of the tables */
    ad_buffer **buffer;   /* of each operand; NULL: scalar, or not made yet */
    bool *made;           /* the output's buffer is new */
    ad_buffer *own_buffer[AD_MAX_OUT + AD_MAX_IN];
    bool own_made[AD_MAX_OUT];
    bool queued;                   /* until now; its fresh outputs have buffers */
    ad_poison *inherited;          /* an operand's */
    ad_operand behind[AD_MAX_OUT]; /* outputs for which scratch memory stands while it runs, */
    int written[AD_MAX_OUT];       /* of these numbers, */
    int nbehind;                   /* that many */
    ad_block scratch[JOB_SCRATCH];
    int nscratch;
    int using;            /* so many buffers are to stay where they are until its end */
    ad_fault fault, lack; /* lack: why there was no scratch memory */
} job;

void ad__job_begin(job *j, ad_session *s, ad_op *op, uint64_t number);
/* The same for a LAUNCH, with room for all its operands. AD_E_MEMORY. */
int ad__job_begin_launch(job *j, ad_session *s, ad_message *m, ad_launching *l, uint64_t number);
int ad__job_run(job *j);   /* 0, or why not: j->inherited or j->fault */
int ad__job_check(job *j); /* the part of it that changes nothing: j->stream_queue is set, j->buffer filled */
void ad__job_set_queued(job *j, ad_stream_queue *queue,
                        ad_buffer *const *buffer); /* an operation that was queued, with its buffers ... */
int ad__job_run_queued(job *j);                    /* ... as ad__job_run */
ad_poison *ad__job_fail(job *j, int status);       /* record it in outputs and session; the caller owns the result */
void ad__job_end(job *j);
/* NULL: there is none; j->lack says why. */
void *ad__job_scratch(job *j, uint64_t size);
/* A status of the backend; where scratch memory was refused, or the operation took too long, the job's fault says so.
 * Returns status. */
int ad__job_explain_status(job *j, int status);

/* ---- private_operands.c ---- */
/* The view's elements in row-major order to other memory. */
int ad__job_pack(job *j, const ad_operand *from, void *to);
/* Inputs that outputs overlap become copies. */
int ad__job_separate_inputs(job *j);
/* Of an operation of call.def, so do operands with guard g that somebody else may write meanwhile. */
int ad__job_guard_operands(job *j);
/* The operation has run, with this status: copies that stood for outputs are put back. Returns the status of both. */
int ad__job_put_back(job *j, int status);

/* Estimated ns, above 0, of the host's processors, and of a device that completes operations later; INT64_MAX stands
 * for more. */
int64_t ad__op_cost(const ad_op *op);
int64_t ad__device_cost(const ad_op *op);
/* Of the operand that has most, or 1. */
int64_t ad__op_elements(const ad_op *op);
/* The operation is a library call that cannot be cut: what it takes must be known before it begins. */
bool ad__op_decomposes(const ad_op *op);
/* Estimated ns for so many bytes that the host copies or sets. */
static inline int64_t ad__bytes_cost(uint64_t bytes) { return 1 + (int64_t)(bytes / 8); }
/* Bytes of a fresh description. */
int ad__fresh_size(const ad_desc *d, uint64_t *size, ad_fault *fault);
/* Memory of a stream queue for a buffer without any. */
int ad__buffer_take_memory(ad_session *s, ad_stream_queue *queue, ad_buffer *b, uint64_t size, bool zero,
                           ad_fault *fault);
void ad__buffer_give_memory(ad_session *s, ad_buffer *b);
/* The same of one whose id is unknown by now, and what is left of it. */
void ad__buffer_give(ad_session *s, ad_buffer *b);
/* The same at once, or when another worker will not need it any more. */
void ad__buffer_free(ad_session *s, ad_buffer *b);
/* Enqueue a copy of host memory (pinned, or copied before it returns) into a buffer; `what` asks for it. */
int ad__store(ad_session *s, const char *what, uint64_t id, uint64_t offset, const void *from, uint64_t size,
              bool pinned, ad_fault *fault);
/* Keep a failure that no buffer carries, unless there is one already. */
void ad__session_keep_failure(ad_session *s, ad_poison *p);

#endif
