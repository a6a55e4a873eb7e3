/* matmul: layouts and batches. The products themselves are in call_matmul_blas.cu and loops.cu. */
#include "kernels/cuda/call/matmul/matmul.h"

#include <initializer_list>

#include "kernels/cuda/backend/device.h"
#include "kernels/cuda/list/list.h"

namespace {

using namespace ad;

ad_cuda_matrix matrix_of(const array *a) {
    const int r = a->ndim - 2, k = a->ndim - 1;
    return {a->data, a->shape[r], a->shape[k], a->stride[r], a->stride[k]};
}

/* The product without its batch. */
ad_cuda_product describe_product(const array *a, const array *b, const array *out) {
    ad_cuda_product p;
    p.dtype = out->dtype;
    p.a = matrix_of(a);
    p.b = matrix_of(b);
    p.c = matrix_of(out);
    return p;
}

ad_cuda_matrix transposed(const ad_cuda_matrix &m) { return {m.data, m.columns, m.rows, m.column_step, m.row_step}; }

bool by_blas(int dtype) {
    switch (dtype) {
    case AD_FLOAT16:
    case AD_BFLOAT16:
    case AD_FLOAT32:
    case AD_FLOAT64:
    case AD_COMPLEX64:
    case AD_COMPLEX128: return true;
    default: return false;
    }
}

bool by_rows(const ad_cuda_matrix &m, int64_t size) {
    return (m.columns == 1 || m.column_step == size) && (m.rows == 1 || m.row_step >= m.columns * size);
}

int zero(ad_call *c, const array *out) {
    static const char nothing[16] = {};
    array from = *out;
    int status;
    if (!(from.data = static_cast<char *>(ad_call_workspace(c, 16)))) return AD_E_MEMORY;
    if ((status = ad__call_store(c, from.data, nothing, int(itemsize(out->dtype))))) return status;
    for (int i = 0; i < from.ndim; i++) from.stride[i] = 0;
    return ad_call_copy(c, out, &from);
}

/* Make the result's rows contiguous. Where its columns are, the transposed product is computed (returns 1). Where
 * neither is, *out becomes scratch memory. */
int lay_out(ad_call *c, ad_cuda_product *p, array *out) {
    const int64_t size = itemsize(out->dtype);
    const bool takes = ad_cuda_matmul_takes(out);
    p->c = matrix_of(out);
    if (takes && by_rows(p->c, size)) return 0;
    if (takes) {
        const ad_cuda_matrix a = p->a;
        p->a = transposed(p->b);
        p->b = transposed(a);
        p->c = transposed(p->c);
        return 1;
    }
    const int64_t bytes = pack(out);
    out->data = static_cast<char *>(ad_call_workspace(c, uint64_t(bytes)));
    p->c = matrix_of(out);
    return !out->data ? AD_E_MEMORY : 0;
}

/* Make the product an item of the stream's list: 1. 0: it is none, as those of more than one pair of matrices. */
int try_list(ad_call *c, const array *a, const array *b, const array *out) {
    ad_cuda_product p = describe_product(a, b, out);
    for (int i = 0; i < out->ndim - 2; i++) p.batch.add(out->shape[i], {0, 0, 0});
    const int listed = ad_cuda_list_product(c, &p);
    if (listed > 0) c->run->wrote = true;
    return listed;
}

int multiply(ad_call *c, array *a, array *b, array *out) {
    const bool blas = by_blas(out->dtype);
    const int ndim = out->ndim;
    const int listed = try_list(c, a, b, out);
    int status;
    if (listed != 0) return listed > 0 ? 0 : listed;
    if (blas)
        for (array *x : {a, b})
            if (!ad_cuda_matmul_takes(x) && (status = ad_call_packed(c, x, x->dtype, x->ndim - 2, x))) return status;
    ad_cuda_product p = describe_product(a, b, out);
    const int flipped = blas ? lay_out(c, &p, out) : 0;
    if (flipped < 0) return flipped;
    const array *first = flipped ? b : a, *second = flipped ? a : b;
    for (int i = 0; i < ndim - 2; i++)
        p.batch.add(out->shape[i],
                    {out->stride[i], broadcast_stride(*first, i, ndim), broadcast_stride(*second, i, ndim)});
    c->run->wrote = true;
    return blas ? ad_cuda_matmul_blas(c, &p) : ad_cuda_matmul_loops(c, &p);
}

} // namespace

int ad_call_matmul(ad_call *c) {
    const int dtype = c->op->loop;
    array a, b, out;
    int status;
    if ((status = ad_call_input(c, 0, dtype, &a)) || (status = ad_call_input(c, 1, dtype, &b)) ||
        (status = ad_call_output(c, 0, dtype, &out)))
        return status;
    if (count(out) == 0) return 0;
    if (a.shape[a.ndim - 1] == 0) {
        c->run->wrote = true;
        if ((status = zero(c, &out))) return status;
    } else if ((status = multiply(c, &a, &b, &out))) return status;
    return ad_call_finish(c, 0, &out);
}
