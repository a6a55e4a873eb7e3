"""Sorting, searching, sets."""
import numpy as np

from .. import _base, _core
from .._base import as_array, call, normalize_axis
from .._array.joining import concatenate
from .._array.manipulation import flip, moveaxis


def _axis_of(a, axis):
    """The array and the axis to sort: None flattens."""
    a = as_array(a)
    if axis is None:
        return a.reshape(-1), 0
    return a, normalize_axis(axis, a.ndim)


def sort(a, axis=-1, kind=None, order=None, *, descending=False, stable=None):
    """A sorted copy along an axis; always stable. NaN counts as the largest.

    Parameters: a: array. axis: the axis; None flattens. kind, stable: as NumPy's, and not needed; at most one
    of them. order: must be None. descending: from the largest to the smallest.
    Returns: ndarray.
    Raises: AxisError; ValueError for an unknown kind or an order.
    Source: numpy.sort
    """
    check_sort(kind, order, stable)
    a, axis = _axis_of(a, axis)
    result = call("sort", (a,), (axis,))
    return flip(result, axis) if descending else result


def argsort(a, axis=-1, kind=None, order=None, *, descending=False, stable=None):
    """The indices that sort along an axis; always stable. NaN counts as the largest.

    Parameters: as sort.
    Returns: int64 ndarray of a's shape, or 1-d.
    Raises: AxisError; ValueError for an unknown kind or an order.
    Source: numpy.argsort
    """
    check_sort(kind, order, stable)
    a, axis = _base.one_axis(as_array(a), axis)
    if descending:  # turned round before and after, so that equal elements stay in their order
        return a.shape[axis] - 1 - flip(call("argsort", (flip(a, axis),), (axis,)), axis)
    return call("argsort", (a,), (axis,))


def check_sort(kind, order, stable=None):
    """Check what a sort takes beside the array and the axis. NumPy's kinds of sorts give all the same here."""
    if kind is not None and _check_kind("sort", kind)[:1].lower() not in tuple("qhsm"):
        raise ValueError(f"sort kind must be one of 'quick', 'heap', or 'stable' (got {kind!r})")
    if kind is not None and stable is not None:
        raise ValueError("`kind` and keyword parameters can't be provided at the same time. Use only one of them.")
    _check_no_fields(order)


def check_partition(kind, order):
    """Check what a partition takes beside the array, the places and the axis."""
    if _check_kind("select", kind) != "introselect":
        raise ValueError(f"select kind must be 'introselect' (got {kind!r})")
    _check_no_fields(order)


def _check_kind(name, kind):
    if not isinstance(kind, str):
        raise TypeError(f"{name} kind must be str, not {type(kind).__name__}")
    return kind


def _check_no_fields(order):
    if order is not None:
        raise ValueError("Cannot specify order when the array has no fields.")


def sort_complex(a):
    """A sorted copy along the last axis, as complex numbers.

    Parameters: a: array.
    Returns: complex ndarray.
    Raises: AxisError for a 0-d array.
    Source: numpy.sort_complex
    """
    a = sort(as_array(a))
    if a.dtype.kind == "c":
        return a
    return a.astype(np.complex64 if a.dtype.char in "bhBH" else np.complex128)


def lexsort(keys, axis=-1):
    """The indices that sort by several keys, the last one first.

    Parameters: keys: array of shape (k, ...) or sequence of k arrays of one shape. axis: the axis to sort along.
    Returns: int64 ndarray of a key's shape.
    Raises: AxisError; TypeError for no keys.
    Source: numpy.lexsort
    """
    keys = [as_array(key) for key in keys]
    if not keys:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    if any(key.shape != keys[0].shape for key in keys):
        raise ValueError("all keys need to be the same shape")
    axis = normalize_axis(axis, keys[0].ndim or 1)
    if keys[0].ndim == 0:
        return _base.zeros((), np.int64)
    from .._array.indexing import take_along_axis
    order = argsort(keys[0], axis)
    for key in keys[1:]:
        order = take_along_axis(order, argsort(take_along_axis(key, order, axis), axis), axis)
    return order


