/* The scan: what it accepts msgpack-c takes apart without an error, within bounds; what msgpack-c cannot take apart, it
 * refuses. */
#include "protocol/frame.h"

#include <msgpack.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t walk(const msgpack_object *o, int depth) {
    const bool array = o->type == MSGPACK_OBJECT_ARRAY;
    size_t n = 1;

    if (!array && o->type != MSGPACK_OBJECT_MAP) return 1;
    if (depth == AD_SCAN_DEPTH) abort();
    for (uint32_t i = 0; i < (array ? o->via.array.size : o->via.map.size); i++) {
        if (array) {
            n += walk(&o->via.array.ptr[i], depth + 1);
        } else {
            n += walk(&o->via.map.ptr[i].key, depth + 1);
            n += walk(&o->via.map.ptr[i].val, depth + 1);
        }
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t at = 0, elements = 0;
    ad_fault fault = {0};

    if (ad__scan(data, size, &fault) != AD_OK) {
        if (fault.code != AD_E_PROTOCOL || fault.text[0] == '\0') abort();
        return 0;
    }
    while (at < size) {
        msgpack_object object;
        msgpack_zone zone;
        size_t from = at;
        if (!msgpack_zone_init(&zone, MSGPACK_ZONE_CHUNK_SIZE)) return 0;
        int status = msgpack_unpack((const char *)data, size, &at, &zone, &object);
        if ((status != MSGPACK_UNPACK_SUCCESS && status != MSGPACK_UNPACK_EXTRA_BYTES) || at <= from ||
            object.type != MSGPACK_OBJECT_ARRAY)
            abort();
        elements += walk(&object, 0);
        msgpack_zone_destroy(&zone);
    }
    if (elements > AD_SCAN_ELEMENTS) abort();
    return 0;
}
