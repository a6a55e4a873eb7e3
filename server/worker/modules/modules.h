/* Users' modules: sources that a session had compiled, with their kernels and variables.
 *
 * Runner: all functions here. */
#ifndef AD_SERVER_WORKER_MODULES_MODULES_H
#define AD_SERVER_WORKER_MODULES_MODULES_H

#include "protocol/message.h"
#include "server/worker/base/component.h"
#include "server/worker/base/hooks.h"
#include "server/worker/device/devices.h"
#include "server/worker/journal/journal.h"

struct ad_worker_session;
struct ad_buffer;
struct ad_stream_queue;

#define AD_MODULES 16384               /* modules of a session */
#define AD_MODULES_TEXT (256ull << 20) /* bytes of the recipes of a session that is journaled */

typedef struct ad_loaded ad_loaded;     /* a module, built or to be built again */
typedef struct ad_building ad_building; /* a module that the compiler is at work on */

typedef struct ad_modules {
    ad_loaded *first;   /* modules, in the order of use */
    ad_loaded *dropped; /* modules that the client has dropped, until no operation uses them */
    unsigned count;
    uint64_t launches;
    uint64_t text;         /* bytes of recipes */
    ad_building *building; /* what is being built; NULL: nothing */
    ad_fault again;        /* why the module that the message at hand needs could not be built again */
} ad_modules;

/* Why a worker cannot have a module of the worker before. */
typedef enum ad_module_loss {
    AD_MODULE_KEPT,
    AD_MODULE_VARIABLES, /* its variables may have changed */
    AD_MODULE_FATAL,     /* setting it up killed a worker */
    AD_MODULE_DAMAGED    /* its recipe is missing or damaged */
} ad_module_loss;

/* A kernel to be launched. */
typedef struct ad_launching {
    const ad_message *message;
    ad_loaded *module;
    const ad_kernel *kernel;
    bool cooperative;
    bool lost; /* the kernel is lost, because the worker before was killed */
    char name[64];
} ad_launching;

/* True if the compiler is done, so that the session can go on. */
bool ad__modules_built(struct ad_worker_session *s);
/* Build a module again that another worker had, before it is used. False: the session waits for that. A failure is
 * reported by what uses the module. */
bool ad__modules_ready(struct ad_worker_session *s, uint64_t id);

/* Find the kernel that a LAUNCH names, and check that its module is on the stream queue's device. */
int ad__launch_find(struct ad_worker_session *s, const ad_message *m, struct ad_stream_queue *queue, ad_launching *l,
                    ad_fault *fault);
/* Enqueue a kernel, whose operands have their addresses. */
int ad__launch_run(struct ad_worker_session *s, struct ad_stream_queue *queue, const ad_launching *l, const ad_op *op,
                   uint64_t number, ad_run *run, ad_fault *fault);

/* Free dropped modules that no operation uses any more. */
void ad__modules_reap(struct ad_worker_session *s);
/* Release the module of a buffer that is its variable and is freed. */
void ad__module_variable_gone(struct ad_worker_session *s, struct ad_buffer *b);
/* Free all modules of a session whose streams are idle. */
void ad__modules_close(struct ad_worker_session *s);

extern const ad_component ad__component_modules; /* its rows in the journal: journal.c */
extern const ad_modules_hooks ad__modules_hooks;

#endif
