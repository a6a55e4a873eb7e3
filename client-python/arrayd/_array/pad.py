"""pad: values put around an array."""
import numpy as np

from .. import _base
from .._base import along, as_array, reduce

# The keyword arguments that each mode takes.
_MODES = {"constant": ("constant_values",), "edge": (), "linear_ramp": ("end_values",), "maximum": ("stat_length",),
          "mean": ("stat_length",), "median": ("stat_length",), "minimum": ("stat_length",),
          "reflect": ("reflect_type",), "symmetric": ("reflect_type",), "wrap": (), "empty": ()}
_REPEATING = ("edge", "reflect", "symmetric", "wrap")
_STATISTICS = {"maximum": "max", "minimum": "min", "mean": "mean"}


def pad(array, pad_width, mode="constant", **kwargs):
    """An array with values put around it.

    Parameters: array: array. pad_width: how many before and after along each axis: a number, a pair, a sequence of
    pairs, or a dict from axis to one of them (an array of the server costs a round trip). mode: 'constant', 'edge',
    'reflect', 'symmetric', 'wrap', 'maximum', 'minimum', 'mean', 'median', 'linear_ramp', 'empty', or a function that
    is called with each line along each axis to fill its ends in place, the pair, the axis and kwargs. kwargs:
    stat_length: how many elements at the edges the statistics take; constant_values, end_values: for 'constant' and
    'linear_ramp', numbers like pad_width; reflect_type: 'even' or 'odd', which takes the reflected values from twice
    the edge's.
    Returns: ndarray.
    Raises: ValueError for another mode, a negative width, or arguments that the mode has not.
    Source: numpy.pad
    """
    a = as_array(array)
    widths = _widths(pad_width, a.ndim)
    if not callable(mode):
        _check_arguments(mode, kwargs, a.shape, widths)
    odd = kwargs.get("reflect_type", "even") == "odd"
    if mode in _REPEATING and (odd or not _in_one_go(mode, a.shape, widths)):
        return _by_index(a, widths, mode, odd)
    if mode == "constant":
        return _constant(a, widths, _pairs(kwargs.get("constant_values", 0), a.ndim))
    result = _surrounded(a, widths, 0)
    if callable(mode):
        _call(mode, result, widths, kwargs)
        return result
    fill = _filler(mode, kwargs, a.ndim)
    for axis in range(a.ndim if fill else 0):
        # Corners follow from what the axes before have put there.
        fill(_whole(result, a.shape, widths, axis), axis, a.shape[axis], widths[axis])
    return result


def _widths(widths, ndim):
    """pad_width as one pair for each axis."""
    if isinstance(widths, dict):
        pairs = [(0, 0)] * ndim
        for axis, width in widths.items():
            pairs[axis] = (width, width) if np.ndim(width) == 0 else tuple(width)
        widths = pairs
    host = _base.as_host(widths, "pad_width")
    if host.dtype.kind not in "iu":
        raise TypeError("`pad_width` must be of integral type.")
    if (host < 0).any():
        raise ValueError("index can't contain negative values")
    return _pairs(host, ndim) if ndim else []


def _pairs(value, ndim):
    """A number, a pair or pairs as one pair for each axis."""
    return [tuple(pair) for pair in np.broadcast_to(np.asarray(value), (ndim, 2)).tolist()]


