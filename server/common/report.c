/* Reading a worker's report: see report.h. */
#include "server/common/report.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/tables.h"
#include "server/common/os.h"

static int read_report_bytes(int fd, char *to, size_t size) {
    for (size_t at = 0; at < size;) {
        ssize_t n = pread(fd, to + at, size - at, (off_t)at);
        if (n <= 0) return AD_E_PROTOCOL;
        at += (size_t)n;
    }
    return 0;
}

#define ENDS(text) (memchr((text), 0, sizeof(text)) != NULL)

/* All texts end with a NUL, and types and dimensions of names are possible ones. */
static bool has_valid_texts(const ad_report *r) {
    const ad_report_head *h = r->head;
    bool ok = true;
    for (uint32_t i = 0; i < h->sessions; i++)
        ok = ok && ENDS(r->sessions[i].principal) && ENDS(r->sessions[i].client) && ENDS(r->sessions[i].doing);
    for (uint32_t i = 0; i < h->principals; i++) ok = ok && ENDS(r->principals[i].principal);
    for (uint32_t i = 0; i < h->devices; i++) ok = ok && ENDS(r->devices[i].name);
    for (uint32_t i = 0; i < h->names; i++)
        ok = ok && ENDS(r->names[i].name) && ENDS(r->names[i].principal) && r->names[i].ndim <= AD_MAX_NDIM &&
             r->names[i].dtype < AD_NDTYPE;
    return ok;
}

/* Find the sections in the report's bytes. False: the counts in the head do not fit these bytes. */
static bool find_sections(ad_report *r, uint64_t size) {
    const ad_report_head *h = r->head;
    if (h->magic != AD_REPORT_MAGIC || h->sessions > AD_REPORT_SESSIONS || h->names > AD_REPORT_NAMES ||
        h->principals > AD_REPORT_PRINCIPALS || h->devices > AD_REPORT_DEVICES)
        return false;
    const char *at = (const char *)(h + 1), *end = (const char *)h + size;
#define X(member, type)                                              \
    if ((size_t)(end - at) / sizeof(type) < h->member) return false; \
    r->member = (const type *)(const void *)at;                      \
    at += h->member * sizeof(type);
    AD_REPORT_SECTIONS(X)
#undef X
    return at == end;
}

int ad__report_read(int fd, uint64_t size, ad_report *out) {
    const uint64_t most = sizeof(ad_report_head) + AD_REPORT_SESSIONS * sizeof(ad_report_session) +
                          AD_REPORT_PRINCIPALS * sizeof(ad_report_principal) +
                          AD_REPORT_DEVICES * sizeof(ad_report_device) + AD_REPORT_NAMES * sizeof(ad_report_name);
    if (size < sizeof(ad_report_head) || size > most) return AD_E_PROTOCOL;
    char *data = ad__os.malloc(size);
    if (!data) return AD_E_MEMORY;
    ad_report r = {.head = (const ad_report_head *)(const void *)data};
    int status = read_report_bytes(fd, data, size);
    if (!status && (!find_sections(&r, size) || !has_valid_texts(&r))) status = AD_E_PROTOCOL;
    if (status) free(data);
    else *out = r;
    return status;
}

void ad__report_free(ad_report *r) {
    free((void *)(uintptr_t)r->head);
    *r = (ad_report){0};
}
