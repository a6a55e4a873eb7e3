/* What goes through the pipes to arrayd-compile and back, and into the cache's files: a job, and what came of it.
 *
 * Numbers are little-endian, 32 bits. A text is its size, its bytes, and a NUL, so that it can be used where it lies. A
 * list is a count and its texts. Decoding checks everything; what it gives points into the bytes. */
#ifndef AD_SERVER_COMPILE_FRAME_H
#define AD_SERVER_COMPILE_FRAME_H

#include "kernels/compile.h"
#include "protocol/message.h"

#define AD_COMPILE_SOURCE (1u << 20)  /* bytes of a user's source */
#define AD_COMPILE_GIVEN (8u << 20)   /* of prelude and headers together */
#define AD_COMPILE_LOG (64u << 10)    /* of what the compiler says */
#define AD_COMPILE_BINARY (64u << 20) /* of what it makes */
#define AD_COMPILE_NAMES 256
#define AD_COMPILE_OPTIONS 128
#define AD_COMPILE_HEADERS 256
#define AD_COMPILE_WORD 4096           /* bytes of a name, an option, a header's name */
#define AD_COMPILE_LOWERED (64u << 10) /* of a lowered name */
#define AD_COMPILE_FRAME (AD_COMPILE_BINARY + (16u << 20))
#define AD_COMPILE_SECONDS 3600u /* of processor time that a job may ask for */
/* The clock leaves a compilation so many times its processor time, as a busy machine gives it a small part of one. */
#define AD_COMPILE_CLOCK 12u

/* A job and how it is to be run. */
typedef struct ad_compile_request {
    ad_compile_job job;
    uint32_t seconds;  /* of processor time */
    uint64_t memory;   /* bytes of address space */
    bool open;         /* compile a user's source also where there is no Landlock */
    const char *nvrtc; /* path of NVRTC's library; "": look for it */
} ad_compile_request;

typedef enum ad_compile_kind {
    AD_COMPILE_MADE,    /* there is a binary */
    AD_COMPILE_WRONG,   /* the source does not compile; log */
    AD_COMPILE_STOPPED, /* the compiler met a limit or crashed; log says so. Might go well another time */
    AD_COMPILE_REFUSED, /* nothing was compiled; code and log say why */
} ad_compile_kind;
#define AD_NCOMPILE_KIND 4

typedef struct ad_compile_result {
    ad_compile_kind kind;
    int code; /* REFUSED: AD_E_... */
    ad_binary binary;
} ad_compile_result;

/* Append the frame to b. AD_E_MEMORY. */
int ad__compile_put_request(ad_bytes *b, const ad_compile_request *r);
int ad__compile_put_result(ad_bytes *b, const ad_compile_result *r);
/* Read a frame that fills all of `size` bytes. *lists: what its lists take, to be freed, also on failure.
 * AD_E_PROTOCOL, AD_E_LIMIT, AD_E_MEMORY. */
int ad__compile_get_request(const void *data, size_t size, ad_compile_request *out, void **lists, ad_fault *fault);
int ad__compile_get_result(const void *data, size_t size, ad_compile_result *out, void **lists, ad_fault *fault);

#endif
