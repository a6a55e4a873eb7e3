"""Reductions of sparse matrices: sums, means, extremes and where these are, counts."""
import numpy as np

import arrayd as ad

from . import _entries
from ._types import check_axis, sparray


def _deduplicated(a):
    """a without what is stored of diagonals outside of it; where bools are stored a copy in which no place is stored twice:
    there sums would count it twice."""
    if a.dtype.kind != "b":
        return a.tocoo() if a.format == "dia" else a
    coo = a.tocoo(copy=True)
    coo.sum_duplicates()
    return coo


def _finish(a, result, axis, out):
    """A reduction along an axis in the shape that arrays, or matrices, give; copied into out where there is one."""
    if axis is not None and not isinstance(a, sparray):
        result = result.reshape((1, -1) if axis == 0 else (-1, 1))
    if out is None:
        return result
    if out.shape != result.shape:
        raise ValueError("dimensions do not match")
    out[...] = result.astype(out.dtype)
    return out


def _sum_type(dtype):
    if dtype.kind == "u":
        return np.dtype(np.uint64)
    return np.dtype(np.int64) if dtype.kind in "bi" else dtype


def _sum_along(a, axis, dtype):
    if a.format in ("csr", "csc") and dtype == a.dtype and dtype.char in "fdFD":
        from ._products import multiply_dense, multiply_from_left
        ones = ad.ones(a.shape[axis], dtype)
        return multiply_dense(a, ones) if axis == 1 else multiply_from_left(ones, a)
    row, col, data = a._triple()
    return _entries.scatter_add(a.shape[1 - axis], (col, row)[axis], data, dtype)


def sum_elements(a, axis, dtype, out):
    """See SparseBase.sum."""
    axes = check_axis(axis, a.ndim)
    a, inner = _deduplicated(a), _sum_type(a.dtype)
    result = a.data.sum(dtype=inner) if axes is None else _sum_along(a, axes[0], inner)
    if dtype is not None and result.dtype != dtype:
        result = result.astype(dtype)
    return _finish(a, result, None if axes is None else axes[0], out)


def mean_elements(a, axis, dtype, out):
    """See SparseBase.mean."""
    axes = check_axis(axis, a.ndim)
    integral = a.dtype.kind in "biu"
    result_dtype = np.dtype(dtype) if dtype is not None else np.dtype(np.float64) if integral else a.dtype
    inner = np.dtype(np.float64) if integral else a.dtype
    divisor = int(np.prod(a.shape, dtype=object)) if axes is None else a.shape[axes[0]]
    if divisor == 0:
        raise ZeroDivisionError("division by zero")
    a = _deduplicated(a).astype(inner, copy=False)
    a = a._with_data(a.data * (1.0 / divisor), copy=False)
    result = a.data.sum() if axes is None else _sum_along(a, axes[0], inner)
    return _finish(a, result.astype(result_dtype), None if axes is None else axes[0], out)


def count_nonzero(a, axis):
    """See SparseBase.count_nonzero."""
    if a.ndim == 1 and axis is not None and check_axis(axis, 1) is None:
        axis = None
    axes = check_axis(axis, a.ndim)
    if axes is not None and a.format == "dia":
        raise NotImplementedError("count_nonzero over an axis is not implemented for DIA format.")
    kept = take_canonical(a)
    if axes is None:
        return int(ad.count_nonzero(kept.data))
    row, col, data = kept._triple()
    return _entries.count_places((col, row)[axes[0]][ad.nonzero(data != 0)[0]], a.shape[1 - axes[0]])


# ---- extremes ----

def _least(dtype, largest):
    """Return what an extreme begins with: it is replaced by any element."""
    if dtype.kind == "b":
        return not largest
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if largest else np.iinfo(dtype).max
    return -np.inf if largest else np.inf


def _without_nan(data, ignored, fill):
    return ad.where(ad.isnan(data), ad.asarray(fill, dtype=data.dtype), data) if ignored and (
        data.dtype.kind in "fc") else data


def take_canonical(a):
    """a, or a copy of it in COO format, in which no place is stored twice."""
    if a.format != "dia" and a.has_canonical_format:
        return a
    coo = a.tocoo(copy=True)
    coo.sum_duplicates()
    return coo


def extreme(a, axis, out, explicit, largest, ignore_nan=False):
    """The largest or smallest element of all, dense, or along an axis, sparse."""
    if out is not None:
        raise ValueError("Sparse arrays do not support an 'out' parameter.")
    axes = check_axis(axis, a.ndim)
    pick = ad.maximum if largest else ad.minimum
    total = int(np.prod(a.shape, dtype=object))
    coo = take_canonical(a)
    if axes is None:
        if total == 0:
            raise ValueError("zero-size array to reduction operation")
        if coo.nnz == 0:
            return ad.zeros((), a.dtype)
        data = _without_nan(coo.data, ignore_nan, _least(a.dtype, largest))
        found = data.max() if largest else data.min()
        return found if coo.nnz == total or explicit else pick(found, ad.zeros((), a.dtype))
    return _extreme_along(a, coo, axes[0], explicit, largest, ignore_nan, pick)


