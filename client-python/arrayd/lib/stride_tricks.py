"""Views by strides: numpy.lib.stride_tricks' functions. None reaches beyond the memory of its array."""
import operator

from .. import _base
from .._array.manipulation import broadcast_arrays, broadcast_shapes, broadcast_to
from .._base import as_array, normalize_axes

__all__ = ["as_strided", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "sliding_window_view"]


def as_strided(x, shape=None, strides=None, subok=False, writeable=True):
    """A view of an array's memory with any shape and strides.

    Parameters: x: array; the view begins at its first element. shape: int or tuple of ints, x's unless given. strides:
    tuple of ints, in bytes; unless given x's, or those of contiguous elements where x's are. subok: ignored. writeable:
    ignored: every view can be written.
    Returns: ndarray, a view.
    Raises: ValueError for a view that would reach beyond the memory of the array that x is a view of, for strides that
    are not multiples of the elements' size, or of another number than the dimensions.
    Source: numpy.lib.stride_tricks.as_strided
    """
    x = as_array(x)
    shape = x.shape if shape is None else _base.shape_tuple(shape)
    if strides is None and x.flags.c_contiguous:
        strides = (x.itemsize * _base.product(shape[i + 1:]) for i in range(len(shape)))
    strides = x.strides if strides is None else tuple(operator.index(stride) for stride in strides)
    if len(shape) != len(strides):
        raise ValueError(f"shape and strides must have one length, not {len(shape)} and {len(strides)}")
    return _base.view(x, shape, strides)


def sliding_window_view(x, window_shape, axis=None, *, subok=False, writeable=False):
    """All windows of a shape that lie within an array, as a view.

    Parameters: x: array. window_shape: int or tuple of ints: the windows' size along each of the axes. axis: axis or
    tuple of axes, all unless given; one that is named twice slides twice. subok: ignored. writeable: must be False: an
    element is in several windows.
    Returns: ndarray, a view: x's shape with n - size + 1 in place of n along the axes, and then window_shape.
    Raises: ValueError for a window that is negative or larger than x, or where window_shape and axis have different
    lengths; AxisError; NotImplementedError for writeable.
    Source: numpy.lib.stride_tricks.sliding_window_view
    """
    if writeable:
        raise NotImplementedError("windows overlap, and are not to be written: writeable must be False")
    x = as_array(x)
    window = _base.shape_tuple(window_shape)
    if any(n < 0 for n in window):
        raise ValueError("`window_shape` cannot contain negative values")
    if axis is None:
        axes = tuple(range(x.ndim))
        if len(window) != len(axes):
            raise ValueError(f"Since axis is `None`, must provide window_shape for all dimensions of `x`; got "
                             f"{len(window)} window_shape elements and `x.ndim` is {x.ndim}.")
    else:
        axes = tuple(normalize_axes(one, x.ndim)[0] for one in (axis if isinstance(axis, (tuple, list)) else (axis,)))
        if len(window) != len(axes):
            raise ValueError(f"Must provide matching length window_shape and axis; got {len(window)} window_shape "
                             f"elements and {len(axes)} axes elements.")
    shape = list(x.shape)
    for one, n in zip(axes, window):
        if shape[one] < n:
            raise ValueError("window shape cannot be larger than input array shape")
        shape[one] -= n - 1
    return _base.view(x, (*shape, *window), x.strides + tuple(x.strides[one] for one in axes))
