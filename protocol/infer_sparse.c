/* Type and shape rules of the calls on sparse matrices, whose numbers lie in arrays of the client's choice. A matrix in
 * CSR format is data (nnz), indices (nnz) and indptr (rows + 1). indices and indptr have one type, int32 or int64. */
#include "protocol/infer_call.h"

#include <inttypes.h>

#include "protocol/size.h"
#include "protocol/sparse.h"

static int check_sparse_loop(const ad_op *op, bool integers, ad_fault *fault) {
    const uint64_t loops = AD_BIT(AD_FLOAT32) | AD_BIT(AD_FLOAT64) | AD_BIT(AD_COMPLEX64) | AD_BIT(AD_COMPLEX128) |
                           (integers ? AD_BIT(AD_INT64) : 0);

    if (loops & AD_BIT(op->loop)) return 0;
    return ad__fault(fault, AD_E_TYPE, "%s: there is no loop for %s", ad__op_name(op), ad__dtypes[op->loop].name);
}

/* Get input i, which must be an array of one dimension. AD_E_TYPE, AD_E_VALUE. */
static int get_vector_input(const ad_op *op, int i, const ad_desc **out, ad_fault *fault) {
    int status = ad__array_input(op, i, out, fault);

    if (!status && (*out)->ndim != 1) return ad__bad_shape(op, i, "must have one dimension", fault);
    return status;
}

/* Check the three arrays of a matrix, which are inputs first, first + 1 and first + 2. AD_E_TYPE, AD_E_VALUE. */
static int check_csr_inputs(const ad_op *op, int first, int64_t *rows, ad_fault *fault) {
    const ad_desc *data, *indices, *indptr;
    int status = get_vector_input(op, first, &data, fault);

    if (!status) status = get_vector_input(op, first + 1, &indices, fault);
    if (!status) status = get_vector_input(op, first + 2, &indptr, fault);
    if (status) return status;
    if (indices->dtype != AD_INT32 && indices->dtype != AD_INT64)
        return ad__fault(fault, AD_E_TYPE, "%s: input %d must be of type int32 or int64, not %s", ad__op_name(op),
                         first + 1, ad__dtypes[indices->dtype].name);
    if (indptr->dtype != indices->dtype)
        return ad__fault(fault, AD_E_TYPE, "%s: input %d must be of type %s, as input %d is, not %s", ad__op_name(op),
                         first + 2, ad__dtypes[indices->dtype].name, first + 1, ad__dtypes[indptr->dtype].name);
    if (data->shape[0] != indices->shape[0]) return ad__bad_shape(op, first + 1, "must be as long as the data", fault);
    if (indptr->shape[0] < 1) return ad__bad_shape(op, first + 2, "must have at least one element", fault);
    *rows = indptr->shape[0] - 1;
    return 0;
}

/* Check the loop, and the matrix that the first inputs are. AD_E_TYPE, AD_E_VALUE. */
static int check_loop_and_matrix(const ad_op *op, bool integers, int64_t *rows, ad_fault *fault) {
    const int status = check_sparse_loop(op, integers, fault);

    return status ? status : check_csr_inputs(op, 0, rows, fault);
}

/* Check that the indices of a second matrix, inputs 3 to 5, have the first one's type. AD_E_TYPE. */
static int check_same_indices(const ad_op *op, ad_fault *fault) {
    const uint8_t index = op->operand[op->nout + 1].desc.dtype, other = op->operand[op->nout + 4].desc.dtype;

    if (other == index) return 0;
    return ad__fault(fault, AD_E_TYPE, "%s: input 4 must be of type %s, as input 1 is, not %s", ad__op_name(op),
                     ad__dtypes[index].name, ad__dtypes[other].name);
}

/* Set the results of a call that replies a matrix of an unknown number of entries. */
static void set_csr_results(const ad_op *op, uint8_t dtype, ad_result *result) {
    const uint8_t index = op->operand[op->nout + 1].desc.dtype;

    ad__set_result(&result[0], dtype, 0, NULL);
    ad__set_result(&result[1], index, 0, NULL);
    ad__set_result(&result[2], index, 0, NULL);
}

