"""Discrete Fourier transforms: numpy.fft's functions.

float16, float32, bfloat16 and complex64 are transformed in single precision, everything else in double precision.
norm: "backward" (or None) divides the inverse transform by the number of points, "forward" the other one, "ortho" both
by the square root.
"""
import math
import operator

import numpy as np

from . import config
from .. import _base
from .._base import as_array, call, ndarray, normalize_axis
from ._callbacks import current_callbacks
from ._plans import current_plan

__all__ = ["config", "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft",
           "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn"]

_SINGLE = ("float16", "bfloat16", "float32", "complex64")
_SWAPPED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


# ---- what they have in common ----

def _loop(a):
    return np.dtype(np.complex64 if a.dtype.name in _SINGLE else np.complex128)


def _swap(norm):
    if norm not in _SWAPPED:
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
    return _SWAPPED[norm]


def _factor(sizes, norm, forward):
    """Return what a transform of that many points along each axis is multiplied by."""
    norm = _swap(_swap(norm) if forward else norm)
    if norm == "backward":
        return 1.0
    points = math.prod(sizes)
    return 1 / math.sqrt(points) if norm == "ortho" else 1 / points


def _points(n):
    n = operator.index(n)
    if n < 1:
        raise ValueError(f"Invalid number of FFT data points ({n}) specified.")
    return n


def _fitted(a, axes, sizes):
    """a with that many elements along the axes: cut off at the end, or zeros after them."""
    shape = list(a.shape)
    for axis, size in zip(axes, sizes):
        shape[axis] = size
    if tuple(shape) == a.shape:
        return a
    kept = tuple(slice(min(old, new)) for old, new in zip(a.shape, shape))
    if all(new <= old for old, new in zip(a.shape, shape)):
        return a[kept]
    padded = _base.zeros(tuple(shape), a.dtype)
    padded[kept] = a[kept]
    return padded


def _mask(axes):
    return sum(1 << axis for axis in axes)


def _check_plan(kind, axes, sizes):
    """Refuse a transform that the plan of the with block around it is not for."""
    plan = current_plan()
    if plan is not None:
        plan.check(kind, axes, sizes)


def _call_with(callbacks, name, a, params, axes, dtype, out):
    """_call with functions that elements are read and written by."""
    complex_type = _loop(a)
    read = complex_type if name != "rfft" else np.dtype(complex_type.char.lower())
    axis = axes[0] if len(axes) == 1 else None
    a = callbacks.apply("load", a.astype(read, copy=False), axis)
    result = callbacks.apply("store", call(name, (a,), (*params[:-1], 1.0), dtype=complex_type), axis)
    result = (result * params[-1]).astype(dtype, copy=False)
    if out is None:
        return result
    out[...] = result
    return out


def _call(name, a, params, axes, shape, dtype, out):
    """A row of call.def whose result has that shape; dtype: what the result is to be where that is not the row's."""
    if out is not None:
        if not isinstance(out, ndarray):
            raise TypeError("return arrays must be of arrayd.ndarray")
        if out.shape != tuple(shape):
            raise ValueError("output array has wrong shape.")
        if not np.can_cast(dtype, out.dtype, "same_kind"):
            raise TypeError(f"Cannot cast fft output from {dtype!r} to {out.dtype!r} with casting rule 'same_kind'")
    callbacks = current_callbacks()
    if callbacks is not None:
        return _call_with(callbacks, name, a, params, axes, dtype, out)
    result = call(name, (a,), params, out=out, dtype=_loop(a))
    return result if out is not None or result.dtype == dtype else result.astype(dtype)


def _complex(a, axes, sizes, norm, forward, out):
    """Along several different axes at once."""
    factor = _factor(sizes, norm, forward)
    _check_plan("C2C", axes, sizes)
    a = _fitted(a, axes, sizes)
    return _call("fft", a, (_mask(axes), -1 if forward else 1, factor), axes, a.shape, _loop(a), out)


def _from_real(a, axes, sizes, norm, out):
    """Along several different axes at once, the last of which is halved."""
    factor = _factor(sizes, norm, True)
    if a.dtype.kind == "c":
        raise TypeError(f"rfft takes real input only, not {a.dtype}")
    _check_plan("R2C", axes, sizes)
    a = _fitted(a, axes, sizes)
    shape = list(a.shape)
    shape[axes[-1]] = sizes[-1] // 2 + 1
    return _call("rfft", a, (axes[-1], _mask(axes[:-1]), factor), axes, shape, _loop(a), out)


