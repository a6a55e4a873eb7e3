/* Variables of a compiled module: its symbols tell whether it has any, and "maybe" is the answer where they are not
 * understood. */
#include <criterion/criterion.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"
#include "server/worker/modules/variables.h"

enum { NAMES, STRINGS, SYMBOLS, OWN, SECTIONS }; /* of every file here; OWN: the one that symbols lie in */

typedef struct file {
    uint8_t data[4096];
    size_t size;
    Elf64_Shdr section[SECTIONS + 1];
} file;

static uint64_t append_bytes(file *f, const void *data, size_t size) {
    const uint64_t at = f->size;
    memcpy(f->data + at, data, size);
    f->size += size;
    return at;
}

static void fill_section(file *f, int section, uint32_t type, const void *data, size_t size) {
    f->section[section].sh_type = type;
    f->section[section].sh_offset = append_bytes(f, data, size);
    f->section[section].sh_size = size;
}

/* One with a symbol of this name and type in a section of that name and flags. */
static file file_of(const char *section, uint64_t flags, const char *symbol, unsigned char type, uint64_t size) {
    file f = {.size = sizeof(Elf64_Ehdr)};
    char names[256] = "", strings[256] = "";
    Elf64_Sym symbols[2] = {
        {0}, {.st_name = 1, .st_info = ELF64_ST_INFO(STB_LOCAL, type), .st_shndx = OWN + 1, .st_size = size}};
    snprintf(names + 1, sizeof names - 1, "%s", section);
    snprintf(strings + 1, sizeof strings - 1, "%s", symbol);
    fill_section(&f, NAMES + 1, SHT_STRTAB, names, sizeof names);
    fill_section(&f, STRINGS + 1, SHT_STRTAB, strings, sizeof strings);
    fill_section(&f, SYMBOLS + 1, SHT_SYMTAB, symbols, sizeof symbols);
    f.section[SYMBOLS + 1].sh_entsize = sizeof *symbols;
    f.section[SYMBOLS + 1].sh_link = STRINGS + 1;
    f.section[OWN + 1] = (Elf64_Shdr){.sh_type = SHT_NOBITS, .sh_name = 1, .sh_flags = flags};
    Elf64_Ehdr head = {.e_ident = ELFMAG "\2\1\1", .e_shentsize = sizeof *f.section, .e_shstrndx = NAMES + 1};
    head.e_shnum = SECTIONS + 1;
    head.e_shoff = append_bytes(&f, f.section, sizeof f.section);
    memcpy(f.data, &head, sizeof head);
    return f;
}

static ad_variables find_variables(ad_compile_target target, const file *f) {
    uint8_t *exact = malloc(f->size); /* nothing may be read beyond it */
    memcpy(exact, f->data, f->size);
    const ad_variables variables = ad__module_variables(target, exact, f->size);
    free(exact);
    return variables;
}

static ad_variables in_host(const char *section, uint64_t flags, const char *symbol) {
    const file f = file_of(section, flags, symbol, STT_OBJECT, 4);
    return find_variables(AD_COMPILE_HOST, &f);
}

static ad_variables in_cubin(const char *section, const char *symbol) {
    const file f = file_of(section, SHF_WRITE | SHF_ALLOC, symbol, STT_OBJECT, 4);
    return find_variables(AD_COMPILE_CUDA, &f);
}

Test(module_variables, of_the_host) {
    const uint64_t flags = SHF_WRITE | SHF_ALLOC;
    cr_assert_eq(in_host(".data", flags, "count"), AD_VARIABLES_ANY);
    cr_assert_eq(in_host(".bss", flags, "_ZZ1kE1n"), AD_VARIABLES_ANY);
    cr_assert_eq(in_host(".mine", flags, "count"), AD_VARIABLES_ANY);
    cr_assert_eq(in_host(".rodata", SHF_ALLOC, "_ZL5table"), AD_VARIABLES_NONE);
    cr_assert_eq(in_host(".data.rel.ro", flags, "_ZTV1V"), AD_VARIABLES_NONE);
    cr_assert_eq(in_host(".tbss", flags | SHF_TLS, "_ZZ1kE2sh"), AD_VARIABLES_NONE);
    cr_assert_eq(in_host(".bss", flags, "ad_entries"), AD_VARIABLES_NONE);
    cr_assert_eq(in_host(".bss", flags, "_ZL14ad_run_entry_k"), AD_VARIABLES_NONE);
    cr_assert_eq(in_host(".bss", flags, "ad_run_entry_k"), AD_VARIABLES_NONE);
    cr_assert_eq(in_host(".bss", flags, "_ZL13ad_run_name_0"), AD_VARIABLES_NONE);
    cr_assert_eq(in_host(".bss", flags, "completed.0"), AD_VARIABLES_NONE);
    cr_assert_eq(in_host(".bss", flags, "my_ad_run_entry_k"), AD_VARIABLES_ANY);
    cr_assert_eq(in_host(".bss", flags, "completed"), AD_VARIABLES_ANY);
}

