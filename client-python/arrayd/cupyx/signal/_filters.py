"""Finite filters, filters of second and third order, and banks of them."""
import math

import numpy as np

import arrayd as ad


def firfilter(b, x, axis=-1, zi=None):
    """A finite filter along an axis.

    Parameters: b: 1-d array of factors. x: array. axis: the axis. zi: state at the beginning, as scipy.signal.lfilter's.
    Returns: ndarray, with zi a tuple of it and the state at the end.
    Raises: ValueError for factors or a state that do not fit.
    Source: cupyx.signal.firfilter
    """
    from ...scipy.signal import lfilter
    return lfilter(b, ad.ones((1,)), x, axis, zi)


def firfilter_zi(b):
    """The state of a finite filter with which a signal of ones gives a constant.

    Parameters: b: 1-d array of factors.
    Returns: ndarray.
    Raises: nothing of its own.
    Source: cupyx.signal.firfilter_zi
    """
    b = ad.asarray(b)
    return ad.cumsum(b[:0:-1])[::-1].copy()


def firfilter2(b, x, axis=-1, padtype="odd", padlen=None, method="pad", irlen=None):
    """A finite filter forwards and then backwards, which moves nothing.

    Parameters: b: 1-d array of factors. x, axis, padtype, padlen, method, irlen: as scipy.signal.filtfilt; method must be "pad".
    Returns: ndarray.
    Raises: ValueError for arguments that do not fit; NotImplementedError for the method "gust".
    Source: cupyx.signal.firfilter2
    """
    from ...scipy.signal import filtfilt
    if method == "gust":
        raise NotImplementedError("gust method not supported yet")
    return filtfilt(b, ad.ones((1,)), x, axis, padtype, padlen, method, irlen)


def freq_shift(x, freq, fs):
    """A signal times the oscillation that lowers its frequencies.

    Parameters: x: real array. freq: by how much. fs: samples in a unit of time.
    Returns: ndarray of complex128.
    Raises: nothing of its own.
    Source: cupyx.signal.freq_shift
    """
    x = ad.asarray(x)
    angle = ad.arange(x.size, dtype=np.float64).reshape(x.shape) * (-2 * math.pi * freq / fs)
    return x * ad.exp(1j * angle)


def _check_order(in1, in2, order, mode, method):
    if in1.ndim != 1:
        raise ValueError("in1 should have one dimension")
    if in2.ndim != order:
        raise ValueError(f"in2 should have {order} dimensions")
    if mode != "valid":
        raise NotImplementedError(f"Mode == {mode} not implemented")
    if method != "direct":
        raise NotImplementedError("Only Direct method implemented")


def _list_windows(x, size, length):
    """The `length` windows of x of a size, each from its last element to its first."""
    return ad.lib.stride_tricks.sliding_window_view(x, size)[:length, ::-1]


def convolve1d2o(in1, in2, mode="valid", method="direct"):
    """A filter of second order: sums of products of two elements.

    Parameters: in1: 1-d array. in2: array (w, h) of factors. mode: "valid". method: "direct".
    Returns: ndarray.
    Raises: ValueError for other numbers of dimensions; NotImplementedError for another mode or method.
    Source: cupyx.signal.convolve1d2o
    """
    _check_order(in1, in2, 2, mode, method)
    length = in1.shape[0] - max(in2.shape) + 1
    first, second = (_list_windows(in1, n, length) for n in in2.shape)
    return ((first @ in2) * second).sum(axis=-1)


def convolve1d3o(in1, in2, mode="valid", method="direct"):
    """A filter of third order: sums of products of three elements.

    Parameters: in1: 1-d array. in2: array (w, h, d) of factors. mode: "valid". method: "direct".
    Returns: ndarray.
    Raises: ValueError for other numbers of dimensions; NotImplementedError for another mode or method.
    Source: cupyx.signal.convolve1d3o
    """
    _check_order(in1, in2, 3, mode, method)
    length = in1.shape[0] - max(in2.shape) + 1
    w, h, d = in2.shape
    first, second, third = (_list_windows(in1, n, length) for n in (w, h, d))
    planes = (first @ in2.reshape(w, h * d)).reshape(length, h, d)
    return ((planes * second[:, :, None]).sum(axis=1) * third).sum(axis=-1)


def channelize_poly(x, h, n_chans):
    """A signal in channels of the same width, by a polyphase filter.

    Parameters: x: 1-d array. h: 1-d array of factors, of at most 32 for each channel. n_chans: number of channels.
    Returns: ndarray (n_chans, samples).
    Raises: NotImplementedError for more factors, or types other than float32, float64 and their complex ones.
    Source: cupyx.signal.channelize_poly
    """
    dtype = np.promote_types(x.dtype, h.dtype)
    x, h = ad.asarray(x, dtype=dtype), ad.asarray(h, dtype=dtype)
    taps, points = len(h) // n_chans, len(x) // n_chans
    if taps > 32:
        raise NotImplementedError(f"The number of calculated taps ({taps}) in each filter is currently capped at 32. Please "
                                  "reduce filter length or number of channels")
    if dtype.char not in "fdFD":
        raise NotImplementedError(f"Data type ({dtype}) not allowed.")
    rows = x[:points * n_chans].reshape(points, n_chans)[:, ::-1].conj()
    factors = h[:taps * n_chans].reshape(taps, n_chans).conj()
    y = ad.zeros((points, n_chans), dtype)
    for tap in range(min(taps, points)):
        y[tap:] += rows[:points - tap] * factors[tap]
    return ad.fft.fft(y).conj().T
