"""NumPy arrays in memory that this process shares with the server: they are uploaded without a copy on this side."""
import numpy as np

from .. import _core
from .._base import shape_tuple


def empty_pinned(shape, dtype=float, order="C"):
    """A NumPy array, elements unspecified, in memory that the server shares; where that cannot be had (the server is
    remote, or refuses) an ordinary one.

    Parameters: shape: int or tuple of ints. dtype: type of the elements. order: 'C' or 'F'.
    Returns: numpy.ndarray.
    Raises: ValueError for a negative dimension or another order.
    Source: cupyx.empty_pinned
    """
    if order not in ("C", "F"):
        raise ValueError("order must be 'C' or 'F'")
    shape, dtype = shape_tuple(shape), np.dtype(dtype)
    try:
        host = _core.empty_pinned(shape[::-1] if order == "F" else shape, dtype)
    except TypeError:  # of a type that arrayd does not have
        host = None
    if host is None:
        return np.empty(shape, dtype, order)
    return host.T if order == "F" else host


def zeros_pinned(shape, dtype=float, order="C"):
    """A NumPy array of zeros in memory that the server shares.

    Parameters, Returns, Raises: as empty_pinned.
    Source: cupyx.zeros_pinned
    """
    host = empty_pinned(shape, dtype, order)
    host[...] = 0
    return host


def _like(a, dtype, order, shape):
    if order in ("K", "A", None):
        order = "F" if a.flags.f_contiguous and not a.flags.c_contiguous else "C"
    return a.shape if shape is None else shape, a.dtype if dtype is None else dtype, order


def empty_like_pinned(a, dtype=None, order="K", subok=None, shape=None):
    """A NumPy array of another's shape and type, elements unspecified, in memory that the server shares.

    Parameters: a: array, of NumPy's or arrayd's. dtype, shape: used instead of a's. order: 'C', 'F', or 'K'/'A' for a's.
    subok: ignored.
    Returns: numpy.ndarray.
    Raises: as empty_pinned.
    Source: cupyx.empty_like_pinned
    """
    return empty_pinned(*_like(a, dtype, order, shape))


def zeros_like_pinned(a, dtype=None, order="K", subok=None, shape=None):
    """A NumPy array of zeros of another's shape and type in memory that the server shares.

    Parameters, Returns, Raises: as empty_like_pinned.
    Source: cupyx.zeros_like_pinned
    """
    return zeros_pinned(*_like(a, dtype, order, shape))
