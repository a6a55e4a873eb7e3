/* Simulated processes: copies of shared objects that have a program each. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/sim/loop.h"
#include "tests/sim/sim.h"

sim_process *sim_processes;
static sim_process *gone;
static const char *folder;
static int numbers = 100;

void sim_set_build(const char *build) { folder = build; }

const char *sim_program_path(const char *program) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/bin/%s", folder, program);
    return path;
}

const char *sim_backend_folder(void) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/sim", folder);
    return path;
}

sim_process *sim_self(void) { return sim_current ? sim_current->process : NULL; }

/* ---- loading ---- */

/* Copy a file into a memory file, as the loader gives the same file the same globals. */
static int copy_file(const char *path) {
    struct stat st;
    const int from = open(path, O_RDONLY | O_CLOEXEC), to = memfd_create("program", MFD_CLOEXEC);
    if (from < 0 || fstat(from, &st)) return -1;
    for (off_t at = 0; at < st.st_size;) {
        const ssize_t n = copy_file_range(from, NULL, to, NULL, (size_t)(st.st_size - at), 0);
        if (n <= 0) break;
        at += n;
    }
    if (lseek(to, 0, SEEK_END) < st.st_size) {
        void *all = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, from, 0);
        if (pwrite(to, all, (size_t)st.st_size, 0) != st.st_size) abort();
        munmap(all, (size_t)st.st_size);
    }
    close(from);
    return to;
}

static void *load_copy(const char *path) {
    static int last = 200; /* the loader also takes the same name for the same library, so no number is used again */
    char name[64];
    const int copy = copy_file(path), fd = copy < 0 ? -1 : fcntl(copy, F_DUPFD_CLOEXEC, last + 1);
    if (copy >= 0) close(copy);
    if (fd >= 0) last = fd;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    void *library = fd < 0 ? NULL : dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "sim: cannot load %s: %s\n", path, fd < 0 ? strerror(errno) : dlerror());
        exit(2);
    }
    close(fd);
    return library;
}

/* Copies that were loaded before any seed ran. Each seed runs in a fork, so all seeds find them as they were. */
static struct prepared {
    char path[4096];
    void *library;
} prepared[24];
static size_t nprepared;

void sim_prepare_copies(const char *program, int count) {
    for (; count && nprepared < sizeof prepared / sizeof *prepared; count--) {
        struct prepared *c = &prepared[nprepared++];
        snprintf(c->path, sizeof c->path, "%s/sim/%s.so", folder, program);
        c->library = load_copy(c->path);
    }
}

void *sim_load_copy(const char *path) {
    for (size_t i = 0; i < nprepared; i++) {
        void *library = prepared[i].library;
        if (!library || strcmp(prepared[i].path, path)) continue;
        prepared[i].library = NULL;
        return library;
    }
    return load_copy(path);
}

/* Find what the program's thread-local variables begin as. */
static int find_locals(struct dl_phdr_info *info, size_t size, void *process) {
    sim_process *p = process;
    struct link_map *map;
    (void)size;
    if (dlinfo(p->library, RTLD_DI_LINKMAP, &map) || info->dlpi_addr != map->l_addr) return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        if (h->p_type != PT_TLS) continue;
        p->locals_image = (const void *)(info->dlpi_addr + h->p_vaddr);
        p->locals_image_size = h->p_filesz;
        p->locals_size = h->p_memsz;
    }
    return 1;
}

/* A task finds the program's thread-local variables by this call, in the place of the C library's. */
typedef struct tls_index {
    unsigned long module, offset;
} tls_index;
void *__wrap___tls_get_addr(tls_index *index);
void *__wrap___tls_get_addr(tls_index *index) { return (char *)sim_current->locals + index->offset; }

/* ---- beginning and end ---- */

static void *run_main(void *process) {
    sim_process *p = process;
    sim_exit_process(p->main(p->argc, p->argv));
}