def partition(a, kth, axis=-1, kind="introselect", order=None):
    """A copy in which the k-th element along an axis is where sorting puts it, none before it greater, none behind it less.

    Parameters: a: array. kth: index or sequence of them, for several of which arrayd sorts. axis: the axis; None
    flattens. kind: "introselect". order: must be None. NaN counts as the largest.
    Returns: ndarray.
    Raises: ValueError for kth out of bounds; AxisError.
    Source: numpy.partition
    """
    check_partition(kind, order)
    a, axis = _axis_of(a, axis)
    return _partition("partition", "sort", a, kth, axis)


def argpartition(a, kth, axis=-1, kind="introselect", order=None):
    """The indices that partition along an axis.

    Parameters: as partition.
    Returns: int64 ndarray.
    Raises: ValueError for kth out of bounds; AxisError.
    Source: numpy.argpartition
    """
    check_partition(kind, order)
    a, axis = _base.one_axis(as_array(a), axis)
    return _partition("argpartition", "argsort", a, kth, axis)


def _partition(name, sorting, a, kth, axis, **to):
    """Partition by the call at one place, or by the one that sorts at several."""
    places = _check_kth(kth, a, axis)
    if len(places) == 1 and a.size:
        return call(name, (a,), (axis, places.pop()), **to)
    return call(sorting, (a,), (axis,), **to)


def _check_kth(kth, a, axis):
    """The set of places, counted from the first element."""
    kth, size = np.atleast_1d(_base.as_host(kth, "kth")), a.shape[axis]
    if kth.size and kth.dtype.kind not in "iu":
        raise TypeError("Partition index must be integer")
    for k in kth.ravel().tolist() if a.size else ():
        if not -size <= k < size:
            raise ValueError(f"kth(={k}) out of bounds ({size})")
    return {k % size for k in kth.ravel().tolist()} if a.size else set()


def searchsorted(a, v, side="left", sorter=None):
    """Where elements would go in a sorted array.

    Parameters: a: array of shape (n,), ascending (or ordered by sorter). v: values to find. side: 'left': before
    equal elements, 'right': after them. sorter: ints that sort a.
    Returns: int64 ndarray of v's shape.
    Raises: ValueError when a is not 1-d, for a sorter of another shape or another side; TypeError for a sorter that has
    no ints.
    Source: numpy.searchsorted
    """
    if side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right' (got {side!r})")
    a = as_array(a)
    if a.ndim != 1:
        raise ValueError(f"object {'too deep' if a.ndim else 'of too small depth'} for desired array")
    if sorter is not None:
        sorter = as_array(sorter)
        if sorter.dtype.kind not in "iu":
            raise TypeError(f"sorter must have integers, not {sorter.dtype}")
        if sorter.shape != a.shape:
            raise ValueError(f"sorter must have a's shape, {a.shape}, not {sorter.shape}")
        a = a[sorter]
    v = _base.as_operand(v)
    kind = _base.result_type(a, v)
    return call("searchsorted", (as_array(a, kind), as_array(v, kind)), (side == "right",))


def _differs(rows, equal_nan):
    """For each but the first of sorted elements, or rows, whether it differs from the one before."""
    here, before = rows[1:], rows[:-1]
    changed = here != before
    if equal_nan and rows.dtype.kind in _base.INEXACT:
        changed = changed & ((here == here) | (before == before))
    return changed if rows.ndim == 1 else _base.reduce("any", changed, axis=tuple(range(1, rows.ndim)))


def _starts(rows, equal_nan):
    """A bool array that is true at the first of equal ones among sorted elements or rows."""
    first = _base.zeros((rows.shape[0],), np.bool_)
    if rows.shape[0]:
        first[0] = True
        first[1:] = _differs(rows, equal_nan)
    return first


