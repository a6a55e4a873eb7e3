/* The scan: what it accepts msgpack-c takes apart without an error, within bounds; what msgpack-c cannot take apart, it
 * refuses. The cursor finds the same objects. */
#include "protocol/cursor.h"
#include "protocol/frame.h"

#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect_true(bool yes) {
    if (!yes) abort();
}

static void same_run(const ad_object *c, ad_kind kind, const void *data, uint32_t size) {
    expect_true(c->kind == kind && c->size == size && (size == 0 || c->as.data == data));
}

static void same_leaf(const msgpack_object *o, const ad_object *c) {
    switch (o->type) {
    case MSGPACK_OBJECT_NIL: expect_true(c->kind == AD_KIND_NIL); break;
    case MSGPACK_OBJECT_BOOLEAN: expect_true(c->kind == AD_KIND_BOOL && c->as.b == o->via.boolean); break;
    case MSGPACK_OBJECT_POSITIVE_INTEGER: expect_true(c->kind == AD_KIND_UNSIGNED && c->as.u == o->via.u64); break;
    case MSGPACK_OBJECT_NEGATIVE_INTEGER: expect_true(c->kind == AD_KIND_NEGATIVE && c->as.i == o->via.i64); break;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64: expect_true(c->kind == AD_KIND_FLOAT && !memcmp(&c->as.f, &o->via.f64, 8)); break;
    case MSGPACK_OBJECT_STR: same_run(c, AD_KIND_TEXT, o->via.str.ptr, o->via.str.size); break;
    case MSGPACK_OBJECT_BIN: same_run(c, AD_KIND_BYTES, o->via.bin.ptr, o->via.bin.size); break;
    case MSGPACK_OBJECT_EXT:
        same_run(c, AD_KIND_EXT, o->via.ext.ptr, o->via.ext.size);
        expect_true(c->type == o->via.ext.type);
        break;
    default: abort();
    }
}

/* The object at *at is o, for the cursor too. How many there are in it. */
static size_t compare_object(const msgpack_object *o, const uint8_t **at, int depth) {
    const bool array = o->type == MSGPACK_OBJECT_ARRAY, map = o->type == MSGPACK_OBJECT_MAP;
    size_t n = 1;
    ad_object c;

    ad__object_read(at, &c);
    if (!array && !map) {
        same_leaf(o, &c);
        return 1;
    }
    expect_true(depth < AD_SCAN_DEPTH && c.kind == (array ? AD_KIND_ARRAY : AD_KIND_MAP));
    expect_true(c.size == (array ? o->via.array.size : o->via.map.size));
    for (uint32_t i = 0; i < c.size; i++) {
        if (array) {
            n += compare_object(&o->via.array.ptr[i], at, depth + 1);
        } else {
            n += compare_object(&o->via.map.ptr[i].key, at, depth + 1);
            n += compare_object(&o->via.map.ptr[i].val, at, depth + 1);
        }
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *cursor = data, *skipping = data;
    size_t at = 0, elements = 0;
    ad_fault fault = {0};

    if (ad__scan(data, size, &fault)) {
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
        elements += compare_object(&object, &cursor, 0);
        ad__object_skip(&skipping);
        expect_true(cursor == data + at && skipping == cursor);
        msgpack_zone_destroy(&zone);
    }
    if (elements > AD_SCAN_ELEMENTS) abort();
    return 0;
}
