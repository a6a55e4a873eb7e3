#include "protocol/cursor.h"

#define LEAF(kind, width) \
    { AD_KIND_##kind, width, 0, 0 }
#define LONG(kind, width) LEAF(kind, width)
#define SHORT(kind, mask) \
    { AD_KIND_##kind, 0, mask, 0 }
#define EXACT(kind, length) \
    { AD_KIND_##kind, 0, 0, length }

const ad_head ad__heads[256] = {
    [0x00 ... 0x7f] = LEAF(UNSIGNED, 0),
    [0x80 ... 0x8f] = SHORT(MAP, 15),
    [0x90 ... 0x9f] = SHORT(ARRAY, 15),
    [0xa0 ... 0xbf] = SHORT(TEXT, 31),
    [0xc0] = LEAF(NIL, 0),
    [0xc1] = LEAF(NONE, 0),
    [0xc2 ... 0xc3] = LEAF(BOOL, 0),
    [0xc4] = LONG(BYTES, 1),
    [0xc5] = LONG(BYTES, 2),
    [0xc6] = LONG(BYTES, 4),
    [0xc7] = LONG(EXT, 1),
    [0xc8] = LONG(EXT, 2),
    [0xc9] = LONG(EXT, 4),
    [0xca] = LEAF(FLOAT, 4),
    [0xcb] = LEAF(FLOAT, 8),
    [0xcc] = LEAF(UNSIGNED, 1),
    [0xcd] = LEAF(UNSIGNED, 2),
    [0xce] = LEAF(UNSIGNED, 4),
    [0xcf] = LEAF(UNSIGNED, 8),
    [0xd0] = LEAF(SIGNED, 1),
    [0xd1] = LEAF(SIGNED, 2),
    [0xd2] = LEAF(SIGNED, 4),
    [0xd3] = LEAF(SIGNED, 8),
    [0xd4] = EXACT(EXT, 1),
    [0xd5] = EXACT(EXT, 2),
    [0xd6] = EXACT(EXT, 4),
    [0xd7] = EXACT(EXT, 8),
    [0xd8] = EXACT(EXT, 16),
    [0xd9] = LONG(TEXT, 1),
    [0xda] = LONG(TEXT, 2),
    [0xdb] = LONG(TEXT, 4),
    [0xdc] = LONG(ARRAY, 2),
    [0xdd] = LONG(ARRAY, 4),
    [0xde] = LONG(MAP, 2),
    [0xdf] = LONG(MAP, 4),
    [0xe0 ... 0xff] = LEAF(SIGNED, 0),
};

static int64_t get_signed(const uint8_t *p, int bytes) {
    const int unused = 64 - 8 * bytes;

    return (int64_t)(ad__get_be(p, bytes) << unused) >> unused;
}

ad_kind ad__object_number(const uint8_t **at, uint64_t *out) {
    const uint8_t *p = *at + 1;
    const ad_head *h = &ad__heads[p[-1]];

    if (h->kind != AD_KIND_UNSIGNED && h->kind != AD_KIND_SIGNED) return AD_KIND_NONE;
    *at = p + h->width;
    if (h->width == 0) *out = (uint64_t)(int8_t)p[-1];
    else if (h->kind == AD_KIND_UNSIGNED) *out = ad__get_be(p, h->width);
    else *out = (uint64_t)get_signed(p, h->width);
    return h->kind == AD_KIND_SIGNED && (int64_t)*out < 0 ? AD_KIND_NEGATIVE : AD_KIND_UNSIGNED;
}

static double get_float(const uint8_t *p, int bytes) {
    const uint64_t bits = ad__get_be(p, bytes);
    const uint32_t half = (uint32_t)bits;
    double wide;
    float narrow;

    memcpy(&wide, &bits, sizeof wide);
    memcpy(&narrow, &half, sizeof narrow);
    return bytes == 4 ? (double)narrow : wide;
}

void ad__object_read(const uint8_t **at, ad_object *o) {
    const uint8_t *p = *at + 1;
    const ad_head *h = &ad__heads[p[-1]];

    *o = (ad_object){.kind = h->kind};
    switch (h->kind) {
    case AD_KIND_NIL:
    case AD_KIND_NONE: break;
    case AD_KIND_BOOL: o->as.b = p[-1] & 1; break;
    case AD_KIND_UNSIGNED:
    case AD_KIND_SIGNED: o->kind = (uint8_t)ad__object_number(at, &o->as.u); return;
    case AD_KIND_FLOAT: o->as.f = get_float(p, h->width); break;
    default: o->size = ad__head_length(h, p); break;
    }
    p += h->width;
    if (h->kind == AD_KIND_EXT) o->type = (int8_t)*p++;
    if (h->kind >= AD_KIND_TEXT && h->kind <= AD_KIND_EXT) {
        o->as.data = p;
        p += o->size;
    }
    *at = p;
}

void ad__object_skip(const uint8_t **at) {
    ad_object o;

    for (uint64_t left = 1; left > 0; left--) {
        ad__object_read(at, &o);
        if (o.kind == AD_KIND_ARRAY) left += o.size;
        else if (o.kind == AD_KIND_MAP) left += 2 * (uint64_t)o.size;
    }
}
