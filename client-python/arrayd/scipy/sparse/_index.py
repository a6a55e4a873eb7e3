"""Elements of sparse matrices by keys: a[key] and a[key] = value."""
import warnings

import numpy as np

import arrayd as ad

from ..._base import call
from ..._core import ndarray
from . import _entries
from ._types import SparseEfficiencyWarning, is_host_sparse, is_integer, issparse, sparray, spmatrix

_ALL = slice(None)


# ---- keys ----

def _without_ellipsis(key, ndim):
    """A key as a tuple of one part for each dimension, and None where the result gets a new one."""
    key = key if isinstance(key, tuple) else (key,)
    if sum(part is Ellipsis for part in key) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    used = sum(part is not None and part is not Ellipsis for part in key)
    if used > ndim:
        raise IndexError(f"too many indices: the array has {ndim} dimensions, and {used} were indexed")
    fill = (_ALL,) * (ndim - used)
    if any(part is Ellipsis for part in key):
        at = next(i for i, part in enumerate(key) if part is Ellipsis)
        return key[:at] + fill + key[at + 1:]
    return key + fill


def _as_array(part):
    """An index that is neither a number nor a slice as an array of the server."""
    if isinstance(part, ndarray):
        return part
    if issparse(part) or is_host_sparse(part):
        raise IndexError("Indexing with sparse matrices is not supported except boolean indexing where matrix and "
                         "index are equal shapes.")
    try:
        found = np.asarray(part)
    except ValueError:
        raise IndexError("invalid index") from None
    if found.size == 0:
        found = found.astype(np.int64)
    if found.dtype.kind not in "biu":
        raise IndexError(f"Index dimension must be 1 or 2, of integers or bools, not {found.dtype}")
    return ad.asarray(found)


def _check_ends(low, high, size):
    """Check the least and the greatest of some indices. IndexError."""
    if high >= size:
        raise IndexError(f"index ({high}) out of range")
    if low < -size:
        raise IndexError(f"index ({low}) out of range")


def _check_bounds(index, size):
    """An integer array as one of indices from 0 on. IndexError; waits."""
    if index.dtype.kind not in "iu":
        raise IndexError("index must be of integers")
    if index.ndim > 2:
        raise IndexError("Index dimension must be 1 or 2")
    if index.size == 0:
        return index.astype(np.int64)
    low, high = ad.stack([index.min(), index.max()]).get().tolist()
    _check_ends(low, high, size)
    index = index.astype(np.int64)
    return ad.where(index < 0, index + size, index) if low < 0 else index


def _parse_part(part, size, name, checked):
    """A part of a key as an int from 0 on, a slice, or an array of such ints. Unless it is to be checked, those that the server
    has may be out of bounds, and all may be negative."""
    if isinstance(part, slice):
        return part
    if isinstance(part, (ndarray, np.ndarray)) and part.ndim == 0 and part.dtype.kind in "iu" or is_integer(part):
        i = int(part)
        if not -size <= i < size:
            raise IndexError(f"index ({i}) out of range")
        return i % size
    array = _as_array(part)
    if array.dtype == np.bool_:
        if array.ndim != 1:
            raise IndexError(f"bool index {name} has shape {array.shape} instead of ({size},)")
        if array.size != size:
            raise IndexError(f"bool index {name} has shape {array.shape} instead of {(size,)}")
        return ad.nonzero(array)[0]
    if not checked and array.dtype.kind in "iu" and array.dtype != np.uint64 and array.ndim == 1:
        if array.size and not isinstance(part, ndarray):
            _check_ends(np.min(part), np.max(part), size)
        return array.astype(np.int64, copy=False)
    return _check_bounds(array, size)


