"""Convolutions and correlations, directly or by Fourier transforms, and filters of order statistics."""
import math
import operator

import numpy as np

from ... import _base, _core, fft
from ..._base import as_array, as_host, call, ndarray
from ..ndimage import _support

_u = _core.ufuncs
_MODES = ("full", "same", "valid")
_DIRECT = 1 << 10  # elements of the smaller array up to which sums are made directly
_DIRECT_LINE = 128  # as many of arrays of one dimension, whose transforms are cheap


def _check_mode(mode):
    if mode not in _MODES:
        raise ValueError("acceptable mode flags are 'valid', 'same', or 'full'")


def _loop_of(*arrays):
    """The type that sums are made in: integers exactly, in 64 bits."""
    kind = _base.result_type(*(a.dtype for a in arrays))
    if kind.kind in "biu":
        return np.dtype(np.int64), kind
    single = kind.name in ("float16", "bfloat16", "float32", "complex64")
    if kind.kind == "c":
        return np.dtype(np.complex64 if single else np.complex128), kind
    return np.dtype(np.float32 if single else np.float64), kind


def _is_turned(mode, shape1, shape2, axes=None):
    """Whether the arrays change places: for "valid", the second must fit into the first."""
    axes = range(len(shape1)) if axes is None else axes
    if mode != "valid" or not len(shape1):
        return False
    if all(shape1[i] >= shape2[i] for i in axes):
        return False
    if all(shape2[i] >= shape1[i] for i in axes):
        return True
    raise ValueError("For 'valid' mode, one must be at least as large as the other in every dimension")


