#include "protocol/message.h"

#include <stdlib.h>
#include <string.h>

int ad__bytes_reserve(ad_bytes *b, size_t more) {
    size_t capacity = b->capacity < 256 ? 256 : b->capacity;
    uint8_t *data;

    if (b->failed) return AD_E_MEMORY;
    if (more <= b->capacity - b->size) return 0;
    while (capacity - b->size < more) {
        if (capacity > SIZE_MAX / 2) {
            b->failed = true;
            return AD_E_MEMORY;
        }
        capacity *= 2;
    }
    data = realloc(b->data, capacity);
    if (!data) {
        b->failed = true;
        return AD_E_MEMORY;
    }
    b->data = data;
    b->capacity = capacity;
    return 0;
}

void ad__bytes_append(ad_bytes *b, const void *data, size_t size) {
    if (size == 0 || ad__bytes_reserve(b, size)) return;
    memcpy(b->data + b->size, data, size);
    b->size += size;
}

void ad__bytes_free(ad_bytes *b) {
    free(b->data);
    *b = (ad_bytes)AD_BYTES_INIT;
}
