"""Filters along an axis: recursive ones, forwards or both ways, analytic signals, trends and smoothing."""
import math
import operator

import numpy as np

from ... import _base, _core, fft
from ..._base import as_array, as_host, call, normalize_axis
from .. import _host
from ._convolution import compact


def _move(a, axis, to):
    from ..._array.manipulation import moveaxis
    return moveaxis(a, axis, to)


def _join(parts, axis):
    from ..._array.joining import concatenate
    return concatenate(parts, axis)


def _pad_last(x, before, behind):
    padded = _base.zeros((*x.shape[:-1], before + x.shape[-1] + max(behind, 0)), x.dtype)
    padded[..., before:before + x.shape[-1]] = x
    return padded


def _loop_of(*dtypes):
    kind = _base.result_type(*dtypes, np.float32) if all(
        d.kind in "fcV" and d.name in ("float16", "bfloat16", "float32", "complex64") for d in dtypes) else \
        _base.result_type(*dtypes, np.float64)
    return np.dtype(kind)


# ---- recursive filters ----

def _run_sections(x, sections, state, axis, loop):
    """The row of call.def: sections of shape (sections, 2, order+1), state of (sections, order, lanes)."""
    return call("iir", (x, as_array(sections, loop), state), (axis,), dtype=loop)


def _normal_factors(b, a):
    """b and a of one length, divided by a's first, on this side."""
    b, a = (np.atleast_1d(as_host(v, "coefficients")) for v in (b, a))
    for name, factors in (("b", b), ("a", a)):
        if factors.ndim != 1 or not factors.size:
            raise ValueError(f"Parameter {name} is not a non-empty 1d array, since {name}.shape={factors.shape}!")
    if a.size > 1 and a[0] == 0:
        raise ValueError("Invalid a[0] == 0 in filter")
    padded = np.zeros((2, max(b.size, a.size)), np.result_type(b, a, np.float32))
    with np.errstate(all="ignore"):
        padded[0, :b.size], padded[1, :a.size] = b / a[0], a / a[0]
    return padded


def lfilter(b, a, x, axis=-1, zi=None):
    """A recursive or finite filter along an axis.

    Parameters: b, a: factors of the input and of the output. x: array. axis: the axis. zi: state at the beginning, of x's
    shape with max(len(a), len(b)) - 1 elements along the axis. Or as in CuPy, where their number, len(a) + len(b) - 2, is
    another one: the last len(b) - 1 elements of an input and then the last len(a) - 1 of its output.
    Returns: ndarray, with zi a tuple of it and the state at the end, in zi's form.
    Raises: ValueError for factors or a state that do not fit.
    Source: scipy.signal.lfilter, cupyx.scipy.signal.lfilter
    """
    x = as_array(x)
    factors = _normal_factors(b, a)
    if x.ndim == 0:
        raise ValueError("selected axis is out of range")
    axis, order = normalize_axis(axis, x.ndim), factors.shape[1] - 1
    inputs, outputs = np.size(b) - 1, np.size(a) - 1
    dtypes = [x.dtype, *(v.dtype if hasattr(v, "dtype") else np.asarray(v).dtype for v in (b, a))]
    zi = None if zi is None else as_array(zi)
    loop = _loop_of(*dtypes, *([] if zi is None else [zi.dtype]))
    rest = tuple(n for i, n in enumerate(x.shape) if i != axis)
    past = None
    if zi is not None and zi.ndim == x.ndim and zi.shape[axis] == inputs + outputs != order:
        past = _move(_state_of(zi, x.shape[:axis] + (inputs + outputs,) + x.shape[axis + 1:], axis), 0, axis)
        zi = _state_after(factors, past, axis, inputs, loop)
    if zi is None:
        state = _base.zeros((1, order, math.prod(rest)), loop)
    else:
        state = _state_of(zi, x.shape[:axis] + (order,) + x.shape[axis + 1:], axis).astype(loop).reshape(
            1, order, math.prod(rest))
    y, last = _run_sections(x, factors.reshape(1, 2, order + 1), state, axis, loop)
    if zi is None:
        return y
    return y, _move(last.reshape((order, *rest)), 0, axis) if past is None else _extend_past(past, x, y, axis, inputs)


