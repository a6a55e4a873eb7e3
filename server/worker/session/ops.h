/* Storing into buffers. Runner only. */
#ifndef AD_SERVER_WORKER_SESSION_OPS_H
#define AD_SERVER_WORKER_SESSION_OPS_H

#include "server/worker/session.h"

/* Enqueue a copy from host memory into a buffer. pinned: `from` stays valid until the copy is complete; otherwise it is
 * copied before the return. what: the request's name. */
int ad__store(ad_worker_session *s, const char *what, uint64_t id, uint64_t offset, const void *from, uint64_t size,
              bool pinned, ad_fault *fault);
/* Note that a store into a buffer is refused. A buffer that stores are filling gets the error, as it will not be whole:
 * the result is 0. Any other stays as it is: the result is the error's code. */
int ad__store_refuse(ad_worker_session *s, const char *what, uint64_t id, ad_fault *fault);

#endif
