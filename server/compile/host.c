/* Compile C++ with the host's compiler, in a private folder:
 *
 *     arrayd-compile                     jailed process
 *       prepare_place: write the files
 *       ad__compile_watch ------------>  exec_compiler: close the jail, exec c++
 *       make_result   <----------------  messages (pipe), kernel.so (file) */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/compile/jail.h"
#include "server/compile/options.h"
#include "server/compile/run.h"
#include "server/compile/scratch.h"
#include "server/compile/toolkit.h"

#define SOURCE_NAME "kernel.cu"
#define PRELUDE_NAME "arrayd-prelude.h"
#define BINARY_NAME "kernel.so"
#define INCLUDE "include"
#define WORDS (2 * AD_COMPILE_OPTIONS + 32)

typedef struct place {
    char compiler[AD_TOOLKIT_PATH], folder[AD_SCRATCH_PATH];
    int lock;                     /* locked descriptor of the folder */
    char own[5][AD_TOOLKIT_PATH]; /* the compiler's folders */
    char paths[AD_TOOLKIT_PATH];  /* path of arrayd-paths.so */
    const char *read[AD_PATHS_MOST];
} place;

/* ---- preparing ---- */

/* List the folders that the compiler may read: the system's, and those where the compiler is installed. */
static void list_folders(place *p) {
    static const char *const system_folders[] = {"/bin",     "/lib",       "/lib64",       "/usr/bin",
                                                 "/usr/lib", "/usr/lib64", "/usr/libexec", "/usr/include"};
    static const char *const parts[] = {"bin", "lib", "lib64", "libexec", "include"};
    size_t n = 0, prefix = 0;
    for (const char *s = p->compiler, *a = s, *b = s; (s = strchr(s, '/')); s++) { /* find the last slash but one */
        a = b;
        b = s;
        prefix = (size_t)(a - p->compiler);
    }
    for (size_t i = 0; i < sizeof system_folders / sizeof *system_folders; i++) p->read[n++] = system_folders[i];
    for (size_t i = 0; prefix && i < sizeof parts / sizeof *parts; i++) {
        snprintf(p->own[i], sizeof p->own[i], "%.*s/%s", (int)prefix, p->compiler, parts[i]);
        p->read[n++] = p->own[i];
    }
    p->read[n] = p->paths;
}

/* Find arrayd-paths.so beside this program. AD_E_UNSUPPORTED. */
static int find_paths_library(place *p, ad_fault *fault) {
    ssize_t n = readlink("/proc/self/exe", p->paths, sizeof p->paths - 20);
    p->paths[n < 0 ? 0 : n] = 0;
    char *slash = strrchr(p->paths, '/');
    strcpy(slash ? slash + 1 : p->paths, "arrayd-paths.so");
    if (!access(p->paths, R_OK)) return 0;
    return ad__fault(fault, AD_E_UNSUPPORTED, "%.200s cannot be read: %s", p->paths, strerror(errno));
}

static int write_files(const place *p, const ad_compile_job *job, ad_fault *fault) {
    char name[300];
    int status = ad__scratch_write(p->folder, SOURCE_NAME, job->source.data, job->source.size, fault);
    if (!status) status = ad__scratch_write(p->folder, PRELUDE_NAME, job->prelude.data, job->prelude.size, fault);
    for (size_t i = 0; !status && i < job->nheaders; i++) {
        snprintf(name, sizeof name, INCLUDE "/%s", job->headers[i].name);
        status = ad__scratch_write(p->folder, name, job->headers[i].text.data, job->headers[i].text.size, fault);
    }
    return status;
}

/* Tell whether a file of the folder is there, with its size. */
static bool has_file(const place *p, const char *name, size_t size) {
    char path[512];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", p->folder, name);
    return !lstat(path, &st) && S_ISREG(st.st_mode) && (size_t)st.st_size == size;
}

