"""Products with dense arrays, by the server's call spmm, and of sparse matrices with each other."""
import numpy as np

import arrayd as ad

from ..._base import call
from . import _entries
from ._types import product_type, upcast

_MOST_PRODUCTS = 1 << 27  # that are stored at once before they are added up


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


def _expand_products(a, b, first, last):
    """Products of a's entries [first, last) with those of b's rows that they meet: rows, columns, elements."""
    row, middle, value = (part[first:last] for part in a)
    starts = b.indptr[middle]
    number, place = _entries.expand_ranges(starts, b.indptr[middle + 1] - starts)
    return row[number], b.indices[place], value[number] * b.data[place]


def _cut_work(a, b):
    """Where a's entries are cut so that none of the pieces has far more products than are to be stored at once."""
    lengths = (b.indptr[1:] - b.indptr[:-1]).astype(np.int64)
    ends = ad.cumsum(lengths[a[1]]) if a[1].size else a[1]
    total = int(ends[-1]) if a[1].size else 0
    if total <= _MOST_PRODUCTS:
        return [0, a[1].size]
    pieces = -(-total // _MOST_PRODUCTS)
    marks = ad.searchsorted(ends, ad.arange(1, pieces) * _MOST_PRODUCTS).get().tolist()
    return sorted({0, *marks, a[1].size})


def multiply_sparse(a, b):
    """a @ b, sparse: of two compressed by columns in CSC format, otherwise in CSR. ValueError."""
    if a.shape[-1] != b.shape[0]:
        raise ValueError(f"matmul: dimension mismatch with signature (n,k={a.shape[-1]}),(k={b.shape[0]},m)->(n,m)")
    if a.ndim == 1 or b.ndim == 1:
        return _multiply_one_dimension(a, b)
    if a.format == "csc" and b.format == "csc":
        return _multiply_csr(b.T, a.T, a._like("csr")).T
    return _multiply_csr(a.tocsr(), b.tocsr(), a._like("csr"))


def _multiply_csr(a, b, made):
    shape, dtype = (a.shape[0], b.shape[1]), upcast(a.dtype, b.dtype)
    entries = a._triple()
    cuts = _cut_work(entries, b)
    parts = [_entries.sum_entries(*_expand_products(entries, b, first, last), shape)
             for first, last in zip(cuts[:-1], cuts[1:])] if entries[1].size else []
    if len(parts) > 1:
        parts = [_entries.sum_entries(*(ad.concatenate(p) for p in zip(*parts)), shape)]
    indices = _entries.index_type(*shape, like=(a.indices, b.indices))
    if not parts:
        return made._from_parts(ad.empty(0, dtype), ad.empty(0, indices), ad.zeros(shape[0] + 1, indices), shape,
                                has_canonical_format=True)
    row, col, data = parts[0]
    return made._from_parts(data.astype(dtype), _entries.as_index(col, indices),
                            _entries.row_pointers(row, shape[0], indices), shape, has_canonical_format=True)


def _multiply_one_dimension(a, b):
    if b.ndim == 1:
        y = multiply_dense(a, b.toarray())
        return y if a.ndim == 1 else a._like("coo")(y)
    return a._like("coo")(multiply_from_left(a.toarray(), b))
