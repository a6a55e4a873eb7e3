/* A job: one operation while it is executed. Shared by exec.c, ops.c, private_operands.c and fusion/. */
#ifndef AD_SERVER_WORKER_EXEC_JOB_H
#define AD_SERVER_WORKER_EXEC_JOB_H

#include "server/worker/session.h"

#define JOB_SCRATCH 64

typedef struct job {
    ad_run run; /* first member: the backend's callbacks cast it to the job */
    ad_worker_session *s;
    ad_stream_queue *stream_queue;
    ad_op *op;
    uint64_t number;
    ad_facts *facts;      /* of the operation, where it is the message at hand and may come again; NULL: none */
    ad_launching *launch; /* NULL: not a user's kernel */
    ad_buffer **buffer;   /* buffer of each operand; NULL: a scalar, or not made yet */
    bool *made;           /* per output: its buffer is new */
    ad_buffer *own_buffer[AD_MAX_OUT + AD_MAX_IN];
    bool own_made[AD_MAX_OUT];
    bool queued;                   /* the operation was queued (fusion): its fresh outputs have buffers already */
    ad_poison *inherited;          /* an operand's poison, which the outputs inherit */
    ad_operand behind[AD_MAX_OUT]; /* original outputs that scratch memory replaces while the job runs */
    int written[AD_MAX_OUT];       /* operand numbers of the replaced outputs */
    int nbehind;                   /* count of the replaced outputs */
    ad_block scratch[JOB_SCRATCH];
    int nscratch;
    int using;            /* number of buffers that are not moved until the job ends */
    ad_fault fault, lack; /* lack: why scratch memory was refused */
} job;

/* Begin a job for operation `number` of the session. */
void ad__job_begin(job *j, ad_worker_session *s, ad_op *op, uint64_t number);
/* Begin a job for a LAUNCH, with room for all its operands. AD_E_MEMORY. */
int ad__job_begin_launch(job *j, ad_worker_session *s, ad_message *m, ad_launching *l, uint64_t number);
/* Run the job. AD_E_...: it failed, and j->inherited or j->fault says why. */
int ad__job_run(job *j);
/* Find and check the operands without changing anything. j->stream_queue must be set; fills j->buffer. AD_E_... */
int ad__job_check(job *j);
/* Make the job that of a queued operation, with its buffers. */
void ad__job_set_queued(job *j, ad_stream_queue *queue, ad_buffer *const *buffer);
/* Provides memory for an output of a queued operation. */
typedef int ad_provide(ad_worker_session *s, ad_stream_queue *queue, ad_buffer *b, ad_fault *fault);
/* Run the job of a queued operation, with memory from `provide`; result as of ad__job_run. */
int ad__job_run_queued(job *j, ad_provide *provide);
/* Record the failure in the outputs and in the session. The caller owns the result. */
ad_poison *ad__job_fail(job *j, int status);
/* End the job: repay its scratch memory, and let its buffers be moved again. */
void ad__job_end(job *j);
/* Get scratch memory until the job ends. NULL: refused; j->lack says why. */
void *ad__job_scratch(job *j, uint64_t size);
/* Count the job as cancelled by its client, and say so in j->fault. AD_E_CANCELLED. */
int ad__job_fail_cancelled(job *j);
/* Explain a status of the backend: j->fault says why scratch memory was refused, or that the operation took too long.
 * Returns the status. */
int ad__job_explain_status(job *j, int status);

/* ---- private_operands.c ---- */
/* Copy the view's elements in row-major order to other memory. */
int ad__job_pack(job *j, const ad_operand *from, void *to);
/* Replace inputs that outputs overlap by copies. */
int ad__job_separate_inputs(job *j);
/* Replace guarded operands of a call (call.def, guard g) by copies, where other sessions may write them meanwhile. */
int ad__job_guard_operands(job *j);
/* Copy the replacements of outputs back after a run with this status. Returns the status of both. */
int ad__job_put_back(job *j, int status);

/* ---- extents.c ---- */
/* Name operand i in errors. */
const char *ad__job_operand_name(const job *j, int i);
/* Check the view that operand i is against its buffer, as ad__desc_check does. */
int ad__job_check_view(job *j, int i, const ad_buffer *b);
/* Get the bytes of its buffer that the checked operand i touches. */
ad_extent ad__job_extent(const job *j, int i);
/* Compute the bytes of a fresh output. AD_E_VALUE. */
int ad__fresh_size(const ad_desc *d, uint64_t *size, ad_fault *fault);
/* Compute those of the fresh output i. */
int ad__job_fresh_size(job *j, int i, uint64_t *size);

/* ---- carried_states.c ---- */
/* Tell whether an output is the states after a draw. They depend on the states before it, and on no check of its
 * parameters. */
bool ad__job_makes_states(const job *j, int output);
/* Let a generator survive a draw that has failed before it began: its states become a copy of those before. False: the
 * output is not that of a draw's states, or there is no memory even for them. */
bool ad__job_carry_states(job *j, int output);

/* Tell whether outputs begin with zeros: a ufunc with a mask does not write all elements. */
bool ad__op_needs_zeros(const ad_op *op);
/* Make the buffer of a fresh or sized output and its memory, unless there is either. AD_E_... */
int ad__job_make_output(job *j, int i);
/* Put the shape and type of a fresh output before the reason why there is no memory for it, where the text has room for
 * both. Returns the status. With other statuses than AD_E_MEMORY the fault stays as it is. */
int ad__fresh_refused(const ad_desc *d, int status, ad_fault *fault);
/* Allocate memory of a stream queue for a buffer without memory. AD_E_MEMORY, or a status of the backend. */
int ad__buffer_take_memory(ad_worker_session *s, ad_stream_queue *queue, ad_buffer *b, uint64_t size, bool zero,
                           ad_fault *fault);

#endif
