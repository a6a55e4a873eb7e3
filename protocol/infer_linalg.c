/* Type and shape rules of the matrix decompositions and of the solvers. Matrices are the last two axes. */
#include "protocol/desc.h"
#include "protocol/infer_call.h"

static int get_real_type(int dtype) { return dtype == AD_COMPLEX64 || dtype == AD_FLOAT32 ? AD_FLOAT32 : AD_FLOAT64; }

static int get_complex_type(int dtype) { return get_real_type(dtype) == AD_FLOAT32 ? AD_COMPLEX64 : AD_COMPLEX128; }

static int64_t get_smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static int check_linalg_loop(const ad_op *op, ad_fault *fault) {
    switch (op->loop) {
    case AD_FLOAT32:
    case AD_FLOAT64:
    case AD_COMPLEX64:
    case AD_COMPLEX128: return 0;
    default:
        return ad__fault(fault, AD_E_TYPE, "%s: there is no loop for %s", ad__op_name(op), ad__dtypes[op->loop].name);
    }
}

/* Get input i, which must be a stack of matrices. AD_E_TYPE, AD_E_VALUE. */
static int check_matrices(const ad_op *op, int i, const ad_desc **out, ad_fault *fault) {
    int status = ad__array_input(op, i, out, fault);

    if (!status) status = check_linalg_loop(op, fault);
    if (!status && (*out)->ndim < 2) return ad__bad_shape(op, i, "must have at least two dimensions", fault);
    return status;
}

static int check_squares(const ad_op *op, const ad_desc **out, ad_fault *fault) {
    int status = check_matrices(op, 0, out, fault);

    if (!status && (*out)->shape[(*out)->ndim - 1] != (*out)->shape[(*out)->ndim - 2])
        return ad__bad_shape(op, 0, "must have square matrices as its last two dimensions", fault);
    return status;
}

static int64_t count_rows(const ad_desc *x) { return x->shape[x->ndim - 2]; }
static int64_t count_columns(const ad_desc *x) { return x->shape[x->ndim - 1]; }

/* Set a result that has a matrix of rows by columns for each matrix of x. */
static void set_matrices(ad_result *result, int dtype, const ad_desc *x, int64_t rows, int64_t columns) {
    ad__set_result(result, dtype, x->ndim, x->shape);
    result->shape[x->ndim - 2] = rows;
    result->shape[x->ndim - 1] = columns;
}

/* Set a result that has a vector for each matrix of x. */
static void set_vectors(ad_result *result, int dtype, const ad_desc *x, int64_t length) {
    ad__set_result(result, dtype, x->ndim - 1, x->shape);
    result->shape[x->ndim - 2] = length;
}

int ad__infer_square(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_desc *x;
    int status = check_squares(op, &x, fault);

    if (!status) ad__set_result(result, op->loop, x->ndim, x->shape);
    return status;
}

int ad__infer_qr(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_desc *x;
    int status = check_matrices(op, 0, &x, fault);

    if (!status) {
        const int64_t m = count_rows(x), n = count_columns(x), k = op->param[0].as.b ? m : get_smaller(m, n);
        set_matrices(&result[0], op->loop, x, m, k);
        set_matrices(&result[1], op->loop, x, k, n);
    }
    return status;
}

int ad__infer_qr_raw(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_desc *x;
    int status = check_matrices(op, 0, &x, fault);

    if (!status) {
        set_matrices(&result[0], op->loop, x, count_columns(x), count_rows(x));
        set_vectors(&result[1], op->loop, x, get_smaller(count_rows(x), count_columns(x)));
    }
    return status;
}

int ad__infer_svd(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_desc *x;
    int status = check_matrices(op, 0, &x, fault);

    if (!status) {
        const int64_t m = count_rows(x), n = count_columns(x), k = get_smaller(m, n);
        const bool full = op->param[0].as.b;
        set_matrices(&result[0], op->loop, x, m, full ? m : k);
        set_vectors(&result[1], get_real_type(op->loop), x, k);
        set_matrices(&result[2], op->loop, x, full ? n : k, n);
    }
    return status;
}

