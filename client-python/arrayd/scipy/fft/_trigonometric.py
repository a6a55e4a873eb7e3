"""Discrete cosine and sine transforms of types 1 to 4: a call of the server for each axis."""
import math

import numpy as np

from ... import fft as _fft
from ..._base import call, normalize_axis
from ._helper import as_input, axes_and_sizes

_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}
_NORMS = (None, "backward", "ortho", "forward")


def _points(kind, number, n):
    """By how much a transform and its inverse together multiply."""
    return 2 * (n + {("cos", 1): -1, ("sin", 1): 1}.get((kind, number), 0))


def _along(kind, x, number, n, axis, norm, forward, orthogonal):
    """The transform of that number along an axis, which `forward` says the direction of."""
    if x.dtype.kind == "c":
        parts = (_along(kind, part, number, n, axis, norm, forward, orthogonal) for part in (x.real, x.imag))
        return _joined(*parts)
    if n < 2 and (kind, number) == ("cos", 1):
        raise RuntimeError("a cosine transform of type 1 takes at least 2 points")
    x = _fft._fitted(x, (axis,), (n,))
    orthogonal = norm == "ortho" if orthogonal is None else bool(orthogonal)
    points = _points(kind, number, n)
    divided = norm == "forward" if forward else norm in (None, "backward")
    factor = 1 / math.sqrt(points) if norm == "ortho" else 1 / points if divided else 1.0
    return call("dct", (x,), (axis, number, kind == "sin", orthogonal, factor), dtype=x.dtype)


def _joined(real, imag):
    return real + (np.complex64(1j) if real.dtype == np.float32 else 1j) * imag


def _run(kind, x, number, axes, sizes, norm, forward, orthogonal):
    if number not in _INVERSE:
        raise ValueError(f"invalid type {number}; it is 1, 2, 3 or 4")
    if norm not in _NORMS:
        raise ValueError(f'Invalid norm value {norm!r}, should be "backward", "ortho" or "forward"')
    number = number if forward else _INVERSE[number]
    for axis, size in zip(axes, sizes):
        x = _along(kind, x, number, size, axis, norm, forward, orthogonal)
    return x


def _one(kind, x, number, n, axis, norm, forward, orthogonal):
    x = as_input(x)
    axis = normalize_axis(axis, x.ndim)
    n = x.shape[axis] if n is None else n
    if n < 1:
        raise ValueError(f"invalid number of data points ({n}) specified")
    return _run(kind, x, number, [axis], [n], norm, forward, orthogonal)


def _several(kind, x, number, s, axes, norm, forward, orthogonal):
    x = as_input(x)
    return _run(kind, x, number, *axes_and_sizes(x, s, axes), norm, forward, orthogonal)


def dct(x, type=2, n=None, axis=-1, norm=None, overwrite_x=False, workers=None, orthogonalize=None):
    """Discrete cosine transform along one axis.

    Parameters: x: array. type: 1, 2, 3 or 4. n: points, for which the axis is cut or filled with zeros. axis: the axis.
        norm: "backward", "ortho" or "forward". overwrite_x, workers: change nothing. orthogonalize: whether the ends
        are scaled so that the matrix is orthogonal but for a factor; unless given, where norm is "ortho".
    Returns: array.
    Raises: ValueError: there is no such type or norm, or n is below 1. RuntimeError: n and type are 1.
    Source: scipy.fft.dct
    """
    return _one("cos", x, type, n, axis, norm, True, orthogonalize)


def idct(x, type=2, n=None, axis=-1, norm=None, overwrite_x=False, workers=None, orthogonalize=None):
    """Inverse of dct.

    Parameters: as dct.
    Returns: array.
    Raises: as dct.
    Source: scipy.fft.idct
    """
    return _one("cos", x, type, n, axis, norm, False, orthogonalize)


def dst(x, type=2, n=None, axis=-1, norm=None, overwrite_x=False, workers=None, orthogonalize=None):
    """Discrete sine transform along one axis.

    Parameters: as dct.
    Returns: array.
    Raises: as dct.
    Source: scipy.fft.dst
    """
    return _one("sin", x, type, n, axis, norm, True, orthogonalize)


def idst(x, type=2, n=None, axis=-1, norm=None, overwrite_x=False, workers=None, orthogonalize=None):
    """Inverse of dst.

    Parameters: as dct.
    Returns: array.
    Raises: as dct.
    Source: scipy.fft.idst
    """
    return _one("sin", x, type, n, axis, norm, False, orthogonalize)


def dctn(x, type=2, s=None, axes=None, norm=None, overwrite_x=False, workers=None, *, orthogonalize=None):
    """Discrete cosine transform along several axes.

    Parameters: s: points along each of the axes. axes: the axes, all or the last len(s) unless given. The others as
        dct.
    Returns: array.
    Raises: ValueError: s and axes do not fit. As dct.
    Source: scipy.fft.dctn
    """
    return _several("cos", x, type, s, axes, norm, True, orthogonalize)


def idctn(x, type=2, s=None, axes=None, norm=None, overwrite_x=False, workers=None, orthogonalize=None):
    """Inverse of dctn.

    Parameters: as dctn.
    Returns: array.
    Raises: as dctn.
    Source: scipy.fft.idctn
    """
    return _several("cos", x, type, s, axes, norm, False, orthogonalize)


def dstn(x, type=2, s=None, axes=None, norm=None, overwrite_x=False, workers=None, orthogonalize=None):
    """Discrete sine transform along several axes.

    Parameters: as dctn.
    Returns: array.
    Raises: as dctn.
    Source: scipy.fft.dstn
    """
    return _several("sin", x, type, s, axes, norm, True, orthogonalize)


def idstn(x, type=2, s=None, axes=None, norm=None, overwrite_x=False, workers=None, orthogonalize=None):
    """Inverse of dstn.

    Parameters: as dctn.
    Returns: array.
    Raises: as dctn.
    Source: scipy.fft.idstn
    """
    return _several("sin", x, type, s, axes, norm, False, orthogonalize)
