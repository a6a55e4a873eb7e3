"""Mathematical functions that are more than one ufunc: rounding, differences, interpolation, convolution."""
import builtins
import math
import operator

import numpy as np

from .. import _base, _core
from .._base import along, as_array, as_operand, call, give, ndarray, no_value, normalize_axis, reduce
from .._array.joining import concatenate
from .._array.manipulation import moveaxis
from .reductions import _scan

_u = _core.ufuncs


def round(a, decimals=0, out=None):
    """Elements rounded to a number of decimals, halves to even.

    Parameters: a: array. decimals: digits after the point, or before it when negative. out: array to fill.
    Returns: ndarray of a's shape; integers stay integers.
    Raises: TypeError for decimals that are no integer.
    Source: numpy.round
    """
    a = as_array(a)
    decimals = operator.index(decimals)
    if a.dtype.kind in "iu" and decimals >= 0:
        return give(a.copy(), out)
    if decimals == 0:
        return _u["rint"](a, out=out)
    if a.dtype.kind == "b":
        raise TypeError("round() of bool takes no decimals")
    scale = float(10 ** builtins.abs(decimals))
    real = a.astype(float) if a.dtype.kind in "iu" else a
    result = _u["rint"](real * scale) / scale if decimals > 0 else _u["rint"](real / scale) * scale
    return give(result.astype(a.dtype) if result.dtype != a.dtype else result, out)


around = round


def fix(x, out=None):
    """Elements rounded towards zero.

    Parameters: x: real array. out: array to fill.
    Returns: ndarray of x's shape.
    Raises: TypeError for complex elements.
    Source: numpy.fix
    """
    return _u["trunc"](as_array(x), out=out)


def clip(a, a_min=no_value, a_max=no_value, out=None, *, min=no_value, max=no_value, **kwargs):
    """Elements limited to a range.

    Parameters: a: array. a_min, a_max: bounds, arrays or numbers; None for no bound. out: array to fill. min, max:
    other names of the bounds. kwargs: where, dtype, casting of a ufunc.
    Returns: ndarray of the common shape.
    Raises: ValueError when bounds are given under both names; TypeError when a bound is missing.
    Source: numpy.clip
    """
    if a_min is no_value and a_max is no_value:
        a_min, a_max = (None if bound is no_value else bound for bound in (min, max))
    elif min is not no_value or max is not no_value:
        raise ValueError("Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided is forbidden.")
    elif a_min is no_value or a_max is no_value:
        missing = "a_min" if a_min is no_value else "a_max"
        raise TypeError(f"clip() missing 1 required positional argument: '{missing}'")
    a = as_array(a)
    low, high = _bounds(a.dtype, a_min, a_max)
    if low is None and high is None:
        return _u["positive"](a, out=out, **kwargs)
    if low is None or high is None:
        return _u["minimum" if low is None else "maximum"](a, low if high is None else high, out=out, **kwargs)
    if _base.result_type(a, low, high).kind == "c":
        return _u["minimum"](_u["maximum"](a, low), high, out=out, **kwargs)
    return _u["clip"](a, low, high, out=out, **kwargs)


def _bounds(dtype, low, high):
    """Bounds as operands; a Python int beyond an integer type is no bound."""
    if dtype.kind in "iu":
        if type(low) is int and low <= np.iinfo(dtype).min:
            low = None
        if type(high) is int and high >= np.iinfo(dtype).max:
            high = None
    return (bound if bound is None else as_operand(bound) for bound in (low, high))


def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    """NaN and infinities replaced by finite numbers.

    Parameters: x: array. copy: False writes into x. nan, posinf, neginf: what they become, numbers or arrays that
    broadcast to x; for the infinities the largest finite values unless given.
    Returns: ndarray of x's shape.
    Raises: ValueError for arrays that do not broadcast to x.
    Source: numpy.nan_to_num
    """
    x = as_array(x)
    out = None if copy else x
    if _base.is_scalar(nan) and nan == 0.0 and posinf is None and neginf is None:
        return _u["nan_to_num"](x, out=out)
    if x.dtype.kind not in _base.INEXACT:
        return x.copy() if copy else x
    result = x.copy() if copy else x
    for part in (result.real, result.imag) if x.dtype.kind == "c" else (result,):
        high = posinf if posinf is not None else _largest(part.dtype)
        low = neginf if neginf is not None else -_largest(part.dtype)
        for test, value in (("isnan", nan), ("isposinf", high), ("isneginf", low)):
            value = as_operand(value)
            value = part.dtype.type(value) if _base.is_scalar(value) else value.astype(part.dtype)
            _u["copy"](value, out=part, where=_u[test](part))
    return result


