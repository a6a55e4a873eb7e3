/* Modules: kernels that the program brings as source. */
#include <stdlib.h>
#include <string.h>

#include "client-c/client.h"
#include "protocol/rows_request.h"

struct ad_module {
    atomic_uint refs;
    ad_session *session;
    uint64_t
        serial; /* serial of the session when it was built: a fork's child has the parent's arrays, but no modules */
    uint64_t id;
};

static bool is_stale(const ad_module *m) { return ad__is_foreign(m->session) || m->serial != m->session->serial; }

static int check_module(const ad_module *m) {
    return is_stale(m) ? ad__fail(AD_E_STALE, "the module is the parent process's: build it again after a fork") : 0;
}

static void free_module(ad_module *m) {
    atomic_fetch_sub_explicit(&m->session->references.modules, 1, memory_order_relaxed);
    ad__session_release(m->session);
    free(m);
}

/* ---- building ---- */

typedef struct building {
    const char *source;
    size_t size, noptions, nnames;
    const char *const *options, *const *names;
} building;

static int check_build(const building *b, int noptions, int nnames) {
    size_t bytes = 0;
    if (noptions < 0 || nnames < 0) return ad__fail(AD_E_VALUE, "a number of options or names must not be negative");
    if (b->size > AD_MAX_SOURCE)
        return ad__fail(AD_E_LIMIT, "a source must have at most %u bytes, not %zu", AD_MAX_SOURCE, b->size);
    for (int i = 0; i < noptions; i++) bytes += strlen(b->options[i]) + 8;
    for (int i = 0; i < nnames; i++) bytes += strlen(b->names[i]) + 8;
    if (bytes > AD_MAX_CONTROL - AD_MAX_SOURCE - 4096)
        return ad__fail(AD_E_LIMIT, "options and name expressions are too long: %zu bytes", bytes);
    return 0;
}

/* Ask the server to build, in a frame of its own: with other messages the frame might be too long. */
static int ask_build(ad_session *s, const building *b, uint64_t *id, ad_slot *slot) {
    int status = ad__begin_alone(s);
    if (status) return status;
    size_t mark = s->output.gathered.size;
    *id = s->next_id.module++;
    ad__slot_add(s, slot);
    status = ad__encode_build(&s->output.gathered, slot->request, *id, b->source, b->size, b->noptions, b->options,
                              b->nnames, b->names);
    return ad__commit_ask(s, mark, status, slot);
}

static int fail_compile(const char *log) {
    const char *end = strchr(log, '\n');
    return ad__fail(AD_E_COMPILE, "%.*s", (int)(end ? end - log : (long)strlen(log)), *log ? log : "does not compile");
}

static int finish_build(ad_module *m, const ad_slot *slot, char *text, ad_module **module, char **log) {
    if (slot->nvalues < 1) return ad__fail(AD_E_PROTOCOL, "build: a reply of another form");
    bool compiles = slot->values[0] != 0;
    int status = compiles ? 0 : fail_compile(text);
    if (log) *log = text;
    else free(text);
    if (compiles) *module = m;
    return status;
}

int ad_module_build(ad_session *s, const char *source, size_t size, int noptions, const char *const *options,
                    int nnames, const char *const *names, ad_module **module, char **log) {
    const building b = {source, size, (size_t)noptions, (size_t)nnames, options, names};
    ad_slot slot;
    int status = check_build(&b, noptions, nnames);
    if (status) return status;
    ad_module *m = malloc(sizeof *m);
    char *text = calloc(1, AD_MAX_LOG + 1);
    if (!m || !text) {
        free(m);
        free(text);
        return ad__fail_memory();
    }
    ad__slot_init(&slot, text, AD_MAX_LOG);
    slot.variable = true;
    atomic_init(&m->refs, 1);
    status = ask_build(s, &b, &m->id, &slot);
    if (status && ad__slot_is_made(&slot, status)) ad__send_numbers(s, AD_REQ_MODULE_DROP, 1, &m->id);
    if (status) {
        free(text);
        free(m);
        return status;
    }
    m->session = ad__session_retain(s);
    atomic_fetch_add_explicit(&s->references.modules, 1, memory_order_relaxed);
    m->serial = s->serial;
    status = finish_build(m, &slot, text, module, log);
    if (status) free_module(m);
    return status;
}

