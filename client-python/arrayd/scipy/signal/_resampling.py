"""Other rates: filters that keep some of their results, and resampling, by such filters and by spectra."""
import math
import numbers
import operator

import numpy as np

from ... import _base, _core, fft
from ..._base import as_array, as_host, call, ndarray, normalize_axis
from .. import _host
from ._convolution import compact
from ._filtering import _loop_of, _move, _pad_last, sosfilt, sosfiltfilt

_u = _core.ufuncs
_MANY_STEPS = 8  # elements between results of one phase from which phases are not filtered one by one


def _upfirdn_length(taps, n, up, down):
    return ((n - 1) * up + taps - 1) // down + 1


def upfirdn(h, x, up=1, down=1, axis=-1, mode="constant", cval=0):
    """Zeros between elements, a finite filter, and only some of the results.

    Parameters: h: factors, 1-d. x: array. up: one element of so many is x's. down: one result of so many is kept. axis:
    the axis. mode: what x goes on with beyond its ends: "constant" (cval 0), or another by SciPy on this side.
    Returns: ndarray.
    Raises: ValueError for factors that are not 1-d, or up or down below 1.
    Source: scipy.signal.upfirdn
    """
    x, h = as_array(x), as_array(h)
    up, down = operator.index(up), operator.index(down)
    if up < 1 or down < 1:
        raise ValueError("Both up and down must be >= 1")
    if h.ndim != 1 or h.size == 0:
        raise ValueError("h must be 1-D with non-zero length")
    if mode not in (None, "constant") or cval:
        return _host.make_function("upfirdn")(h, x, up, down, axis, mode, cval)
    axis = normalize_axis(axis, x.ndim)
    loop = _loop_of(x.dtype, h.dtype)
    length = _upfirdn_length(h.size, x.shape[axis], up, down)
    phases = _filter_phases(_move(x, axis, -1).astype(loop), h.astype(loop), up, down, length, loop)
    return compact(_move(phases, -1, axis))


