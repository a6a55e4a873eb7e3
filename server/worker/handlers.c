#include "server/worker/handlers.h"

ad_handler *const ad__handlers[AD_REQUEST_LIMIT] = {
#define AD_HANDLER_OP(id, name) [id] = ad__handle_##name,
#define AD_HANDLER_ASK(id, name) [id] = ad__handle_##name,
#define AD_HANDLER_HELLO(id, name)
#define AD_HANDLER_TELL(id, name)
#define AD_REQUEST(id, NAME, name, cls, ...) AD_HANDLER_##cls(id, name)
#include "protocol/request.def"
#undef AD_REQUEST
};