def _state_after(factors, past, axis, inputs, loop):
    """The state that elements of an input, and then those of its output, leave behind."""
    order, outputs = factors.shape[1] - 1, past.shape[axis] - inputs
    weights = np.zeros((order, inputs + outputs), factors.dtype)
    for age in range(order):
        if age < inputs:
            weights[:order - age, inputs - 1 - age] = factors[0, age + 1:]
        if age < outputs:
            weights[:order - age, -1 - age] = -factors[1, age + 1:]
    moved = _move(past, axis, 0)
    state = as_array(weights, loop) @ moved.astype(loop).reshape(inputs + outputs, -1)
    return _move(state.reshape((order, *moved.shape[1:])), 0, axis)


def _extend_past(past, x, y, axis, inputs):
    """The last elements of input and output as `past` has them, after x and y."""
    outputs = past.shape[axis] - inputs
    last = []
    for new, begin, count in ((x, 0, inputs), (y, inputs, outputs)):
        both = _join([past[_base.along(past.ndim, axis, slice(begin, begin + count))].astype(y.dtype), new.astype(y.dtype)],
                     axis)
        last.append(both[_base.along(both.ndim, axis, slice(both.shape[axis] - count, None))])
    return _join(last, axis)


def _state_of(zi, shape, axis):
    """zi, broadcast to a shape, with its axis first."""
    from ..._array.manipulation import broadcast_to
    if zi.ndim != len(shape) or zi.shape[axis] != shape[axis] or any(
            n not in (1, m) for n, m in zip(zi.shape, shape)):
        raise ValueError(f"Unexpected shape for zi: expected {shape}, found {zi.shape}.")
    return _move(broadcast_to(zi, shape), axis, 0)


def _check_sections(sos):
    sos = np.atleast_2d(as_host(sos, "sos"))
    if sos.ndim != 2:
        raise ValueError("sos array must be 2D")
    if sos.shape[1] != 6:
        raise ValueError("sos array must be shape (n_sections, 6)")
    if not (sos[:, 3] == 1).all():
        raise ValueError("sos[:, 3] should be all ones")
    return sos


def sosfilt(sos, x, axis=-1, zi=None):
    """A recursive filter of second-order sections along an axis.

    Parameters: sos: sections, of shape (sections, 6). x: array. axis: the axis. zi: state at the beginning, of shape
    (sections, ...) and x's with 2 elements along the axis, or as in CuPy with 4: the last 2 elements of each section's
    input and the last 2 of its output.
    Returns: ndarray, with zi a tuple of it and the state at the end, in zi's form.
    Raises: ValueError for sections or a state that do not fit.
    Source: scipy.signal.sosfilt, cupyx.scipy.signal.sosfilt
    """
    x, sections = as_array(x), _check_sections(sos)
    if x.ndim == 0:
        raise ValueError("x must be at least 1D")
    given, axis, count = axis, normalize_axis(axis, x.ndim), sections.shape[0]
    zi = None if zi is None else as_array(zi)
    loop = _loop_of(x.dtype, sections.dtype, *([] if zi is None else [zi.dtype]))
    rest = tuple(n for i, n in enumerate(x.shape) if i != axis)
    if zi is None:
        state = _base.zeros((count, 2, math.prod(rest)), loop)
    else:
        shape = (count, *x.shape[:axis], 2, *x.shape[axis + 1:])
        if zi.shape == (count, *x.shape[:axis], 4, *x.shape[axis + 1:]):
            return _filter_by_past(sections, x.astype(loop), axis, zi.astype(loop))
        if zi.shape != shape:
            raise ValueError("Invalid zi shape. With axis=%r, an input with shape %r, and an sos array with %d sections, "
                             "zi must have shape %r, got %r." % (given, x.shape, count, shape, zi.shape))
        state = _move(zi, axis + 1, 1).astype(loop).reshape(count, 2, math.prod(rest))
    y, last = _run_sections(x, sections.reshape(count, 2, 3), state, axis, loop)
    if zi is None:
        return y
    return y, _move(last.reshape((count, 2, *rest)), 1, axis + 1)


