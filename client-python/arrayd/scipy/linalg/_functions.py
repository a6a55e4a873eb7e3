"""Functions of matrices: the exponential, products by Kronecker and Khatri-Rao, bandwidth."""
import math

import numpy as np

import arrayd as ad

from ..._base import call
from ._triangular import field_type

# The numerator of the Padé approximant of order 13 of exp, and up to which norm it is as exact as a double.
_PADE = (64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
         670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1)
_LARGEST = 5.371920351148152


def expm(A):
    """The exponential of square matrices, by a Padé approximant and squaring.

    Parameters: A: array (..., n, n).
    Returns: ndarray.
    Raises: LinAlgError for a matrix that is not square.
    Source: scipy.linalg.expm
    """
    A = ad.asarray(A)
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ad.linalg.LinAlgError("The input array must be square in the last two dimensions"
                                    if A.ndim > 1 else "The input array must be at least two-dimensional")
    dtype = field_type(A)
    A = A.astype(dtype, copy=False)
    n = A.shape[-1]
    if A.size == 0:
        return ad.empty_like(A)
    if n == 1:
        return ad.exp(A)
    norm = float(abs(A).sum(axis=-2).max())
    if not math.isfinite(norm):
        return ad.full_like(A, np.nan)
    steps = max(0, math.ceil(math.log2(norm / _LARGEST))) if norm > _LARGEST else 0
    X = _approximate(A * (0.5 ** steps), n, dtype)
    for _ in range(steps):
        X = X @ X
    return X


def _approximate(A, n, dtype):
    b = _PADE
    one = ad.eye(n, dtype=dtype)
    A2 = A @ A
    A4 = A2 @ A2
    A6 = A4 @ A2
    odd = A @ (A6 @ (b[13] * A6 + b[11] * A4 + b[9] * A2) + b[7] * A6 + b[5] * A4 + b[3] * A2 + b[1] * one)
    even = A6 @ (b[12] * A6 + b[10] * A4 + b[8] * A2) + b[6] * A6 + b[4] * A4 + b[2] * A2 + b[0] * one
    return call("solve", (even - odd, even + odd))


def kron(a, b):
    """The Kronecker product of two matrices.

    Parameters: a, b: arrays.
    Returns: ndarray.
    Raises: nothing of its own.
    Source: cupyx.scipy.linalg.kron
    """
    return ad.kron(ad.asarray(a), ad.asarray(b))


def khatri_rao(a, b):
    """The Kronecker product of each column of a with that of b.

    Parameters: a, b: arrays (..., m, n) and (..., k, n).
    Returns: ndarray (..., m*k, n).
    Raises: LinAlgError for fewer than two dimensions, ValueError for different numbers of columns.
    Source: scipy.linalg.khatri_rao
    """
    a, b = ad.asarray(a), ad.asarray(b)
    if a.ndim < 2 or b.ndim < 2:
        raise ad.linalg.LinAlgError("The both arrays should be 2-dimensional.")
    if a.shape[-1] != b.shape[-1]:
        raise ValueError("The number of columns for both arrays should be equal.")
    c = a[..., :, None, :] * b[..., None, :, :]
    return c.reshape(*c.shape[:-3], -1, c.shape[-1])


def bandwidth(a):
    """How many diagonals below and above the main one have something other than zero. Waits.

    Parameters: a: array (m, n).
    Returns: tuple of two ints: below, above.
    Raises: LinAlgError for other than two dimensions.
    Source: scipy.linalg.bandwidth
    """
    a = ad.asarray(a)
    if a.ndim != 2:
        raise ad.linalg.LinAlgError("Input array must be 2D.")
    row, col = ad.nonzero(a)
    if row.size == 0:
        return 0, 0
    return max(0, int((row - col).max())), max(0, int((col - row).max()))
