/* The functions that execute messages: one for each row of class OP and ASK of request.def.
 *
 *     frame ─▶ message ─▶ session/execute.c: what the row's flags demand ─▶ ad__handlers[opcode]
 *
 * The room whose objects a request concerns defines its function. A row without a function does not link. */
#ifndef AD_SERVER_WORKER_HANDLERS_H
#define AD_SERVER_WORKER_HANDLERS_H

#include "protocol/message.h"

struct ad_worker_session;

#define AD_WAITS 1 /* result of a handler: the session waits for something; call it again */

/* Runner: execute a message. 0: it is executed, or what it writes has its failure, or an ASK is answered. Negative: it
 * has failed, and *fault says why; the caller reports that. AD_WAITS. *fault is empty before. */
typedef int ad_handler(struct ad_worker_session *s, ad_message *m, ad_fault *fault);

#define AD_HANDLER_HELLO(name)
#define AD_HANDLER_TELL(name)
#define AD_HANDLER_OP(name) ad_handler ad__handle_##name;
#define AD_HANDLER_ASK(name) ad_handler ad__handle_##name;
#define AD_REQUEST(id, NAME, name, cls, ...) AD_HANDLER_##cls(name)
#include "protocol/request.def"
#undef AD_REQUEST
#undef AD_HANDLER_HELLO
#undef AD_HANDLER_TELL
#undef AD_HANDLER_OP
#undef AD_HANDLER_ASK

/* Handlers by opcode; NULL: no client sends such a message to a worker. */
extern ad_handler *const ad__handlers[AD_REQUEST_LIMIT];

#endif
