"""Functions of two sparse matrices, or of one and something dense, element by element."""
import numpy as np

import arrayd as ad

from ..._base import call
from ..._core import ndarray
from . import _entries
from ._types import check_dtype, is_host_sparse, is_scalar_like, issparse, upcast

# Functions with f(0, 0) = 0, by their numbers in the server's call spunion.
_UNIONS = {ad.add: 0, ad.subtract: 1, ad.multiply: 2, ad.maximum: 3, ad.minimum: 4, ad.not_equal: 5, ad.less: 6, ad.greater: 7}
EITHER = 8  # what the first matrix has, or where it has nothing the second one


def _as_canonical(a, format, dtype=None):
    """a in a compressed format, no place of it stored twice: what is added up becomes of a type first, where one is given."""
    a = a.asformat(format)
    if not a.has_canonical_format:
        a = a.copy() if dtype is None else a.astype(dtype)
        a.sum_duplicates()
    return a


def _as_parts(a, index, dtype):
    """The arrays of a compressed matrix with indices of one type and elements of the other."""
    return a.data.astype(dtype, copy=False), _entries.as_index(a.indices, index), _entries.as_index(a.indptr, index)


def unite(a, b, number):
    """The function of that number, in the server's call spunion, of two matrices in one compressed format and of one shape."""
    dtype = upcast(a.dtype, b.dtype)
    a, b = (_as_canonical(m, m.format, dtype) for m in (a, b))
    index = _entries.index_type(*a._two, a.data.size + b.data.size, like=(a.indices, b.indices))
    loop = dtype if dtype.char in "fdFD" or dtype == np.uint64 else np.dtype(np.int64)
    data, indices, indptr = call("spunion", (*_as_parts(a, index, loop), *_as_parts(b, index, loop)), (number,), dtype=loop)
    if data.dtype == loop != dtype:
        data = data != 0 if dtype.kind == "b" else data.astype(dtype)
    index = _entries.index_type(*a._two, data.size, like=(a.indices, b.indices))
    return a._from_parts(data, _entries.as_index(indices, index), _entries.as_index(indptr, index), a.shape,
                         has_canonical_format=True)


def combine_same_shape(a, b, function):
    """function(a, b), sparse, for two matrices of one shape and one of the functions of _UNIONS."""
    if function is ad.subtract and upcast(a.dtype, b.dtype).kind == "b":
        raise TypeError("bools are not subtracted: use != instead")
    format = "csc" if a.format == "csc" and b.ndim == 2 else "csr"
    return unite(a.asformat(format), b.asformat(format), _UNIONS[function])


def combine(a, b, function):
    """function(a, b), sparse, for two matrices that are broadcast and one of the functions of _UNIONS."""
    return combine_same_shape(*_broadcast_pair(a, b), function)


def _broadcast(a, shape):
    """a repeated along axes of length 1, in COO format."""
    row, col, data = a._triple()
    old, two = a._two, shape if len(shape) == 2 else (1, *shape)
    indices = _entries.index_type(*two, like=(row,))
    for axis in (0, 1):
        if old[axis] != 1 or two[axis] == 1:
            continue
        n = two[axis]
        every = ad.repeat(ad.arange(n, dtype=indices), data.size)
        other = ad.tile((col, row)[axis], n)
        row, col = (every, other) if axis == 0 else (other, every)
        data = ad.tile(data, n)
    return a._make(_entries.as_index(row, indices), _entries.as_index(col, indices), data, shape)


def _broadcast_pair(a, b):
    """Two sparse matrices as ones of one shape. ValueError."""
    if a.shape == b.shape:
        return a, b
    try:
        shape = np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        raise ValueError("inconsistent shapes") from None
    return (a if a.shape == shape else _broadcast(a, shape)), (b if b.shape == shape else _broadcast(b, shape))


def _as_operand(a, other):
    """other as a number, a sparse matrix or a dense array of the server; None where it is none of these."""
    if is_scalar_like(other):
        return other
    if issparse(other):
        return other
    if is_host_sparse(other):
        return a._like("csr")(other)
    if isinstance(other, (ndarray, np.ndarray, list, tuple)):
        return ad.asarray(other)
    return None


