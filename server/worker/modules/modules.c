#include "server/worker/modules/modules.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/launch.h"
#include "server/common/os.h"
#include "server/worker/handlers.h"
#include "server/worker/engine/background.h"
#include "server/worker/exec/job.h"
#include "server/worker/modules/inside.h"
#include "server/worker/spill/quota.h"
#include "server/worker/session.h"
#include "server/worker/io/reply.h"
#include "server/worker/device/cost.h"

/* ---- modules by id ---- */

static const char *explain_loss(const ad_worker_session *s, const ad_loaded *m) {
    switch (m->loss) {
    case AD_MODULE_KEPT: return s->modules.again.text;
    case AD_MODULE_VARIABLES: return "its variables were lost, build it again";
    case AD_MODULE_FATAL: return "setting it up killed a worker, too";
    default: return "what it was made from was lost, build it again";
    }
}

/* Find a module that is built. NULL with a fault. */
static ad_loaded *find_loaded(ad_worker_session *s, const char *what, uint64_t id, ad_fault *fault) {
    ad_loaded *m = ad__module_find(s, id);
    if (!m) ad__fault(fault, AD_E_STALE, "%s: there is no module %" PRIu64, what, id);
    else if (!m->module)
        ad__fault(fault, AD_E_DEVICE_LOST, "%s: the worker was killed, and module %" PRIu64 " with it: %s", what, id,
                  explain_loss(s, m));
    return m && m->module ? m : NULL;
}

static void release_module(ad_worker_session *s, ad_loaded *m) {
    if (--m->users) return;
    m->last_op = s->progress.done + 1;
    m->next = s->modules.dropped;
    s->modules.dropped = m;
    s->modules.count--;
}

void ad__module_variable_gone(ad_worker_session *s, ad_buffer *b) {
    ad__quota_leave(b->home, AD_USE_VARIABLE, b->size);
    release_module(s, b->module);
    b->module = NULL;
}

static int drop_module(ad_worker_session *s, uint64_t id, ad_fault *fault) {
    ad_loaded *m = ad__module_find(s, id); /* the module is the first in the list now */
    if (!m) return ad__fault(fault, AD_E_STALE, "module_drop: there is no module %" PRIu64, id);
    s->modules.first = m->next;
    ad__checkpoint_remove_row(s, m->place);
    release_module(s, m);
    if (!s->worker->backend->asynchronous) ad__modules_reap(s);
    return 0;
}

/* ---- kernels by name ---- */

static const char *get_lowered(const ad_loaded *m, const char *name) {
    for (size_t i = 0; i < m->nnames; i++)
        if (!strcmp(m->names[i], name)) return m->names[m->nnames + i];
    return name;
}

static ad_named_kernel *find_known_kernel(ad_loaded *m, const ad_string *name) {
    for (ad_named_kernel **at = &m->kernels; *at; at = &(*at)->next) {
        ad_named_kernel *k = *at;
        if (k->size != name->size || memcmp(k->name, name->data, k->size)) continue;
        *at = k->next;
        k->next = m->kernels;
        return m->kernels = k;
    }
    return NULL;
}

/* Load a kernel from the backend, with the settings that it had in another worker. */
static int load_kernel(ad_worker_session *s, ad_loaded *m, ad_named_kernel *k, const char *name, ad_fault *fault) {
    ad_kernel *kernel;
    int status = s->worker->backend->module_kernel(m->module, get_lowered(m, name), &kernel, fault);
    if (!status && (k->shared >= 0 || k->carveout >= 0))
        status = s->worker->backend->kernel_set(kernel, k->shared, k->carveout, fault);
    if (!status) k->kernel = kernel;
    return ad__session_status(s, status, fault);
}

static int find_kernel(ad_worker_session *s, ad_loaded *m, const ad_string *name, ad_named_kernel **out,
                       ad_fault *fault) {
    ad_named_kernel *k = find_known_kernel(m, name);
    *out = k;
    if (k && k->kernel) return 0;
    const char *text = ad__module_text(s, name, fault);
    if (!text) return fault->code;
    if (k) return load_kernel(s, m, k, text, fault);
    if (!(*out = k = ad__module_kernel(m, name->data, name->size)))
        return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    int status = load_kernel(s, m, k, text, fault);
    if (status) {
        m->kernels = k->next;
        free(k);
    }
    return status;
}