/* Tell whether all that write_files has written is still there: somebody may clean up /tmp meanwhile. */
static bool has_all_files(const place *p, const ad_compile_job *job) {
    char name[300];
    bool all = has_file(p, SOURCE_NAME, job->source.size) && has_file(p, PRELUDE_NAME, job->prelude.size);
    for (size_t i = 0; all && i < job->nheaders; i++) {
        snprintf(name, sizeof name, INCLUDE "/%s", job->headers[i].name);
        all = has_file(p, name, job->headers[i].text.size);
    }
    return all;
}

static int prepare_place(place *p, const ad_compile_job *job, ad_fault *fault) {
    if (!ad__toolkit_host(p->compiler))
        return ad__fault(fault, AD_E_UNSUPPORTED,
                         "there is no C++ compiler here: kernels on the CPU need g++ or clang++");
    int status = find_paths_library(p, fault);
    if (status) return status;
    list_folders(p);
    status = ad__scratch_make(p->folder, &p->lock, fault);
    return status ? status : write_files(p, job, fault);
}

/* ---- in the jail ---- */

/* In the jailed process: report why nothing was compiled, and end. */
static void exit_refused(const char *why) {
    fprintf(stderr, "%s\n", why);
    _exit(126);
}

/* Write the compiler's command line, whose texts stay until the process ends. */
static void write_command(const place *p, const ad_compile_job *job, const char **words) {
    static char arch[64];
    static const char *const rest[] = {"-isystem", INCLUDE, "-fPIC", "-shared", "-pipe", "-o", BINARY_NAME};
    int n = 0;
    ad_compile_words own;
    ad_fault fault;
    if (ad__compile_words(job, &own, &fault)) exit_refused(fault.text);
    snprintf(arch, sizeof arch, "-march=%s", job->arch);
    words[n++] = p->compiler;
    words[n++] = "-O2";
    words[n++] = "-std=c++17";
    words[n++] = "-fdiagnostics-color=never";
    if (*job->arch) words[n++] = arch;
    for (size_t i = 0; i < job->nown_options; i++) words[n++] = job->own_options[i];
    for (size_t i = 0; i < own.n; i++) words[n++] = own.words[i];
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) words[n++] = rest[i];
    if (job->prelude.size) {
        words[n++] = "-include";
        words[n++] = PRELUDE_NAME;
    }
    words[n++] = "-x";
    words[n++] = "c++";
    words[n++] = SOURCE_NAME;
    words[n] = NULL;
}

/* Write the compiler's environment. Its calls go through arrayd-paths.so, which hides all other files (paths.c). */
static void write_environment(const place *p, char *environment[2]) {
    static char preload[AD_TOOLKIT_PATH + 16], paths[AD_PATHS_MOST * AD_TOOLKIT_PATH];
    size_t n = (size_t)snprintf(paths, sizeof paths, "AD_PATHS=");
    for (const char *const *f = p->read; *f; f++) n += (size_t)snprintf(paths + n, sizeof paths - n, "%s:", *f);
    snprintf(paths + n, sizeof paths - n, "%s", p->folder);
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", p->paths);
    environment[0] = preload;
    environment[1] = paths;
}

/* In the jailed process: close the jail and become the compiler. */
static void exec_compiler(const ad_compile_request *r, void *user) {
    static char *environment[] = {NULL, NULL, "PATH=/usr/bin:/bin", "TMPDIR=.", "LC_ALL=C", NULL};
    static const char *words[WORDS];
    static ad_fault fault;
    const place *p = user;
    ad_jail jail = {.read = p->read,
                    .write = p->folder,
                    .programs = true,
                    .memory = r->memory,
                    .seconds = r->seconds,
                    .optional = r->open || r->job.own};
    write_command(p, &r->job, words);
    write_environment(p, environment);
    if (chdir(p->folder)) exit_refused("the folder has gone");
    if (ad__jail_close(&jail, &fault)) exit_refused(fault.text);
    execve(p->compiler, (char **)(uintptr_t)words, environment);
    exit_refused("the compiler cannot be started");
}

/* ---- what came of it ---- */

