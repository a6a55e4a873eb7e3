/* Imports: memory of a client on a device, as a buffer of its session.
 *
 *     client                        worker
 *     allocation ── descriptor ──▶ ad_allocation ◀── ad_import_use ◀── buffer
 *                   or handle           ▲  └────────────── ad_import_use ◀── buffer
 *     end that it watches ═══ socket ═══╪═ lease of each import
 *                                   mapped once for a session
 *
 * The client sends a descriptor of its allocation, or one of CUDA's handles, on one end of a socket pair. That is a
 * lease (leases.h) with the roles turned: the client keeps the memory until the server closes its end. The server
 * does so when the buffer is gone and its home stream has passed. Buffers of one allocation may overlap. So stream
 * queues wait for each other as if those were one buffer, and an operation finds out which of its operands overlap.
 *
 * An imported buffer has no block. It is never moved, and its memory is never used again. Other sessions get copies
 * of it (sharing.h).
 *
 * Memory with a descriptor stays until all have closed it. Memory with a handle goes with the client, and using it
 * then might end the worker. So handles are taken only where one principal has the worker, and a client that closes
 * its end ends its session.
 *
 * Runner: all functions here. */
#ifndef AD_SERVER_WORKER_SHARING_IMPORTS_H
#define AD_SERVER_WORKER_SHARING_IMPORTS_H

#include "server/worker/session.h"

/* Why an imported buffer has no contents after its worker was killed. */
#define AD_IMPORT_LOST "the worker was killed, and this array was memory of the program: take it in again"

typedef struct ad_import_use ad_import_use;

/* End the import of a buffer that is freed or loses its contents. */
void ad__import_gone(ad_worker_session *s, ad_buffer *b);
/* Check that the client allows its memory to be written. AD_E_VALUE. */
int ad__import_check_write(const ad_buffer *b, ad_fault *fault);
/* Get the buffer that stands for the whole allocation where stream queues wait for each other. */
ad_buffer *ad__import_order(const ad_buffer *b);
/* Set how many bytes b begins behind a, if both are pieces of one allocation. False: they are not. Both are imports. */
bool ad__imports_meet(const ad_buffer *a, const ad_buffer *b, int64_t *distance);
/* Free imports whose streams have passed. False: some are left. */
bool ad__imports_settle(ad_worker *w);
/* Free the imports of a session that is over, whose streams are idle. */
void ad__imports_end(ad_worker_session *s);

#endif
