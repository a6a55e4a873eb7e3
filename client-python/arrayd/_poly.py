"""Polynomials as arrays of coefficients, the highest power first."""
import builtins

from . import _base
from ._base import as_array
from ._math import convolve


def polyval(p, x):
    """A polynomial's values.

    Parameters: p: coefficients, the highest power first, shape (n,). x: where to evaluate it.
    Returns: ndarray of x's shape.
    Raises: nothing of its own.
    Source: numpy.polyval
    """
    p, x = as_array(p), as_array(x)
    value = _base.empty(x.shape, x.dtype)
    for i in builtins.range(p.shape[0]):
        value = value * x + p[i]
    return value


def _padded(a1, a2):
    """Two arrays of coefficients with zeros put before the shorter one."""
    a1, a2 = (a.reshape(1) if a.ndim == 0 else a for a in (as_array(a1), as_array(a2)))
    size = builtins.max(a1.size, a2.size)
    padded = []
    for a in (a1, a2):
        whole = _base.empty((size,), a.dtype)
        whole[size - a.size:] = a
        padded.append(whole)
    return padded


def polyadd(a1, a2):
    """The sum of two polynomials.

    Parameters: a1, a2: coefficients, 1-d.
    Returns: 1-d ndarray of coefficients, as long as the longer one.
    Raises: ValueError for more dimensions.
    Source: numpy.polyadd
    """
    a1, a2 = _padded(a1, a2)
    return a1 + a2


def polysub(a1, a2):
    """The difference of two polynomials.

    Parameters: a1, a2: coefficients, 1-d.
    Returns: 1-d ndarray of coefficients, as long as the longer one.
    Raises: ValueError for more dimensions.
    Source: numpy.polysub
    """
    a1, a2 = _padded(a1, a2)
    return a1 - a2


def polymul(a1, a2):
    """The product of two polynomials.

    Parameters: a1, a2: coefficients, 1-d.
    Returns: 1-d ndarray of coefficients.
    Raises: ValueError for more dimensions or no coefficients.
    Source: numpy.polymul
    """
    return convolve(a1, a2)
