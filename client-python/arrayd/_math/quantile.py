"""Quantiles by all of NumPy's methods: positions in the sorted elements, computed on this side from q and n alone."""
import numpy as np

from .. import _base, _core
from .._base import as_array, call, give, ndarray, no_value, normalize_axes

# Continuous methods by their parameters alpha and beta (Hyndman and Fan). The virtual index of q among n elements is
# n*q + alpha + q*(1 - alpha - beta) - 1. Elements on both sides of it are weighted by their distance.
_CONTINUOUS = {"interpolated_inverted_cdf": (0, 1), "hazen": (0.5, 0.5), "weibull": (0, 0), "linear": (1, 1),
               "median_unbiased": (1 / 3, 1 / 3), "normal_unbiased": (3 / 8, 3 / 8)}
# Methods that give one of the elements, so that integers stay integers.
_PICKING = {"lower": "floor", "higher": "ceil", "nearest": "rint", "inverted_cdf": None, "closest_observation": None}
_METHODS = {*_CONTINUOUS, *_PICKING, "midpoint", "averaged_inverted_cdf"}


def _position(q, n, method):
    """Where q lies among n sorted elements: index below, index above and the weight of the one above.

    q and n are numbers, NumPy arrays or arrays of the server.
    """
    f = _core.ufuncs if isinstance(n, ndarray) or isinstance(q, ndarray) else vars(np)
    if method in _CONTINUOUS:
        alpha, beta = _CONTINUOUS[method]
        virtual = (n - 1) * q if method == "linear" else n * q + (alpha + q * (1 - alpha - beta)) - 1
        below = f["floor"](virtual)
        return below, below + 1, virtual - below
    if _PICKING.get(method):
        index = f[_PICKING[method]]((n - 1) * q)
        return index, index, index * 0
    if method == "midpoint":
        virtual = (n - 1) * q
        below, above = f["floor"](virtual), f["ceil"](virtual)
        return below, above, (above - below) * 0.5
    place = n * q - 1 - (method == "closest_observation") * 0.5
    below = f["floor"](place)
    exact = below == place
    if method == "closest_observation":
        exact = exact & (below % 2 == 1)
    return below, below + 1, f["where"](exact, 0.5 if method == "averaged_inverted_cdf" else 0.0, 1.0)


def _lerp(low, high, weight):
    """low + weight*(high - low), from the nearer end, as NumPy computes it."""
    distance = high - low
    if not isinstance(weight, ndarray):
        return high - distance * (1 - weight) if weight >= 0.5 else low + distance * weight
    from .._array.indexing import where
    return where(weight >= 0.5, high - distance * (1 - weight), low + distance * weight)


def _check(q, scale):
    """q as an array of numbers from 0 to 1, of this side if it is not on the server already."""
    q = q if isinstance(q, ndarray) else np.asarray(q)
    if q.dtype.kind not in "fiubV":
        raise TypeError("q must be real numbers")
    if q.ndim > 2:
        raise ValueError(f"q must have at most 2 dimensions, not {q.ndim}")
    q = q / scale if scale != 1 else q
    if isinstance(q, ndarray):
        return q
    if not ((q >= 0) & (q <= 1)).all():
        raise ValueError(f"{'Percentiles' if scale != 1 else 'Quantiles'} must be in the range [0, {scale}]")
    return np.asarray(q)


def _picks(q, method):
    """Whether the result is made of elements, so that integers stay integers."""
    return method in _PICKING or (method == "linear" and q.dtype.kind not in _base.FLOATING)


def _weight_type(rows, q, weak):
    """The type of the weights of elements: q's, unless it was a Python number, which leaves floats what they are."""
    if weak and rows.dtype.kind in _base.FLOATING:
        return rows.dtype
    return q.dtype if q.dtype.kind in _base.FLOATING else np.dtype(float)


