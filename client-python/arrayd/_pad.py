"""pad: values put around an array."""
import numpy as np

from . import _base
from ._base import along, as_array, reduce

_BY_INDEX = ("edge", "reflect", "symmetric", "wrap")
_STATISTICS = {"maximum": "max", "minimum": "min", "mean": "mean"}


def pad(array, pad_width, mode="constant", *, stat_length=None, constant_values=0, end_values=0, reflect_type="even"):
    """An array with values put around it.

    Parameters: array: array. pad_width: how many before and after along each axis: a number, a pair, a sequence of
    pairs, or a dict from axis to one of them. mode: 'constant', 'edge', 'reflect', 'symmetric', 'wrap', 'maximum',
    'minimum', 'mean', 'median', 'linear_ramp' or 'empty'. stat_length: how many elements at the edges the statistics
    take. constant_values, end_values: for 'constant' and 'linear_ramp', numbers like pad_width. reflect_type: 'even'.
    Returns: ndarray.
    Raises: ValueError for another mode, a negative width, or arguments that the mode has not.
    Source: numpy.pad
    """
    a = as_array(array)
    widths = _pairs(_dict_widths(pad_width, a.ndim), a.ndim, "pad_width")
    if any(n < 0 for pair in widths for n in pair):
        raise ValueError("index can't contain negative values")
    if mode in _BY_INDEX:
        if reflect_type != "even":
            raise ValueError("reflect_type of arrayd is 'even'")
        return _by_index(a, widths, mode)
    result = _base.empty(tuple(n + before + after for n, (before, after) in zip(a.shape, widths)), a.dtype)
    result[tuple(slice(before, before + n) for n, (before, _) in zip(a.shape, widths))] = a
    fillers = {"constant": lambda *at: _constant(*at, _pairs(constant_values, a.ndim, "constant_values", float)),
               "linear_ramp": lambda *at: _ramp(*at, _pairs(end_values, a.ndim, "end_values", float)),
               "empty": lambda *at: None}
    fillers.update(dict.fromkeys((*_STATISTICS, "median"),
                                 lambda *at: _statistic(*at, mode, _lengths(stat_length, a.ndim))))
    if mode not in fillers:
        raise ValueError(f"mode '{mode}' is not supported")
    for axis in range(a.ndim):
        # Corners follow from what the axes before have put there.
        fillers[mode](_whole(result, a.shape, widths, axis), axis, a.shape[axis], widths[axis])
    return result


def _dict_widths(widths, ndim):
    if not isinstance(widths, dict):
        return widths
    pairs = [(0, 0)] * ndim
    for axis, width in widths.items():
        pairs[axis] = (width, width) if np.ndim(width) == 0 else tuple(width)
    return pairs


def _pairs(value, ndim, name, kind=None):
    """A number, a pair or pairs as one pair for each axis."""
    host = np.asarray(value)
    if kind is None:
        if host.dtype.kind not in "iu":
            raise TypeError(f"`{name}` must be of integral type.")
    return [tuple(pair) for pair in np.broadcast_to(host, (ndim, 2)).tolist()]


def _lengths(stat_length, ndim):
    return [(None, None)] * ndim if stat_length is None else _pairs(stat_length, ndim, "stat_length")


def _whole(result, shape, widths, axis):
    """The part of result that is there when axis is filled: axes before it whole, those after it without their pads."""
    inside = [slice(before, before + n) for n, (before, _) in zip(shape, widths)]
    return result[tuple([slice(None)] * (axis + 1) + inside[axis + 1:])]


def _by_index(a, widths, mode):
    """Modes that repeat elements: NumPy pads the numbers of an axis, and these are taken."""
    for axis, (before, after) in enumerate(widths):
        if before or after:
            index = np.pad(np.arange(a.shape[axis]), (before, after), mode)
            a = a[along(a.ndim, axis, as_array(index))]
    return a.copy() if not any(n for pair in widths for n in pair) else a


def _edges(part, axis, n, width):
    """The views before and after the n elements of an axis that were there."""
    before, after = width
    return (part[along(part.ndim, axis, slice(0, before))],
            part[along(part.ndim, axis, slice(before + n, before + n + after))])


def _constant(part, axis, n, width, values):
    for edge, value in zip(_edges(part, axis, n, width), values[axis]):
        if edge.size and value != 0:
            edge[...] = part.dtype.type(value)


def _statistic(part, axis, n, width, mode, lengths):
    inside = part[along(part.ndim, axis, slice(width[0], width[0] + n))]
    for side, (edge, length) in enumerate(zip(_edges(part, axis, n, width), lengths[axis])):
        length = n if length is None else min(length, n)
        if not edge.size:
            continue
        if length == 0:
            raise ValueError("stat_length of 0 yields no value for padding")
        chosen = inside[along(part.ndim, axis, slice(0, length) if side == 0 else slice(n - length, n))]
        edge[...] = _rounded(_summary(chosen, axis, mode), part.dtype)


def _summary(chosen, axis, mode):
    if mode == "median":
        from ._reductions import median
        return median(chosen, axis, keepdims=True)
    return reduce(_STATISTICS[mode], chosen, axis, keepdims=True)


def _rounded(value, dtype):
    """A mean as NumPy puts it into integers: rounded."""
    if dtype.kind in "iu" and value.dtype.kind == "f":
        value = _base._core.ufuncs["rint"](value)
    return value.astype(dtype)


def _ramp(part, axis, n, width, values):
    from ._creation import linspace
    inside = part[along(part.ndim, axis, slice(width[0], width[0] + n))]
    first, last = (inside[along(part.ndim, axis, slice(i, i + 1))] for i in (0, n - 1))
    for side, (edge, value, start) in enumerate(zip(_edges(part, axis, n, width), values[axis], (first, last))):
        count = edge.shape[axis]
        if not count:
            continue
        start = start.reshape(tuple(m for i, m in enumerate(start.shape) if i != axis))
        ramp = linspace(part.dtype.type(value), start, count, endpoint=False, dtype=part.dtype, axis=axis)
        edge[...] = ramp if side == 0 else ramp[along(part.ndim, axis, slice(None, None, -1))]
