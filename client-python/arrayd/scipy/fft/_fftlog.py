"""Hankel transforms of points that are evenly spaced in their logarithm."""
import math
import warnings

import numpy as np

from ... import _core
from ... import fft as _fft
from ..._array.creation import arange
from ..._array.indexing import where
from ._helper import as_input

_u = _core.ufuncs
_LN_2 = math.log(2)


def _gammas(minus, plus, n, dln):
    """Logarithms of the gamma functions at minus and plus, moved along the imaginary axis to each frequency."""
    y = arange(0, n // 2 + 1, dtype=np.float64) * (math.pi / (n * dln))
    return _u["loggamma"](plus + 1j * y), _u["loggamma"](minus + 1j * y), y


def _coefficients(n, dln, mu, offset, bias, inverse):
    plus, minus = (mu + 1 + bias) / 2, (mu + 1 - bias) / 2
    u, v, y = _gammas(minus, plus, n, dln)
    exponent = (u.real - v.real + _LN_2 * bias) + 1j * (u.imag + v.imag + 2 * (_LN_2 - offset) * y)
    values = _u["exp"](exponent)
    first = 2.0**bias * _u["poch"](minus, plus - minus)
    values[:1] = where(_u["isfinite"](values[:1]), values[:1], first + 0j)
    if n % 2 == 0:
        values[-1] = values[-1].real
    at_zero = complex(values[0])
    if not inverse and math.isinf(abs(at_zero)):
        warnings.warn("singular transform; consider changing the bias", stacklevel=3)
        values[0] = 0
    if inverse and at_zero == 0:
        warnings.warn("singular inverse transform; consider changing the bias", stacklevel=3)
        values[0] = math.inf
    return values


def _weights(n, dln, bias, offset=0.0):
    return _u["exp"](-bias * ((arange(0, n, dtype=np.float64) - (n - 1) / 2) * dln + offset))


def _filtered(a, factors):
    """a with its frequencies multiplied by the factors, backwards, in its own precision."""
    spectrum = _fft.rfft(a)
    return _fft.irfft((spectrum * factors).astype(spectrum.dtype), a.shape[-1])[..., ::-1]


def fht(a, dln, mu, offset=0.0, bias=0.0):
    """Fast Hankel transform along the last axis.

    Parameters: a: array, real. dln: distance of two points in the logarithm. mu: order of the Bessel function.
        offset: of the logarithm of the result's points. bias: exponent of the power law that is taken out before.
    Returns: array, real.
    Raises: TypeError: a is complex.
    Source: scipy.fft.fht
    """
    a = as_input(a)
    n = a.shape[-1]
    if bias != 0:
        a = a * _weights(n, dln, bias)
    u = _coefficients(n, dln, mu, offset, bias, False)
    out = _filtered(a, u)
    return out if bias == 0 else out * _weights(n, dln, bias, offset)


def ifht(A, dln, mu, offset=0.0, bias=0.0):
    """Inverse of fht.

    Parameters: A: array, real. dln, mu, offset, bias: as fht.
    Returns: array, real.
    Raises: TypeError: A is complex.
    Source: scipy.fft.ifht
    """
    a = as_input(A)
    n = a.shape[-1]
    if bias != 0:
        a = a / _weights(n, dln, bias, offset)
    u = _coefficients(n, dln, mu, offset, bias, True)
    out = _filtered(a, 1 / u.conj())
    return out if bias == 0 else out / _weights(n, dln, bias)


def fhtoffset(dln, mu, initial=0.0, bias=0.0):
    """The offset nearest to initial for which fht has no ringing at its ends.

    Parameters: dln, mu, bias: as fht. initial: an offset.
    Returns: float.
    Raises: ValueError: dln is 0.
    Source: scipy.fft.fhtoffset
    """
    if dln == 0:
        raise ValueError("dln must not be 0")
    plus, minus = (mu + 1 + bias) / 2, (mu + 1 - bias) / 2
    y = math.pi / (2 * dln)
    phases = [float(_u["loggamma"](np.complex128(complex(part, y))).imag) for part in (plus, minus)]
    arg = (_LN_2 - initial) / dln + sum(phases) / math.pi
    return initial + (arg - round(arg)) * dln
