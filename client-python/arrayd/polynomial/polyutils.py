"""Helpers of functions of series of coefficients: numpy.polynomial.polyutils' functions."""
from .. import _base, _core
from .._array.manipulation import atleast_1d
from .._base import as_array, ndarray
from .._math.logic import common_type
from .._math.poly1d import count_leading_zeros

__all__ = ["as_series", "trimcoef", "trimseq"]


def trimseq(seq):
    """A series without the zeros at its end; costs a round trip.

    Parameters: seq: coefficients, 1-d.
    Returns: ndarray, a view; of zeros alone it has one.
    Raises: TypeError for a 0-d array; ValueError for more dimensions.
    Source: numpy.polynomial.polyutils.trimseq
    """
    a = as_array(seq)
    if a.ndim != 1:
        raise (ValueError if a.ndim else TypeError)(f"seq must be 1-d, not {a.ndim}-d")
    return a[:a.size - count_leading_zeros(a[::-1])[0]]


def as_series(alist, trim=True):
    """Series of coefficients as 1-d arrays of one type; costs a round trip for those that are trimmed.

    Parameters: alist: sequence of arrays or numbers, or a 2-d array of which each row is one. trim: leave out zeros at
    their ends.
    Returns: list of ndarrays, copies, of floats or complex numbers.
    Raises: ValueError for an empty series, one of more dimensions, or of bools.
    Source: numpy.polynomial.polyutils.as_series
    """
    series = [atleast_1d(a) for a in alist]
    if any(a.size == 0 for a in series):
        raise ValueError("Coefficient array is empty")
    if any(a.ndim != 1 for a in series):
        raise ValueError("Coefficient array is not 1-d")
    if trim:
        counts = count_leading_zeros(*(a[::-1] for a in series))
        series = [a[:a.size - count] for a, count in zip(series, counts)]
    try:
        kind = common_type(*series)
    except TypeError:
        raise ValueError("Coefficient arrays have no common type") from None
    return [a.astype(kind) for a in series]


def trimcoef(c, tol=0):
    """A series without the small coefficients at its end; costs a round trip.

    Parameters: c: coefficients, 1-d. tol: how large one may be to be left out.
    Returns: ndarray, a copy, of floats or complex numbers; of small ones alone it is one 0.
    Raises: ValueError for a negative tol, or as as_series.
    Source: numpy.polynomial.polyutils.trimcoef
    """
    if not isinstance(tol, ndarray) and tol < 0:
        raise ValueError("tol must be non-negative")
    [c] = as_series([c], trim=False)
    large = _core.ufuncs["absolute"](c) > tol
    last = c.size - count_leading_zeros(large[::-1])[0]
    return c[:last].copy() if last > 1 else _core.ufuncs["where"](large[:1], c[:1], _base.zeros((1,), c.dtype))