def _phase_matrix(h, up, down, results):
    """The factors of so many neighbouring results for the elements of x that any of them is a sum of, as a matrix, and how
    many of these come before the first result's own element."""
    before = -(-h.size // up) - 1
    places = np.arange(results) * down
    later = np.arange(before + 1 + int(places[-1] // up))[:, None] - before
    tap = places - later * up
    known = _base.as_array(np.where((tap >= 0) & (tap < h.size), tap, h.size))
    from ..._array.joining import append
    return append(h, _base.zeros((1,), h.dtype))[known], before


def _multiply_phases(x, h, up, down, length):
    """Along the last axis: windows of x times the factors of all results that begin in one, which many phases share. Most of
    the factors are 0, so x must be finite."""
    period, taps = up // math.gcd(up, down), -(-h.size // up)
    results = period * max(1, taps * up // (down * period))
    step, count = results * down // up, -(-length // results)
    factors, before = _phase_matrix(h, up, down, results)
    width = factors.shape[0]
    padded = _pad_last(x, before, max(0, (count - 1) * step + width - before - x.shape[-1]))
    from ...lib.stride_tricks import as_strided
    last = padded.strides[-1]
    windows = as_strided(padded, (*x.shape[:-1], count, width), (*padded.strides[:-1], step * last, last))
    return (compact(windows) @ factors).reshape(*x.shape[:-1], count * results)[..., :length]


def _filter_phases(x, h, up, down, length, loop):
    """Along the last axis: results whose place gives one rest are sums over the factors of one phase."""
    if down // math.gcd(up, down) >= _MANY_STEPS and x.size and bool(_u["isfinite"](x).all()):
        return _multiply_phases(x, h, up, down, length)
    out = _base.zeros((*x.shape[:-1], length), loop)
    period = up // math.gcd(up, down)
    for first in range(min(period, length)):
        phase, begin = first * down % up, first * down // up
        taps = h[phase::up]
        if not taps.size:
            continue
        count = len(range(first, length, period))
        step = period * down // up
        reach = taps.size - 1
        padded = _pad_last(x, reach, begin + (count - 1) * step - (x.shape[-1] - 1))
        sums = call("correlate1d", (padded, taps[::-1]), (padded.ndim - 1, 1, 0, reach), dtype=loop)
        out[..., first::period] = sums[..., reach + begin:reach + begin + (count - 1) * step + 1:step]
    return out


def resample_poly(x, up, down, axis=0, window=("kaiser", 5.0), padtype="constant", cval=None):
    """Resample to another number of elements, by a finite filter.

    Parameters: x: array. up, down: the factor is up / down. axis: the axis. window: of the filter, or its factors.
    padtype: "constant", "line", "mean", "median", "maximum" or "minimum": what x goes on with. cval: of "constant".
    Returns: ndarray.
    Raises: ValueError for arguments that do not fit.
    Source: scipy.signal.resample_poly
    """
    x = as_array(x)
    for name, value in (("up", up), ("down", down)):
        if not isinstance(value, numbers.Real) or value != int(value):
            raise ValueError(f"{name} must be an integer")
    up, down = int(up), int(down)
    if up < 1 or down < 1:
        raise ValueError("up and down must be >= 1")
    common = math.gcd(up, down)
    up, down = up // common, down // common
    if up == down == 1:
        return x.copy()
    if padtype != "constant" or cval:
        more = {} if cval is None else {"cval": cval}
        return _host.make_function("resample_poly")(x, up, down, axis=axis, window=window, padtype=padtype, **more)
    axis, n = normalize_axis(axis, x.ndim), x.shape[axis]
    length = n * up // down + bool(n * up % down)
    h, half = _resampling_factors(window, up, down, x.dtype)
    before = down - half % down
    behind, removed = 0, (half + before) // down
    while _upfirdn_length(len(h) + before + behind, n, up, down) < length + removed:
        behind += 1
    h = np.concatenate([np.zeros(before, h.dtype), h, np.zeros(behind, h.dtype)])
    y = upfirdn(h, x, up, down, axis)
    return y[_base.along(y.ndim, axis, slice(removed, removed + length))]


def _resampling_factors(window, up, down, dtype):
    if isinstance(window, (list, ndarray, np.ndarray)):
        h = as_host(window, "window")
        if h.ndim > 1:
            raise ValueError("window must be 1-D")
        half = (h.size - 1) // 2
        h = h * up
    else:
        half = 10 * max(up, down)
        h = _host.scipy_module("scipy.signal").firwin(2 * half + 1, 1.0 / max(up, down), window=window) * up
        if dtype.name in ("float32", "complex64", "float16", "bfloat16"):
            h = h.astype(np.float32)
    return h, half


def resample(x, num, t=None, axis=0, window=None, domain="time"):
    """Resample to another number of elements, by Fourier transforms.

    Parameters: x: array. num: how many elements. t: their places, which are then returned for the result, too. axis: the
    axis. window: of the transform: a name, an array or a function of frequencies. domain: "time", or "freq": x is a
    transform.
    Returns: ndarray, with t a tuple of it and its places.
    Raises: ValueError for a domain or a window that does not fit.
    Source: scipy.signal.resample
    """
    if domain not in ("time", "freq"):
        raise ValueError(f"Acceptable domain flags are 'time' or 'freq', not domain={domain}")
    x = as_array(x)
    axis, n, num = normalize_axis(axis, x.ndim), x.shape[axis], operator.index(num)
    real = domain == "time" and x.dtype.kind != "c"
    spectrum = _move(x if domain == "freq" else fft.rfft(x, axis=axis) if real else fft.fft(x, axis=axis), axis, -1)
    if window is not None:
        spectrum = spectrum * _spectral_window(window, n, real)
    y = _move(_resample_spectrum(spectrum, n, num, real), -1, axis)
    y = y * (num / n)
    if t is None:
        return y
    t = as_array(t)
    return y, _base.iota(num, 0.0, 1.0, np.float64) * (t[1] - t[0]) * (n / num) + t[0]


def _spectral_window(window, n, real):
    scipy_signal = _host.scipy_module("scipy.signal")
    if callable(window):
        w = np.asarray(_host.to_host(window(np.fft.fftfreq(n))))
    elif isinstance(window, (ndarray, np.ndarray)):
        w = as_host(window, "window")
        if w.shape != (n,):
            raise ValueError(f"window length is not equal to number of frequency bins: it has shape {w.shape}, not ({n},)")
    else:
        w = np.fft.fftshift(scipy_signal.get_window(window, n))
    if real:
        folded = w.copy()
        folded[1:] += folded[-1:0:-1]
        folded[1:] *= 0.5
        w = folded[:n // 2 + 1]
    return as_array(w)


def _resample_spectrum(spectrum, n, num, real):
    """Of the last axis: so many frequencies more or less; the one in the middle is shared by both signs."""
    least = min(n, num)
    middle = least // 2
    if real:
        kept = spectrum[..., :middle + 1].copy()
        if least % 2 == 0 and n != num:
            kept[..., middle] *= 2 if num < n else 0.5
        return fft.irfft(kept, num, axis=-1)
    out = _base.zeros((*spectrum.shape[:-1], num), spectrum.dtype)
    out[..., :middle + 1 if least % 2 == 0 else middle + 1] = spectrum[..., :middle + 1]
    if least > 2:
        behind = least - (middle + 1)
        out[..., num - behind:] = spectrum[..., n - behind:]
    if least % 2 == 0 and num < n:
        out[..., middle] += spectrum[..., n - middle]
    elif least % 2 == 0 and num > n:
        out[..., middle] *= 0.5
        out[..., num - middle] = out[..., middle]
    return fft.ifft(out, axis=-1)


def decimate(x, q, n=None, ftype="iir", axis=-1, zero_phase=True):
    """Fewer elements, after a filter against aliasing.

    Parameters: x: array. q: one of so many is kept. n: order of the filter. ftype: "iir", "fir" or a filter of SciPy.
    axis: the axis. zero_phase: the filter moves nothing.
    Returns: ndarray.
    Raises: ValueError for a type of filter that there is not.
    Source: scipy.signal.decimate
    """
    scipy_signal = _host.scipy_module("scipy.signal")
    x, q = as_array(x), operator.index(q)
    n = None if n is None else operator.index(n)
    axis = normalize_axis(axis, x.ndim)
    cut = _base.along(x.ndim, axis, slice(None, None, q))
    if ftype == "fir":
        half = 10 * q if n is None else n // 2
        b, a = scipy_signal.firwin(2 * half + 1 if n is None else n + 1, 1.0 / q, window="hamming"), np.array([1.0])
    elif ftype == "iir":
        b, a = scipy_signal.cheby1(8 if n is None else n, 0.05, 0.8 / q, output="sos"), None
    elif isinstance(ftype := _host.to_host(ftype), scipy_signal.dlti):
        system = ftype._as_zpk()
        if system.poles.shape[0] == 0:
            b, a = np.asarray(ftype._as_tf().num) / ftype._as_tf().den, np.array([1.0])
        else:
            b, a = scipy_signal.zpk2sos(system.zeros, system.poles, system.gain), None
    else:
        raise ValueError("invalid ftype")
    kind = np.float32 if x.dtype.name in ("float32", "complex64") else np.float64
    b = b.astype(kind)
    if a is None:
        return (sosfiltfilt(b, x, axis) if zero_phase else sosfilt(b, x, axis))[cut]
    if zero_phase:
        return resample_poly(x, 1, q, axis, window=b)
    y = upfirdn(b, x, 1, q, axis)
    return y[_base.along(x.ndim, axis, slice(0, -(-x.shape[axis] // q)))]
