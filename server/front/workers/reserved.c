/* Memory that is reserved for principals: whether a device has so much, and telling workers. */
#include <inttypes.h>
#include <stdio.h>

#include "server/front/front.h"

int ad__reserved_check(const ad_front *f, const ad_principals *p, ad_fault *fault) {
    uint64_t limit = f->config.memory ? f->config.memory : f->device_memory / 4 * 3, sum[64] = {0};
    ad_grants g;
    for (size_t at = 0; ad__principals_next(p, &at, &g);)
        for (uint64_t left = g.reserve ? g.devices : 0; left; left &= left - 1) {
            int device = __builtin_ctzll(left);
            if (!limit || (!__builtin_add_overflow(sum[device], g.reserve, &sum[device]) && sum[device] <= limit))
                continue;
            return ad__fault(fault, AD_E_VALUE,
                             "reserve: all that is reserved of device %d is more than the %" PRIu64
                             " bytes that a worker may take of it (option memory)",
                             device, limit);
        }
    return 0;
}

/* Each principal has one note; the worker applies them when the last has come. */
int ad__reserved_tell(const ad_front *f, ad_channel *c) {
    ad_note note = {.kind = AD_NOTE_RESERVE};
    ad_grants g;
    const char *who;
    int status = 0;
    for (size_t at = 0; ad__principals_next(f->principals, &at, &g);) note.size += g.reserve != 0;
    if (!note.size) return ad__channel_send(c, &note, -1);
    for (size_t at = 0; !status && (who = ad__principals_next(f->principals, &at, &note.grants));) {
        if (!note.grants.reserve) continue;
        snprintf(note.who, sizeof note.who, "%s", who);
        status = ad__channel_send(c, &note, -1);
        note.id++;
    }
    return status;
}

bool ad__reserved_any(const ad_front *f) {
    ad_grants g;
    for (size_t at = 0; ad__principals_next(f->principals, &at, &g);)
        if (g.reserve) return true;
    return false;
}
