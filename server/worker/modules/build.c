/* Building users' modules with the compiler: for the first time, and again where another worker had them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/common/log.h"
#include "server/common/os.h"
#include "server/worker/handlers.h"
#include "server/worker/modules/inside.h"
#include "server/worker/session.h"
#include "server/worker/io/reply.h"

#define LOOK_LEAST 500000 /* ns between two questions to the compiler */
#define LOOK_MOST 20000000
#define LOOK_SHARE 16 /* the compiler is asked again after one part in so many of the time waited */

/* ---- asking the compiler ---- */

static int check_permission(const ad_worker_session *s, ad_fault *fault) {
    if (!s->rights.may_run_kernels)
        return ad__fault(fault, AD_E_DENIED, "this server runs no kernels of %s: its option kernels is \"%s\"",
                         s->principal, s->worker->config.kernels);
    if (!s->worker->backend->module_job || !s->worker->compiler)
        return ad__fault(fault, AD_E_UNSUPPORTED, "this server has no compiler for kernels");
    return 0;
}

static const char **copy_texts(ad_worker_session *s, ad_arena *arena, const ad_string *item, size_t n,
                               ad_fault *fault) {
    const char **texts = ad__arena_alloc(arena, (n + 1) * sizeof *texts);
    if (!texts) ad__fault(fault, AD_E_MEMORY, "out of host memory");
    for (size_t i = 0; texts && i < n; i++)
        if (!(texts[i] = ad__module_text(s, &item[i], fault))) return NULL;
    return texts;
}

/* Describe the job of a BUILD. It points into the message, whose memory stays while the session waits. */
static int describe_job(ad_worker_session *s, ad_message *m, ad_building *b) {
    ad_fault *fault = &b->fault;
    const char **options = copy_texts(s, &b->arena, m->list[0].item, m->list[0].n, fault);
    const char **names = options ? copy_texts(s, &b->arena, m->list[1].item, m->list[1].n, fault) : NULL;
    if (!names) return fault->code;
    b->names = names;
    b->nnames = m->list[1].n;
    b->job = (ad_compile_job){.source = {m->s[0].data, m->s[0].size}, .options = options, .noptions = m->list[0].n};
    ad_stream_queue *queue = ad__stream_queue_current(s, fault);
    if (!queue) return fault->code;
    b->gpu = queue->gpu;
    return 0;
}

/* Describe the job of a module that is built again. It points into the module's recipe. */
static int describe_rebuild(const ad_loaded *m, ad_building *b) {
    const ad_journal_recipe *r = m->recipe;
    const char **word = ad__arena_alloc(&b->arena, ((size_t)r->noptions + r->nnames + 1) * sizeof *word);
    if (!word) return ad__fault(&b->fault, AD_E_MEMORY, "out of host memory");
    ad__recipe_words(r, word);
    b->names = word + r->noptions;
    b->nnames = r->nnames;
    b->job = (ad_compile_job){.source = {r->text, r->source}, .options = word, .noptions = r->noptions};
    b->gpu = m->gpu;
    return 0;
}

static ad_building *new_building(ad_worker_session *s, ad_fault *fault) {
    ad_building *b = s->modules.building = ad__os.calloc(1, sizeof *b);
    if (b) b->since = ad__os_now();
    else ad__fault(fault, AD_E_MEMORY, "out of host memory");
    return b;
}

/* Add the backend's part to a job that was described with this status. */
static int complete_job(ad_worker_session *s, ad_building *b, int status, ad_fault *fault) {
    b->job.names = b->names;
    b->job.nnames = b->nnames;
    if (!status) status = s->worker->backend->module_job(b->gpu->device, &b->job, &b->arena, &b->fault);
    ad__session_status(s, status, &b->fault);
    return status ? ad__fault(fault, status, "%s", b->fault.text) : 0;
}

/* True if another worker died while it set the module up. It is not set up again, and a further call gives false. */
static bool is_fatal(ad_worker_session *s, uint64_t id) {
    if (!s->checkpoint.resumed.fatal || s->checkpoint.resumed.fatal != id) return false;
    s->checkpoint.resumed.fatal = 0;
    return true;
}

