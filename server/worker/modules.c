#include "server/worker/modules.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/common/os.h"
#include "server/worker/job.h"
#include "server/worker/quota.h"

#define LOOK_LEAST 500000 /* ns between two looks at the compiler */
#define LOOK_MOST 20000000
#define LOOK_SHARE 16 /* one part of so many of the time that has been waited */

typedef struct named_kernel named_kernel;
struct named_kernel {
    named_kernel *next; /* the one used last comes first */
    ad_kernel *kernel;
    bool cooperative; /* blocks of its launches run all at once */
    size_t size;
    char name[];
};

struct ad_loaded {
    ad_loaded *next;
    uint64_t id;
    ad_gpu *gpu;
    ad_module *module;
    unsigned users;   /* the session's table, and buffers that are its variables */
    uint64_t last_op; /* number of the last operation that may use it */
    named_kernel *kernels;
    size_t nnames; /* of name expressions: */
    char **names;  /* as the client knows them, then as the module does */
};

struct ad_building {
    ad_gpu *gpu;
    ad_arena arena;
    ad_compile_job job;
    const char *const *names; /* the client's */
    size_t nnames;
    const ad_binary *binary;
    int status; /* what the compiler said last; 0: not yet */
    ad_fault fault;
    int64_t since, next;
};

static const ad_backend *backend_of(const ad_session *s) { return s->worker->backend; }

/* ---- modules by id ---- */

/* Moves it to the front. */
static ad_loaded *find(ad_session *s, uint64_t id) {
    for (ad_loaded **at = &s->modules.first; *at; at = &(*at)->next) {
        ad_loaded *m = *at;
        if (m->id != id) continue;
        *at = m->next;
        m->next = s->modules.first;
        s->modules.first = m;
        return m;
    }
    return NULL;
}

static ad_loaded *need(ad_session *s, const char *what, uint64_t id, ad_fault *fault) {
    ad_loaded *m = find(s, id);
    if (!m)
        ad__fault(fault, AD_E_STALE, "%s: there is no module %" PRIu64 "%s", what, id,
                  id <= s->modules.lost ? ": it was lost with a worker that was killed, build it again" : "");
    return m;
}

static void unload(ad_session *s, ad_loaded *m) {
    backend_of(s)->module_close(m->module);
    while (m->kernels) {
        named_kernel *k = m->kernels;
        m->kernels = k->next;
        free(k);
    }
    free(m->names);
    free(m);
}

static void module_leave(ad_session *s, ad_loaded *m) {
    if (--m->users) return;
    m->last_op = s->done + 1;
    m->next = s->modules.dropped;
    s->modules.dropped = m;
    s->modules.count--;
}

void ad__module_variable_gone(ad_session *s, ad_buffer *b) {
    ad__quota_leave(b->home, b->size);
    module_leave(s, b->module);
    b->module = NULL;
}

void ad__modules_reap(ad_session *s) {
    bool idle = ad__lanes_idle(s);
    for (ad_loaded **at = &s->modules.dropped; *at;) {
        ad_loaded *m = *at;
        if (!idle && m->last_op > s->complete) {
            at = &m->next;
            continue;
        }
        *at = m->next;
        unload(s, m);
    }
}

static int drop(ad_session *s, uint64_t id, ad_fault *fault) {
    ad_loaded *m = need(s, "module_drop", id, fault); /* comes to the front */
    if (!m) return AD_E_STALE;
    s->modules.first = m->next;
    module_leave(s, m);
    if (!backend_of(s)->asynchronous) ad__modules_reap(s);
    return 0;
}

/* ---- kernels by name ---- */

static const char *lowered(const ad_loaded *m, const char *name) {
    for (size_t i = 0; i < m->nnames; i++)
        if (!strcmp(m->names[i], name)) return m->names[m->nnames + i];
    return name;
}

/* A message's text as one that ends with a NUL; NULL with a fault. */
static const char *text_of(ad_session *s, const ad_string *text, ad_fault *fault) {
    char *copy = ad__arena_alloc(&s->arena, text->size + 1);
    if (!copy) {
        ad__fault(fault, AD_E_MEMORY, "out of host memory");
        return NULL;
    }
    if (text->size) memcpy(copy, text->data, text->size);
    copy[text->size] = 0;
    if (strlen(copy) == text->size) return copy;
    ad__fault(fault, AD_E_VALUE, "a name or option contains a NUL character");
    return NULL;
}

