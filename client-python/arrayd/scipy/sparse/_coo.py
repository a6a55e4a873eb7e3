"""Sparse arrays and matrices in COO format: rows, columns and elements."""
import numpy as np

import arrayd as ad

from . import _entries, _index
from ._base import MatrixMethods, SparseBase, register_class
from ._reductions import ExtremeMethods
from ._types import check_dtype, check_shape, is_host_sparse, is_shape, issparse, sparray


def as_elements(data, dtype=None):
    """Elements as an array on the server, of a type that sparse matrices have. ValueError."""
    if isinstance(data, str):
        raise ValueError("could not convert string to an array of elements")
    data = ad.asarray(data) if dtype is None else ad.asarray(data).astype(check_dtype(dtype), copy=False)
    check_dtype(data.dtype)
    return data


def as_indices(a, what="indices"):
    """Indices as an array of integers on the server. ValueError."""
    if isinstance(a, str):
        raise ValueError(f"{what} must be an array of integers, not a string")
    a = ad.asarray(a)
    if a.dtype == np.int32 or a.dtype == np.int64:
        return a
    return a.astype(np.int64)


class CooBase(ExtremeMethods, SparseBase):
    """The base of COO arrays and matrices; entries may be in any order, and one place may have several."""

    format = "coo"

    def __init__(self, arg1, shape=None, dtype=None, copy=False, *, maxprint=None):
        if maxprint is not None:
            self.maxprint = maxprint
        self.has_canonical_format = False
        if issparse(arg1):
            self._take_sparse(arg1, shape, copy)
        elif is_host_sparse(arg1):
            self._take_host(arg1, shape)
        elif is_shape(arg1, self._allow_nd):
            self._take_empty(check_shape(arg1, self._allow_nd))
        elif isinstance(arg1, tuple):
            self._take_tuple(arg1, shape, dtype, copy)
        else:
            self._take_dense(arg1, shape)
        if dtype is not None:
            self.data = self.data.astype(check_dtype(dtype), copy=False)

    @classmethod
    def _from_parts(cls, data, row, col, shape, *, has_canonical_format=None, **unused):
        """One of arrays that fit: nothing is copied or checked."""
        self = cls.__new__(cls)
        self.data, self.row, self.col, self._shape = data, row, col, shape
        self.has_canonical_format = bool(has_canonical_format)
        return self

    def _take_sparse(self, a, shape, copy):
        if shape is not None and len(check_shape(shape, (1, 2))) != a.ndim:
            raise ValueError(f"inconsistent number of dimensions: {shape} and {a.shape}")
        if a.ndim not in self._allow_nd:
            raise ValueError(f"{type(self).__name__} has no {a.ndim}-D format")
        coo = a.tocoo(copy=copy)
        self.data, self.row, self.col = coo.data, coo.row, coo.col
        self.has_canonical_format = coo.has_canonical_format
        self._shape = a.shape
        if shape is not None:
            self._shape = check_shape(shape, self._allow_nd)
            self._check()

    def _take_host(self, a, shape):
        coo = a.tocoo()
        if coo.ndim not in self._allow_nd:
            raise ValueError(f"{type(self).__name__} has no {coo.ndim}-D format")
        coords = coo.coords if hasattr(coo, "coords") else (coo.row, coo.col)
        self._take_coordinates(coo.data, coords, shape or coo.shape, None, True)
        self.has_canonical_format = bool(getattr(coo, "has_canonical_format", False))

    def _take_empty(self, shape):
        self._shape = shape
        indices = _entries.index_type(*self._two)
        self.data, self.row, self.col = ad.empty(0, np.float64), ad.empty(0, indices), ad.empty(0, indices)
        self.has_canonical_format = True

    def _take_tuple(self, given, shape, dtype, copy):
        if all(isinstance(n, (int, np.integer)) for n in given):
            if len(given) not in self._allow_nd and len(given) > 1:
                raise ValueError(f"only 1-D and 2-D input accepted, not {len(given)}-D")
            raise TypeError("invalid input format")
        try:
            data, coords = given
        except (TypeError, ValueError):
            raise TypeError("invalid input format") from None
        if not isinstance(coords, tuple):
            coords = tuple(coords[i] for i in range(len(coords)))
        self._take_coordinates(data, coords, shape, dtype, copy)

    def _take_coordinates(self, data, coords, shape, dtype, copy):
        coords = [as_indices(c) for c in coords]
        data = as_elements(data, dtype)
        if any(c.ndim != 1 for c in coords) or data.ndim != 1:
            raise ValueError("row, column, and data arrays must be 1-D")
        if any(c.size != data.size for c in coords):
            raise ValueError("all index and data arrays must have the same length")
        if shape is None:
            if data.size == 0:
                raise ValueError("cannot infer dimensions from zero sized index arrays")
            shape = tuple(int(c.max()) + 1 for c in coords)
        self._shape = check_shape(shape, self._allow_nd)
        if len(coords) != len(self._shape):
            raise ValueError(f"mismatching number of dimensions: {len(coords)} index arrays for shape {self._shape}")
        indices = _entries.index_type(*self._two, like=coords if isinstance(self, sparray) else ())
        coords = [c.astype(indices, copy=copy) for c in coords]
        self.data = data.copy() if copy else data
        self.row, self.col = coords if len(coords) == 2 else (ad.zeros(data.size, indices), coords[0])
        self._check()

    def _take_dense(self, a, shape):
        a = as_elements(a)
        if a.ndim not in self._allow_nd:
            if isinstance(self, sparray) and a.ndim == 0:
                raise TypeError("expected an array with one or two dimensions, not a number")
            if a.ndim > 2 or isinstance(self, sparray):
                raise ValueError(f"expected an array with {self._allow_nd} dimensions, not {a.ndim}")
            a = ad.atleast_2d(a)
        self._shape = a.shape
        if shape is not None and check_shape(shape, (1, 2)) != a.shape:
            raise ValueError(f"inconsistent shapes: {shape} and {a.shape}")
        two = a.reshape(self._two)
        row, col = ad.nonzero(two)
        indices = _entries.index_type(*self._two)
        self.data, self.row, self.col = two[row, col], row.astype(indices), col.astype(indices)
        self.has_canonical_format = True

    def _check(self):
        """Check that all indices are inside of the shape. ValueError; waits."""
        if self.data.size == 0:
            return
        bounds = ad.stack([self.row.min(), self.col.min(), self.row.max(), self.col.max()]).get().tolist()
        for axis in range(2 - self.ndim, 2):
            size = self._two[axis]
            if bounds[axis] < 0:
                raise ValueError(f"negative axis {axis} index: {bounds[axis]}")
            if bounds[2 + axis] >= size:
                raise ValueError(f"axis {axis} index {bounds[2 + axis]} exceeds matrix dimension {size}")

    @property
    def coords(self):
        return (self.row, self.col) if self.ndim == 2 else (self.col,)

    def _triple(self):
        return self.row, self.col, self.data

    def _host_parts(self):
        return self.data.get(), tuple(c.get() for c in self.coords)

    def _with_data(self, data, copy=True):
        row, col = (self.row.copy(), self.col.copy()) if copy else (self.row, self.col)
        return self._from_parts(data, row, col, self._shape, has_canonical_format=self.has_canonical_format)

    def _getnnz(self, axis=None):
        if axis is None or self.ndim == 1:
            return self.data.size
        axis = axis + 2 if axis < 0 else axis
        if axis not in (0, 1):
            raise ValueError("axis out of bounds")
        return _entries.count_places((self.col, self.row)[axis], self.shape[1 - axis])

    def tocoo(self, copy=False):
        """Return the matrix in COO format: itself unless a copy is wanted."""
        return self.copy() if copy else self

    def _compressed(self, format):
        cls = self._like(format)
        if self.ndim not in cls._allow_nd:
            raise ValueError(f"{cls.__name__} has no {self.ndim}-D format")
        major, minor, rows = (self.row, self.col, self._two[0]) if format == "csr" else (
            self.col, self.row, self._two[1])
        shape = self._two if format == "csr" else self._two[::-1]
        data = self.data
        if not (self.has_canonical_format and format == "csr"):
            major, minor, data = _entries.sum_entries(major, minor, data, shape)
        elif data.size:
            minor, data = minor.copy(), data.copy()
        pointers = _entries.row_pointers(major, rows, minor.dtype)
        return cls._from_parts(data, minor, pointers, self._shape, has_canonical_format=True)

    def tocsr(self, copy=False):
        """Return the matrix in CSR format, sorted, elements of one place added up."""
        return self._compressed("csr")

    def tocsc(self, copy=False):
        """Return the matrix in CSC format, sorted, elements of one place added up."""
        return self._compressed("csc")

    def todia(self, copy=False):
        """Return the matrix in DIA format, elements of one place added up."""
        self._check_two_dimensions("DIA format")
        cls = self._like("dia")
        if self.nnz == 0:
            return cls((ad.zeros((0, self.shape[1]), self.dtype), ad.empty(0, np.int32)), shape=self.shape)
        offsets, index = ad.unique(self.col.astype(np.int64) - self.row, return_inverse=True)
        width = self.shape[1]
        data = _entries.scatter_add(offsets.size * width, index.astype(np.int64) * width + self.col, self.data)
        return cls((data.reshape(offsets.size, width), offsets), shape=self.shape)

    def _transposed(self, copy):
        parts = [part.copy() if copy else part for part in (self.data, self.col, self.row)]
        return self._from_parts(*parts, self.shape[::-1])

    def sum_duplicates(self):
        """Sort the entries, and add up those of one place, in place. Waits."""
        if self.has_canonical_format:
            return
        self.row, self.col, self.data = _entries.sum_entries(self.row, self.col, self.data, self._two)
        self.has_canonical_format = True

    def eliminate_zeros(self):
        """Take out entries that are zero, in place. Waits."""
        keep = ad.nonzero(self.data != 0)[0]
        self.data, self.row, self.col = self.data[keep], self.row[keep], self.col[keep]

    def _set_diagonal(self, row, col, length, values):
        on = (self.col.astype(np.int64) - self.row == col - row) & (self.row >= row) & (self.row < row + length)
        keep = ad.nonzero(~on)[0]
        places = ad.arange(length, dtype=self.row.dtype)
        self.row = ad.concatenate([self.row[keep], places + row])
        self.col = ad.concatenate([self.col[keep], places + col])
        self.data = ad.concatenate([self.data[keep], values.astype(self.dtype)])
        self.has_canonical_format = False

    def resize(self, *shape):
        """Change the shape in place; entries outside of it are dropped."""
        shape = check_shape(shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape, self._allow_nd)
        two = shape if len(shape) == 2 else (1, *shape)
        keep = ad.nonzero((self.row < two[0]) & (self.col < two[1]))[0]
        self.data, self.row, self.col, self._shape = self.data[keep], self.row[keep], self.col[keep], shape


