/* Library calls: everything of call.def.
 *
 * How to add one:
 *  1. a row in protocol/call.def, with an id that was never used;
 *  2. ad__infer_<infer> in protocol/infer_call.c, unless an existing one fits: operand types and shapes;
 *  3. `int ad_call_<name>(ad_call *c)` in kernels/cpu/call_<subject>.cpp and kernels/cuda/call_<subject>.cu: the work.
 * The row declares the function and puts it into the dispatch table of each backend. An ASK row whose outputs are not
 * of n elements in one dimension also has a function for their shapes in client-c/array/call.c; nothing else has to be
 * touched. kernels/call.cpp, compiled into both backends, has the functions below.
 *
 * ad_call_<name> may rely on this: ad__check_op has passed, so counts, parameters, dtypes and shapes are those of the
 * row; every operand that is an array has an address, inside its buffer; outputs do not overlap inputs. Arrays may be
 * any views: negative and zero strides (zero only in inputs), 0-d, empty. Nobody else writes to operands while it runs,
 * except to those whose guard in the row is v (kernels/backend.h says what that asks of it). It must do this itself:
 * look at values (indices), and
 *  - fail by ad__fault(c->fault, ...), before c->run->wrote is set wherever that can be known before;
 *  - set c->run->wrote before it writes to an output; in a row of kind UPDATE nothing may fail after that;
 *  - take scratch memory from ad_call_workspace, never from malloc: it counts against the session's quota;
 *  - cpu: divide large work by ad_cpu_parallel and leave small work alone;
 *  - cuda: enqueue on c->stream->cuda and return. All addresses, those from ad_call_workspace too, are the device's:
 *    the host may not touch what lies there. Scratch memory is reused in stream order, so nothing has to be freed or
 *    waited for. An error that only the data tell goes to c->run->check (may be NULL) by ad_cuda_report
 * (kernels/cuda/backend/checks.h), with c->run->checked set; kernels stay inside the bounds even then. Only ASK calls,
 * which reply with a number that the data decide, may wait for the stream. The shape of a typical one:
 *
 *     int ad_call_double(ad_call *c) {
 *         ad::array x, out;
 *         int status;
 *         if ((status = ad_call_input(c, 0, c->op->loop, &x)) || (status = ad_call_output(c, 0, c->op->loop, &out)))
 *             return status;
 *         ad::walk<2> w = ad::walk_of(out, x);
 *         return ad::visit(c->op->loop, [&](auto t) { ...; return ad_call_finish(c, 0, &out); });
 *     }
 */
#ifndef AD_KERNELS_CALL_H
#define AD_KERNELS_CALL_H

#include "kernels/backend.h"
#include "kernels/call_array.h"

struct ad_call {
    ad_stream *stream;
    const ad_op *op;
    ad_run *run;
    ad_fault *fault;
};

typedef int ad_call_function(ad_call *c);
#define AD_CALL(id, name, nout, nin_min, nin_max, params, kind, guard, work, cost, infer, doc) \
    ad_call_function ad_call_##name;
#include "protocol/call.def"
#undef AD_CALL

/* Run a call; entry point for the backend. */
int ad__call_run(ad_stream *stream, const ad_op *op, ad_run *run, ad_fault *fault);

/* Input `index` as an array of elements of `dtype`: the operand itself, or a converted copy in scratch memory (axes of
 * stride 0 keep it). A scalar becomes a 0-d array. AD_E_MEMORY. */
int ad_call_input(ad_call *c, int index, int dtype, ad::array *out);
/* Get input `index` as a row-major array without gaps. */
int ad_call_input_packed(ad_call *c, int index, int dtype, ad::array *out);
/* A row-major copy of *from in scratch memory as elements of dtype; see ad::pack for repeats. out may be from. */
int ad_call_packed(ad_call *c, const ad::array *from, int dtype, int repeats, ad::array *out);
/* Output `index` as an array to fill with elements of `dtype`: the operand itself, or scratch memory that
 * ad_call_finish converts into it. AD_E_MEMORY. */
int ad_call_output(ad_call *c, int index, int dtype, ad::array *out);
int ad_call_finish(ad_call *c, int index, const ad::array *out); /* AD_E_MEMORY */
/* For ASK calls, once the shape is known: as ad_call_output for an array of the dtype and shape that *out has; data
 * and strides (row-major) are set. */
int ad_call_sized(ad_call *c, int index, ad::array *out);
/* Scratch memory until the operation is complete; NULL with *fault filled. */
void *ad_call_workspace(ad_call *c, uint64_t size);

/* Copy, converting, between arrays of one shape; in parallel when large, in stream order. */
int ad_call_copy(ad_call *c, const ad::array *to, const ad::array *from);
/* A scalar as an element of dtype. to: 16 bytes of host memory. */
void ad_scalar_store(const ad_scalar *s, int dtype, void *to);
/* Get a scalar as a double; 0 for none. */
double ad_scalar_number(const ad_scalar *s);

/* Functions of each backend for kernels/call.cpp: put `size` (at most 16) bytes into its memory; run a ufunc. */
int ad__call_store(ad_call *c, void *to, const void *value, int size);
int ad__call_ufunc(ad_call *c, const ad_op *op);

#endif
