/* Frames: a 16-byte header, a control block of msgpack, a raw payload. wire.md has the layout. */
#ifndef AD_PROTOCOL_FRAME_H
#define AD_PROTOCOL_FRAME_H

#include "protocol/base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define AD_FRAME_HEADER 16
#define AD_FRAME_MORE 1u /* flag, server to client: more frames of this reply follow */
/* Notes, client to server: a header alone, whose payload field is a number. */
#define AD_FRAME_TAKEN 2u /* bytes received from the server in all, which it need not keep any longer */
#define AD_FRAME_LEAVE 4u /* 0: the client closes, and will not come back */
#define AD_FRAME_NOTES 6u
#define AD_FRAME_FLAGS 7u /* all flags there are; another one is a protocol error */

/* control u32, flags u32, payload u64, little-endian. */
typedef struct ad_frame {
    uint32_t control, flags;
    uint64_t payload;
} ad_frame;

void ad__frame_encode(const ad_frame *f, uint8_t out[AD_FRAME_HEADER]);
/* Decodes and checks: control at most max_control, payload at most max_payload, known flags, not both 0; of a note,
 * that it is one and nothing else.
 * AD_E_PROTOCOL. *f is untouched on failure. */
int ad__frame_decode(const uint8_t in[AD_FRAME_HEADER], uint32_t max_control, uint64_t max_payload, ad_frame *f,
                     ad_fault *fault);

/* Bounds a control block before anybody reads it, without allocating: depth at most 8, at most AD_SCAN_ELEMENTS
 * elements in all, no declared length beyond the bytes that are there, a whole number of objects, each an array.
 * AD_E_PROTOCOL. */
#define AD_SCAN_DEPTH 8
#define AD_SCAN_ELEMENTS (1u << 19)
int ad__scan(const uint8_t *data, size_t size, ad_fault *fault);
/* How many messages there are, up to the first that is none. */
uint32_t ad__scan_messages(const uint8_t *data, size_t size);

#ifdef __cplusplus
}
#endif
#endif
