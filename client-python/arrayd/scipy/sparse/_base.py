"""Methods of all sparse arrays and matrices: conversions, arithmetic and comparisons by their operands' kinds."""
import operator
import types
import warnings

import numpy as np

import arrayd as ad

from ..._core import ndarray
from . import _binary, _entries, _products, _reductions
from ._types import (SparseEfficiencyWarning, check_dtype, check_shape, is_host_sparse, is_integer, is_scalar_like,
                     issparse, sparray, spmatrix, upcast)
from ._unary import UnaryMethods

_NAMES = {"coo": "COOrdinate", "csr": "Compressed Sparse Row", "csc": "Compressed Sparse Column", "dia": "DIAgonal"}
_CLASSES = {}  # (format, whether an array): class


def register_class(cls):
    """A decorator: the class is what its format has as array or as matrix."""
    _CLASSES[cls.format, issubclass(cls, sparray)] = cls
    return cls


def find_class(format, array):
    """The class of a format. ValueError."""
    try:
        return _CLASSES[format, array]
    except (KeyError, TypeError):
        raise ValueError(f"Format {format} is unknown.") from None


def is_dense(x):
    """Whether x is an array of the server or of NumPy that has dimensions."""
    return isinstance(x, (ndarray, np.ndarray)) and x.ndim > 0


