/* Finding the compilers: see toolkit.h. */
#include "server/compile/toolkit.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const libraries[] = {"libnvrtc.so.13", "libnvrtc.so.12"};

/* Find NVRTC's library in a folder, and resolve its links. */
static bool find_in_folder(const char *folder, size_t size, char out[AD_TOOLKIT_PATH]) {
    char path[AD_TOOLKIT_PATH], real[PATH_MAX];
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        int n = snprintf(path, sizeof path, "%.*s/%s", (int)size, folder, libraries[i]);
        if (n >= (int)sizeof path || access(path, R_OK) || !realpath(path, real)) continue;
        snprintf(out, AD_TOOLKIT_PATH, "%.*s", AD_TOOLKIT_PATH - 1, real);
        return true;
    }
    return false;
}

/* Find NVRTC's library in the Python packages beside this program's. */
static bool find_beside_program(const char *program, char out[AD_TOOLKIT_PATH]) {
    static const char *const packages[] = {"../../nvidia/cu13/lib", "../../nvidia/cuda_nvrtc/lib"};
    const char *slash = program ? strrchr(program, '/') : NULL;
    char folder[AD_TOOLKIT_PATH];
    for (size_t i = 0; slash && i < sizeof packages / sizeof *packages; i++) {
        int n = snprintf(folder, sizeof folder, "%.*s/%s", (int)(slash - program), program, packages[i]);
        if (n < (int)sizeof folder && find_in_folder(folder, (size_t)n, out)) return true;
    }
    return false;
}

/* Find NVRTC's library in the absolute folders of a list with colons. */
static bool find_in_list(const char *list, char out[AD_TOOLKIT_PATH]) {
    for (const char *p = list; p && *p;) {
        size_t n = strcspn(p, ":");
        if (n && *p == '/' && find_in_folder(p, n, out)) return true;
        p += n + (p[n] == ':');
    }
    return false;
}

static bool find_in_cuda_home(char out[AD_TOOLKIT_PATH]) {
    static const char *const names[] = {"CUDA_HOME", "CUDA_PATH"};
    char folder[AD_TOOLKIT_PATH];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *home = getenv(names[i]);
        if (!home || *home != '/') continue;
        int n = snprintf(folder, sizeof folder, "%s/lib64", home);
        if (n < (int)sizeof folder && find_in_folder(folder, (size_t)n, out)) return true;
    }
    return false;
}

bool ad__toolkit_nvrtc(const char *program, char out[AD_TOOLKIT_PATH]) {
    static const char places[] = "/usr/local/cuda/lib64:/usr/local/cuda-13/lib64:/opt/cuda/lib64:"
                                 "/usr/lib/x86_64-linux-gnu:/usr/lib/aarch64-linux-gnu:/usr/lib64:/usr/lib";
    return find_beside_program(program, out) || find_in_list(getenv("LD_LIBRARY_PATH"), out) ||
           find_in_cuda_home(out) || find_in_list(places, out);
}

/* Look in the places where the toolkit and the Python packages have headers, relative to the library's folder. */
bool ad__toolkit_include(const char *nvrtc, int index, char out[AD_TOOLKIT_PATH]) {
    static const char *const places[] = {"../include", "../../include", "../../../include",
                                         "../../cuda_runtime/include"};
    const char *slash = strrchr(nvrtc, '/');
    char path[AD_TOOLKIT_PATH], real[PATH_MAX];
    for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
        int n = snprintf(path, sizeof path, "%.*s/%s/cuda_fp16.h", (int)(slash - nvrtc), nvrtc, places[i]);
        if (n >= (int)sizeof path || !realpath(path, real)) continue;
        *strrchr(real, '/') = 0;
        if (index == 1 && strlen(real) + 6 < sizeof real) strcat(real, "/cccl");
        if (index > 1 || access(real, R_OK)) return false;
        snprintf(out, AD_TOOLKIT_PATH, "%.*s", AD_TOOLKIT_PATH - 1, real);
        return true;
    }
    return false;
}

bool ad__toolkit_host(char out[AD_TOOLKIT_PATH]) {
    static const char *const places[] = {"/usr/bin/c++", "/usr/bin/g++", "/usr/local/bin/c++", "/usr/bin/clang++"};
    char real[PATH_MAX];
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (access(places[i], X_OK) || !realpath(places[i], real)) continue;
        snprintf(out, AD_TOOLKIT_PATH, "%.*s", AD_TOOLKIT_PATH - 1, real);
        return true;
    }
    return false;
}

/* ---- identity ---- */

/* Find the build id among the ELF notes at p, as hexadecimal text. */
static bool find_build_id_note(const uint8_t *p, size_t size, char *out, size_t room) {
    while (size >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr note;
        memcpy(&note, p, sizeof note);
        size_t name = ((size_t)note.n_namesz + 3) & ~(size_t)3, text = ((size_t)note.n_descsz + 3) & ~(size_t)3;
        if (sizeof note + name + text > size) return false;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && !memcmp(p + sizeof note, "GNU", 4)) {
            for (size_t i = 0; i < note.n_descsz && 2 * i + 2 < room; i++)
                snprintf(out + 2 * i, 3, "%02x", p[sizeof note + name + i]);
            return note.n_descsz > 0;
        }
        p += sizeof note + name + text;
        size -= sizeof note + name + text;
    }
    return false;
}

static bool read_build_id(int fd, char *out, size_t room) {
    Elf64_Ehdr head;
    Elf64_Phdr part;
    uint8_t notes[4096];
    if (pread(fd, &head, sizeof head, 0) != sizeof head || memcmp(head.e_ident, ELFMAG, SELFMAG)) return false;
    if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof part) return false;
    for (unsigned i = 0; i < head.e_phnum; i++) {
        if (pread(fd, &part, sizeof part, (off_t)(head.e_phoff + i * sizeof part)) != sizeof part) return false;
        if (part.p_type != PT_NOTE) continue;
        ssize_t n = pread(fd, notes, part.p_filesz < sizeof notes ? part.p_filesz : sizeof notes, (off_t)part.p_offset);
        if (n > 0 && find_build_id_note(notes, (size_t)n, out, room)) return true;
    }
    return false;
}

void ad__toolkit_identity(const char *path, char *out, size_t size) {
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *out = 0;
    if (fd < 0) return;
    if (!read_build_id(fd, out, size) && !fstat(fd, &st))
        snprintf(out, size, "%lld-%lld", (long long)st.st_size, (long long)st.st_mtime);
    close(fd);
}
