"""Filters of Fourier transforms: what their elements are multiplied by."""
import math

import numpy as np

from ... import _base, _core
from ..._base import as_array, ndarray, normalize_axis
from . import _support
from ._support import repeat_argument

_u = _core.ufuncs


def _make_output(output, input, real):
    """The result's array: of the types that transforms have, real only where that may be."""
    kinds = [np.complex64, np.complex128] + ([np.float32, np.float64] if real else [])
    if isinstance(output, ndarray):
        if output.shape != input.shape:
            raise RuntimeError("output shape not correct")
        return output
    if output is None:
        own = input.dtype in ([np.complex64, np.complex128] + ([np.float32] if real else []))
        kind = input.dtype if own else np.dtype(np.float64 if real else np.complex128)
    else:
        kind = np.dtype(output)
        if kind not in kinds:
            raise RuntimeError("output type not supported")
    return _base.empty(input.shape, kind)


def _frequencies(input, n, axis):
    """Along each axis the frequencies in cycles for an element. n: length before a transform of real numbers along the
    axis, or negative."""
    grids = []
    for i, size in enumerate(input.shape):
        if i == axis and n >= 0:
            at = np.arange(size) / n if n else np.arange(size) * np.nan
        else:
            at = np.fft.fftfreq(size) if size else np.zeros(0)
        grids.append(at)
    return grids


def _multiply(input, output, factors):
    """output, filled with input times a factor of each axis."""
    result = input
    for axis, factor in enumerate(factors):
        if factor is not None:
            shape = (-1,) + (1,) * (input.ndim - axis - 1)
            result = result * as_array(factor.reshape(shape))
    return _support.copy_into(output, result)


def _arguments(input, value, n, axis, output, real=True):
    input = as_array(input)
    output = _make_output(output, input, real)
    axis = normalize_axis(axis, input.ndim)
    values = [float(one) for one in repeat_argument(value, input.ndim)]
    return input, output, _frequencies(input, n, axis), values


def fourier_gaussian(input, sigma, n=-1, axis=-1, output=None):
    """A transform filtered by a Gaussian.

    Parameters: input: transform. sigma: standard deviation, one for all axes, or one for each. n: length before a
    transform of real numbers along axis; negative: it was of complex ones. axis: that axis. output: array to fill, or
    the result's dtype.
    Returns: ndarray.
    Raises: RuntimeError for an output that does not fit.
    Source: scipy.ndimage.fourier_gaussian
    """
    input, output, grids, sigmas = _arguments(input, sigma, n, axis, output)
    return _multiply(input, output, [np.exp(-2 * (math.pi * s * f)**2) for s, f in zip(sigmas, grids)])


def fourier_uniform(input, size, n=-1, axis=-1, output=None):
    """A transform filtered by means of boxes.

    Parameters: as fourier_gaussian. size: of the boxes, one for all axes, or one for each.
    Returns: ndarray.
    Raises: as fourier_gaussian.
    Source: scipy.ndimage.fourier_uniform
    """
    input, output, grids, sizes = _arguments(input, size, n, axis, output)
    return _multiply(input, output, [np.sinc(s * f) for s, f in zip(sizes, grids)])


def fourier_shift(input, shift, n=-1, axis=-1, output=None):
    """A transform of an array that is moved.

    Parameters: as fourier_gaussian. shift: distance, one for all axes, or one for each.
    Returns: complex ndarray.
    Raises: as fourier_gaussian.
    Source: scipy.ndimage.fourier_shift
    """
    input, output, grids, shifts = _arguments(input, shift, n, axis, output, False)
    return _multiply(input, output, [np.exp(-2j * math.pi * s * f) for s, f in zip(shifts, grids)])


def _ball_factor(radius, ndim):
    """The transform of a ball: of a segment, a disc or a ball, at a radius in the space of frequencies."""
    safe = _u["maximum"](radius, 1e-8)
    if ndim == 1:
        factor = _u["sin"](safe) / safe
    elif ndim == 2:
        factor = 2 * _u["j1"](safe) / safe
    else:
        factor = 3 * (_u["sin"](safe) - safe * _u["cos"](safe)) / (safe * safe * safe)
    from ..._array.indexing import where
    return where(radius < 1e-4, 1.0, factor)


def fourier_ellipsoid(input, size, n=-1, axis=-1, output=None):
    """A transform filtered by means of ellipsoids, of up to three dimensions.

    Parameters: as fourier_gaussian. size: of the ellipsoids, one for all axes, or one for each.
    Returns: ndarray.
    Raises: NotImplementedError for more dimensions; as fourier_gaussian.
    Source: scipy.ndimage.fourier_ellipsoid
    """
    if as_array(input).ndim > 3:
        raise NotImplementedError("Only 1d, 2d and 3d inputs are supported")
    input, output, grids, sizes = _arguments(input, size, n, axis, output)
    if not output.size:
        return output
    square = _base.zeros((1,) * input.ndim, np.float64)
    for at, (one, f) in enumerate(zip(sizes, grids)):
        square = square + as_array(((math.pi * one * f)**2).reshape((-1,) + (1,) * (input.ndim - at - 1)))
    return _support.copy_into(output, input * _ball_factor(_u["sqrt"](square), input.ndim))
