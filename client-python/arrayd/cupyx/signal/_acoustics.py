"""Cepstra: the inverse Fourier transform of the logarithm of a spectrum."""
import math

import numpy as np

import arrayd as ad


def real_cepstrum(x, n=None, axis=-1):
    """The inverse Fourier transform of the logarithm of the magnitude of the spectrum.

    Parameters: x: array. n: length of the transform; that of x along the axis unless given. axis: the axis.
    Returns: ndarray.
    Raises: ValueError for a length below 1.
    Source: cupyx.signal.real_cepstrum
    """
    spectrum = ad.fft.fft(ad.asarray(x), n=n, axis=axis)
    return ad.fft.ifft(ad.log(abs(spectrum)), n=n, axis=axis).real


def complex_cepstrum(x, n=None, axis=-1):
    """The inverse Fourier transform of the logarithm of the spectrum, and by how many samples its signal was delayed.

    Parameters: x: real array, 1-d where the delay matters. n: length of the transform; that of x along the axis unless given. axis:
    the axis.
    Returns: tuple of ndarrays: the cepstrum, and the delay in samples.
    Raises: ValueError for a length below 1.
    Source: cupyx.signal.complex_cepstrum
    """
    spectrum = ad.fft.fft(ad.asarray(x), n=n, axis=axis)
    phase = ad.unwrap(ad.angle(spectrum))
    size = spectrum.size
    center = (size + 1) // 2
    delay = ad.around(phase.reshape(-1)[center] / math.pi)
    place = ad.arange(size, dtype=np.float64).reshape(spectrum.shape)
    phase = phase - math.pi * delay * place / center
    return ad.fft.ifft(ad.log(abs(spectrum)) + 1j * phase, n=n, axis=axis).real, ad.broadcast_to(delay, spectrum.shape)


def inverse_complex_cepstrum(ceps, ndelay):
    """The signal of a complex cepstrum.

    Parameters: ceps: 1-d real array. ndelay: number, or array: the delay in samples.
    Returns: ndarray.
    Raises: nothing of its own.
    Source: cupyx.signal.inverse_complex_cepstrum
    """
    logs = ad.fft.fft(ad.asarray(ceps))
    center = 0.5 * (logs.size + 1)
    phase = logs.imag + math.pi * ad.asarray(ndelay) * ad.arange(logs.size, dtype=np.float64) / center
    return ad.fft.ifft(ad.exp(logs.real + 1j * phase)).real


def minimum_phase(x, n=None):
    """The signal of minimum phase whose spectrum has x's magnitudes.

    Parameters: x: 1-d real array. n: length of the transform; that of x unless given.
    Returns: ndarray.
    Raises: ValueError for a length below 1.
    Source: cupyx.signal.minimum_phase
    """
    cepstrum = real_cepstrum(x, n=len(x) if n is None else n)
    size = cepstrum.size
    odd = size % 2
    middle = (size + odd) // 2
    window = np.zeros(size)
    window[0], window[1:middle], window[middle:middle + 1] = 1, 2, 1 - odd
    return ad.fft.ifft(ad.exp(ad.fft.fft(cepstrum * ad.asarray(window)))).real
