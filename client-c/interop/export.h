/* What export.c and export_cuda.c share. Private to them. */
#ifndef AD_CLIENT_C_INTEROP_EXPORT_H
#define AD_CLIENT_C_INTEROP_EXPORT_H

#include "client-c/client.h"
#include "client-c/interop/driver.h"

struct ad_lease {
    atomic_uint refs;
    int generation;          /* of the process that asked for it: a fork's child has no say in it */
    int socket;              /* the lease */
    pthread_mutex_t mapping; /* of fd, device and base, which change once */
    int fd;                  /* the memory, until it is mapped */
    uint64_t size;           /* bytes of the memory */
    int64_t offset;          /* of the array in it */
    bool cuda;               /* memory of a GPU, else of the host */
    int device;              /* that GPU's number in this process, once it is mapped */
    char id[AD_DEVICE_ID];
    bool plain;                             /* there is a handle, and no descriptor */
    unsigned char event[AD_EXPORT_MESSAGE]; /* the handle; else an IPC event to wait for, zeros: none */
    void *base;                             /* where it is mapped; NULL: not yet */
    ad_lease *next_mapped;                  /* of those on a GPU that are (lend.c) */
    ad_lent *lent;                          /* it was this process's already: nothing is mapped; else NULL */
};

/* ---- export_cuda.c ---- */
/* Map it for the device of this process that has its id: sets base and device. What comes on the stream (a CUstream;
 * NULL: the legacy default stream) waits for the event. */
int ad__cuda_map(ad_lease *l, void *stream);
/* From other memory of that device (which is said to be GPU `ordinal`; below 0: nobody knows), between what this
 * process has begun there and what it begins next. */
int ad__cuda_copy(const ad_lease *l, int ordinal, void *to, const void *from, size_t size);
/* Waits until nothing of this process uses it. */
void ad__cuda_unmap(ad_lease *l);

#endif
