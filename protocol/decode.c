#include "protocol/check.h"

#include <msgpack.h>
#include <stdlib.h>

struct ad_reader {
    msgpack_zone zone; /* of one message; its memory is used again for the next */
    const char *data;
    size_t size, at;
};

int ad__reader_new(ad_reader **out) {
    ad_reader *r = calloc(1, sizeof *r);

    if (r == NULL) return AD_E_MEMORY;
    if (!msgpack_zone_init(&r->zone, MSGPACK_ZONE_CHUNK_SIZE)) {
        free(r);
        return AD_E_MEMORY;
    }
    *out = r;
    return AD_OK;
}

void ad__reader_free(ad_reader *r) {
    if (r == NULL) return;
    msgpack_zone_destroy(&r->zone);
    free(r);
}

int ad__reader_begin(ad_reader *r, const uint8_t *data, size_t size, ad_fault *fault) {
    int status = ad__scan(data, size, fault);

    r->data = (const char *)data;
    r->size = status == AD_OK ? size : 0;
    r->at = 0;
    return status;
}

static int unpack(ad_reader *r, msgpack_object *object, ad_fault *fault) {
    msgpack_zone_clear(&r->zone);
    switch (msgpack_unpack(r->data, r->size, &r->at, &r->zone, object)) {
    case MSGPACK_UNPACK_SUCCESS:
    case MSGPACK_UNPACK_EXTRA_BYTES: return AD_OK;
    case MSGPACK_UNPACK_NOMEM_ERROR: return ad__fault(fault, AD_E_MEMORY, "out of memory");
    default: return ad__fault(fault, AD_E_PROTOCOL, "control block: not msgpack");
    }
}

int ad__reader_next(ad_reader *r, ad_arena *arena, uint32_t allowed, ad_message *m, ad_fault *fault) {
    const size_t from = r->at;
    msgpack_object object;
    int status;

    if (r->at >= r->size) return 0;
    status = unpack(r, &object, fault);
    if (status == AD_OK) status = ad__check_message(&object, arena, allowed, m, fault);
    if (status != AD_OK) {
        r->at = r->size; /* nothing after it can be trusted */
        return status;
    }
    m->size = r->at - from;
    return 1;
}
