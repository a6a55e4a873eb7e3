"""Minima, maxima, medians and other ranks of windows."""
import operator

import numpy as np

from ... import _base
from ..._base import as_array, as_host, call, normalize_axis
from . import _support
from ._support import MAXIMUM, MINIMUM, along_axes, check_axes, edge_of, make_output, real_array, repeat_argument


def _limit_lines(input, size, axis, output, mode, cval, origin, what):
    input = real_array(input)
    axis = normalize_axis(axis, input.ndim)
    if size < 1:
        raise RuntimeError("incorrect filter size")
    size = operator.index(size)
    output = make_output(output, input)
    params = axis, what, size, edge_of(mode), cval, _support.check_origin(origin, size)
    if mode not in ("constant", "grid-constant") or _is_element(cval, input.dtype):
        return call("window1d", (input,), params, out=output, dtype=input.dtype)
    # Lines are compared as float64, of which integers get what is left of a cast.
    values = call("window1d", (input,), params, out=_base.empty(input.shape, np.float64), dtype=np.float64)
    return _support.copy_into(output, values if output.dtype.kind == "f" else values.astype(np.int64))


def _is_element(value, dtype):
    """Tell whether a number is the same as an element of that type."""
    if dtype.kind not in "iu":
        return True
    info = np.iinfo(dtype)
    return float(value).is_integer() and info.min <= value <= info.max


def minimum_filter1d(input, size, axis=-1, output=None, mode="reflect", cval=0.0, origin=0):
    """Minimum of windows along an axis.

    Parameters: input: array. size: elements of the window. axis: the axis. output, mode, cval, origin: as correlate1d.
    Returns: ndarray.
    Raises: TypeError for complex numbers; RuntimeError for a size below 1; ValueError for an origin outside of the
    window.
    Source: scipy.ndimage.minimum_filter1d
    """
    return _limit_lines(input, size, axis, output, mode, cval, origin, MINIMUM)


def maximum_filter1d(input, size, axis=-1, output=None, mode="reflect", cval=0.0, origin=0):
    """Maximum of windows along an axis.

    Parameters: as minimum_filter1d.
    Returns: ndarray.
    Raises: as minimum_filter1d.
    Source: scipy.ndimage.maximum_filter1d
    """
    return _limit_lines(input, size, axis, output, mode, cval, origin, MAXIMUM)


def _limit_boxes(input, size, output, mode, cval, origin, axes, what):
    """Of windows that are boxes: along one axis after another."""
    output = make_output(output, input)
    each = zip(axes, *(repeat_argument(value, len(axes)) for value in (size, mode, origin)))

    def run(x, output, axis, size, mode, origin):
        _limit_lines(x, int(size), axis, output, mode, cval, origin, what)
    return along_axes(output, input, [one for one in each if one[1] > 1], run)


def _raise_windows(input, structure, footprint, output, mode, cval, origins, what):
    """Of elements with the structure's added (maxima) or taken away."""
    loop = np.dtype(np.float32 if input.dtype.name in _support.SINGLE else np.float64)
    heights = as_array(np.ascontiguousarray(structure[footprint], loop))
    offsets, output = _support.offsets_of(footprint, origins), make_output(output, input)
    params = what == MAXIMUM, edge_of(mode), float(cval)
    return _support.filter_window("grey_filter", input, offsets, (heights,), params, output, loop)


def limit_windows(input, size, footprint, structure, output, mode, cval, origin, axes, what):
    """minimum_filter and maximum_filter, with a structure's heights."""
    if structure is None and footprint is None and size is None:
        raise RuntimeError("no footprint provided")
    input = real_array(input)
    axes = check_axes(axes, input.ndim)
    if structure is not None:
        structure = as_host(structure, "structure").astype(np.float64)
        footprint = np.ones(structure.shape, bool) if footprint is None else footprint
    if footprint is not None:
        if size is not None:
            _support.window_of(size, footprint, input.ndim, axes)
        footprint = as_host(footprint, "footprint").astype(bool)
        if not footprint.any():
            raise ValueError("All-zero footprint is not supported.")
    if structure is None and (footprint is None or footprint.all()):
        size = size if footprint is None else footprint.shape
        return _limit_boxes(input, size, output, mode, cval, origin, axes, what)
    if structure is not None:
        if structure.ndim != len(axes) or structure.shape != footprint.shape:
            raise RuntimeError("structure array has incorrect shape")
        structure = _support.expand_window(structure, input.ndim, axes, "structure")
    footprint = _support.expand_window(footprint, input.ndim, axes)
    origins = _support.expand_origins(origin, input.ndim, axes)
    _support.check_window(footprint, input.ndim, axes, origins)
    if structure is not None:
        return _raise_windows(input, structure, footprint, output, mode, cval, origins, what)
    rank = 0 if what == MINIMUM else int(footprint.sum()) - 1
    return _rank_windows(input, rank, footprint, output, mode, cval, origins)