def _filter_by_past(sections, x, axis, past):
    """The sections one after another, each with a state as CuPy has it."""
    last = []
    for section, of_section in zip(sections, past):
        x, left = lfilter(section[:3], section[3:], x, axis, of_section)
        last.append(left[None])
    return x, _join(last, 0)


# ---- forwards and backwards ----

def _extended(x, padtype, padlen, edge, axis):
    """x with `edge` elements more at both ends, as padtype says."""
    if padtype not in ("even", "odd", "constant", None):
        raise ValueError(f"Unknown value '{padtype}' given to padtype. padtype must be 'even', 'odd', 'constant', or None.")
    edge = 0 if padtype is None else edge if padlen is None else operator.index(padlen)
    if edge < 0:
        raise ValueError("padlen must be a nonnegative integer")
    if x.shape[axis] <= edge:
        raise ValueError("The length of the input vector x must be greater than padlen, which is %d." % edge)
    if not edge:
        return x, 0
    x0 = _move(x, axis, 0)
    first, last = x0[:1], x0[-1:]
    before, behind = x0[edge:0:-1], x0[-2:-edge - 2:-1]
    if padtype == "odd":
        before, behind = 2 * first - before, 2 * last - behind
    elif padtype == "constant":
        from ..._array.joining import repeat
        before, behind = repeat(first, edge, 0), repeat(last, edge, 0)
    return _move(_join([before, x0, behind], 0), 0, axis), edge


def _both_ways(run, extended, edge, axis):
    """run(x, its first element) forwards, then backwards, without what was added at the ends."""
    first = extended[_base.along(extended.ndim, axis, slice(0, 1))]
    y = run(extended, first)
    y = y[_base.along(y.ndim, axis, slice(None, None, -1))]
    y = run(y, y[_base.along(y.ndim, axis, slice(0, 1))])
    y = y[_base.along(y.ndim, axis, slice(None, None, -1))]
    return y[_base.along(y.ndim, axis, slice(edge, -edge))] if edge else y


def filtfilt(b, a, x, axis=-1, padtype="odd", padlen=None, method="pad", irlen=None):
    """A filter forwards and then backwards, which moves nothing.

    Parameters: b, a, x, axis: as lfilter. padtype: how x goes on at its ends: "odd", "even", "constant" or None. padlen:
    by how many elements; three times as many as there are factors unless given. method: "pad", or "gust" (Gustafsson's,
    by SciPy on this side). irlen: of "gust".
    Returns: ndarray.
    Raises: ValueError for arguments that do not fit.
    Source: scipy.signal.filtfilt
    """
    x = as_array(x)
    b, a = (np.atleast_1d(as_host(v, "coefficients")) for v in (b, a))
    if method not in ("pad", "gust"):
        raise ValueError("method must be 'pad' or 'gust'.")
    if method == "gust":
        return _host.make_function("filtfilt")(b, a, x, axis=axis, method="gust", irlen=irlen)
    axis = normalize_axis(axis, x.ndim)
    extended, edge = _extended(x, padtype, padlen, 3 * max(len(a), len(b)), axis)
    zi = _host.scipy_module("scipy.signal").lfilter_zi(b, a)
    zi = as_array(zi.reshape((-1,) + (1,) * (x.ndim - axis - 1)))
    zi = zi.reshape((1,) * axis + zi.shape)
    return _both_ways(lambda v, first: lfilter(b, a, v, axis, zi * first)[0], extended, edge, axis)


