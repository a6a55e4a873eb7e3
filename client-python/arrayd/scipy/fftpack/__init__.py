"""The Fourier transforms of scipy.fftpack on arrays of the server; new programs use arrayd.scipy.fft."""
import numpy as np

from ... import fft as _numpy_fft
from ..._base import normalize_axis, zeros
from .. import fft as _fft
from ..fft._helper import as_input
from ..fft._plans import get_fft_plan

__all__ = ["fft", "fft2", "fftn", "get_fft_plan", "ifft", "ifft2", "ifftn", "irfft", "rfft"]


def fft(x, n=None, axis=-1, overwrite_x=False, plan=None):
    """Discrete Fourier transform along one axis.

    Parameters: x: array. n: points, for which the axis is cut or filled with zeros. axis: the axis. overwrite_x:
        changes nothing. plan: of get_fft_plan, which is checked.
    Returns: array, complex.
    Raises: ValueError: n is below 1, or plan is for another transform.
    Source: scipy.fftpack.fft
    """
    return _fft.fft(x, n, axis, plan=plan)


def ifft(x, n=None, axis=-1, overwrite_x=False, plan=None):
    """Inverse of fft.

    Parameters: as fft.
    Returns: array, complex.
    Raises: as fft.
    Source: scipy.fftpack.ifft
    """
    return _fft.ifft(x, n, axis, plan=plan)


def fftn(x, shape=None, axes=None, overwrite_x=False, plan=None):
    """Discrete Fourier transform along several axes.

    Parameters: x: array. shape: points along each of the axes. axes: the axes, all or the last len(shape) unless given.
        overwrite_x: changes nothing. plan: of get_fft_plan, which is checked.
    Returns: array, complex.
    Raises: ValueError: shape and axes do not fit, or plan is for another transform.
    Source: scipy.fftpack.fftn
    """
    return _fft.fftn(x, shape, axes, plan=plan)


def ifftn(x, shape=None, axes=None, overwrite_x=False, plan=None):
    """Inverse of fftn.

    Parameters: as fftn.
    Returns: array, complex.
    Raises: as fftn.
    Source: scipy.fftpack.ifftn
    """
    return _fft.ifftn(x, shape, axes, plan=plan)


def fft2(x, shape=None, axes=(-2, -1), overwrite_x=False, plan=None):
    """Discrete Fourier transform along two axes.

    Parameters: as fftn.
    Returns: array, complex.
    Raises: as fftn.
    Source: scipy.fftpack.fft2
    """
    return _fft.fftn(x, shape, axes, plan=plan)


def ifft2(x, shape=None, axes=(-2, -1), overwrite_x=False, plan=None):
    """Inverse of fft2.

    Parameters: as fftn.
    Returns: array, complex.
    Raises: as fftn.
    Source: scipy.fftpack.ifft2
    """
    return _fft.ifftn(x, shape, axes, plan=plan)


def _at(ndim, axis, index):
    return (slice(None),) * axis + (index,) + (slice(None),) * (ndim - axis - 1)


def rfft(x, n=None, axis=-1, overwrite_x=False, plan=None):
    """Discrete Fourier transform of real numbers, as real numbers: that of frequency 0, then real and imaginary parts.

    Parameters: as fft; x is real.
    Returns: array, real.
    Raises: TypeError: x is complex. As fft.
    Source: scipy.fftpack.rfft
    """
    x = as_input(x)
    if x.dtype.kind == "c":
        raise TypeError("1st argument must be real sequence")
    axis = normalize_axis(axis, x.ndim)
    n = x.shape[axis] if n is None else n
    spectrum = _fft.rfft(x, n, axis, plan=plan)
    out = zeros((*x.shape[:axis], n, *x.shape[axis + 1:]), x.dtype)
    out[_at(x.ndim, axis, slice(0, 1))] = spectrum.real[_at(x.ndim, axis, slice(0, 1))]
    out[_at(x.ndim, axis, slice(1, None, 2))] = spectrum.real[_at(x.ndim, axis, slice(1, None))]
    out[_at(x.ndim, axis, slice(2, None, 2))] = spectrum.imag[_at(x.ndim, axis, slice(1, (n + 1) // 2))]
    return out


def irfft(x, n=None, axis=-1, overwrite_x=False):
    """Inverse of rfft.

    Parameters: as rfft.
    Returns: array, real.
    Raises: as rfft.
    Source: scipy.fftpack.irfft
    """
    x = as_input(x)
    if x.dtype.kind == "c":
        raise TypeError("1st argument must be real sequence")
    axis = normalize_axis(axis, x.ndim)
    n = x.shape[axis] if n is None else n
    if n < 1:
        raise ValueError(f"Invalid number of FFT data points ({n}) specified.")
    x = _numpy_fft._fitted(x, (axis,), (n,))
    kind = np.complex64 if x.dtype == np.float32 else np.complex128
    spectrum = zeros((*x.shape[:axis], n // 2 + 1, *x.shape[axis + 1:]), kind)
    spectrum.real[_at(x.ndim, axis, slice(0, 1))] = x[_at(x.ndim, axis, slice(0, 1))]
    spectrum.real[_at(x.ndim, axis, slice(1, None))] = x[_at(x.ndim, axis, slice(1, None, 2))]
    spectrum.imag[_at(x.ndim, axis, slice(1, (n + 1) // 2))] = x[_at(x.ndim, axis, slice(2, None, 2))]
    return _fft.irfft(spectrum, n, axis)
