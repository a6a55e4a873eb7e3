"""Entries of sparse matrices as arrays on the server: their keys, their order, and where rows of them begin.

A matrix is seen along a major axis (the rows of CSR, the columns of CSC) and a minor one.
"""
import numpy as np

import arrayd as ad

from ..._base import call

_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)
_MOST = np.iinfo(np.int32).max
_LARGEST_KEY = np.iinfo(np.int64).max
_UINT32 = np.dtype(np.uint32)
FAR = 1 << 62  # beyond each diagonal


def index_type(*sizes, like=()):
    """The type of indices that count up to sizes: int32 unless one is larger, or one of the arrays `like` has int64."""
    if any(size > _MOST for size in sizes) or any(a.dtype == _INT64 for a in like):
        return _INT64
    return _INT32


def as_index(a, dtype):
    """An array of integers as one of the index type."""
    return a if a.dtype == dtype else a.astype(dtype)


def scatter_add(size, places, values, dtype=None):
    """A new array of so many elements, to which each value has been added at its place."""
    dtype = np.dtype(values.dtype if dtype is None else dtype)
    if dtype == np.bool_:
        return scatter_add(size, places, values, np.int64) != 0
    out = ad.zeros(size, dtype)
    if values.size:
        call("scatter", (values.astype(dtype), as_index(places, _INT64)), (1,), out=out, dtype=dtype)
    return out


def scatter_extreme(out, places, values, largest):
    """Put into out the larger (or smaller) of what is there and of the values that belong there."""
    if values.size:
        call("scatter", (values, as_index(places, _INT64)), (2 if largest else 3,), out=out, dtype=out.dtype)
    return out


def count_places(places, size):
    """How often each of 0, ..., size-1 occurs, as int64."""
    out = ad.zeros(size, np.int64)
    if places.size and size:
        call("bincount", (as_index(places, _INT64),), out=out, dtype=out.dtype)
    return out


def pointers_from_counts(counts, dtype):
    """Where rows of so many entries begin, and at last where the last one ends."""
    out = ad.zeros(counts.size + 1, np.int64)
    if counts.size:
        call("cumsum", (as_index(counts, _INT64),), (0,), out=out[1:])
    return as_index(out, dtype)


def row_pointers(major, rows, dtype):
    """Where the entries of each row begin when they are sorted by rows."""
    return pointers_from_counts(count_places(major, rows), dtype)


def rows_of_pointers(indptr, entries, dtype):
    """The row of each entry."""
    if entries == 0:
        return ad.empty(0, dtype)
    return as_index(call("sprows", (indptr,), (entries,)), dtype)


def single_keys(major, minor, shape, kind=_INT64):
    """One integer for each entry, ordered as entries are; None where some would be too large."""
    if shape[0] * shape[1] > _LARGEST_KEY:
        return None
    return as_index(major, kind) * shape[1] + as_index(minor, kind)


def order_entries(major, minor, shape):
    """Where the entries are found, sorted by rows and in these by columns; equal ones as they were."""
    keys = single_keys(major, minor, shape, _UINT32 if shape[0] * shape[1] < 1 << 32 else _INT64)
    if keys is not None:
        return call("argsort", (keys,), (0,))
    order = call("argsort", (minor,), (0,))
    return order[call("argsort", (major[order],), (0,))]


def _follow(major, minor, repeated):
    """Whether each entry but the first comes after the one before it (or is equal to it, where that is allowed)."""
    compare = ad.less_equal if repeated else ad.less
    return (major[:-1] < major[1:]) | ((major[:-1] == major[1:]) & compare(minor[:-1], minor[1:]))


def are_ordered(major, minor, repeated):
    """Whether entries are sorted; repeated: may some be equal. Waits."""
    return major.size < 2 or bool(_follow(major, minor, repeated).all())


def are_rows_ordered(indptr, indices, repeated):
    """As are_ordered, for rows that begin where indptr says: no entry but the first of a row may come before the one that
    is stored before it. Waits."""
    if indices.size < 2:
        return True
    falls = (ad.greater if repeated else ad.greater_equal)(indices[:-1], indices[1:])
    starts = indptr[1:-1]
    begun = (starts < indptr[2:]) & (starts > 0)
    between = falls[ad.clip(as_index(starts, _INT64) - 1, 0, falls.size - 1)] & begun
    return bool(falls.sum() == between.sum())


def unique_entries(major, minor, shape):
    """The different places of entries, sorted, and which of them each entry has: (major, minor, index). Waits."""
    if major.size == 0:
        return major, minor, ad.empty(0, np.int64)
    order = order_entries(major, minor, shape)
    a, b = major[order], minor[order]
    first = ad.ones(order.size, np.bool_)
    first[1:] = (a[1:] != a[:-1]) | (b[1:] != b[:-1])
    index = ad.empty(order.size, np.int64)
    index[order] = call("cumsum", (first,), (0,), dtype=np.int64) - 1
    places = call("nonzero", (first,))[0]
    return a[places], b[places], index


def sum_entries(major, minor, data, shape):
    """Entries sorted, those of one place added up: copies, but for major where entries are sorted already. Waits."""
    if are_ordered(major, minor, False):
        return major, minor.copy(), data.copy()
    order = order_entries(major, minor, shape)
    major, minor, data = major[order], minor[order], data[order]
    first = ad.ones(order.size, np.bool_)
    first[1:] = (major[1:] != major[:-1]) | (minor[1:] != minor[:-1])
    places = call("nonzero", (first,))[0]
    if places.size == order.size:
        return major, minor, data
    return major[places], minor[places], scatter_add(places.size, call("cumsum", (first,), (0,), dtype=np.int64) - 1, data)


def keep_rows(indptr, keep):
    """Where rows begin of whose entries those at the ascending places `keep` are left."""
    return as_index(call("searchsorted", (keep, as_index(indptr, _INT64)), (False,)), indptr.dtype)


def expand_ranges(starts, counts):
    """The integers of ranges, one range after another: (where each range begins among them, and at last how many there are,
    number of the range, integer).

    Waits.
    """
    pointers = pointers_from_counts(counts, _INT64)
    total = int(pointers[-1]) if counts.size else 0
    if total == 0:
        return pointers, ad.empty(0, np.int64), ad.empty(0, np.int64)
    number = rows_of_pointers(pointers, total, _INT64)
    return pointers, number, ad.arange(total) + (as_index(starts, _INT64) - pointers[:-1])[number]


def find_entries(major, minor, shape, rows, columns):
    """Where (row, column) stand among entries that are sorted and unique: (place, whether it is there)."""
    if major.size == 0:
        return ad.zeros(rows.shape, np.int64), ad.zeros(rows.shape, np.bool_)
    keys = single_keys(major, minor, shape)
    if keys is None:
        return _find_in_rows(major, minor, rows, columns)
    wanted = single_keys(rows, columns, shape)
    place = ad.minimum(call("searchsorted", (keys, wanted), (False,)), major.size - 1)
    return place, keys[place] == wanted


def _find_in_rows(major, minor, rows, columns):
    """find_entries for matrices whose places are too many to be numbered: places get a rank among all that occur."""
    both = ad.concatenate([major, rows.ravel()]), ad.concatenate([minor, columns.ravel()])
    _, _, rank = unique_entries(*both, (_LARGEST_KEY, _LARGEST_KEY))
    keys, wanted = rank[:major.size], rank[major.size:].reshape(rows.shape)
    place = ad.minimum(call("searchsorted", (keys, wanted), (False,)), major.size - 1)
    return place, keys[place] == wanted
