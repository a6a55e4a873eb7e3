"""Polynomials as arrays of coefficients, the highest power first."""
import builtins

import numpy as np

from .. import _base, _core
from .._base import as_array, ndarray
from .elementary import convolve
from .poly1d import coefficients_of, is_polynomial, made, trimmed


def _both(a1, a2):
    """The coefficients of two polynomials, 1-d, and whether one of them is a poly1d."""
    return coefficients_of(a1)[0], coefficients_of(a2)[0], is_polynomial(a1) or is_polynomial(a2)


def _padded(a1, a2):
    """Two arrays of coefficients with zeros put before the shorter one."""
    size = builtins.max(a1.size, a2.size)
    padded = []
    for a in (a1, a2):
        if a.size < size:
            whole = _base.zeros((size,), a.dtype)
            whole[size - a.size:] = a
            a = whole
        padded.append(a)
    return padded


def polyadd(a1, a2):
    """The sum of two polynomials.

    Parameters: a1, a2: coefficients, 1-d, or poly1d.
    Returns: 1-d ndarray of coefficients, as long as the longer one; poly1d if a1 or a2 is one.
    Raises: ValueError for more dimensions.
    Source: numpy.polyadd
    """
    a1, a2, polynomial = _both(a1, a2)
    a1, a2 = _padded(a1, a2)
    return made(a1 + a2) if polynomial else a1 + a2


def polysub(a1, a2):
    """The difference of two polynomials.

    Parameters: a1, a2: coefficients, 1-d, or poly1d.
    Returns: 1-d ndarray of coefficients, as long as the longer one; poly1d if a1 or a2 is one.
    Raises: ValueError for more dimensions.
    Source: numpy.polysub
    """
    a1, a2, polynomial = _both(a1, a2)
    a1, a2 = _padded(a1, a2)
    return made(a1 - a2) if polynomial else a1 - a2


def polymul(a1, a2):
    """The product of two polynomials. Leading zeros of arrays are left out. That costs a round trip where a1 or a2 is an
    array of the server. A poly1d leaves them out when it is looked at.

    Parameters: a1, a2: coefficients, 1-d, or poly1d.
    Returns: 1-d ndarray of coefficients; poly1d if a1 or a2 is one.
    Raises: ValueError for more dimensions.
    Source: numpy.polymul
    """
    if is_polynomial(a1) or is_polynomial(a2):
        return made(convolve(coefficients_of(a1)[0], coefficients_of(a2)[0]))
    return convolve(*trimmed(a1, a2))


def polydiv(u, v):
    """Quotient and remainder of two polynomials. The remainder's leading coefficients are left out while they are below
    1e-8, which costs a round trip. It costs another where u or v is a poly1d whose leading zeros are not yet left out.

    Parameters: u, v: coefficients, 1-d, or poly1d.
    Returns: tuple (quotient, remainder) of 1-d ndarrays of coefficients; of poly1d if u or v is one.
    Raises: ValueError for more dimensions.
    Source: numpy.polydiv
    """
    polynomial = is_polynomial(u) or is_polynomial(v)
    u, v = trimmed(u, v) if polynomial else (coefficients_of(u)[0], coefficients_of(v)[0])
    u, v = u + 0.0, v + 0.0
    kind = _base.result_type(u, v)
    steps, scale = u.size - v.size + 1, 1.0 / v[0]
    quotient, rest = _base.zeros((builtins.max(steps, 1),), kind), u.astype(kind)
    for k in builtins.range(steps):
        factor = scale * rest[k]
        quotient[k] = factor
        rest[k:k + v.size] -= factor * v
    counts = ~(_core.ufuncs["absolute"](rest) <= 1e-8)
    counts[-1] = True
    rest = rest[int(_base.reduce("argmax", counts)):]
    return (made(quotient), made(rest)) if polynomial else (quotient, rest)


def polyder(p, m=1):
    """The derivative of a polynomial.

    Parameters: p: coefficients, 1-d, or poly1d. m: of which order.
    Returns: 1-d ndarray of coefficients; poly1d if p is one.
    Raises: ValueError for a negative m.
    Source: numpy.polyder
    """
    m = int(m)
    if m < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    from .._array.creation import arange
    a = coefficients_of(p)[0]
    for _ in builtins.range(m):
        a = a[:-1] * arange(a.size - 1, 0, -1)
    return made(a) if is_polynomial(p) else a


def polyint(p, m=1, k=None):
    """An antiderivative of a polynomial.

    Parameters: p: coefficients, 1-d, or poly1d. m: of which order. k: constants of integration, one for each order or
    one for all; 0 unless given.
    Returns: 1-d ndarray of coefficients; poly1d if p is one.
    Raises: ValueError for a negative m, or too few constants.
    Source: numpy.polyint
    """
    m = int(m)
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    from .._array.creation import arange
    from .._array.joining import concatenate
    k = as_array(np.zeros(m) if k is None else k).reshape(-1)
    if k.size == 1 and m > 1:
        k = k * as_array(np.ones(m))
    if k.size < m:
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    a = coefficients_of(p)[0]
    for i in builtins.range(m):
        a = concatenate((a / arange(a.size, 0, -1), k[i:i + 1]))
    return made(a) if is_polynomial(p) else a


def polyval(p, x):
    """A polynomial's values.

    Parameters: p: coefficients, the highest power first, shape (n,), or poly1d. x: where to evaluate it; a poly1d is
    put in for the variable.
    Returns: ndarray of x's shape; poly1d if x is one.
    Raises: TypeError for a number in place of p.
    Source: numpy.polyval
    """
    p = coefficients_of(p)[0] if is_polynomial(p) else as_array(p)
    if p.ndim == 0:
        raise TypeError("p must be 1-d, not a number: p[0] is the coefficient of the highest power")
    if is_polynomial(x):
        return _composed(p, coefficients_of(x)[0])
    x = as_array(x)
    value = _base.zeros(x.shape, x.dtype)
    for i in builtins.range(p.shape[0]):
        value = value * x + p[i]
    return value


