/* Modules are shared objects that the host's compiler makes of CUDA C++, loaded from memory. */
#include "kernels/cpu/backend/module.h"

#include <algorithm>
#include <atomic>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <new>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/cpu/backend/module_source.h"
#include "kernels/run.h"

struct ad_device_module {
    int fd; /* open as long as the library is: the dynamic linker knows libraries by their paths, and this makes one */
    void *library;
    const adrun::entry *entries;
    ad_kernel *kernels;
};

namespace {

constexpr int64_t SHARED_DEFAULT = 48 << 10;

/* Options that make the host's compiler behave as a GPU's: no errno, wrapping integers, pointers to whatever. Where GCC
 * joins neighbouring statements it fuses multiplications and additions in spite of -ffp-contract=off. -fno-plt and the
 * linker's options keep a kernel that is called like a function of the C library to itself. */
const char *const own_options[] = {"-fno-tree-slp-vectorize",
                                   "-fno-math-errno",
                                   "-fno-trapping-math",
                                   "-ffp-contract=off",
                                   "-fwrapv",
                                   "-fno-strict-aliasing",
                                   "-fno-exceptions",
                                   "-fno-rtti",
                                   "-fno-stack-protector",
                                   "-fno-semantic-interposition",
                                   "-fno-gnu-unique",
                                   "-Wunused-variable",
                                   "-Wno-unknown-pragmas",
                                   "-Wl,-Bsymbolic",
                                   "-Wl,--no-as-needed",
                                   "-lm"};

const char *level() {
#ifdef __x86_64__
    if (__builtin_cpu_supports("x86-64-v4")) return "x86-64-v4";
    if (__builtin_cpu_supports("x86-64-v3")) return "x86-64-v3";
    return __builtin_cpu_supports("x86-64-v2") ? "x86-64-v2" : "x86-64";
#else
    return "native";
#endif
}

/* Keep a text in arena memory. NULL: there is none. */
const char *keep(const std::string &text, ad_arena *arena) {
    char *copy = static_cast<char *>(ad__arena_alloc(arena, text.size() + 1));
    if (copy) memcpy(copy, text.c_str(), text.size() + 1);
    return copy;
}

/* The macro that an option is about, without what says so; "" when there is none. *more: options that it takes. */
std::string macro_of(const ad_compile_job *job, size_t i, const char *letter, const char *word, size_t *more) {
    const std::string option = job->options[i];
    *more = 1;
    if (option == letter && i + 1 < job->noptions) {
        *more = 2;
        return job->options[i + 1];
    }
    if (option.compare(0, strlen(word), word) == 0) return option.substr(strlen(word));
    return option.compare(0, 2, letter) == 0 ? option.substr(2) : "";
}

/* The user's macros become lines of the source, so that the prelude knows nothing of them; the other options stay. */
std::string take_macros(const ad_compile_job *job, std::vector<const char *> *rest) {
    std::string lines;
    for (size_t i = 0, more; i < job->noptions; i += more) {
        std::string name = macro_of(job, i, "-D", "--define-macro=", &more);
        if (!name.empty() && name.find('\n') == std::string::npos) {
            const size_t equals = name.find('=');
            if (equals == std::string::npos) name += " 1";
            else name[equals] = ' ';
            lines += "#define " + name + "\n";
            continue;
        }
        name = macro_of(job, i, "-U", "--undefine-macro=", &more);
        if (!name.empty() && name.find('\n') == std::string::npos) {
            lines += "#undef " + name + "\n";
            continue;
        }
        more = 1;
        rest->push_back(job->options[i]);
    }
    return lines.empty() ? lines : lines + "#line 1\n";
}

/* Choose what stands before a source. NVRTC has std::move and std::forward without a header; sources that do not use
 * them are spared the time that the host's takes. NULL: there is no memory. */
const char *choose_prelude(const std::string &source, ad_arena *arena) {
    const ad_text own = ad_run_prelude();
    const bool uses = source.find("std::move") != std::string::npos || source.find("std::forward") != std::string::npos;
    return keep(std::string(own.data, own.size) + (uses ? "\n#include <utility>\n" : ""), arena);
}

/* Put source and options into the arena. */
int replace_source(ad_compile_job *job, ad_arena *arena, ad_fault *fault) {
    const std::vector<std::string> names(job->names, job->names + job->nnames);
    std::vector<const char *> options;
    const std::string macros = take_macros(job, &options);
    const std::string given(job->source.data, job->source.size);
    const std::string source = macros + ad_cpu_module_source(given, names);
    const char *prelude = choose_prelude(given, arena);
    const char *text = keep(source, arena);
    auto list = static_cast<const char **>(ad__arena_alloc(arena, (options.size() + 1) * sizeof *options.data()));
    if (!text || !list || !prelude) return ad__fault(fault, AD_E_MEMORY, "out of memory");
    std::copy(options.begin(), options.end(), list);
    job->source = {text, source.size()};
    job->prelude = {prelude, strlen(prelude)};
    job->options = list;
    job->noptions = options.size();
    return 0;
}

/* A path to fd that no module had before: dlopen knows a library by its path, and a number of a descriptor comes back.
 */
void own_path(char *path, size_t size, int fd) {
    static std::atomic<uint32_t> count{0};
    std::string text = "/proc/self/fd";
    for (uint32_t n = ++count; n; n >>= 1) text += n & 1 ? "/." : "/";
    snprintf(path, size, "%s/%d", text.c_str(), fd);
}

int load(int fd, const ad_binary *binary, ad_device_module *module, ad_fault *fault) {
    char path[128];
    for (size_t at = 0; at < binary->size;) {
        ssize_t n = write(fd, binary->data + at, binary->size - at);
        if (n < 0 && errno != EINTR) return ad__fault(fault, AD_E_SYSTEM, "cannot keep a module: %s", strerror(errno));
        at += n > 0 ? size_t(n) : 0;
    }
    own_path(path, sizeof path, fd);
    module->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module->library) {
        const char *why = dlerror(), *colon = strchr(why, ':'); /* "path: why" */
        return ad__fault(fault, AD_E_COMPILE, "the module cannot be loaded%s", colon ? colon : "");
    }
    auto *first = static_cast<adrun::entry *const *>(dlsym(module->library, "ad_entries"));
    module->entries = first ? *first : nullptr;
    return 0;
}

