/* The .def tables as data. A row is found by its wire id in constant time; NULL: no row has that id. */
#ifndef AD_PROTOCOL_TABLES_H
#define AD_PROTOCOL_TABLES_H

#include "protocol/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets of dtypes: bit (1 << dtype). */
#define AD_BIT(d) (1u << (d))
#define AD_M_BOOL AD_BIT(AD_BOOL)
#define AD_M_SIGNED (AD_BIT(AD_INT8) | AD_BIT(AD_INT16) | AD_BIT(AD_INT32) | AD_BIT(AD_INT64))
#define AD_M_UNSIGNED (AD_BIT(AD_UINT8) | AD_BIT(AD_UINT16) | AD_BIT(AD_UINT32) | AD_BIT(AD_UINT64))
#define AD_M_INT (AD_M_SIGNED | AD_M_UNSIGNED)
#define AD_M_WIDEINT (AD_BIT(AD_INT64) | AD_BIT(AD_UINT64))
#define AD_M_FLOAT (AD_BIT(AD_FLOAT16) | AD_BIT(AD_BFLOAT16) | AD_BIT(AD_FLOAT32) | AD_BIT(AD_FLOAT64))
#define AD_M_COMPLEX (AD_BIT(AD_COMPLEX64) | AD_BIT(AD_COMPLEX128))
#define AD_M_WIDE (AD_BIT(AD_FLOAT64) | AD_BIT(AD_COMPLEX128))
#define AD_M_NUMBER (AD_M_INT | AD_M_FLOAT | AD_M_COMPLEX)
#define AD_M_ALL (AD_M_BOOL | AD_M_NUMBER)

/* Values of a rule's integer fallback that are not dtypes. */
#define AD_NO_DTYPE 255 /* no fallback: the first loop that is safe */
#define AD_NEVER 254    /* bool has no loop: TypeError. Integers are in the mask of such rules */
#define AD_SUMINT 253   /* bool and signed integers: int64; unsigned: uint64 */

/* The type of an operand, as a function of the loop's type. */
typedef enum ad_code {
    AD_CODE_N,
    AD_CODE_T,
    AD_CODE_R,
    AD_CODE_B,
    AD_CODE_W,
    AD_CODE_L,
    AD_CODE_U /* uint8 */
} ad_code;

typedef struct ad_rule_row {
    const char *name;
    uint32_t loops;        /* AD_M_* */
    uint8_t fallback;      /* a dtype, AD_NO_DTYPE, AD_NEVER or AD_SUMINT */
    uint8_t in[3], out[2]; /* ad_code */
} ad_rule_row;

enum {
#define AD_RULE(NAME, loops, fallback, i0, i1, i2, o0, o1) AD_RULE_##NAME,
#include "rule.def"
#undef AD_RULE
    AD_NRULE,
};
extern const ad_rule_row ad__rules[AD_NRULE];

typedef struct ad_dtype_row {
    const char *name;
    uint8_t size;
    char kind, letter;
} ad_dtype_row;
extern const ad_dtype_row ad__dtypes[AD_NDTYPE];

typedef struct ad_ufunc_row {
    const char *name, *domain, *test, *doc, *expression;
    uint8_t nin, nout, rule;
    uint32_t cost;
    uint16_t traits; /* AD_U_... of rows.h */
} ad_ufunc_row;
const ad_ufunc_row *ad__ufunc(uint64_t id);

typedef enum ad_empty_kind {
    AD_EMPTY_IDENTITY,
    AD_EMPTY_NAN,
    AD_EMPTY_ERROR
} ad_empty_kind; /* not ad_empty, which is a function of arrayd.h */
/* Kernels of kernels/cuda/reduce that take whole arrays. */
typedef enum ad_reduction_kernel {
    AD_KERNEL_GENERAL, /* none */
    AD_KERNEL_SUM,
    AD_KERNEL_NANSUM,
    AD_KERNEL_PRODUCT,
    AD_KERNEL_ANY,
    AD_KERNEL_ALL,
    AD_KERNEL_COUNT,
    AD_KERNEL_SPREAD,
    AD_KERNEL_EXTREME,
} ad_reduction_kernel;
typedef struct ad_reduction_row {
    const char *name, *domain, *doc;
    uint8_t rule, empty, plain, kernel; /* ad_empty_kind, a row, ad_reduction_kernel */
    uint16_t traits;                    /* AD_F_... of rows.h */
    const char *method;
} ad_reduction_row;
const ad_reduction_row *ad__reduction(uint64_t id);