def sosfiltfilt(sos, x, axis=-1, padtype="odd", padlen=None):
    """Second-order sections forwards and then backwards.

    Parameters: sos, x, axis: as sosfilt. padtype, padlen: as filtfilt.
    Returns: ndarray.
    Raises: ValueError for arguments that do not fit.
    Source: scipy.signal.sosfiltfilt
    """
    x, sections = as_array(x), _check_sections(sos)
    axis, count = normalize_axis(axis, x.ndim), sections.shape[0]
    taps = 2 * count + 1 - min((sections[:, 2] == 0).sum(), (sections[:, 5] == 0).sum())
    extended, edge = _extended(x, padtype, padlen, int(3 * taps), axis)
    zi = _host.scipy_module("scipy.signal").sosfilt_zi(sections)
    zi = as_array(zi.reshape((count,) + (1,) * axis + (2,) + (1,) * (x.ndim - axis - 1)))
    return _both_ways(lambda v, first: sosfilt(sections, v, axis, zi * first)[0], extended, edge, axis)


def deconvolve(signal, divisor):
    """Quotient and remainder of polynomials' coefficients: what convolved with divisor gives signal.

    Parameters: signal, divisor: 1-d arrays.
    Returns: tuple of two ndarrays.
    Raises: ValueError for arrays that are not 1-d.
    Source: scipy.signal.deconvolve
    """
    from ._convolution import convolve
    num, den = as_array(signal), as_array(divisor)
    num, den = num if num.ndim else num.reshape(1), den if den.ndim else den.reshape(1)
    if num.ndim > 1:
        raise ValueError("signal must be 1-D.")
    if den.ndim > 1:
        raise ValueError("divisor must be 1-D.")
    if den.size > num.size:
        return _base.zeros((0,), np.float64), num
    quotient = lfilter(np.ones(1), den, num[:num.size - den.size + 1])
    return quotient, num - convolve(den, quotient, "full")


# ---- transforms and trends ----