def _centered(full, shape):
    begin = [(n - m) // 2 for n, m in zip(full.shape, shape)]
    return full[tuple(slice(b, b + m) for b, m in zip(begin, shape))]


def compact(a):
    """a, or a copy in C order."""
    from ..._array.creation import ascontiguousarray
    return ascontiguousarray(a)


def _cut(full, shape1, shape2, mode, axes=None):
    """Of a full convolution the part of a mode, in C order."""
    if mode == "full":
        return compact(full)
    if mode == "same":
        return compact(_centered(full, shape1))
    axes = range(full.ndim) if axes is None else axes
    return compact(_centered(full, [max(n, 0) if i not in axes else n - m + 1
                                    for i, (n, m) in enumerate(zip(shape1, shape2))]))


def _narrow(full, a, b):
    """Return what a transform gives in the type of a and b; float16 is too narrow for it."""
    kind = _base.result_type(a.dtype, b.dtype, np.float32) if a.dtype.kind in "fV" and b.dtype.kind in "fV" else \
        _base.result_type(a.dtype, b.dtype)
    return full.astype(kind) if kind.kind in "fc" and kind.itemsize < full.dtype.itemsize else full


def _padded(a, widths, mode="constant", value=0):
    """a with so many elements more before and behind along each axis."""
    if not any(before or behind for before, behind in widths):
        return a
    from ..._array.pad import pad
    return pad(a, widths, mode=mode, **({"constant_values": value} if mode == "constant" else {}))


def _correlate_valid(a, b, loop):
    """Sums over all places of b within a, which has been padded: as one filter, of which the inner part is kept."""
    if math.prod(b.shape) == 0 or math.prod(a.shape) == 0:
        raise ValueError("zero-size array in a convolution")
    offsets = np.stack(np.unravel_index(np.arange(b.size), b.shape), axis=1).astype(np.int64)
    weights = b.reshape(-1).astype(loop)
    result = call("correlate", (a, as_array(offsets), weights), (1, 0), dtype=loop)
    return result[tuple(slice(0, n - m + 1) for n, m in zip(a.shape, b.shape))]


def _convolve_directly(a, b, mode):
    loop, kind = _loop_of(a, b)
    if kind.char in "?e" and a.ndim > 1:
        raise ValueError("Unsupported type")
    if b.size > a.size and mode != "same":
        a, b = b, a
    if a.ndim == 1 and loop.kind in "fc":
        full = call("correlate1d", (_padded(a.astype(loop, copy=False), [(0, b.size - 1)]), b[::-1].astype(loop)),
                    (0, 1, 0, b.size - 1), dtype=loop)
        return full if full.dtype == kind else full.astype(kind)
    widths = [(m - 1, m - 1) for m in b.shape]
    full = _correlate_valid(_padded(a.astype(loop), widths), b[(slice(None, None, -1),) * b.ndim], loop)
    return full if full.dtype == kind else full.astype(kind)


def choose_method(a, b):
    """"direct" for few products or for integers that a transform may not give exactly, else "fft"."""
    kinds = a.dtype.kind + b.dtype.kind
    if not set(kinds) - set("biu"):
        return "direct"
    if a.ndim > 1 and a.dtype == b.dtype == np.float16:
        return "fft"  # SciPy has no sums of its own for these
    return "direct" if min(a.size, b.size) <= (_DIRECT if a.ndim > 1 else _DIRECT_LINE) else "fft"


def _method_of(a, b, method):
    if method == "auto":
        return choose_method(a, b)
    if method not in ("direct", "fft"):
        raise ValueError("Acceptable method flags are 'auto', 'direct', or 'fft'.")
    return method


def _check_pair(in1, in2, name):
    a, b = as_array(in1), as_array(in2)
    if a.ndim != b.ndim:
        raise ValueError(f"{name} should have the same dimensionality")
    return a, b


def convolve(in1, in2, mode="full", method="auto"):
    """Convolution of two arrays of as many dimensions.

    Parameters: in1, in2: arrays. mode: "full"; "same", of in1's shape; "valid", without what needs zeros beyond the
    edges. method: "direct", "fft", or "auto", the faster one.
    Returns: ndarray.
    Raises: ValueError for arrays or a mode that do not fit.
    Source: scipy.signal.convolve
    """
    a, b = _check_pair(in1, in2, "volume and kernel")
    if a.ndim == 0:
        return a * b
    if method not in ("auto", "direct", "fft"):
        raise ValueError("Acceptable method flags are 'auto', 'direct', or 'fft'.")
    _check_mode(mode)
    if _is_turned(mode, a.shape, b.shape):
        a, b = b, a
    if a.size == 0 or b.size == 0:
        return _base.empty((0,), _base.result_type(a.dtype, b.dtype))
    if _method_of(a, b, method) == "fft":
        result = (oaconvolve if a.ndim == 1 else fftconvolve)(a, b, mode)
        kind = _base.result_type(a.dtype, b.dtype)
        if kind.kind in "biu":
            result = _u["rint"](result)
        return result.astype(kind)
    return _cut(_convolve_directly(a, b, mode), a.shape, b.shape, mode)


def correlate(in1, in2, mode="full", method="auto"):
    """Correlation of two arrays of as many dimensions: of in1 with the conjugate of in2.

    Parameters: as convolve.
    Returns: ndarray.
    Raises: as convolve.
    Source: scipy.signal.correlate
    """
    a, b = _check_pair(in1, in2, "in1 and in2")
    if a.ndim == 0:
        return a * _u["conjugate"](b)
    _check_mode(mode)
    b = _u["conjugate"](b) if b.dtype.kind == "c" else b
    return convolve(a, b[(slice(None, None, -1),) * a.ndim], mode, method)


def correlation_lags(in1_len, in2_len, mode="full"):
    """How far in2 is moved for each element of a 1-d correlation.

    Parameters: in1_len, in2_len: lengths. mode: as convolve.
    Returns: int64 ndarray.
    Raises: ValueError for a mode that there is not.
    Source: scipy.signal.correlation_lags
    """
    full = np.arange(-in2_len + 1, in1_len)
    if mode == "full":
        return as_array(full)
    if mode == "same":
        middle, half = full.size // 2, in1_len // 2
        return as_array(full[middle - half:middle + half + in1_len % 2].copy())
    if mode == "valid":
        bound = in1_len - in2_len
        return as_array(np.arange(bound + 1) if bound >= 0 else np.arange(bound, 1))
    raise ValueError("acceptable mode flags are 'valid', 'same', or 'full'")


# ---- by Fourier transforms ----

def next_length(n):
    """The least length from n on whose factors are 2, 3 and 5."""
    best = 1 << max(n - 1, 0).bit_length()
    five = 1
    while five < best:
        three = five
        while three < best:
            rest = -(-n // three)
            best = min(best, three << max(rest - 1, 0).bit_length())
            three *= 3
        five *= 5
    return best


def _axes_of(a, b, axes):
    if axes is None:
        axes = tuple(range(a.ndim))
    axes = (axes,) if np.isscalar(axes) else axes
    axes = tuple(operator.index(axis) for axis in axes)
    if any(not -a.ndim <= axis < a.ndim for axis in axes):
        raise ValueError("axes exceeds dimensionality of input")
    axes = tuple(axis % a.ndim for axis in axes)
    if not axes and a.ndim:
        raise ValueError("when provided, axes cannot be empty")
    if len(set(axes)) != len(axes):
        raise ValueError("all axes must be unique")
    for i in range(a.ndim):
        if i not in axes and a.shape[i] != b.shape[i] and 1 not in (a.shape[i], b.shape[i]):
            raise ValueError(f"incompatible shapes for in1 and in2: {a.shape} and {b.shape}")
    return tuple(i for i in axes if a.shape[i] != 1 and b.shape[i] != 1)


def fftconvolve(in1, in2, mode="full", axes=None):
    """Convolution by Fourier transforms.

    Parameters: in1, in2, mode: as convolve. axes: those to convolve along, all unless given.
    Returns: ndarray of floats.
    Raises: ValueError for arrays, a mode or axes that do not fit.
    Source: scipy.signal.fftconvolve
    """
    a, b = as_array(in1), as_array(in2)
    if a.ndim == b.ndim == 0:
        return a * b
    if a.ndim != b.ndim:
        raise ValueError("in1 and in2 should have the same dimensionality")
    if a.size == 0 or b.size == 0:
        return _base.empty((0,), _base.result_type(a.dtype, b.dtype))
    _check_mode(mode)
    axes = _axes_of(a, b, axes)
    if _is_turned(mode, a.shape, b.shape, axes):
        a, b = b, a
    kept = a.shape if mode == "same" else [max(n, m) if i not in axes else n
                                           for i, (n, m) in enumerate(zip(a.shape, b.shape))]
    if not axes:
        return _cut(a * b, kept, b.shape, mode, axes)
    sizes = [a.shape[i] + b.shape[i] - 1 for i in axes]
    fast = [next_length(n) for n in sizes]
    if "c" in (a.dtype.kind, b.dtype.kind):
        full = fft.ifftn(fft.fftn(a, fast, axes) * fft.fftn(b, fast, axes), axes=axes)
    else:
        full = fft.irfftn(fft.rfftn(a, fast, axes) * fft.rfftn(b, fast, axes), fast, axes)
    cut = [slice(None)] * full.ndim
    for axis, size in zip(axes, sizes):
        cut[axis] = slice(0, size)
    return _cut(_narrow(full[tuple(cut)], a, b), kept, b.shape, mode, axes)


def oaconvolve(in1, in2, mode="full", axes=None):
    """Convolution by Fourier transforms of pieces, for arrays of very different lengths.

    Parameters: as fftconvolve.
    Returns: ndarray of floats.
    Raises: as fftconvolve.
    Source: scipy.signal.oaconvolve
    """
    a, b = as_array(in1), as_array(in2)
    if a.ndim != b.ndim or a.ndim != 1 or mode not in _MODES or min(a.size, b.size) < 1:
        return fftconvolve(in1, in2, mode, axes)
    _axes_of(a, b, axes)
    long, short = (a, b) if a.size >= b.size else (b, a)
    if long.size < 8 * short.size or short.size < 2:
        return fftconvolve(a, b, mode, axes)
    full = _add_pieces(long, short)
    if _is_turned(mode, a.shape, b.shape):
        a, b = b, a
    return _cut(_narrow(full, a, b), a.shape, b.shape, mode)


def _add_pieces(long, short):
    """The full convolution: pieces are transformed as rows, and their ends added to the next piece's beginning."""
    points = next_length(8 * short.size)
    step = points - short.size + 1
    rows = -(-long.size // step)
    pieces = _padded(long, [(0, rows * step - long.size)]).reshape(rows, step)
    if "c" in (long.dtype.kind, short.dtype.kind):
        made = fft.ifft(fft.fft(pieces, points) * fft.fft(short, points))
    else:
        made = fft.irfft(fft.rfft(pieces, points) * fft.rfft(short, points), points)
    out = _base.zeros((rows + 1, step), made.dtype)
    out[:rows] = made[:, :step]
    out[1:, :points - step] += made[:, step:]
    return out.reshape(-1)[:long.size + short.size - 1]


# ---- two dimensions ----

_BOUNDARIES = {"fill": "constant", "pad": "constant", "wrap": "wrap", "circular": "wrap", "symm": "symmetric",
               "symmetric": "symmetric"}


def _filter_plane(name, a, b, mode, boundary, fillvalue, before):
    """Sums over b, turned round, at each place of a, with what stands beyond its edges. before: of an even number of
    weights, how many more lie before the middle in mode "same"."""
    if a.ndim != 2 or b.ndim != 2:
        raise ValueError("convolve2d inputs must both be 2-D arrays")
    if mode not in _MODES:
        raise ValueError("Acceptable mode flags are 'valid', 'same', or 'full'.")
    if boundary not in _BOUNDARIES:
        raise ValueError("Acceptable boundary flags are 'fill', 'circular' (or 'wrap'), and 'symmetric' (or 'symm').")
    if np.size(as_host(fillvalue, "fillvalue")) != 1:
        raise ValueError("fillvalue must be scalar or an array with one element")
    loop, kind = _loop_of(a, b)
    if kind.char in "?e":
        raise ValueError(f"{name} not available for this type.")
    fill = as_host(fillvalue, "fillvalue").reshape(-1)[0]
    widths = [(0, 0) if mode == "valid" else (m - 1, m - 1) for m in b.shape]
    padded = _padded(a.astype(loop), widths, _BOUNDARIES[boundary], fill)
    full = _correlate_valid(padded, b[::-1, ::-1], loop)
    full = full if full.dtype == kind else full.astype(kind)
    if mode == "same":
        begin = [(m - 1 + before) // 2 for m in b.shape]
        full = full[begin[0]:begin[0] + a.shape[0], begin[1]:begin[1] + a.shape[1]]
    return compact(full)


def convolve2d(in1, in2, mode="full", boundary="fill", fillvalue=0):
    """Convolution of two 2-d arrays.

    Parameters: in1, in2, mode: as convolve. boundary: what stands beyond in1's edges: "fill", "wrap" or "symm".
    fillvalue: of "fill".
    Returns: ndarray.
    Raises: ValueError for arrays, a mode or a boundary that do not fit.
    Source: scipy.signal.convolve2d
    """
    a, b = as_array(in1), as_array(in2)
    if a.ndim == b.ndim == 2 and _is_turned(mode, a.shape, b.shape):
        a, b = b, a
    return _filter_plane("convolve2d", a, b, mode, boundary, fillvalue, 0)


def correlate2d(in1, in2, mode="full", boundary="fill", fillvalue=0):
    """Correlation of two 2-d arrays.

    Parameters: as convolve2d.
    Returns: ndarray.
    Raises: as convolve2d.
    Source: scipy.signal.correlate2d
    """
    a, b = as_array(in1), as_array(in2)
    if a.ndim != 2 or b.ndim != 2:
        raise ValueError("correlate2d inputs must both be 2-D arrays")
    turned = _is_turned(mode, a.shape, b.shape)
    if turned:
        a, b = b, a
    b = (_u["conjugate"](b) if b.dtype.kind == "c" else b)[::-1, ::-1]
    result = _filter_plane("correlate2d", a, b, mode, boundary, fillvalue, 1)
    return compact(result[::-1, ::-1]) if turned else result  # not conjugated again: as SciPy's


def sepfir2d(input, hrow, hcol):
    """A 2-d filter of a row's and a column's weights; beyond the edges it is reflected.

    Parameters: input: 2-d array. hrow, hcol: weights, of odd length.
    Returns: ndarray.
    Raises: ValueError for arrays that do not fit.
    Source: scipy.signal.sepfir2d
    """
    from ..ndimage import convolve1d
    input, hrow, hcol = as_array(input), as_array(hrow), as_array(hcol)
    if input.ndim != 2 or hrow.ndim != 1 or hcol.ndim != 1:
        raise ValueError("object of too small depth for desired array")
    if hrow.size % 2 == 0 or hcol.size % 2 == 0:
        raise ValueError("hrow and hcol must be odd length")
    kind = np.promote_types(input.dtype, np.float32)
    return convolve1d(convolve1d(input.astype(kind), hrow, 1), hcol, 0)


# ---- order statistics ----

def order_filter(a, domain, rank):
    """The element of a rank of windows, with zeros beyond the edges.

    Parameters: a: array. domain: which elements the window has, of odd sizes. rank: from 0 for the least.
    Returns: ndarray.
    Raises: ValueError for a domain of even sizes.
    Source: scipy.signal.order_filter
    """
    from ..ndimage import rank_filter
    domain = as_host(domain, "domain")
    if any(n % 2 != 1 for n in domain.shape):
        raise ValueError("Each dimension of domain argument should have an odd number of elements.")
    a = as_array(a)
    return rank_filter(a, rank, footprint=domain, mode="constant")


def _kernel_size(kernel_size, ndim):
    size = np.asarray(3 if kernel_size is None else as_host(kernel_size, "kernel_size"))
    size = np.repeat(size.reshape(-1), ndim) if size.size == 1 else size
    if any(n % 2 != 1 for n in size.reshape(-1).tolist()):
        raise ValueError("Each element of kernel_size should be odd.")
    return tuple(int(n) for n in size.reshape(-1))


def medfilt(volume, kernel_size=None):
    """Median of windows, with zeros beyond the edges.

    Parameters: volume: array. kernel_size: of the windows, odd: one for all axes, or one for each; 3 unless given.
    Returns: ndarray.
    Raises: ValueError for an even size, and for bool, float16 and complex numbers.
    Source: scipy.signal.medfilt
    """
    from ..ndimage import median_filter
    volume = as_array(volume)
    volume = volume if volume.ndim else volume.reshape(1)
    if volume.dtype.kind in "cb" or volume.dtype == np.float16:
        raise ValueError(f"dtype={volume.dtype} is not supported by medfilt")
    return median_filter(volume, _kernel_size(kernel_size, volume.ndim), mode="constant")


def medfilt2d(input, kernel_size=3):
    """Median of windows of a 2-d array, with zeros beyond the edges.

    Parameters: input: array. kernel_size: as medfilt.
    Returns: ndarray.
    Raises: as medfilt.
    Source: scipy.signal.medfilt2d
    """
    input = as_array(input)
    if input.ndim != 2:
        raise ValueError("image must have 2 dimensions")
    return medfilt(input, kernel_size)


def wiener(im, mysize=None, noise=None):
    """Wiener filter: the less an element's surroundings vary, the nearer it is to their mean.

    Parameters: im: array. mysize: of the surroundings, odd: one for all axes, or one for each; 3 unless given. noise: its
    power; the mean of the variances unless given.
    Returns: ndarray.
    Raises: as correlate.
    Source: scipy.signal.wiener
    """
    from ..._array.indexing import where
    from ..ndimage import correlate1d
    im = as_array(im)
    sizes = [int(n) for n in _support.repeat_argument(3 if mysize is None else as_host(mysize, "mysize").tolist(), im.ndim)]
    x = im.astype(np.complex128 if im.dtype.kind == "c" else np.float64)

    def find_mean(values):
        for axis, size in enumerate(sizes):
            values = correlate1d(values, np.ones(size), axis, mode="constant")
        return values / math.prod(sizes)
    middle = find_mean(x)
    spread = find_mean(x * x) - middle * middle
    noise = _core.reduce("mean", spread) if noise is None else noise
    result = (x - middle) * (1 - noise / spread) + middle
    return where(spread < noise, middle, result)