def _largest(dtype):
    """The largest finite number of a floating type: of bfloat16 it is float32's, cut off."""
    return np.finfo(dtype).max if dtype.kind == "f" else dtype.type(2.0**127 * (2 - 2.0**-7))


def angle(z, deg=False):
    """Angles of complex numbers.

    Parameters: z: array. deg: in degrees instead of radians.
    Returns: real ndarray of z's shape, from -pi to pi.
    Raises: nothing of its own.
    Source: numpy.angle
    """
    z = as_array(z)
    result = _u["angle"](z) if z.dtype.kind == "c" else _u["arctan2"](0, z)
    return result * (180 / math.pi) if deg else result


def real(val):
    """Real parts.

    Parameters: val: array.
    Returns: real ndarray: a view of a complex array, val itself otherwise.
    Raises: nothing of its own.
    Source: numpy.real
    """
    return as_array(val).real


def imag(val):
    """Imaginary parts.

    Parameters: val: array.
    Returns: real ndarray: a view of a complex array, zeros otherwise.
    Raises: nothing of its own.
    Source: numpy.imag
    """
    return as_array(val).imag


def _as_float(x):
    x = as_array(x)
    return x if x.dtype.kind in _base.INEXACT else x.astype(float)


def sinc(x):
    """sin(pi x)/(pi x), and 1 at 0.

    Parameters: x: array.
    Returns: ndarray of x's shape; integers give float64.
    Raises: nothing of its own.
    Source: numpy.sinc
    """
    return _u["sinc"](_as_float(x))


def i0(x):
    """Modified Bessel function of the first kind, order 0.

    Parameters: x: real array.
    Returns: ndarray of x's shape; integers give float64.
    Raises: TypeError for complex elements.
    Source: numpy.i0
    """
    x = as_array(x)
    if x.dtype.kind == "c":
        raise TypeError("i0 not supported for complex values")
    return _u["i0"](_as_float(x))


def diff(a, n=1, axis=-1, prepend=None, append=None):
    """Differences of neighbours along an axis.

    Parameters: a: array. n: how often. axis: the axis. prepend, append: values put before or after a first,
    unless None.
    Returns: ndarray, n shorter along the axis; differences of bools are whether they differ.
    Raises: ValueError for a negative n or a 0-d array; AxisError.
    Source: numpy.diff
    """
    a = as_array(a)
    if n == 0:
        return a
    if n < 0:
        raise ValueError("order must be non-negative but got " + repr(n))
    if a.ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    axis = normalize_axis(axis, a.ndim)
    parts = [_edge(prepend, a, axis), a, _edge(append, a, axis)]
    parts = [part for part in parts if part is not None]
    a = concatenate(parts, axis) if len(parts) > 1 else a
    step = _u["not_equal" if a.dtype.kind == "b" else "subtract"]
    after, before = along(a.ndim, axis, slice(1, None)), along(a.ndim, axis, slice(None, -1))
    for _ in builtins.range(n):
        a = step(a[after], a[before])
    return a


def _edge(value, a, axis):
    """Return what diff puts before or after a: numbers are spread along the other axes."""
    if value is None:
        return None
    value = as_array(value)
    if value.ndim == 0:
        from .._array.manipulation import broadcast_to
        return broadcast_to(value, a.shape[:axis] + (1,) + a.shape[axis + 1:])
    return value


def ediff1d(ary, to_end=None, to_begin=None):
    """Differences of neighbours of the flattened array.

    Parameters: ary: array. to_end, to_begin: values put after or before them.
    Returns: 1-d ndarray of ary's type.
    Raises: TypeError when what is put there cannot be cast to ary's type.
    Source: numpy.ediff1d
    """
    a = as_array(ary).reshape(-1)
    parts = [a[1:] - a[:-1]]
    for value, first in ((to_begin, True), (to_end, False)):
        if value is None:
            continue
        value = as_array(value).reshape(-1)
        if not np.can_cast(value.dtype, a.dtype, "same_kind"):
            raise TypeError(f"dtype of `{'to_begin' if first else 'to_end'}` must be compatible with input `ary` under "
                            "the `same_kind` rule.")
        parts.insert(0 if first else len(parts), value.astype(a.dtype))
    return concatenate(parts) if len(parts) > 1 else parts[0]


