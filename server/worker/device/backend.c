/* Find and load a backend. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/common/log.h"
#include "server/worker/worker.h"

#define PATH 4096

static ad_fusing choose_fusing(const ad_backend *b, const char *setting) {
    if (!b->fuse || (setting && !strcmp(setting, "0"))) return AD_FUSE_NEVER;
    return b->asynchronous || (setting && !strcmp(setting, "1")) ? AD_FUSE_ALWAYS : AD_FUSE_WHERE_IT_PAYS;
}

/* Set how many devices there are. Those of the cpu backend are as many as somebody asks for. */
static int count_devices(ad_worker *w, const ad_backend *b, ad_fault *fault) {
    int status = b->devices(&w->device.count, fault);
    uint64_t asked = w->config.cpu_devices;
    if (!strcmp(b->name, "cpu")) w->device.count = (int)(asked < AD_DEVICES ? asked : AD_DEVICES);
    if (!status && w->device.count < 1)
        status = ad__fault(fault, AD_E_DEVICE, asked ? "there is no device" : "option cpu-devices: expected 1 or more");
    return status;
}

/* Get the table of a backend whose devices have parts; NULL: another one. */
static const ad_part_table *find_parts(void *library) {
    const ad_part_table *(*get)(void) = NULL;
    *(void **)&get = dlsym(library, "ad_part_table_get");
    return get ? get() : NULL;
}

/* Load a backend and read its number of devices. AD_E_DEVICE: it cannot be used. */
static int load_backend(const char *path, ad_worker *w, ad_fault *fault) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return ad__fault(fault, AD_E_DEVICE, "%s", dlerror());
    const ad_backend *(*get)(void) = NULL;
    *(void **)&get = dlsym(library, "ad_backend_get");
    const ad_backend *b = get ? get() : NULL;
    int status = 0;
    if (!b || b->version != AD_BACKEND_VERSION)
        status = ad__fault(fault, AD_E_DEVICE, "%s is not a backend of this version", path);
    else status = count_devices(w, b, fault);
    if (status) dlclose(library);
    else w->backend = b;
    if (!status) w->parts = find_parts(library);
    if (!status) w->fuses = choose_fusing(b, getenv("ARRAYD_FUSE"));
    return status;
}

/* Find the library of a backend. Only backend-path is searched when it is set; otherwise the program's folder, then the
 * installation's. The first file found counts: if it does not load, that is an error. */
static bool find_backend(const ad_worker *w, const char *program, const char *name, char out[PATH]) {
    const char *set = w->config.backend_path;
    if (*set) {
        snprintf(out, PATH, "%s/libarrayd-%s.so", set, name);
        return access(out, F_OK) == 0;
    }
    const char *slash = strrchr(program, '/');
    int n = slash ? (int)(slash - program) : 0;
    static const char *const places[] = {"", "/../lib/arrayd", "/../lib"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(out, PATH, "%.*s%s/libarrayd-%s.so", n, program, places[i], name);
        if (access(out, F_OK) == 0) return true;
    }
    return false;
}

/* Say which file is missing, and how it is got. */
static int fail_missing(const ad_worker *w, const char *name, ad_fault *fault) {
    if (*w->config.backend_path)
        return ad__fault(fault, AD_E_DEVICE, "backend %s: libarrayd-%s.so is not there, in %s (option backend-path)",
                         name, name, w->config.backend_path);
    return ad__fault(
        fault, AD_E_DEVICE, "backend %s: libarrayd-%s.so is not there%s", name, name,
        strcmp(name, "cuda") ? "" : "; pip install \"arrayd[cuda]\" brings it, and make builds it where nvcc is");
}

static int try_backend(ad_worker *w, const char *program, const char *name, ad_fault *fault) {
    char path[PATH];
    ad_fault why = {0};
    if (!find_backend(w, program, name, path)) return fail_missing(w, name, fault);
    int status = load_backend(path, w, &why);
    return status ? ad__fault(fault, status, "backend %s: %s", name, why.text) : 0;
}

/* Tell whether the driver's device files exist. Loading the cuda backend to find out would take long. */
static bool has_gpu(void) {
    static const char *const files[] = {"/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-ctrl-gpu"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (access(files[i], F_OK) == 0) return true;
    return false;
}

/* Try the cuda backend. An embedded server has no administrator: if its GPU does not open, it takes another backend. A
 * daemon reports the failure and is started again. */
static int try_gpu(ad_worker *w, const char *program, ad_fault *fault) {
    int status = try_backend(w, program, "cuda", fault);
    if (status || !w->embedded || ad__gpu_get(w, 0, fault)) return status;
    w->backend = NULL;
    w->parts = NULL;
    w->device.count = 0;
    w->device.gpu[0] = (ad_gpu){0};
    return fault->code;
}

int ad__backend_load(ad_worker *w, const char *program, ad_fault *fault) {
    const char *name = w->config.backend;
    bool automatic = !strcmp(name, "auto");
    ad_fault why = {0};
    int status = -1;
    if (automatic && has_gpu() && (status = try_gpu(w, program, &why))) ad__log(cuda_cannot_be_used, why.text);
    if (status) status = try_backend(w, program, automatic ? "cpu" : name, fault);
    if (status) return status;
    why.code = 0;
    return ad__gpu_get(w, 0, &why) ? 0 : ad__fault(fault, why.code, "%s", why.text);
}
