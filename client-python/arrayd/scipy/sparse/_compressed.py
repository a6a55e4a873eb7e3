"""Sparse arrays and matrices in CSR and CSC format: where the entries of each row (column) begin, and their columns
(rows) and elements."""
import numpy as np

import arrayd as ad

from ..._base import call
from . import _entries, _index
from ._base import MatrixMethods, SparseBase, register_class
from ._coo import as_elements, as_indices
from ._reductions import ExtremeMethods
from ._types import check_dtype, check_shape, is_host_sparse, is_shape, issparse, sparray

_MOST_COUNTED = 8  # columns for each entry, up to which entries are sorted by turning the matrix twice


class CompressedBase(ExtremeMethods, SparseBase):
    """The common base of CSR and CSC. _major: the axis along which entries are gathered."""

    _major = 0

    def __init__(self, arg1, shape=None, dtype=None, copy=False, *, maxprint=None):
        if maxprint is not None:
            self.maxprint = maxprint
        self._has_sorted_indices = self._has_canonical_format = None
        if issparse(arg1) or is_host_sparse(arg1):
            self._take_sparse(arg1, shape, copy)
        elif is_shape(arg1, self._allow_nd):
            self._take_empty(check_shape(arg1, self._allow_nd))
        elif isinstance(arg1, tuple):
            self._take_tuple(arg1, shape, dtype, copy)
        else:
            self._take_dense(arg1, shape)
        if dtype is not None:
            self.data = self.data.astype(check_dtype(dtype), copy=False)

    @classmethod
    def _from_parts(cls, data, indices, indptr, shape, *, has_canonical_format=None, has_sorted_indices=None):
        """One of arrays that fit: nothing is copied or checked but lengths and types. ValueError."""
        self = cls.__new__(cls)
        self.data, self.indices, self.indptr, self._shape = data, indices, indptr, tuple(shape)
        self._has_canonical_format = has_canonical_format
        self._has_sorted_indices = True if has_canonical_format else has_sorted_indices
        if indices.dtype != indptr.dtype:
            raise ValueError("indices and indptr must be of one type")
        if data.size != indices.size:
            raise ValueError("indices and data should have the same size")
        if indptr.size != self._two[cls._major] + 1:
            raise ValueError(f"index pointer size {indptr.size} should be {self._two[cls._major] + 1}")
        if has_canonical_format and has_sorted_indices is False:
            raise ValueError("what is canonical is sorted")
        return self

    # ---- what it is made of ----

    def _take(self, other):
        self.data, self.indices, self.indptr, self._shape = other.data, other.indices, other.indptr, other._shape
        self._has_sorted_indices = other._has_sorted_indices
        self._has_canonical_format = other._has_canonical_format

    def _take_sparse(self, a, shape, copy):
        if is_host_sparse(a):
            a, copy = self._from_host(a), False
        if a.ndim not in self._allow_nd:
            raise ValueError(f"{type(self).__name__} has no {a.ndim}-D format")
        if shape is not None:
            shape = check_shape(shape, self._allow_nd)
            if len(shape) != a.ndim and not (a.ndim == 1 and shape == (1, a.shape[0])):
                raise ValueError(f"inconsistent number of dimensions: {shape} and {a.shape}")
        self._take(a.asformat(self.format, copy=copy) if a.format == self.format else
                   self._like("coo")(a).asformat(self.format))
        if shape is not None and shape != self._shape:
            if self.data.size and bool(self.indices.max() >= shape[1 - self._major if len(shape) == 2 else 0]):
                raise ValueError("an index exceeds the shape")
            self._shape = shape
            self._check()

    def _from_host(self, a):
        a = a.asformat(self.format)
        parts = ad.asarray(a.data), ad.asarray(a.indices), ad.asarray(a.indptr)
        return self._from_parts(parts[0][:int(a.indptr[-1])], parts[1][:int(a.indptr[-1])], parts[2], a.shape)

    def _take_empty(self, shape):
        self._shape = shape
        indices = _entries.index_type(*self._two)
        self.data, self.indices = ad.empty(0, np.float64), ad.empty(0, indices)
        self.indptr = ad.zeros(self._two[self._major] + 1, indices)

    def _take_tuple(self, given, shape, dtype, copy):
        if len(given) == 2:
            coo = self._like("coo")(given, shape=shape, dtype=dtype, copy=copy)
            if coo.ndim not in self._allow_nd:
                raise ValueError(f"{type(self).__name__} has no {coo.ndim}-D format")
            self._take(coo.asformat(self.format))
        elif len(given) == 3:
            self._take_parts(*given, shape, dtype, copy)
        else:
            raise ValueError(f"unrecognized {type(self).__name__} constructor input: {given}")

    def _take_parts(self, data, indices, indptr, shape, dtype, copy):
        data = as_elements(data, dtype)
        indices, indptr = as_indices(indices), as_indices(indptr, "indptr")
        if data.ndim != 1 or indices.ndim != 1 or indptr.ndim != 1:
            raise ValueError("data, indices, and indptr should be 1-D")
        if shape is None:
            if indptr.size == 0 or indices.size == 0:
                raise ValueError("unable to infer matrix dimensions")
            pair = (indptr.size - 1, int(indices.max()) + 1)
            shape = pair if self._major == 0 else pair[::-1]
        self._shape = check_shape(shape, self._allow_nd)
        kept = (indices, indptr) if isinstance(self, sparray) else ()
        dtype = _entries.index_type(*self._two, data.size, like=kept)
        self.indices, self.indptr = indices.astype(dtype, copy=copy), indptr.astype(dtype, copy=copy)
        self.data = data.copy() if copy else data
        self._check()

    def _take_dense(self, a, shape):
        a = as_elements(a)
        coo = self._like("coo")
        if a.ndim not in self._allow_nd and isinstance(self, sparray):
            error = TypeError if a.ndim == 0 and 1 in self._allow_nd else ValueError
            raise error(f"{type(self).__name__} takes arrays with {self._allow_nd} dimensions, not {a.ndim}")
        if shape is not None and a.ndim == 1 and tuple(shape) == (1, a.size):
            a = a.reshape(1, -1)
        self._take(coo(a, shape=shape).asformat(self.format))

    def check_format(self, full_check=True):
        """Check that the parts fit together, and (full_check) what the indices are. ValueError; waits."""
        self._check()
        if full_check and self.data.size:
            ends = ad.stack([self.indices.min(), self.indices.max(),
                             (self.indptr[1:] - self.indptr[:-1]).min()]).get().tolist()
            if ends[0] < 0 or ends[1] >= self._two[1 - self._major]:
                raise ValueError(f"indices must be >= 0 and < {self._two[1 - self._major]}")
            if ends[2] < 0:
                raise ValueError("indptr values must form a non-decreasing sequence")

    def _check(self):
        rows = self._two[self._major]
        if self.indptr.size != rows + 1:
            raise ValueError(f"index pointer size {self.indptr.size} should be {rows + 1}")
        if self.indices.size != self.data.size:
            raise ValueError("indices and data should have the same size")
        first, last = self.indptr[::max(rows, 1)].get().tolist() if rows else [int(self.indptr[0])] * 2
        if first != 0:
            raise ValueError("index pointer should start with 0")
        if last > self.data.size:
            raise ValueError("Last value of index pointer should be less than the size of index and data arrays")
        if last < self.data.size:
            self.data, self.indices = self.data[:max(last, 0)], self.indices[:max(last, 0)]

    def prune(self):
        """Drop what is stored behind the last entry."""
        self._check()

    # ---- parts ----

    def _majors(self):
        return _entries.rows_of_pointers(self.indptr, self.data.size, self.indices.dtype)

    def _triple(self):
        pair = self._majors(), self.indices
        return (*(pair if self._major == 0 else pair[::-1]), self.data)

    def _major_shape(self):
        return self._two if self._major == 0 else self._two[::-1]

    def _host_parts(self):
        return self.data.get(), self.indices.get(), self.indptr.get()

    def _with_data(self, data, copy=True):
        indices, indptr = (self.indices.copy(), self.indptr.copy()) if copy else (self.indices, self.indptr)
        return self._from_parts(data, indices, indptr, self._shape, has_canonical_format=self._has_canonical_format,
                                has_sorted_indices=self._has_sorted_indices)

    def _getnnz(self, axis=None):
        if axis is None or self.ndim == 1:
            return self.data.size
        axis = axis + 2 if axis < 0 else axis
        if axis not in (0, 1):
            raise ValueError("axis out of bounds")
        if axis != self._major:
            return self.indptr[1:] - self.indptr[:-1]
        return _entries.count_places(self.indices, self._major_shape()[1])

    # ---- order ----

    @property
    def has_sorted_indices(self):
        """Whether the entries of each row (column) are sorted. Waits the first time."""
        if self._has_sorted_indices is None:
            self._has_sorted_indices = _entries.are_rows_ordered(self.indptr, self.indices, True)
        return self._has_sorted_indices

    @has_sorted_indices.setter
    def has_sorted_indices(self, value):
        self._has_sorted_indices = bool(value)

    @property
    def has_canonical_format(self):
        """Whether entries are sorted and no place has two of them. Waits the first time."""
        if self._has_canonical_format is None:
            if self._has_sorted_indices is False:
                self._has_canonical_format = False
            else:
                self.has_canonical_format = _entries.are_rows_ordered(self.indptr, self.indices, False)
        return self._has_canonical_format

    @has_canonical_format.setter
    def has_canonical_format(self, value):
        self._has_canonical_format = bool(value)
        if value:
            self._has_sorted_indices = True

    def sort_indices(self):
        """Sort the entries of each row (column) in place."""
        if self.has_sorted_indices:
            return
        if self._two[1 - self._major] <= _MOST_COUNTED * (self.data.size + 1):
            turned = call("sptranspose", (self.data, self.indices, self.indptr), (self._major_shape()[1],))
            self.data, self.indices, _ = call("sptranspose", turned, (self._major_shape()[0],))
        else:
            order = _entries.order_entries(self._majors(), self.indices, self._major_shape())
            self.indices, self.data = self.indices[order], self.data[order]
        self._has_sorted_indices = True

    def sorted_indices(self):
        """A copy whose entries are sorted."""
        a = self.copy()
        a.sort_indices()
        return a

    def sum_duplicates(self):
        """Sort the entries, and add up those of one place, in place."""
        if self.has_canonical_format:
            return
        major, self.indices, self.data = _entries.sum_entries(self._majors(), self.indices, self.data,
                                                              self._major_shape())
        self.indptr = _entries.row_pointers(major, self._major_shape()[0], self.indices.dtype)
        self.has_canonical_format = True

    def eliminate_zeros(self):
        """Take out entries that are zero, in place. Waits."""
        keep = ad.nonzero(self.data != 0)[0]
        if keep.size == self.data.size:
            return
        self.data, self.indices = self.data[keep], self.indices[keep]
        self.indptr = _entries.keep_rows(self.indptr, keep)

    def _keep_band(self, low, high, diagonal=False):
        """The matrix without entries but those in columns (rows) low to high, or (diagonal) on diagonals low to high. Waits."""
        far = _entries.FAR
        low, high = (max(min(end, far), -far) for end in ((-high, -low) if diagonal and self._major else (low, high)))
        parts = call("spband", (self.data, self.indices, self.indptr), (low, high, diagonal))
        return self._from_parts(*parts, self._shape, has_canonical_format=self._has_canonical_format,
                                has_sorted_indices=self._has_sorted_indices)

    def diagonal(self, k=0):
        """The k-th diagonal as a dense array."""
        self._check_two_dimensions("diagonal")
        rows, cols = self.shape
        if not (-rows < k < cols and self.data.size and self.dtype.char in "fdFDlq"):
            return SparseBase.diagonal(self, k)
        begin = (max(0, -k), max(0, k))[::1 if self._major == 0 else -1]
        return call("spdiagonal", (self.data, self.indices, self.indptr), (*begin, min(rows + min(k, 0), cols - max(k, 0))))

    # ---- conversions ----

    def tocoo(self, copy=True):
        """Return the matrix in COO format."""
        row, col, data = self._triple()
        if copy:
            data = data.copy()
            row, col = (row, col.copy()) if self._major == 0 else (row.copy(), col)
        canonical = self._has_canonical_format and self._major == 0
        return self._like("coo")._from_parts(data, row, col, self._shape, has_canonical_format=canonical)

    def _to_other(self):
        """CSR as CSC, or CSC as CSR: entries keep their order within a place."""
        cls = self._like("csc" if self.format == "csr" else "csr")
        if self.ndim not in cls._allow_nd:
            raise ValueError(f"{cls.__name__} has no {self.ndim}-D format")
        parts = call("sptranspose", (self.data, self.indices, self.indptr), (self._major_shape()[1],))
        return cls._from_parts(*parts, self._shape, has_canonical_format=self._has_canonical_format or None,
                               has_sorted_indices=True)

    def tocsr(self, copy=False):
        """Return the matrix in CSR format: itself where it has that, unless a copy is wanted."""
        if self.format == "csr":
            return self.copy() if copy else self
        return self._to_other()

    def tocsc(self, copy=False):
        """Return the matrix in CSC format: itself where it has that, unless a copy is wanted."""
        if self.format == "csc":
            return self.copy() if copy else self
        return self._to_other()

    def _transposed(self, copy):
        cls = self._like("csc" if self.format == "csr" else "csr")
        parts = [part.copy() if copy else part for part in (self.data, self.indices, self.indptr)]
        return cls._from_parts(*parts, self._shape[::-1], has_canonical_format=self._has_canonical_format,
                               has_sorted_indices=self._has_sorted_indices)

    def resize(self, *shape):
        """Change the shape in place; entries outside of it are dropped."""
        coo = self.tocoo()
        coo.resize(*shape)
        self._take(coo.asformat(self.format))

    # ---- elements by keys ----

    def __getitem__(self, key):
        return _index.get_items(self, key)

    def __setitem__(self, key, value):
        _index.set_items(self, key, value)

    def _set_diagonal(self, row, col, length, values):
        places = ad.arange(length)
        _index.put_elements(self, places + row, places + col, values, warn=False)