/* Choose the ns to wait before the compiler is asked again. */
static int64_t choose_delay(int64_t waited) {
    int64_t next = waited / LOOK_SHARE;
    return next < LOOK_LEAST ? LOOK_LEAST : next > LOOK_MOST ? LOOK_MOST : next;
}

bool ad__modules_built(ad_worker_session *s) {
    ad_building *b = s->modules.building;
    ad_compiler *c = s->worker->compiler;
    if (!b || b->status) return true;
    int64_t now = ad__os_now();
    if (now < b->next) return false;
    b->status = c->get(c, &b->job, &b->binary, &b->fault);
    b->next = now + choose_delay(now - b->since);
    return b->status != 0;
}

/* ---- what the compiler has made ---- */

/* Copy the name expressions, and what the compiler made of them, in one block. */
static int copy_names(ad_loaded *m, const ad_building *b) {
    size_t n = b->nnames, bytes = 0;
    bool own = b->binary->nlowered != n;
    for (size_t i = 0; i < n; i++) bytes += strlen(b->names[i]) + strlen(own ? b->names[i] : b->binary->lowered[i]) + 2;
    m->names = ad__os.malloc(2 * n * sizeof *m->names + bytes + 1);
    if (!m->names) return AD_E_MEMORY;
    m->nnames = n;
    char *to = (char *)(m->names + 2 * n);
    for (size_t i = 0; i < 2 * n; i++) {
        const char *from = i < n || own ? b->names[i % n] : b->binary->lowered[i - n];
        m->names[i] = strcpy(to, from);
        to += strlen(from) + 1;
    }
    return 0;
}

/* Open the module in the backend. On the CPU this runs the user's code that sets variables up. */
static int open_module(ad_worker_session *s, uint64_t id, const ad_building *b, ad_device_module **out,
                       ad_fault *fault) {
    ad_worker *w = s->worker;
    ad_flight flight = {0};
    ad__flight_begin(&w->device.watchdog, &flight, "(loading a module)", 1, s->rights.kernel_limit);
    ad__checkpoint_before_load(s, id);
    int status = w->backend->module_open(b->gpu->device, b->binary, out, fault);
    ad__checkpoint_before_load(s, 0);
    ad__flight_moved(&w->device.watchdog, &flight, UINT64_MAX);
    return ad__session_status(s, status, fault);
}

static int set_up_module(ad_worker_session *s, ad_loaded *m, const ad_building *b, ad_fault *fault) {
    int status = copy_names(m, b);
    if (status) return ad__fault(fault, status, "out of host memory");
    m->variables = ad__module_variables(b->job.target, b->binary->data, b->binary->size);
    if (!(status = open_module(s, m->id, b, &m->module, fault))) return 0;
    free(m->names);
    m->names = NULL;
    m->nnames = 0;
    return status;
}

/* ---- the first time ---- */

static int check_build(ad_worker_session *s, uint64_t id, ad_fault *fault) {
    int status = check_permission(s, fault);
    if (status) return status;
    if (!id || ad__module_find(s, id)) return ad__fault(fault, AD_E_VALUE, "module id %" PRIu64 " is 0 or in use", id);
    if (s->modules.count >= AD_MODULES)
        return ad__fault(fault, AD_E_LIMIT, "the session holds %u modules, and no more are allowed", s->modules.count);
    if (is_fatal(s, id))
        return ad__fault(fault, AD_E_DEVICE_LOST, "the worker died while it set this module up%s%s",
                         *s->worker->before.died_of ? ": " : "", s->worker->before.died_of);
    return 0;
}

