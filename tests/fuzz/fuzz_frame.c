/* Frame headers: what is accepted keeps the limits and is encoded to the same bytes. */
#include "protocol/frame.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint64_t before = 0x7777777777777777;
    ad_frame f = {77, 77, before};
    ad_fault fault = {0};
    uint8_t again[AD_FRAME_HEADER];

    for (; size >= AD_FRAME_HEADER; data += AD_FRAME_HEADER, size -= AD_FRAME_HEADER) {
        f = (ad_frame){77, 77, before};
        if (ad__frame_decode(data, AD_MAX_CONTROL, AD_MAX_PAYLOAD, &f, &fault)) {
            if (f.control != 77 || f.payload != before || fault.code != AD_E_PROTOCOL || fault.text[0] == '\0') abort();
            continue;
        }
        const bool note = f.flags == AD_FRAME_TAKEN || f.flags == AD_FRAME_LEAVE || f.flags == AD_FRAME_CANCEL;
        if (note ? f.control != 0
                 : f.control > AD_MAX_CONTROL || f.payload > AD_MAX_PAYLOAD || (f.flags & ~AD_FRAME_MORE) ||
                       (f.control == 0 && f.payload == 0))
            abort();
        ad__frame_encode(&f, again);
        if (memcmp(again, data, sizeof again) != 0) abort();
    }
    return 0;
}
