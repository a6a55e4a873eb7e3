#include "server/worker/modules/variables.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#ifndef STT_GNU_UNIQUE
#define STT_GNU_UNIQUE 10
#endif

typedef struct elf_file {
    const uint8_t *data;
    size_t size;
    Elf64_Ehdr head;
    uint64_t names; /* index of the section with names of sections */
} elf_file;

/* Read bytes at an offset. False: they are not all there. The file comes from a user's source, so nothing in it is
 * trusted. */
static bool read_bytes(const elf_file *f, uint64_t at, void *out, size_t size) {
    if (at > f->size || size > f->size - at) return false;
    memcpy(out, f->data + at, size);
    return true;
}

static bool read_section(const elf_file *f, uint64_t index, Elf64_Shdr *out) {
    return index < f->head.e_shnum && f->head.e_shentsize == sizeof *out &&
           read_bytes(f, f->head.e_shoff + index * sizeof *out, out, sizeof *out);
}

/* Get a string of a section. NULL: it is not all there. */
static const char *get_text(const elf_file *f, uint64_t table, uint64_t at) {
    Elf64_Shdr s;
    if (!read_section(f, table, &s) || s.sh_offset > f->size || s.sh_size > f->size - s.sh_offset || at >= s.sh_size)
        return NULL;
    const char *begin = (const char *)f->data + s.sh_offset + at;
    return memchr(begin, 0, s.sh_size - at) ? begin : NULL;
}

static bool has_prefix(const char *name, const char *with) { return !strncmp(name, with, strlen(with)); }

/* True for names of entries that the preamble defines, also as C++ mangles them. */
static bool is_entry(const char *name) {
    if (has_prefix(name, "_ZL")) name += 3 + strspn(name + 3, "0123456789");
    return has_prefix(name, "ad_run_entry_") || has_prefix(name, "ad_run_name_");
}

static ad_variables classify_host_symbol(const Elf64_Shdr *s, const char *where, const char *name) {
    if (!(s->sh_flags & SHF_WRITE) || s->sh_flags & SHF_TLS) return AD_VARIABLES_NONE; /* TLS is shared memory */
    if (has_prefix(where, ".data.rel.ro") || !strcmp(where, ".got") || !strcmp(where, ".dynamic"))
        return AD_VARIABLES_NONE;
    if (!strcmp(name, "ad_entries") || is_entry(name) || has_prefix(name, "completed.")) return AD_VARIABLES_NONE;
    return AD_VARIABLES_ANY;
}

static bool has_any_prefix(const char *name, const char *const *with) {
    while (*with && !has_prefix(name, *with)) with++;
    return *with;
}

/* Find the outermost named namespace in a mangled name of C++, behind a file's unnamed one. */
static const char *find_outermost(const char *name) {
    if (!has_prefix(name, "_ZN")) return "";
    name += 3;
    const char *word = name + strspn(name, "0123456789");
    const size_t length = strtoul(name, NULL, 10);
    return has_prefix(word, "_INTERNAL_") && strlen(word) > length ? word + length : name;
}

/* Classify a symbol of a cubin. Constants may be in sections of variables: texts of printf and assert, tables of
 * mathematics and cuRAND, and all that CUDA's headers define. */
static ad_variables classify_cuda_symbol(const char *where, const char *name) {
    static const char *const tables[] = {"$str",      "__unnamed_", "__cudart_", "__cr_lgamma_table", "precalc_xorwow_",
                                         "mrg32k3aM", NULL};
    static const char *const spaces[] = {"4cuda",   "18cooperative_groups", "3cub", "6thrust",
                                         "6nvcuda", "15__cccl_internal",    NULL};
    if (has_prefix(where, ".nv.constant3")) return AD_VARIABLES_CONSTANT;
    if (!has_prefix(where, ".nv.global")) return AD_VARIABLES_NONE;
    return has_any_prefix(name, tables) || has_any_prefix(find_outermost(name), spaces) ? AD_VARIABLES_NONE
                                                                                        : AD_VARIABLES_ANY;
}

static ad_variables classify_symbol(const elf_file *f, ad_compile_target target, const Elf64_Shdr *symbols,
                                    const Elf64_Sym *y) {
    const unsigned type = ELF64_ST_TYPE(y->st_info);
    Elf64_Shdr s;
    if (type != STT_OBJECT && type != STT_COMMON && type != STT_GNU_UNIQUE) return AD_VARIABLES_NONE;
    if (!y->st_size || y->st_shndx == SHN_UNDEF) return AD_VARIABLES_NONE;
    if (!read_section(f, y->st_shndx, &s)) return AD_VARIABLES_ANY;
    const char *where = get_text(f, f->names, s.sh_name), *name = get_text(f, symbols->sh_link, y->st_name);
    if (!where || !name) return AD_VARIABLES_ANY;
    return target == AD_COMPILE_CUDA ? classify_cuda_symbol(where, name) : classify_host_symbol(&s, where, name);
}

static ad_variables classify_symbols(const elf_file *f, ad_compile_target target, const Elf64_Shdr *symbols) {
    ad_variables all = AD_VARIABLES_NONE;
    Elf64_Sym y;
    if (symbols->sh_entsize != sizeof y) return AD_VARIABLES_ANY;
    for (uint64_t at = 0; at + sizeof y <= symbols->sh_size && all != AD_VARIABLES_ANY; at += sizeof y) {
        const ad_variables one = read_bytes(f, symbols->sh_offset + at, &y, sizeof y)
                                     ? classify_symbol(f, target, symbols, &y)
                                     : AD_VARIABLES_ANY;
        if (one > all) all = one;
    }
    return all;
}

ad_variables ad__module_variables(ad_compile_target target, const uint8_t *elf, size_t size) {
    elf_file f = {.data = elf, .size = size};
    Elf64_Shdr s;
    if (!read_bytes(&f, 0, &f.head, sizeof f.head) || memcmp(f.head.e_ident, ELFMAG, SELFMAG) ||
        f.head.e_ident[EI_CLASS] != ELFCLASS64)
        return AD_VARIABLES_ANY;
    f.names = f.head.e_shstrndx;
    for (uint64_t i = 0; read_section(&f, i, &s); i++)
        if (s.sh_type == SHT_SYMTAB) return classify_symbols(&f, target, &s);
    return AD_VARIABLES_ANY; /* without symbols there may be variables */
}
