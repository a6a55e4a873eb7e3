/* Users' modules: sources that a session has had compiled, their kernels and variables. Only whoever runs the engine
 * calls these. */
#ifndef AD_SERVER_WORKER_MODULES_MODULES_H
#define AD_SERVER_WORKER_MODULES_MODULES_H

#include "protocol/message.h"
#include "server/worker/engine/devices.h"
#include "server/worker/journal/journal.h"

struct ad_session;
struct ad_buffer;
struct ad_stream_queue;

#define AD_MODULES 16384               /* of a session */
#define AD_MODULES_TEXT (256ull << 20) /* bytes of what they are made from, where that is written down */

typedef struct ad_loaded ad_loaded;     /* a module */
typedef struct ad_building ad_building; /* one that the compiler is at work on */

typedef struct ad_modules {
    ad_loaded *first;   /* the one used last comes first */
    ad_loaded *dropped; /* by the client, but perhaps under way */
    unsigned count;
    uint64_t launches;
    uint64_t text;         /* bytes of what they are made from */
    ad_building *building; /* NULL: none */
    ad_fault again;        /* why the module that the message at hand needs could not be built again */
} ad_modules;

/* Why a module of a worker that was killed is not another one's. */
typedef enum ad_module_loss {
    AD_MODULE_KEPT,
    AD_MODULE_VARIABLES, /* they may have changed */
    AD_MODULE_FATAL,     /* setting it up killed a worker */
    AD_MODULE_DAMAGED,   /* what it was made from is not there */
    AD_MODULE_UNWRITTEN  /* no row at all: there was no memory for it */
} ad_module_loss;

/* A kernel to be launched. */
typedef struct ad_launching {
    const ad_message *message;
    ad_loaded *module;
    const ad_kernel *kernel;
    bool cooperative;
    bool lost; /* it cannot be launched because the worker before was killed */
    char name[64];
} ad_launching;

/* Class OP: MODULE_DROP and KERNEL_SET. Class ASK: BUILD, KERNEL, GLOBAL; false: the session waits. */
int ad__modules_op(struct ad_session *s, const ad_message *m, ad_fault *fault);
bool ad__modules_ask(struct ad_session *s, ad_message *m);
/* The compiler has come so far that the session can go on. */
bool ad__modules_built(struct ad_session *s);
/* A module that another worker had is built again before it is used; false: the session waits for that. Whoever uses
 * it hears if it cannot be. */
bool ad__modules_ready(struct ad_session *s, uint64_t id);

/* Find what a LAUNCH names, and check that the stream queue's device has it. */
int ad__launch_find(struct ad_session *s, const ad_message *m, struct ad_stream_queue *queue, ad_launching *l,
                    ad_fault *fault);
/* Enqueue it; operands have their addresses. */
int ad__launch_run(struct ad_session *s, struct ad_stream_queue *queue, const ad_launching *l, const ad_op *op,
                   uint64_t number, ad_run *run, ad_fault *fault);

/* Close modules that nothing uses any more. */
void ad__modules_reap(struct ad_session *s);
/* A buffer that is a module's variable is freed. */
void ad__module_variable_gone(struct ad_session *s, struct ad_buffer *b);
/* All of them, once nothing is under way. */
void ad__modules_close(struct ad_session *s);

/* ---- journal.c: what another worker needs to build them again ---- */
/* A module's row, kind NONE: there is no module; its place, NULL: the same. */
ad_journal_row ad__module_row(struct ad_session *s, uint64_t id);
uint32_t *ad__module_place(struct ad_session *s, uint64_t id);
/* What such a row has besides itself is not needed any more. */
void ad__module_forget(ad_journal *l, const ad_journal_row *row);
/* One that another worker had. recipe: as it was read from there, NULL: it is not there; settings: NULL: none.
 * AD_E_MEMORY. */
int ad__module_restore(struct ad_session *s, const ad_journal_row *row, const ad_journal_recipe *recipe,
                       const ad_journal_settings *settings, ad_fault *fault);

#endif