def unique(ar, return_index=False, return_inverse=False, return_counts=False, axis=None, *, equal_nan=True,
           sorted=True):
    """The different elements, in order; costs a round trip.

    Parameters: ar: array. return_index: also where each is first. return_inverse: also which one each element is.
    return_counts: also how often each occurs. axis: treat slices along it as the elements; flattened unless given.
    equal_nan: take NaNs for one element. sorted: accepted; the result always is.
    Returns: ndarray, or a tuple of it and what was asked for.
    Raises: AxisError.
    Source: numpy.unique
    """
    a = as_array(ar)
    if axis is not None and normalize_axis(axis, a.ndim) == 0 and a.ndim == 1:
        axis = None
    rows = a.reshape(-1) if axis is None else moveaxis(a, axis, 0)
    permuted = return_index or return_inverse or axis is not None
    if axis is not None:
        order = _row_order(rows)
        rows = rows[order]
    elif permuted:
        order = argsort(rows)
        rows = rows[order]
    else:
        rows = sort(rows)
    first = _starts(rows, equal_nan and axis is None)
    if not (return_index or return_counts):
        values = rows[first]
    else:
        places = call("nonzero", (first,))[0]
        values = rows[places]
    result = [values if axis is None else moveaxis(values, 0, axis)]
    if return_index:
        result.append(order[places])
    if return_inverse:
        inverse = _base.zeros((rows.shape[0],), np.int64)
        inverse[order] = call("cumsum", (first,), (0,), dtype=np.int64) - 1
        result.append(inverse.reshape(a.shape) if axis is None else inverse)
    if return_counts:
        result.append(concatenate([places[1:], as_array([rows.shape[0]])]) - places if places.size else places)
    return tuple(result) if len(result) > 1 else result[0]


def _row_order(rows):
    """The order of rows, by their first element, then the second and so on."""
    from .._array.creation import arange
    flat = rows.reshape(rows.shape[0], -1) if rows.size else rows.reshape(rows.shape[0], 0)
    if flat.shape[1] == 0:
        return arange(rows.shape[0])
    return lexsort([flat[:, i] for i in reversed(range(flat.shape[1]))])


def unique_values(x):
    """The different elements, NaNs each for itself; costs a round trip.

    Parameters: x: array.
    Returns: ndarray of shape (n,).
    Raises: nothing of its own.
    Source: numpy.unique_values
    """
    return unique(x, equal_nan=False)


def unique_all(x):
    """The different elements, where each is first, which one each element is, how often each occurs.

    Parameters: x: array.
    Returns: named tuple (values, indices, inverse_indices, counts). Costs a round trip. NaNs count each for itself.
    Raises: nothing of its own.
    Source: numpy.unique_all
    """
    from .unique_results import UniqueAllResult
    return UniqueAllResult(*unique(x, True, True, True, equal_nan=False))


def unique_counts(x):
    """The different elements and how often each occurs.

    Parameters: x: array.
    Returns: named tuple (values, counts). Costs a round trip. NaNs count each for itself.
    Raises: nothing of its own.
    Source: numpy.unique_counts
    """
    from .unique_results import UniqueCountsResult
    return UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False))


def unique_inverse(x):
    """The different elements and which one each element is.

    Parameters: x: array.
    Returns: named tuple (values, inverse_indices). Costs a round trip. NaNs count each for itself.
    Raises: nothing of its own.
    Source: numpy.unique_inverse
    """
    from .unique_results import UniqueInverseResult
    return UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False))


