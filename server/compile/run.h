/* The parts of arrayd-compile: a watcher outside the jail, and in the jail the process that compiles.
 *
 *     worker --job--> arrayd-compile (watcher) --fork--> jailed process: NVRTC or c++
 *            <-result-                         <--pipe-- */
#ifndef AD_SERVER_COMPILE_RUN_H
#define AD_SERVER_COMPILE_RUN_H

#include "server/compile/frame.h"

/* The end of the jailed process. */
typedef struct ad_watched {
    ad_bytes said; /* the bytes that it wrote, up to the limit */
    int status;    /* status of waitpid */
    bool late;     /* the watcher stopped it, as its time was over */
    bool orphan;   /* nobody waits for the result any more */
    bool flood;    /* the watcher stopped it, as it wrote more than `most` */
} ad_watched;

/* A process to be run in the jail: `inside`, in a process group of its own. Its output goes to a pipe (descriptor 1;
 * with `both` also 2). Output beyond `most` bytes ends it if `strict`, and is dropped otherwise. */
typedef struct ad_watch {
    void (*inside)(const ad_compile_request *request, void *user);
    const ad_compile_request *request;
    void *user;
    size_t most;
    bool strict, both;
} ad_watch;
/* Run the jailed process and wait for its end. AD_E_SYSTEM. */
int ad__compile_watch(const ad_watch *watch, ad_watched *out, ad_fault *fault);
/* Fill *out for a process that ended without a result. */
void ad__compile_stopped(const ad_compile_request *r, const ad_watched *w, ad_compile_result *out);

/* Compile a request that has been checked. The result's texts stay until the process ends. */
void ad__compile_cuda(const ad_compile_request *r, ad_compile_result *out);
void ad__compile_host(const ad_compile_request *r, ad_compile_result *out);
/* Make *out a refusal with the fault's reason. */
void ad__compile_refuse(const ad_fault *fault, ad_compile_result *out);
/* Write the result to standard output and exit, with status 0, or `failed` when it cannot be written. */
_Noreturn void ad__compile_leave(const ad_compile_result *r, int failed);

/* Hide all files outside these folders (NULL at the end) from the C library's functions. from: this process's folder,
 * where relative paths begin. NULL: relative paths are refused. */
#define AD_PATHS_MOST 16
void ad__paths_close(const char *const *folders, const char *from);
/* Remove every occurrence of word from text. */
void ad__log_hide(char *text, const char *word);
/* Remove what the CPU backend has put into the lines of a source, from `mark` to the end of that declaration. */
void ad__log_hide_added(char *text, const char *mark);
/* Cut the text to at most `most` bytes, at the end of a line, and say so there. */
void ad__log_cut(char *text, size_t most);

#endif
