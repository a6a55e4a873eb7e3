/* The reader of control blocks: see message.h. */
#include "protocol/check.h"
#include "protocol/known.h"

#include <stdlib.h>

struct ad_reader {
    const uint8_t *at, *end; /* the rest of a scanned block */
    ad_known *known;         /* NULL: the reader remembers nothing */
};

int ad__reader_new(ad_reader **out) {
    ad_reader *r = calloc(1, sizeof *r);

    if (!r) return AD_E_MEMORY;
    *out = r;
    return 0;
}

void ad__reader_free(ad_reader *r) {
    if (r) ad__known_free(r->known);
    free(r);
}

int ad__reader_remember(ad_reader *r) { return r->known ? 0 : ad__known_new(&r->known); }

int ad__reader_begin(ad_reader *r, const uint8_t *data, size_t size, ad_fault *fault) {
    const int status = r->known ? ad__known_scan(r->known, data, size, fault) : ad__scan(data, size, fault);

    r->at = data;
    r->end = !status ? data + size : data;
    return status;
}

int ad__reader_next(ad_reader *r, ad_arena *arena, uint32_t allowed, ad_message *m, ad_fault *fault) {
    const uint8_t *from = r->at;
    int status;

    if (from >= r->end) return 0;
    if (r->known && ad__known_read(r->known, from, r->end, arena, m)) {
        r->at += m->size;
        return 1;
    }
    status = ad__check_message(&r->at, arena, allowed, m, fault);
    if (status) {
        r->at = r->end; /* bytes behind an error cannot be trusted */
        return status;
    }
    m->size = (size_t)(r->at - from);
    return 1;
}