def _check_arguments(mode, given, shape, widths):
    if mode not in _MODES:
        raise ValueError(f"mode '{mode}' is not supported")
    unknown = set(given) - set(_MODES[mode])
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {unknown}")
    for axis, (n, width) in enumerate(zip(shape, widths)):
        if n == 0 and any(width) and mode not in ("constant", "empty"):
            raise ValueError(f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'")


def _filler(mode, given, ndim):
    """The function that fills the ends of an axis by a mode."""
    if mode == "empty":
        return None
    if mode == "linear_ramp":
        ends = _pairs(given.get("end_values", 0), ndim)
        return lambda *at: _ramp(*at, ends)
    if mode in _REPEATING:
        return lambda *at: _repeat(*at, mode)
    length = given.get("stat_length")
    lengths = [(None, None)] * ndim if length is None else _widths(length, ndim)
    if mode in ("maximum", "minimum") and any(0 in pair for pair in lengths):
        raise ValueError("stat_length of 0 yields no value for padding")
    return lambda *at: _statistic(*at, mode, lengths)


def _surrounded(a, widths, value):
    """a in the middle of a new array that is filled with a value."""
    shape = tuple(n + before + after for n, (before, after) in zip(a.shape, widths))
    if value == 0:
        result = _base.zeros(shape, a.dtype)
    else:
        result = _base._core.full(shape, _stored(value, a.dtype), a.dtype)
    if a.size:
        result[tuple(slice(before, before + n) for n, (before, _) in zip(a.shape, widths))] = a
    return result


def _stored(value, dtype):
    """A number as NumPy puts it into an array of a type: one that does not fit wraps in unsigned integers only."""
    return np.asarray(value).astype(dtype)[()] if dtype.kind == "u" else dtype.type(value)


def _call(function, result, widths, given):
    from .manipulation import moveaxis
    for axis in range(result.ndim):
        lines = moveaxis(result, axis, -1)
        for index in np.ndindex(lines.shape[:-1]):
            function(lines[index], widths[axis], axis, given)


def _whole(result, shape, widths, axis):
    """The part of result that is there when axis is filled: axes before it whole, those after it without their pads."""
    inside = [slice(before, before + n) for n, (before, _) in zip(shape, widths)]
    return result[tuple([slice(None)] * (axis + 1) + inside[axis + 1:])]


def _in_one_go(mode, shape, widths):
    """Whether nothing is repeated more than once."""
    return mode == "edge" or all(max(width) <= n - (mode == "reflect") for n, width in zip(shape, widths))


def _repeat(part, axis, n, width, mode):
    """Fill the ends of an axis with elements from within."""
    before, after = width
    inside = part[along(part.ndim, axis, slice(before, before + n))]
    skip = mode == "reflect"
    first, last = {"edge": (slice(0, 1), slice(n - 1, n)), "wrap": (slice(n - before, n), slice(0, after))}.get(
        mode, (slice(skip, skip + before), slice(n - skip - after, n - skip)))
    reverse = slice(None, None, -1 if mode in ("reflect", "symmetric") else 1)
    for edge, chosen in zip(_edges(part, axis, n, width), (first, last)):
        if edge.size:
            edge[...] = inside[along(part.ndim, axis, chosen)][along(part.ndim, axis, reverse)]


def _by_index(a, widths, mode, odd):
    """Modes that repeat elements more than once: NumPy pads the numbers of an axis, and these are taken."""
    if not any(n for pair in widths for n in pair):
        return a.copy()
    for axis, width in enumerate(widths):
        if odd and a.shape[axis] > 1:
            a = _turned(a, axis, *width, a.shape[axis] - (mode == "reflect"), mode == "reflect")
        elif any(width):
            # NumPy repeats a single element whatever the reflection.
            a = a[along(a.ndim, axis, as_array(np.pad(np.arange(a.shape[axis]), width, mode)))]
    return a


def _turned(a, axis, before, after, period, skip):
    """a continued point symmetric to its edges, a period at a time; skip: the edge itself is not repeated."""
    from .joining import concatenate
    while before or after:
        front, back = min(before, period), min(after, period)
        first, last = (a[along(a.ndim, axis, slice(at, at + 1 or None))] for at in (0, -1))
        near = a[along(a.ndim, axis, slice(skip, skip + front))]
        far = a[along(a.ndim, axis, slice(a.shape[axis] - skip - back, a.shape[axis] - skip))]
        reverse = along(a.ndim, axis, slice(None, None, -1))
        parts = [2 * first - near[reverse], a, 2 * last - far[reverse]]
        a = concatenate([part for part in parts if part.shape[axis]], axis, dtype=a.dtype, casting="unsafe")
        before, after = before - front, after - back
    return a


def _edges(part, axis, n, width):
    """The views before and after the n elements of an axis that were there."""
    before, after = width
    return (part[along(part.ndim, axis, slice(0, before))],
            part[along(part.ndim, axis, slice(before + n, before + n + after))])


def _constant(a, widths, values):
    used = {value for pair, widths_ in zip(values, widths) for value, width in zip(pair, widths_) if width}
    if len(used) < 2:
        return _surrounded(a, widths, used.pop() if used else 0)
    result = _surrounded(a, widths, 0)
    for axis in range(a.ndim):
        part = _whole(result, a.shape, widths, axis)
        for edge, value in zip(_edges(part, axis, a.shape[axis], widths[axis]), values[axis]):
            if edge.size and value != 0:
                edge[...] = _stored(value, part.dtype)
    return result


def _statistic(part, axis, n, width, mode, lengths):
    inside = part[along(part.ndim, axis, slice(width[0], width[0] + n))]
    whole = None
    for side, (edge, length) in enumerate(zip(_edges(part, axis, n, width), lengths[axis])):
        length = n if length is None else min(length, n)
        if not edge.size:
            continue
        if length == n and whole is not None:
            edge[...] = whole
            continue
        chosen = inside[along(part.ndim, axis, slice(0, length) if side == 0 else slice(n - length, n))]
        edge[...] = value = _rounded(_summary(chosen, axis, mode), part.dtype)
        whole = value if length == n else whole


def _summary(chosen, axis, mode):
    if mode == "median":
        from .._math.reductions import median
        return median(chosen, axis, keepdims=True)
    return reduce(_STATISTICS[mode], chosen, axis, keepdims=True)


def _rounded(value, dtype):
    """A mean as NumPy puts it into integers: rounded."""
    if dtype.kind in "iu" and value.dtype.kind in _base.FLOATING:
        value = _base._core.ufuncs["rint"](value)
    return as_array(value, dtype)


def _ramp(part, axis, n, width, values):
    from .creation import linspace
    inside = part[along(part.ndim, axis, slice(width[0], width[0] + n))]
    for side, (edge, value) in enumerate(zip(_edges(part, axis, n, width), values[axis])):
        count = edge.shape[axis]
        if not count:
            continue
        start = inside[along(part.ndim, axis, 0 if side == 0 else n - 1)]
        ramp = linspace(value, start, count, endpoint=False, dtype=part.dtype, axis=axis)
        edge[...] = ramp if side == 0 else ramp[along(part.ndim, axis, slice(None, None, -1))]
