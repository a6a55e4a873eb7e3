/* Exports: another process reads and writes an array's memory without the server.
 *
 *     session                 worker                        other process
 *     buffer ──▶ ad_shared ──▶ slab of its own ◀── descriptor ── mapping
 *                   ▲
 *                   └── lease ═══ socket ═══════════════════ end that it holds open
 *
 * The array's buffer moves to a slab of its own, so that nothing else can be seen in it. The slab's descriptor goes to
 * the client over a socket that came with the request. That socket is the lease. While any process has its other end
 * open, the lease holds the memory as a name or a capability does (sharing.h), even after the session is over. A slab
 * that was exported is never used for another array, because its descriptor may still be somewhere. Exported memory is
 * common: all its holders write into the same elements.
 *
 * Programs that take only CUDA's 64-byte handles get a handle of plain memory (kernels/backend.h), which goes with
 * the worker. A buffer can be exported by descriptors or by handles, not by both.
 *
 * Runner: all functions here. */
#ifndef AD_SERVER_WORKER_SHARING_EXPORTS_H
#define AD_SERVER_WORKER_SHARING_EXPORTS_H

#include "server/worker/sharing/leases.h"
#include "server/worker/sharing/sharing.h"

typedef struct ad_exported ad_exported;

/* End the export that the session, which is over, has not been answered. */
void ad__exports_end(ad_worker_session *s);

void ad__exports_close(ad_worker *w);
/* End the leases of a principal that has migrated: another worker has the memory. */
void ad__exports_part(ad_worker *w, const char *principal);

#endif