def _rank_windows(input, rank, footprint, output, mode, cval, origins):
    output, params = make_output(output, input), (rank, edge_of(mode), cval)
    offsets = _support.offsets_of(footprint, origins)
    return _support.filter_window("rank_filter", input, offsets, (), params, output, input.dtype)


def minimum_filter(input, size=None, footprint=None, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):
    """Minimum of windows.

    Parameters: input: array. size: of a box, one for all axes or one for each. footprint: which elements the window
    has, instead. output, cval: as correlate1d. mode, origin: one for all axes, or one for each (modes of boxes only).
    axes: those that the window is for, all unless given.
    Returns: ndarray.
    Raises: TypeError for complex numbers; RuntimeError for a missing window, or one of other dimensions; ValueError for
    an empty window, or an origin outside of it.
    Source: scipy.ndimage.minimum_filter
    """
    return limit_windows(input, size, footprint, None, output, mode, cval, origin, axes, MINIMUM)


def maximum_filter(input, size=None, footprint=None, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):
    """Maximum of windows.

    Parameters: as minimum_filter.
    Returns: ndarray.
    Raises: as minimum_filter.
    Source: scipy.ndimage.maximum_filter
    """
    return limit_windows(input, size, footprint, None, output, mode, cval, origin, axes, MAXIMUM)


# ---- ranks ----

def _rank_of_percentile(percentile, size):
    percentile = percentile + 100.0 if percentile < 0 else percentile
    if not 0 <= percentile <= 100:
        raise RuntimeError("invalid percentile")
    return size - 1 if percentile == 100 else int(float(size) * percentile / 100.0)


def _filter_ranks(input, find_rank, size, footprint, output, mode, cval, origin, axes):
    """find_rank: of the number of elements of a window the rank of the result."""
    input = real_array(input)
    axes = check_axes(axes, input.ndim)
    footprint = _support.window_of(size, footprint, input.ndim, axes)
    origins = _support.expand_origins(origin, input.ndim, axes)
    _support.check_window(footprint, input.ndim, axes, origins)
    if not isinstance(mode, str) and np.iterable(mode):  # modes of axes that are not filtered do not matter
        modes = ["constant"] * input.ndim
        for one, axis in zip(repeat_argument(mode, len(axes)), axes):
            modes[axis] = one
        mode = modes
    count = int(footprint.sum())
    rank = find_rank(count)
    rank = rank + count if rank < 0 else rank
    if not 0 <= rank < count:
        raise RuntimeError("rank not within filter footprint size")
    if rank in (0, count - 1):
        what = MINIMUM if rank == 0 else MAXIMUM
        return limit_windows(input, None, footprint, None, output, mode, cval, origins, None, what)
    if not isinstance(mode, str):
        raise RuntimeError("A sequence of modes is not supported by non-separable rank filters")
    return _rank_windows(input, rank, footprint, output, mode, cval, origins)


def rank_filter(input, rank, size=None, footprint=None, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):
    """The element of a rank of windows.

    Parameters: as minimum_filter. rank: from 0 for the least; negative from the greatest.
    Returns: ndarray.
    Raises: as minimum_filter; RuntimeError for a rank that the window does not have.
    Source: scipy.ndimage.rank_filter
    """
    rank = operator.index(rank)
    return _filter_ranks(input, lambda count: rank, size, footprint, output, mode, cval, origin, axes)


def median_filter(input, size=None, footprint=None, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):
    """Median of windows; of two in the middle the greater.

    Parameters: as minimum_filter.
    Returns: ndarray.
    Raises: as minimum_filter.
    Source: scipy.ndimage.median_filter
    """
    return _filter_ranks(input, lambda count: count // 2, size, footprint, output, mode, cval, origin, axes)


def percentile_filter(input, percentile, size=None, footprint=None, output=None, mode="reflect", cval=0.0, origin=0, *,
                      axes=None):
    """A percentile of windows.

    Parameters: as minimum_filter. percentile: 0 to 100; negative from 100.
    Returns: ndarray.
    Raises: as minimum_filter; RuntimeError for a percentile that there is not.
    Source: scipy.ndimage.percentile_filter
    """
    def find_rank(count):
        return _rank_of_percentile(percentile, count)
    return _filter_ranks(input, find_rank, size, footprint, output, mode, cval, origin, axes)
