"""Shapes, joining, splitting, repeating: views wherever NumPy gives views."""
import builtins

import numpy as np

from .. import _base
from .._base import as_array, normalize_axes, normalize_axis, shape_tuple


def read_order(order, allowed):
    """An order as a capital letter, one of those allowed; NumPy takes small ones, and None for 'C', too."""
    if not isinstance(order, (str, type(None))):
        raise TypeError(f"order must be one of {', '.join(map(repr, allowed))}, not {order!r}")
    name = "C" if order is None else order.upper()
    if len(name) != 1 or name not in allowed:
        raise ValueError(f"order must be one of {', '.join(map(repr, allowed))}, not {order!r}")
    return name


def reshape(a, /, shape, order="C", *, copy=None):
    """Return the elements in another shape; a view where that is possible.

    Parameters: a: array. shape: int or tuple of ints, one of which may be -1. order: 'C', 'F' or 'A', the order in
    which elements are read and placed. copy: True always copies, False raises instead of copying.
    Returns: ndarray.
    Raises: ValueError when the number of elements differs, or for a copy that is text.
    Source: numpy.reshape
    """
    _base.check_copy(copy)
    a = as_array(a)
    shape, order = shape_tuple(shape), read_order(order, "CFA")
    if order == "A":
        order = "F" if a.flags.f_contiguous and not a.flags.c_contiguous else "C"
    if order == "F":
        return _reshape(a.transpose(), _known(shape, a.size)[::-1], copy).transpose()
    return _reshape(a, shape, copy)


def _reshape(a, shape, copy):
    if copy:
        a = a.copy()
    result = _base._core.ndarray_reshape(a, shape)
    if copy is False and not _base._core.shares_buffer(a, result):
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    return result


