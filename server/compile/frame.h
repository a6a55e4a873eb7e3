/* The frames of arrayd-compile: a job goes in, its result comes out, and both are stored in the cache's files.
 *
 *     job:    magic  target  flags  seconds  memory  texts and lists
 *     result: magic  kind  code  log  binary  lowered names
 *
 * Numbers are little-endian, 32 bits. A text is its size, its bytes and a NUL, so that it can be used in place. A
 * list is a count and its texts. Decoding checks everything; its results point into the frame's bytes. */
#ifndef AD_SERVER_COMPILE_FRAME_H
#define AD_SERVER_COMPILE_FRAME_H

#include "kernels/compile.h"
#include "protocol/message.h"

#define AD_COMPILE_SOURCE (1u << 20)  /* bytes of a user's source */
#define AD_COMPILE_GIVEN (8u << 20)   /* bytes of prelude and headers together */
#define AD_COMPILE_LOG (64u << 10)    /* bytes of the compiler's messages */
#define AD_COMPILE_BINARY (64u << 20) /* bytes of the compiler's binary */
#define AD_COMPILE_NAMES 256
#define AD_COMPILE_OPTIONS 128
#define AD_COMPILE_HEADERS 256
#define AD_COMPILE_WORD 4096           /* bytes of a name, an option, a header's name */
#define AD_COMPILE_LOWERED (64u << 10) /* bytes of a lowered name */
#define AD_COMPILE_FRAME (AD_COMPILE_BINARY + (16u << 20))
#define AD_COMPILE_SECONDS 3600u /* processor time that a job may ask for */
/* A compilation may take so many times its processor time by the clock, as a busy machine gives it only a part. */
#define AD_COMPILE_CLOCK 12u

/* A job and its limits. */
typedef struct ad_compile_request {
    ad_compile_job job;
    uint32_t seconds;  /* limit of processor time */
    uint64_t memory;   /* limit of address space in bytes */
    bool open;         /* compile users' sources even where the kernel has no Landlock */
    const char *nvrtc; /* path of NVRTC's library; "": search for it */
} ad_compile_request;

typedef enum ad_compile_kind {
    AD_COMPILE_MADE,    /* the compiler made a binary */
    AD_COMPILE_WRONG,   /* the source does not compile; log says why */
    AD_COMPILE_STOPPED, /* the compiler met a limit or crashed; log says so, and another attempt may succeed */
    AD_COMPILE_REFUSED, /* nothing was compiled; code and log say why */
} ad_compile_kind;
#define AD_NCOMPILE_KIND 4

typedef struct ad_compile_result {
    ad_compile_kind kind;
    int code; /* REFUSED: AD_E_... */
    ad_binary binary;
} ad_compile_result;

/* Append the frame of a request or of a result to b. AD_E_MEMORY. */
int ad__compile_put_request(ad_bytes *b, const ad_compile_request *r);
int ad__compile_put_result(ad_bytes *b, const ad_compile_result *r);
/* Read a frame that fills all of `size` bytes. *lists holds the memory of its lists, and the caller frees it, also
 * on failure. AD_E_PROTOCOL, AD_E_LIMIT, AD_E_MEMORY. */
int ad__compile_get_request(const void *data, size_t size, ad_compile_request *out, void **lists, ad_fault *fault);
int ad__compile_get_result(const void *data, size_t size, ad_compile_result *out, void **lists, ad_fault *fault);

#endif