static int load_kernel(ad_session *s, ad_loaded *m, const ad_string *name, named_kernel **out, ad_fault *fault) {
    const char *text = text_of(s, name, fault);
    if (!text) return fault->code;
    named_kernel *k = ad__os.malloc(sizeof *k + name->size);
    if (!k) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    int status = backend_of(s)->module_kernel(m->module, lowered(m, text), &k->kernel, fault);
    if (status) {
        free(k);
        return ad__session_status(s, status, fault);
    }
    k->cooperative = false;
    k->size = name->size;
    memcpy(k->name, name->data, name->size);
    k->next = m->kernels;
    *out = m->kernels = k;
    return 0;
}

static int find_kernel(ad_session *s, ad_loaded *m, const ad_string *name, named_kernel **out, ad_fault *fault) {
    for (named_kernel **at = &m->kernels; *at; at = &(*at)->next) {
        named_kernel *k = *at;
        if (k->size != name->size || memcmp(k->name, name->data, k->size)) continue;
        *at = k->next;
        k->next = m->kernels;
        *out = m->kernels = k;
        return 0;
    }
    return load_kernel(s, m, name, out, fault);
}

static int set_kernel(ad_session *s, const ad_message *msg, ad_fault *fault) {
    ad_loaded *m = need(s, "kernel_set", msg->u[0], fault);
    named_kernel *k;
    int status = m ? find_kernel(s, m, &msg->s[0], &k, fault) : AD_E_STALE;
    if (status) return status;
    if (msg->u[3]) k->cooperative = msg->u[3] == 2;
    return ad__session_status(
        s, backend_of(s)->kernel_set(k->kernel, (int64_t)msg->u[1] - 1, (int64_t)msg->u[2] - 1, fault), fault);
}

int ad__modules_op(ad_session *s, const ad_message *m, ad_fault *fault) {
    return m->opcode == AD_REQ_MODULE_DROP ? drop(s, m->u[0], fault) : set_kernel(s, m, fault);
}

/* ---- launching ---- */

int ad__launch_find(ad_session *s, const ad_message *msg, ad_lane *lane, ad_launching *l, ad_fault *fault) {
    named_kernel *k;
    ad_loaded *m = need(s, "launch", msg->u[0], fault);
    if (!m) return AD_E_STALE;
    if (m->gpu != lane->gpu)
        return ad__fault(fault, AD_E_VALUE, "launch: the module was built for device %d, the current one is %d",
                         m->gpu->index, lane->gpu->index);
    int status = find_kernel(s, m, &msg->s[0], &k, fault);
    if (status) return status;
    *l = (ad_launching){.message = msg, .module = m, .kernel = k->kernel, .cooperative = k->cooperative};
    snprintf(l->name, sizeof l->name, "%.*s", (int)k->size, k->name);
    return 0;
}

/* For each parameter, where its value lies. */
static void gather(const ad_message *msg, const ad_op *op, void *const *address, void **argument, uint32_t *size) {
    int written = 0, read = op->nout, value = 0;
    for (size_t i = AD_LAUNCH_FIXED; i < msg->nids; i++) {
        const ad_string *bytes = &msg->list[0].item[value];
        bool array = msg->ids[i] < 2;
        int at = msg->ids[i] == 0 ? written++ : msg->ids[i] == 1 ? read++ : 0;
        if (!array) value++;
        argument[i - AD_LAUNCH_FIXED] = array ? (void *)(uintptr_t)&address[at] : (void *)(uintptr_t)bytes->data;
        size[i - AD_LAUNCH_FIXED] = array ? (uint32_t)sizeof(void *) : (uint32_t)bytes->size;
    }
}

