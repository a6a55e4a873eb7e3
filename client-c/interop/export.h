/* Declarations that export.c and export_cuda.c share. Private to them. */
#ifndef AD_CLIENT_C_INTEROP_EXPORT_H
#define AD_CLIENT_C_INTEROP_EXPORT_H

#include "client-c/client.h"
#include "client-c/interop/driver.h"

typedef struct ad_range ad_range;

struct ad_lease {
    atomic_uint refs;
    int generation;          /* generation of the process that made the lease: a fork's child must not end it */
    int socket;              /* connection to the server: closing it ends the lease */
    pthread_mutex_t mapping; /* guards fd, device and base, which change once */
    int fd;                  /* descriptor of the memory, until it is mapped; then -1 */
    uint64_t size;           /* bytes of the memory */
    int64_t offset;          /* offset of the array in the memory */
    bool cuda;               /* true: the memory is a GPU's; false: the host's */
    int device;              /* number of that GPU in this process, once the memory is mapped; else -1 */
    char id[AD_DEVICE_ID];
    uint64_t memory[2]; /* the memory's number in its worker, and the worker's number; zeros: not known */
    ad_range *range;    /* what the lease's memory is mapped by (ranges.h); NULL: it is mapped by itself, or not */
    bool readonly;      /* this process only reads the memory, which stays as it is */
    bool by_handle;     /* the memory has a handle, and no descriptor */
    unsigned char event[AD_EXPORT_MESSAGE]; /* the handle, else an IPC event to wait for; zeros: there is none */
    void *base;                             /* address of the memory; NULL: not mapped yet */
    ad_lease *next_mapped;                  /* list of mapped leases of GPU memory (lend.c) */
    ad_lent *lent;                          /* memory that this process has lent: nothing is mapped; else NULL */
};

/* ---- export_cuda.c ---- */
/* Map the memory on the device of this process that has the lease's id, and set base and device. Work that the stream
 * gets next waits for the event. stream: a CUstream; NULL: the legacy default stream. AD_E_UNSUPPORTED: there is no
 * driver, or this process does not see the device; AD_E_DEVICE, AD_E_MEMORY. */
int ad__cuda_map(ad_lease *l, void *stream);
/* Copy from other memory of the same device, after what this process has begun there, and wait. ordinal: number of the
 * GPU that the memory should be on. Below 0: unknown. AD_E_VALUE: it is another GPU; AD_E_DEVICE. */
int ad__cuda_copy(const ad_lease *l, int ordinal, void *to, const void *from, size_t size);
/* Wait until this process uses the memory no more, and unmap it. */
void ad__cuda_unmap(ad_lease *l);

#endif