def gradient(f, *varargs, axis=None, edge_order=1):
    """Derivatives along axes by central differences, one-sided at the ends.

    Parameters: f: array with at least edge_order + 1 elements along each axis. varargs: nothing (spacing 1), one
    spacing for all axes, or for each axis a spacing or a 1-d array of coordinates. axis: axis or tuple of axes, all
    unless given. edge_order: 1 or 2: order of accuracy at the ends.
    Returns: ndarray of f's shape for one axis, else a tuple of them.
    Raises: ValueError for too few elements or coordinates that do not fit; TypeError for a wrong number of spacings.
    Source: numpy.gradient
    """
    f = as_array(f)
    axes = _base.normalize_axes(axis, f.ndim)
    spacings = _spacings(varargs, f, axes)
    if edge_order not in (1, 2):
        raise ValueError("'edge_order' greater than 2 not supported")
    if f.dtype.kind in "iu":
        f = f.astype(float)
    results = tuple(_gradient(f, one, spacing, edge_order) for one, spacing in zip(axes, spacings))
    return results[0] if len(axes) == 1 else results


def _spacings(given, f, axes):
    """For each axis a number, or a 1-d array of the distances between coordinates."""
    if not given:
        return [1.0] * len(axes)
    if len(given) == 1 and np.ndim(given[0]) == 0:
        return [given[0]] * len(axes)
    if len(given) != len(axes):
        raise TypeError("invalid number of arguments")
    spacings = []
    for one, axis in zip(given, axes):
        if _base.is_scalar(one):
            spacings.append(one)
            continue
        one = as_array(one)
        if one.ndim > 1:
            raise ValueError("distances must be either scalars or 1d")
        if one.ndim and one.shape[0] != f.shape[axis]:
            raise ValueError("when 1d, distances must match the length of the corresponding dimension")
        spacings.append(diff(one.astype(float) if one.dtype.kind in "iu" else one) if one.ndim else one)
    return spacings


def _gradient(f, axis, h, edge_order):
    """One derivative; h is a number or the distances."""
    from .._array.creation import empty_like
    if f.shape[axis] < edge_order + 1:
        raise ValueError("Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) "
                         "elements are required.")
    whole = empty_like(f)
    f, result = moveaxis(f, axis, -1), moveaxis(whole, axis, -1)
    uneven = isinstance(h, ndarray) and h.ndim == 1
    if f.shape[-1] > 2 and uneven:
        result[..., 1:-1] = _central(f, h)
    elif f.shape[-1] > 2:
        _slope(f[..., 2:], f[..., :-2], 2.0 * h, result[..., 1:-1])
    first, last = (h[0], h[-1]) if uneven else (h, h)
    if edge_order == 1:
        _slope(f[..., 1], f[..., 0], first, result[..., 0])
        _slope(f[..., -1], f[..., -2], last, result[..., -1])
    else:
        second, third = (h[1], h[-2]) if uneven else (h, h)
        result[..., 0] = _one_sided(f[..., 0], f[..., 1], f[..., 2], first, second)
        result[..., -1] = -_one_sided(f[..., -1], f[..., -2], f[..., -3], last, third)
    return whole


def _slope(high, low, distance, out):
    _u["subtract"](high, low, out=out)
    _u["divide"](out, distance, out=out)


def _central(f, h):
    left, right = h[:-1], h[1:]
    a = -right / (left * (left + right))
    b = (right - left) / (left * right)
    c = left / (right * (left + right))
    return a * f[..., :-2] + b * f[..., 1:-1] + c * f[..., 2:]


def _one_sided(f0, f1, f2, h1, h2):
    """Second-order derivative at f0 from the two that follow it at distances h1 and h1 + h2."""
    a = -(2.0 * h1 + h2) / (h1 * (h1 + h2))
    b = (h1 + h2) / (h1 * h2)
    c = -h1 / (h2 * (h1 + h2))
    return a * f0 + b * f1 + c * f2


def trapezoid(y, x=None, dx=1.0, axis=-1):
    """Integral along an axis by the trapezoidal rule.

    Parameters: y: array of values. x: their coordinates, 1-d or of y's shape. dx: their distance when x is not given.
    axis: the axis.
    Returns: ndarray without the axis.
    Raises: AxisError; ValueError when x does not fit.
    Source: numpy.trapezoid
    """
    y = as_array(y)
    axis = _base.strict_axis(axis, y.ndim)
    if x is not None:
        x = as_array(x)
        dx = diff(x, axis=axis if x.ndim == y.ndim else -1)
        if x.ndim == 1:
            dx = dx.reshape((-1,) + (1,) * (y.ndim - axis - 1))
    after, before = along(y.ndim, axis, slice(1, None)), along(y.ndim, axis, slice(None, -1))
    return reduce("sum", dx * (y[after] + y[before]) / 2.0, axis)


