/* Declarations that lend.c, lend_cuda.c and export.c share. Private to them. */
#ifndef AD_CLIENT_C_INTEROP_LEND_H
#define AD_CLIENT_C_INTEROP_LEND_H

#include "client-c/client.h"
#include "client-c/interop/driver.h"

/* A place in GPU memory of this process, and the name by which another process can map it. */
typedef struct ad_place {
    int device; /* number of the GPU in this process */
    char id[AD_DEVICE_ID];
    uint64_t base, size; /* allocation that the memory lies in */
    int fd;              /* descriptor of the allocation, which the caller closes; -1: it has a handle */
    unsigned char message[AD_IMPORT_MESSAGE]; /* that handle */
} ad_place;

/* ---- lend_cuda.c ---- */
/* Find the allocation of size bytes at data, and its name. Waits until what the stream holds is complete (NULL: all
 * that this process has begun on the GPU). device: number of the GPU that the memory should be on. Below 0: unknown.
 * AD_E_UNSUPPORTED: the memory has no name, there is no driver, or several allocations; AD_E_VALUE: it is another
 * GPU's. */
int ad__cuda_find(const void *data, size_t size, int device, void *stream, ad_place *place);

/* ---- lend.c ---- */
/* A loan: memory of this process that the server uses. Its references are the thread's that watches it, the array's,
 * and leases' of this process. */
/* Return the array's loan with a reference; NULL: the array's memory is the server's. */
ad_lent *ad__lent_of(const ad_array *a);
void ad__lent_release(ad_lent *l);
int ad__lent_device(const ad_lent *l);
/* Return the address of the buffer; NULL: the array is not lent, or its memory is the parent process's. */
void *ad__lent_address(const ad_lent *l);
/* Record that exported memory is mapped here, or not any more: such memory cannot be lent. */
void ad__lend_mapped(struct ad_lease *l);
void ad__lend_unmapped(struct ad_lease *l);
void ad__lend_before_fork(void);
void ad__lend_forked(bool child);

#endif
