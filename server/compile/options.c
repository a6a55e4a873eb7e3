/* The compiler options that users may give: checking them, and translating them for each compiler. See options.h. */
#include "server/compile/options.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/compile/frame.h"

/* The kinds of values that follow an option's name. */
typedef enum value_type {
    NONE,   /* nothing */
    SWITCH, /* =true or =false */
    NUMBER, /* =N or N as the next word */
    LIST,   /* =N,N,... */
    CXX,    /* =c++11 and so on */
    MACRO,  /* NAME or NAME=TEXT, at once or as the next word */
    PTXAS,  /* =some of ptxas's own options, none of which names a file */
} value_type;

/* The options that are allowed. host: the host's compiler gets it, too. */
static const struct {
    const char *name;
    value_type value;
    bool host;
} allowed[] = {
    {"D", MACRO, true},
    {"U", MACRO, true},
    {"define-macro", MACRO, true},
    {"undefine-macro", MACRO, true},
    {"std", CXX, true},
    {"w", NONE, true},
    {"disable-warnings", NONE, false},
    {"use_fast_math", NONE, false},
    {"extra-device-vectorization", NONE, false},
    {"fmad", SWITCH, false},
    {"ftz", SWITCH, false},
    {"prec-div", SWITCH, false},
    {"prec-sqrt", SWITCH, false},
    {"maxrregcount", NUMBER, false},
    {"restrict", NONE, false},
    {"lineinfo", NONE, false},
    {"generate-line-info", NONE, false},
    {"default-device", NONE, false},
    {"device-as-default-execution-space", NONE, false},
    {"device-int128", NONE, false},
    {"device-float128", NONE, false},
    {"device-debug", NONE, false},
    {"G", NONE, false},
    {"ptxas-options", PTXAS, false},
    {"Xptxas", PTXAS, false},
    {"diag-suppress", LIST, false},
    {"diag-error", LIST, false},
    {"diag-warn", LIST, false},
    {"display-error-number", NONE, false},
    {"no-display-error-number", NONE, false},
};
#define NALLOWED (sizeof allowed / sizeof *allowed)

/* An option and its value. */
typedef struct option {
    size_t row;
    const char *value; /* "" : none */
    size_t words;      /* words of the command line: 2 where the value is a word of its own */
} option;

/* Tell whether a text is not empty and has no other characters than these. */
static bool has_only_characters(const char *text, const char *these) { return *text && text[strspn(text, these)] == 0; }

static bool is_macro(const char *text) {
    if (!isalpha((unsigned char)*text) && *text != '_') return false;
    const char *p = text;
    while (isalnum((unsigned char)*p) || *p == '_') p++;
    if (*p == '(') p = strchr(p, ')') ? strchr(p, ')') + 1 : p; /* -D'f(x)=x' */
    if (*p && *p != '=') return false;
    for (; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127) return false;
    return true;
}

/* Tell whether a list with commas has these options of ptxas only. */
static bool is_list_for_ptxas(const char *text) {
    static const char *const words[] = {"-v", "-O0", "-O1", "-O2", "-O3", "-dlcm=ca", "-dlcm=cg", "-warn-spills"};
    for (;;) {
        size_t n = strcspn(text, ","), i = 0;
        while (i < sizeof words / sizeof *words && (strlen(words[i]) != n || strncmp(words[i], text, n))) i++;
        if (i == sizeof words / sizeof *words) return false;
        if (!text[n]) return true;
        text += n + 1;
    }
}

static bool is_value_of_type(value_type type, const char *value) {
    static const char *const standards[] = {"c++11", "c++14", "c++17", "c++20"};
    switch (type) {
    case NONE: return !*value;
    case SWITCH: return !strcmp(value, "true") || !strcmp(value, "false");
    case NUMBER: return strlen(value) < 6 && has_only_characters(value, "0123456789");
    case LIST: return strlen(value) < 256 && has_only_characters(value, "0123456789,");
    case MACRO: return is_macro(value);
    case PTXAS: return is_list_for_ptxas(value);
    case CXX:
        for (size_t i = 0; i < sizeof standards / sizeof *standards; i++)
            if (!strcmp(value, standards[i])) return true;
        return false;
    }
    return false;
}

