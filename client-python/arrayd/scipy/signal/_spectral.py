"""Spectra of segments: periodograms, coherence, short-time Fourier transforms."""
import math
import operator
import warnings

import numpy as np

from ... import _base, _core, fft
from ..._base import as_array, as_host, call, ndarray, normalize_axis
from .. import _host
from ._filtering import _extended, _join, _move, _pad_last, detrend as remove_trend

_u = _core.ufuncs


def _window_of(window, nperseg, length):
    """A window (on this side) and how many elements a segment has."""
    if isinstance(window, (str, tuple)):
        nperseg = 256 if nperseg is None else nperseg
        if nperseg > length:
            warnings.warn(f"nperseg={nperseg} is greater than signal length max(len(x), len(y)) = {length}, using "
                          f"nperseg = {length}", stacklevel=4)
            nperseg = length
        return _host.scipy_module("scipy.signal").get_window(window, nperseg), nperseg
    window = as_host(window, "window")
    if window.ndim != 1:
        raise ValueError("window must be 1-D")
    if length < window.shape[0]:
        raise ValueError("window is longer than input signal")
    if nperseg is not None and nperseg != window.shape[0]:
        raise ValueError("value specified for nperseg is different from length of window")
    return window, window.shape[0]


class _Cut:
    """How arrays are cut into segments and transformed."""

    def __init__(self, length, window, nperseg, noverlap, nfft):
        nperseg = None if nperseg is None else int(nperseg)
        if nperseg is not None and nperseg < 1:
            raise ValueError("nperseg must be a positive integer")
        self.window, self.nperseg = _window_of(window, nperseg, length)
        self.nfft = self.nperseg if nfft is None else int(nfft)
        if self.nfft < self.nperseg:
            raise ValueError("nfft must be greater than or equal to nperseg.")
        self.noverlap = self.nperseg // 2 if noverlap is None else int(noverlap)
        if self.noverlap >= self.nperseg:
            raise ValueError("noverlap must be less than nperseg.")
        self.step = self.nperseg - self.noverlap


def _segments(x, cut):
    """Of the last axis: segments, as views."""
    from ...lib.stride_tricks import sliding_window_view
    return sliding_window_view(x, cut.nperseg, -1)[..., ::cut.step, :]


def _trend_remover(detrend):
    if not detrend:
        return lambda d: d
    if callable(detrend):
        return detrend
    return lambda d: remove_trend(d, axis=-1, type=detrend)


def _transform(x, cut, remove, sides):
    """Transforms of the segments of the last axis, which get an axis before it."""
    pieces = remove(_segments(x, cut)) * as_array(cut.window.astype(np.float32) if x.dtype in (np.float32, np.complex64)
                                                  else cut.window)
    return fft.rfft(pieces, cut.nfft) if sides == "onesided" else fft.fft(pieces, cut.nfft)


def _scale_of(scaling, cut, fs):
    if scaling == "density":
        return float(1.0 / (fs * (cut.window * cut.window).sum()))
    if scaling == "spectrum":
        return float(1.0 / cut.window.sum()**2)
    raise ValueError(f"Unknown scaling: {scaling!r}")


def _outer_type(x, y):
    kind = _base.result_type(x.dtype, y.dtype, np.complex64)
    return np.dtype(np.complex64 if kind == np.complex64 else np.complex128)


def _outer_shape(x, y, axis):
    """The shape that two arrays have together beside their axis. ValueError where they do not fit."""
    try:
        return np.broadcast_shapes(*(np.delete(v.shape, normalize_axis(axis, v.ndim)) for v in (x, y)))
    except ValueError as error:
        raise ValueError("x and y cannot be broadcast together.") from error


def _prepare(x, y, axis, window, nperseg, noverlap, nfft):
    """x and y of one length, their axis the last, and how they are cut; None for empty ones."""
    same = x is y
    x = as_array(x)
    y = x if same else as_array(y)
    kind = _outer_type(x, y)
    if not same:
        _outer_shape(x, y, axis)
    whole = normalize_axis(axis, max(x.ndim, y.ndim))
    if not x.size or not y.size:
        return x, y, None, same, whole
    moved = _move(x, axis, -1)
    x, y = moved, moved if same else _move(y, axis, -1)
    length = max(x.shape[-1], y.shape[-1])
    if not same:
        x, y = (_pad_last(v, 0, length - v.shape[-1]) if v.shape[-1] < length else v for v in (x, y))
    cut = _Cut(length, window, nperseg, noverlap, nfft)
    real = np.float32 if kind == np.complex64 else np.float64
    x, y = (v.astype(kind if v.dtype.kind == "c" else real) for v in (x, y)) if not same else (
        (x.astype(kind if x.dtype.kind == "c" else real),) * 2)
    return x, y, cut, same, whole