@register_class
class coo_array(CooBase, sparray):
    """A sparse array of one or two dimensions in COO format.

    Parameters: arg1: a dense array, a sparse one (the server's or SciPy's), a shape, or (data, coords).
        shape: tuple; unless given what the indices need. dtype: of the elements. copy: whether parts are copied.
        maxprint: how many elements are printed.
    Raises: ValueError for indices outside of the shape, TypeError for another arg1.
    Source: scipy.sparse.coo_array
    """

    _allow_nd = (1, 2)

    def __getitem__(self, key):
        return _index.get_items(self, key)


@register_class
class coo_matrix(MatrixMethods, CooBase):
    """A sparse matrix in COO format, with * as the matrix product.

    Parameters: arg1: a dense array, a sparse one (the server's or SciPy's), a shape, or (data, (row, col)).
        shape: tuple; unless given what the indices need. dtype: of the elements. copy: whether parts are copied.
        maxprint: how many elements are printed.
    Raises: ValueError for indices outside of the shape, TypeError for another arg1.
    Source: scipy.sparse.coo_matrix
    """


    def __getitem__(self, key):
        raise TypeError("'coo_matrix' object is not subscriptable")


def isspmatrix_coo(x):
    """Whether x is a coo_matrix.

    Parameters: x: any object.
    Returns: bool.
    Raises: nothing of its own.
    Source: scipy.sparse.isspmatrix_coo
    """
    return isinstance(x, coo_matrix)