ad_module *ad_module_retain(ad_module *m) {
    atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
    return m;
}

void ad_module_release(ad_module *m) {
    if (!m || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1) return;
    ad_session *s = m->session;
    if (!is_stale(m)) {
        pthread_mutex_lock(&s->lock);
        bool dead = s->dead;
        pthread_mutex_unlock(&s->lock);
        if (!dead) ad__send_numbers(s, AD_REQ_MODULE_DROP, 1, &m->id);
    }
    free_module(m);
}

/* ---- launching ---- */

typedef struct launching {
    ad_op op;
    ad_operand operand[AD_MAX_ARGUMENTS];
    ad_string value[AD_MAX_ARGUMENTS];
    uint8_t kind[AD_MAX_ARGUMENTS];
    size_t nvalues;
} launching;

/* Take the value of a parameter, or of an array the structure that its address is in. */
static int take_value(const ad_module *m, launching *l, int i, const ad_parameter *p) {
    if (p->size > UINT16_MAX) return ad__fail(AD_E_VALUE, "parameter %d: a value of %zu bytes", i, p->size);
    if (p->array && p->size < AD_INSIDE)
        return ad__fail(AD_E_VALUE, "parameter %d: a structure of %zu bytes has no room for an address", i, p->size);
    if (p->array && !(m->session->welcome.features & AD_FEATURE_INSIDE))
        return ad__fail(AD_E_UNSUPPORTED, "parameter %d: the server is too old for structures with arrays", i);
    l->value[l->nvalues++] = (ad_string){p->data, p->size};
    return 0;
}

static int sort_parameter(const ad_module *m, launching *l, int i, const ad_parameter *p) {
    int status = !p->array || p->data ? take_value(m, l, i, p) : 0;
    if (!p->array) l->kind[i] = AD_KIND_VALUE;
    if (!p->array || status) return status;
    if (p->array->session != m->session)
        return ad__fail(AD_E_VALUE, "parameter %d: the array belongs to another session than the kernel", i);
    if (p->written && p->array->readonly)
        return ad__fail(AD_E_VALUE,
                        "parameter %d: the array is read-only, and the kernel might write it: give it a copy", i);
    if (p->data) l->kind[i] = p->written ? AD_KIND_INSIDE_WRITTEN : AD_KIND_INSIDE_READ;
    else l->kind[i] = p->written ? AD_KIND_WRITTEN : AD_KIND_READ;
    if (p->written) l->op.nout++;
    else l->op.nin++;
    return 0;
}

#define MOST_VALUES 32764u /* bytes of all parameters, on the newest devices */

/* Describe a launch: arrays that the kernel may write come first, then those that it reads. */
static int describe_launch(const ad_module *m, launching *l, int n, const ad_parameter *p) {
    int status = 0, written = 0, read;
    size_t bytes = 0;
    l->op = (ad_op){.opcode = AD_REQ_LAUNCH, .operand = l->operand};
    l->nvalues = 0;
    if (n < 0 || n > AD_MAX_ARGUMENTS)
        return ad__fail(AD_E_LIMIT, "a kernel has from 0 to %d parameters, not %d", AD_MAX_ARGUMENTS, n);
    for (int i = 0; i < n && !status; i++) {
        status = sort_parameter(m, l, i, &p[i]);
        bytes += p[i].array && !p[i].data ? sizeof(void *) : p[i].size;
    }
    if (!status && bytes > MOST_VALUES)
        status = ad__fail(AD_E_LIMIT, "a kernel's parameters have at most %u bytes, not %zu", MOST_VALUES, bytes);
    read = l->op.nout;
    for (int i = 0; i < n && !status; i++)
        if (p[i].array)
            l->operand[p[i].written ? written++ : read++] = (ad_operand){.desc = ad__array_desc(p[i].array)};
    return status;
}