def hilbert(x, N=None, axis=-1):
    """The analytic signal: without negative frequencies.

    Parameters: x: real array. N: length of the transform. axis: the axis.
    Returns: complex ndarray.
    Raises: ValueError for complex numbers, or a length below 1.
    Source: scipy.signal.hilbert
    """
    x = as_array(x)
    if x.dtype.kind == "c":
        raise ValueError("x must be real.")
    axis = normalize_axis(axis, x.ndim)
    n = x.shape[axis] if N is None else N
    if n <= 0:
        raise ValueError("N must be positive.")
    weights = np.zeros(n, np.float32 if x.dtype.name in ("float32", "float16") else np.float64)
    weights[0] = 1
    weights[1:(n + 1) // 2] = 2
    if n % 2 == 0:
        weights[n // 2] = 1
    weights = as_array(weights).reshape((n,) + (1,) * (x.ndim - axis - 1))
    return fft.ifft(fft.fft(x, n, axis) * weights, axis=axis)


def hilbert2(x, N=None, axes=(-2, -1)):
    """The analytic signal of two axes.

    Parameters: x: real array. N: lengths of the transform, one or two. axes: the two.
    Returns: complex ndarray.
    Raises: ValueError for complex numbers, or lengths below 1.
    Source: scipy.signal.hilbert2
    """
    x = as_array(x)
    x = x.reshape((1,) * (2 - x.ndim) + tuple(x.shape)) if x.ndim < 2 else x
    if x.dtype.kind == "c":
        raise ValueError("x must be real.")
    axes = tuple(normalize_axis(axis, x.ndim) for axis in axes)
    sizes = tuple(x.shape[axis] for axis in axes) if N is None else (N, N) if np.isscalar(N) else tuple(N)
    if len(sizes) != 2 or min(sizes) <= 0:
        raise ValueError("When given as a tuple, N must hold exactly two positive integers")
    spectrum = fft.fft2(x, sizes, axes)
    for axis, n in zip(axes, sizes):
        weights = np.zeros(n, spectrum.real.dtype)
        weights[0] = 1
        weights[1:(n + 1) // 2] = 2
        spectrum = spectrum * as_array(weights).reshape((n,) + (1,) * (x.ndim - axis - 1))
    return fft.ifft2(spectrum, axes=axes)


def detrend(data, axis=-1, type="linear", bp=0, overwrite_data=False):
    """An array without its trend along an axis.

    Parameters: data: array. axis: the axis. type: "linear" (or "l"): without the line that fits best; "constant" (or
    "c"): without its mean. bp: where other lines begin. overwrite_data: taken and not used.
    Returns: ndarray.
    Raises: ValueError for a type that there is not, or places beyond the end.
    Source: scipy.signal.detrend
    """
    if type not in ("linear", "l", "constant", "c"):
        raise ValueError("Trend type must be 'linear' or 'constant'.")
    data = as_array(data)
    kind = data.dtype if data.dtype.kind in "fc" else np.dtype(np.float64)
    if type in ("constant", "c"):
        return compact(data - _core.reduce("mean", data, axis, keepdims=True))
    axis, n = normalize_axis(axis, data.ndim), data.shape[axis]
    ends = sorted({0, n, *np.atleast_1d(as_host(bp, "bp")).astype(int).tolist()})
    if ends[-1] > n:
        raise ValueError("Breakpoints must be less than length of data along given axis.")
    x = _move(data.astype(kind), axis, -1)
    return compact(_move(_join([_without_line(x[..., b:e]) for b, e in zip(ends, ends[1:])], -1), -1, axis))


def _without_line(x):
    n = x.shape[-1]
    at = np.arange(n) - (n - 1) / 2
    middle = _core.reduce("mean", x, -1, keepdims=True)
    if n < 2:
        return x - middle
    line = as_array(at.astype(np.float32 if x.dtype.name in ("float32", "complex64") else np.float64))
    slope = _core.reduce("sum", x * line, -1, keepdims=True) / float((at * at).sum())
    return x - middle - slope * line


def savgol_filter(x, window_length, polyorder, deriv=0, delta=1.0, axis=-1, mode="interp", cval=0.0):
    """Polynomials that fit windows best, or their derivatives.

    Parameters: x: array. window_length: elements. polyorder: degree. deriv: of the derivative. delta: distance of
    elements. axis: the axis. mode: what stands beyond the ends: "mirror", "constant", "nearest", "wrap"; or "interp": the
    polynomials of the outermost windows. cval: of "constant".
    Returns: ndarray.
    Raises: ValueError for a mode that there is not, or a window that is too long for "interp".
    Source: scipy.signal.savgol_filter
    """
    if mode not in ("mirror", "constant", "nearest", "interp", "wrap"):
        raise ValueError("mode must be 'mirror', 'constant', 'nearest' 'wrap' or 'interp'.")
    from ..ndimage import convolve1d
    x = as_array(x)
    x = x if x.dtype in (np.float32, np.float64) else x.astype(np.float64)
    axis = normalize_axis(axis, x.ndim)
    delta = float(delta)
    factors = _host.scipy_module("scipy.signal").savgol_coeffs(window_length, polyorder, deriv=deriv, delta=delta)
    if mode != "interp":
        return convolve1d(x, factors, axis, mode=mode, cval=cval)
    if window_length > x.shape[axis]:
        raise ValueError("If mode is 'interp', window_length must be less than or equal to the size of x.")
    y = convolve1d(x, factors, axis, mode="constant")
    half = window_length // 2
    begin = _polynomial_ends(window_length, polyorder, deriv, delta, range(half))
    end = _polynomial_ends(window_length, polyorder, deriv, delta, range(window_length - half, window_length))
    x0, y0 = _move(x, axis, 0), _move(y, axis, 0)
    flat = x0.reshape(x0.shape[0], -1)
    for rows, part, place in ((begin, flat[:window_length], slice(0, half)),
                              (end, flat[-window_length:], slice(x0.shape[0] - half, x0.shape[0]))):
        if half:
            y0[place] = (as_array(rows, x.dtype) @ part).reshape((half, *x0.shape[1:]))
    return y


def _polynomial_ends(length, degree, deriv, delta, places):
    """For each place the factors of a window's elements that make the best polynomial's derivative there."""
    fit = np.linalg.pinv(np.vander(np.arange(length), degree + 1, increasing=True))
    rows = []
    for place in places:
        power = [math.factorial(k) / math.factorial(k - deriv) * float(place)**(k - deriv) if k >= deriv else 0.0
                 for k in range(degree + 1)]
        rows.append(np.array(power) @ fit / delta**deriv)
    return np.array(rows)