def _of_sorted(rows, q, method, weak):
    """The quantiles along the last axis of sorted rows, with q's dimensions put before those that remain."""
    from .._array.creation import array
    n = rows.shape[-1]
    below, above, weight = _position(q, n, method)
    below, above = (np.clip(index, 0, n - 1).astype(np.int64) for index in (below, above))
    rows = rows.transpose([rows.ndim - 1, *range(rows.ndim - 1)])
    if _picks(q, method):
        index = np.where(weight > 0, above, below)
        return rows[int(index)].copy() if q.ndim == 0 else rows[array(index)]
    kind = _weight_type(rows, q, weak)
    if q.ndim == 0:
        weight = float(weight) if weak else np.asarray(weight, kind)[()]
        return _lerp(_floats(rows[int(below)], kind), _floats(rows[int(above)], kind), weight)
    weight = np.asarray(weight, kind)
    low, high = _floats(rows[array(below)], kind), _floats(rows[array(above)], kind)
    return _lerp(low, high, array(weight).reshape(q.shape + (1,) * (rows.ndim - 1)))


def _floats(a, kind):
    """a so that differences of its elements are not cut off, for weights of a kind; bools have none, as in NumPy."""
    return a.astype(_base.result_type(a.dtype, kind)) if a.dtype.kind in "iu" else a


def _of_counted(rows, q, method, weak, count):
    """As _of_sorted, of the first count elements of each row; count or q is an array of the server."""
    from .._array.indexing import take_along_axis, where
    from .._array.manipulation import moveaxis
    points = q.item() if q.ndim == 0 and not isinstance(q, ndarray) else as_array(q).reshape(-1)
    below, above, weight = _position(points, count, method)
    last = _core.ufuncs["maximum"](count - 1, 0) if isinstance(count, ndarray) else count - 1

    def elements(index):
        index = _core.ufuncs["clip"](index, 0, last)
        if isinstance(q, ndarray):  # a value out of range shows when the elements are taken
            index = where((points >= 0) & (points <= 1), index, rows.shape[-1])
        index = index.astype(np.int64)
        return take_along_axis(rows, index.reshape((1,) * (rows.ndim - index.ndim) + index.shape), -1)

    if _picks(q, method):
        result = elements(where(weight > 0, above, below))
    else:
        kind = _weight_type(rows, q, weak)
        result = _lerp(_floats(elements(below), kind), _floats(elements(above), kind), as_array(weight, kind))
    return moveaxis(result, -1, 0).reshape(q.shape + rows.shape[:-1])


def _quantile(a, q, axis, out, method, keepdims, scale, ignore_nan, weights, overwrite):
    from .reductions import _nan_where_last, _rows
    weak = type(q) in (int, float)
    a = as_array(a)
    if a.dtype.kind == "c":
        raise TypeError("a must be an array of real numbers")
    q = _check(q, scale)
    if method not in _METHODS:
        raise ValueError(f"{method!r} is not a valid method. Use one of: {sorted(_METHODS)}")
    weights = None if weights is None else _check_weights(weights, method)
    axes = normalize_axes(axis, a.ndim)
    rows = _rows(a, axes)
    if rows.shape[-1] == 0:
        result = _of_nothing(rows, q, ignore_nan)
    elif weights is not None:
        result = _weighted(a, rows, q, axes, axis, weights, ignore_nan)
    else:
        rows = call("sort", (rows,), (rows.ndim - 1,), out=rows if overwrite else None)
        if ignore_nan and rows.dtype.kind in _base.FLOATING:
            count = _base.reduce("count_nonzero", rows == rows, rows.ndim - 1, keepdims=True)
            result = _of_counted(rows, q, method, weak, count)
        else:
            result = _of_sorted(rows, q, method, weak) if isinstance(q, np.ndarray) else _of_counted(
                rows, q, method, weak, rows.shape[-1])
            result = _nan_where_last(result, rows)
    if keepdims and keepdims is not no_value:
        result = result.reshape(q.shape + tuple(1 if i in axes else n for i, n in enumerate(a.shape)))
    if out is None:
        return result if result.flags.c_contiguous else result.copy()
    if out.shape != result.shape:
        from .._array.manipulation import broadcast_to
        result = broadcast_to(result, out.shape)
    return give(result, out)


