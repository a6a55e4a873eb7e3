"""Linear algebra: numpy.linalg's functions."""
from .._core import LinAlgError
from ._decompositions import (cholesky, cond, det, eig, eigh, eigvals, eigvalsh, inv, lstsq, matrix_rank, multi_dot,
                              pinv, qr, slogdet, solve, svd, svdvals, tensorinv, tensorsolve)
from .._array.indexing import diagonal as _diagonal
from .._base import as_array as _as_array
from .._math.products import (cross as _cross, matmul, matrix_power, norm, outer as _outer, tensordot, trace as _trace,
                              vecdot)
from .._array.manipulation import matrix_transpose

__all__ = ["LinAlgError", "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv",
           "lstsq", "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm",
           "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve",
           "trace", "vecdot", "vector_norm"]


def cross(x1, x2, /, *, axis=-1):
    """Cross product of vectors of 3 components.

    Parameters: x1, x2: arrays that broadcast, of size 3 along axis. axis: the axis of the vectors.
    Returns: ndarray.
    Raises: ValueError for another number of components; AxisError.
    Source: numpy.linalg.cross
    """
    x1, x2 = _as_array(x1), _as_array(x2)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError("Both input arrays must be (arrays of) 3-dimensional vectors, but they are "
                         f"{x1.shape[axis]} and {x2.shape[axis]} dimensional instead.")
    return _cross(x1, x2, axis=axis)


def outer(x1, x2, /):
    """Every element of one vector times every one of another.

    Parameters: x1: array of shape (M,). x2: array of shape (N,).
    Returns: ndarray of shape (M, N).
    Raises: ValueError for other numbers of dimensions.
    Source: numpy.linalg.outer
    """
    x1, x2 = _as_array(x1), _as_array(x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"Input arrays must be one-dimensional, but they are x1.ndim={x1.ndim} and x2.ndim={x2.ndim}.")
    return _outer(x1, x2)


def diagonal(x, /, *, offset=0):
    """The diagonals of matrices, as a view.

    Parameters: x: array of shape (..., M, N). offset: which diagonal.
    Returns: ndarray of shape (..., length).
    Raises: ValueError for fewer than 2 dimensions.
    Source: numpy.linalg.diagonal
    """
    return _diagonal(x, offset, -2, -1)


def trace(x, /, *, offset=0, dtype=None):
    """The sums of the diagonals of matrices.

    Parameters: x: array of shape (..., M, N). offset: which diagonal. dtype: type of the sums.
    Returns: ndarray of shape (...).
    Raises: ValueError for fewer than 2 dimensions.
    Source: numpy.linalg.trace
    """
    return _trace(x, offset, -2, -1, dtype)


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """Norm of matrices.

    Parameters: x: array of shape (..., M, N). keepdims: keep the axes, with size 1. ord: as norm.
    Returns: real ndarray of shape (...).
    Raises: ValueError for an ord that does not exist; LinAlgError as svdvals.
    Source: numpy.linalg.matrix_norm
    """
    return norm(x, ord, (-2, -1), keepdims)


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """Norm of vectors.

    Parameters: x: array. axis: axis or tuple of axes that make the vectors, all unless given. keepdims: keep the
    axes, with size 1. ord: as norm.
    Returns: real ndarray.
    Raises: AxisError.
    Source: numpy.linalg.vector_norm
    """
    from .._base import as_array, normalize_axes
    from .._math.reductions import _kept, _rows
    x = as_array(x)
    axes = normalize_axes(axis, x.ndim)
    return _kept(norm(_rows(x, axes), ord, -1), x, axes, keepdims)