def _known(shape, size):
    """shape with -1 replaced."""
    if -1 not in shape:
        return shape
    rest = _base.product(n for n in shape if n != -1)
    if shape.count(-1) > 1 or rest == 0 or size % rest:
        raise ValueError(f"cannot reshape array of size {size} into shape {shape}")
    return tuple(size // rest if n == -1 else n for n in shape)


def ravel(a, order="C"):
    """The elements as one dimension, contiguous; a view where they lie so.

    Parameters: a: array of any shape. order: 'C', 'F', 'A' or 'K' (as they lie in memory).
    Returns: ndarray of shape (a.size,).
    Raises: ValueError for another order.
    Source: numpy.ravel
    """
    return as_array(a).ravel(order)


def transpose(a, axes=None):
    """A view with the axes in another order.

    Parameters: a: array of shape S. axes: a permutation of the axes, reversed unless given.
    Returns: ndarray, a view.
    Raises: ValueError when axes is no permutation.
    Source: numpy.transpose
    """
    return as_array(a).transpose(axes)


permute_dims = transpose


def matrix_transpose(x, /):
    """A view with the last two axes swapped.

    Parameters: x: array of shape (..., M, N).
    Returns: ndarray of shape (..., N, M), a view.
    Raises: ValueError for fewer than 2 dimensions.
    Source: numpy.matrix_transpose
    """
    x = as_array(x)
    if x.ndim < 2:
        raise ValueError(f"Input array must be at least 2-dimensional, but it is {x.ndim}")
    return swapaxes(x, -1, -2)


def swapaxes(a, axis1, axis2):
    """A view with two axes exchanged.

    Parameters: a: array. axis1, axis2: the axes.
    Returns: ndarray, a view.
    Raises: AxisError for an axis that a has not.
    Source: numpy.swapaxes
    """
    a = as_array(a)
    axes = list(builtins.range(a.ndim))
    i, j = normalize_axis(axis1, a.ndim, "axis1"), normalize_axis(axis2, a.ndim, "axis2")
    axes[i], axes[j] = axes[j], axes[i]
    return a.transpose(axes)


def moveaxis(a, source, destination):
    """A view with axes moved to other places; the rest keep their order.

    Parameters: a: array. source: axis or sequence of axes. destination: where each goes.
    Returns: ndarray, a view.
    Raises: ValueError when the two differ in length or name an axis twice; AxisError.
    Source: numpy.moveaxis
    """
    a = as_array(a)
    source = normalize_axes(source, a.ndim, "source")
    destination = normalize_axes(destination, a.ndim, "destination")
    if len(source) != len(destination):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    axes = [axis for axis in builtins.range(a.ndim) if axis not in source]
    for to, axis in sorted(zip(destination, source)):
        axes.insert(to, axis)
    return a.transpose(axes)


def rollaxis(a, axis, start=0):
    """A view with one axis moved before another.

    Parameters: a: array. axis: the axis to move. start: it is put before this one.
    Returns: ndarray, a view.
    Raises: AxisError.
    Source: numpy.rollaxis
    """
    a = as_array(a)
    axis = normalize_axis(axis, a.ndim)
    if not -a.ndim <= start <= a.ndim:
        raise _base.AxisError(f"'start' arg requires {-a.ndim} <= start < {a.ndim + 1}, but {start} was passed in")
    start += a.ndim if start < 0 else 0
    return moveaxis(a, axis, start - 1 if axis < start else start)


def expand_dims(a, axis):
    """A view with new axes of size 1.

    Parameters: a: array. axis: where in the result the new axes are, an int or a tuple.
    Returns: ndarray, a view.
    Raises: AxisError; ValueError for an axis named twice.
    Source: numpy.expand_dims
    """
    a = as_array(a)
    if type(axis) is int and 0 <= axis <= a.ndim:
        shape = a.shape
        return a.reshape((*shape[:axis], 1, *shape[axis:]))
    axis = axis if isinstance(axis, (tuple, list)) else (axis,)
    ndim = a.ndim + len(axis)
    places = normalize_axes(tuple(axis), ndim)
    rest = iter(a.shape)
    return a.reshape(tuple(1 if i in places else next(rest) for i in builtins.range(ndim)))


def squeeze(a, axis=None):
    """A view without axes of size 1.

    Parameters: a: array. axis: which of them, all unless given.
    Returns: ndarray, a view.
    Raises: ValueError when such an axis is not of size 1; AxisError.
    Source: numpy.squeeze
    """
    a = as_array(a)
    if axis is None:
        return a.reshape(tuple(n for n in a.shape if n != 1))
    if a.ndim == 0 and axis in (0, -1):  # NumPy allows that
        return a[...]
    axes = _base.strict_axes(axis, a.ndim)
    if any(a.shape[i] != 1 for i in axes):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return a.reshape(tuple(n for i, n in enumerate(a.shape) if i not in axes))


def broadcast_shapes(*args):
    """The shape that shapes broadcast to.

    Parameters: args: shapes, tuples of ints or ints.
    Returns: tuple of ints.
    Raises: ValueError when they do not fit.
    Source: numpy.broadcast_shapes
    """
    return np.broadcast_shapes(*args)


def broadcast_to(array, shape, subok=False):
    """A view repeated to a larger shape, with strides of 0.

    Parameters: array: array. shape: int or tuple of ints. subok: ignored.
    Returns: ndarray, a view; do not write to it.
    Raises: ValueError when it does not fit.
    Source: numpy.broadcast_to
    """
    a = as_array(array)
    shape = shape_tuple(shape)
    if any(n < 0 for n in shape):
        raise ValueError("all elements of broadcast shape must be non-negative")
    extra = len(shape) - a.ndim
    if extra < 0:
        raise ValueError("input operand has more dimensions than allowed by the axis remapping")
    strides = [0] * extra
    for have, want, stride in zip(a.shape, shape[extra:], a.strides):
        if have != want and have != 1:
            raise ValueError("operands could not be broadcast together with remapped shapes "
                             f"[original->remapped]: {a.shape} and requested shape {shape}")
        strides.append(stride if have == want else 0)
    return _base.view(a, shape, strides)


def broadcast_arrays(*args, subok=False):
    """Views of arrays repeated to their common shape.

    Parameters: args: arrays. subok: ignored.
    Returns: tuple of ndarrays, views; do not write to them.
    Raises: ValueError when the shapes do not fit.
    Source: numpy.broadcast_arrays
    """
    arrays = [as_array(a) for a in args]
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    return tuple(a if a.shape == shape else broadcast_to(a, shape) for a in arrays)


def _at_least(arrays, put):
    results = tuple(put(as_array(a)) for a in arrays)
    return results[0] if len(results) == 1 else results


def atleast_1d(*arys):
    """Views with at least 1 dimension.

    Parameters: arys: arrays.
    Returns: ndarray, or a tuple of them for several.
    Raises: nothing of its own.
    Source: numpy.atleast_1d
    """
    return _at_least(arys, lambda a: a.reshape(1) if a.ndim == 0 else a)


def atleast_2d(*arys):
    """Views with at least 2 dimensions; new ones come first.

    Parameters: arys: arrays.
    Returns: ndarray, or a tuple of them for several.
    Raises: nothing of its own.
    Source: numpy.atleast_2d
    """
    return _at_least(arys, lambda a: a.reshape((1,) * (2 - a.ndim) + a.shape) if a.ndim < 2 else a)


def atleast_3d(*arys):
    """Views with at least 3 dimensions: (N,) becomes (1, N, 1) and (M, N) becomes (M, N, 1).

    Parameters: arys: arrays.
    Returns: ndarray, or a tuple of them for several.
    Raises: nothing of its own.
    Source: numpy.atleast_3d
    """
    shapes = {0: lambda s: (1, 1, 1), 1: lambda s: (1, s[0], 1), 2: lambda s: s + (1,)}
    return _at_least(arys, lambda a: a.reshape(shapes[a.ndim](a.shape)) if a.ndim < 3 else a)


def flip(m, axis=None):
    """A view with the order along axes reversed.

    Parameters: m: array. axis: axis or tuple of axes, all unless given.
    Returns: ndarray, a view.
    Raises: AxisError.
    Source: numpy.flip
    """
    m = as_array(m)
    axes = normalize_axes(axis, m.ndim)
    return m[tuple(slice(None, None, -1 if i in axes else 1) for i in builtins.range(m.ndim))] if axes else m[...]


def fliplr(m):
    """A view with the second axis reversed.

    Parameters: m: array, at least 2-d.
    Returns: ndarray, a view.
    Raises: ValueError for fewer dimensions.
    Source: numpy.fliplr
    """
    m = as_array(m)
    if m.ndim < 2:
        raise ValueError("Input must be >= 2-d.")
    return flip(m, 1)


def flipud(m):
    """A view with the first axis reversed.

    Parameters: m: array, at least 1-d.
    Returns: ndarray, a view.
    Raises: ValueError for a 0-d array.
    Source: numpy.flipud
    """
    m = as_array(m)
    if m.ndim < 1:
        raise ValueError("Input must be >= 1-d.")
    return flip(m, 0)


def rot90(m, k=1, axes=(0, 1)):
    """A view rotated by quarter turns in the plane of two axes.

    Parameters: m: array, at least 2-d. k: how many quarter turns, from the first axis towards the second. axes: the
    two axes.
    Returns: ndarray, a view.
    Raises: ValueError for axes that do not make a plane.
    Source: numpy.rot90
    """
    m = as_array(m)
    if len(axes) != 2:
        raise ValueError("len(axes) must be 2.")
    if not all(-m.ndim <= axis < m.ndim for axis in axes):
        raise ValueError(f"Axes={tuple(axes)} out of range for array of ndim={m.ndim}.")
    i, j = (axis % m.ndim for axis in axes)
    if i == j:
        raise ValueError("Axes must be different.")
    k %= 4
    if k in (0, 2):
        return flip(m, (i, j)) if k else m[...]
    return swapaxes(flip(m, j), i, j) if k == 1 else flip(swapaxes(m, i, j), j)
