/* Chains of elementwise operations as kernels of their own. Their source is made from the rows of ufunc.def, compiled
 * at run time by the device's compiler, and kept by the signature of the chain.
 *
 * A chain is made ready once (ad_fuse_plan_make). Its operands' dimensions are brought into a good order and joined,
 * and the form that its kernel needs is chosen. Signature and source are functions of chain and form alone. The rest of
 * a launch (addresses, sizes, strides, scalars) is the kernel's argument. source.cpp, plan.cpp and headers.cpp need no
 * CUDA. So they can be tested without it. */
#ifndef AD_KERNELS_CUDA_FUSE_FUSE_H
#define AD_KERNELS_CUDA_FUSE_FUSE_H

#include <string>

#include "kernels/chain.h"
#include "kernels/compile.h"
#include "kernels/cuda/call/scan/scan.h"
#include "kernels/cuda/fuse/argument.h"

#define AD_FUSE_OUTPUTS (AD_CHAIN_OUTPUTS + 1) /* the last: what the chain's end takes */
#define AD_FUSE_OPERANDS (AD_FUSE_OUTPUTS + AD_CHAIN_INPUTS + AD_CHAIN_RANDOMS)
#define AD_FUSE_SCALARS 64 /* uses of scalars, each in the type it is used in */
#define AD_FUSE_KEY 2048   /* bytes of a signature, at most */
#define AD_FUSE_KERNEL "ad_fused"

/* Layouts of a row of an operand. RANDOM: it lies nowhere, and its elements are made (random.cuh). */
enum { AD_FUSE_PACKED, AD_FUSE_APART, AD_FUSE_ONE, AD_FUSE_RANDOM };
/* The headers that a kernel's source includes besides those that all include. */
enum { AD_FUSE_WITH_RANDOM = 1, AD_FUSE_WITH_END = 2, AD_FUSE_WITH_SCAN = 4 };
/* Ends that are scans, besides AD_FOLD_SUMS ... */
enum { AD_FUSE_SCAN_SUM = 64, AD_FUSE_SCAN_PRODUCT };

/* A chain's end whose kernel computes what it takes. It says which states or scan it has (AD_FOLD_SUMS ...,
 * AD_FUSE_SCAN_SUM ...; AD_FOLD_NO_FAMILY: there is no such end) and how elements would be read (AD_FOLD_UNIT ...,
 * AD_SCAN_TILED ...). It also has the operation's types: the type that it reads, and the one that it computes in. */
typedef struct ad_fuse_end {
    uint8_t family, way, input, loop;
} ad_fuse_end;

/* Outputs, inputs, then random sources. The part of a plan that the kernel's source depends on. */
typedef struct ad_fuse_form {
    int nout, nin, nrandoms, nscalars;
    ad_fuse_end end;      /* then there is one output, the value that it takes, and it is not stored */
    uint8_t outer;        /* dimensions outside the rows */
    uint8_t width;        /* elements of a chunk */
    uint8_t step, unroll; /* elements computed at a time; chunks of a thread */
    bool ragged;          /* the last chunk of a row need not be whole */
    bool tiled;           /* blocks have tiles of the two last dimensions */
    uint8_t dtype[AD_FUSE_OPERANDS], place[AD_FUSE_OPERANDS];
    uint8_t random[AD_CHAIN_RANDOMS]; /* rows of distribution.def */
    ad_source from[AD_FUSE_OUTPUTS];  /* of outputs */
} ad_fuse_form;

typedef struct ad_fuse_plan {
    ad_fuse_form form;
    uint32_t blocks;
    uint8_t scalar[AD_FUSE_SCALARS], scalar_dtype[AD_FUSE_SCALARS]; /* scalars of the chain, and their types */
    /* The kernel's argument. Its scalars follow its last operand, wherever that is, and two more for each random
     * source (ad_fuse_random_value). */
    ad_fuse_head head;
    ad_fuse_operand operand[AD_FUSE_OPERANDS];
    ad_fuse_scalar room[AD_FUSE_SCALARS + 2 * AD_CHAIN_RANDOMS];
} ad_fuse_plan;

static inline bool ad_fuse_scans(const ad_fuse_form *f) { return f->end.family >= AD_FUSE_SCAN_SUM; }
static inline int ad_fuse_operands(const ad_fuse_form *f) { return f->nout + f->nin + f->nrandoms; }
static inline int ad_fuse_scalars(const ad_fuse_form *f) { return f->nscalars + 2 * f->nrandoms; }
int ad_fuse_includes(const ad_fuse_form *form); /* AD_FUSE_WITH_... */

/* False: not for one kernel of ours. The last output of a chain with an end is what that takes, row-major; its base
 * is for the caller to set, and so are the scalars. */
bool ad_fuse_plan_make(const ad_chain *chain, int multiprocessors, ad_fuse_plan *plan);
/* Make the plan of a chain whose only result goes into its end. whole: the end reads nothing but whole chunks. */
bool ad_fuse_plan_end(const ad_chain *chain, const ad_fuse_end *end, bool whole, ad_fuse_plan *plan);
/* The rows that have no kernel here: complex functions of libcu++, which compiles for most of a second. */
bool ad_fuse_has_row(int row, int loop);
/* About how many instructions an element costs. */
int ad_fuse_weight(const ad_chain *chain);
/* The dtype that a node wants its input k in. */
int ad_fuse_wants(const ad_chain_node *node, int k);

/* Bytes written to key, which tell kernels apart; 0: too many. */
int ad_fuse_signature(const ad_chain *chain, const ad_fuse_form *form, uint8_t *key);
std::string ad_fuse_source(const ad_chain *chain, const ad_fuse_form *form);
/* Describe the compiler's job; source must stay. includes: of its form. */
void ad_fuse_job(const char *source, size_t size, const char *arch, int includes, ad_compile_job *job);
const ad_compile_header *ad_fuse_headers(int includes, size_t *count);

#endif