def interp(x, xp, fp, left=None, right=None, period=None):
    """Values between points, by straight lines.

    Parameters: x: coordinates to evaluate at. xp: coordinates of the points, shape (n,), ascending (unless period is
    given). fp: their values, shape (n,), real or complex. left, right: values outside, those of the end points unless
    given. period: xp and x repeat after it.
    Returns: float64 or complex128 ndarray of x's shape.
    Raises: ValueError when xp and fp do not fit or are empty.
    Source: numpy.interp
    """
    from .._array.creation import array
    finite = not any(isinstance(one, ndarray) for one in (xp, fp)) and bool(
        np.isfinite(xp).all() and np.isfinite(fp).all())
    x, xp, fp = array(_safely(x, float), copy=None, order="C"), _safely(xp, float), as_array(fp)
    fp = as_array(fp, complex if fp.dtype.kind == "c" else float)
    if xp.ndim != 1 or fp.ndim != 1 or xp.shape != fp.shape:
        raise ValueError("fp and xp are not of the same length.")
    if xp.size == 0:
        raise ValueError("array of sample points is empty")
    if period is not None:
        x, xp, fp = _periodic(x, xp, fp, period)
        left = right = None
    if fp.dtype.kind != "c":
        return _interpolated(x, xp, fp, left, right, finite)
    result = _base.zeros(x.shape, fp.dtype)
    for part in ("real", "imag"):
        ends = (end if end is None else getattr(_base.as_operand(end), part) for end in (left, right))
        getattr(result, part)[...] = _interpolated(x, xp, getattr(fp, part), *ends, finite)
    return result


def _interpolated(x, xp, fp, left, right, finite):
    """interp of real values. finite: whether all of xp and fp is known to be."""
    n, where = xp.size, _u["where"]
    if n == 1:
        value = fp[0]
    else:
        at = _u["clip"](call("searchsorted", (xp, x), (True,)) - 1, 0, n - 2)
        slope = ((fp[1:] - fp[:-1]) / (xp[1:] - xp[:-1]))[at]
        before, low = xp[at], fp[at]
        value = slope * (x - before) + low
        if not finite:  # what is no number from one end may be one from the other, or the ends'
            high = fp[1:][at]
            other = slope * (x - xp[1:][at]) + high
            other = where(_u["isnan"](other) & (low == high) & (x == x), low, other)
            value = where(x == before, low, where(_u["isnan"](value), other, value))
    value = where(x < xp[0], fp[0] if left is None else left, value)
    value = where(x >= xp[-1], fp[-1], value)
    return value if right is None else where(x > xp[-1], right, value)


def _safely(x, dtype):
    """x as an array of a type to which its own can be cast without losing anything but precision."""
    x = as_array(x)
    if x.dtype.kind == "c":
        raise TypeError(f"Cannot cast array data from {x.dtype!r} to {np.dtype(dtype)!r} according to the rule 'safe'")
    return as_array(x, dtype)


def _periodic(x, xp, fp, period):
    """Coordinates within one period, points sorted, one added at each end."""
    if period == 0:
        raise ValueError("period must be a non-zero value")
    period = float(builtins.abs(period))
    x, xp = x % period, xp % period
    order = call("argsort", (xp,), (0,))
    xp, fp = xp[order], fp[order]
    xp = concatenate([xp[-1:] - period, xp, xp[:1] + period])
    return x, xp, concatenate([fp[-1:], fp, fp[:1]])


def _windows(a, width):
    """A view of all runs of width neighbours of a contiguous 1-d array."""
    return _base.view(a, (a.size - width + 1, width), (a.strides[0], a.strides[0]))


