/* A chain: elementwise operations over one shape that a backend executes as one, writing only what is wanted.
 *
 * Nodes stand in the order in which the client sent them, and a node uses results of earlier ones only. Every node
 * rounds and casts as it would by itself: its result has the dtype that its output would have had. Inputs are views
 * that broadcast to the chain's shape. All inputs of an element are read before any of its outputs is written; an
 * output is the same view as an input or shares no byte with it.
 *
 * An operation with a mask is its row and, for each output, a `where` of the mask, the row's result and what the output
 * had. Random numbers are a `copy` of a source: element i of the chain's shape, row by row, is number first + i. */
#ifndef AD_KERNELS_CHAIN_H
#define AD_KERNELS_CHAIN_H

#include "protocol/op.h"

#ifdef __cplusplus
extern "C" {
#endif

#define AD_CHAIN_NODES 64
#define AD_CHAIN_INPUTS 32
#define AD_CHAIN_SCALARS 32
#define AD_CHAIN_OUTPUTS 16
#define AD_CHAIN_RANDOMS 4

typedef enum ad_source_kind {
    AD_SOURCE_NODE,   /* a result of node `index`: its output number `part` */
    AD_SOURCE_INPUT,  /* element of input `index` */
    AD_SOURCE_SCALAR, /* scalar `index`, in the type that the node's rule asks for */
    AD_SOURCE_RANDOM  /* number of random source `index`, of its loop's type */
} ad_source_kind;

typedef struct ad_source {
    uint8_t kind, index, part;
} ad_source;

typedef struct ad_chain_node {
    uint16_t row; /* of ufunc.def */
    uint8_t loop, nin, nout;
    uint8_t dtype[2];    /* what its outputs are stored as */
    ad_source source[3]; /* nin of them */
} ad_chain_node;

/* As call `random` makes them: of a BLOCK row of distribution.def. */
typedef struct ad_chain_random {
    uint8_t id, loop;
    uint64_t key, first;
    ad_scalar parameter[3]; /* as many as the row has; not checked */
} ad_chain_random;

typedef struct ad_chain_output {
    ad_operand view; /* of the chain's shape; its data are set */
    ad_source from;  /* a node's */
} ad_chain_output;

/* The end of a chain: a reduction (REDUCE) or a scan (CALL: cumsum and its like) of the value `from`. Its input operand
 * has the chain's shape, or for a scan all elements in a row. It has a dtype, contiguous strides and no data. Its
 * output has all, in memory of its own. */
typedef struct ad_chain_end {
    const ad_op *op; /* NULL: none */
    ad_source from;
} ad_chain_end;

typedef struct ad_chain {
    int ndim, nnodes, ninputs, nscalars, noutputs, nrandoms;
    const int64_t *shape; /* no dimension is 0 */
    ad_chain_node node[AD_CHAIN_NODES];
    ad_operand input[AD_CHAIN_INPUTS];
    ad_scalar scalar[AD_CHAIN_SCALARS];
    ad_chain_output output[AD_CHAIN_OUTPUTS];
    ad_chain_random random[AD_CHAIN_RANDOMS];
    ad_chain_end end;
} ad_chain;

/* The value that the end takes is an output, too. A scan by itself then reads what the chain has written, and no other
 * memory is needed. */
static inline bool ad_chain_keeps(const ad_chain *c) {
    for (int i = 0; i < c->noutputs; i++)
        if (c->output[i].from.index == c->end.from.index && c->output[i].from.part == c->end.from.part) return true;
    return false;
}

#ifdef __cplusplus
}
#endif
#endif