static void keep_arguments(sim_process *p, int argc, char *const *argv) {
    p->argc = argc;
    p->argv = calloc((size_t)argc + 1, sizeof *p->argv);
    for (int i = 0; i < argc; i++) p->argv[i] = strdup(argv[i]);
}

/* Give a process a program and a heap. */
static void begin_program(sim_process *p, const char *program) {
    char path[4096];
    snprintf(path, sizeof path, "%s/sim/%s.so", folder, program);
    p->program = strdup(program);
    p->heap = sim_heap_open();
    p->library = sim_load_copy(path);
    *(void **)&p->main = dlsym(p->library, "main");
    p->locals_size = p->locals_image_size = 0;
    dl_iterate_phdr(find_locals, p);
}

sim_process *sim_start_process(const char *program, unsigned user, int argc, char **argv, int count, sim_file **files) {
    sim_process *p = calloc(1, sizeof *p), **at = &sim_processes;
    p->number = ++numbers;
    p->user = user;
    p->parent = sim_self();
    begin_program(p, program);
    keep_arguments(p, argc, argv);
    for (int i = 0; i < count; i++) p->file[i] = files[i] ? sim_file_keep(files[i]) : NULL;
    while (*at) at = &(*at)->next;
    *at = p;
    sim_note("starts", p->number, argc);
    sim_add_task(p, run_main, p);
    return p;
}

void sim_kill_process(sim_process *p, int signal) {
    if (p->dying || p->ended) return;
    sim_note("killed", p->number, signal);
    p->dying = true;
    p->signal = signal;
    if (!strcmp(p->program, "arrayd-worker")) sim_worker_deaths++;
    if (p == sim_self()) sim_leave_task();
}

void sim_exit_process(int status) {
    sim_process *p = sim_self();
    sim_note("exits", p->number, status);
    p->dying = true;
    p->status = status;
    sim_leave_task();
}

void sim_replace_process(const char *program, char *const argv[]) {
    sim_process *p = sim_self();
    int argc = 0;
    while (argv[argc]) argc++;
    sim_note("becomes another program", p->number, argc);
    keep_arguments(p, argc, argv);
    p->next_program = strdup(program);
    p->dying = true;
    sim_leave_task();
}

static void unmap_all(sim_process *p) {
    while (p->mappings) {
        sim_mapping *m = p->mappings;
        p->mappings = m->next;
        munmap(m->begin, (size_t)(m->end - m->begin));
        free(m);
    }
}

static void end_program(sim_process *p) {
    sim_free_tasks(p);
    for (int fd = 0; fd < SIM_DESCRIPTORS; fd++)
        if (p->file[fd] && (!p->next_program || p->close_on_exec[fd])) sim_file_close(p, fd);
    unmap_all(p);
    sim_loops_free(p);
    sim_heap_close(p->heap);
    if (p->library) dlclose(p->library);
}

/* Put the next program in the place of the one that has ended. Nobody tells it of the other's children. */
static void replace_program(sim_process *p) {
    const char *program = p->next_program;
    end_program(p);
    p->next_program = NULL;
    for (sim_process *child = sim_processes; child; child = child->next)
        if (child->parent == p) child->on_exit = NULL;
    p->dying = false;
    begin_program(p, program);
    sim_add_task(p, run_main, p);
}

static void take_apart(sim_process *p) {
    end_program(p);
    p->ended = true;
    for (sim_process *child = sim_processes; child; child = child->next)
        if (child->parent == p) {
            child->on_exit = NULL;
            sim_kill_process(child, 9);
        }
    if (p->on_exit && p->parent && !p->parent->ended) p->on_exit(p->uv, p->status, p->signal);
}

void sim_reap_processes(void) {
    for (sim_process **at = &sim_processes; *at;) {
        sim_process *p = *at;
        if (p->next_program) replace_program(p);
        if (!p->dying) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        p->next = gone;
        gone = p;
        take_apart(p);
        at = &sim_processes;
    }
}

sim_process *sim_find_process(int number) {
    for (sim_process *p = sim_processes; p; p = p->next)
        if (p->number == number) return p;
    return NULL;
}