const adrun::entry *find(const ad_device_module *module, const char *name) {
    const adrun::entry *e = module->entries;
    while (e && strcmp(e->name, name) != 0) e = e->next;
    return e;
}

} // namespace

int ad_cpu_module_job(ad_device *, ad_compile_job *job, ad_arena *arena, ad_fault *fault) {
    try {
        int status = replace_source(job, arena, fault);
        if (status) return status;
    } catch (const std::bad_alloc &) {
        return ad__fault(fault, AD_E_MEMORY, "out of memory");
    }
    job->target = AD_COMPILE_HOST;
    job->arch = level();
    job->own_options = own_options;
    job->nown_options = sizeof own_options / sizeof *own_options;
    job->headers = ad_run_headers(true, &job->nheaders);
    job->names = nullptr; /* they are in the source now, and known by themselves */
    job->nnames = 0;
    return 0;
}

int ad_cpu_module_open(ad_device *, const ad_binary *binary, ad_device_module **out, ad_fault *fault) {
    ad_device_module *module = new (std::nothrow) ad_device_module();
    if (!module) return ad__fault(fault, AD_E_MEMORY, "out of memory");
    module->fd = memfd_create("module", MFD_CLOEXEC);
    int status = module->fd < 0 ? ad__fault(fault, AD_E_SYSTEM, "cannot keep a module: %s", strerror(errno)) : 0;
    if (!status) status = load(module->fd, binary, module, fault);
    if (status) {
        if (module->fd >= 0) close(module->fd);
        delete module;
        return status;
    }
    ad_cpu_traps_set();
    *out = module;
    return 0;
}

void ad_cpu_module_close(ad_device_module *module) {
    while (module->kernels) {
        ad_kernel *kernel = module->kernels;
        module->kernels = kernel->next;
        delete kernel;
    }
    dlclose(module->library);
    close(module->fd);
    delete module;
}

int ad_cpu_module_kernel(ad_device_module *module, const char *name, ad_kernel **out, ad_fault *fault) {
    const adrun::entry *e = find(module, name);
    if (!e || !e->run)
        return ad__fault(fault, AD_E_VALUE,
                         "there is no kernel %s: name expressions and extern \"C\" functions are known", name);
    ad_kernel *kernel = new (std::nothrow) ad_kernel{e, SHARED_DEFAULT, -1, module->kernels};
    if (!kernel) return ad__fault(fault, AD_E_MEMORY, "out of memory");
    *out = module->kernels = kernel;
    return 0;
}

int ad_cpu_module_global(ad_device_module *module, const char *name, void **address, uint64_t *size, ad_fault *fault) {
    const adrun::entry *e = find(module, name);
    if (e && !e->run) {
        *address = e->address;
        *size = e->size;
        return 0;
    }
    Dl_info info;
    const ElfW(Sym) *symbol = nullptr;
    void *found = dlsym(module->library, name);
    if (found &&
        dladdr1(found, &info, reinterpret_cast<void **>(const_cast<ElfW(Sym) **>(&symbol)), RTLD_DL_SYMENT) != 0 &&
        symbol && ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT && info.dli_saddr == found) {
        link_map *map = nullptr;
        if (dlinfo(module->library, RTLD_DI_LINKMAP, &map) == 0 &&
            info.dli_fbase == reinterpret_cast<void *>(map->l_addr)) {
            *address = found;
            *size = symbol->st_size;
            return 0;
        }
    }
    return ad__fault(fault, AD_E_VALUE, "there is no variable %s in the module", name);
}

int ad_cpu_kernel_info(ad_kernel *kernel, ad_kernel_info *out, ad_fault *) {
    *out = ad_kernel_info();
    out->max_threads_per_block = AD_BLOCK_THREADS;
    out->max_dynamic_shared_bytes = kernel->max_dynamic_shared;
    out->preferred_shared_carveout = kernel->carveout;
    return 0;
}

int ad_cpu_kernel_set(ad_kernel *kernel, int64_t max_dynamic_shared, int64_t carveout, ad_fault *fault) {
    if (max_dynamic_shared > AD_SHARED_MOST)
        return ad__fault(fault, AD_E_VALUE, "kernel %s: at most %d bytes of dynamic shared memory can be had, not %lld",
                         kernel->entry->name, AD_SHARED_MOST, (long long)max_dynamic_shared);
    if (carveout > 100)
        return ad__fault(fault, AD_E_VALUE, "kernel %s: a carveout is from 0 to 100 percent, not %lld",
                         kernel->entry->name, (long long)carveout);
    if (max_dynamic_shared >= 0) kernel->max_dynamic_shared = max_dynamic_shared;
    if (carveout >= 0) kernel->carveout = carveout;
    return 0;
}
