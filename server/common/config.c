/* Options: reading them from the file, the environment and the command line, and printing them. See config.h. */
#include "server/common/config.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/nearest.h"
#include "protocol/owner.h"
#include "server/common/os.h"

typedef struct option_type option_type;

typedef struct option_row {
    const char *name, *value, *doc;
    const option_type *type;
    size_t offset;
} option_row;

/* Functions that read and write values of one type. */
struct option_type {
    const char *word, *expected;
    bool (*parse)(const char *text, void *out);
    void (*print)(const void *value, char *out, size_t size);
};

/* Options whose text must be one of a few words. */
static const struct {
    const char *name, *allowed;
} choices[] = {
    {"backend", "auto cpu cuda"},           {"domains", "shared principal"}, {"kernels", "unix all none"},
    {"log-level", "error warn info debug"}, {"ring", "no auto all"},         {"system-calls", "auto needed logged all"},
};

static bool parse_count(const char *text, void *out) {
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || errno) return false;
    *(uint64_t *)out = n;
    return true;
}

static bool parse_size(const char *text, void *out) {
    static const char suffixes[] = "KMGT";
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)*text) || errno) return false;
    const char *suffix = *end ? strchr(suffixes, toupper((unsigned char)*end)) : NULL;
    unsigned shift = suffix ? 10 * (unsigned)(suffix - suffixes + 1) : 0;
    if (*end && (!suffix || end[1])) return false;
    if (n > UINT64_MAX >> shift) return false;
    *(uint64_t *)out = (uint64_t)n << shift;
    return true;
}

static bool parse_auto_size(const char *text, void *out) {
    if (strcasecmp(text, "auto")) return parse_size(text, out);
    *(uint64_t *)out = UINT64_MAX;
    return true;
}

static bool parse_bool(const char *text, void *out) {
    static const char *const words[] = {"no", "yes", "false", "true", "0", "1", "off", "on"};
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcasecmp(text, words[i])) continue;
        *(bool *)out = i & 1;
        return true;
    }
    return false;
}

static bool parse_seconds(const char *text, void *out) {
    char *end;
    double x = strtod(text, &end);
    if ((!isdigit((unsigned char)*text) && *text != '.') || *end || !isfinite(x) || x > 1e9) return false;
    *(double *)out = x;
    return true;
}

static bool parse_string(const char *text, void *out) {
    char *copy = ad__os.malloc(strlen(text) + 1);
    if (!copy) return false;
    free(*(char **)out);
    *(char **)out = strcpy(copy, text);
    return true;
}

bool ad__config_parse_count(const char *text, uint64_t *out) { return parse_count(text, out); }
bool ad__config_parse_size(const char *text, uint64_t *out) { return parse_size(text, out); }
bool ad__config_parse_bool(const char *text, bool *out) { return parse_bool(text, out); }
bool ad__config_parse_seconds(const char *text, double *out) { return parse_seconds(text, out); }

static void format_count(const void *v, char *out, size_t size) {
    snprintf(out, size, "%llu", (unsigned long long)*(const uint64_t *)v);
}
static void format_auto_size(const void *v, char *out, size_t size) {
    if (*(const uint64_t *)v == UINT64_MAX) snprintf(out, size, "auto");
    else format_count(v, out, size);
}
static void format_bool(const void *v, char *out, size_t size) { snprintf(out, size, *(const bool *)v ? "yes" : "no"); }
static void format_seconds(const void *v, char *out, size_t size) { snprintf(out, size, "%.9g", *(const double *)v); }
static void format_string(const void *v, char *out, size_t size) {
    snprintf(out, size, "%s", *(char *const *)v ? *(char *const *)v : "");
}

static const option_type type_STRING = {"TEXT", "text", parse_string, format_string};
static const option_type type_SIZE = {"SIZE", "a size in bytes such as 512M or 2G", parse_size, format_count};
static const option_type type_AUTO_SIZE = {"SIZE|auto", "auto, or a size in bytes such as 512M or 2G", parse_auto_size,
                                           format_auto_size};
static const option_type type_COUNT = {"N", "a whole number below 2^64", parse_count, format_count};
static const option_type type_BOOL = {"yes|no", "yes or no", parse_bool, format_bool};
static const option_type type_SECONDS = {"SECONDS", "seconds, as 30 or 0.5", parse_seconds, format_seconds};

static const option_row rows[] = {
#define AD_OPTION(name, field, type, value, doc) {name, value, doc, &type_##type, offsetof(ad_config, field)},
#include "protocol/option.def"
#undef AD_OPTION
};
#define NROW (sizeof rows / sizeof *rows)

static const option_row *find_option(const char *name, size_t size) {
    for (size_t i = 0; i < NROW; i++)
        if (strlen(rows[i].name) == size && !memcmp(rows[i].name, name, size)) return &rows[i];
    return NULL;
}