/* Store settings that were made. True: they have changed. */
static bool store_settings(ad_named_kernel *k, int64_t shared, int64_t carveout, uint64_t cooperative) {
    const ad_named_kernel before = *k;
    if (shared >= 0) k->shared = shared;
    if (carveout >= 0) k->carveout = carveout;
    if (cooperative) k->cooperative = cooperative == 2;
    return k->shared != before.shared || k->carveout != before.carveout || k->cooperative != before.cooperative;
}

int ad__handle_kernel_set(ad_worker_session *s, ad_message *msg, ad_fault *fault) {
    const int64_t shared = (int64_t)msg->u[1] - 1, carveout = (int64_t)msg->u[2] - 1;
    ad_loaded *m = find_loaded(s, "kernel_set", msg->u[0], fault);
    ad_named_kernel *k;
    int status = m ? find_kernel(s, m, &msg->s[0], &k, fault) : fault->code;
    if (!status)
        status = ad__session_status(s, s->worker->backend->kernel_set(k->kernel, shared, carveout, fault), fault);
    if (!status && store_settings(k, shared, carveout, msg->u[3])) ad__checkpoint_mark_row(s, AD_JOURNAL_MODULE, m->id);
    return status;
}

int ad__handle_module_drop(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    return drop_module(s, m->u[0], fault);
}

/* ---- launching ---- */

int ad__launch_find(ad_worker_session *s, const ad_message *msg, ad_stream_queue *queue, ad_launching *l,
                    ad_fault *fault) {
    ad_named_kernel *k;
    ad_loaded *m = find_loaded(s, "launch", msg->u[0], fault);
    l->lost = !m && ad__module_find(s, msg->u[0]);
    if (!m) return fault->code;
    if (m->gpu != queue->gpu)
        return ad__fault(fault, AD_E_VALUE, "launch: the module was built for device %d, the current one is %d",
                         m->gpu->index, queue->gpu->index);
    int status = find_kernel(s, m, &msg->s[0], &k, fault);
    if (status) return status;
    *l = (ad_launching){.message = msg, .module = m, .kernel = k->kernel, .cooperative = k->cooperative};
    snprintf(l->name, sizeof l->name, "%.*s", (int)k->size, k->name);
    return 0;
}

/* Mark that the module's variables may differ from those of a newly built one. */
static void mark_touched(ad_worker_session *s, ad_loaded *m) {
    if (m->touched) return;
    m->touched = true;
    ad__checkpoint_mark_row(s, AD_JOURNAL_MODULE, m->id);
}

/* Count the bytes of those values of a launch that begin with an address. */
static size_t count_inside(const ad_message *msg) {
    size_t sum = 0, value = 0;
    for (size_t i = AD_LAUNCH_FIXED; i < msg->nids; i++) {
        if (msg->ids[i] > AD_KIND_VALUE) sum += msg->list[0].item[value].size;
        value += msg->ids[i] >= AD_KIND_VALUE;
    }
    return sum;
}

/* Gather the addresses and sizes of a launch's arguments. inside: room for values that begin with an address. */
static void gather_arguments(const ad_message *msg, const ad_op *op, void *const *address, uint8_t *inside,
                             void **argument, uint32_t *size) {
    int written = 0, read = op->nout, value = 0;
    for (size_t i = AD_LAUNCH_FIXED; i < msg->nids; i++, argument++, size++) {
        const uint64_t kind = msg->ids[i];
        const ad_string *bytes = kind < AD_KIND_VALUE ? NULL : &msg->list[0].item[value++];
        void *const *array = kind == AD_KIND_VALUE                                       ? NULL
                             : kind == AD_KIND_WRITTEN || kind == AD_KIND_INSIDE_WRITTEN ? &address[written++]
                                                                                         : &address[read++];
        *argument = bytes ? (void *)(uintptr_t)bytes->data : (void *)(uintptr_t)array;
        *size = bytes ? (uint32_t)bytes->size : (uint32_t)sizeof(void *);
        if (!array || !bytes) continue;
        *argument = memcpy(inside, bytes->data, bytes->size);
        memcpy(inside, array, AD_INSIDE);
        inside += bytes->size;
        *size |= AD_LAUNCH_LONGER;
    }
}

