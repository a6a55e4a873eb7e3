/* Compile CUDA C++ with NVRTC. The jailed process loads the library before it closes the jail, and reads CUDA's
 * headers after. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/compile/jail.h"
#include "server/compile/options.h"
#include "server/compile/run.h"
#include "server/compile/toolkit.h"

#define SOURCE_NAME "kernel.cu"
#define PRELUDE_NAME "arrayd/prelude.h"
#define WRONG 6 /* NVRTC_ERROR_COMPILATION */
#define WORDS (2 * AD_COMPILE_OPTIONS + 8)

/* The functions of NVRTC that are called: F(name, parameters). All return a status, 0 for success. */
#define FUNCTIONS(F)                                                                                           \
    F(Version, (int *major, int *minor))                                                                       \
    F(CreateProgram, (void **program, const char *source, const char *name, int n, const char *const *headers, \
                      const char *const *names))                                                               \
    F(CompileProgram, (void *program, int n, const char *const *options))                                      \
    F(AddNameExpression, (void *program, const char *name))                                                    \
    F(GetLoweredName, (void *program, const char *name, const char **lowered))                                 \
    F(GetProgramLogSize, (void *program, size_t *size))                                                        \
    F(GetProgramLog, (void *program, char *log))                                                               \
    F(GetCUBINSize, (void *program, size_t *size))                                                             \
    F(GetCUBIN, (void *program, char *cubin))

typedef struct nvrtc {
#define F(name, parameters) int(*name) parameters;
    FUNCTIONS(F)
#undef F
    const char *(*GetErrorString)(int status);
} nvrtc;

/* The paths that arrayd-compile finds and its jailed process uses. */
typedef struct place {
    char library[AD_TOOLKIT_PATH], include[2][AD_TOOLKIT_PATH];
    const char *folders[3]; /* folders of CUDA's headers; NULL at the end */
} place;

/* ---- loading ---- */

static int load_nvrtc(const place *p, nvrtc *n, ad_fault *fault) {
    char path[AD_TOOLKIT_PATH + 64];
    int major = 0, minor = 0;
    void *library = dlopen(p->library, RTLD_NOW | RTLD_LOCAL);
    bool all = library != NULL;
#define F(name, parameters) all = all && (*(void **)&n->name = dlsym(library, "nvrtc" #name));
    FUNCTIONS(F)
#undef F
    all = all && (*(void **)&n->GetErrorString = dlsym(library, "nvrtcGetErrorString"));
    if (!all || n->Version(&major, &minor)) return ad__fault(fault, AD_E_UNSUPPORTED, "libnvrtc cannot be loaded");
    /* NVRTC would load its builtins later, when the jail lets it load nothing. */
    snprintf(path, sizeof path, "%.*s/libnvrtc-builtins.so.%d.%d", (int)(strrchr(p->library, '/') - p->library),
             p->library, major, minor);
    if (!dlopen(path, RTLD_NOW | RTLD_LOCAL))
        return ad__fault(fault, AD_E_UNSUPPORTED, "libnvrtc-builtins cannot be loaded");
    return 0;
}

/* Find NVRTC's library and CUDA's headers. AD_E_UNSUPPORTED. */
static int find_nvrtc(const ad_compile_request *r, place *p, ad_fault *fault) {
    char program[AD_TOOLKIT_PATH];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n < 0 ? 0 : n] = 0;
    if (*r->nvrtc) snprintf(p->library, sizeof p->library, "%s", r->nvrtc);
    else if (!ad__toolkit_nvrtc(program, p->library))
        return ad__fault(fault, AD_E_UNSUPPORTED,
                         "there is no libnvrtc here: kernels need it (it is part of CUDA's toolkit, "
                         "and of the Python package nvidia-cuda-nvrtc)");
    for (int i = 0; i < 2 && ad__toolkit_include(p->library, i, p->include[i]); i++) p->folders[i] = p->include[i];
    return 0;
}

/* ---- compiling, in the jail ---- */

static char *copy_text(ad_text text) {
    char *s = malloc(text.size + 1);
    if (!s) _exit(3);
    memcpy(s, text.size ? text.data : "", text.size);
    s[text.size] = 0;
    return s;
}

/* Tell whether CUDA's folders have this header, too. NVRTC then reads CUDA's, which has more and which CUDA's other
 * headers need; but it cannot read Thrust's. */
static bool is_cuda_header(const place *p, const char *name) {
    char path[AD_TOOLKIT_PATH + 256];
    if (!strncmp(name, "thrust/", 7)) return false;
    for (int i = 0; i < 2 && p->folders[i]; i++) {
        snprintf(path, sizeof path, "%s/%s", p->folders[i], name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) continue;
        close(fd);
        return true;
    }
    return false;
}

