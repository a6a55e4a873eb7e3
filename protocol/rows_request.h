/* Opcodes, the ids of the rows of request.def: AD_REQ_UFUNC. */
#ifndef AD_PROTOCOL_ROWS_REQUEST_H
#define AD_PROTOCOL_ROWS_REQUEST_H

enum {
#define AD_REQUEST(id, NAME, ...) AD_REQ_##NAME = (id),
#include "request.def"
#undef AD_REQUEST
};

#endif