def isin(element, test_elements, assume_unique=False, invert=False, *, kind=None):
    """For each element whether it is among others.

    Parameters: element: array. test_elements: array of what to look for. assume_unique, kind: accepted and not
    needed. invert: whether it is not among them.
    Returns: bool ndarray of element's shape.
    Raises: ValueError for an unknown kind.
    Source: numpy.isin
    """
    if kind not in (None, "sort", "table"):
        raise ValueError(f"Invalid kind: '{kind}'. Please use None, 'sort' or 'table'.")
    element, tests = as_array(element), as_array(test_elements).reshape(-1)
    if tests.size == 0:
        result = _base.zeros(element.shape, np.bool_)
        return ~result if invert else result
    common = _base.result_type(element.dtype, tests.dtype)
    element, tests = as_array(element, common), call("sort", (as_array(tests, common),), (0,))
    place = call("searchsorted", (tests, element.reshape(-1)), (False,)).reshape(element.shape)
    found = tests[_core.ufuncs["minimum"](place, tests.size - 1)]
    return found != element if invert else found == element


def _in_order(ar, assume_unique):
    """The flattened elements sorted, and which of them count: the first of equal ones, or None for all of them."""
    values = sort(as_array(ar), None)
    return values, None if assume_unique else _starts(values, True)


def _both(first, second):
    """The logical and of two masks, of which the first may be None for everywhere."""
    return second if first is None else first & second


def intersect1d(ar1, ar2, assume_unique=False, return_indices=False):
    """The elements that two arrays share, in order; costs a round trip.

    Parameters: ar1, ar2: arrays, flattened. assume_unique: no array has an element twice. return_indices: also where
    each is first in both.
    Returns: ndarray of shape (n,), with return_indices a tuple of it and two int64 ndarrays.
    Raises: nothing of its own.
    Source: numpy.intersect1d
    """
    ar1, ar2 = as_array(ar1), as_array(ar2)
    kind = _base.result_type(ar1.dtype, ar2.dtype)
    ar1, ar2 = as_array(ar1, kind), as_array(ar2, kind)
    if not return_indices:
        values, first = _in_order(ar1, assume_unique)
        return values[_both(first, isin(values, ar2))]
    orders = [argsort(ar, None) for ar in (ar1, ar2)]
    values, others = (ar.reshape(-1)[order] for ar, order in zip((ar1, ar2), orders))
    first = None if assume_unique else _starts(values, True)
    place = searchsorted(others, values)
    shared = others[_core.ufuncs["minimum"](place, others.size - 1)] == values if others.size else place < 0
    hit = call("nonzero", (_both(first, shared),))[0]
    return values[hit], orders[0][hit], orders[1][place[hit]]


def union1d(ar1, ar2):
    """The elements of either array, in order; costs a round trip.

    Parameters: ar1, ar2: arrays, flattened.
    Returns: ndarray of shape (n,).
    Raises: nothing of its own.
    Source: numpy.union1d
    """
    return unique(concatenate([ar1, ar2], axis=None))


def setdiff1d(ar1, ar2, assume_unique=False):
    """The elements of one array that are not in another, in order; costs a round trip.

    Parameters: ar1, ar2: arrays, flattened. assume_unique: no array has an element twice (the order is ar1's then).
    Returns: ndarray of shape (n,).
    Raises: nothing of its own.
    Source: numpy.setdiff1d
    """
    values, first = (as_array(ar1).reshape(-1), None) if assume_unique else _in_order(ar1, False)
    return values[_both(first, isin(values, ar2, invert=True))]


def setxor1d(ar1, ar2, assume_unique=False):
    """The elements that only one of two arrays has, in order; costs a round trip.

    Parameters: ar1, ar2: arrays, flattened. assume_unique: no array has an element twice.
    Returns: ndarray of shape (n,).
    Raises: nothing of its own.
    Source: numpy.setxor1d
    """
    if assume_unique:
        both = sort(concatenate((ar1, ar2), None))
        if not both.size:
            return both
        ends, differs = as_array(np.ones(1, bool)), both[1:] != both[:-1]
        return both[concatenate((ends, differs)) & concatenate((differs, ends))]
    sets = [_in_order(ar, False) for ar in (ar1, ar2)]
    alone = [_both(first, isin(values, others, invert=True))
             for (values, first), (others, _) in zip(sets, reversed(sets))]
    both = concatenate([values for values, _ in sets])
    order = argsort(both)
    return both[order][concatenate(alone)[order]]