Test(module_variables, of_a_cubin) {
    cr_assert_eq(in_cubin(".nv.global", "count"), AD_VARIABLES_ANY);
    cr_assert_eq(in_cubin(".nv.global.init", "_Z5templIiE"), AD_VARIABLES_ANY);
    cr_assert_eq(in_cubin(".nv.constant3", "table"), AD_VARIABLES_CONSTANT);
    cr_assert_eq(in_cubin(".nv.constant0.k", "x"), AD_VARIABLES_NONE);
    cr_assert_eq(in_cubin(".nv.shared.k", "part"), AD_VARIABLES_NONE);
    cr_assert_eq(in_cubin(".nv.global.init", "$str$1"), AD_VARIABLES_NONE);
    cr_assert_eq(in_cubin(".nv.global.init", "__unnamed_2"), AD_VARIABLES_NONE);
    cr_assert_eq(in_cubin(".nv.global.init", "__cudart_i2opi_f"), AD_VARIABLES_NONE);
}

Test(module_variables, of_cudas_headers) {
    static const char *const theirs[] = {
        "_ZN4cuda3std3__417integral_constantIbLb0EE5valueE",
        "_ZN18cooperative_groups4__v110grid_group9_group_idE",
        "_ZN35_INTERNAL_00000000_9_kernel_cu_rest18cooperative_groups4__v17details13grid_group_idE",
        "_ZN15__cccl_internal30__is_non_narrowing_convertibleIffE",
        "precalc_xorwow_matrix",
        "mrg32k3aM1SubSeq",
        "__cr_lgamma_table",
    };
    static const char *const users[] = {
        "_ZN4mine5countE",
        "_ZN5cudas5countE",
        "_ZN35_INTERNAL_00000000_9_kernel_cu_rest5countE",
        "_ZN99_INTERNAL_00000000_9_kernel_cu4cuda1xE",
        "_ZN99999999999999999999999_INTERNAL_4cuda1xE",
        "_ZN4",
        "_ZN",
        "_ZL4cuda",
    };
    for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++)
        cr_assert_eq(in_cubin(".nv.global.init", theirs[i]), AD_VARIABLES_NONE, "%s", theirs[i]);
    for (size_t i = 0; i < sizeof users / sizeof *users; i++)
        cr_assert_eq(in_cubin(".nv.global", users[i]), AD_VARIABLES_ANY, "%s", users[i]);
}

Test(module_variables, other_symbols_are_none) {
    const uint64_t flags = SHF_WRITE | SHF_ALLOC;
    file f = file_of(".data", flags, "f", STT_FUNC, 4);
    cr_assert_eq(find_variables(AD_COMPILE_HOST, &f), AD_VARIABLES_NONE);
    f = file_of(".data", flags, "_GLOBAL_OFFSET_TABLE_", STT_OBJECT, 0);
    cr_assert_eq(find_variables(AD_COMPILE_HOST, &f), AD_VARIABLES_NONE);
    f = file_of(".bss", flags, "shared", STT_COMMON, 4);
    cr_assert_eq(find_variables(AD_COMPILE_HOST, &f), AD_VARIABLES_ANY);
}

/* A file that is cut off, or changed anywhere, is read within its bounds; and a part of one says nothing. */
Test(module_variables, whatever_is_not_to_be_understood) {
    uint64_t seed = 4;
    const file good = file_of(".rodata", SHF_ALLOC, "table", STT_OBJECT, 4);
    cr_assert_eq(find_variables(AD_COMPILE_HOST, &good), AD_VARIABLES_NONE);
    for (size_t size = 0; size < good.size; size++) {
        file f = good;
        f.size = size;
        cr_assert_eq(find_variables(AD_COMPILE_HOST, &f), AD_VARIABLES_ANY, "%zu bytes", size);
    }
    for (int i = 0; i < 20000; i++) {
        file f = good;
        for (int n = 0; n < 3; n++) f.data[random64(&seed) % f.size] = (uint8_t)random64(&seed);
        find_variables(AD_COMPILE_HOST, &f);
        find_variables(AD_COMPILE_CUDA, &f);
    }
    file f = good;
    f.data[EI_CLASS] = ELFCLASS32;
    cr_assert_eq(find_variables(AD_COMPILE_HOST, &f), AD_VARIABLES_ANY);
}