static const char *describe_type(value_type type) {
    static const char *const texts[] = {
        [NONE] = "no value",
        [SWITCH] = "true or false",
        [NUMBER] = "a number",
        [LIST] = "a list of numbers",
        [CXX] = "c++11, c++14, c++17 or c++20",
        [MACRO] = "NAME or NAME=TEXT",
        [PTXAS] = "a list of -v, -O0 to -O3, -dlcm=ca, -dlcm=cg and -warn-spills",
    };
    return texts[type];
}

/* Find the value in a word that is an option of this row: the text behind "=" or, for -D and -U, behind the letter.
 * NULL: the word is another option. */
static const char *find_value(const char *word, size_t row) {
    const char *name = word + (word[1] == '-' ? 2 : 1);
    size_t n = strlen(allowed[row].name);
    if (strncmp(name, allowed[row].name, n)) return NULL;
    if (n == 1 && allowed[row].value == MACRO) return word[1] == '-' ? NULL : name + 1;
    return name[n] == '=' ? name + n + 1 : name[n] ? NULL : name + n;
}

static bool find_option_row(const char *word, option *out) {
    if (word[0] != '-' || !word[1]) return false;
    for (size_t i = 0; i < NALLOWED; i++) {
        const char *value = find_value(word, i);
        if (!value) continue;
        *out = (option){i, value, 1};
        return true;
    }
    return false;
}

/* Read the option that begins with word number i. AD_E_DENIED, AD_E_VALUE. */
static int read_option(const ad_compile_job *job, size_t i, option *out, ad_fault *fault) {
    const char *word = job->options[i];
    if (!find_option_row(word, out))
        return ad__fault(fault, AD_E_DENIED, "option \"%.60s\" is not one of those that a kernel may be compiled with",
                         word);
    value_type type = allowed[out->row].value;
    if (!*out->value && type != NONE && word[strlen(word) - 1] != '=' && i + 1 < job->noptions) {
        out->value = job->options[i + 1];
        out->words = 2;
    }
    if (is_value_of_type(type, out->value)) return 0;
    return ad__fault(fault, AD_E_VALUE, "option \"%.60s\"%s%.60s: expected %s", word, out->words == 2 ? " " : "",
                     out->words == 2 ? out->value : "", describe_type(type));
}

/* ---- checking a job ---- */

static int check_words(const char *const *words, size_t n, size_t most, const char *what, ad_fault *fault) {
    if (n > most) return ad__fault(fault, AD_E_LIMIT, "%zu %ss: expected at most %zu", n, what, most);
    for (size_t i = 0; i < n; i++) {
        if (!words[i] || !*words[i]) return ad__fault(fault, AD_E_VALUE, "%s %zu is empty", what, i + 1);
        if (strlen(words[i]) > AD_COMPILE_WORD)
            return ad__fault(fault, AD_E_LIMIT, "%s \"%.40s...\": expected at most %d bytes", what, words[i],
                             AD_COMPILE_WORD);
    }
    return 0;
}

/* Tell whether this can be a header's name: for the host's compiler it becomes the name of a file. */
static bool is_header_name(const char *name) {
    if (!*name || *name == '/' || *name == '.' || strstr(name, "..") || strstr(name, "//") || strlen(name) > 200)
        return false;
    for (const char *p = name; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("_-+./", *p)) return false;
    return name[strlen(name) - 1] != '/';
}

static int check_headers(const ad_compile_job *job, ad_fault *fault) {
    size_t size = job->prelude.size;
    if (job->nheaders > AD_COMPILE_HEADERS) return ad__fault(fault, AD_E_LIMIT, "%zu headers", job->nheaders);
    for (size_t i = 0; i < job->nheaders; i++) {
        if (!is_header_name(job->headers[i].name))
            return ad__fault(fault, AD_E_VALUE, "header \"%.60s\": not a name for a header", job->headers[i].name);
        if (job->headers[i].text.size > AD_COMPILE_GIVEN - size) size = AD_COMPILE_GIVEN + 1;
        else size += job->headers[i].text.size;
        if (size > AD_COMPILE_GIVEN) return ad__fault(fault, AD_E_LIMIT, "the headers are too long");
    }
    return size > AD_COMPILE_GIVEN ? ad__fault(fault, AD_E_LIMIT, "the prelude is too long") : 0;
}

