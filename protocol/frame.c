#include "protocol/frame.h"

#include <inttypes.h>
#include <string.h>

/* ---- headers ---- */

static void put_le(uint8_t *out, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) out[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get_le(const uint8_t *in, int bytes) {
    uint64_t value = 0;

    for (int i = 0; i < bytes; i++) value |= (uint64_t)in[i] << (8 * i);
    return value;
}

void ad__frame_encode(const ad_frame *f, uint8_t out[AD_FRAME_HEADER]) {
    put_le(out, f->control, 4);
    put_le(out + 4, f->flags, 4);
    put_le(out + 8, f->payload, 8);
}

int ad__frame_decode(const uint8_t in[AD_FRAME_HEADER], uint32_t max_control, uint64_t max_payload, ad_frame *f,
                     ad_fault *fault) {
    const ad_frame got = {(uint32_t)get_le(in, 4), (uint32_t)get_le(in + 4, 4), get_le(in + 8, 8)};

    if (got.control > max_control)
        return ad__fault(fault, AD_E_PROTOCOL, "a control block of %" PRIu32 " bytes, above the limit of %" PRIu32,
                         got.control, max_control);
    if (got.flags & ~AD_FRAME_FLAGS)
        return ad__fault(fault, AD_E_PROTOCOL, "unknown flags of a frame: %#" PRIx32, got.flags);
    if (got.flags & AD_FRAME_NOTES) {
        if (got.control || got.flags & (got.flags - 1)) /* no control block, and one bit */
            return ad__fault(fault, AD_E_PROTOCOL, "a note that is more than one note: flags %#" PRIx32, got.flags);
        *f = got;
        return 0;
    }
    if (got.payload > max_payload)
        return ad__fault(fault, AD_E_PROTOCOL, "a payload of %" PRIu64 " bytes, above the limit of %" PRIu64,
                         got.payload, max_payload);
    if (got.control == 0 && got.payload == 0) return ad__fault(fault, AD_E_PROTOCOL, "an empty frame");
    *f = got;
    return 0;
}

/* ---- other protocols ---- */

const char *ad__frame_name_stranger(const uint8_t *in, size_t size) {
    static const char *const http[] = {"HTTP/", "GET /", "HEAD ", "POST ", "PUT /", "OPTIO", "CONNE"};

    if (size < 5) return NULL;
    if (in[0] >= 0x14 && in[0] <= 0x16 && in[1] == 3 && in[2] <= 4) return "TLS"; /* the header of a record */
    for (size_t i = 0; i < sizeof http / sizeof *http; i++)
        if (memcmp(in, http[i], 5) == 0) return "HTTP";
    return NULL;
}