int ad__launch_run(ad_worker_session *s, ad_stream_queue *queue, const ad_launching *l, const ad_op *op,
                   uint64_t number, ad_run *run, ad_fault *fault) {
    const ad_message *msg = l->message;
    void *address[2 * AD_MAX_ARGUMENTS], *argument[AD_MAX_ARGUMENTS];
    uint32_t size[AD_MAX_ARGUMENTS];
    ad_worker *w = s->worker;
    const size_t ninside = count_inside(msg);
    uint8_t *inside = ninside ? malloc(ninside) : NULL;
    if (ninside && !inside) return ad__fault(fault, AD_E_MEMORY, "out of memory");
    for (int i = 0; i < op->nout + op->nin; i++) address[i] = op->operand[i].data;
    gather_arguments(msg, op, address, inside, argument, size);
    ad_kernel_launch launch = {.kernel = l->kernel,
                               .cooperative = l->cooperative,
                               .shared = (uint32_t)msg->ids[6],
                               .argument = argument,
                               .argument_size = size,
                               .narguments = (int)msg->nids - AD_LAUNCH_FIXED};
    for (int i = 0; i < 3; i++) {
        launch.grid[i] = (uint32_t)msg->ids[i];
        launch.block[i] = (uint32_t)msg->ids[3 + i];
    }
    l->module->last_op = number;
    if (l->module->variables == AD_VARIABLES_ANY) mark_touched(s, l->module);
    ad__checkpoint_before_launch(s, number);
    s->modules.launches++;
    if (s->rights.kernel_limit) queue->expected.ns = INT64_MAX; /* a mark of its own shows when the kernel ends */
    ad__flight_begin(&w->device.watchdog, &queue->flight, l->name, number, s->rights.kernel_limit);
    const bool in_background = ad__background_begin(s, ad__op_cost(op));
    if (in_background) ad__background_exempt(s);
    int status = w->backend->launch(queue->stream, &launch, run, fault);
    if (in_background) ad__background_end(s);
    free(inside);
    ad__session_status(s, status, fault);
    if (!w->backend->asynchronous) ad__flight_moved(&w->device.watchdog, &queue->flight, UINT64_MAX);
    return status;
}

/* ---- attributes and variables ---- */

int ad__handle_kernel(ad_worker_session *s, ad_message *msg, ad_fault *fault) {
    ad_kernel_info info;
    ad_named_kernel *k;
    ad_loaded *m = find_loaded(s, "kernel", msg->u[1], fault);
    int status = m ? find_kernel(s, m, &msg->s[0], &k, fault) : fault->code;
    if (!status) status = ad__session_status(s, s->worker->backend->kernel_info(k->kernel, &info, fault), fault);
    if (status) return status;
    _Static_assert(sizeof info % sizeof(int64_t) == 0, "ad_kernel_info is a row of numbers");
    ad__reply_ints(s, msg->u[0], sizeof info / sizeof(int64_t), &info.max_threads_per_block);
    return 0;
}

static int make_alias(ad_worker_session *s, const ad_message *msg, uint64_t *size, ad_fault *fault) {
    ad_buffer *b;
    void *address = NULL;
    ad_stream_queue *queue = ad__stream_queue_current(s, fault);
    ad_loaded *m = queue ? find_loaded(s, "global", msg->u[1], fault) : NULL;
    const char *name = m ? ad__module_text(s, &msg->s[0], fault) : NULL;
    if (!name) return fault->code;
    int status = s->worker->backend->module_global(m->module, get_lowered(m, name), &address, size, fault);
    if (status) return ad__session_status(s, status, fault);
    if ((status = ad__quota_adopt(s, queue, AD_USE_VARIABLE, *size, fault))) return status;
    if ((status = ad__buffers_add(&s->buffers, msg->u[2], &b, fault))) {
        ad__quota_leave(queue, AD_USE_VARIABLE, *size);
        return status;
    }
    b->address = address;
    b->size = *size;
    s->held.buffer_bytes += *size;
    b->home = queue;
    b->module = m;
    m->users++;
    mark_touched(s, m);
    ad__checkpoint_mark_buffer(s, b);
    /* No operation counts as the last write: kernels change variables without saying so. */
    return 0;
}

int ad__handle_global(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    uint64_t size = 0;
    int status = make_alias(s, m, &size, fault);
    if (!status) ad__reply_ints(s, m->u[0], 1, (int64_t[]){(int64_t)size});
    return status;
}

const ad_modules_hooks ad__modules_hooks = {
    .variable_gone = ad__module_variable_gone, .reap = ad__modules_reap, .built = ad__modules_built};