/* Report that there is no such option, and which one was probably meant. */
static int fail_unknown(const char *name, const char *source, ad_fault *fault) {
    char hint[AD_NEAREST_HINT];
    ad_nearest n;
    ad__nearest_begin(&n, name, strlen(name));
    for (size_t i = 0; i < NROW; i++) ad__nearest_try(&n, rows[i].name);
    ad__nearest_try(&n, "config");
    return ad__fault(fault, AD_E_VALUE, "there is no option \"%.60s\" (in %s)%s", name, source,
                     n.best ? ad__nearest_hint(&n, hint) : "; arrayd --help lists them");
}

static bool is_choice(const char *name, const char *value, const char **allowed) {
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        if (strcmp(choices[i].name, name)) continue;
        *allowed = choices[i].allowed;
        size_t n = strlen(value);
        for (const char *p = *allowed; p; p = strchr(p, ' ') ? strchr(p, ' ') + 1 : NULL)
            if (n && !strncmp(p, value, n) && (p[n] == ' ' || !p[n])) return true;
        return false;
    }
    return true;
}

static int set_option(ad_config *c, const option_row *row, const char *value, const char *source, ad_fault *fault) {
    const char *allowed = NULL;
    if (!is_choice(row->name, value, &allowed))
        return ad__fault(fault, AD_E_VALUE, "option %s: \"%.60s\" from %s: expected one of: %s", row->name, value,
                         source, allowed);
    if (row->type->parse(value, (char *)c + row->offset)) return 0;
    if (row->type == &type_STRING) return ad__fault(fault, AD_E_MEMORY, "option %s: no memory", row->name);
    return ad__fault(fault, AD_E_VALUE, "option %s: \"%.60s\" from %s: expected %s", row->name, value, source,
                     row->type->expected);
}

int ad__config_set(ad_config *c, const char *name, const char *value, const char *source, ad_fault *fault) {
    const option_row *row = find_option(name, strlen(name));
    if (!row) return fail_unknown(name, source, fault);
    return set_option(c, row, value, source, fault);
}

/* ---- the sources ---- */

static int load_defaults(ad_config *c, ad_fault *fault) {
    for (size_t i = 0; i < NROW; i++) {
        int status = set_option(c, &rows[i], rows[i].value, "the defaults", fault);
        if (status) return status;
    }
    return 0;
}

typedef struct file_reading {
    ad_config *c;
    const char *path;
    int status;
    ad_fault fault;
} file_reading;

/* Apply one line of a file; ini_parse calls this for each. */
static int take_file_pair(void *user, const char *section, const char *name, const char *value) {
    file_reading *f = user;
    if (f->status) return 1; /* only the first error is reported */
    if (*section) f->status = ad__fault(&f->fault, AD_E_VALUE, "section [%.60s]: the file has no sections", section);
    else f->status = ad__config_set(f->c, name, value ? value : "", "the file", &f->fault);
    return f->status == 0;
}

static int load_file(ad_config *c, const char *path, ad_fault *fault) {
    file_reading f = {.c = c, .path = path};
    int line = ini_parse(path, take_file_pair, &f);
    if (line == -1) return ad__fault(fault, AD_E_SYSTEM, "option config: cannot open %s: %s", path, strerror(errno));
    if (line == -2) return ad__fault(fault, AD_E_MEMORY, "%s: no memory", path);
    if (f.status) return ad__fault(fault, f.status, "%s:%d: %s", ad__path_end(path), line, f.fault.text);
    if (line) return ad__fault(fault, AD_E_VALUE, "%s:%d: expected name = value", ad__path_end(path), line);
    return 0;
}

static int load_environment(ad_config *c, ad_fault *fault) {
    const char *trace = getenv("AD_TRACE");
    if (trace && *trace && strcmp(trace, "0")) c->trace = true;
    for (size_t i = 0; i < NROW; i++) {
        char name[64], source[100];
        int n = snprintf(name, sizeof name, "ARRAYD_%s", rows[i].name);
        for (int k = 7; k < n; k++) name[k] = name[k] == '-' ? '_' : (char)toupper((unsigned char)name[k]);
        const char *value = getenv(name);
        if (!value) continue;
        snprintf(source, sizeof source, "the environment (%s)", name);
        int status = set_option(c, &rows[i], value, source, fault);
        if (status) return status;
    }
    return 0;
}

/* An argument "--name=value" or "--name value". */
typedef struct argument {
    char name[64];
    const char *value;
} argument;

static int next_argument(char **argv, int *i, argument *a, ad_fault *fault) {
    const char *text = argv[(*i)++];
    if (strncmp(text, "--", 2) || !text[2])
        return ad__fault(fault, AD_E_VALUE, "\"%.60s\" on the command line: expected --name=value (see --help)", text);
    const char *equals = strchr(text, '=');
    size_t n = equals ? (size_t)(equals - text) - 2 : strlen(text) - 2;
    if (n >= sizeof a->name) return ad__fault(fault, AD_E_VALUE, "there is no option \"%.60s\"", text);
    memcpy(a->name, text + 2, n);
    a->name[n] = 0;
    a->value = equals ? equals + 1 : NULL;
    return 0;
}

