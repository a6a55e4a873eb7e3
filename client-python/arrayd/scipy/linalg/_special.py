"""Matrices of a known form."""
import math

import numpy as np

import arrayd as ad
from ..._base import view

_SIGNS = 128  # rows of a Hadamard matrix that are computed; a larger one is the Kronecker product of two


def _as_vector(a, what, least=0):
    a = ad.asarray(a)
    if a.ndim != 1:
        raise ValueError(f"Incorrect shape for `{what}`. `{what}` must be one-dimensional.")
    if a.size < least:
        raise ValueError(f"The length of `{what}` must be at least {least}.")
    return a


def _step_through(values, first, shape, down, right):
    """Return matrices whose element (i, j) is values[..., first + down * i + right * j]."""
    if 0 in shape:
        return ad.empty((*values.shape[:-1], *shape), values.dtype)
    values, step = ad.ascontiguousarray(values), values.dtype.itemsize
    return view(values, (*values.shape[:-1], *shape), (*values.strides[:-1], down * step, right * step),
                first * step).copy()


def toeplitz(c, r=None):
    """The Toeplitz matrix of a first column and row.

    Parameters: c: array, the first column. r: array, the first row, whose first element does not count; conj(c) unless given.
    Returns: ndarray (len(c), len(r)).
    Raises: nothing of its own.
    Source: scipy.linalg.toeplitz
    """
    c = ad.asarray(c).ravel()
    r = c.conj() if r is None else ad.asarray(r).ravel()
    values = ad.concatenate([c[::-1], r[1:]])
    return _step_through(values, c.size - 1, (c.size, r.size), -1, 1)


def circulant(c):
    """The circulant matrix of a first column.

    Parameters: c: array (..., n).
    Returns: ndarray (..., n, n).
    Raises: nothing of its own.
    Source: scipy.linalg.circulant
    """
    c = ad.atleast_1d(ad.asarray(c))
    n = c.shape[-1]
    return _step_through(ad.concatenate([c, c], axis=-1), n, (n, n), 1, -1)


def hankel(c, r=None):
    """The Hankel matrix of a first column and a last row.

    Parameters: c: array, the first column. r: array, the last row, whose first element does not count; zeros unless given.
    Returns: ndarray (len(c), len(r)).
    Raises: nothing of its own.
    Source: scipy.linalg.hankel
    """
    c = ad.asarray(c).ravel()
    r = ad.zeros_like(c) if r is None else ad.asarray(r).ravel()
    values = ad.concatenate([c, r[1:]])
    return _step_through(values, 0, (c.size, r.size), 1, 1)