int ad__infer_svdvals(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_desc *x;
    int status = check_matrices(op, 0, &x, fault);

    if (!status) set_vectors(result, get_real_type(op->loop), x, get_smaller(count_rows(x), count_columns(x)));
    return status;
}

int ad__infer_eigh(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_desc *x;
    int status = check_squares(op, &x, fault);

    if (!status) {
        set_vectors(&result[0], get_real_type(op->loop), x, count_rows(x));
        ad__set_result(&result[1], op->loop, x->ndim, x->shape);
    }
    return status;
}

int ad__infer_eigvalsh(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_desc *x;
    int status = check_squares(op, &x, fault);

    if (!status) set_vectors(result, get_real_type(op->loop), x, count_rows(x));
    return status;
}

int ad__infer_eigvals(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_desc *x;
    int status = check_squares(op, &x, fault);

    if (!status) set_vectors(result, get_complex_type(op->loop), x, count_rows(x));
    return status;
}

int ad__infer_eig(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_desc *x = &op->operand[op->nout].desc;
    int status = ad__infer_eigvals(op, result, fault);

    if (!status) ad__set_result(&result[1], get_complex_type(op->loop), x->ndim, x->shape);
    return status;
}

int ad__infer_solve(const ad_op *op, ad_result *result, ad_fault *fault) {
    ad_operand stacks[2] = {{0}};
    const ad_operand *operands[2] = {&stacks[0], &stacks[1]};
    const ad_desc *a, *b;
    int64_t shape[AD_MAX_NDIM];
    int ndim, status = check_squares(op, &a, fault);

    if (!status) status = check_matrices(op, 1, &b, fault);
    if (!status && count_rows(b) != count_rows(a))
        status = ad__bad_shape(op, 1, "must have as many rows as input 0", fault);
    if (status) return status;
    stacks[0].desc = *a;
    stacks[1].desc = *b;
    stacks[0].desc.ndim -= 2;
    stacks[1].desc.ndim -= 2;
    status = ad__broadcast(2, operands, &ndim, shape, fault);
    if (status) return status;
    ad__set_result(result, op->loop, ndim, shape);
    result->shape[ndim] = count_rows(b);
    result->shape[ndim + 1] = count_columns(b);
    result->ndim = (uint8_t)(ndim + 2);
    return 0;
}

int ad__infer_lu(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_desc *x;
    int status = check_matrices(op, 0, &x, fault);

    if (!status) {
        ad__set_result(&result[0], op->loop, x->ndim, x->shape);
        set_vectors(&result[1], AD_INT64, x, get_smaller(count_rows(x), count_columns(x)));
    }
    return status;
}

int ad__infer_slogdet(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_desc *x;
    int status = check_squares(op, &x, fault);

    if (!status) {
        ad__set_result(&result[0], op->loop, x->ndim - 2, x->shape);
        ad__set_result(&result[1], get_real_type(op->loop), x->ndim - 2, x->shape);
    }
    return status;
}

static int check_matrix(const ad_op *op, int i, const ad_desc **out, ad_fault *fault) {
    int status = check_matrices(op, i, out, fault);

    if (!status && (*out)->ndim != 2) return ad__bad_shape(op, i, "must have two dimensions", fault);
    return status;
}

int ad__infer_lstsq(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_desc *a, *b;
    int status = check_matrix(op, 0, &a, fault);

    if (!status) status = check_matrix(op, 1, &b, fault);
    if (!status && count_rows(b) != count_rows(a))
        status = ad__bad_shape(op, 1, "must have as many rows as input 0", fault);
    if (!status) {
        const int64_t rank = 0;
        set_matrices(&result[0], op->loop, a, count_columns(a), count_columns(b));
        ad__set_result(&result[1], AD_INT64, 0, &rank);
        set_vectors(&result[2], get_real_type(op->loop), a, get_smaller(count_rows(a), count_columns(a)));
    }
    return status;
}
