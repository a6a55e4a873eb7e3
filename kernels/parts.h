/* Parts of a device, each with multiprocessors of its own: a second table, of backends whose devices have parts. They
 * export it beside that of kernels/backend.h, whose rules hold here as well. */
#ifndef AD_KERNELS_PARTS_H
#define AD_KERNELS_PARTS_H

#include "kernels/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ad_part { AD_PART_WHOLE, AD_PART_RESERVED, AD_PART_REST } ad_part;

typedef struct ad_part_table {
    /* Returns how many multiprocessors can be reserved where `wanted` are wanted; 0: none; negative: a status. Nothing
     * changes for streams that are not placed. */
    int (*device_split)(ad_device *device, int wanted, ad_fault *fault);
    /* What is enqueued from now on runs in a part, after all that the stream already holds. reserved: what device_split
     * returned; of no meaning for AD_PART_WHOLE, where a stream begins. */
    int (*stream_place)(ad_stream *stream, ad_part part, int reserved, ad_fault *fault);
} ad_part_table;

const ad_part_table *ad_part_table_get(void);

#ifdef __cplusplus
}
#endif
#endif
