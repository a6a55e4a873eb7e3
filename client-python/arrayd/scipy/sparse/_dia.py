"""Sparse arrays and matrices in DIA format: diagonals, each as a row of a dense array."""
import numpy as np

import arrayd as ad

from . import _entries
from ._base import MatrixMethods, SparseBase, register_class
from ._coo import as_elements, as_indices
from ._types import check_dtype, check_shape, is_host_sparse, is_shape, issparse, sparray


class DiaBase(SparseBase):
    """The base of DIA arrays and matrices: data[k, j] is the element in column j of diagonal offsets[k]."""

    format = "dia"

    def __init__(self, arg1, shape=None, dtype=None, copy=False, *, maxprint=None):
        if maxprint is not None:
            self.maxprint = maxprint
        if issparse(arg1) or is_host_sparse(arg1):
            self._take_sparse(arg1, shape, copy)
        elif is_shape(arg1):
            self._shape = check_shape(arg1)
            self.data, self.offsets = ad.zeros((0, 0), np.float64), ad.empty(0, np.int32)
        elif isinstance(arg1, tuple):
            self._take_tuple(arg1, shape, copy)
        else:
            self._take_dense(arg1, shape)
        if dtype is not None:
            self.data = self.data.astype(check_dtype(dtype), copy=False)
        self._check()

    def _take_sparse(self, a, shape, copy):
        if is_host_sparse(a):
            a = a.todia()
            self.data, self.offsets, self._shape = ad.asarray(a.data), ad.asarray(a.offsets), a.shape
        else:
            a = a.todia(copy=copy)
            self.data, self.offsets, self._shape = a.data, a.offsets, a.shape
        if shape is not None and check_shape(shape) != self._shape:
            raise ValueError(f"inconsistent shapes: {shape} and {self._shape}")

    def _take_tuple(self, given, shape, copy):
        if len(given) != 2:
            raise ValueError(f"unrecognized form for {type(self).__name__} constructor")
        if shape is None:
            raise ValueError("expected a shape argument")
        self._shape = check_shape(shape)
        data = ad.atleast_2d(as_elements(given[0]))
        offsets = ad.atleast_1d(as_indices(given[1], "offsets"))
        self.data = data.copy() if copy else data
        self.offsets = offsets.astype(_entries.index_type(*self._shape), copy=copy)

    def _take_dense(self, a, shape):
        a = as_elements(a)
        if a.ndim != 2 and isinstance(self, sparray):
            raise ValueError(f"{type(self).__name__} takes arrays with 2 dimensions, not {a.ndim}")
        self._take_sparse(self._like("coo")(a, shape=shape), None, False)

    def _check(self):
        if self.offsets.ndim != 1:
            raise ValueError("offsets array must have rank 1")
        if self.data.ndim != 2:
            raise ValueError("data array must have rank 2")
        if self.data.shape[0] != self.offsets.size:
            raise ValueError(f"number of diagonals ({self.data.shape[0]}) does not match the number of offsets "
                             f"({self.offsets.size})")
        offsets = self.offsets.get()
        if len(np.unique(offsets)) != len(offsets):
            raise ValueError("offset array contains duplicate values")

    def _about_storage(self):
        return f" ({self.data.shape[0]} diagonals)"

    def _with_data(self, data, copy=True):
        return type(self)((data, self.offsets), shape=self._shape, copy=copy)

    def _getnnz(self, axis=None):
        if axis is not None:
            raise NotImplementedError("_getnnz over an axis is not implemented for DIA format")
        rows, cols = self._shape
        width = min(self.data.shape[1], cols)
        offsets = self.offsets.get().astype(np.int64)
        return int(np.maximum(np.minimum(rows + offsets, width) - np.maximum(offsets, 0), 0).sum())

    def _host_parts(self):
        return self.data.get(), self.offsets.get()

    def _triple(self):
        """All places of the diagonals that hold something other than zero. Waits."""
        rows, cols = self._shape
        width = min(self.data.shape[1], cols)
        data = self.data[:, :width]
        row = ad.arange(width) - self.offsets.astype(np.int64)[:, None]
        at, col = ad.nonzero((row >= 0) & (row < rows) & (data != 0))
        dtype = _entries.index_type(rows, cols, like=(self.offsets,))
        return row[at, col].astype(dtype), col.astype(dtype), data[at, col]

    def tocoo(self, copy=False):
        """Return the matrix in COO format, without zeros."""
        row, col, data = self._triple()
        return self._like("coo")._from_parts(data, row, col, self._shape)

    def todia(self, copy=False):
        """Return the matrix in DIA format: itself unless a copy is wanted."""
        return self.copy() if copy else self

    def _transposed(self, copy):
        rows, cols = self._shape
        offsets = -self.offsets
        width = rows
        column = ad.arange(width) + self.offsets.astype(np.int64)[:, None]
        inside = (column >= 0) & (column < min(self.data.shape[1], cols))
        number = ad.arange(offsets.size)[:, None]
        if self.data.size == 0:
            data = ad.zeros((offsets.size, width), self.dtype)
        else:
            data = ad.where(inside, self.data[number, ad.where(inside, column, 0)], ad.zeros((), self.dtype))
        return type(self)((data, offsets), shape=(cols, rows))

    def diagonal(self, k=0):
        """The k-th diagonal as a dense array."""
        return super().diagonal(k)

    def sum_duplicates(self):
        """Nothing: each place is stored once."""

    def _set_diagonal(self, row, col, length, values):
        coo = self.tocoo()
        coo._set_diagonal(row, col, length, values)
        dia = coo.todia()
        self.data, self.offsets = dia.data, dia.offsets


@register_class
class dia_array(DiaBase, sparray):
    """A sparse array in DIA format.

    Parameters: arg1: a dense array, a sparse one (the server's or SciPy's), a shape, or (data, offsets). shape: tuple.
        dtype: of the elements. copy: whether parts are copied. maxprint: how many elements are printed.
    Raises: ValueError for parts that do not fit together.
    Source: scipy.sparse.dia_array
    """


@register_class
class dia_matrix(MatrixMethods, DiaBase):
    """A sparse matrix in DIA format, with * as the matrix product.

    Parameters: arg1: a dense array, a sparse one (the server's or SciPy's), a shape, or (data, offsets). shape: tuple.
        dtype: of the elements. copy: whether parts are copied. maxprint: how many elements are printed.
    Raises: ValueError for parts that do not fit together.
    Source: scipy.sparse.dia_matrix
    """


def isspmatrix_dia(x):
    """Whether x is a dia_matrix.

    Parameters: x: any object.
    Returns: bool.
    Raises: nothing of its own.
    Source: scipy.sparse.isspmatrix_dia
    """
    return isinstance(x, dia_matrix)
