/* Compiling source at run time: what a backend wants compiled, and whom it asks. The worker has the compiler (one
 * process in a jail for each compilation, behind a cache); a backend only says what is to be compiled and how. */
#ifndef AD_KERNELS_COMPILE_H
#define AD_KERNELS_COMPILE_H

#include "protocol/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ad_compile_target {
    AD_COMPILE_CUDA, /* CUDA C++ by NVRTC to a cubin of `arch` */
    AD_COMPILE_HOST  /* C++ by the host's compiler to a shared object */
} ad_compile_target;

typedef struct ad_text {
    const char *data; /* size bytes; not necessarily ended by a NUL */
    size_t size;
} ad_text;

typedef struct ad_compile_header {
    const char *name; /* as it is included */
    ad_text text;
} ad_compile_header;

typedef struct ad_compile_job {
    ad_compile_target target;
    const char *arch; /* "sm_90"; host: the level of -march, "x86-64-v3" */
    /* prelude: of the backend, before the source, hidden from line numbers and messages. */
    ad_text prelude, source;
    const char *const *options; /* the user's, checked against the list of those that are allowed */
    size_t noptions;
    const char *const *own_options; /* the backend's, not checked */
    size_t nown_options;
    const char *const *names; /* name expressions, whose lowered names are wanted */
    size_t nnames;
    const ad_compile_header *headers;
    size_t nheaders;
    bool own; /* no word of it is a user's: waits until users' jobs are done, and needs no jail to be compiled */
} ad_compile_job;

/* The result of a compilation; immutable, shared by reference. */
typedef struct ad_binary {
    const uint8_t *data; /* NULL: it does not compile, and `log` says why */
    size_t size;
    const char *const *lowered; /* in the order of names; host: the names as they were given */
    size_t nlowered;
    const char *log; /* what the compiler said; "" */
} ad_binary;

/* The compiler as a backend sees it. Any thread may call it. */
typedef struct ad_compiler ad_compiler;
struct ad_compiler {
    /* 1: *out is there, to be given back by `release`, whether it compiled or not. 0: not yet; it has been begun
     * (copying all of the job), ask again later. AD_E_...: there is no compiler, it is refused, or it failed for a
     * reason that is not the source's; fault says which. Never waits. */
    int (*get)(ad_compiler *compiler, const ad_compile_job *job, const ad_binary **out, ad_fault *fault);
    void (*release)(ad_compiler *compiler, const ad_binary *binary);
};

#ifdef __cplusplus
}
#endif
#endif
