/* Lists: small operations of a stream that run one after the other in one block of threads, by one launch.
 *
 *     run     x @ m   y[0] = x[1]   y.sum(0)   y * 0.5      sort
 *     list    [product][copy        ][fold    ][ufunc ]  ──▶ launched before anything else goes to the stream
 *
 * A launch takes its caller 2 to 4 us, and a kernel that waits for the one before takes 1 to 2 us of the device. Most
 * small operations need less. So an operation that is small enough becomes an item of its stream's list, which is
 * complete: all addresses, sizes and numbers are in it, and nothing is recognised or kept from one list to the next.
 * Each other use of the stream launches its list first (backend.cpp), so the order is that of the calls. */
#ifndef AD_KERNELS_CUDA_LIST_LIST_H
#define AD_KERNELS_CUDA_LIST_LIST_H

#include "kernels/cuda/backend/device.h"
#include "kernels/cuda/call/matmul/matmul.h"
#include "kernels/cuda/reduce/plan.h"
#include "kernels/cuda/ufunc/plan.h"

#define AD_LIST_BYTES 4064 /* of items: what a kernel can be given is 4 KiB */
#define AD_LIST_ITEMS 24   /* most items: the device begins with them while the next ones are being put together */
#define AD_LIST_DIMS 3     /* of an elementwise item */

enum { AD_LIST_UFUNC, AD_LIST_PRODUCT, AD_LIST_FOLD };

/* type: dtype of the loop. bytes: of the item, a multiple of 8. */
typedef struct ad_list_head {
    uint8_t kind, type;
    uint16_t bytes;
} ad_list_head;

/* The output, then the inputs. Strides are in bytes, outermost first, and those of missing dimensions are 0. */
typedef struct ad_list_ufunc {
    ad_list_head head;
    uint32_t count;
    uint16_t row;
    uint8_t nin, scalars; /* scalars: bit k: operand k is a value of 8 bytes, in place of its address */
    bool truth;           /* the output is of bool */
    ad_ufunc_divider dim[AD_LIST_DIMS - 1]; /* sizes of the inner dimensions */
    int32_t stride[3][AD_LIST_DIMS];
    uint64_t base[3];
} ad_list_ufunc;

/* c = a b; steps in bytes. */
typedef struct ad_list_product {
    ad_list_head head;
    int32_t rows, columns, depth;
    int32_t c_row, c_column, a_row, a_column, b_row, b_column;
    char *c;
    const char *a, *b;
} ad_list_product;

/* Followed by `fold` without its axes, and by its nkeep and nover axes, at least one of each. */
typedef struct alignas(8) ad_list_fold {
    ad_list_head head;
    uint8_t family, way;
    uint32_t groups;
} ad_list_fold;

/* A list as its kernel is given it. */
typedef struct ad_list {
    uint32_t bytes, items;
    alignas(8) char data[AD_LIST_BYTES];
} ad_list;

/* kernel.cu: __global__ void (ad_list), one block of AD_FOLD_THREADS threads. */
const void *ad_cuda_list_kernel();
/* Tell whether it has a row for elements of a type. */
bool ad_cuda_list_has(int row, int dtype);

/* ---- list.cpp ---- */

/* Begin an operation. Its first launch is offered to the list where the operation can be an item; otherwise the list is
 * launched now. */
int ad_cuda_list_begin(ad_stream *stream, const ad_op *op, ad_fault *fault);
/* Each makes an item of what it is given: 1. 0: it does not, and the list has been launched, so the caller may launch.
 * Negative: *fault is filled. */
int ad_cuda_list_ufunc(const ad_ufunc_plan *p);
int ad_cuda_list_product(ad_call *c, const ad_cuda_product *p);
int ad_cuda_list_fold(ad_call *c, const ad_fold *f, int family, int way, int input, int64_t groups);

#endif
