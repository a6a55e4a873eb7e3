/* Imports: memory that a client has on a device, as a buffer of its session.
 *
 * The client names its allocation by a descriptor, which keeps the memory whoever ends, or by one of CUDA's handles,
 * and sends one end of a socket pair: the lease (leases.h), with the roles turned. The client keeps the memory until
 * the server has closed its end, which it does when the buffer has gone and its home stream has passed. An allocation
 * is mapped once for a session, however many buffers are pieces of it. As these may overlap, what uses them is ordered
 * between stream queues as if they were one, and an operation finds out which of its operands meet.
 *
 * Such a buffer has no block: it is never moved, nor used again, and what others get of it is a copy (sharing.h).
 *
 * Memory that has a handle goes with the client, and what uses it then might end the worker. So handles are taken only
 * where all sessions are one principal's, and a session whose client closes its end ends. Only whoever runs the engine
 * calls these. */
#ifndef AD_SERVER_WORKER_SHARING_IMPORTS_H
#define AD_SERVER_WORKER_SHARING_IMPORTS_H

#include "server/worker/net/session.h"

/* Why one has no value when another worker goes on. */
#define AD_IMPORT_LOST "the worker was killed, and this array was memory of the program: take it in again"

typedef struct ad_import ad_import;

/* IMPORT. */
void ad__import(ad_session *s, const ad_message *m);
/* A buffer that is one is about to go, or to lose its contents. */
void ad__import_gone(ad_session *s, ad_buffer *b);
/* AD_E_VALUE: it is memory that the client does not want to be written. */
int ad__import_check_write(const ad_buffer *b, ad_fault *fault);
/* What stands for it, and all that may overlap it, where stream queues wait for each other. */
ad_buffer *ad__import_order(const ad_buffer *b);
/* How far b begins behind a, if both are of one allocation; else false. */
bool ad__imports_meet(const ad_buffer *a, const ad_buffer *b, int64_t *distance);
/* Close those whose streams have passed; false: some are left. */
bool ad__imports_settle(ad_worker *w);
/* The session, of which nothing is under way, is over. */
void ad__imports_end(ad_session *s);

#endif