static bool parse_action(const argument *a, ad_config_action *action) {
    if (a->value) return false;
    if (!strcmp(a->name, "help")) *action = AD_CONFIG_HELP;
    else if (!strcmp(a->name, "version")) *action = AD_CONFIG_VERSION;
    else return false;
    return true;
}

/* Apply an argument that is a private one of this program. */
static int take_private_argument(const ad_config_private *private, const argument *a, bool *taken, ad_fault *fault) {
    *taken = false;
    for (; private && private->name; private ++) {
        uint64_t n;
        if (strcmp(private->name, a->name)) continue;
        *taken = true;
        if (!parse_count(a->value, &n) || n > INT32_MAX)
            return ad__fault(fault, AD_E_VALUE, "option %s: expected a descriptor", a->name);
        *private->value = (int)n;
    }
    return 0;
}

/* Apply one argument. The first pass (files) applies --config alone, the second one everything else. */
static int take_argument(ad_config *c, const ad_config_private *private, const argument *a, bool files,
                         ad_fault *fault) {
    bool taken;
    if (!strcmp(a->name, "config")) return files ? load_file(c, a->value, fault) : 0;
    if (files) return 0;
    int status = take_private_argument(private, a, &taken, fault);
    if (status || taken) return status;
    return ad__config_set(c, a->name, a->value, "the command line", fault);
}

/* Tell whether the argument is a switch without a value, which means yes: --self-signed. */
static bool is_bare_switch(const argument *a, const char *next) {
    const option_row *row = a->value ? NULL : find_option(a->name, strlen(a->name));
    return row && row->type == &type_BOOL && (!next || !strncmp(next, "--", 2));
}

static int load_arguments(ad_config *c, int argc, char **argv, const ad_config_private *private, bool files,
                          ad_config_action *action, ad_fault *fault) {
    for (int i = 1; i < argc;) {
        argument a;
        int status = next_argument(argv, &i, &a, fault);
        if (status) return status;
        if (parse_action(&a, action)) continue;
        if (is_bare_switch(&a, i < argc ? argv[i] : NULL)) a.value = "yes";
        if (!a.value && i < argc) a.value = argv[i++];
        if (!a.value && !find_option(a.name, strlen(a.name)) && strcmp(a.name, "config"))
            return fail_unknown(a.name, "the command line", fault);
        if (!a.value) return ad__fault(fault, AD_E_VALUE, "option %s on the command line: a value is missing", a.name);
        if ((status = take_argument(c, private, &a, files, fault))) return status;
    }
    return 0;
}

int ad__config_load(ad_config *c, int argc, char **argv, const ad_config_private *private, ad_config_action *action,
                    ad_fault *fault) {
    int status;
    memset(c, 0, sizeof *c);
    *action = AD_CONFIG_RUN;
    if ((status = load_defaults(c, fault))) return status;
    if ((status = load_arguments(c, argc, argv, private, true, action, fault))) return status;
    if ((status = load_environment(c, fault))) return status;
    return load_arguments(c, argc, argv, private, false, action, fault);
}

void ad__config_free(ad_config *c) {
    for (size_t i = 0; i < NROW; i++)
        if (rows[i].type == &type_STRING) free(*(char **)((char *)c + rows[i].offset));
    memset(c, 0, sizeof *c);
}

/* ---- the table as text ---- */

char *ad__config_help(const char *program) {
    size_t size = 0;
    char *text = NULL;
    FILE *f = open_memstream(&text, &size);
    if (!f) return NULL;
    fprintf(f, "usage: %s [--name=value ...]\n\n", program);
    for (size_t i = 0; i < NROW; i++) {
        const option_row *r = &rows[i];
        fprintf(f, "  --%s=%s\n      %s", r->name, r->type->word, r->doc);
        if (*r->value) fprintf(f, " [%s]", r->value);
        fputc('\n', f);
    }
    fprintf(f,
            "  --config=FILE\n      file of name = value lines with these names\n"
            "  --make-token=NAME\n      print a token for NAME, and its line for the file of option tokens, and leave\n"
            "  --help\n      print this and leave\n  --version\n      print the version and leave\n\n"
            "Each is also taken from the environment, as ARRAYD_ and its name in capitals with _ for -.\n"
            "The command line wins over the environment, the environment over the file.\n");
    return fclose(f) ? NULL : text;
}

char **ad__config_arguments(const ad_config *c) {
    size_t size = (NROW + 1) * sizeof(char *);
    for (size_t i = 0; i < NROW; i++) {
        const char *s = rows[i].type == &type_STRING ? *(char *const *)((const char *)c + rows[i].offset) : NULL;
        size += strlen(rows[i].name) + 40 + (s ? strlen(s) : 0);
    }
    char **list = ad__os.calloc(1, size);
    if (!list) return NULL;
    char *p = (char *)(list + NROW + 1), *end = (char *)list + size;
    for (size_t i = 0; i < NROW; i++) {
        list[i] = p;
        p += snprintf(p, (size_t)(end - p), "--%s=", rows[i].name);
        rows[i].type->print((const char *)c + rows[i].offset, p, (size_t)(end - p));
        p += strlen(p) + 1;
    }
    return list;
}
