/* Statuses, faults, limits, and ids of types and requests, for all parts of arrayd. No sockets, no CUDA, no Python. */
#ifndef AD_PROTOCOL_BASE_H
#define AD_PROTOCOL_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AD_PROTOCOL_VERSION 1
#define AD_MAX_NDIM 32
#define AD_MAX_OUT 3
#define AD_MAX_IN 34 /* gather of 32 axes: x and 32 indices; scatter: v and 32 */
#define AD_MAX_PARAM 8
#define AD_MAX_ARGUMENTS 255      /* arguments of a kernel */
#define AD_MAX_SOURCE 900000u     /* bytes of a module's source */
#define AD_MAX_LOG (64u << 10)    /* bytes of a compiler's messages */
#define AD_MAX_CONTROL (1u << 20) /* bytes of a frame's control block */
#define AD_MAX_PAYLOAD (4u << 20) /* bytes of a frame's payload */
#define AD_FAULT_TEXT 256

/* Features in hello and welcome. */
#define AD_FEATURE_KERNELS 1u /* this principal may run kernels of its own */
#define AD_FEATURE_RESUME 2u  /* a session can be resumed after its connection has broken */
#define AD_FEATURE_CANCEL 4u  /* what has been sent can be cancelled */

/* Status: 0 or a negative AD_E_*. Codes on the wire are the positive values of error.def. */
enum {
#define AD_ERROR(code, NAME, exception, text) AD_E_##NAME = -(code),
#include "error.def"
#undef AD_ERROR
};

/* Why something failed: a status and a sentence for the user. Filled by ad__fault only. */
typedef struct ad_fault {
    int code; /* AD_E_*, negative; 0: nothing failed */
    char text[AD_FAULT_TEXT];
} ad_fault;

/* Fill *fault (which may be NULL) and return code. Text is cut at AD_FAULT_TEXT. */
int ad__fault(ad_fault *fault, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The text of error.def for a negative status, "ok" for 0, "unknown error" for others. */
const char *ad__error_text(int code);

enum {
#define AD_DTYPE(id, NAME, name, size, kind, letter) AD_##NAME = (id),
#include "dtype.def"
#undef AD_DTYPE
    AD_NDTYPE,
};

/* The most rows of each table; rows.h and rows_request.h have the names of the rows. */
enum { AD_UFUNC_LIMIT = 256, AD_REDUCTION_LIMIT = 64, AD_CALL_LIMIT = 256, AD_REQUEST_LIMIT = 256 };

#ifdef __cplusplus
}
#endif
#endif