static bool is_arch(const ad_compile_job *job) {
    const char *arch = job->arch ? job->arch : "";
    if (job->target == AD_COMPILE_CUDA)
        return !strncmp(arch, "sm_", 3) && strlen(arch) < 12 && has_only_characters(arch + 3, "0123456789af");
    return !*arch || (strlen(arch) < 40 && has_only_characters(arch, "abcdefghijklmnopqrstuvwxyz0123456789-+."));
}

int ad__compile_check(const ad_compile_job *job, ad_fault *fault) {
    option o;
    int status;
    if (!is_arch(job))
        return ad__fault(fault, AD_E_VALUE, "architecture \"%.40s\": expected one like sm_90 or x86-64-v3", job->arch);
    if (job->source.size > AD_COMPILE_SOURCE)
        return ad__fault(fault, AD_E_LIMIT, "the source has %zu bytes: expected at most %u", job->source.size,
                         AD_COMPILE_SOURCE);
    if (memchr(job->source.data, 0, job->source.size)) return ad__fault(fault, AD_E_VALUE, "the source contains a NUL");
    if ((status = check_words(job->options, job->noptions, AD_COMPILE_OPTIONS, "option", fault))) return status;
    if ((status = check_words(job->own_options, job->nown_options, AD_COMPILE_OPTIONS, "option", fault))) return status;
    if ((status = check_words(job->names, job->nnames, AD_COMPILE_NAMES, "name", fault))) return status;
    for (size_t i = 0; i < job->noptions; i += o.words)
        if ((status = read_option(job, i, &o, fault))) return status;
    return check_headers(job, fault);
}

/* ---- translating ---- */

static bool is_standard_option(const option *o) { return allowed[o->row].value == CXX; }

/* Choose the name by which the job's compiler knows an option. */
static const char *choose_name(const ad_compile_job *job, const option *o) {
    static const char *const nvrtc[][2] = {{"Xptxas", "ptxas-options"},
                                           {"lineinfo", "generate-line-info"},
                                           {"default-device", "device-as-default-execution-space"},
                                           {"w", "disable-warnings"}};
    const char *name = allowed[o->row].name;
    for (size_t i = 0; job->target == AD_COMPILE_CUDA && i < sizeof nvrtc / sizeof *nvrtc; i++)
        if (!strcmp(name, nvrtc[i][0])) return nvrtc[i][1];
    return name;
}

static const char *choose_prefix(const ad_compile_job *job, const option *o) {
    const char *name = allowed[o->row].name;
    if (!strcmp(name, "define-macro")) return "-D";
    if (!strcmp(name, "undefine-macro")) return "-U";
    if (strlen(name) == 1) return job->target == AD_COMPILE_HOST || name[0] != 'w' ? "-" : "--";
    return "--";
}

/* Write an option as the job's compiler wants it, and return its size with the NUL. */
static size_t write_option(char *to, const ad_compile_job *job, const option *o) {
    const char *before = choose_prefix(job, o), *name = choose_name(job, o);
    bool joined = allowed[o->row].value == MACRO;
    if (before[1] == 'D' || before[1] == 'U') name = "";
    if (is_standard_option(o) && job->target == AD_COMPILE_HOST && o->value[3] == '1' && o->value[4] < '7')
        return (size_t)sprintf(to, "-std=c++17") + 1; /* the least that the server's own headers compile with */
    return (size_t)sprintf(to, "%s%s%s%s", before, name, *o->value && !joined ? "=" : "", o->value) + 1;
}

int ad__compile_words(const ad_compile_job *job, ad_compile_words *out, ad_fault *fault) {
    option o;
    size_t size = 1;
    int status;
    for (size_t i = 0; i < job->noptions; i++) size += strlen(job->options[i]) + 40;
    *out = (ad_compile_words){calloc(1, size), calloc(job->noptions + 1, sizeof *out->words), 0};
    if (!out->text || !out->words) return ad__fault(fault, AD_E_MEMORY, "out of memory");
    char *p = out->text;
    for (size_t i = 0; i < job->noptions; i += o.words) {
        if ((status = read_option(job, i, &o, fault))) return status;
        if (job->target == AD_COMPILE_HOST && !allowed[o.row].host) continue;
        out->words[out->n++] = p;
        p += write_option(p, job, &o);
    }
    return 0;
}

void ad__compile_words_free(ad_compile_words *words) {
    free(words->text);
    free(words->words);
    *words = (ad_compile_words){0};
}
