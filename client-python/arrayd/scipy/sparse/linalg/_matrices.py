"""Powers, norms and exponentials of sparse matrices."""
import math

import numpy as np

import arrayd as ad

from .._products import make_multiplier
from .._reductions import take_canonical
from .._types import is_integer, issparse, sparray
from ._iterative import _norm


def matrix_power(A, power):
    """A square sparse matrix to the power of an integer, by products.

    Parameters: A: sparse matrix, or array. power: int, 0 or more.
    Returns: sparse matrix, or array as A is.
    Raises: TypeError for a matrix that is not square, ValueError for another power.
    Source: scipy.sparse.linalg.matrix_power
    """
    M, N = A.shape
    if M != N:
        raise TypeError("sparse matrix is not square")
    if not is_integer(power):
        raise ValueError("exponent must be an integer")
    power = int(power)
    if power < 0:
        raise ValueError("exponent must be >= 0")
    if power == 0:
        from .._construct import _make_eye
        return _make_eye(M, N, 0, A.dtype, None, isinstance(A, sparray))
    result, square = None, A.tocsr() if A.format not in ("csr", "csc") else A
    while power:
        if power & 1:
            result = square if result is None else result @ square
        power >>= 1
        if power:
            square = square @ square
    return result.copy() if result is A else result


def norm(x, ord=None, axis=None):
    """A norm of a sparse matrix, or of its rows or columns.

    Parameters: x: sparse matrix. ord: None, 'fro', 1, -1, 2, inf, -inf, 0; along an axis a number. axis: int, or two
        ints.
    Returns: ndarray.
    Raises: TypeError for what is not sparse, ValueError for another ord or axis, NotImplementedError for ord 2, -2 or
        'nuc' of a matrix other than 2.
    Source: scipy.sparse.linalg.norm
    """
    if not issparse(x):
        raise TypeError("input is not sparse. use numpy.linalg.norm")
    if axis is None and ord in (None, "fro", "f"):
        data = take_canonical(x).data
        return _norm(data) if data.dtype.char in "fdFD" and data.size else ad.sqrt((abs(data) ** 2).sum())
    x = take_canonical(x).tocsr()
    axes = (0, 1) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if len(axes) > 2 or any(not is_integer(a) for a in axes):
        raise ValueError("'axis' must be None, an integer or a tuple of integers")
    for a in axes:
        if not -2 <= a < 2:
            raise ValueError(f"Invalid axis {axis!r} for an array with shape {x.shape!r}")
    axes = tuple(int(a) % 2 for a in axes)
    if len(axes) == 2:
        return _norm_of_matrix(x, ord, axes)
    return _norm_along(x, ord, axes[0])



def _norm_of_matrix(x, ord, axes):
    row, col = axes
    if row == col:
        raise ValueError("Duplicate axes given.")
    if ord == 2:
        from ._eigen import svds
        return svds(x.astype(np.promote_types(x.dtype, np.float32)), k=1, return_singular_vectors=False)[0]
    if ord in (-2, "nuc"):
        raise NotImplementedError
    if ord in (1, -1):
        sums = abs(x).sum(axis=row)
        return sums.max() if ord == 1 else sums.min()
    if ord in (np.inf, -np.inf):
        sums = abs(x).sum(axis=col)
        return sums.max() if ord == np.inf else sums.min()
    if ord in (None, "f", "fro"):
        return ad.sqrt((abs(x.data) ** 2).sum())
    raise ValueError("Invalid norm order for matrices.")


def _norm_along(x, ord, axis):
    if ord in (np.inf, -np.inf):
        found = abs(x)
        found = (found.max(axis=axis) if ord == np.inf else found.min(axis=axis)).toarray()
    elif ord == 0:
        found = x.count_nonzero(axis=axis)
    elif ord == 1:
        found = abs(x).sum(axis=axis)
    elif ord in (2, None):
        found = ad.sqrt(abs(x).power(2).sum(axis=axis))
    else:
        try:
            ord + 1
        except TypeError:
            raise ValueError("Invalid norm order for vectors.") from None
        found = ad.power(abs(x).power(ord).sum(axis=axis), 1 / ord)
    return found.ravel()


def expm_multiply(A, B, start=None, stop=None, num=None, endpoint=None, traceA=None):
    """The exponential of a matrix, times B: by products of A with B alone.

    Parameters: A: square sparse matrix or LinearOperator. B: array. start, stop, num, endpoint: points of time at which
        expm(t A) @ B is given, as numpy.linspace has them. traceA: ignored: taken for 0.
    Returns: ndarray.
    Raises: ValueError where shapes do not fit.
    Source: scipy.sparse.linalg.expm_multiply
    """
    B = ad.asarray(B)
    if len(A.shape) != 2 or A.shape[0] != A.shape[1]:
        raise ValueError("expected A to be like a square matrix")
    if A.shape[1] != B.shape[0]:
        raise ValueError(f"shapes of matrices A {A.shape} and B {B.shape} are incompatible")
    if start is None and stop is None and num is None:
        return _multiply_exponential(A, B, 1.0)
    points = np.linspace(start, stop, 50 if num is None else num, endpoint=True if endpoint is None else endpoint)
    parts, before = [], 0.0
    now = B
    for t in points.tolist():
        now = _multiply_exponential(A, now, t - before)
        parts.append(now)
        before = t
    return ad.stack(parts)


_LARGEST_STEP = 6.0  # norm of a step's matrix: terms grow to 6**6/6!, which costs two digits at worst


def _multiply_exponential(A, B, t):
    """expm(t A) @ B by Taylor's series, in steps. How many terms are needed follows from the norm, so none is waited for."""
    dtype = np.result_type(A.dtype, B.dtype, np.float32 if B.dtype.char in "fF" else np.float64)
    if issparse(A):
        A = A.tocsr()
        size, multiply = float(abs(A).sum(axis=0).max()), make_multiplier(A)
    else:
        size, multiply = _estimate_norm(A, dtype), A.__matmul__
    size = abs(t) * size
    steps = max(1, math.ceil(size / _LARGEST_STEP))
    terms = _count_terms(size / steps, float(np.finfo(dtype).eps))
    F = B.astype(dtype)
    for _ in range(steps):
        term, total = F, F
        for k in range(1, terms + 1):
            term = multiply(term) * (t / steps / k)
            total = total + term
        F = total
    return F


def _count_terms(size, tolerance):
    """How many terms of exp(size) there are before those that change nothing."""
    term, k = 1.0, 0
    while term > tolerance:
        k += 1
        term *= size / k
    return k


def _estimate_norm(A, dtype):
    """Above the spectral norm of an operator, mostly: by some steps of the power method."""
    x = ad.random.default_rng(0).standard_normal(A.shape[1]).astype(dtype)
    size = 1.0
    for _ in range(10):
        x = x / ad.sqrt((abs(x) ** 2).sum())
        x = A @ x
        size = float(ad.sqrt((abs(x) ** 2).sum()))
        if size == 0:
            return 1.0
    return 2 * size