def multiply(a, other):
    """a.multiply(other), sparse."""
    value = _as_operand(a, other)
    if value is None:
        return NotImplemented
    if is_scalar_like(value):
        return a._multiply_scalar(value)
    if issparse(value):
        return combine(a, value, ad.multiply)
    return _multiply_dense(a, value)


def _multiply_dense(a, x):
    if x.ndim > 2:
        raise ValueError(f"inconsistent shapes {a.shape} and {x.shape}")
    try:
        shape = np.broadcast_shapes(a.shape, x.shape)
    except ValueError:
        raise ValueError(f"inconsistent shapes {a.shape} and {x.shape}") from None
    a = a if a.shape == shape else _broadcast(a, shape)
    row, col, data = a._triple()
    dtype = check_dtype(upcast(a.dtype, x.dtype))
    factors = ad.broadcast_to(x, a._two)[row, col]
    return a._make(row, col, data.astype(dtype) * factors.astype(dtype), shape)


def divide(a, other):
    """a / other: sparse for a number or a dense array, dense for a sparse one."""
    value = _as_operand(a, other)
    if value is None:
        return NotImplemented
    if np.can_cast(a.dtype, np.float64) and (is_scalar_like(value) or issparse(value)):
        a = a.astype(np.float64, copy=False)
    if is_scalar_like(value):
        return _divide_scalar(a, value)
    if issparse(value):
        if value.shape != a.shape:
            raise ValueError(f"inconsistent shapes {a.shape} and {value.shape}")
        return a.toarray() / value.toarray()
    return _multiply_dense(a, ad.true_divide(1.0, value))


def _divide_scalar(a, value):
    dtype = upcast(np.result_type(a.dtype, value.dtype if isinstance(value, ndarray) else value))
    return a._with_data((a.data / value).astype(dtype), copy=True)


def maximum_minimum(a, other, function, exceeds):
    """a.maximum(other) or a.minimum(other); exceeds: whether a number becomes the result where a has none."""
    value = _as_operand(a, other)
    if value is None:
        return NotImplemented
    if is_scalar_like(value):
        if bool(exceeds(value, 0)):
            from ._base import warn_efficiency
            warn_efficiency("Taking maximum (minimum) with > 0 (< 0) number results to a dense matrix.")
            return a._like("csr" if a.format != "csc" else "csc")(function(a.toarray(), value))
        x = _as_canonical(a, "csr" if a.format != "csc" else "csc")
        x = x._with_data(function(x.data, value), copy=True)
        x.eliminate_zeros()
        return x
    if issparse(value):
        return combine(a, value, function)
    return function(a.toarray(), value)


def compare(a, other, function):
    """function(a, other), of bools: sparse unless other is dense."""
    from ._base import warn_efficiency
    value = _as_operand(a, other)
    if value is None:
        return function is ad.not_equal if function in (ad.equal, ad.not_equal) else NotImplemented
    if is_scalar_like(value):
        kept = "csc" if a.format == "csc" else "csr"
        if bool(function(ad.zeros((), a.dtype), value)):
            warn_efficiency("Comparing a sparse matrix with a scalar for which zero compares true is inefficient, as "
                            "the result is not sparse.")
            return a._like(kept)(function(a.toarray(), value))
        x = _as_canonical(a, kept)
        x = x._with_data(function(x.data, value), copy=True)
        x.eliminate_zeros()
        return x
    if not issparse(value):
        return function(a.toarray(), value)
    if a.shape != value.shape and function in (ad.equal, ad.not_equal) and not _broadcastable(a, value):
        raise ValueError("inconsistent shapes")
    x, y = _broadcast_pair(a, value)
    if function not in (ad.equal, ad.less_equal, ad.greater_equal):
        return combine_same_shape(x, y, function)
    warn_efficiency("Comparing sparse matrices using ==, <=, and >= is inefficient, try using !=, <, or > instead.")
    return a._like("csc" if a.format == "csc" else "csr")(function(x.toarray(), y.toarray()))


def _broadcastable(a, b):
    try:
        np.broadcast_shapes(a.shape, b.shape)
        return True
    except ValueError:
        return False
