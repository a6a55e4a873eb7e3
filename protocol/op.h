/* An operation and its operands, for both ends and all backends. */
#ifndef AD_PROTOCOL_OP_H
#define AD_PROTOCOL_OP_H

#include "protocol/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ad_scalar_kind {
    AD_SCALAR_NIL,
    AD_SCALAR_BOOL,
    AD_SCALAR_INT,
    AD_SCALAR_UINT /* above INT64_MAX only */,
    AD_SCALAR_FLOAT,
    AD_SCALAR_COMPLEX
} ad_scalar_kind;

typedef struct ad_scalar {
    uint8_t kind; /* ad_scalar_kind */
    union {
        bool b;
        int64_t i;
        uint64_t u;
        double f;
        double c[2]; /* real, imaginary */
    } as;
} ad_scalar;

/* Get a parameter that is a number, as "f" in a row of call.def says. It may be whole. */
static inline double ad__param_number(const ad_scalar *s) {
    return s->kind == AD_SCALAR_FLOAT ? s->as.f : s->kind == AD_SCALAR_UINT ? (double)s->as.u : (double)s->as.i;
}

typedef enum ad_form {
    AD_VIEW,  /* a view of a buffer that exists */
    AD_FRESH, /* output only: the operation creates the buffer, contiguous and exactly as large as this */
    AD_SIZED  /* output of an ASK call only: as AD_FRESH, but with ndim 0, as the data decide the size */
} ad_form;

/* An array: a view of a buffer. shape and strides have ndim elements, which belong to the maker of the description
 * (often to an arena). strides are in bytes and may be negative or 0; offset is that of the first element. */
typedef struct ad_desc {
    uint64_t buffer;
    int64_t offset;
    const int64_t *shape, *strides;
    uint8_t dtype, ndim, form; /* ad_form */
} ad_desc;

/* An operand: an array, or (input only) a scalar, which stands for a 0-d array of any dtype that it is asked for. */
typedef struct ad_operand {
    uint8_t is_scalar;
    ad_desc desc;
    ad_scalar scalar;
    void *data; /* server: address of the first element in device memory; never on the wire */
} ad_operand;

/* One numbered operation (UFUNC, REDUCE, CALL) or QUERY. operand holds nout outputs, then nin inputs. */
typedef struct ad_op {
    uint8_t opcode; /* AD_REQ_UFUNC, AD_REQ_REDUCE, AD_REQ_CALL or AD_REQ_QUERY */
    uint8_t loop;   /* dtype of the loop: T of the row's rule; of calls the type that they compute in */
    uint8_t nout, nin, nparam;
    uint16_t row;
    ad_operand *operand;
    ad_scalar *param;
} ad_op;

/* An arena: bump allocation for all that lives as long as a batch of messages. It takes memory in blocks and frees
 * all at once. */
typedef struct ad_arena {
    struct ad_arena_block *block;
} ad_arena;
#define AD_ARENA_INIT \
    { 0 }
void *ad__arena_alloc(ad_arena *arena, size_t size); /* 16-byte aligned, not zeroed; NULL: no memory */
void ad__arena_reset(ad_arena *arena);               /* free all allocations, but keep one block */
void ad__arena_free(ad_arena *arena);

#ifdef __cplusplus
}
#endif
#endif