def _extreme_along(a, coo, axis, explicit, largest, ignore_nan, pick):
    length, size = a.shape[axis], a.shape[1 - axis]
    if length == 0:
        raise ValueError("zero-size array to reduction operation")
    places = coo._triple()[1 - axis]
    fill = _least(a.dtype, largest)
    found = _entries.scatter_extreme(ad.full(size, fill, dtype=a.dtype), places,
                                     _without_nan(coo.data, ignore_nan, fill), largest)
    counts = coo._getnnz(axis)
    zero = ad.zeros((), a.dtype)
    found = ad.where(counts == 0, zero, found if explicit else ad.where(counts == length, found, pick(found, zero)))
    keep = ad.nonzero(found != 0)[0]
    indices = places.dtype
    line, at = ad.zeros(keep.size, indices), keep.astype(indices)
    if isinstance(a, sparray):
        return a._make(line, at, found[keep], (size,))
    return a._make(*((line, at) if axis == 0 else (at, line)), found[keep], (1, size) if axis == 0 else (size, 1))


def place_of_extreme(a, axis, out, explicit, largest):
    """Where the largest or smallest element is, the first of equal ones: of all, or along an axis."""
    if out is not None:
        raise ValueError("Sparse types do not support an 'out' parameter.")
    axes = check_axis(axis, a.ndim)
    if axes is None:
        return _place_of_all(a, explicit, largest)
    if a.shape[axes[0]] == 0:
        raise ValueError("Cannot apply the operation along a zero-sized dimension.")
    coo = take_canonical(a)
    row, col = coo._triple()[:2]
    major, minor = (row, col) if axes[0] == 1 else (col, row)
    result = _places_along(major, minor, coo.data, a.shape[1 - axes[0]], a.shape[axes[0]], explicit, largest)
    return _finish(a, result, axes[0], None)


def _place_of_all(a, explicit, largest):
    total = int(np.prod(a.shape, dtype=object))
    if total == 0:
        raise ValueError("Cannot apply the operation to an empty matrix.")
    row, col, data = take_canonical(a)._triple()
    places = row.astype(np.int64) * a._two[1] + col
    if data.size == 0 and explicit:
        raise ValueError("Cannot apply the operation to zero matrix when explicit=True.")
    return _places_along(ad.zeros(places.size, np.int64), places, data, 1, total, explicit, largest)[0]


def _places_along(major, minor, data, size, length, explicit, largest):
    """For each of `size` lines of so many places, that of the extreme element."""
    order = _entries.order_entries(major, minor, (size, length))
    major, minor, data = major[order], minor[order].astype(np.int64), data[order]
    starts = _entries.row_pointers(major, size, np.int64)
    counts = starts[1:] - starts[:-1]
    found = _entries.scatter_extreme(ad.full(size, _least(data.dtype, largest), dtype=data.dtype), major, data, largest)
    gap = counts < length if not explicit else ad.zeros(size, np.bool_)
    zero = ad.zeros((), data.dtype)
    best = ad.where(counts == 0, zero, ad.where(gap, (ad.maximum if largest else ad.minimum)(found, zero), found))
    wanted = best[major]
    hit = ad.nonzero((data == wanted) | ((data != data) & (wanted != wanted)))[0]
    places = _entries.scatter_extreme(ad.full(size, length, dtype=np.int64), major[hit], minor[hit], False)
    rank = ad.arange(minor.size) - starts[:-1][major]
    after = ad.nonzero(minor != rank)[0]
    missing = _entries.scatter_extreme(counts.copy(), major[after], rank[after], False)
    places = ad.where(gap & (best == 0), ad.minimum(places, missing), places)
    return ad.where(places == length, ad.zeros((), np.int64), places)


class ExtremeMethods:
    """min, max, argmin and argmax, which COO, CSR and CSC have."""

    def max(self, axis=None, out=None, *, explicit=False):
        """The largest element of all, or along an axis; explicit: of those that are stored."""
        return extreme(self, axis, out, explicit, True)

    def min(self, axis=None, out=None, *, explicit=False):
        """The smallest element of all, or along an axis; explicit: of those that are stored."""
        return extreme(self, axis, out, explicit, False)

    def nanmax(self, axis=None, out=None, *, explicit=False):
        """The largest element, NaN left out."""
        return extreme(self, axis, out, explicit, True, True)

    def nanmin(self, axis=None, out=None, *, explicit=False):
        """The smallest element, NaN left out."""
        return extreme(self, axis, out, explicit, False, True)

    def argmax(self, axis=None, out=None, *, explicit=False):
        """Where the largest element is."""
        return place_of_extreme(self, axis, out, explicit, True)

    def argmin(self, axis=None, out=None, *, explicit=False):
        """Where the smallest element is."""
        return place_of_extreme(self, axis, out, explicit, False)
