/* A backend that its worker dies of: the cpu backend, which ends the process where an operation has the number FATAL
 * among its scalars. */
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "tests/sim/sim.h"

#define FATAL 6661

typedef struct sim_backend {
    ad_backend table;
    const ad_backend *cpu;
} sim_backend;

static void die_of(const ad_scalar *s) {
    if (s->kind == AD_SCALAR_INT && s->as.i == FATAL) sim_kill_process(sim_self(), SIGSEGV);
}

static int run_operation(ad_stream *stream, const ad_op *op, ad_run *how, ad_fault *fault) {
    for (int i = op->nout; i < op->nout + op->nin; i++)
        if (op->operand[i].is_scalar) die_of(&op->operand[i].scalar);
    return sim_self()->crashes->cpu->run(stream, op, how, fault);
}

static int run_chain(ad_stream *stream, const ad_chain *chain, ad_run *how, ad_fault *fault) {
    for (int i = 0; i < chain->nscalars; i++) die_of(&chain->scalar[i]);
    return sim_self()->crashes->cpu->fuse(stream, chain, how, fault);
}

static const ad_backend *get_backend(void) { return &sim_self()->crashes->table; }

void *__wrap_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name) {
    void *found = dlsym(library, name);
    const ad_backend *(*get)(void);
    if (!found || strcmp(name, "ad_backend_get") || !sim_planned.fatal) return found;
    sim_backend *b = calloc(1, sizeof *b);
    *(void **)&get = found;
    b->cpu = get();
    b->table = *b->cpu;
    b->table.run = run_operation;
    if (b->table.fuse) b->table.fuse = run_chain;
    sim_self()->crashes = b;
    const ad_backend *(*own)(void) = get_backend;
    return *(void **)&own;
}
