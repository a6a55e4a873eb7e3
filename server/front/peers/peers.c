/* Reading the file of peers: see peers.h. */
#include "server/front/peers/peers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "protocol/owner.h"
#include "server/common/os.h"

#define MOST_LINE 1024
#define BLANKS " \t\r\n"

typedef struct peer {
    char name[AD_PRINCIPAL_SIZE], url[AD_PEER_URL];
} peer;

struct ad_peers {
    peer *list;
    size_t count, capacity;
};

/* The text of a line is not shown, as it may be a token. */
static int report_bad_line(const char *path, int line, const char *what, ad_fault *fault) {
    return ad__fault(fault, AD_E_VALUE, "option peers: %.100s:%d: %s", ad__path_end(path), line, what);
}

static const peer *find_peer(const ad_peers *p, const char *name) {
    for (size_t i = 0; i < p->count; i++)
        if (!strcmp(p->list[i].name, name)) return &p->list[i];
    return NULL;
}

/* Read a line into a peer. NULL, or what was expected. */
static const char *parse_line(const ad_peers *p, char *line, peer *out) {
    char *rest = line, *name = strtok_r(NULL, BLANKS, &rest), *url = strtok_r(NULL, BLANKS, &rest);
    if (!ad__principals_is_name(name)) return "expected a name of at most 56 letters, digits and . _ @ -, then a url";
    if (find_peer(p, name)) return "this name has a line already";
    if (!url || (strncmp(url, "tls:", 4) && strncmp(url, "tcp:", 4) && strncmp(url, "unix:", 5)))
        return "expected a url after the name, as arrayctl invite prints it there: tls://token@host:port#sha256:...";
    if (strlen(url) >= AD_PEER_URL) return "the url is longer than 639 letters";
    if (strtok_r(NULL, BLANKS, &rest)) return "expected a name and a url, and nothing more";
    snprintf(out->name, sizeof out->name, "%s", name);
    snprintf(out->url, sizeof out->url, "%s", url);
    return NULL;
}

static int add_peer(ad_peers *p, const peer *added, ad_fault *fault) {
    peer *grown = ad__os_grow(p->list, p->count, &p->capacity, sizeof *grown);
    if (!grown) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    p->list = grown;
    p->list[p->count++] = *added;
    return 0;
}

static int read_lines(ad_peers *p, FILE *f, const char *path, ad_fault *fault) {
    char line[MOST_LINE];
    int status = 0;
    for (int number = 1; !status && fgets(line, sizeof line, f); number++) {
        peer added;
        if (!strchr(line, '\n') && !feof(f)) {
            status = report_bad_line(path, number, "the line is too long", fault);
            continue;
        }
        if (line[strspn(line, BLANKS)] == '#') continue;
        char *comment = strstr(line, " #"); /* a url has one, too */
        if (comment) *comment = 0;
        if (!line[strspn(line, BLANKS)]) continue;
        const char *why = parse_line(p, line, &added);
        status = why ? report_bad_line(path, number, why, fault) : add_peer(p, &added, fault);
        explicit_bzero(&added, sizeof added);
    }
    explicit_bzero(line, sizeof line);
    if (status || !ferror(f)) return status;
    return ad__fault(fault, AD_E_SYSTEM, "option peers: %.150s: read error", path);
}

static int check_file(const char *path, FILE *f, ad_fault *fault) {
    struct stat st;
    if (fstat(fileno(f), &st) || !S_ISREG(st.st_mode))
        return ad__fault(fault, AD_E_VALUE, "option peers: %.150s is not a file", path);
    return ad__owner_check_secret(&st, "option peers:", path, fault);
}

static int read_file(ad_peers *p, const char *path, ad_fault *fault) {
    FILE *f = fopen(path, "re");
    if (!f) return ad__fault(fault, AD_E_SYSTEM, "option peers: cannot open %.150s: %s", path, strerror(errno));
    int status = check_file(path, f, fault);
    if (!status) status = read_lines(p, f, path, fault);
    fclose(f);
    return status;
}

int ad__peers_load(const char *server_name, const char *path, ad_peers **out, ad_fault *fault) {
    if (*server_name && !ad__principals_is_name(server_name))
        return ad__fault(fault, AD_E_VALUE,
                         "option server-name: expected at most 56 letters, digits and . _ @ -, not \"%.80s\"",
                         server_name);
    ad_peers *p = ad__os.calloc(1, sizeof *p);
    if (!p) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    int status = *path ? read_file(p, path, fault) : 0;
    if (status) ad__peers_free(p);
    else *out = p;
    return status;
}

void ad__peers_free(ad_peers *p) {
    if (!p) return;
    if (p->list) explicit_bzero(p->list, p->count * sizeof *p->list);
    free(p->list);
    free(p);
}

const char *ad__peers_url(const ad_peers *p, const char *name) {
    const peer *found = find_peer(p, name);
    return found ? found->url : NULL;
}

void ad__peers_names(const ad_peers *p, char *out, size_t size) {
    size_t used = 0;
    *out = 0;
    for (size_t i = 0; i < p->count; i++) {
        const char *name = p->list[i].name;
        if (used + strlen(name) + 2 > size) return;
        used += (size_t)snprintf(out + used, size - used, "%s%s", used ? "," : "", name);
    }
}
