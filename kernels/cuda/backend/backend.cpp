/* The cuda backend's table. */
#include <new>
#include <tuple>

#include "kernels/call.h"
#include "kernels/cuda/backend/device.h"
#include "kernels/cuda/backend/module.h"
#include "kernels/cuda/backend/range.h"
#include "kernels/cuda/list/list.h"
#include "protocol/infer.h"
#include "protocol/rows_request.h"

namespace {

int dispatch(ad_stream *stream, const ad_op *op, ad_run *run, ad_fault *fault) {
    switch (op->opcode) {
    case AD_REQ_UFUNC: return ad_cuda_ufunc(stream, op, run, fault);
    case AD_REQ_REDUCE: return ad_cuda_reduce(stream, op, run, fault);
    case AD_REQ_CALL:
    case AD_REQ_QUERY: return ad__call_run(stream, op, run, fault);
    default: return ad__fault(fault, AD_E_INTERNAL, "operation code %d has no place in a backend", op->opcode);
    }
}

/* A function of the table that first launches the list of the stream it is given. Its last argument is a fault. */
template <auto Function> struct after_list;
template <class... A, int (*Function)(ad_stream *, A...)> struct after_list<Function> {
    static int call_function(ad_stream *stream, A... a) {
        ad_fault *fault = std::get<sizeof...(A) - 1>(std::tie(a...));
        const int status = ad_cuda_list_flush(stream, fault);
        return status ? status : Function(stream, a...);
    }
};

int record_event(ad_event *event, ad_stream *stream, ad_fault *fault) {
    const int status = ad_cuda_list_flush(stream, fault);
    return status ? status : ad_cuda_event_record(event, stream, fault);
}

/* The one place where exceptions could cross into C. */
int run_operation(ad_stream *stream, const ad_op *op, ad_run *run, ad_fault *fault) {
    ad_range range([op] { return ad__op_name(op); });
    ad_faults *faults = &stream->device->faults;
    int status = ad_faults_check(faults, AD_SITE_run, fault);
    if (status || (status = ad_cuda_enter(stream->device, fault))) return status;
    if (ad_faults_due(faults, AD_SITE_wild) && (status = ad_cuda_wild(stream, fault))) return status;
    if ((status = ad_cuda_list_begin(stream, op, fault))) return status;
    try {
        return dispatch(stream, op, run, fault);
    } catch (const std::bad_alloc &) {
        return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    } catch (...) {
        return ad__fault(fault, AD_E_INTERNAL, "the cuda backend failed unexpectedly");
    }
}

int run_chain(ad_stream *stream, const ad_chain *chain, ad_run *run, ad_fault *fault) {
    ad_range range([] { return "chain"; });
    return ad_cuda_fuse(stream, chain, run, fault);
}

int run_launch(ad_stream *stream, const ad_kernel_launch *launch, ad_run *run, ad_fault *fault) {
    ad_range range([] { return "kernel of a user"; });
    return ad_cuda_launch(stream, launch, run, fault);
}

const ad_backend backend = {AD_BACKEND_VERSION,
                            "cuda",
                            true,
                            ad_cuda_devices,
                            ad_cuda_device_open,
                            ad_cuda_device_close,
                            ad_cuda_device_info,
                            ad_cuda_device_plans,
                            ad_cuda_slab_create,
                            ad_cuda_slab_attach,
                            ad_cuda_slab_close,
                            ad_cuda_slab_create_plain,
                            ad_cuda_slab_handle,
                            ad_cuda_slab_import,
                            ad_cuda_stream_open,
                            ad_cuda_stream_close,
                            after_list<ad_cuda_stream_wait>::call_function,
                            ad_cuda_event_open,
                            ad_cuda_event_close,
                            record_event,
                            ad_cuda_event_done,
                            ad_cuda_event_elapsed,
                            after_list<ad_cuda_stream_follow>::call_function,
                            ad_cuda_host_alloc,
                            ad_cuda_host_free,
                            ad_cuda_host_register,
                            ad_cuda_host_unregister,
                            ad_cuda_check_open,
                            ad_cuda_check_close,
                            ad_cuda_check_fault,
                            after_list<ad_cuda_zero>::call_function,
                            after_list<ad_cuda_upload>::call_function,
                            after_list<ad_cuda_upload_pinned>::call_function,
                            after_list<ad_cuda_download>::call_function,
                            after_list<ad_cuda_move>::call_function,
                            run_operation,
                            after_list<run_chain>::call_function,
                            ad_cuda_module_job,
                            ad_cuda_module_open,
                            ad_cuda_module_close,
                            ad_cuda_module_kernel,
                            ad_cuda_module_global,
                            ad_cuda_kernel_info,
                            ad_cuda_kernel_set,
                            after_list<run_launch>::call_function};

const ad_part_table parts = {ad_cuda_device_split, ad_cuda_stream_confine};

} // namespace

extern "C" const ad_backend *ad_backend_get(void) { return &backend; }

extern "C" const ad_part_table *ad_part_table_get(void) { return &parts; }
