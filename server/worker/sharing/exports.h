/* Exports: memory of an array in the hands of another process, which reads and writes it without the server.
 *
 * The array's buffer moves to a slab of its own, so that nothing else can be seen in it, and the slab's descriptor goes
 * to the client over a socket that came with the request. That socket is the lease: for as long as its other end is
 * open, whoever has it, the lease holds the memory as a name or a capability does (sharing.h), whatever becomes of the
 * session that asked for it. A slab that was exported once is never used for another array: who kept its descriptor
 * sees nothing of others. Exported memory is common: whoever holds it writes into the same elements.
 *
 * Programs that take only CUDA's 64-byte handles get one of those instead, of plain memory (kernels/backend.h), which
 * goes with the worker. A buffer whose memory is out in one way cannot be had in the other.
 *
 * Only whoever runs the engine calls these. */
#ifndef AD_SERVER_WORKER_SHARING_EXPORTS_H
#define AD_SERVER_WORKER_SHARING_EXPORTS_H

#include "server/worker/sharing/leases.h"
#include "server/worker/sharing/sharing.h"

typedef struct ad_exported ad_exported;

/* EXPORT. False: the session must wait, call again. */
bool ad__export(ad_session *s, const ad_message *m);
/* The session is over: what it was about to get goes, and it pays for nothing any more. */
void ad__exports_end(ad_session *s);

void ad__exports_close(ad_worker *w);
/* The principal's leases are over: another worker has the memory. */
void ad__exports_part(ad_worker *w, const char *principal);
/* How many leases of *who mean it; *who NULL: it becomes that of the first. */
uint64_t ad__exports_holding(const ad_worker *w, const ad_shared *shared, const char **who);

#endif