def _mask_of(a, key):
    """The places that a mask of a's shape picks, as one array for each dimension; None where key is no such mask."""
    if isinstance(key, tuple) and len(key) == 1:
        key = key[0]
    if (issparse(key) or is_host_sparse(key)) and key.dtype == np.bool_:
        mask = a._like("coo")(key)
        if mask.shape != a.shape:
            raise IndexError(f"bool index 0 has shape {mask.shape} instead of {a.shape}")
        return mask.nonzero()
    if isinstance(key, (ndarray, np.ndarray, list)):
        try:
            mask = _as_array(key)
        except (IndexError, ValueError):
            return None
        if mask.dtype == np.bool_ and mask.ndim == a.ndim == 2:
            if mask.shape != a.shape:
                raise IndexError(f"bool index 0 has shape {mask.shape} instead of {a.shape}")
            return ad.nonzero(mask)
    return None


def _parse_key(a, key, reads=True):
    """A key as (row, column) of the matrix that a is, or is seen as, and where None stood in it."""
    mask = _mask_of(a, key)
    if mask is not None:
        return (*mask,) if a.ndim == 2 else (0, *mask), ()
    parts = _without_ellipsis(key, a.ndim)
    news = tuple(i for i, part in enumerate(parts) if part is None)
    parts = [part for part in parts if part is not None]
    names = ("row", "column") if a.ndim == 2 else ("column",)
    # Lines of a compressed format are found by pointers, where the server checks the index.
    by_pointers = reads and a.format in ("csr", "csc") and a.ndim == 2 and isinstance(parts[1 - a._major], slice)
    parsed = [_parse_part(part, size, name, not (by_pointers and axis == a._major))
              for axis, (part, size, name) in enumerate(zip(parts, a.shape, names))]
    return ((0, *parsed) if a.ndim == 1 else tuple(parsed)), news


# ---- selections along one axis ----