static int load_module(ad_worker_session *s, const ad_message *msg, const ad_building *b, ad_fault *fault) {
    ad_loaded *m = ad__os.calloc(1, sizeof *m);
    if (!m) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    m->id = msg->u[1];
    m->gpu = b->gpu;
    int status = ad__recipe_new(s, b, (ad_text){msg->s[0].data, msg->s[0].size}, msg->list[0].item, msg->list[0].n,
                                &m->recipe, fault);
    if (!status) status = set_up_module(s, m, b, fault);
    if (status) {
        ad__module_free(s, m);
        return status;
    }
    ad__module_add(s, m);
    ad__checkpoint_mark_row(s, AD_JOURNAL_MODULE, m->id);
    return 0;
}

static void answer_build(ad_worker_session *s, uint64_t request, bool compiles, const char *log) {
    size_t size = log ? strlen(log) : 0;
    if (size > AD_MAX_LOG) size = AD_MAX_LOG;
    ad_scalar values[2] = {{.kind = AD_SCALAR_BOOL, .as.b = compiles}, {.kind = AD_SCALAR_INT, .as.i = (int64_t)size}};
    ad__reply_text(s, request, 2, values, log, size);
}

static int begin_building(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    ad_building *b = new_building(s, fault);
    return b ? complete_job(s, b, describe_job(s, m, b), fault) : fault->code;
}

int ad__handle_build(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    int status = s->modules.building ? 0 : check_build(s, m->u[1], fault);
    if (!status && !s->modules.building) status = begin_building(s, m, fault);
    const ad_building *b = s->modules.building;
    if (!status && !ad__modules_built(s)) {
        ad__session_await(s, AD_WAIT_COMPILER, NULL, NULL);
        return AD_WAITS;
    }
    if (!status && b->status < 0) status = ad__fault(fault, b->status, "%s", b->fault.text);
    if (!status && b->binary->data) status = load_module(s, m, b, fault);
    if (!status) answer_build(s, m->u[0], b->binary->data != NULL, b->binary->log);
    ad__module_stop(s);
    return status;
}

/* ---- a module that another worker had ---- */

static int begin_rebuild(ad_worker_session *s, const ad_loaded *m, ad_fault *fault) {
    int status = check_permission(s, fault);
    ad_building *b = status ? NULL : new_building(s, fault);
    return b ? complete_job(s, b, describe_rebuild(m, b), fault) : fault->code;
}

static int end_rebuild(ad_worker_session *s, ad_loaded *m, ad_fault *fault) {
    const ad_building *b = s->modules.building;
    if (b->status < 0) return ad__fault(fault, b->status, "%s", b->fault.text);
    if (b->binary->data) return set_up_module(s, m, b, fault);
    return ad__fault(fault, AD_E_COMPILE, "it does not compile any more: %.*s", (int)strcspn(b->binary->log, "\n"),
                     b->binary->log);
}

/* Log the loss of a module once, however often the client uses it. */
static void log_loss(const ad_worker_session *s, ad_loaded *m, const char *why) {
    if (!m->said) ad__log(module_lost, s->id, m->id, why);
    m->said = true;
}

bool ad__modules_ready(ad_worker_session *s, uint64_t id) {
    ad_loaded *m = ad__module_find(s, id);
    ad_fault *fault = &s->modules.again;
    if (!m || m->module || m->loss) return true;
    if (!s->modules.building && is_fatal(s, id)) {
        m->loss = AD_MODULE_FATAL;
        ad__checkpoint_mark_row(s, AD_JOURNAL_MODULE, m->id);
        log_loss(s, m, "the worker died while it set it up");
        return true;
    }
    fault->code = 0;
    int status = s->modules.building ? 0 : begin_rebuild(s, m, fault);
    if (!status && !ad__modules_built(s)) {
        ad__session_await(s, AD_WAIT_COMPILER, NULL, NULL);
        return false;
    }
    const int64_t since = s->modules.building ? s->modules.building->since : ad__os_now();
    if (!status) status = end_rebuild(s, m, fault);
    if (status) log_loss(s, m, fault->text);
    else ad__log(module_built_again, s->id, m->id, (long)((ad__os_now() - since) / 1000000));
    ad__module_stop(s);
    return true;
}
