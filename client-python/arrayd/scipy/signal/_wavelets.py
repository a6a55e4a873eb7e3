"""Wavelets that SciPy has no more and CuPy has."""
import math

import numpy as np

from ..._base import as_array, as_host


def ricker(points, a):
    """The second derivative of a Gaussian, turned upside down.

    Parameters: points: number of elements. a: width.
    Returns: ndarray.
    Raises: nothing.
    Source: cupyx.scipy.signal.ricker
    """
    x = np.arange(int(points)) - (points - 1.0) / 2
    square = (x / a)**2
    return as_array(2 / (math.sqrt(3 * a) * math.pi**0.25) * (1 - square) * np.exp(-square / 2))


def morlet(M, w=5.0, s=1.0, complete=True):
    """A complex wave in a Gaussian window.

    Parameters: M: number of elements. w: frequency. s: how far it reaches. complete: its mean is 0.
    Returns: complex ndarray.
    Raises: nothing.
    Source: cupyx.scipy.signal.morlet
    """
    x = np.linspace(-s * 2 * math.pi, s * 2 * math.pi, M)
    wave = np.exp(1j * w * x)
    if complete:
        wave -= np.exp(-0.5 * w**2)
    return as_array(wave * np.exp(-0.5 * x**2) * math.pi**-0.25)


def morlet2(M, s, w=5):
    """A complex wave in a Gaussian window, for cwt.

    Parameters: M: number of elements. s: width. w: frequency.
    Returns: complex ndarray.
    Raises: nothing.
    Source: cupyx.scipy.signal.morlet2
    """
    x = (np.arange(M) - (M - 1.0) / 2) / s
    return as_array(np.exp(1j * w * x) * np.exp(-0.5 * x**2) * math.pi**-0.25 * math.sqrt(1 / s))


def qmf(hk):
    """The high-pass filter of a low-pass one.

    Parameters: hk: its factors.
    Returns: ndarray.
    Raises: nothing.
    Source: cupyx.scipy.signal.qmf
    """
    hk = as_host(hk, "hk")
    return as_array(hk[::-1] * np.where(np.arange(len(hk)) % 2, -1, 1))


def cwt(data, wavelet, widths):
    """Convolutions with a wavelet of several widths.

    Parameters: data: 1-d array. wavelet: called with a number of elements and a width. widths: those.
    Returns: ndarray of shape (len(widths), len(data)).
    Raises: what wavelet raises.
    Source: cupyx.scipy.signal.cwt
    """
    from ..._array.joining import stack
    from ._convolution import convolve
    data = as_array(data)
    rows = []
    for width in as_host(widths, "widths").tolist():
        wave = as_array(wavelet(int(min(10 * width, len(data))), width))
        rows.append(convolve(data, wave.conj()[::-1], mode="same"))
    return stack(rows)