/* Get the dense operand, input i: one vector, or several as the columns of a matrix. AD_E_TYPE, AD_E_VALUE. */
static int get_dense_input(const ad_op *op, int i, const ad_desc **out, ad_fault *fault) {
    int status = ad__array_input(op, i, out, fault);

    if (!status && (*out)->ndim != 1 && (*out)->ndim != 2)
        return ad__bad_shape(op, i, "must have one or two dimensions", fault);
    return status;
}

int ad__infer_spmm(const ad_op *op, ad_result *result, ad_fault *fault) {
    const int64_t length = op->param[0].as.i;
    const bool transposed = op->param[1].as.b;
    const ad_desc *x;
    int64_t rows;
    int status = check_loop_and_matrix(op, true, &rows, fault);

    if (!status) status = get_dense_input(op, 3, &x, fault);
    if (status) return status;
    if (length < 0 || (!transposed && length != rows))
        return ad__fault(fault, AD_E_VALUE, "spmm: the result cannot have %" PRId64 " rows: the matrix has %" PRId64,
                         length, rows);
    if (transposed && x->shape[0] != rows)
        return ad__bad_shape(op, 3, "must have as many rows as the matrix that is transposed", fault);
    ad__set_result(result, op->loop, x->ndim, x->shape);
    result->shape[0] = length;
    return 0;
}

int ad__infer_sptrsm(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_desc *b;
    int64_t rows;
    int status = check_loop_and_matrix(op, false, &rows, fault);

    if (!status) status = get_dense_input(op, 3, &b, fault);
    if (status) return status;
    if (b->shape[0] != rows) return ad__bad_shape(op, 3, "must have as many rows as the matrix", fault);
    ad__set_result(result, op->loop, b->ndim, b->shape);
    return 0;
}

/* The product's entries have the first matrix's type of indices. Their places are numbered, row by row, in 64 bits. */
int ad__infer_spgemm(const ad_op *op, ad_result *result, ad_fault *fault) {
    const int64_t columns = op->param[0].as.i;
    int64_t rows, middle;
    int status = check_loop_and_matrix(op, true, &rows, fault);

    if (!status) status = check_csr_inputs(op, 3, &middle, fault);
    if (!status) status = check_same_indices(op, fault);
    if (status) return status;
    const uint8_t index = op->operand[op->nout + 1].desc.dtype;
    if (columns < 0 || columns > INT64_C(1) << 32 || (index == AD_INT32 && (columns > INT32_MAX || rows >= INT32_MAX)))
        return ad__fault(fault, AD_E_VALUE,
                         "spgemm: a product of %" PRId64 " rows and %" PRId64
                         " columns is not possible with indices of "
                         "type %s: at most 2^32 columns, and what the type holds",
                         rows, columns, ad__dtypes[index].name);
    if (ad__size_product(rows, columns) == INT64_MAX)
        return ad__fault(fault, AD_E_VALUE, "spgemm: %" PRId64 " rows and %" PRId64 " columns have 2^63 places or more",
                         rows, columns);
    set_csr_results(op, op->loop, result);
    return 0;
}

int ad__infer_ilu0(const ad_op *op, ad_result *result, ad_fault *fault) {
    int64_t rows;
    const int status = check_loop_and_matrix(op, false, &rows, fault);

    if (status) return status;
    ad__set_result(&result[0], op->loop, 1, op->operand[op->nout].desc.shape);
    ad__set_result(&result[1], AD_INT64, 0, NULL);
    return 0;
}

int ad__infer_spunion(const ad_op *op, ad_result *result, ad_fault *fault) {
    const int64_t function = op->param[0].as.i;
    int64_t rows, others;
    int status = op->loop == AD_UINT64 ? 0 : check_sparse_loop(op, true, fault);

    if (!status) status = check_csr_inputs(op, 0, &rows, fault);
    if (!status) status = check_csr_inputs(op, 3, &others, fault);
    if (!status) status = check_same_indices(op, fault);
    if (status) return status;
    if (rows != others) return ad__bad_shape(op, 5, "must have as many rows as the first matrix", fault);
    if (function < 0 || function >= AD_UNIONS)
        return ad__fault(fault, AD_E_VALUE, "spunion: there is no function %" PRId64 ": they have the numbers 0 to %d",
                         function, AD_UNIONS - 1);
    set_csr_results(op, ad__union_compares(function) ? AD_BOOL : op->loop, result);
    return 0;
}