typedef enum ad_call_kind { AD_CALL_OP, AD_CALL_UPDATE, AD_CALL_ASK } ad_call_kind;
typedef enum ad_call_work {
    AD_WORK_EACH,
    AD_WORK_GATHER,
    AD_WORK_LINE,
    AD_WORK_RUNNING,
    AD_WORK_OFFSETS,
    AD_WORK_CHOICES,
    AD_WORK_NEIGHBOURS,
    AD_WORK_SECTIONS,
    AD_WORK_SPARSE,
    AD_WORK_PAIRS,
    AD_WORK_SAMPLE,
    AD_WORK_PRODUCT,
    AD_WORK_MATRIX
} ad_call_work;
typedef struct ad_call_row {
    const char *name, *params, *guard, *doc;
    uint8_t nout, nin_min, nin_max, kind; /* ad_call_kind */
    uint8_t work, cost;                   /* ad_call_work; its unit depends on that */
    uint8_t infer;                        /* index for ad__infer_call */
} ad_call_row;
const ad_call_row *ad__call(uint64_t id);

typedef enum ad_class { AD_CLASS_HELLO, AD_CLASS_OP, AD_CLASS_ASK, AD_CLASS_TELL } ad_class;
/* Conditions on a message's fields together: each is a function of check_row.c. */
typedef enum ad_request_check {
    AD_CHECK_PLAIN,     /* nothing */
    AD_CHECK_FRESH,     /* the described array is created */
    AD_CHECK_ARRAY,     /* the operand is not a scalar */
    AD_CHECK_OPERATION, /* the fields are those of an operation: row, type, outputs, inputs, parameters */
    AD_CHECK_LAUNCH,    /* the fields are those of a launch */
    AD_CHECK_KERNEL_SET,
    AD_NCHECK,
} ad_request_check;
/* Estimates of a message's time by a worker: each is a row of device/cost.c of the worker. */
typedef enum ad_request_cost {
    AD_COST_NONE,      /* the message is none of OP and ASK */
    AD_COST_SMALL,     /* a constant */
    AD_COST_OPERATION, /* the operation */
    AD_COST_CALL,      /* the library call */
    AD_COST_QUERY,     /* the library call, for which the host waits */
    AD_COST_LAUNCH,    /* a kernel of the user's */
    AD_COST_FILL,      /* the elements of the array, once */
    AD_COST_COPY,      /* the elements of the array, twice */
    AD_COST_PAYLOAD,   /* the bytes of the frame's payload */
    AD_COST_LOAD,      /* the bytes that the last field says */
    AD_NCOST,
} ad_request_cost;
/* Decisions of a worker before and after it executes a message. */
enum {
    AD_R_OUTPUT = 1,              /* what the message writes carries its failure */
    AD_R_PAYLOAD = 2,             /* the frame's payload belongs to it, and it is the last one of its frame */
    AD_R_DESCRIPTOR = 4,          /* a descriptor comes with its frame */
    AD_R_MODULE = 8,              /* its first number (after the request id) is a module, which must be built */
    AD_R_REPEATABLE = 16,         /* another worker may execute it again, if all its outputs are created by it */
    AD_R_OVERTAKES = 32,          /* it may take effect before queued operations that do not concern it */
    AD_R_ALLOCATES = 64,          /* it may do so too, unless they would give memory back */
    AD_R_SETTLED = 128,           /* it is executed when all before it is complete and committed */
    AD_R_OWN_WORKER = 256,        /* only a principal with a worker of its own may send it */
    AD_R_HANDLE_OWN_WORKER = 512, /* so if its third number says that memory goes by a handle */
    AD_R_USER_SOURCE = 1024,      /* it brings source of the user's */
    AD_R_USER_KERNEL = 2048,      /* it runs a kernel of the user's, which is to blame if the worker ends */
    AD_R_SECRET_REPLY = 4096,     /* its reply has values that nobody may read in a trace */
    AD_R_CHOOSES = 8192,          /* it chooses where what follows is executed, which concerns no queued operation */
};
typedef struct ad_request_row {
    const char *name, *fields, *words, *doc;
    uint16_t flags;           /* AD_R_... */
    uint8_t cls, check, cost; /* ad_class, ad_request_check, ad_request_cost */
} ad_request_row;
const ad_request_row *ad__request(uint64_t id);

#ifdef __cplusplus
}
#endif
#endif