def _helper(x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, mode="psd",
            boundary=None, padded=False):
    """Frequencies, times, and for each segment what `mode` says, with axes (..., frequency, segment)."""
    x, y, cut, same, axis = _prepare(x, y, axis, window, nperseg, noverlap, nfft)
    if cut is None:
        return None
    ends = {"even": "even", "odd": "odd", "constant": "constant", "zeros": "zeros", None: None}
    if boundary not in ends:
        raise ValueError(f"Unknown boundary option '{boundary}', must be one of: {list(ends)}")
    if boundary is not None:
        x = _extend_ends(x, boundary, cut.nperseg // 2)
        y = x if same else _extend_ends(y, boundary, cut.nperseg // 2)
    if padded:
        more = (-(x.shape[-1] - cut.nperseg) % cut.step) % cut.nperseg
        x = _pad_last(x, 0, more)
        y = x if same else _pad_last(y, 0, more)
    complex_input = "c" in (x.dtype.kind, y.dtype.kind)
    if return_onesided and complex_input:
        warnings.warn("Input data is complex, switching to return_onesided=False", stacklevel=3)
    sides = "onesided" if return_onesided and not complex_input else "twosided"
    remove, scale = _trend_remover(detrend), _scale_of(scaling, cut, fs)
    result = _transform(x, cut, remove, sides)
    if mode == "stft":
        result = result * math.sqrt(scale)
    else:
        other = result if same else _transform(y, cut, remove, sides)
        result = _u["conjugate"](result) * other * scale
        if sides == "onesided":
            last = slice(1, None) if cut.nfft % 2 else slice(1, -1)
            result[..., last] *= 2
    spectrum = np.fft.rfftfreq if sides == "onesided" else np.fft.fftfreq
    freqs, count = spectrum(cut.nfft, 1 / fs), result.shape[-2]
    times = (np.arange(count) * cut.step + cut.nperseg / 2) / float(fs)
    if boundary is not None:
        times -= cut.nperseg / 2 / fs
    if same and mode != "stft":
        result = result.real
    from ..._array.manipulation import swapaxes
    result = swapaxes(result, -1, -2)
    return as_array(freqs), as_array(times), _move(result, -2, axis)


def _extend_ends(x, boundary, edge):
    if boundary == "zeros":
        return _pad_last(x, edge, edge)
    return _extended(x, boundary, edge, edge, x.ndim - 1)[0]


def _empty_results(x, y, count, axis):
    x, y = as_array(x), as_array(y)
    length = min(x.shape[axis], y.shape[axis])
    shape = list(_outer_shape(x, y, axis))
    shape.insert(normalize_axis(axis, len(shape) + 1), length)
    return tuple(_base.empty(shape, np.float64) for _ in range(count))


def csd(x, y, fs=1.0, window="hann", nperseg=None, noverlap=None, nfft=None, detrend="constant", return_onesided=True,
        scaling="density", axis=-1, average="mean"):
    """Cross spectral density, averaged over segments.

    Parameters: x, y: arrays. fs: elements in a unit of time. window: name, tuple or array. nperseg: elements of a
    segment. noverlap: those that neighbouring segments share. nfft: length of transforms. detrend: as of detrend, False
    or a function. return_onesided: of real arrays only frequencies from 0 on. scaling: "density" or "spectrum". axis: the
    axis. average: "mean" or "median".
    Returns: tuple of frequencies and densities.
    Raises: ValueError for arguments that do not fit.
    Source: scipy.signal.csd
    """
    found = _helper(x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis)
    if found is None:
        return _empty_results(x, y, 2, axis)
    freqs, _, density = found
    return freqs, _average(density, average)


def _average(density, average):
    """Over segments, the last axis."""
    if not density.ndim or density.shape[-1] == 0:
        return density
    if average == "mean":
        return _core.reduce("mean", density, -1) if density.shape[-1] > 1 else density[..., 0]
    if average != "median":
        raise ValueError(f"average must be 'median' or 'mean', got {average}")
    from ..._math.reductions import median
    count = density.shape[-1]
    even = 2 * np.arange(1.0, (count - 1) // 2 + 1)
    bias = float(1 + (1 / (even + 1) - 1 / even).sum())
    if density.dtype.kind == "c":
        return (median(density.real, -1) + 1j * median(density.imag, -1)) / bias
    return median(density, -1) / bias


def welch(x, fs=1.0, window="hann", nperseg=None, noverlap=None, nfft=None, detrend="constant", return_onesided=True,
          scaling="density", axis=-1, average="mean"):
    """Power spectral density, averaged over segments.

    Parameters: as csd.
    Returns: tuple of frequencies and densities.
    Raises: as csd.
    Source: scipy.signal.welch
    """
    x = as_array(x)
    freqs, density = csd(x, x, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)
    return freqs, density.real


def periodogram(x, fs=1.0, window="boxcar", nfft=None, detrend="constant", return_onesided=True, scaling="density",
                axis=-1):
    """Power spectral density of the whole.

    Parameters: as csd.
    Returns: tuple of frequencies and densities.
    Raises: as csd.
    Source: scipy.signal.periodogram
    """
    x = as_array(x)
    if x.size == 0:
        return _empty_results(x, x, 2, axis)
    window = "boxcar" if window is None else window
    n = x.shape[axis]
    nperseg = n if nfft is None or nfft >= n else nfft
    if nfft is not None and nfft < n:
        x = x[_base.along(x.ndim, normalize_axis(axis, x.ndim), slice(0, nfft))]
    if hasattr(window, "size") and window.size != nperseg:
        raise ValueError("the size of the window must be the same size of the input on the specified axis")
    return welch(x, fs, window, nperseg, 0, nfft if nfft is not None and nfft > n else None, detrend, return_onesided,
                 scaling, axis)


def coherence(x, y, fs=1.0, window="hann", nperseg=None, noverlap=None, nfft=None, detrend="constant", axis=-1):
    """How far two arrays depend on each other at each frequency.

    Parameters: as csd.
    Returns: tuple of frequencies and values from 0 to 1.
    Raises: as csd.
    Source: scipy.signal.coherence
    """
    more = {"fs": fs, "window": window, "nperseg": nperseg, "noverlap": noverlap, "nfft": nfft, "detrend": detrend,
            "axis": axis}
    freqs, own = welch(x, **more)
    _, other = welch(y, **more)
    _, cross = csd(x, y, **more)
    size = _u["absolute"](cross)
    return freqs, size * size / own / other


def spectrogram(x, fs=1.0, window=("tukey", 0.25), nperseg=None, noverlap=None, nfft=None, detrend="constant",
                return_onesided=True, scaling="density", axis=-1, mode="psd"):
    """Spectra of segments one after another.

    Parameters: as csd. mode: "psd", "complex", "magnitude", "angle" or "phase".
    Returns: tuple of frequencies, times and spectra.
    Raises: as csd; ValueError for a mode that there is not.
    Source: scipy.signal.spectrogram
    """
    modes = ["psd", "complex", "magnitude", "angle", "phase"]
    if mode not in modes:
        raise ValueError(f"unknown value for mode {mode}, must be one of {modes}")
    x = as_array(x)
    window, nperseg = _window_of(window, nperseg, x.shape[axis])
    noverlap = nperseg // 8 if noverlap is None else noverlap
    found = _helper(x, x, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis,
                    "psd" if mode == "psd" else "stft")
    freqs, times, result = found if found else _empty_results(x, x, 3, axis)
    if mode == "magnitude":
        result = _u["absolute"](result)
    elif mode in ("angle", "phase"):
        result = _u["arctan2"](result.imag, result.real)
        if mode == "phase":
            from ..._math.elementary import unwrap
            result = unwrap(result, axis=axis - 1 if axis < 0 else axis)
    return freqs, times, result


def stft(x, fs=1.0, window="hann", nperseg=256, noverlap=None, nfft=None, detrend=False, return_onesided=True,
         boundary="zeros", padded=True, axis=-1, scaling="spectrum"):
    """Short-time Fourier transform.

    Parameters: as csd. boundary: how x goes on at its ends: "even", "odd", "constant", "zeros" or None. padded: with
    zeros to a whole number of segments. scaling: "spectrum" or "psd".
    Returns: tuple of frequencies, times and transforms.
    Raises: as csd.
    Source: scipy.signal.stft
    """
    if scaling not in ("spectrum", "psd"):
        raise ValueError(f"Parameter scaling={scaling!r} not in ['spectrum', 'psd']!")
    x = as_array(x)
    found = _helper(x, x, fs, window, nperseg, noverlap, nfft, detrend, return_onesided,
                    "density" if scaling == "psd" else scaling, axis, "stft", boundary, padded)
    return found if found else _empty_results(x, x, 3, axis)


def _check_inverse(x, window, nperseg, noverlap, nfft, onesided, freq_axis):
    """The cut that made a transform, whose frequencies are an axis."""
    count = x.shape[freq_axis]
    default = 2 * (count - 1) if onesided else count
    nperseg = default if nperseg is None else int(nperseg)
    if nperseg < 1:
        raise ValueError("nperseg must be a positive integer")
    if nfft is None:
        nfft = nperseg if onesided and nperseg == default + 1 else default
    elif nfft < nperseg:
        raise ValueError("nfft must be greater than or equal to nperseg.")
    if isinstance(window, (str, tuple)):
        window = _host.scipy_module("scipy.signal").get_window(window, nperseg)
    else:
        window = as_host(window, "window")
        if window.ndim != 1:
            raise ValueError("window must be 1-D")
        if window.shape[0] != nperseg:
            raise ValueError(f"window must have length of {nperseg}")
    return _Cut(nperseg, window, nperseg, noverlap, int(nfft))


def _overlap(pieces, step):
    """Sums of segments (..., segment, element) that begin `step` elements apart."""
    *rest, count, size = pieces.shape
    parts = -(-size // step)
    pieces = _pad_last(pieces, 0, parts * step - size)
    out = _base.zeros((*rest, count + parts - 1, step), pieces.dtype)
    for part in range(parts):
        out[..., part:part + count, :] += pieces[..., part * step:(part + 1) * step]
    return out.reshape((*rest, (count + parts - 1) * step))[..., :(count - 1) * step + size]


def istft(Zxx, fs=1.0, window="hann", nperseg=None, noverlap=None, nfft=None, input_onesided=True, boundary=True,
          time_axis=-1, freq_axis=-2, scaling="spectrum"):
    """Inverse of a short-time Fourier transform.

    Parameters: Zxx: transforms. fs, window, nperseg, noverlap, nfft, scaling: as of stft. input_onesided: it has
    frequencies from 0 on only. boundary: what was added at the ends is cut off. time_axis, freq_axis: the axes.
    Returns: tuple of times and values.
    Raises: ValueError for arguments that do not fit.
    Source: scipy.signal.istft
    """
    z = as_array(Zxx)
    z = z if z.dtype.kind == "c" else z.astype(np.complex128)
    if z.ndim < 2:
        raise ValueError("Input stft must be at least 2d!")
    freq_axis, time_axis = normalize_axis(freq_axis, z.ndim), normalize_axis(time_axis, z.ndim)
    if freq_axis == time_axis:
        raise ValueError("Must specify differing time and frequency axes!")
    cut = _check_inverse(z, window, nperseg, noverlap, nfft, input_onesided, freq_axis)
    if not _host.scipy_module("scipy.signal").check_NOLA(cut.window, cut.nperseg, cut.noverlap):
        warnings.warn("NOLA condition failed, STFT may not be invertible", stacklevel=2)
    order = [i for i in range(z.ndim) if i not in (freq_axis, time_axis)] + [time_axis, freq_axis]
    z = z.transpose(order)
    pieces = (fft.irfft(z, cut.nfft) if input_onesided else fft.ifft(z, cut.nfft))[..., :cut.nperseg]
    if scaling == "spectrum":
        factor = float(cut.window.sum())
    elif scaling == "psd":
        factor = math.sqrt(fs * float((cut.window**2).sum()))
    else:
        raise ValueError(f"Parameter scaling={scaling!r} not in ['spectrum', 'psd']!")
    window = cut.window.astype(np.float32 if pieces.dtype in (np.float32, np.complex64) else np.float64)
    x = _overlap(pieces * as_array(window * factor), cut.step)
    count = z.shape[-2]
    norm = np.zeros(cut.nperseg + (count - 1) * cut.step)
    for i in range(count):
        norm[i * cut.step:i * cut.step + cut.nperseg] += window**2
    if boundary:
        half = cut.nperseg // 2
        x, norm = x[..., half:-half], norm[half:-half]
    norm = np.where(norm > 1e-10, norm, 1.0)
    x = x / as_array(norm.astype(window.dtype))
    x = x.real if input_onesided else x
    if x.ndim > 1 and time_axis != z.ndim - 1:
        x = _move(x, -1, time_axis - 1 if freq_axis < time_axis else time_axis)
    return as_array(np.arange(x.shape[0]) / float(fs)), x