def _slide(a, v, mode):
    """Sums of products of a with v slid along it; v is not longer than a."""
    n, m = a.size, v.size
    if mode not in ("full", "same", "valid"):
        raise ValueError("mode must be one of 'valid', 'same', or 'full' "
                         f"(got {mode!r})")
    kind = _base.result_type(a.dtype, v.dtype)
    before, after = {"full": (m - 1, m - 1), "same": (m // 2, (m - 1) // 2), "valid": (0, 0)}[mode]
    padded = _base.zeros((n + before + after,), kind)
    padded[before:before + n] = a
    return _base.matrix_product(_windows(padded, m), v.astype(kind).reshape(-1, 1))[:, 0]


def convolve(a, v, mode="full"):
    """Discrete convolution of two 1-d arrays.

    Parameters: a: array of shape (n,). v: array of shape (m,). mode: 'full': n + m - 1 values, 'same': max(n, m),
    'valid': only where they overlap completely.
    Returns: ndarray.
    Raises: ValueError for empty arrays, more dimensions or another mode.
    Source: numpy.convolve
    """
    a, v = as_array(a), as_array(v)
    a, v = (x.reshape(1) if x.ndim == 0 else x for x in (a, v))
    if a.ndim != 1 or v.ndim != 1:
        raise ValueError("object too deep for desired array")
    if v.size > a.size:
        a, v = v, a
    if v.size == 0:
        raise ValueError(("a" if a.size == 0 else "v") + " cannot be empty")
    return _slide(a, v[::-1], mode)


def correlate(a, v, mode="valid"):
    """Cross-correlation of two 1-d arrays, the second conjugated.

    Parameters: as convolve.
    Returns: ndarray.
    Raises: ValueError for empty arrays, more dimensions or another mode.
    Source: numpy.correlate
    """
    a, v = as_array(a), as_array(v)
    if a.ndim != 1 or v.ndim != 1:
        raise ValueError("object too deep for desired array")
    if a.size == 0 or v.size == 0:
        raise ValueError(("first" if a.size == 0 else "second") + " array argument cannot be empty")
    v = _u["conjugate"](v) if v.dtype.kind == "c" else v
    if v.size > a.size:
        return _slide(v, a, mode)[::-1].copy()
    return _slide(a, v, mode)


def unwrap(p, discont=None, axis=-1, *, period=2 * math.pi):
    """Angles made continuous along an axis, by whole periods.

    Parameters: p: real array. discont: jumps below it stay, half a period unless given. axis: the axis. period: the
    period.
    Returns: ndarray of p's shape.
    Raises: AxisError.
    Source: numpy.unwrap
    """
    p = as_array(p)
    axis = normalize_axis(axis, p.ndim)
    step = diff(p, axis=axis)
    kind = _base.result_type(step, period)
    half = period // 2 if kind.kind in "iu" else period / 2
    low = -half
    folded = (step - low) % period + low
    if kind.kind not in "iu" or period % 2 == 0:
        folded = _u["where"]((folded == low) & (step > 0), half, folded)
    fix_by = folded - step
    fix_by = _u["where"](_u["absolute"](step) < (period / 2 if discont is None else discont), 0, fix_by)
    result = p.astype(kind)
    tail = along(p.ndim, axis, slice(1, None))
    result[tail] += _scan("cumsum", fix_by, axis, kind, None)
    return result


def _window_points(M):
    """M points from 1 - M in steps of 2."""
    from .._array.creation import arange
    return arange(1 - M, M, 2)


def _window(M, values):
    from .._array.creation import empty, ones
    M = float(M)
    if M < 1:
        return empty(0)
    return ones(1) if M == 1 else values(_window_points(M), M - 1)


def bartlett(M):
    """Triangular window that ends at zero.

    Parameters: M: number of points.
    Returns: float64 ndarray of shape (M,).
    Raises: nothing of its own.
    Source: numpy.bartlett
    """
    return _window(M, lambda n, last: _u["where"](n <= 0, 1 + n / last, 1 - n / last))


def blackman(M):
    """Blackman's window.

    Parameters: M: number of points.
    Returns: float64 ndarray of shape (M,).
    Raises: nothing of its own.
    Source: numpy.blackman
    """
    def values(n, last):
        return 0.42 + 0.5 * _u["cos"](math.pi * n / last) + 0.08 * _u["cos"](2.0 * math.pi * n / last)
    return _window(M, values)


def hanning(M):
    """Hann's window.

    Parameters: M: number of points.
    Returns: float64 ndarray of shape (M,).
    Raises: nothing of its own.
    Source: numpy.hanning
    """
    return _window(M, lambda n, last: 0.5 + 0.5 * _u["cos"](math.pi * n / last))


def hamming(M):
    """Hamming's window.

    Parameters: M: number of points.
    Returns: float64 ndarray of shape (M,).
    Raises: nothing of its own.
    Source: numpy.hamming
    """
    return _window(M, lambda n, last: 0.54 + 0.46 * _u["cos"](math.pi * n / last))


def kaiser(M, beta):
    """Kaiser's window.

    Parameters: M: number of points. beta: shape parameter.
    Returns: float64 ndarray of shape (M,).
    Raises: nothing of its own.
    Source: numpy.kaiser
    """
    def values(n, last):
        return _u["i0"](beta * _u["sqrt"](1 - (n / last) ** 2.0)) / float(np.i0(float(beta)))
    return _window(M, values)