def _to_real(a, axes, sizes, norm, out):
    """Along several different axes at once, the last of which is a half of what it becomes."""
    factor = _factor(sizes, norm, False)
    _check_plan("C2R", axes, sizes)
    a = _fitted(a, axes, (*sizes[:-1], sizes[-1] // 2 + 1))
    shape = list(a.shape)
    shape[axes[-1]] = sizes[-1]
    real = np.float32 if _loop(a) == np.complex64 else np.float64
    if a.dtype == np.float16 and len(axes) == 1:
        real = np.float16
    return _call("irfft", a, (axes[-1], _mask(axes[:-1]), sizes[-1], factor), axes, shape, np.dtype(real), out)


def _one(a, n, axis, default=None):
    """The arguments of a transform along one axis: the array, its axes and how many points."""
    a = as_array(a)
    axis = normalize_axis(axis, a.ndim)
    n = (default or (lambda size: size))(a.shape[axis]) if n is None else n
    return a, (axis,), (_points(n),)


def _several(a, s, axes, halved=False):
    """The arguments of a transform along several axes: the array, its axes and how many points along each."""
    a = as_array(a)
    if axes is None:
        axes = range(-(a.ndim if s is None else len(s)), 0)
    axes = tuple(normalize_axis(axis, a.ndim) for axis in axes)
    sizes = [a.shape[axis] for axis in axes] if s is None else list(s)
    if len(sizes) != len(axes):
        raise ValueError("Shape and axes have different lengths.")
    if halved and sizes and (s is None or sizes[-1] is None):
        sizes[-1] = (a.shape[axes[-1]] - 1) * 2
    sizes = [a.shape[axis] if size in (-1, None) else size for size, axis in zip(sizes, axes)]
    return a, axes, tuple(_points(size) for size in sizes)


def _repeated(axes):
    return len(set(axes)) != len(axes)


def _complex_several(a, s, axes, norm, forward, out):
    a, axes, sizes = _several(a, s, axes)
    if not axes:
        return a
    if not _repeated(axes):
        return _complex(a, axes, sizes, norm, forward, out)
    for axis, size in reversed(tuple(zip(axes, sizes))[1:]):
        a = _complex(a, (axis,), (size,), norm, forward, None)
    return _complex(a, axes[:1], sizes[:1], norm, forward, out)


# ---- complex transforms ----

def fft(a, n=None, axis=-1, norm=None, out=None):
    """Discrete Fourier transform along one axis.

    Parameters: a: array. n: points, for which the axis is cut or filled with zeros; its length unless given. axis: the
    axis. norm: "backward", "ortho" or "forward". out: complex array of the result's shape.
    Returns: complex ndarray of a's shape, with n along the axis.
    Raises: ValueError for n below 1, an unknown norm or out of another shape; AxisError, IndexError for the axis.
    Source: numpy.fft.fft
    """
    return _complex(*_one(a, n, axis), norm, True, out)


def ifft(a, n=None, axis=-1, norm=None, out=None):
    """Inverse discrete Fourier transform along one axis.

    Parameters: as fft.
    Returns: complex ndarray of a's shape, with n along the axis.
    Raises: as fft.
    Source: numpy.fft.ifft
    """
    return _complex(*_one(a, n, axis), norm, False, out)


def fftn(a, s=None, axes=None, norm=None, out=None):
    """Discrete Fourier transform along several axes.

    Parameters: a: array. s: points along each of the axes (-1: all there are); their lengths unless given. axes: the
    axes, all (or the last len(s)) unless given; one that is named twice is transformed twice. norm, out: as fft.
    Returns: complex ndarray of a's shape, with s along the axes.
    Raises: ValueError for s and axes of different lengths, and as fft.
    Source: numpy.fft.fftn
    """
    return _complex_several(a, s, axes, norm, True, out)


def ifftn(a, s=None, axes=None, norm=None, out=None):
    """Inverse discrete Fourier transform along several axes.

    Parameters: as fftn.
    Returns: complex ndarray of a's shape, with s along the axes.
    Raises: as fftn.
    Source: numpy.fft.ifftn
    """
    return _complex_several(a, s, axes, norm, False, out)


def fft2(a, s=None, axes=(-2, -1), norm=None, out=None):
    """Discrete Fourier transform along two axes.

    Parameters: as fftn.
    Returns: complex ndarray of a's shape, with s along the axes.
    Raises: as fftn.
    Source: numpy.fft.fft2
    """
    return _complex_several(a, s, axes, norm, True, out)


def ifft2(a, s=None, axes=(-2, -1), norm=None, out=None):
    """Inverse discrete Fourier transform along two axes.

    Parameters: as fftn.
    Returns: complex ndarray of a's shape, with s along the axes.
    Raises: as fftn.
    Source: numpy.fft.ifft2
    """
    return _complex_several(a, s, axes, norm, False, out)


# ---- real transforms ----

def rfft(a, n=None, axis=-1, norm=None, out=None):
    """Discrete Fourier transform of real numbers along one axis: the frequencies that are not negative.

    Parameters: a: real array. n, axis, norm, out: as fft.
    Returns: complex ndarray of a's shape, with n//2 + 1 along the axis.
    Raises: TypeError for complex input, and as fft.
    Source: numpy.fft.rfft
    """
    return _from_real(*_one(a, n, axis), norm, out)


def irfft(a, n=None, axis=-1, norm=None, out=None):
    """Inverse of rfft.

    Parameters: a: array of n//2 + 1 frequencies along the axis, which is cut or filled with zeros to that; imaginary
    parts that have to be zero are ignored. n: points of the result, 2 * (length - 1) unless given. axis, norm, out: as
    fft.
    Returns: real ndarray of a's shape, with n along the axis.
    Raises: as fft.
    Source: numpy.fft.irfft
    """
    return _to_real(*_one(a, n, axis, lambda size: 2 * (size - 1)), norm, out)


def rfftn(a, s=None, axes=None, norm=None, out=None):
    """Discrete Fourier transform of real numbers along several axes, the last of which is halved.

    Parameters: a: real array. s, axes, norm, out: as fftn.
    Returns: complex ndarray of a's shape, with s along the axes but s[-1]//2 + 1 along the last.
    Raises: TypeError for complex input; IndexError for no axes; as fftn.
    Source: numpy.fft.rfftn
    """
    a, axes, sizes = _several(a, s, axes)
    if not axes:
        raise IndexError("list index out of range")
    if not _repeated(axes):
        return _from_real(a, axes, sizes, norm, out)
    a = _from_real(a, axes[-1:], sizes[-1:], norm, None)
    return _complex_several(a, sizes[:-1], axes[:-1], norm, True, out)


def irfftn(a, s=None, axes=None, norm=None, out=None):
    """Inverse of rfftn.

    Parameters: a: array of which the last of the axes has s[-1]//2 + 1 frequencies. s: points of the result along each
    of the axes, the last 2 * (length - 1) unless given. axes, norm, out: as fftn.
    Returns: real ndarray of a's shape, with s along the axes.
    Raises: IndexError for no axes; as fftn.
    Source: numpy.fft.irfftn
    """
    a, axes, sizes = _several(a, s, axes, halved=True)
    if not axes:
        raise IndexError("list index out of range")
    if _repeated(axes):
        for axis, size in zip(axes[:-1], sizes[:-1]):
            a = _complex(a, (axis,), (size,), norm, False, None)
        axes, sizes = axes[-1:], sizes[-1:]
    return _to_real(a, axes, sizes, norm, out)


def rfft2(a, s=None, axes=(-2, -1), norm=None, out=None):
    """Discrete Fourier transform of real numbers along two axes, the last of which is halved.

    Parameters: as rfftn.
    Returns: complex ndarray of a's shape, with s[0] and s[1]//2 + 1 along the axes.
    Raises: as rfftn.
    Source: numpy.fft.rfft2
    """
    return rfftn(a, s, axes, norm, out)


def irfft2(a, s=None, axes=(-2, -1), norm=None, out=None):
    """Inverse of rfft2.

    Parameters: as irfftn.
    Returns: real ndarray of a's shape, with s along the axes.
    Raises: as irfftn.
    Source: numpy.fft.irfft2
    """
    return irfftn(a, s, axes, norm, out)


def hfft(a, n=None, axis=-1, norm=None, out=None):
    """Discrete Fourier transform, which is real, of a signal with Hermitian symmetry, of which a is the first half.

    Parameters: a: array of n//2 + 1 values along the axis. n: points of the result, 2 * (length - 1) unless given.
    axis, norm, out: as fft.
    Returns: real ndarray of a's shape, with n along the axis.
    Raises: as fft.
    Source: numpy.fft.hfft
    """
    a, axes, sizes = _one(a, n, axis, lambda size: 2 * (size - 1))
    return _to_real(a.conj() if a.dtype.kind == "c" else a, axes, sizes, _swap(norm), out)


def ihfft(a, n=None, axis=-1, norm=None, out=None):
    """Inverse of hfft.

    Parameters: a: real array. n, axis, norm, out: as fft.
    Returns: complex ndarray of a's shape, with n//2 + 1 along the axis.
    Raises: as rfft.
    Source: numpy.fft.ihfft
    """
    result = _from_real(*_one(a, n, axis), _swap(norm), out)
    return _base.give(result.conj(), out)


# ---- frequencies ----

def _frequency(n, d):
    if not isinstance(n, (int, np.integer)):
        raise ValueError("n should be an integer")
    return 1.0 / (n * d)


def _spaced(numbers, unit, dtype):
    """numbers*unit, in float64 unless another type is asked for."""
    if dtype is not None and np.dtype(dtype).kind != "f":
        raise ValueError(f"dtype must be a real floating type, not {np.dtype(dtype)}")
    return _base.as_array(numbers * unit, dtype)


def fftfreq(n, d=1.0, device=None, *, dtype=None):
    """The frequencies of fft's points: 0, 1, ..., (n-1)//2, -(n//2), ..., -1 over n*d.

    Parameters: n: number of points. d: distance of two samples, in seconds, say, for frequencies in hertz. device: a
    cuda.Device or its number, the current one unless given. dtype: a real floating type, float64 unless given.
    Returns: ndarray of shape (n,).
    Raises: ValueError when n is not an integer or is negative, or for another dtype; ZeroDivisionError for 0.
    Source: numpy.fft.fftfreq
    """
    from .._array.creation import arange
    if device is not None:
        return _base.on_device(device, fftfreq, n, d, dtype=dtype)
    unit = _frequency(n, d)
    if n < 0:
        raise ValueError("negative dimensions are not allowed")
    first = (n - 1) // 2 + 1
    numbers = _base.zeros((n,), np.int64)
    numbers[:first] = arange(0, first)
    numbers[first:] = arange(-(n // 2), 0)
    return _spaced(numbers, unit, dtype)


def rfftfreq(n, d=1.0, device=None, *, dtype=None):
    """The frequencies of rfft's points: 0, 1, ..., n//2 over n*d.

    Parameters: as fftfreq.
    Returns: ndarray of shape (n//2 + 1,).
    Raises: ValueError when n is not an integer, or for another dtype; ZeroDivisionError for 0.
    Source: numpy.fft.rfftfreq
    """
    from .._array.creation import arange
    if device is not None:
        return _base.on_device(device, rfftfreq, n, d, dtype=dtype)
    unit = _frequency(n, d)
    return _spaced(arange(0, n // 2 + 1), unit, dtype)


def _shifted(x, axes, direction):
    from .._array.joining import roll
    x = as_array(x)
    if axes is None:
        axes = tuple(range(x.ndim))
    if isinstance(axes, (int, np.integer)):
        return roll(x, direction * (x.shape[axes] // 2), axes)
    return roll(x, [direction * (x.shape[axis] // 2) for axis in axes], tuple(axes))


def fftshift(x, axes=None):
    """Move frequency zero from the beginning to the middle.

    Parameters: x: array. axes: axis or axes to move along, all unless given.
    Returns: ndarray of x's shape.
    Raises: IndexError, AxisError for an axis.
    Source: numpy.fft.fftshift
    """
    return _shifted(x, axes, 1)


def ifftshift(x, axes=None):
    """Inverse of fftshift.

    Parameters: as fftshift.
    Returns: ndarray of x's shape.
    Raises: as fftshift.
    Source: numpy.fft.ifftshift
    """
    return _shifted(x, axes, -1)
