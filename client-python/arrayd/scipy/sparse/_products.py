"""Products with dense arrays, by the server's call spmm, and of sparse matrices with each other."""
import numpy as np

import arrayd as ad

from ..._base import call
from . import _entries
from ._types import product_type, upcast

_MOST_PRODUCTS = 1 << 27  # products that are stored at once before they are added up


def _multiply_panel(a, x, transposed, length):
    """The compressed matrix a, or the transposed one, times dense x of one or two dimensions."""
    dtype = upcast(a.dtype, x.dtype)
    y = call("spmm", (a.data, a.indices, a.indptr, x), (length, transposed), dtype=product_type(dtype))
    return y if y.dtype == dtype else (y != 0 if dtype.kind == "b" else y.astype(dtype))


def multiply_dense(a, x):
    """a @ x, dense. ValueError."""
    if x.ndim not in (1, 2):
        raise ValueError("could not interpret dimensions")
    if x.shape[0] != a.shape[-1]:
        more = "m" if x.ndim > 1 else "1?"
        raise ValueError(f"matmul: dimension mismatch with signature (n,k={a.shape[-1]}),(k={x.shape[0]},{more})->(n,{more})")
    a = a if a.format in ("csr", "csc") else a.tocsr()
    y = _multiply_panel(a, x, a.format == "csc", a._two[0])
    return y[0] if a.ndim == 1 else y


def make_multiplier(a):
    """A function that multiplies a by vectors; operands and parameters of the call are found once for all of them. A matrix in
    CSC format becomes CSR: a product by rows takes half the time, and the second one has made up for that."""
    a = a.tocsr()
    operands, params, dtype = (a.data, a.indices, a.indptr), (a._two[0], False), a.dtype

    def multiply(x):
        if x.dtype != dtype:
            return multiply_dense(a, x)
        return call("spmm", operands + (x,), params, dtype=dtype)

    return multiply if dtype.char in "fdFD" else lambda x: multiply_dense(a, x)


def multiply_from_left(x, a):
    """x @ a, dense. ValueError."""
    if x.ndim not in (1, 2):
        raise ValueError("could not interpret dimensions")
    if x.shape[-1] != a.shape[0]:
        raise ValueError("dimension mismatch")
    a = a if a.format in ("csr", "csc") else a.tocsr()
    if a.ndim == 1:
        return multiply_dense(a, x.T)
    return _multiply_panel(a, x.T, a.format == "csr", a.shape[1]).T


def _cut_rows(a, b):
    """Where a's rows are cut so that none of the pieces has far more products with b's than are computed at once. Waits
    where there may be too many."""
    rows = a.indptr.size - 1
    if a.data.size * b.data.size <= _MOST_PRODUCTS:
        return [0, rows]
    lengths = (b.indptr[1:] - b.indptr[:-1]).astype(np.int64)
    ends = ad.concatenate([ad.zeros(1, np.int64), ad.cumsum(lengths[a.indices])])
    products = ends[a.indptr]
    total = int(products[-1])
    if total <= _MOST_PRODUCTS:
        return [0, rows]
    marks = ad.searchsorted(products, ad.arange(1, -(-total // _MOST_PRODUCTS)) * _MOST_PRODUCTS).get().tolist()
    return sorted({0, *marks, rows})


def multiply_sparse(a, b):
    """a @ b, sparse: of two compressed by columns in CSC format, otherwise in CSR. ValueError."""
    if a.shape[-1] != b.shape[0]:
        raise ValueError(f"matmul: dimension mismatch with signature (n,k={a.shape[-1]}),(k={b.shape[0]},m)->(n,m)")
    if a.ndim == 1 or b.ndim == 1:
        return _multiply_one_dimension(a, b)
    if a.format == "csc" and b.format == "csc":
        return _multiply_csr(b.T, a.T, a._like("csr")).T
    return _multiply_csr(a.tocsr(), b.tocsr(), a._like("csr"))


def _multiply_rows(a, b, first, last, columns, dtype):
    """The product of rows [first, last) of a, and b, as data, indices and indptr."""
    indptr = a.indptr[first:last + 1]
    if last - first < a.indptr.size - 1:
        begin, end = (int(n) for n in indptr[[0, -1]].get())
        parts = a.data[begin:end], a.indices[begin:end], indptr - begin
    else:
        parts = a.data, a.indices, indptr
    return call("spgemm", (*parts, b.data, b.indices, b.indptr), (columns,), dtype=dtype)


def _join_rows(pieces):
    """Matrices one below the other, as one; each is data, indices and indptr."""
    if len(pieces) == 1:
        return pieces[0]
    data, indices, pointers = zip(*pieces)
    begins = np.cumsum([0, *(d.size for d in data)]).tolist()
    indptr = [pointers[0][:1].astype(np.int64), *(p[1:].astype(np.int64) + begin for p, begin in zip(pointers, begins))]
    return ad.concatenate(data), ad.concatenate(indices), ad.concatenate(indptr)


def _multiply_csr(a, b, made):
    """The product of two matrices in CSR format, by the server's call spgemm. ValueError."""
    shape, dtype = (a.shape[0], b.shape[1]), upcast(a.dtype, b.dtype)
    index, kept, columns = _entries.index_type(*shape, like=(a.indices, b.indices)), None, b.indices
    if shape[1] > 1 << 32:  # that is more columns than the call takes: those without entries are left out
        kept, columns = ad.unique(b.indices, return_inverse=True)
    width = shape[1] if kept is None else kept.size
    a = a._from_parts(a.data, _entries.as_index(a.indices, index), _entries.as_index(a.indptr, index), a.shape)
    b = b._from_parts(b.data, _entries.as_index(columns, index), _entries.as_index(b.indptr, index), b.shape)
    cuts = _cut_rows(a, b)
    data, places, indptr = _join_rows([_multiply_rows(a, b, first, last, width, product_type(dtype))
                                       for first, last in zip(cuts[:-1], cuts[1:])])
    if kept is not None:
        places = kept[places]
    if data.dtype != dtype:
        data = data != 0 if dtype.kind == "b" else data.astype(dtype)
    index = _entries.index_type(*shape, data.size, like=(places,))
    return made._from_parts(data, _entries.as_index(places, index), _entries.as_index(indptr, index), shape,
                            has_canonical_format=True)


def _multiply_one_dimension(a, b):
    if b.ndim == 1:
        y = multiply_dense(a, b.toarray())
        return y if a.ndim == 1 else a._like("coo")(y)
    return a._like("coo")(multiply_from_left(a.toarray(), b))