def _composed(p, x):
    value = made(p[:1].astype(_base.result_type(p, x, 0)))._coeffs
    for i in builtins.range(1, p.size):
        value = convolve(value, x)
        value[-1] += p[i]
    return made(value)


def poly(seq_of_zeros):
    """The coefficients of the polynomial with the given roots, the first one 1.

    Parameters: seq_of_zeros: roots, 1-d; or a square matrix, whose eigenvalues are taken. A matrix and complex roots
    are fetched, and the coefficients computed in this process: whether they are real depends on the roots.
    Returns: 1-d ndarray of coefficients; 1.0 for no roots.
    Raises: ValueError for another shape.
    Source: numpy.poly
    """
    zeros = seq_of_zeros
    if isinstance(zeros, ndarray) and zeros.ndim <= 1 and zeros.dtype.kind != "c":
        return _from_real_roots(zeros.reshape(-1)) if zeros.size else 1.0
    result = np.poly(_base.as_host(zeros, "seq_of_zeros"))
    return as_array(result) if isinstance(result, np.ndarray) else result


def _from_real_roots(zeros):
    kind = np.dtype(np.mintypecode(zeros.dtype.char))
    zeros = zeros.astype(kind)
    result = _base.zeros((zeros.size + 1,), kind)
    result[0] = 1
    for i in builtins.range(zeros.size):
        result[1:i + 2] -= zeros[i] * result[:i + 1]
    return result


def roots(p):
    """The roots of a polynomial. Its coefficients are fetched (one round trip), as the number and the type of the roots
    depend on data. NumPy finds the roots in this process, as the eigenvalues of the companion matrix.

    Parameters: p: coefficients, 1-d, or poly1d.
    Returns: 1-d ndarray, complex unless all roots are real.
    Raises: ValueError for more dimensions.
    Source: numpy.roots
    """
    return as_array(np.roots(_base.as_host(coefficients_of(p)[0] if is_polynomial(p) else p, "p")))


def polyfit(x, y, deg, rcond=None, full=False, w=None, cov=False):
    """The polynomial of a degree that fits points best, by least squares. Costs a round trip, for the rank.

    Parameters: x: where, shape (m,). y: the values, shape (m,) or (m, k). deg: the degree. rcond: the part of the
    largest singular value below which one is taken for 0; unless given, the type's precision times m. full: give what
    lstsq gives. w: weights of y - p(x), shape (m,). cov: give the covariance of the coefficients too; 'unscaled': as if
    the weights were exact.
    Returns: ndarray of coefficients, the highest power first, shape (deg + 1,) or (deg + 1, k); with full a tuple
    (coefficients, residuals, rank, singular values, rcond); with cov a tuple (coefficients, covariance of shape
    (deg + 1, deg + 1) or (deg + 1, deg + 1, k)).
    Raises: TypeError for shapes that do not fit, or complex weights of real points; ValueError for a negative degree, or with cov for too few points.
    Warns numpy.exceptions.RankWarning where the rank is deficient.
    Source: numpy.polyfit
    """
    order = int(deg) + 1
    x, y, w = _points(x, y, w, deg)
    from ..linalg._decompositions import inv, lstsq
    from .._array.grids import vander
    lhs, rhs = vander(x, order), y
    if w is not None:
        if w.dtype.kind == "c" and not lhs.dtype.kind == rhs.dtype.kind == "c":
            raise TypeError(f"w must be real, not {w.dtype}, where x and y are not both complex")
        lhs, rhs = lhs * w[:, None], rhs * (w if rhs.ndim == 1 else w[:, None])
    if rcond is None:
        rcond = x.size * float(np.finfo(x.dtype).eps)
    scale = _core.ufuncs["sqrt"](_base.reduce("sum", lhs * lhs, 0))
    lhs = lhs / scale
    fit, residuals, rank, values = lstsq(lhs, rhs, rcond)
    fit = (fit.T / scale).T
    if full:
        return fit, residuals, rank, values, rcond
    if rank != order:
        import warnings
        warnings.warn("Polyfit may be poorly conditioned", np.exceptions.RankWarning, stacklevel=2)
    if not cov:
        return fit
    spread = inv(lhs.T @ lhs) / (scale[:, None] * scale)
    spread = spread[:, :, None] if y.ndim == 2 else spread
    if isinstance(cov, str) and cov == "unscaled":
        return fit, spread
    if x.size <= order:
        raise ValueError("the number of data points must exceed order to scale the covariance matrix")
    return fit, spread * (residuals / (x.size - order))


def _points(x, y, w, deg):
    """Return what polyfit is given, checked, as arrays of an inexact type."""
    x, y = as_array(x) + 0.0, as_array(y) + 0.0
    if deg < 0:
        raise ValueError("expected deg >= 0")
    if x.ndim != 1:
        raise TypeError("expected 1D vector for x")
    if x.size == 0:
        raise TypeError("expected non-empty vector for x")
    if y.ndim not in (1, 2):
        raise TypeError("expected 1D or 2D array for y")
    if x.shape[0] != y.shape[0]:
        raise TypeError("expected x and y to have same length")
    if w is not None:
        w = as_array(w) + 0.0
        if w.ndim != 1:
            raise TypeError("expected a 1-d array for weights")
        if w.shape[0] != y.shape[0]:
            raise TypeError("expected w and y to have the same length")
    return x, y, w