int ad_launch(ad_module *m, const char *kernel, const ad_grid *grid, int n, const ad_parameter *parameters) {
    ad_session *s = m->session;
    launching l;
    int status = check_module(m);
    if (!status) status = describe_launch(m, &l, n, parameters);
    if (status) return status;
    ad_launch_text text = {.module = m->id,
                           .kernel = kernel,
                           .nparams = (size_t)n,
                           .kind = l.kind,
                           .op = &l.op,
                           .value = l.value,
                           .nvalues = l.nvalues};
    for (int i = 0; i < 3; i++) {
        text.numbers[i] = grid->grid[i];
        text.numbers[3 + i] = grid->block[i];
    }
    text.numbers[6] = grid->shared;
    if (!AD_LIKELY(!ad__recording)) return ad__record_launch(s, &text);
    if ((status = ad__begin(s))) return status;
    size_t mark = s->output.gathered.size;
    return ad__commit(s, mark, ad__encode_launch(&s->output.gathered, &text));
}

/* ---- attributes and variables ---- */

int ad_kernel_get_facts(ad_module *m, const char *kernel, ad_kernel_facts *facts) {
    enum { N = sizeof *facts / sizeof(int64_t) };
    ad_session *s = m->session;
    ad_slot slot;
    int status = check_module(m);
    if (!status) status = ad__begin_ask(s);
    if (status) return status;
    ad__slot_init(&slot, NULL, 0);
    size_t mark = s->output.gathered.size;
    ad__slot_add(s, &slot);
    status = ad__commit_ask(s, mark, ad__encode_kernel(&s->output.gathered, slot.request, m->id, kernel), &slot);
    if (status) return status;
    if (slot.nvalues < N) return ad__fail(AD_E_PROTOCOL, "kernel: a reply of another form");
    memcpy(facts, slot.values, sizeof *facts);
    return 0;
}

static int send_kernel_set(ad_module *m, const char *kernel, int64_t shared, int64_t carveout, int cooperative) {
    ad_session *s = m->session;
    int status = check_module(m);
    if (!status) status = ad__begin(s);
    if (status) return status;
    size_t mark = s->output.gathered.size;
    return ad__commit(s, mark,
                      ad__encode_kernel_set(&s->output.gathered, m->id, kernel, shared, carveout, cooperative));
}

int ad_kernel_set_cooperative(ad_module *m, const char *kernel, bool cooperative) {
    return send_kernel_set(m, kernel, -1, -1, cooperative);
}

int ad_kernel_set(ad_module *m, const char *kernel, int64_t max_dynamic_shared, int64_t carveout) {
    if (max_dynamic_shared > INT32_MAX || carveout > 100)
        return ad__fail(AD_E_VALUE, "kernel %s: shared memory of %lld bytes or a carveout of %lld percent is too much",
                        kernel, (long long)max_dynamic_shared, (long long)carveout);
    return send_kernel_set(m, kernel, max_dynamic_shared, carveout, -1);
}

static int ask_global(ad_module *m, const char *name, uint64_t *buffer, ad_slot *slot) {
    ad_session *s = m->session;
    int status = check_module(m);
    if (!status) status = ad__begin_ask(s);
    if (status) return status;
    ad__slot_init(slot, NULL, 0);
    size_t mark = s->output.gathered.size;
    *buffer = s->next_id.buffer++;
    ad__slot_add(s, slot);
    status = ad__commit_ask(s, mark, ad__encode_global(&s->output.gathered, slot->request, m->id, name, *buffer), slot);
    if (status && ad__slot_is_made(slot, status)) ad__queue_free(s, *buffer, 0);
    return status;
}

int ad_module_get_global(ad_module *m, const char *name, ad_array **out) {
    uint64_t buffer = 0;
    ad_array *a;
    ad_slot slot;
    int status = ask_global(m, name, &buffer, &slot);
    if (status) return status;
    if (slot.nvalues < 1 || slot.values[0] < 0) status = ad__fail(AD_E_PROTOCOL, "global: a reply of another form");
    else status = ad__array_new(m->session, AD_UINT8, 1, slot.values, &a);
    if (status) {
        ad__queue_free(m->session, buffer, 0);
        return status;
    }
    a->buffer = buffer;
    *out = a;
    return 0;
}
