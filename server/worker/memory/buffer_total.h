/* How many buffers all sessions of one principal have room for. A buffer of a few bytes costs the worker some 400 bytes
 * of host memory, which no quota of the device counts: this limit bounds it. */
#ifndef AD_SERVER_WORKER_MEMORY_BUFFER_TOTAL_H
#define AD_SERVER_WORKER_MEMORY_BUFFER_TOTAL_H

#include <stdint.h>

typedef struct ad_buffer_total ad_buffer_total;
struct ad_buffer_total {
    ad_buffer_total *next;
    char principal[64];
    uint64_t users; /* sessions of the principal. The caller's lock guards it, and the list */
    uint64_t room;  /* buffers that their tables have memory for. Runner */
    /* Limit of `room`; 0: none. Sessions that begin set it, while the others may be adding buffers. */
    _Atomic uint64_t most;
};

/* Find or make the total of a principal, and count one session more. NULL: no host memory. */
ad_buffer_total *ad__buffer_total_open(ad_buffer_total **list, const char *principal, uint64_t most);
/* Count one session less. The last one's total is freed. */
void ad__buffer_total_close(ad_buffer_total **list, ad_buffer_total *t);

#endif
