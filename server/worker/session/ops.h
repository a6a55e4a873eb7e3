/* Executing messages of class OP. Runner only. */
#ifndef AD_SERVER_WORKER_SESSION_OPS_H
#define AD_SERVER_WORKER_SESSION_OPS_H

#include "server/worker/session.h"

/* Execute an operation (class OP). Its failure is recorded in the session. False: earlier operations need more than
 * this turn; call it again. */
bool ad__exec_op(ad_session *s, ad_message *m);
/* Enqueue a copy from host memory into a buffer. pinned: `from` stays valid until the copy is complete; otherwise it is
 * copied before the return. what: the request's name. */
int ad__store(ad_session *s, const char *what, uint64_t id, uint64_t offset, const void *from, uint64_t size,
              bool pinned, ad_fault *fault);

#endif