@register_class
class csr_array(CompressedBase, sparray):
    """A sparse array of one or two dimensions in CSR format.

    Parameters: arg1: a dense array, a sparse one (the server's or SciPy's), a shape, (data, coords) or (data, indices,
        indptr). shape: tuple; unless given what the indices need. dtype: of the elements. copy: whether parts are
        copied. maxprint: how many elements are printed.
    Raises: ValueError for parts that do not fit together.
    Source: scipy.sparse.csr_array
    """

    format = "csr"
    _allow_nd = (1, 2)


@register_class
class csr_matrix(MatrixMethods, CompressedBase):
    """A sparse matrix in CSR format, with * as the matrix product.

    Parameters: arg1: a dense array, a sparse one (the server's or SciPy's), a shape, (data, (row, col)) or (data,
        indices, indptr). shape: tuple; unless given what the indices need. dtype: of the elements. copy: whether parts
        are copied. maxprint: how many elements are printed.
    Raises: ValueError for parts that do not fit together.
    Source: scipy.sparse.csr_matrix
    """

    format = "csr"


@register_class
class csc_array(CompressedBase, sparray):
    """A sparse array in CSC format.

    Parameters: arg1: a dense array, a sparse one (the server's or SciPy's), a shape, (data, coords) or (data, indices,
        indptr). shape: tuple; unless given what the indices need. dtype: of the elements. copy: whether parts are
        copied. maxprint: how many elements are printed.
    Raises: ValueError for parts that do not fit together.
    Source: scipy.sparse.csc_array
    """

    format, _major = "csc", 1


@register_class
class csc_matrix(MatrixMethods, CompressedBase):
    """A sparse matrix in CSC format, with * as the matrix product.

    Parameters: arg1: a dense array, a sparse one (the server's or SciPy's), a shape, (data, (row, col)) or (data,
        indices, indptr). shape: tuple; unless given what the indices need. dtype: of the elements. copy: whether parts
        are copied. maxprint: how many elements are printed.
    Raises: ValueError for parts that do not fit together.
    Source: scipy.sparse.csc_matrix
    """

    format, _major = "csc", 1


def isspmatrix_csr(x):
    """Whether x is a csr_matrix.

    Parameters: x: any object.
    Returns: bool.
    Raises: nothing of its own.
    Source: scipy.sparse.isspmatrix_csr
    """
    return isinstance(x, csr_matrix)


def isspmatrix_csc(x):
    """Whether x is a csc_matrix.

    Parameters: x: any object.
    Returns: bool.
    Raises: nothing of its own.
    Source: scipy.sparse.isspmatrix_csc
    """
    return isinstance(x, csc_matrix)