int ad__launch_run(ad_session *s, ad_lane *lane, const ad_launching *l, const ad_op *op, uint64_t number, ad_run *run,
                   ad_fault *fault) {
    const ad_message *msg = l->message;
    void *address[2 * AD_MAX_ARGUMENTS], *argument[AD_MAX_ARGUMENTS];
    uint32_t size[AD_MAX_ARGUMENTS];
    ad_worker *w = s->worker;
    for (int i = 0; i < op->nout + op->nin; i++) address[i] = op->operand[i].data;
    gather(msg, op, address, argument, size);
    ad_launch launch = {.kernel = l->kernel,
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
    s->modules.launches++;
    if (s->kernel_limit) lane->unmarked_ns += AD_MARK_NS + 1; /* a mark of its own: it is seen when it ends */
    ad__flight_begin(&w->watchdog, &lane->flight, l->name, number, s->kernel_limit);
    int status = ad__session_status(s, w->backend->launch(lane->stream, &launch, run, fault), fault);
    if (!w->backend->asynchronous) ad__flight_moved(&w->watchdog, &lane->flight, UINT64_MAX);
    return status;
}

/* ---- building ---- */

static void end_building(ad_session *s) {
    ad_building *b = s->modules.building;
    if (!b) return;
    if (b->binary) s->worker->compiler->release(s->worker->compiler, b->binary);
    ad__arena_free(&b->arena);
    free(b);
    s->modules.building = NULL;
}

static const char **texts_of(ad_session *s, ad_arena *arena, const ad_string *item, size_t n, ad_fault *fault) {
    const char **texts = ad__arena_alloc(arena, (n + 1) * sizeof *texts);
    if (!texts) ad__fault(fault, AD_E_MEMORY, "out of host memory");
    for (size_t i = 0; texts && i < n; i++)
        if (!(texts[i] = text_of(s, &item[i], fault))) return NULL;
    return texts;
}

/* The message's memory stays while the session waits, so the job may point into it. */
static int describe(ad_session *s, ad_message *m, ad_building *b) {
    ad_fault *fault = &b->fault;
    const char **options = texts_of(s, &b->arena, m->list[0].item, m->list[0].n, fault);
    const char **names = options ? texts_of(s, &b->arena, m->list[1].item, m->list[1].n, fault) : NULL;
    if (!names) return fault->code;
    b->names = names;
    b->nnames = m->list[1].n;
    b->job = (ad_compile_job){.source = {m->s[0].data, m->s[0].size},
                              .options = options,
                              .noptions = m->list[0].n,
                              .names = names,
                              .nnames = b->nnames};
    ad_lane *lane = ad__lane_current(s, fault);
    if (!lane) return fault->code;
    b->gpu = lane->gpu;
    return backend_of(s)->module_job(b->gpu->device, &b->job, &b->arena, fault);
}

static int allowed(ad_session *s, uint64_t id, ad_fault *fault) {
    if (!s->may_run_kernels)
        return ad__fault(fault, AD_E_DENIED, "this server runs no kernels of %s: its option kernels is \"%s\"",
                         s->principal, s->worker->config.kernels);
    if (!backend_of(s)->module_job || !s->worker->compiler)
        return ad__fault(fault, AD_E_UNSUPPORTED, "this server has no compiler for kernels");
    if (!id || find(s, id)) return ad__fault(fault, AD_E_VALUE, "module id %" PRIu64 " is 0 or in use", id);
    if (s->modules.count >= AD_MODULES)
        return ad__fault(fault, AD_E_LIMIT, "the session holds %u modules, and no more are allowed", s->modules.count);
    return 0;
}

static int begin_building(ad_session *s, ad_message *m, ad_fault *fault) {
    int status = allowed(s, m->u[1], fault);
    if (status) return status;
    if (s->survival.fatal) {
        s->survival.fatal = false;
        return ad__fault(fault, AD_E_DEVICE_LOST, "the worker died while it set this module up%s%s",
                         *s->worker->died_of ? ": " : "", s->worker->died_of);
    }
    ad_building *b = s->modules.building = ad__os.calloc(1, sizeof *b);
    if (!b) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    b->since = ad__os_now();
    status = describe(s, m, b);
    return status ? ad__fault(fault, status, "%s", b->fault.text) : 0;
}

/* When to ask the compiler again, ns from now on. */
static int64_t patience(int64_t waited) {
    int64_t next = waited / LOOK_SHARE;
    return next < LOOK_LEAST ? LOOK_LEAST : next > LOOK_MOST ? LOOK_MOST : next;
}

bool ad__modules_built(ad_session *s) {
    ad_building *b = s->modules.building;
    ad_compiler *c = s->worker->compiler;
    if (!b || b->status) return true;
    int64_t now = ad__os_now();
    if (now < b->next) return false;
    b->status = c->get(c, &b->job, &b->binary, &b->fault);
    b->next = now + patience(now - b->since);
    return b->status != 0;
}

/* A copy of the name expressions and what became of them, in one block. */
static int keep_names(ad_loaded *m, const ad_building *b) {
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

/* On the CPU that runs code of the user: what sets variables up. */
static int open_module(ad_session *s, const ad_building *b, ad_module **out, ad_fault *fault) {
    ad_worker *w = s->worker;
    ad_flight flight = {0};
    ad__flight_begin(&w->watchdog, &flight, "(loading a module)", 1, s->kernel_limit);
    ad__survival_loads(s, true);
    int status = w->backend->module_open(b->gpu->device, b->binary, out, fault);
    ad__survival_loads(s, false);
    ad__flight_moved(&w->watchdog, &flight, UINT64_MAX);
    return ad__session_status(s, status, fault);
}

static int load(ad_session *s, uint64_t id, const ad_building *b, ad_fault *fault) {
    ad_loaded *m = ad__os.calloc(1, sizeof *m);
    if (!m) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    int status = keep_names(m, b);
    if (status) ad__fault(fault, status, "out of host memory");
    else status = open_module(s, b, &m->module, fault);
    if (status) {
        free(m->names);
        free(m);
        return status;
    }
    m->id = id;
    if (id > s->modules.latest) s->modules.latest = id;
    m->gpu = b->gpu;
    m->users = 1;
    m->next = s->modules.first;
    s->modules.first = m;
    s->modules.count++;
    return 0;
}

static void answer_build(ad_session *s, uint64_t request, bool compiles, const char *log) {
    size_t size = log ? strlen(log) : 0;
    if (size > AD_MAX_LOG) size = AD_MAX_LOG;
    ad_scalar values[2] = {{.kind = AD_SCALAR_BOOL, .as.b = compiles}, {.kind = AD_SCALAR_INT, .as.i = (int64_t)size}};
    ad__reply_text(s, request, 2, values, log, size);
}

static bool build(ad_session *s, ad_message *m) {
    ad_fault fault = {0};
    int status = s->modules.building ? 0 : begin_building(s, m, &fault);
    ad_building *b = s->modules.building;
    if (!status && !ad__modules_built(s)) {
        ad__session_await(s, AD_WAIT_COMPILER, NULL, NULL);
        return false;
    }
    if (!status && b->status < 0) status = ad__fault(&fault, b->status, "%s", b->fault.text);
    if (!status && b->binary->data) status = load(s, m->u[1], b, &fault);
    if (status) ad__reply_fault(s, m->u[0], status, &fault);
    else answer_build(s, m->u[0], b->binary->data != NULL, b->binary->log);
    end_building(s);
    return true;
}

/* ---- attributes and variables ---- */

static bool tell_kernel(ad_session *s, ad_message *msg) {
    ad_fault fault = {0};
    ad_kernel_info info;
    named_kernel *k;
    ad_loaded *m = need(s, "kernel", msg->u[1], &fault);
    int status = m ? find_kernel(s, m, &msg->s[0], &k, &fault) : AD_E_STALE;
    if (!status) status = ad__session_status(s, backend_of(s)->kernel_info(k->kernel, &info, &fault), &fault);
    if (status) {
        ad__reply_fault(s, msg->u[0], status, &fault);
        return true;
    }
    _Static_assert(sizeof info % sizeof(int64_t) == 0, "ad_kernel_info is a row of numbers");
    ad__reply_ints(s, msg->u[0], sizeof info / sizeof(int64_t), &info.max_threads_per_block);
    return true;
}

static int make_alias(ad_session *s, const ad_message *msg, uint64_t *size, ad_fault *fault) {
    ad_buffer *b;
    void *address = NULL;
    ad_lane *lane = ad__lane_current(s, fault);
    ad_loaded *m = lane ? need(s, "global", msg->u[1], fault) : NULL;
    const char *name = m ? text_of(s, &msg->s[0], fault) : NULL;
    if (!name) return fault->code;
    int status = backend_of(s)->module_global(m->module, lowered(m, name), &address, size, fault);
    if (status) return ad__session_status(s, status, fault);
    if ((status = ad__quota_adopt(s, lane, *size, fault))) return status;
    if ((status = ad__buffers_add(&s->buffers, msg->u[2], &b, fault))) {
        ad__quota_leave(lane, *size);
        return status;
    }
    b->address = address;
    b->size = *size;
    s->buffer_bytes += *size;
    b->home = lane;
    b->module = m;
    m->users++;
    ad__survival_touch(s, b);
    /* Kernels change variables without saying so: nothing tells which operation wrote it last. */
    return 0;
}

static bool tell_global(ad_session *s, ad_message *msg) {
    ad_fault fault = {0};
    uint64_t size = 0;
    int status = make_alias(s, msg, &size, &fault);
    if (status) ad__reply_fault(s, msg->u[0], status, &fault);
    else ad__reply_ints(s, msg->u[0], 1, (int64_t[]){(int64_t)size});
    return true;
}

bool ad__modules_ask(ad_session *s, ad_message *m) {
    switch (m->opcode) {
    case AD_REQ_BUILD: return build(s, m);
    case AD_REQ_KERNEL: return tell_kernel(s, m);
    default: return tell_global(s, m);
    }
}

void ad__modules_close(ad_session *s) {
    end_building(s);
    while (s->modules.first) {
        ad_loaded *m = s->modules.first;
        s->modules.first = m->next;
        unload(s, m);
    }
    ad__modules_reap(s);
}