class SparseBase(UnaryMethods):
    """The base of sparse arrays and matrices. _triple() gives rows, columns and elements; _two is the shape as that of
    a matrix, also where there is one dimension."""

    format = "und"
    maxprint = 50
    _allow_nd = (2,)
    __array_priority__ = 10.1
    __array_ufunc__ = None
    __hash__ = None
    __class_getitem__ = classmethod(types.GenericAlias)

    # ---- what it is ----

    @property
    def shape(self):
        return self._shape

    @property
    def ndim(self):
        return len(self._shape)

    @property
    def _two(self):
        return self._shape if len(self._shape) == 2 else (1, *self._shape)

    @property
    def dtype(self):
        return self.data.dtype

    @property
    def nnz(self):
        return self._getnnz()

    @property
    def size(self):
        return self._getnnz()

    @property
    def device(self):
        return self.data.device

    @property
    def T(self):
        return self.transpose()

    @property
    def mT(self):
        return self.transpose()

    @property
    def real(self):
        return self._real()

    @property
    def imag(self):
        return self._imag()

    def _like(self, format):
        """The class of a format, array or matrix as this is."""
        return find_class(format, isinstance(self, sparray))

    def _make(self, row, col, data, shape, format="coo", canonical=None):
        """A sparse array like this one of entries, whose indices have one type."""
        coo = self._like("coo")._from_parts(data, row, col, shape, has_canonical_format=canonical)
        return coo.asformat(format)

    def __len__(self):
        raise TypeError("sparse array length is ambiguous; use getnnz() or shape[0]")

    def __bool__(self):
        if self.shape in ((1, 1), (1,)):
            return self.nnz != 0
        raise ValueError("The truth value of an array with more than one element is ambiguous. Use a.any() or a.all().")

    def __iter__(self):
        for i in range(self.shape[0]):
            yield self[i]

    def __repr__(self):
        kind = "array" if isinstance(self, sparray) else "matrix"
        return (f"<{_NAMES.get(self.format, self.format)} sparse {kind} of dtype '{self.dtype}'\n"
                f"\twith {self.nnz} stored elements{self._about_storage()} and shape {self.shape}>")

    def _about_storage(self):
        return ""

    def __str__(self):
        if self.nnz == 0:
            return repr(self)
        coo = self.tocsr().tocoo() if self.format == "dia" else self.tocoo()  # row by row
        half = self.maxprint // 2
        parts = [slice(None)] if self.nnz <= self.maxprint else [slice(half), slice(half - self.maxprint, None)]
        texts = []
        for part in parts:
            places = zip(*(c[part].get().tolist() for c in coo.coords))
            texts.append("\n".join(f"  {place}\t{value}" for place, value in zip(places, coo.data[part].get())))
        return repr(self) + "\n  Coords\tValues\n" + "\n  :\t:\n".join(texts)

    # ---- conversions ----

    def asformat(self, format, copy=False):
        """Return the matrix in a format ("csr", "csc", "coo", "dia"); itself where it has that, or where format is None."""
        if format is None or format == self.format:
            return self.copy() if copy else self
        if ("coo" if not isinstance(format, str) else format) not in _NAMES:
            raise ValueError(f"Format {format} is unknown.")
        return getattr(self, "to" + format)(copy=copy)

    def tocsr(self, copy=False):
        """Return the matrix in CSR format."""
        return self.tocoo(copy=False).tocsr(copy=copy)

    def tocsc(self, copy=False):
        """Return the matrix in CSC format."""
        return self.tocoo(copy=False).tocsc(copy=copy)

    def todia(self, copy=False):
        """Return the matrix in DIA format."""
        return self.tocoo(copy=False).todia(copy=copy)

    def todense(self, order=None, out=None):
        """The elements as a dense array of the server."""
        return self.toarray(order=order, out=out)

    def toarray(self, order=None, out=None):
        """The elements as a dense array of the server, row-major or (order="F") by columns."""
        if out is not None and (order is not None or out.shape != self.shape or out.dtype != self.dtype):
            raise ValueError("output array must be of the matrix's shape and type, and order not be given" if
                             order is None else "order cannot be specified if out is not None")
        if order not in (None, "C", "F"):
            raise ValueError(f"order must be 'C' or 'F', not {order!r}")
        row, col, data = self._triple()
        shape = self._two
        if order == "F":
            row, col, shape = col, row, shape[::-1]
        flat = _entries.scatter_add(shape[0] * shape[1], _entries.as_index(row, np.dtype(np.int64)) * shape[1] + col,
                                    data)
        dense = flat.reshape(shape)
        dense = dense.T if order == "F" else dense
        dense = dense.reshape(self.shape) if self.ndim == 1 else dense
        if out is None:
            return dense
        out[...] = dense
        return out

    def get(self, stream=None):
        """Return the matrix as SciPy's sparse array or matrix of the class of that name, on the host."""
        import scipy.sparse
        return getattr(scipy.sparse, type(self).__name__)(self._host_parts(), shape=self.shape)

    def copy(self):
        """A copy, which shares nothing with this one."""
        return self._with_data(self.data.copy(), copy=True)

    def astype(self, dtype, casting="unsafe", copy=True):
        """Return the matrix with elements of another type."""
        dtype = check_dtype(dtype)
        if dtype == self.dtype:
            return self.copy() if copy else self
        return self._with_data(self.data.astype(dtype, casting=casting), copy=copy)

    def reshape(self, *shape, order="C", copy=False):
        """The elements in another shape, with as many places."""
        shape = shape[0] if len(shape) == 1 else shape
        shape = (shape,) if is_integer(shape) else tuple(operator.index(n) for n in shape)
        allowed = self._like("coo")._allow_nd
        total = self._two[0] * self._two[1]
        if -1 in shape:
            rest = 1
            for n in shape:
                rest *= n if n != -1 else 1
            if shape.count(-1) > 1:
                raise ValueError("can only specify one unknown dimension")
            if rest == 0 or total % rest:
                raise ValueError(f"cannot reshape array of size {total} into shape {shape}")
            shape = tuple(total // rest if n == -1 else n for n in shape)
        new = check_shape(shape, allowed)
        if np.prod([int(n) for n in new], dtype=object) != total:
            raise ValueError(f"cannot reshape array of size {total} into shape {new}")
        if new == self.shape:
            return self.copy() if copy else self
        return self._reshaped(new, order)

    def _reshaped(self, new, order):
        row, col, data = self._triple()
        old, two = self._two, new if len(new) == 2 else (1, *new)
        dtype = _entries.index_type(*two, like=(row,))
        row, col = (c.astype(np.int64) for c in (row, col))
        if order == "C":
            place = row * old[1] + col
            row, col = place // two[1] if two[1] else place, place % two[1] if two[1] else place
        elif order == "F":
            place = col * old[0] + row
            row, col = place % two[0] if two[0] else place, place // two[0] if two[0] else place
        else:
            raise ValueError("'order' must be 'C' or 'F'")
        format = self.format if len(new) == 2 or self.ndim == 1 else "coo"
        return self._make(row.astype(dtype), col.astype(dtype), data.copy(), new, format)

    def transpose(self, axes=None, copy=False):
        """The transposed matrix; what has one dimension stays as it is."""
        if axes is not None and self.ndim == 2 and tuple(np.atleast_1d(axes)) not in ((1, 0), (-1, -2)):
            raise ValueError("Sparse arrays/matrices do not support an 'axes' parameter because swapping "
                             "dimensions is the only logical permutation.")
        if self.ndim == 1:
            return self.copy() if copy else self
        return self._transposed(copy)

    def conj(self, copy=True):
        """The complex conjugate, element by element."""
        if self.dtype.kind == "c":
            return self._with_data(self.data.conj(), copy=copy)
        return self.copy() if copy else self

    conjugate = conj

    def nonzero(self):
        """Indices of the elements that are not zero: an array for each dimension."""
        coo = self.tocoo(copy=True)
        coo.sum_duplicates()
        keep = ad.nonzero(coo.data != 0)[0]
        return tuple(c[keep] for c in coo.coords)

    def count_nonzero(self, axis=None):
        """How many elements are not zero, of all or along an axis."""
        return _reductions.count_nonzero(self, axis)

    def diagonal(self, k=0):
        """The k-th diagonal as a dense array."""
        self._check_two_dimensions("diagonal")
        rows, cols = self.shape
        if k <= -rows or k >= cols:
            return ad.empty(0, self.dtype)
        row, col, data = self._triple()
        keep = ad.nonzero(col.astype(np.int64) - row == k)[0]
        places = row[keep].astype(np.int64) - max(0, -k)
        return _entries.scatter_add(min(rows + min(k, 0), cols - max(k, 0)), places, data[keep])

    def trace(self, offset=0):
        """The sum of a diagonal."""
        return self.diagonal(k=offset).sum()

    def setdiag(self, values, k=0):
        """Put values, an array or a number, on the k-th diagonal."""
        self._check_two_dimensions("setdiag")
        rows, cols = self.shape
        if (k > 0 and k >= cols) or (k < 0 and -k >= rows):
            raise ValueError("k exceeds array dimensions")
        values = ad.asarray(values, dtype=self.dtype)
        if values.ndim > 1:
            raise ValueError("values must be 0-d or 1-d")
        length = min(rows + min(k, 0), cols - max(k, 0))
        if values.ndim:
            length = min(length, values.size)
            values = values[:length]
        if length > 0:
            self._set_diagonal(max(0, -k), max(0, k), length, ad.broadcast_to(values, (length,)))

    def _check_two_dimensions(self, what):
        if self.ndim != 2:
            raise ValueError(f"{what} requires two dimensions")

    # ---- reductions ----

    def sum(self, axis=None, dtype=None, out=None):
        """The sum of all elements or along an axis, dense."""
        return _reductions.sum_elements(self, axis, dtype, out)

    def mean(self, axis=None, dtype=None, out=None):
        """The mean of all elements or along an axis, dense."""
        return _reductions.mean_elements(self, axis, dtype, out)

    # ---- arithmetic ----

    def __add__(self, other):
        return self._add(other, 1)

    def __sub__(self, other):
        return self._add(other, -1)

    def __radd__(self, other):
        return self._add(other, 1)

    def __rsub__(self, other):
        if is_scalar_like(other):
            return (-self)._add(other, 1)
        return NotImplemented if not is_dense(other) else ad.subtract(other, self.toarray())

    def _add(self, other, sign):
        if is_scalar_like(other):
            if other == 0:
                return self.copy()
            raise NotImplementedError(f"{'adding' if sign > 0 else 'subtracting'} a nonzero scalar "
                                      f"{'to' if sign > 0 else 'from'} a sparse array is not supported")
        if is_host_sparse(other):
            other = self._like("coo")(other)
        if issparse(other):
            if other.shape != self.shape and self.shape != (1, *other.shape):  # a line more than a row, as with CuPy
                raise ValueError("inconsistent shapes")
            return _binary.combine(self, other, ad.add if sign > 0 else ad.subtract)
        if is_dense(other):
            other = ad.asarray(other)
            return ad.add(self.toarray(), other) if sign > 0 else ad.subtract(self.toarray(), other)
        return NotImplemented

    def multiply(self, other):
        """The product element by element with a number, a dense array or a sparse one, broadcast."""
        return _binary.multiply(self, other)

    def maximum(self, other):
        """The larger one, element by element."""
        return _binary.maximum_minimum(self, other, ad.maximum, operator.gt)

    def minimum(self, other):
        """The smaller one, element by element."""
        return _binary.maximum_minimum(self, other, ad.minimum, operator.lt)

    def power(self, n, dtype=None):
        """Each element to the power of the number n."""
        if not is_scalar_like(n):
            raise NotImplementedError("input is not scalar")
        if not n:
            raise NotImplementedError("zero power is not supported as it would densify the matrix.\n"
                                      "Use `np.ones(A.shape, dtype=A.dtype)` for this case.")
        data = self.data if dtype is None else self.data.astype(dtype)
        return self._with_data(data ** n, copy=True)

    def _multiply_scalar(self, other):
        other = other.item() if isinstance(other, ndarray) and self.dtype.kind == "b" else other
        kept = ad.asarray(other).dtype if isinstance(other, (ndarray, np.ndarray, np.generic)) else None
        dtype = upcast(np.result_type(self.dtype, other)) if kept is None else upcast(self.dtype, kept)
        data = self.data if self.data.dtype == dtype else self.data.astype(dtype)
        return self._with_data(data * ad.asarray(other, dtype=dtype), copy=True)

    def __mul__(self, other):
        return self.multiply(other)

    def __rmul__(self, other):
        return self.multiply(other)

    def __matmul__(self, other):
        if is_scalar_like(other):
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        return self._matmul_dispatch(other)

    def __rmatmul__(self, other):
        if is_scalar_like(other):
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        return self._rmatmul_dispatch(other)

    def dot(self, other):
        """The product with a number, a dense array or a sparse one. For COO an array without dimensions is a number."""
        is_number = is_scalar_like(other) if self.format == "coo" else np.isscalar(other)
        return self._multiply_scalar(other) if is_number else self @ other

    def _matmul_dispatch(self, other):
        if is_scalar_like(other):
            return self._multiply_scalar(other)
        if is_host_sparse(other):
            other = self._like("csr")(other)
        if issparse(other):
            return _products.multiply_sparse(self, other)
        if other is None or not isinstance(other, (ndarray, np.ndarray, list, tuple)):
            return NotImplemented
        return _products.multiply_dense(self, ad.asarray(other))

    def _rmatmul_dispatch(self, other):
        if is_scalar_like(other):
            return self._multiply_scalar(other)
        if other is None or not isinstance(other, (ndarray, np.ndarray, list, tuple)):
            return NotImplemented
        return _products.multiply_from_left(ad.asarray(other), self)

    def __truediv__(self, other):
        return _binary.divide(self, other)

    def __div__(self, other):
        return _binary.divide(self, other)

    def __rtruediv__(self, other):
        return NotImplemented

    def __neg__(self):
        if self.dtype.kind == "b":
            raise NotImplementedError("negating a boolean sparse array is not supported")
        return self._with_data(-self.data, copy=True)

    def __abs__(self):
        return self._with_data(abs(self.data), copy=True)

    def __round__(self, ndigits=0):
        return self._with_data(ad.around(self.data, decimals=ndigits or 0), copy=True)

    def __pow__(self, other):
        return self.power(other)

    def _in_place(self, other, divide):
        if not is_scalar_like(other):
            return NotImplemented
        if self.dtype.kind in "biu":
            self.data = self.data / other if divide else self.data.astype(np.float64) * other if (
                self.dtype.kind == "b") else self.data * other
        elif divide:
            self.data /= other
        else:
            self.data *= other
        return self

    def __imul__(self, other):
        return self._in_place(other, False)

    def __itruediv__(self, other):
        return self._in_place(other, True)

    def __iadd__(self, other):
        return NotImplemented

    def __isub__(self, other):
        return NotImplemented

    # ---- comparisons ----

    def __eq__(self, other):
        return _binary.compare(self, other, ad.equal)

    def __ne__(self, other):
        return _binary.compare(self, other, ad.not_equal)

    def __lt__(self, other):
        return _binary.compare(self, other, ad.less)

    def __gt__(self, other):
        return _binary.compare(self, other, ad.greater)

    def __le__(self, other):
        return _binary.compare(self, other, ad.less_equal)

    def __ge__(self, other):
        return _binary.compare(self, other, ad.greater_equal)


class MatrixMethods(spmatrix):
    """Methods that matrices have besides, or have otherwise than arrays: * is the matrix product, ** its power."""

    def __mul__(self, other):
        return self._matmul_dispatch(other)

    def __rmul__(self, other):
        return self._rmatmul_dispatch(other)

    def __pow__(self, other):
        from .linalg._matrices import matrix_power
        return matrix_power(self, other)

    @property
    def shape(self):
        return self._shape

    @shape.setter
    def shape(self, shape):
        self.__dict__ = self.reshape(shape).asformat(self.format).__dict__

    def set_shape(self, shape):
        """Change the shape in place."""
        self.shape = shape

    def get_shape(self):
        """The shape."""
        return self._shape

    def getnnz(self, axis=None):
        """How many elements are stored, in all or along an axis."""
        return self._getnnz(axis=axis)

    def getformat(self):
        """The name of the format."""
        return self.format

    def getmaxprint(self):
        """How many elements are printed at most."""
        return self.maxprint

    def asfptype(self):
        """Return the matrix with elements of a floating type: itself where they are."""
        return self if self.dtype.kind in "fc" else self.astype(np.result_type(self.dtype, np.float32))

    def getH(self):
        """The transposed complex conjugate."""
        return self.conj().transpose()

    @property
    def H(self):
        warnings.warn("`spmatrix.H` is deprecated. Use `.T.conj()` instead.", DeprecationWarning, stacklevel=2)
        return self.getH()

    @property
    def A(self):
        warnings.warn("`spmatrix.A` is deprecated. Use `.toarray()` instead.", DeprecationWarning, stacklevel=2)
        return self.toarray()

    def getrow(self, i):
        """Row i, as a matrix in CSR format."""
        return self.tocsr()[self._checked_line(i, 0), :]

    def getcol(self, j):
        """Column j, as a matrix in CSR format, or of a CSC matrix in CSC format."""
        return (self if self.format == "csc" else self.tocsr())[:, self._checked_line(j, 1)]

    def _checked_line(self, i, axis):
        size = self.shape[axis]
        if not -size <= i < size:
            raise IndexError("index out of bounds")
        return int(i) % size


def warn_efficiency(text):
    """Warn that an operation is slow because of what it has to store."""
    warnings.warn(text, SparseEfficiencyWarning, stacklevel=4)