def hadamard(n, dtype=int):
    """The Hadamard matrix of a power of two.

    Parameters: n: int. dtype: of the elements.
    Returns: ndarray (n, n).
    Raises: ValueError for what is no power of two.
    Source: scipy.linalg.hadamard
    """
    if n < 1 or n & (n - 1):
        raise ValueError("n must be an positive integer, and n must be a power of 2")
    few = min(n, _SIGNS)
    places = ad.arange(few)
    bits, width = places[:, None] & places, 1
    while width < int(few).bit_length():
        bits, width = bits ^ bits >> width, 2 * width
    signs = (1 - 2 * (bits & 1)).astype(dtype, copy=False)
    if few == n:
        return signs
    return (hadamard(n // few, dtype)[:, None, :, None] * signs[:, None]).reshape(n, n)


def leslie(f, s):
    """The Leslie matrix of fecundities and rates of survival.

    Parameters: f: array (n,). s: array (n-1,).
    Returns: ndarray (n, n).
    Raises: ValueError where lengths do not fit.
    Source: scipy.linalg.leslie
    """
    f, s = _as_vector(f, "f"), _as_vector(s, "s")
    if f.size != s.size + 1:
        raise ValueError("The length of s must be one less than the length of f.")
    if s.size == 0:
        raise ValueError("The length of s must be at least 1.")
    a = ad.zeros((f.size, f.size), np.result_type(f.dtype, s.dtype))
    a[0] = f
    places = ad.arange(1, f.size)
    a[places, places - 1] = s
    return a


def block_diag(*arrs):
    """A matrix with blocks along its diagonal.

    Parameters: arrs: arrays of at most two dimensions.
    Returns: ndarray.
    Raises: ValueError for more dimensions.
    Source: scipy.linalg.block_diag
    """
    blocks = [ad.atleast_2d(ad.asarray(a)) for a in arrs] or [ad.empty((1, 0))]
    bad = [i for i, block in enumerate(blocks) if block.ndim > 2]
    if bad:
        raise ValueError(f"arguments in the following positions have dimension greater than 2: {bad}")
    rows, cols = ([block.shape[axis] for block in blocks] for axis in (0, 1))
    out = ad.zeros((sum(rows), sum(cols)), np.result_type(*(block.dtype for block in blocks)))
    top = left = 0
    for block in blocks:
        out[top:top + block.shape[0], left:left + block.shape[1]] = block
        top, left = top + block.shape[0], left + block.shape[1]
    return out


def companion(a):
    """The companion matrix of a polynomial.

    Parameters: a: array, coefficients, the highest power first.
    Returns: ndarray.
    Raises: ValueError for fewer than two, or a zero at the front.
    Source: scipy.linalg.companion
    """
    a = ad.atleast_1d(ad.asarray(a))
    if a.ndim != 1:
        raise ValueError("Incorrect shape for `a`. `a` must be one-dimensional.")
    if a.size < 2:
        raise ValueError("The length of `a` must be at least 2.")
    if not bool(a[0] != 0):
        raise ValueError("The first coefficient in `a` must not be zero.")
    first = -a[1:] / (1.0 * a[0])
    c = ad.zeros((a.size - 1,) * 2, first.dtype)
    c[0] = first
    c.reshape(-1)[a.size - 1::a.size] = 1
    return c


def helmert(n, full=False):
    """The Helmert matrix of order n.

    Parameters: n: int. full: whether the first row is there.
    Returns: ndarray.
    Raises: nothing of its own.
    Source: scipy.linalg.helmert
    """
    i = ad.arange(n).astype(np.float64)
    d = i * (i + 1)
    d[0] = n
    h = (ad.tril(ad.ones((n, n)), -1) - ad.diag(i)) / ad.sqrt(d)[:, None]
    h[0] = 1 / math.sqrt(n)
    return h if full else h[1:]


def hilbert(n):
    """The Hilbert matrix of order n: 1 / (i + j + 1).

    Parameters: n: int.
    Returns: ndarray (n, n).
    Raises: nothing of its own.
    Source: scipy.linalg.hilbert
    """
    return _step_through(1.0 / ad.arange(1.0, 2 * n), 0, (max(n, 0),) * 2, 1, 1)


def dft(n, scale=None):
    """The matrix of the discrete Fourier transform.

    Parameters: n: int. scale: None, 'sqrtn' or 'n': what it is divided by.
    Returns: ndarray (n, n) of complex128.
    Raises: ValueError for another scale.
    Source: scipy.linalg.dft
    """
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"scale must be None, 'sqrtn', or 'n'; {scale!r} is not valid.")
    i = ad.arange(n)
    matrix = ad.exp((i[:, None] * i % n).astype(np.float64) * (-2j * math.pi / n))
    return matrix if scale is None else matrix / (math.sqrt(n) if scale == "sqrtn" else n)


def fiedler(a):
    """The Fiedler matrix: |a[i] - a[j]|.

    Parameters: a: array (..., n).
    Returns: ndarray (..., n, n).
    Raises: nothing of its own.
    Source: scipy.linalg.fiedler
    """
    a = ad.atleast_1d(ad.asarray(a))
    if a.size == 0:
        return ad.empty((0,), np.float64)
    if a.size == 1:
        return ad.zeros((1, 1))  # of float64, whatever a is
    return abs(a[..., :, None] - a[..., None, :])


def fiedler_companion(a):
    """The Fiedler companion matrix of a polynomial.

    Parameters: a: array, coefficients, the highest power first.
    Returns: ndarray.
    Raises: ValueError for other than one dimension, or a zero at the front.
    Source: scipy.linalg.fiedler_companion
    """
    a = ad.atleast_1d(ad.asarray(a))
    if a.ndim != 1:
        raise ValueError("Input `a` must be a 1-D array.")
    if a.size < 2:
        return ad.empty((0,), a.dtype)
    if not bool(a[0] != 0):
        raise ValueError("Leading coefficient is zero.")
    a = a / a[0]
    n = a.size - 1
    c = ad.zeros((n, n), a.dtype)
    c[0, 0] = -a[1]
    if n == 1:
        return c
    c[1, 0] = 1
    j = ad.arange(2, n, 2)
    c[j, j - 1] = -a[j + 1]
    j = ad.arange(0, n - 1, 2)
    c[j, j + 1] = -a[j + 2]
    j = ad.arange(0, n - 2, 2)
    c[j, j + 2] = 1
    j = ad.arange(3, n, 2)
    c[j, j - 2] = 1
    return c


def convolution_matrix(a, n, mode="full"):
    """The matrix whose product with a vector of length n is its convolution with a.

    Parameters: a: array (..., m). n: int. mode: 'full', 'same' or 'valid', as numpy.convolve has them.
    Returns: ndarray.
    Raises: ValueError for a of no length, n below 1, or another mode.
    Source: scipy.linalg.convolution_matrix
    """
    if n <= 0:
        raise ValueError("n must be a positive integer.")
    a = ad.asarray(a)
    if a.ndim < 1 or a.shape[-1] == 0:
        raise ValueError("len(a) must be at least 1.")
    if mode not in ("full", "same", "valid"):
        raise ValueError("'mode' argument must be one of ('full', 'valid', 'same')")
    m = a.shape[-1]
    beside = ad.zeros((*a.shape[:-1], n - 1), a.dtype)
    whole = _step_through(ad.concatenate([beside, a, beside], axis=-1), n - 1, (m + n - 1, n), 1, -1)
    if mode == "full":
        return whole
    trim = min(n, m) - 1
    begin = trim if mode == "valid" else trim // 2
    length = max(n, m) - trim if mode == "valid" else max(n, m)
    return whole[..., begin:begin + length, :]