int ad__infer_sptranspose(const ad_op *op, ad_result *result, ad_fault *fault) {
    int64_t columns = op->param[0].as.i, rows;
    int status = check_csr_inputs(op, 0, &rows, fault);

    if (status) return status;
    const ad_desc *data = &op->operand[op->nout].desc;
    const uint8_t index = op->operand[op->nout + 1].desc.dtype;
    const int64_t most = index == AD_INT32 ? INT32_MAX : INT64_MAX - 1;
    if (columns < 0 || columns > most || rows > most || data->shape[0] > most)
        return ad__fault(fault, AD_E_VALUE,
                         "sptranspose: a matrix of %" PRId64 " rows, %" PRId64 " columns and %" PRId64
                         " entries is not possible with indices of type %s",
                         rows, columns, data->shape[0], ad__dtypes[index].name);
    columns++;
    ad__set_result(&result[0], op->loop, 1, data->shape);
    ad__set_result(&result[1], index, 1, data->shape);
    ad__set_result(&result[2], index, 1, &columns);
    return 0;
}

int ad__infer_spband(const ad_op *op, ad_result *result, ad_fault *fault) {
    int64_t rows;
    const int status = check_csr_inputs(op, 0, &rows, fault);

    if (!status) set_csr_results(op, op->loop, result);
    return status;
}

int ad__infer_sprows(const ad_op *op, ad_result *result, ad_fault *fault) {
    const int64_t entries = op->param[0].as.i;
    const ad_desc *indptr;
    const int status = get_vector_input(op, 0, &indptr, fault);

    if (status) return status;
    if (op->loop != AD_INT32 && op->loop != AD_INT64)
        return ad__fault(fault, AD_E_TYPE, "sprows: there is no loop for %s: indptr must be of type int32 or int64",
                         ad__dtypes[op->loop].name);
    if (indptr->dtype != op->loop)
        return ad__fault(fault, AD_E_TYPE, "sprows: indptr must be of type %s, as the loop is, not %s",
                         ad__dtypes[op->loop].name, ad__dtypes[indptr->dtype].name);
    if (indptr->shape[0] < 1) return ad__bad_shape(op, 0, "must have at least one element", fault);
    if (op->loop == AD_INT32 && indptr->shape[0] > INT32_MAX)
        return ad__bad_shape(op, 0, "must have fewer elements than its type has numbers", fault);
    if (entries < 0)
        return ad__fault(fault, AD_E_VALUE, "sprows: the number of entries must be 0 or more, not %" PRId64, entries);
    ad__set_result(result, op->loop, 1, &entries);
    return 0;
}

int ad__infer_spdiagonal(const ad_op *op, ad_result *result, ad_fault *fault) {
    const int64_t row = op->param[0].as.i, column = op->param[1].as.i, length = op->param[2].as.i;
    int64_t rows;
    const int status = check_loop_and_matrix(op, true, &rows, fault);

    if (status) return status;
    if (row < 0 || column < 0 || length < 0 || row > rows || length > rows - row || column > INT64_MAX - length)
        return ad__fault(fault, AD_E_VALUE,
                         "spdiagonal: a diagonal of length %" PRId64 " cannot begin in row %" PRId64
                         " and column %" PRId64 " of a matrix of %" PRId64
                         " rows: none of them may be negative, and it "
                         "must end within the matrix",
                         length, row, column, rows);
    ad__set_result(result, op->loop, 1, &length);
    return 0;
}

int ad__infer_sptake(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_desc *lines;
    int64_t rows;
    int status = check_csr_inputs(op, 0, &rows, fault);

    if (!status) status = get_vector_input(op, 3, &lines, fault);
    if (status) return status;
    if (lines->dtype != AD_INT64)
        return ad__fault(fault, AD_E_TYPE, "sptake: input 3 must be of type int64, not %s",
                         ad__dtypes[lines->dtype].name);
    set_csr_results(op, op->loop, result);
    return 0;
}

int ad__infer_spcomponents(const ad_op *op, ad_result *result, ad_fault *fault) {
    int64_t rows;
    const int status = check_loop_and_matrix(op, true, &rows, fault);

    if (status) return status;
    const uint8_t index = op->operand[op->nout + 1].desc.dtype;
    if (index == AD_INT32 && rows > INT32_MAX)
        return ad__bad_shape(op, 2, "must have no more elements than its type has numbers", fault);
    ad__set_result(result, index, 1, &rows);
    return 0;
}
