"""Weighted sums: correlations, Gaussians, means and derivatives."""
import math
import numbers
import operator

import numpy as np

from ... import _base, _core
from ..._base import as_array, as_host, call, ndarray, normalize_axis
from . import _support
from ._support import along_axes, check_axes, edge_of, make_output, repeat_argument

_u = _core.ufuncs
_NEAR = 32  # elements up to which a mean of floats is one weighted sum


_SHORT = {"int8": 1 << 7, "uint8": 1 << 8, "int16": 1 << 15, "uint16": 1 << 16}  # what elements are at most


def _is_exact(input, weights, cval):
    """Tell whether sums are whole numbers that single precision has all of: of short integers, weighted by few."""
    most = _SHORT.get(input.dtype.name)
    if most is None or isinstance(weights, ndarray) or weights.dtype.kind not in "iuf" or np.iscomplexobj(cval):
        return False
    whole = float(cval).is_integer() and bool((weights == np.rint(weights)).all())
    return whole and max(most, abs(cval)) * float(np.abs(weights).sum()) < 1 << 24


def _loop_of(input, weights, cval=math.inf):
    """The type that sums are made in: single precision only of such elements and weights with a fraction, or where it
    makes no difference."""
    single = input.dtype.name in _support.SINGLE and weights.dtype.kind in "fcV" or _is_exact(input, weights, cval)
    if "c" in (input.dtype.kind, weights.dtype.kind):
        return np.dtype(np.complex64 if input.dtype.name in _support.SINGLE else np.complex128)
    return np.dtype(np.float32 if single else np.float64)


def _check_cval(cval, loop):
    """The value beyond the edges, for sums of that type."""
    if loop.kind == "c":
        return complex(cval)
    if isinstance(cval, complex) or np.iscomplexobj(cval):
        raise ValueError("Cannot provide a complex-valued cval when the input is real.")
    return float(cval)


def _weights(weights, loop):
    return as_array(weights, loop) if isinstance(weights, ndarray) else as_array(np.ascontiguousarray(weights, loop))


def correlate1d(input, weights, axis=-1, output=None, mode="reflect", cval=0.0, origin=0):
    """Weighted sum of neighbours along an axis.

    Parameters: input: array. weights: 1-d; complex ones are conjugated. axis: the axis. output: array to fill, or the
    result's dtype. mode: what stands beyond the edges: "reflect", "constant", "nearest", "mirror", "wrap" or "grid-"
    and one of them. cval: the value for "constant". origin: how far the window is moved to the left.
    Returns: ndarray of input's shape and, unless output says more, type.
    Raises: RuntimeError for weights that are not 1-d or for an unknown mode; ValueError for an origin outside of the
    window.
    Source: scipy.ndimage.correlate1d
    Differs: sums of float32 and float16 are made in single precision.
    """
    input = as_array(input)
    weights = weights if isinstance(weights, ndarray) else np.asarray(weights)
    loop = _loop_of(input, weights, cval)
    output = make_output(output, input, complex_output=loop.kind == "c")
    if weights.ndim != 1 or weights.shape[0] < 1:
        raise RuntimeError("no filter weights given")
    axis, size = normalize_axis(axis, input.ndim), weights.shape[0]
    before = size // 2 + operator.index(origin)
    if not 0 <= before < size:
        raise ValueError("Invalid origin; origin must satisfy -(len(weights) // 2) <= origin <= (len(weights)-1) // 2")
    if weights.dtype.kind == "c":
        weights = weights.conj()
    params = axis, edge_of(mode), _check_cval(cval, loop), before
    return _support.sum_into("correlate1d", (input, _weights(weights, loop)), params, output, loop)


def convolve1d(input, weights, axis=-1, output=None, mode="reflect", cval=0.0, origin=0):
    """Convolution along an axis.

    Parameters: as correlate1d.
    Returns: ndarray.
    Raises: as correlate1d.
    Source: scipy.ndimage.convolve1d
    """
    weights = weights if isinstance(weights, ndarray) else np.asarray(weights)
    weights, origin = weights[::-1], -origin
    if weights.dtype.kind == "c":
        weights = weights.conj()
    return correlate1d(input, weights, axis, output, mode, cval, origin if weights.shape[0] & 1 else origin - 1)


