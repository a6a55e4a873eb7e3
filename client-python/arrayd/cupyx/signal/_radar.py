"""Radar: matched filters, Doppler, thresholds with a constant rate of false alarms, beams."""
import numpy as np

import arrayd as ad


def _prepare(x, normalize, window):
    """x times a window along its last axis, of norm 1 where asked for."""
    if window is not None:
        n = x.shape[-1]
        if callable(window):
            weights = window(ad.fft.fftfreq(n).astype(x.dtype))
        elif isinstance(window, ad.ndarray):
            if window.shape != (n,):
                raise ValueError("window must have the same length as data")
            weights = window
        else:
            from ...scipy.signal import windows
            weights = windows.get_window(window, n, False).astype(x.dtype)
        x = x * weights
    return x / ad.linalg.norm(x) if normalize else x


def pulse_compression(x, template, normalize=False, window=None, nfft=None):
    """Pulses through the filter that is matched to what was sent.

    Parameters: x: array (pulses, samples). template: 1-d array, what was sent. normalize: whether the template gets the norm 1. window: of
    the template: an array, a function, or what scipy.signal.get_window takes. nfft: length of the transforms; the samples of a
    pulse unless given.
    Returns: ndarray.
    Raises: ValueError for a window of another length, or x that is not 2-d.
    Source: cupyx.signal.pulse_compression
    """
    _, samples = x.shape
    nfft = samples if nfft is None else nfft
    template = _prepare(template, normalize, window)
    result = ad.fft.ifft(ad.fft.fft(x, nfft) * ad.fft.fft(template, nfft).conj(), nfft)
    return result if np.result_type(x.dtype, template.dtype).kind == "c" else result.real


def pulse_doppler(x, window=None, nfft=None):
    """The spectrum of each range across pulses.

    Parameters: x: array (pulses, samples). window: as pulse_compression, across pulses. nfft: length of the transforms; the number of
    pulses unless given.
    Returns: ndarray.
    Raises: ValueError for a window of another length, or x that is not 2-d.
    Source: cupyx.signal.pulse_doppler
    """
    pulses, _ = x.shape
    return ad.fft.fft(_prepare(x.T, False, window), pulses if nfft is None else nfft).T


def cfar_alpha(pfa, N):
    """By what a threshold lies above the mean of N cells.

    Parameters: pfa: probability of a false alarm. N: number of cells.
    Returns: float.
    Raises: nothing of its own.
    Source: cupyx.signal.cfar_alpha
    """
    return N * (pfa ** (-1.0 / N) - 1)


def ca_cfar(array, guard_cells, reference_cells, pfa=1e-3):
    """A threshold that follows the mean of the cells around each one, and where the array is above it.

    Parameters: array: 1-d or 2-d array. guard_cells: cells on either side that are left out, a number for each dimension.
    reference_cells: cells on either side beyond these. pfa: probability of a false alarm.
    Returns: tuple of ndarrays: the threshold (0 near the edges), and the detections.
    Raises: TypeError for more dimensions; ValueError for an array that is too small.
    Source: cupyx.signal.ca_cfar
    """
    if array.ndim > 2:
        raise TypeError("Only 1D and 2D arrays are currently supported.")
    if array.ndim == 2 and (np.size(guard_cells) != 2 or np.size(reference_cells) != 2):
        raise TypeError("Guard and reference cells must be two dimensional.")
    guards = [int(n) for n in np.atleast_1d(guard_cells)]
    reach = [guard + int(n) for guard, n in zip(guards, np.atleast_1d(reference_cells))]
    for n, far, which in zip(array.shape, reach, ("first", "second")):
        if n <= 2 * far:
            raise ValueError("Array too small for given parameters" if array.ndim == 1 else
                             f"Array {which} dimension too small for given parameters.")
    sums = array.astype(np.float32)
    for axis in range(array.ndim):
        sums = ad.cumsum(sums, axis=axis)
    sums = ad.pad(sums, [(1, 0)] * array.ndim)
    count = int(np.prod([2 * far + 1 for far in reach]) - np.prod([2 * guard + 1 for guard in guards]))
    area = _sum_boxes(sums, array.shape, reach, reach) - _sum_boxes(sums, array.shape, reach, guards)
    threshold = ad.zeros(array.shape, np.float32)
    inner = tuple(slice(far, n - far) for n, far in zip(array.shape, reach))
    threshold[inner] = area * np.float32(cfar_alpha(pfa, count) / count)
    return threshold, array - threshold > 0


def _sum_boxes(sums, shape, edge, half):
    """Sums of boxes of 2 * half + 1 cells around those that are not within edge of the array's, from running sums."""
    for axis, (n, far, near) in enumerate(zip(shape, edge, half)):
        before = (slice(None),) * axis
        high = sums[before + (slice(far + near + 1, n - far + near + 1),)]
        sums = high - sums[before + (slice(far - near, n - far - near),)]
    return sums


def mvdr(x, sv, calc_cov=True):
    """Weights of a beam of minimum variance without distortion.

    Parameters: x: array (antennas, samples), or its covariance matrix. sv: array of the phases towards the target. calc_cov: whether x is the
    data.
    Returns: ndarray.
    Raises: ValueError for fewer samples than antennas, or shapes that do not fit.
    Source: cupyx.signal.mvdr
    """
    if x.shape[0] > x.shape[1]:
        raise ValueError("Matrix has more sensors than samples. Consider transposing and remember cuSignal is row-major, "
                         "unlike MATLAB")
    if x.shape[0] != sv.shape[0]:
        raise ValueError("Steering Vector and input data do not align")
    top = ad.linalg.inv(ad.cov(x, dtype=x.dtype) if calc_cov else x) @ sv
    return top / (sv.conj() @ top)
