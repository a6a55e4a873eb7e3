/* Parts of a device: a second table, of backends that can keep streams from some of a device's multiprocessors. They
 * export it beside that of kernels/backend.h, whose rules hold here as well. */
#ifndef AD_KERNELS_PARTS_H
#define AD_KERNELS_PARTS_H

#include "kernels/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ad_part_table {
    /* Returns how many multiprocessors can be reserved where `wanted` are wanted; 0: none; negative: a status. Streams
     * are as before. The first call for a number may take as long as the device has something to do. */
    int (*device_split)(ad_device *device, int wanted, ad_fault *fault);
    /* Let a stream leave so many multiprocessors alone from its next operation on, which waits for all that the stream
     * already holds. reserved: what device_split returned; 0: the stream has the whole device again. */
    int (*stream_confine)(ad_stream *stream, int reserved, ad_fault *fault);
} ad_part_table;

const ad_part_table *ad_part_table_get(void);

#ifdef __cplusplus
}
#endif
#endif
