"""The indices of triangles, diagonals and other parts of matrices."""
import operator

import numpy as np

from .. import _base
from .._base import as_array
from .creation import arange, ones
from .indexing import nonzero
from .joining import repeat


def tril_indices(n, k=0, m=None):
    """The indices of a lower triangle.

    Parameters: n: rows. k: which diagonal bounds it. m: columns, n unless given.
    Returns: tuple of two int64 ndarrays.
    Raises: ValueError for negative sizes.
    Source: numpy.tril_indices
    """
    return _triangle(n, n if m is None else m, lambda rows, columns: (0 * rows, np.clip(rows + k + 1, 0, columns)))


def triu_indices(n, k=0, m=None):
    """The indices of an upper triangle.

    Parameters: n: rows. k: which diagonal bounds it. m: columns, n unless given.
    Returns: tuple of two int64 ndarrays.
    Raises: ValueError for negative sizes.
    Source: numpy.triu_indices
    """
    return _triangle(n, n if m is None else m,
                     lambda rows, columns: (np.clip(rows + k, 0, columns), columns + 0 * rows))


def _triangle(n, m, bounds):
    """The indices of those elements of an n by m matrix that lie between bounds(rows, m), the same for each row."""
    low, high = bounds(np.arange(operator.index(n)), operator.index(m))
    ends = np.cumsum(high - low)
    rows = repeat(_base.iota(low.size, 0, 1, np.int64), high - low)
    # Column of the i-th: i - (how many came before its row) + where the row begins.
    shift = as_array(ends - high)
    return rows, _base.iota(int(ends[-1]) if ends.size else 0, 0, 1, np.int64) - shift[rows]


def tril_indices_from(arr, k=0):
    """The indices of the lower triangle of a matrix.

    Parameters: arr: array of shape (n, m). k: which diagonal bounds it.
    Returns: tuple of two int64 ndarrays.
    Raises: ValueError when arr is not 2-d.
    Source: numpy.tril_indices_from
    """
    if arr.ndim != 2:
        raise ValueError("input array must be 2-d")
    return tril_indices(arr.shape[0], k, arr.shape[1])


def triu_indices_from(arr, k=0):
    """The indices of the upper triangle of a matrix.

    Parameters: arr: array of shape (n, m). k: which diagonal bounds it.
    Returns: tuple of two int64 ndarrays.
    Raises: ValueError when arr is not 2-d.
    Source: numpy.triu_indices_from
    """
    if arr.ndim != 2:
        raise ValueError("input array must be 2-d")
    return triu_indices(arr.shape[0], k, arr.shape[1])


def diag_indices(n, ndim=2):
    """The indices of the main diagonal of an array of ndim equal dimensions.

    Parameters: n: the size of each dimension. ndim: how many.
    Returns: tuple of int64 ndarrays.
    Raises: ValueError for a negative size.
    Source: numpy.diag_indices
    """
    return (arange(n),) * ndim


def diag_indices_from(arr):
    """The indices of the main diagonal of an array.

    Parameters: arr: array of at least 2 equal dimensions.
    Returns: tuple of int64 ndarrays.
    Raises: ValueError for fewer or unequal dimensions.
    Source: numpy.diag_indices_from
    """
    if arr.ndim < 2:
        raise ValueError("input array must be at least 2-d")
    if len(set(arr.shape)) != 1:
        raise ValueError("All dimensions of input must be of equal length")
    return diag_indices(arr.shape[0], arr.ndim)


def mask_indices(n, mask_func, k=0):
    """The indices of a part of a square matrix.

    Parameters: n: rows and columns. mask_func: function of a matrix and k that keeps a part, as triu does. k: passed
    to it.
    Returns: tuple of two int64 ndarrays.
    Raises: what mask_func raises.
    Source: numpy.mask_indices
    """
    return nonzero(mask_func(ones((n, n), int), k) != 0)