static void *create_program(const nvrtc *n, const ad_compile_job *job, const place *p) {
    const char *texts[AD_COMPILE_HEADERS + 1], *names[AD_COMPILE_HEADERS + 1];
    int count = 0;
    void *program;
    for (size_t i = 0; i < job->nheaders; i++) {
        if (is_cuda_header(p, job->headers[i].name)) continue;
        texts[count] = job->headers[i].text.data;
        names[count++] = job->headers[i].name;
    }
    if (job->prelude.size) {
        texts[count] = copy_text(job->prelude);
        names[count++] = PRELUDE_NAME;
    }
    if (n->CreateProgram(&program, copy_text(job->source), SOURCE_NAME, count, texts, names)) _exit(3);
    for (size_t i = 0; i < job->nnames; i++)
        if (n->AddNameExpression(program, job->names[i])) _exit(3);
    return program;
}

static int compile_program(const nvrtc *n, void *program, const ad_compile_job *job, const place *p) {
    static char arch[96], include[2][AD_TOOLKIT_PATH + 16];
    const char *words[WORDS];
    ad_compile_words own;
    ad_fault fault;
    int count = 0;
    if (ad__compile_words(job, &own, &fault)) _exit(3);
    snprintf(arch, sizeof arch, "--gpu-architecture=%s", job->arch);
    words[count++] = arch;
    if (job->prelude.size) words[count++] = "--pre-include=" PRELUDE_NAME;
    for (size_t i = 0; i < job->nown_options; i++) words[count++] = job->own_options[i];
    for (size_t i = 0; i < own.n; i++) words[count++] = own.words[i];
    for (int i = 0; i < 2 && p->folders[i]; i++) {
        snprintf(include[i], sizeof include[i], "--include-path=%s", p->folders[i]);
        words[count++] = include[i];
    }
    int status = n->CompileProgram(program, count, words);
    ad__compile_words_free(&own);
    return status;
}

static char *read_program_log(const nvrtc *n, void *program, const place *p) {
    size_t size = 0;
    char *log, folder[AD_TOOLKIT_PATH + 1];
    if (n->GetProgramLogSize(program, &size) || !(log = calloc(1, size + 1)) || n->GetProgramLog(program, log))
        _exit(3);
    for (int i = 1; i >= 0; i--) {
        if (!p->folders[i]) continue;
        snprintf(folder, sizeof folder, "%s/", p->folders[i]);
        ad__log_hide(log, folder);
    }
    ad__log_cut(log, AD_COMPILE_LOG);
    return log;
}

/* Put the cubin and the lowered names into the result. */
static void take_cubin(const nvrtc *n, void *program, const ad_compile_job *job, ad_compile_result *out) {
    static const char *lowered[AD_COMPILE_NAMES];
    static char text[96];
    size_t size = 0;
    for (size_t i = 0; i < job->nnames; i++)
        if (n->GetLoweredName(program, job->names[i], &lowered[i])) _exit(3);
    if (n->GetCUBINSize(program, &size) || !size) _exit(3);
    if (size > AD_COMPILE_BINARY) {
        snprintf(text, sizeof text, "the binary has %zu bytes: expected at most %u", size, AD_COMPILE_BINARY);
        out->kind = AD_COMPILE_WRONG;
        out->binary.log = text;
        return;
    }
    char *binary = malloc(size);
    if (!binary || n->GetCUBIN(program, binary)) _exit(3);
    out->kind = AD_COMPILE_MADE;
    out->binary.data = (const uint8_t *)binary;
    out->binary.size = size;
    out->binary.lowered = lowered;
    out->binary.nlowered = job->nnames;
}

/* In the jailed process: close the jail, compile, and write the result. */
static void compile_jailed(const ad_compile_request *r, void *user) {
    static nvrtc n;
    static ad_fault fault;
    static ad_compile_result result;
    const place *p = user;
    ad_jail jail = {.read = p->folders, .memory = r->memory, .seconds = r->seconds, .optional = r->open || r->job.own};
    if (load_nvrtc(p, &n, &fault) || ad__jail_close(&jail, &fault)) {
        ad__compile_refuse(&fault, &result);
        ad__compile_leave(&result, 3);
    }
    ad__paths_close(p->folders, NULL);
    void *program = create_program(&n, &r->job, p);
    int status = compile_program(&n, program, &r->job, p);
    result.binary.log = read_program_log(&n, program, p);
    if (!status) take_cubin(&n, program, &r->job, &result);
    else if (status == WRONG) result.kind = AD_COMPILE_WRONG;
    else if (*result.binary.log) result.kind = AD_COMPILE_STOPPED;
    else result = (ad_compile_result){.kind = AD_COMPILE_STOPPED, .binary.log = n.GetErrorString(status)};
    ad__compile_leave(&result, 3);
}

/* ---- outside ---- */

void ad__compile_cuda(const ad_compile_request *r, ad_compile_result *out) {
    static place p;
    static ad_watched w;
    static ad_fault fault, unused;
    static void *lists;
    ad_watch watch = {.inside = compile_jailed, .request = r, .user = &p, .most = AD_COMPILE_FRAME, .strict = true};
    if (find_nvrtc(r, &p, &fault) || ad__compile_watch(&watch, &w, &fault)) {
        ad__compile_refuse(&fault, out);
        return;
    }
    /* The result comes from the jail, so it is checked as strictly as what goes in. */
    bool ended = !w.late && !w.flood && !w.status;
    if (!ended || ad__compile_get_result(w.said.data, w.said.size, out, &lists, &unused))
        ad__compile_stopped(r, &w, out);
}