def _select_slice(places, size, part):
    """Find the entries that a slice keeps, and their new places: (index, places, length)."""
    start, stop, step = part.indices(size)
    length = len(range(start, stop, step))
    if (start, step, length) == (0, 1, size):
        return None, places, length
    offset = places.astype(np.int64) - start
    keep = ad.nonzero((offset % step == 0) & (offset // step >= 0) & (offset // step < length))[0]
    return keep, (offset[keep] // step).astype(places.dtype), length


def _select_array(places, size, index):
    """As _select_slice, for an array of indices: an entry is kept as often as its place is named."""
    order = ad.argsort(index)
    ordered = index[order]
    wide = places.astype(np.int64)
    starts = ad.searchsorted(ordered, wide)
    counts = ad.searchsorted(ordered, wide, side="right") - starts
    _, number, place = _entries.expand_ranges(starts, counts)
    return number, order[place].astype(places.dtype), index.size


def _select_axis(entries, shape, axis, part):
    """Entries of what a part of a key picks along an axis, and the length that it then has."""
    if isinstance(part, (int, np.integer)):
        part = slice(part, part + 1)
    select = _select_slice if isinstance(part, slice) else _select_array
    keep, places, length = select(entries[axis], shape[axis], part)
    if keep is None:
        return entries, length
    other = entries[1 - axis][keep]
    return ((places, other) if axis == 0 else (other, places)) + (entries[2][keep],), length


# ---- lines of compressed formats ----

def _take_lines(a, part):
    """Rows of a CSR, or columns of a CSC matrix, found by their pointers: what else is in the matrix costs nothing."""
    size = a._two[a._major]
    if isinstance(part, (int, np.integer)):
        part = slice(part, part + 1)
    if isinstance(part, slice) and part.indices(size)[2] == 1:
        taken = _take_successive(a, *part.indices(size)[:2])
    else:
        index = ad.arange(*part.indices(size)) if isinstance(part, slice) else part
        taken = _take_rows(a, _entries.as_index(index, np.dtype(np.int64)))
    lines = taken[2].size - 1
    shape = (lines, a._two[1]) if a._major == 0 else (a._two[0], lines)
    return type(a)._from_parts(*taken, shape, has_canonical_format=a._has_canonical_format,
                               has_sorted_indices=a._has_sorted_indices)


def _take_rows(a, index):
    """The data, indices and pointers of lines by their numbers, with indices of 64 bits where the matrix's do not count so far."""
    try:
        return call("sptake", (a.data, a.indices, a.indptr, index))
    except ValueError:
        if a.indptr.dtype == np.int64:
            raise
    return call("sptake", (a.data, a.indices.astype(np.int64), a.indptr.astype(np.int64), index))


def _take_successive(a, start, stop):
    """The data, indices and pointers of the lines from start to stop, as copies."""
    stop = max(start, stop)
    pointers = a.indptr[start:stop + 1]
    begin, end = pointers[ad.asarray([0, stop - start])].get().tolist()
    return a.data[begin:end].copy(), a.indices[begin:end].copy(), pointers - begin


def _narrow(a, row, col):
    """The matrix without the lines that a key leaves out, and the parts of the key for that one."""
    if a.format not in ("csr", "csc") or a.ndim != 2 or _is_all((row, col)[a._major], a._two[a._major]):
        return a, row, col
    return (_take_lines(a, row), _ALL, col) if a._major == 0 else (_take_lines(a, col), row, _ALL)


def _narrow_lines(a, row, col):
    """As _narrow, without the places of lines that a slice of successive ones leaves out. Waits."""
    if a.format not in ("csr", "csc") or a.ndim != 2:
        return a, row, col
    part, size = (col, row)[a._major], a._two[1 - a._major]
    if isinstance(part, (int, np.integer)):
        part = slice(part, part + 1)
    if not isinstance(part, slice) or _is_all(part, size) or part.indices(size)[2] != 1:
        return a, row, col
    start, stop, _ = part.indices(size)
    kept = a._keep_band(start, stop - 1)
    width = max(stop - start, 0)
    shape = (a._two[0], width) if a._major == 0 else (width, a._two[1])
    kept = type(a)._from_parts(kept.data, kept.indices - start if start else kept.indices, kept.indptr, shape,
                               has_canonical_format=a._has_canonical_format, has_sorted_indices=a._has_sorted_indices)
    return (kept, row, _ALL) if a._major == 0 else (kept, _ALL, col)


def _is_all(part, size):
    return isinstance(part, slice) and part.indices(size) == (0, size, 1)


# ---- reading ----

def _read_elements(a, row, col):
    """The elements at places that arrays name, dense, in the shape of these."""
    x = a.tocoo(copy=True)
    x.sum_duplicates()
    r, c, data = x._triple()
    place, there = _entries.find_entries(r, c, a._two, row, col)
    if data.size == 0:
        return ad.zeros(row.shape, a.dtype)
    return ad.where(there, data[place], ad.zeros((), a.dtype))


def _read_element(a, row, col):
    r, c, data = a._triple()
    at = (r == row) & (c == col)
    if a.dtype.kind == "b":
        return (data & at).any()
    return ad.where(at, data, ad.zeros((), a.dtype)).sum(dtype=a.dtype)


def _read_outer(a, row, col):
    """The submatrix of parts of which each picks along its own axis."""
    entries, rows = _select_axis(a._triple(), a._two, 0, row)
    entries, cols = _select_axis(entries, a._two, 1, col)
    canonical = a.format == "csr" and a._has_canonical_format and _keeps_order(row) and _keeps_order(col)
    return tuple(part.copy() for part in entries), (rows, cols), canonical


def _keeps_order(part):
    return isinstance(part, (int, np.integer)) or isinstance(part, slice) and (part.step or 1) > 0


def _inner_pair(row, col):
    try:
        shape = np.broadcast_shapes(row.shape, col.shape)
    except ValueError:
        raise IndexError("number of row and column indices differ") from None
    return ad.broadcast_to(row, shape), ad.broadcast_to(col, shape)


def _kind_of(part):
    return "int" if isinstance(part, (int, np.integer)) else "slice" if isinstance(part, slice) else "array"


def get_items(a, key):
    """a[key]."""
    (row, col), news = _parse_key(a, key)
    if a.ndim == 1:
        return _get_vector(a, col, news)
    kinds = _kind_of(row), _kind_of(col)
    if kinds == ("int", "int"):
        result = _read_element(a, row, col)
        return _with_axes(a, result.reshape(1), news) if news else result
    for part, other in ((row, kinds[1]), (col, kinds[0])):
        if _kind_of(part) == "array" and part.ndim == 2 and other == "slice":
            raise IndexError("index results in >2 dimensions")
    if kinds == ("array", "array"):
        result = _get_array_pair(a, row, col)
    else:
        result = _get_outer(a, row, col, kinds)
    return _with_axes(a, result, news) if news else result


def _get_array_pair(a, row, col):
    if row.ndim == 2 and row.shape[1] == 1 and (col.ndim == 1 or col.shape[0] == 1):
        entries, shape, _ = _read_outer(a, row.ravel(), col.ravel())
        return a._make(*entries, shape, a.format)
    row, col = _inner_pair(row, col)
    if row.size == 0 and isinstance(a, spmatrix):
        return type(a)(np.atleast_2d(np.empty(row.shape)).shape, dtype=a.dtype)
    values = _read_elements(a, row, col)
    if values.ndim > 1:
        return type(a)(values)
    return values if isinstance(a, sparray) else values.reshape(1, -1)


def _get_outer(a, row, col, kinds):
    two = None
    if kinds == ("array", "int") and row.ndim == 2 or kinds == ("int", "array") and col.ndim == 2:
        two = row.shape if kinds[0] == "array" else col.shape
        row, col = (part.ravel() if isinstance(part, ndarray) else part for part in (row, col))
    whole, (a, row, col) = a, _narrow_lines(*_narrow(a, row, col))
    if two is None and not (isinstance(a, sparray) and "int" in kinds) and \
            all(_is_all(part, size) for part, size in zip((row, col), a._two)):
        return a.copy() if a is whole else a
    entries, shape, canonical = _read_outer(a, row, col)
    if two is not None:
        made = a._make(*entries, shape, a.format)
        return made.reshape(two) if 1 in two else type(a)(made.toarray().reshape(two))
    if isinstance(a, sparray) and "int" in kinds:
        line = entries[1] if kinds[0] == "int" else entries[0]
        length = shape[1] if kinds[0] == "int" else shape[0]
        return a._make(ad.zeros_like(line), line, entries[2], (length,), "csr" if a.format == "csr" else "coo")
    return a._make(*entries, shape, a.format, canonical=canonical)


def _get_vector(a, col, news):
    if _kind_of(col) == "int":
        result = _read_element(a, 0, col)
        return _with_axes(a, result.reshape(1), news) if news else result
    if _kind_of(col) == "array" and col.ndim == 2:
        return type(a)(_read_elements(a, ad.zeros_like(col), col))
    entries, shape, _ = _read_outer(a, slice(0, 1), col)
    made = a._make(*entries, (shape[1],), a.format)
    return _with_axes(a, made, news) if news else made


def _with_axes(a, result, news):
    """A result with new axes where None stood. IndexError where it has more than two."""
    if isinstance(result, ndarray):
        result = a._like(a.format)(result)
    shape = list(result.shape) if result.shape != (1,) or len(news) > 1 else []
    for i in news:
        shape.insert(min(i, len(shape)), 1)
    if len(shape) > 2:
        raise IndexError("index results in >2 dimensions")
    if tuple(shape) == result.shape:
        return result
    return result.reshape(tuple(shape)).asformat("coo" if len(shape) == 2 else result.format)


# ---- writing ----

def _range_of(part, size):
    if isinstance(part, slice):
        return ad.arange(*part.indices(size))
    return ad.asarray(part).reshape(-1) if _kind_of(part) == "int" else part


def _places_of(a, row, col):
    """The places that a key names as two arrays of one shape."""
    kinds = _kind_of(row), _kind_of(col)
    rows, cols = _range_of(row, a._two[0]), _range_of(col, a._two[1])
    if kinds == ("array", "array"):
        return _inner_pair(rows, cols)
    if kinds == ("array", "slice") and rows.ndim == 1 or kinds[0] != "array":
        if cols.ndim == 1:
            rows = rows.reshape(-1, 1)
    return _inner_pair(rows, cols)


def set_items(a, key, value):
    """a[key] = value."""
    (row, col), _ = _parse_key(a, key, False)
    rows, cols = _places_of(a, row, col)
    if is_host_sparse(value):
        value = a._like("coo")(value)
    if issparse(value):
        return _set_sparse(a, rows, cols, value)
    value = ad.asarray(value, dtype=a.dtype)
    if value.ndim and value.size != 1:
        value = ad.squeeze(value, axis=tuple(range(value.ndim - 2))) if value.ndim > 2 else value
        if rows.ndim == 2 and value.ndim == 1 and a.ndim == 1:
            value = value.reshape(1, -1)
    try:
        value = ad.broadcast_to(value.reshape(()) if value.size == 1 else value, rows.shape)
    except ValueError:
        raise ValueError(f"could not broadcast input array from shape {value.shape} into shape {rows.shape}") from None
    if rows.size:
        put_elements(a, rows.ravel(), cols.ravel(), value.ravel())


def _set_sparse(a, rows, cols, value):
    if value.ndim == 1:
        value = value.reshape(1, -1)
    shape = rows.shape if rows.ndim == 2 else (1, *rows.shape)
    if any(n not in (1, m) for n, m in zip(value.shape, shape)):
        raise ValueError("shape mismatch in assignment")
    rows, cols = rows.reshape(shape), cols.reshape(shape)
    if rows.size == 0:
        return
    put_elements(a, rows.ravel(), cols.ravel(), ad.zeros(rows.size, a.dtype), insert=False)
    if value.shape != shape:
        from ._binary import _broadcast
        value = _broadcast(value, shape)
    r, c, data = value._triple()
    if data.size:
        put_elements(a, rows[r, c], cols[r, c], data.astype(a.dtype))


def _last_of_equal(rows, cols, shape):
    """Where the last one of each place stands. Waits."""
    row, col, index = _entries.unique_entries(rows, cols, shape)
    last = _entries.scatter_extreme(ad.zeros(row.size, np.int64), index, ad.arange(rows.size), True)
    return row, col, last


def put_elements(a, rows, cols, values, insert=True, warn=True):
    """Change elements of a compressed matrix in place; insert: store those that are not stored yet, too; warn: of that."""
    a.sum_duplicates()
    rows, cols = rows.astype(np.int64), cols.astype(np.int64)
    shape = a._major_shape()
    pair = (rows, cols) if a._major == 0 else (cols, rows)
    major, minor, last = _last_of_equal(*pair, shape)
    values = values[last].astype(a.dtype)
    own = a._majors()
    place, there = _entries.find_entries(own, a.indices, shape, major, minor)
    old = ad.nonzero(there)[0]
    data = a.data.copy()
    data[place[old]] = values[old]
    new = ad.nonzero(~there)[0] if insert else old[:0]
    if new.size == 0:
        a.data = data
        return
    if warn:
        warnings.warn(f"Changing the sparsity structure of a {type(a).__name__} is expensive. Build it from its entries.",
                      SparseEfficiencyWarning, stacklevel=4)
    dtype = a.indices.dtype
    majors = ad.concatenate([own, major[new].astype(dtype)])
    minors = ad.concatenate([a.indices, minor[new].astype(dtype)])
    order = _entries.order_entries(majors, minors, shape)
    a.indices, a.data = minors[order], ad.concatenate([data, values[new]])[order]
    a.indptr = _entries.row_pointers(majors, shape[0], dtype)
    a.has_canonical_format = True
