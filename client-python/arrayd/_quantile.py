"""Quantiles by all of NumPy's methods: positions in the sorted elements, computed on this side from q and n alone."""
import numpy as np

from . import _base, _core
from ._base import as_array, call, give, ndarray, no_value, normalize_axes

# Continuous methods by their parameters alpha and beta (Hyndman and Fan): the virtual index of q among n elements is
# n*q + alpha + q*(1 - alpha - beta) - 1, and elements on both sides of it are weighted by their distance.
_CONTINUOUS = {"interpolated_inverted_cdf": (0, 1), "hazen": (0.5, 0.5), "weibull": (0, 0), "linear": (1, 1),
               "median_unbiased": (1 / 3, 1 / 3), "normal_unbiased": (3 / 8, 3 / 8)}
# Methods that give one of the elements, so that integers stay integers.
_PICKING = {"lower": "floor", "higher": "ceil", "nearest": "rint", "inverted_cdf": None, "closest_observation": None}


def _position(q, n, method):
    """Where q lies among n sorted elements: index below, index above and the weight of the one above.

    q and n are numbers or NumPy arrays, or n is an array of the server.
    """
    f = _core.ufuncs if isinstance(n, ndarray) else vars(np)
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
    below = f["floor"](n * q - 1 - (method == "closest_observation") * 0.5)
    exact = n * q - 1 - (method == "closest_observation") * 0.5 == below
    if method == "inverted_cdf":
        return below, below + 1, f["where"](exact, 0.0, 1.0)
    if method == "averaged_inverted_cdf":
        return below, below + 1, f["where"](exact, 0.5, 1.0)
    if method == "closest_observation":
        return below, below + 1, f["where"](exact & (below % 2 == 1), 0.0, 1.0)
    raise ValueError(f"{method!r} is not a valid method. Use one of: "
                     f"{sorted({*_CONTINUOUS, *_PICKING, 'midpoint', 'averaged_inverted_cdf'})}")


def _lerp(low, high, weight):
    """low + weight*(high - low), from the nearer end, as NumPy computes it."""
    distance = high - low
    result = low + distance * weight
    from ._indexing import where
    if isinstance(weight, ndarray):
        return where(weight >= 0.5, high - distance * (1 - weight), result)
    return high - distance * (1 - weight) if weight >= 0.5 else result


def _check(q, scale, dtype):
    """q as a NumPy array of numbers from 0 to 1; a Python number takes the type of floats, as a weak one."""
    weak = type(q) in (int, float) and dtype.kind == "f" and dtype.name != "bfloat16"
    host = np.asarray(q.get() if isinstance(q, ndarray) else q, dtype if weak else None)
    if host.dtype.kind not in "fiub":
        raise TypeError("q must be real numbers")
    if scale != 1:
        host = np.asarray(host / (host.dtype.type(scale) if host.dtype.kind == "f" else float(scale)))
    if not ((host >= 0) & (host <= 1)).all():
        raise ValueError(f"{'Percentiles' if scale != 1 else 'Quantiles'} must be in the range [0, {scale}]")
    return host


def _of_sorted(rows, q, method):
    """The quantiles along the last axis of sorted rows, with q's dimensions put before those that remain."""
    from ._creation import array
    n = rows.shape[-1]
    below, above, weight = _position(q, n, method)
    below, above = (np.clip(index, 0, n - 1).astype(np.int64) for index in (below, above))
    rows = rows.transpose([rows.ndim - 1, *range(rows.ndim - 1)])
    if method in _PICKING or (method == "linear" and q.dtype.kind != "f"):
        index = np.where(weight > 0, above, below)
        return rows[int(index)] if q.ndim == 0 else rows[array(index)]
    weight = np.asarray(weight, q.dtype if q.dtype.kind == "f" else float)
    rows = rows if rows.dtype.kind == "f" else rows.astype(float)
    if q.ndim == 0:
        return _lerp(rows[int(below)], rows[int(above)], weight[()])
    low, high = rows[array(below)], rows[array(above)]
    return _lerp(low, high, array(weight).reshape(q.shape + (1,) * (rows.ndim - 1)))


def _quantile(a, q, axis, out, method, keepdims, scale, ignore_nan):
    from ._reductions import _nan_where_last, _rows
    a = as_array(a)
    q = _check(q, scale, a.dtype)
    if a.dtype.kind == "c":
        raise TypeError("a must be an array of real numbers")
    axes = normalize_axes(axis, a.ndim)
    rows = _rows(a, axes)
    rows = call("sort", (rows,), (rows.ndim - 1,))
    if rows.shape[-1] == 0:
        raise IndexError("cannot take a quantile of no elements")
    if ignore_nan and rows.dtype.kind == "f":
        result = _of_rows_with_nan(rows, q, method)
    else:
        result = _nan_where_last(_of_sorted(rows, q, method), rows)
    if keepdims and keepdims is not no_value:
        result = result.reshape(q.shape + tuple(1 if i in axes else n for i, n in enumerate(a.shape)))
    return give(result, out)


def _of_rows_with_nan(rows, q, method):
    """As _of_sorted, of the elements of each row that are not NaN (they come last)."""
    from ._indexing import take_along_axis
    from ._joining import stack
    count = _base.reduce("count_nonzero", rows == rows, rows.ndim - 1, keepdims=True)
    last = _core.ufuncs["maximum"](count - 1, 0)
    kind = q.dtype if q.dtype.kind == "f" else np.dtype(float)
    results = []
    for one in q.reshape(-1).tolist():
        below, above, weight = _position(one, count.astype(float), method)
        low, high = (take_along_axis(rows, _core.ufuncs["clip"](index.astype(np.int64), 0, last), -1)
                     for index in (below, above))
        results.append(_lerp(low, high, weight.astype(kind))[..., 0])
    if not results:
        return _base.empty(q.shape + rows.shape[:-1], _base.result_type(rows.dtype, kind))
    return results[0] if q.ndim == 0 else stack(results).reshape(q.shape + rows.shape[:-1])


def quantile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False):
    """Quantiles along axes; NaN where there is one.

    Parameters: a: real array. q: numbers from 0 to 1, 0-d or 1-d. axis: axis or tuple of axes, all unless given. out:
    array to fill. overwrite_input: ignored. method: one of NumPy's thirteen. keepdims: keep the axes, with size 1.
    Returns: ndarray of q's shape and then that of the reduction.
    Raises: ValueError for q out of range or an unknown method; AxisError.
    Source: numpy.quantile
    """
    return _quantile(a, q, axis, out, method, keepdims, 1, False)


def percentile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False):
    """Percentiles along axes; NaN where there is one.

    Parameters: as quantile, q from 0 to 100.
    Returns: ndarray of q's shape and then that of the reduction.
    Raises: ValueError for q out of range or an unknown method; AxisError.
    Source: numpy.percentile
    """
    return _quantile(a, q, axis, out, method, keepdims, 100, False)


def nanquantile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=no_value):
    """Quantiles along axes of the elements that are not NaN.

    Parameters: as quantile.
    Returns: ndarray of q's shape and then that of the reduction.
    Raises: ValueError for q out of range or an unknown method; AxisError.
    Source: numpy.nanquantile
    """
    return _quantile(a, q, axis, out, method, keepdims, 1, True)


def nanpercentile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=no_value):
    """Percentiles along axes of the elements that are not NaN.

    Parameters: as quantile, q from 0 to 100.
    Returns: ndarray of q's shape and then that of the reduction.
    Raises: ValueError for q out of range or an unknown method; AxisError.
    Source: numpy.nanpercentile
    """
    return _quantile(a, q, axis, out, method, keepdims, 100, True)
