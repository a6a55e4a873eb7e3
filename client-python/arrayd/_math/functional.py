"""Functions that apply other functions along axes, and that remember what they gave."""
import functools
import itertools
import threading

from .. import _base
from .._base import as_array, ndarray, normalize_axis


def apply_along_axis(func1d, axis, arr, *args, **kwargs):
    """A function of 1-d arrays applied to each one along an axis. It is called once for each, from this process; a
    function of whole arrays with axis= does the same in one operation.

    Parameters: func1d: called with a 1-d array, args and kwargs; what it gives, array or number, must have one shape.
    axis: the axis. arr: array.
    Returns: ndarray: arr's shape with the axis replaced by the shape of func1d's results, of the first one's type.
    Raises: AxisError; ValueError where there is nothing to call func1d with.
    Source: numpy.apply_along_axis
    """
    a = as_array(arr)
    axis = normalize_axis(axis, a.ndim)
    from .._array.manipulation import moveaxis
    lanes = moveaxis(a, axis, -1)
    outer, result = lanes.shape[:-1], None
    for index in itertools.product(*map(range, outer)):
        part = as_array(func1d(lanes[index], *args, **kwargs))
        if result is None:
            result = _base.zeros(outer + part.shape, part.dtype)
        result[index] = part
    if result is None:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    more = result.ndim - len(outer)
    return moveaxis(result, tuple(range(len(outer), result.ndim)), tuple(range(axis, axis + more)))


def apply_over_axes(func, a, axes):
    """A function with an axis, such as sum, applied over several axes in turn; the axes stay, with size 1.

    Parameters: func: called as func(array, axis); its result has as many dimensions or one less. a: array. axes: axis
    or sequence of axes.
    Returns: ndarray.
    Raises: ValueError for a result of another number of dimensions.
    Source: numpy.apply_over_axes
    """
    value = as_array(a)
    ndim = value.ndim
    axes = axes.tolist() if isinstance(axes, ndarray) else axes
    for axis in axes if hasattr(axes, "__len__") else (axes,):
        axis = ndim + axis if axis < 0 else axis
        result = func(value, axis)
        if result.ndim != ndim:
            from .._array.manipulation import expand_dims
            result = expand_dims(result, axis)
            if result.ndim != ndim:
                raise ValueError("function is not returning an array of the correct shape")
        value = result
    return value


_memos = []
_lock = threading.Lock()


def remember(memo):
    """memo, a dict or the like that clear_memo() will clear."""
    with _lock:
        _memos.append(memo)
    return memo


def memoize(for_each_device=False):
    """A decorator that lets a function remember its results by its arguments, until clear_memo().

    Parameters: for_each_device: remember apart for each of the server's devices, by which one is current.
    Returns: decorator. The arguments of the function must be hashable (arrays are not).
    Raises: nothing; calling what it gives, TypeError for arguments that are not hashable.
    Source: cupy.memoize
    """
    def decorator(function):
        memo = remember({})

        @functools.wraps(function)
        def remembering(*args, **kwargs):
            key = (_device() if for_each_device else None, args, frozenset(kwargs.items()))
            if key not in memo:
                memo[key] = function(*args, **kwargs)
            return memo[key]

        return remembering

    return decorator


def _device():
    from ..cuda import get_device_id
    return get_device_id()


def clear_memo():
    """Let all functions that memoize has decorated forget their results.

    Returns: None.
    Source: cupy.clear_memo
    """
    with _lock:
        for memo in _memos:
            memo.clear()
