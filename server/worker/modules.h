/* Users' modules: sources that a session has had compiled, their kernels and variables. Only whoever runs the engine
 * calls these. */
#ifndef AD_SERVER_MODULES_H
#define AD_SERVER_MODULES_H

#include "protocol/message.h"
#include "server/worker/devices.h"

struct ad_session;
struct ad_buffer;
struct ad_lane;

#define AD_MODULES 16384 /* of a session */

typedef struct ad_loaded ad_loaded;     /* a module */
typedef struct ad_building ad_building; /* one that the compiler is at work on */

typedef struct ad_modules {
    ad_loaded *first;   /* the one used last comes first */
    ad_loaded *dropped; /* by the client, but perhaps under way */
    unsigned count;
    uint64_t launches;
    ad_building *building;  /* NULL: none */
    uint64_t latest, lost;  /* greatest ids: that was ever built; that was with another worker */
} ad_modules;

/* A kernel to be launched. */
typedef struct ad_launching {
    const ad_message *message;
    ad_loaded *module;
    const ad_kernel *kernel;
    bool cooperative;
    char name[64];
} ad_launching;

/* Class OP: MODULE_DROP and KERNEL_SET. Class ASK: BUILD, KERNEL, GLOBAL; false: the session waits. */
int ad__modules_op(struct ad_session *s, const ad_message *m, ad_fault *fault);
bool ad__modules_ask(struct ad_session *s, ad_message *m);
/* The compiler has come so far that the session can go on. */
bool ad__modules_built(struct ad_session *s);

/* Find what a LAUNCH names, and check that the lane's device has it. */
int ad__launch_find(struct ad_session *s, const ad_message *m, struct ad_lane *lane, ad_launching *l, ad_fault *fault);
/* Enqueue it; operands have their addresses. */
int ad__launch_run(struct ad_session *s, struct ad_lane *lane, const ad_launching *l, const ad_op *op, uint64_t number,
                   ad_run *run, ad_fault *fault);

/* Close modules that nothing uses any more. */
void ad__modules_reap(struct ad_session *s);
/* A buffer that is a module's variable is freed. */
void ad__module_variable_gone(struct ad_session *s, struct ad_buffer *b);
/* All of them, once nothing is under way. */
void ad__modules_close(struct ad_session *s);

#endif
