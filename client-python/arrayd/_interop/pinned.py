"""NumPy arrays in memory that this process shares with the server: they are uploaded without a copy on this side."""
import numpy as np

from .._array.creation import _as_ordered, _letter, _memory_order
from .._base import ndarray, product, shape_tuple
from ..cuda import pinned_memory


def empty_pinned(shape, dtype=float, order="C"):
    """A NumPy array, elements unspecified, in memory that the server shares; where that cannot be had (the server is
    remote, or refuses) an ordinary one.

    Parameters: shape: int or tuple of ints. dtype: type of the elements. order: 'C' or 'F'.
    Returns: numpy.ndarray.
    Raises: ValueError for a negative dimension or another order; TypeError for a dtype of objects.
    Source: cupyx.empty_pinned
    """
    order, shape, dtype = _letter(order), shape_tuple(shape), np.dtype(dtype)
    if dtype.hasobject:
        raise TypeError(f"dtype must be one whose elements are bytes, not {dtype}: objects cannot be shared")
    if any(n < 0 for n in shape):
        raise ValueError("negative dimensions are not allowed")
    if isinstance(order, list):
        return _as_ordered(empty_pinned([shape[axis] for axis in order], dtype), order)
    memory = pinned_memory.alloc_pinned_memory(product(shape) * dtype.itemsize)
    return np.ndarray(shape, dtype, memory, order="F" if order == "F" else "C")


def zeros_pinned(shape, dtype=float, order="C"):
    """A NumPy array of zeros in memory that the server shares.

    Parameters, Returns, Raises: as empty_pinned.
    Source: cupyx.zeros_pinned
    """
    host = empty_pinned(shape, dtype, order)
    host[...] = 0
    return host


def _like(a, dtype, order, shape, subok):
    if subok is not None:
        raise TypeError("subok is not supported")
    a = a if isinstance(a, ndarray) else np.asarray(a)
    shape, order = a.shape if shape is None else shape_tuple(shape), _letter(order)
    if order in ("A", "K"):
        fortran = a.flags.f_contiguous and not a.flags.c_contiguous
        plain = fortran or a.flags.c_contiguous or order == "A" or len(shape) != a.ndim
        order = ("F" if fortran and (order == "A" or len(shape) == a.ndim) else "C") if plain else _memory_order(a)
    return shape, a.dtype if dtype is None else dtype, order


def empty_like_pinned(a, dtype=None, order="K", subok=None, shape=None):
    """A NumPy array of another's shape and type, elements unspecified, in memory that the server shares.

    Parameters: a: array, of NumPy's or arrayd's. dtype, shape: used instead of a's. order: 'C', 'F', or 'K'/'A' for a's.
    subok: None.
    Returns: numpy.ndarray.
    Raises: as empty_pinned.
    Source: cupyx.empty_like_pinned
    """
    return empty_pinned(*_like(a, dtype, order, shape, subok))


def zeros_like_pinned(a, dtype=None, order="K", subok=None, shape=None):
    """A NumPy array of zeros of another's shape and type in memory that the server shares.

    Parameters, Returns, Raises: as empty_like_pinned.
    Source: cupyx.zeros_like_pinned
    """
    return zeros_pinned(*_like(a, dtype, order, shape, subok))
