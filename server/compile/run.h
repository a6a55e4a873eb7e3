/* arrayd-compile, inside: a watcher outside the jail, and in the jail the process that compiles. */
#ifndef AD_SERVER_COMPILE_RUN_H
#define AD_SERVER_COMPILE_RUN_H

#include "server/compile/frame.h"

/* How the jailed process ended. */
typedef struct ad_watched {
    ad_bytes said; /* what it wrote, up to the limit */
    int status;    /* as waitpid gives it */
    bool late;     /* stopped because its time was over */
    bool orphan;   /* nobody waits for the result any more */
    bool flood;    /* stopped because it wrote more than `most` */
} ad_watched;

/* Runs `inside` in a new process in a group of its own, with its output in a pipe (descriptor 1, and 2 where both), and
 * waits for its end. What is written beyond `most` ends it where `strict`, and is dropped else. */
typedef struct ad_watch {
    void (*inside)(const ad_compile_request *request, void *user);
    const ad_compile_request *request;
    void *user;
    size_t most;
    bool strict, both;
} ad_watch;
int ad__compile_watch(const ad_watch *watch, ad_watched *out, ad_fault *fault);
/* Fill *out for a process that did not get as far as saying what came of it. */
void ad__compile_stopped(const ad_compile_request *r, const ad_watched *w, ad_compile_result *out);

/* Compile a request that has been checked. The result's texts stay until the process ends. */
void ad__compile_cuda(const ad_compile_request *r, ad_compile_result *out);
void ad__compile_host(const ad_compile_request *r, ad_compile_result *out);
/* *out: refused, for the fault's reason. */
void ad__compile_refuse(const ad_fault *fault, ad_compile_result *out);
/* Write the result to standard output, and leave: with status 0, or `failed` when it cannot be written. */
_Noreturn void ad__compile_leave(const ad_compile_result *r, int failed);

/* From here on only what lies in these folders (NULL at the end) is there for the C library's functions. from: the
 * folder of this process, where relative paths begin; NULL: there are none. */
#define AD_PATHS_MOST 16
void ad__paths_close(const char *const *folders, const char *from);
/* Every occurrence of word in text becomes nothing. */
void ad__log_hide(char *text, const char *word);
/* End the text after at most `most` bytes, at the end of a line, saying so. There is room for it. */
void ad__log_cut(char *text, size_t most);

#endif
