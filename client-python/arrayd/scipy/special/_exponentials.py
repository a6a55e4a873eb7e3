"""Sums of exponentials: logsumexp, softmax, log_softmax."""
import numpy as np

from ... import _core
from ..._array.indexing import where
from ..._base import FLOATING, as_array, normalize_axes
from ..._math import reductions

_u = _core.ufuncs


def _as_inexact(a):
    a = as_array(a)
    return a if a.dtype.kind in FLOATING or a.dtype.kind == "c" else a.astype(np.float64)


def _finite_maximum(a, axis):
    """The largest real part along axis, 0 where that is not finite; dimensions stay."""
    largest = reductions.max(a.real if a.dtype.kind == "c" else a, axis=axis, keepdims=True)
    return where(_u["isfinite"](largest), largest, largest.dtype.type(0))


def logsumexp(a, axis=None, b=None, keepdims=False, return_sign=False):
    """log(sum(b * exp(a))), computed so that neither the exponentials nor the sum overflow.

    Parameters: a: array. axis: an axis or several, None for all. b: factors, broadcast against a; 0 leaves an element
        out. keepdims: whether reduced axes stay with length 1. return_sign: whether the sign of the sum (for complex
        numbers its phase) is returned, too, and the logarithm is that of its absolute value.
    Returns: array, or the tuple (array, sign).
    Raises: ValueError: b does not fit a.
    Source: scipy.special.logsumexp
    """
    a = _as_inexact(a)
    axes = normalize_axes(axis, a.ndim)
    if b is not None:
        b = as_array(b)
        a = where(b == 0, -np.inf, a) if a.dtype.kind != "c" else where(b == 0, a.dtype.type(-np.inf), a)
        axes = normalize_axes(axis, a.ndim)
    empty = any(a.shape[i] == 0 for i in (range(a.ndim) if axes is None else axes))
    largest = a.real.dtype.type(0) if empty else _finite_maximum(a, axes)
    terms = _u["exp"](_u["subtract"](a, largest))
    total = reductions.sum(terms if b is None else _u["multiply"](b, terms), axis=axes, keepdims=True)
    sign = _u["sign"](total) if return_sign else None
    out = _u["add"](_u["log"](_u["absolute"](total) if return_sign else total), largest)
    if not keepdims:
        out = out.squeeze(axes)
        sign = sign.squeeze(axes) if return_sign else None
    return (out, sign) if return_sign else out


def softmax(x, axis=None):
    """exp(x) / sum(exp(x)), computed so that the exponentials do not overflow.

    Parameters: x: array. axis: an axis or several along which the result has the sum 1, None for all.
    Returns: array.
    Raises: ValueError: x is empty.
    Source: scipy.special.softmax
    """
    x = as_array(x)
    axes = normalize_axes(axis, x.ndim)
    terms = _u["exp"](x - reductions.max(x, axis=axes, keepdims=True))
    return terms / reductions.sum(terms, axis=axes, keepdims=True)


def log_softmax(x, axis=None):
    """log(softmax(x)), also where softmax underflows.

    Parameters: x: array. axis: an axis or several along which softmax has the sum 1, None for all.
    Returns: array.
    Raises: ValueError: x is empty.
    Source: scipy.special.log_softmax
    """
    x = as_array(x)
    axes = normalize_axes(axis, x.ndim)
    largest = reductions.max(x, axis=axes, keepdims=True)  # complex: with its imaginary part, which settles the branch
    below = x - where(_u["isfinite"](largest), largest, largest.dtype.type(0))
    return below - _u["log"](reductions.sum(_u["exp"](below), axis=axes, keepdims=True))
