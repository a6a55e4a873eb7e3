/* What lend.c, lend_cuda.c and export.c share. Private to them. */
#ifndef AD_CLIENT_C_INTEROP_LEND_H
#define AD_CLIENT_C_INTEROP_LEND_H

#include "client-c/client.h"
#include "client-c/interop/driver.h"

/* Where memory of this process lies, and what names it to others. */
typedef struct ad_place {
    int device; /* number here ... */
    char id[AD_DEVICE_ID];
    uint64_t base, size;                      /* the allocation */
    int fd;                                   /* its descriptor, of whoever asked; or -1: */
    unsigned char message[AD_IMPORT_MESSAGE]; /* ... it has this handle */
} ad_place;

/* ---- lend_cuda.c ---- */
/* Of size bytes, which are said to be of GPU `device` (below 0: nobody knows). Waits until all that the stream holds is
 * complete; NULL: all that this process has begun on that GPU. AD_E_UNSUPPORTED: its allocator gives no name. */
int ad__cuda_find(const void *data, size_t size, int device, void *stream, ad_place *place);

/* ---- lend.c ---- */
/* Memory that the server has. It is held by that, by the array, and by leases of its own process. */
ad_lent *ad__lent_of(const ad_array *a); /* a reference; NULL: the array's memory is the server's */
void ad__lent_release(ad_lent *l);
int ad__lent_device(const ad_lent *l);
/* The buffer's first byte; NULL also where it is that of the process from which this one was forked. */
void *ad__lent_address(const ad_lent *l);
/* Memory of the server that is mapped here from now on, or not any more: it cannot be lent. */
void ad__lend_mapped(struct ad_lease *l);
void ad__lend_unmapped(struct ad_lease *l);
void ad__lend_before_fork(void);
void ad__lend_forked(bool child);

#endif
