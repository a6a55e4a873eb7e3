"""Signals: scipy.signal's functions.

Functions that compute on many elements (convolutions, filters, spectra) run on the server; what designs filters or
windows is computed by SciPy on this side, which has to be installed for it.
"""
import importlib as _importlib

from .._host import scipy_module as _scipy_module
from ._convolution import (convolve, convolve2d, correlate, correlate2d, correlation_lags, fftconvolve, medfilt, medfilt2d,
                           oaconvolve, order_filter, sepfir2d, wiener)
from ._filtering import deconvolve, detrend, filtfilt, hilbert, hilbert2, lfilter, savgol_filter, sosfilt, sosfiltfilt
from ._host import all_functions as _all_functions
from ._resampling import decimate, resample, resample_poly, upfirdn
from ._spectral import coherence, csd, istft, periodogram, spectrogram, stft, welch
from ._systems import CZT, StateSpace, TransferFunction, ZerosPolesGain, ZoomFFT, dlti, lti
from ._wavelets import cwt, morlet, morlet2, qmf, ricker

globals().update(_all_functions())
__all__ = sorted({name for name in globals() if not name.startswith("_")} | {"BadCoefficients", "windows"})


def __getattr__(name):
    if name == "windows":
        return _importlib.import_module(".windows", __name__)
    if name == "BadCoefficients":
        return _scipy_module("scipy.signal").BadCoefficients
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
