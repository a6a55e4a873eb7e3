/* Frames. wire.md has the layout:
 *
 *     | control u32 | flags u32 | payload u64 | control block (msgpack) | payload (raw bytes) |
 *     |<------------ 16 bytes --------------->| */
#ifndef AD_PROTOCOL_FRAME_H
#define AD_PROTOCOL_FRAME_H

#include "protocol/base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define AD_FRAME_HEADER 16
#define AD_FRAME_MORE 1u /* flag, server to client: more frames of this reply follow */
/* Notes from client to server: a header alone, whose payload field is a number. */
#define AD_FRAME_TAKEN 2u  /* bytes received from the server so far, which it need not keep any longer */
#define AD_FRAME_LEAVE 4u  /* 0: the client closes, and does not come back */
#define AD_FRAME_CANCEL 8u /* 0: what came before, and has not begun, is not to be computed */
#define AD_FRAME_NOTES 14u
#define AD_FRAME_FLAGS 15u /* all known flags; any other one is a protocol error */

/* The header of a frame: sizes of control block and payload, and flags. */
typedef struct ad_frame {
    uint32_t control, flags;
    uint64_t payload;
} ad_frame;

void ad__frame_encode(const ad_frame *f, uint8_t out[AD_FRAME_HEADER]);
/* Decode and check a header: control at most max_control, payload at most max_payload, known flags, not both sizes
 * 0; a note is one note and nothing else. AD_E_PROTOCOL. *f is untouched on failure. */
int ad__frame_decode(const uint8_t in[AD_FRAME_HEADER], uint32_t max_control, uint64_t max_payload, ad_frame *f,
                     ad_fault *fault);

/* Recognise what another protocol begins a connection with: "HTTP", "TLS", or NULL. size: at least 5 bytes tell. */
const char *ad__frame_name_stranger(const uint8_t *in, size_t size);

/* Check a control block before anybody reads it, without allocating. It must consist of whole objects, each an array.
 * Its depth is at most AD_SCAN_DEPTH, its elements are at most AD_SCAN_ELEMENTS, and no declared length goes beyond the
 * bytes that are there. AD_E_PROTOCOL. */
#define AD_SCAN_DEPTH 8
#define AD_SCAN_ELEMENTS (1u << 19)
int ad__scan(const uint8_t *data, size_t size, ad_fault *fault);
/* Scan a block in which `skip` recognises messages: it returns the bytes of the next one and adds its objects to
 * *elements, or returns 0. AD_E_PROTOCOL. */
int ad__scan_with(const uint8_t *data, size_t size,
                  size_t (*skip)(void *of, const uint8_t *at, size_t left, uint64_t *elements), void *of,
                  ad_fault *fault);
/* Scan the one message that data begins with: its bytes, and how many objects are in its containers. 0: it is damaged.
 */
size_t ad__scan_one(const uint8_t *data, size_t size, uint32_t *elements);
/* Count the messages, up to the first that is not one. */
uint32_t ad__scan_messages(const uint8_t *data, size_t size);

#ifdef __cplusplus
}
#endif
#endif