def _filter_weights(input, weights, output, mode, cval, origin, axes, turned):
    """correlate, and convolve (turned)."""
    input = as_array(input)
    weights = weights if isinstance(weights, ndarray) else np.asarray(weights)
    loop = _loop_of(input, weights)
    if weights.dtype.kind == "c" and not turned:
        weights = weights.conj()
    axes, filled = check_axes(axes, input.ndim), sum(n > 0 for n in weights.shape)
    if 0 in weights.shape and filled == len(axes) == input.ndim:  # nothing is summed: dimensions without elements count for none
        return _support.copy_into(make_output(output, input, complex_output=loop.kind == "c"), 0)
    weights = _support.expand_window(weights, input.ndim, axes, "weights")
    origins = _support.expand_origins(origin, input.ndim, axes)
    if weights.ndim != input.ndim or 0 in weights.shape:
        raise RuntimeError(f"weights.ndim ({filled}) must match len(axes) ({len(axes)})")
    if turned:
        weights = weights[(slice(None, None, -1),) * weights.ndim]
        origins = [-o if n & 1 else -o - 1 for o, n in zip(origins, weights.shape)]
    for o, n in zip(origins, weights.shape):
        if not -(n // 2) <= o <= (n - 1) // 2:
            raise ValueError("Invalid origin; origin must satisfy -(weights.shape[k] // 2) <= origin[k] <= "
                             "(weights.shape[k]-1) // 2")
    output = make_output(output, input, complex_output=loop.kind == "c")
    if not isinstance(mode, str) and np.iterable(mode):
        raise RuntimeError("A sequence of modes is not supported")
    params = edge_of(mode), _check_cval(cval, loop)
    # Weights of zero on this side are left out, as SciPy does.
    used = np.ones(weights.shape, bool) if isinstance(weights, ndarray) else weights != 0
    if not used.any():
        return _support.copy_into(output, 0)
    chosen = weights.reshape(-1) if isinstance(weights, ndarray) else weights[used]
    offsets = _support.offsets_of(used, origins)
    return _support.filter_window("correlate", input, offsets, (_weights(chosen, loop),), params, output, loop)


def correlate(input, weights, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):
    """Weighted sum of the neighbours of each element.

    Parameters: input: array. weights: of input's dimensions, or of as many as axes; complex ones are conjugated.
    output, mode, cval: as correlate1d. origin: one for all axes, or one for each. axes: those that weights are for.
    Returns: ndarray.
    Raises: RuntimeError for weights of other dimensions; ValueError for an origin outside of the window.
    Source: scipy.ndimage.correlate
    Differs: sums of float32 and float16 are made in single precision; weights of 0 on the server meet NaN and give NaN.
    """
    return _filter_weights(input, weights, output, mode, cval, origin, axes, False)


def convolve(input, weights, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):
    """Convolution with weights of as many dimensions.

    Parameters: as correlate.
    Returns: ndarray.
    Raises: as correlate.
    Source: scipy.ndimage.convolve
    """
    return _filter_weights(input, weights, output, mode, cval, origin, axes, True)


# ---- Gaussians ----

def _gaussian_weights(sigma, order, radius):
    """Compute a Gaussian of that standard deviation at -radius ... radius, or one of its derivatives. These are polynomials
    times it: each differentiation takes q to q' - x q / sigma^2."""
    if order < 0:
        raise ValueError("order must be non-negative")
    x = np.arange(-radius, radius + 1)
    phi = np.exp(-0.5 / (sigma * sigma) * x**2)
    phi = phi / phi.sum()
    factor = np.polynomial.Polynomial([1.0])
    for _ in range(order):
        factor = factor.deriv() - factor * np.polynomial.Polynomial([0, 1 / (sigma * sigma)])
    return factor(x) * phi if order else phi


def gaussian_filter1d(input, sigma, axis=-1, order=0, output=None, mode="reflect", cval=0.0, truncate=4.0, *,
                      radius=None):
    """Gaussian filter along an axis.

    Parameters: input: array. sigma: standard deviation. axis: the axis. order: of the derivative of the Gaussian, 0 for
    itself. output, mode, cval: as correlate1d. truncate: how many standard deviations the window reaches. radius: how
    many elements it reaches, instead.
    Returns: ndarray.
    Raises: ValueError for a negative order or radius.
    Source: scipy.ndimage.gaussian_filter1d
    """
    sigma = float(sigma)
    reach = int(truncate * sigma + 0.5) if radius is None else radius
    if not isinstance(reach, numbers.Integral) or reach < 0:
        raise ValueError("Radius must be a nonnegative integer.")
    return correlate1d(input, _gaussian_weights(sigma, order, reach)[::-1], axis, output, mode, cval, 0)


def gaussian_filter(input, sigma, order=0, output=None, mode="reflect", cval=0.0, truncate=4.0, *, radius=None,
                    axes=None):
    """Gaussian filter along all axes.

    Parameters: input: array. sigma, order, mode, radius: one for all axes, or one for each. output, cval, truncate: as
    gaussian_filter1d. axes: those to filter along, all unless given.
    Returns: ndarray.
    Raises: RuntimeError for a sequence of another length; ValueError for a negative order or radius.
    Source: scipy.ndimage.gaussian_filter
    """
    input = as_array(input)
    output = make_output(output, input, complex_output=input.dtype.kind == "c")
    axes = check_axes(axes, input.ndim)
    each = zip(axes, *(repeat_argument(value, len(axes)) for value in (sigma, order, mode, radius)))

    def run(x, output, axis, sigma, order, mode, radius):
        gaussian_filter1d(x, sigma, axis, order, output, mode, cval, truncate, radius=radius)
    return along_axes(output, input, [one for one in each if one[1] > 1e-15], run)


# ---- means ----

def uniform_filter1d(input, size, axis=-1, output=None, mode="reflect", cval=0.0, origin=0):
    """Mean of windows along an axis.

    Parameters: input: array. size: elements of the window. axis: the axis. output, mode, cval, origin: as correlate1d.
    Returns: ndarray.
    Raises: RuntimeError for a size below 1; ValueError for an origin outside of the window.
    Source: scipy.ndimage.uniform_filter1d
    """
    input = as_array(input)
    axis = normalize_axis(axis, input.ndim)
    if size < 1:
        raise RuntimeError("incorrect filter size")
    size = operator.index(size)
    output = make_output(output, input, complex_output=input.dtype.kind == "c")
    before, edge = _support.check_origin(origin, size), edge_of(mode)
    # A mean that is no whole number is further from one than single precision errs.
    ones = np.broadcast_to(1.0, size if output.dtype.kind in "iu" and size < 1 << 12 else 0)
    loop = _loop_of(input, ones, cval if ones.size else math.inf)
    cval = _check_cval(cval, loop)
    if size <= _NEAR and input.dtype.kind in "fcV" and output.dtype.kind in "fcV":
        weights = _weights(np.full(size, 1 / size), loop)
        return call("correlate1d", (input, weights), (axis, edge, cval, before), out=output, dtype=loop)
    total = call("window1d", (input,), (axis, _support.SUM, size, edge, cval, before), dtype=loop)
    if output.dtype == np.bool_:
        return _support.copy_into(output, (total / size).astype(np.int64))
    return _u["divide"](total, size, out=output, casting="unsafe")


def uniform_filter(input, size=3, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):
    """Mean of windows.

    Parameters: input: array. size, mode, origin: one for all axes, or one for each. output, cval: as correlate1d. axes:
    those to filter along, all unless given.
    Returns: ndarray.
    Raises: RuntimeError for a sequence of another length; ValueError for an origin outside of the window.
    Source: scipy.ndimage.uniform_filter
    """
    input = as_array(input)
    output = make_output(output, input, complex_output=input.dtype.kind == "c")
    axes = check_axes(axes, input.ndim)
    each = zip(axes, *(repeat_argument(value, len(axes)) for value in (size, mode, origin)))

    def run(x, output, axis, size, mode, origin):
        uniform_filter1d(x, int(size), axis, output, mode, cval, origin)
    return along_axes(output, input, [one for one in each if one[1] > 1], run)


# ---- derivatives ----

def _differentiate(input, axis, output, mode, cval, smooth):
    """Differences along an axis, and sums with weights `smooth` along the others."""
    input = as_array(input)
    axis = normalize_axis(axis, input.ndim)
    output = make_output(output, input, complex_output=input.dtype.kind == "c")
    modes = repeat_argument(mode, input.ndim)
    single = np.float32 if input.dtype.name in _support.SINGLE else np.float64
    differences, sums = np.array([-1, 0, 1], single), np.array(smooth, single)

    def run(x, output, weights, along):
        correlate1d(x, weights, along, output, modes[along], cval, 0)
    return along_axes(output, input, [(differences, axis), *((sums, n) for n in range(input.ndim) if n != axis)], run)


def prewitt(input, axis=-1, output=None, mode="reflect", cval=0.0):
    """Prewitt filter: differences along an axis, sums of three along the others.

    Parameters: input: array. axis: the axis. output, cval: as correlate1d. mode: one for all axes, or one for each.
    Returns: ndarray.
    Raises: RuntimeError for an unknown mode.
    Source: scipy.ndimage.prewitt
    """
    return _differentiate(input, axis, output, mode, cval, [1, 1, 1])


def sobel(input, axis=-1, output=None, mode="reflect", cval=0.0):
    """Sobel filter: differences along an axis, sums weighted 1, 2, 1 along the others.

    Parameters: as prewitt.
    Returns: ndarray.
    Raises: as prewitt.
    Source: scipy.ndimage.sobel
    """
    return _differentiate(input, axis, output, mode, cval, [1, 2, 1])


def generic_laplace(input, derivative2, output=None, mode="reflect", cval=0.0, extra_arguments=(), extra_keywords=None, *,
                    axes=None):
    """Sum of second derivatives that a function makes.

    Parameters: input: array. derivative2: called as derivative2(input, axis, output, mode, cval, *extra_arguments,
    **extra_keywords). output: array to fill, or the result's dtype. mode: one for all axes, or one for each. cval,
    extra_arguments, extra_keywords: for derivative2. axes: those to differentiate along, all unless given.
    Returns: ndarray.
    Raises: RuntimeError for a sequence of another length.
    Source: scipy.ndimage.generic_laplace
    """
    input = as_array(input)
    output = make_output(output, input, complex_output=input.dtype.kind == "c")
    axes = check_axes(axes, input.ndim)
    if not axes:
        return _support.copy_into(output, input)
    modes, more = repeat_argument(mode, len(axes)), extra_keywords or {}
    derivative2(input, axes[0], output, modes[0], cval, *extra_arguments, **more)
    for axis, mode in zip(axes[1:], modes[1:]):
        one = derivative2(input, axis, output.dtype, mode, cval, *extra_arguments, **more)
        _u["add"](output, one, out=output)
    return output


def laplace(input, output=None, mode="reflect", cval=0.0, *, axes=None):
    """Sum of second differences.

    Parameters: as generic_laplace.
    Returns: ndarray.
    Raises: as generic_laplace.
    Source: scipy.ndimage.laplace
    """
    input = as_array(input)
    weights = np.array([1, -2, 1], np.float32 if input.dtype.name in _support.SINGLE else np.float64)

    def derive_twice(input, axis, output, mode, cval):
        return correlate1d(input, weights, axis, output, mode, cval, 0)
    return generic_laplace(input, derive_twice, output, mode, cval, axes=axes)


def _orders(order, ndim, axis):
    return [order if i == axis else 0 for i in range(ndim)]


def gaussian_laplace(input, sigma, output=None, mode="reflect", cval=0.0, *, axes=None, **kwargs):
    """Sum of second derivatives of Gaussians.

    Parameters: as generic_laplace. sigma: standard deviation, one for all axes, or one for each. kwargs: for
    gaussian_filter.
    Returns: ndarray.
    Raises: as generic_laplace.
    Source: scipy.ndimage.gaussian_laplace
    """
    input = as_array(input)
    axes = check_axes(axes, input.ndim)
    sigmas = [0] * input.ndim
    for one, axis in zip(repeat_argument(sigma, len(axes)), axes):
        sigmas[axis] = one

    def derive_twice(input, axis, output, mode, cval):
        return gaussian_filter(input, sigmas, _orders(2, input.ndim, axis), output, mode, cval, **kwargs)
    return generic_laplace(input, derive_twice, output, mode, cval, axes=axes)


def generic_gradient_magnitude(input, derivative, output=None, mode="reflect", cval=0.0, extra_arguments=(),
                               extra_keywords=None, *, axes=None):
    """Length of the gradient whose parts a function makes.

    Parameters: as generic_laplace. derivative: called as derivative2 there.
    Returns: ndarray.
    Raises: as generic_laplace.
    Source: scipy.ndimage.generic_gradient_magnitude
    """
    input = as_array(input)
    output = make_output(output, input, complex_output=input.dtype.kind == "c")
    axes = check_axes(axes, input.ndim)
    if not axes:
        return _support.copy_into(output, input)
    modes, more = repeat_argument(mode, len(axes)), extra_keywords or {}
    derivative(input, axes[0], output, modes[0], cval, *extra_arguments, **more)
    _u["multiply"](output, output, out=output)
    for axis, mode in zip(axes[1:], modes[1:]):
        one = derivative(input, axis, output.dtype, mode, cval, *extra_arguments, **more)
        _u["add"](output, _u["multiply"](one, one, out=one), out=output)
    return _u["sqrt"](output, out=output, casting="unsafe")


def gaussian_gradient_magnitude(input, sigma, output=None, mode="reflect", cval=0.0, *, axes=None, **kwargs):
    """Length of the gradient of an array filtered by a Gaussian.

    Parameters: as gaussian_laplace.
    Returns: ndarray.
    Raises: as generic_laplace.
    Source: scipy.ndimage.gaussian_gradient_magnitude
    """
    input = as_array(input)

    def derive(input, axis, output, mode, cval):
        return gaussian_filter(input, sigma, _orders(1, input.ndim, axis), output, mode, cval, **kwargs)
    return generic_gradient_magnitude(input, derive, output, mode, cval, axes=axes)