/* End the compiler's messages with a NUL, without the folder's path and what is too long. */
static char *clean_log(const place *p, ad_watched *w) {
    static char nothing[1];
    char folder[AD_SCRATCH_PATH + 1];
    ad__bytes_append(&w->said, "", 1);
    char *log = w->said.failed ? nothing : (char *)w->said.data;
    snprintf(folder, sizeof folder, "%s/", p->folder);
    ad__log_hide(log, folder);
    ad__log_hide(log, "./");
    ad__log_hide_added(log, " static adrun::registered ");
    ad__log_cut(log, AD_COMPILE_LOG);
    return log;
}

/* Tell whether the log says that a limit or a want of this machine stopped one of the programs that the compiler's
 * driver runs. The same source may compile later. Sources that say so themselves are just compiled again. */
static bool is_stop_message(const char *log) {
    static const char *const words[] = {"signal terminated program", "out of memory",
                                        "virtual memory exhausted",  "File size limit",
                                        "CPU time limit",            "cannot allocate memory",
                                        "Cannot allocate memory",    "File too large",
                                        "No space left on device",   "Disk quota exceeded",
                                        "Read-only file system",     "Input/output error",
                                        "Too many open files",       "Resource temporarily unavailable",
                                        "cannot execute"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(log, words[i])) return true;
    return false;
}

/* Read the binary of the jailed process, which must be a plain file of a possible size. AD_E_SYSTEM. */
static int read_host_binary(const place *p, ad_bytes *out, ad_fault *fault) {
    char path[AD_SCRATCH_PATH + 16];
    struct stat st;
    snprintf(path, sizeof path, "%s/" BINARY_NAME, p->folder);
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), status = -1;
    if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0 && st.st_size <= (off_t)AD_COMPILE_BINARY &&
        !ad__bytes_reserve(out, (size_t)st.st_size)) {
        ssize_t n = read(fd, out->data, (size_t)st.st_size);
        if (n == st.st_size) status = 0;
        if (n > 0) out->size = (size_t)n;
    }
    if (fd >= 0) close(fd);
    return status ? ad__fault(fault, AD_E_SYSTEM, "the compiler left no binary") : 0;
}

static void make_result(const ad_compile_request *r, const place *p, ad_watched *w, ad_compile_result *out,
                        ad_fault *fault) {
    static ad_bytes binary;
    char *log = clean_log(p, w);
    bool exited = WIFEXITED(w->status) && !w->late;
    if (!exited || (WEXITSTATUS(w->status) && is_stop_message(log))) {
        /* The compiler's driver reports this limit as an error of its own. */
        const bool slow = exited && strstr(log, "CPU time limit");
        ad__compile_stopped(r, slow ? &(ad_watched){.status = SIGXCPU} : w, out);
        if (exited && !slow) out->binary.log = log;
    } else if (WEXITSTATUS(w->status) == 126) {
        ad__fault(fault, AD_E_SYSTEM, "%s", log);
        ad__compile_refuse(fault, out);
    } else if (WEXITSTATUS(w->status) && !has_all_files(p, &r->job)) {
        ad__fault(fault, AD_E_SYSTEM, "somebody removed files of the compilation from /tmp; try again");
        ad__compile_refuse(fault, out);
    } else if (WEXITSTATUS(w->status)) {
        *out = (ad_compile_result){.kind = AD_COMPILE_WRONG, .binary.log = log};
    } else if (read_host_binary(p, &binary, fault)) {
        ad__compile_refuse(fault, out);
    } else {
        *out = (ad_compile_result){.kind = AD_COMPILE_MADE,
                                   .binary = {.data = binary.data,
                                              .size = binary.size,
                                              .log = log,
                                              .lowered = r->job.names,
                                              .nlowered = r->job.nnames}};
    }
}

void ad__compile_host(const ad_compile_request *r, ad_compile_result *out) {
    static place p;
    static ad_watched w;
    static ad_fault fault;
    ad_watch watch = {.inside = exec_compiler, .request = r, .user = &p, .most = 2 * AD_COMPILE_LOG, .both = true};
    if (prepare_place(&p, &r->job, &fault) || ad__compile_watch(&watch, &w, &fault)) ad__compile_refuse(&fault, out);
    else make_result(r, &p, &w, out, &fault);
    if (*p.folder) ad__scratch_remove(p.folder);
}
