"""Power series, the lowest power first: what CuPy has of numpy.polynomial.polynomial."""
import operator

from .. import _base
from .._array.manipulation import atleast_1d, broadcast_to, moveaxis
from .._base import as_array, call, ndarray
from .polyutils import as_series

__all__ = ["polycompanion", "polyval", "polyvalfromroots", "polyvander"]


def polyvander(x, deg):
    """The powers 0 to deg of numbers: the pseudo-Vandermonde matrix.

    Parameters: x: array of shape S, at least 1-d. deg: the highest power.
    Returns: ndarray of shape S + (deg + 1,), of floats or complex numbers.
    Raises: ValueError for a negative deg; TypeError for one that is no int.
    Source: numpy.polynomial.polynomial.polyvander
    """
    try:
        deg = operator.index(deg)
    except TypeError:
        raise TypeError(f"deg must be an integer, received {deg}") from None
    if deg < 0:
        raise ValueError("deg must be non-negative")
    x = atleast_1d(x) + 0.0
    powers = _base.empty((deg + 1,) + x.shape, x.dtype)
    powers[0] = x * 0 + 1
    if deg:
        call("cumprod", (broadcast_to(x, (deg,) + x.shape),), (0,), out=powers[1:])
    return moveaxis(powers, 0, -1)


def polycompanion(c):
    """The companion matrix of a series, whose eigenvalues are the roots; costs a round trip.

    Parameters: c: coefficients, 1-d; zeros at the end are left out.
    Returns: ndarray of shape (degree, degree).
    Raises: ValueError for a series of degree 0, or as as_series.
    Source: numpy.polynomial.polynomial.polycompanion
    """
    [c] = as_series([c])
    n = c.size - 1
    if n < 1:
        raise ValueError("Series must have maximum degree of at least 1.")
    matrix = _base.zeros((n, n), c.dtype)
    matrix.reshape(-1)[n::n + 1] = 1
    matrix[:, -1] -= c[:-1] / c[-1]
    return matrix


def _shaped(x, coefficients, tensor):
    """x as an array unless it is a number, and coefficients with a dimension for each of x's where all are to meet."""
    x = x if _base.is_scalar(x) else as_array(x)
    if isinstance(x, ndarray) and tensor:
        coefficients = coefficients.reshape(coefficients.shape + (1,) * x.ndim)
    return x, coefficients


def polyval(x, c, tensor=True):
    """The values of series at points.

    Parameters: x: points, array or number. c: coefficients along the first axis, an array of shape (n,) + S. tensor:
    every series is evaluated at every point, else x broadcasts with S.
    Returns: ndarray of shape S + x.shape, or that to which x and S broadcast.
    Raises: IndexError for no coefficients; ValueError for shapes that do not broadcast.
    Source: numpy.polynomial.polynomial.polyval
    """
    c = atleast_1d(c)
    x, c = _shaped(x, c if c.dtype.kind in _base.INEXACT else c + 0.0, tensor)
    value = c[-1] + x * 0
    for i in range(2, c.shape[0] + 1):
        value = c[-i] + value * x
    return value


def polyvalfromroots(x, r, tensor=True):
    """The values of polynomials, of which the roots are given, at points: products of x - r.

    Parameters: x: points, array or number. r: roots along the first axis, an array of shape (n,) + S. tensor: every
    polynomial is evaluated at every point, else x broadcasts with S.
    Returns: ndarray of shape S + x.shape, or that to which x and S broadcast.
    Raises: ValueError for shapes that do not broadcast, or for an x of as many dimensions as r where tensor is False.
    Source: numpy.polynomial.polynomial.polyvalfromroots
    """
    r = atleast_1d(r)
    r = r if r.dtype.kind in _base.INEXACT else r.astype(float)
    x, r = _shaped(x, r, tensor)
    if isinstance(x, ndarray) and not tensor and x.ndim >= r.ndim:
        raise ValueError("x.ndim must be < r.ndim when tensor == False")
    return _base.reduce("prod", x - r, 0)
