"""Discrete cosine and sine transforms of types 1 to 4, by Fourier transforms of real numbers.

Here N is the number of points and y[k] the result, along the last axis:
  DCT-1: x[0] + (-1)**k x[N-1] + 2 sum x[n] cos(pi k n / (N-1))     DST-1: 2 sum x[n] sin(pi (k+1)(n+1) / (N+1))
  DCT-2: 2 sum x[n] cos(pi k (2n+1) / 2N)                           DCT-4: 2 sum x[n] cos(pi (2k+1)(2n+1) / 4N)
  DCT-3: x[0] + 2 sum x[n] cos(pi (2k+1) n / 2N), N times the inverse of half a DCT-2.
The sine transforms of types 2 to 4 are those of cosines, with the order of one side reversed and every other sign of
the other one changed.
"""
import math

import numpy as np

from ... import _core
from ... import fft as _fft
from ..._array.creation import arange, empty
from ..._array.joining import concatenate
from ..._array.manipulation import moveaxis
from ..._base import normalize_axis
from ._helper import as_input, axes_and_sizes

_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}
_NORMS = (None, "backward", "ortho", "forward")


def _turned(n, numbers, unit, dtype):
    """exp(1j * unit * numbers) for the complex type that goes with dtype; numbers up to n."""
    angles = arange(0, n, dtype=np.float64) * unit if numbers is None else numbers * unit
    turned = empty(angles.shape, np.complex64 if dtype == np.float32 else np.complex128)
    turned.real, turned.imag = _core.ufuncs["cos"](angles), _core.ufuncs["sin"](angles)
    return turned


def _signs(n, dtype):
    """1, -1, 1, ... of n elements."""
    return (1 - 2 * (arange(0, n, dtype=np.int64) & 1)).astype(dtype)


def _first_cosine(x):
    n = x.shape[-1]
    if n < 2:
        raise RuntimeError("a cosine transform of type 1 takes at least 2 points")
    return _fft.rfft(concatenate([x, x[..., n - 2:0:-1]], axis=-1)).real


def _first_sine(x):
    n = x.shape[-1]
    zero = x[..., :1] * 0
    return -_fft.rfft(concatenate([zero, x, zero, -x[..., ::-1]], axis=-1)).imag[..., 1:n + 1]


def _second_cosine(x):
    n = x.shape[-1]
    ordered = concatenate([x[..., ::2], x[..., 1::2][..., ::-1]], axis=-1)
    half = _fft.rfft(ordered) * _turned(n // 2 + 1, None, -math.pi / (2 * n), x.dtype)
    return concatenate([2 * half.real, -2 * half.imag[..., (n - 1) // 2:0:-1]], axis=-1)


def _third_cosine(x):
    n = x.shape[-1]
    half = n // 2 + 1
    zero = x[..., :1] * 0
    mirrored = concatenate([zero, x[..., :n - half:-1] if half > 1 else x[..., :0]], axis=-1)
    spectrum = (x[..., :half] - 1j * mirrored) * _turned(half, None, math.pi / (2 * n), x.dtype)
    ordered = _fft.irfft(spectrum.astype(np.complex64 if x.dtype == np.float32 else np.complex128), n, norm="forward")
    out = ordered * 0
    out[..., ::2] = ordered[..., :(n + 1) // 2]
    out[..., 1::2] = ordered[..., :(n + 1) // 2 - 1:-1] if n > 1 else ordered[..., :0]
    return out


def _fourth_cosine(x):
    n = x.shape[-1]
    points = arange(0, n, dtype=np.float64)
    spectrum = _fft.fft(x * _turned(n, points, -math.pi / (2 * n), x.dtype), 2 * n)[..., :n]
    return 2 * (spectrum * _turned(n, 2 * points + 1, -math.pi / (4 * n), x.dtype)).real


_COSINE = {1: _first_cosine, 2: _second_cosine, 3: _third_cosine, 4: _fourth_cosine}
# Where the ends of the input, and those of the result, are scaled to make the matrix orthogonal.
_ENDS = {("cos", 1): ((0, -1), (0, -1)), ("cos", 2): ((), (0,)), ("cos", 3): ((0,), ()),
         ("sin", 2): ((), (-1,)), ("sin", 3): ((-1,), ())}


def _scale_ends(x, ends, factor):
    if ends:
        x = x.copy()
        for end in ends:
            x[..., end] *= x.dtype.type(factor)
    return x


def _transform(kind, x, number):
    """Of real x along the last axis."""
    if kind == "cos":
        return _COSINE[number](x)
    if number == 1:
        return _first_sine(x)
    signs = _signs(x.shape[-1], x.dtype)
    if number == 2:
        return _second_cosine(x * signs)[..., ::-1]
    return _COSINE[number](x[..., ::-1]) * signs


def _points(kind, number, n):
    """By how much a transform and its inverse together multiply."""
    return 2 * (n + {("cos", 1): -1, ("sin", 1): 1}.get((kind, number), 0))


def _along(kind, x, number, n, axis, norm, forward, orthogonal):
    """The transform of that number along an axis, which `forward` says the direction of."""
    if x.dtype.kind == "c":
        parts = (_along(kind, part, number, n, axis, norm, forward, orthogonal) for part in (x.real, x.imag))
        return _joined(*parts)
    x = moveaxis(_fft._fitted(x, (axis,), (n,)), axis, -1)
    orthogonal = norm == "ortho" if orthogonal is None else orthogonal
    before, after = _ENDS.get((kind, number), ((), ())) if orthogonal else ((), ())
    y = _transform(kind, _scale_ends(x, before, math.sqrt(2)), number)
    y = _scale_ends(y, after, math.sqrt(0.5))
    points = _points(kind, number, n)
    divided = norm == "forward" if forward else norm in (None, "backward")
    factor = 1 / math.sqrt(points) if norm == "ortho" else 1 / points if divided else 1.0
    return moveaxis((y if factor == 1 else y * factor).astype(x.dtype), -1, axis)


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
