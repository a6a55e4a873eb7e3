/* The functions of the cpu backend that the common part of calls needs. */
#include <string.h>

#include "kernels/call.h"
#include "kernels/cpu/backend/operand.h"

int ad__call_store(ad_call *, void *to, const void *value, int size) {
    memcpy(to, value, size_t(size));
    return 0;
}

int ad__call_ufunc(ad_call *c, const ad_op *op) { return ad_cpu_ufunc(c->stream, op, c->run, c->fault); }