def _check_weights(weights, method):
    if method != "inverted_cdf":
        raise ValueError(f"Only method 'inverted_cdf' supports weights. Got: {method}.")
    if not isinstance(weights, ndarray):
        known = np.asarray(weights)
        if (known < 0).any():
            raise ValueError("Weights must be non-negative.")
        if known.size and not (np.isfinite(known).all() and known.any()):
            raise ValueError("Weights included NaN, inf or were all zero.")
    return as_array(weights)


def _weighted(a, rows, q, axes, axis, weights, ignore_nan):
    """The elements at which the running sums of the weights, as parts of their total, reach q."""
    from .._array.indexing import take_along_axis, where
    from .._array.manipulation import moveaxis
    from .reductions import _nan_where_last, _rows
    from .statistics import _fit_weights
    weights = as_array(_rows(_fit_weights(a, weights, axis, axes), axes), float)
    last = rows.ndim - 1
    order = call("argsort", (rows,), (last,))
    rows, weights = take_along_axis(rows, order, last), take_along_axis(weights, order, last)
    if ignore_nan:
        weights = where(rows == rows, weights, 0.0)
    parts = call("cumsum", (weights,), (last,))
    parts = parts / parts[..., -1:]
    points = as_array(q, float if q.dtype.kind not in _base.FLOATING else None).reshape(-1, 1)
    parts = as_array(parts, points.dtype)[..., None, :]
    before = _base.reduce("count_nonzero", (parts < points) | (parts == 0), last + 1)
    result = take_along_axis(rows, _core.ufuncs["minimum"](before, rows.shape[last] - 1), last)
    result = moveaxis(result, -1, 0).reshape(q.shape + rows.shape[:-1])
    return result if ignore_nan else _nan_where_last(result, rows)


def _of_nothing(rows, q, ignore_nan):
    """Return what the quantiles of no elements are: NaN where NaN are passed over."""
    if not ignore_nan:
        raise IndexError("cannot take a quantile of no elements")
    return _core.full(q.shape + rows.shape[:-1], np.nan, rows.dtype if rows.dtype.kind in _base.FLOATING else np.float64)


def quantile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *,
             weights=None):
    """Quantiles along axes; NaN where there is one.

    Parameters: a: real array. q: numbers from 0 to 1, at most 2-d. axis: axis or tuple of axes, all unless given. out:
    array to fill. overwrite_input: a may be sorted in place, which saves a copy. method: one of NumPy's thirteen.
    keepdims: keep the axes, with size 1. weights: of a's shape, or of the axes' sizes, for method 'inverted_cdf'; not
    negative (checked on this side only).
    Returns: ndarray of q's shape and then that of the reduction.
    Raises: ValueError for q out of range (IndexError when the result is read, for q on the server) or an unknown
    method; AxisError.
    Source: numpy.quantile
    """
    return _quantile(a, q, axis, out, method, keepdims, 1, False, weights, overwrite_input)


def percentile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *,
               weights=None):
    """Percentiles along axes; NaN where there is one.

    Parameters: as quantile, q from 0 to 100.
    Returns: ndarray of q's shape and then that of the reduction.
    Raises: ValueError for q out of range or an unknown method; AxisError.
    Source: numpy.percentile
    """
    return _quantile(a, q, axis, out, method, keepdims, 100, False, weights, overwrite_input)


def nanquantile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=no_value, *,
                weights=None):
    """Quantiles along axes of the elements that are not NaN.

    Parameters: as quantile.
    Returns: ndarray of q's shape and then that of the reduction.
    Raises: ValueError for q out of range or an unknown method; AxisError.
    Source: numpy.nanquantile
    """
    return _quantile(a, q, axis, out, method, keepdims, 1, True, weights, overwrite_input)


def nanpercentile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=no_value, *,
                  weights=None):
    """Percentiles along axes of the elements that are not NaN.

    Parameters: as quantile, q from 0 to 100.
    Returns: ndarray of q's shape and then that of the reduction.
    Raises: ValueError for q out of range or an unknown method; AxisError.
    Source: numpy.nanpercentile
    """
    return _quantile(a, q, axis, out, method, keepdims, 100, True, weights, overwrite_input)
