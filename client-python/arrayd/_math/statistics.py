"""Averages, covariance, counting."""
import builtins
import operator
import warnings

import numpy as np

from .. import _base, _core
from .._base import as_array, call, ndarray, no_value, normalize_axes, reduce

_u = _core.ufuncs


def average(a, axis=None, weights=None, returned=False, *, keepdims=no_value):
    """Weighted mean along axes.

    Parameters: a: array. axis: axis or tuple of axes, all unless given. weights: of a's shape, or of the axes'
    sizes; the plain mean unless given. returned: also return the sums of the weights. keepdims: keep the axes, with
    size 1.
    Returns: ndarray, with returned a tuple of it and the sums of the weights.
    Raises: TypeError or ValueError when weights do not fit. Weights that sum to zero give NaN or inf: NumPy's
    ZeroDivisionError would take waiting.
    Source: numpy.average
    """
    a = as_array(a)
    keep = keepdims is not no_value and bool(keepdims)
    axes = normalize_axes(axis, a.ndim)
    if weights is None:
        result = reduce("mean", a, axes, keepdims=keep)
        if not returned:
            return result
        scale = _core.full(result.shape, _base.product(a.shape[i] for i in axes), result.dtype)
    else:
        weights = _fit_weights(a, as_array(weights), axis, axes)
        kind = _base.result_type(a.dtype, weights.dtype, *((float,) if a.dtype.kind in "biu" else ()))
        scale = reduce("sum", weights, axes, kind, keepdims=keep)
        result = reduce("sum", _u["multiply"](a, weights, dtype=kind), axes, keepdims=keep) / scale
    if not returned:
        return result
    return result, (scale if scale.shape == result.shape else scale + 0 * result)


def _fit_weights(a, weights, axis, axes):
    """weights as a view of a's number of dimensions that broadcasts to it, repeated where they would be summed."""
    if weights.shape == a.shape:
        return weights
    if axis is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    if weights.shape != tuple(a.shape[i] for i in axes):
        raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
    order = sorted(range(len(axes)), key=lambda i: axes[i])
    from .._array.manipulation import broadcast_to
    spread = weights.transpose(order).reshape(tuple(n if i in axes else 1 for i, n in enumerate(a.shape)))
    return broadcast_to(spread, a.shape)


def cov(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, *, dtype=None):
    """Covariance matrix.

    Parameters: m: variables in rows, observations in columns; 1-d for one variable. y: more variables. rowvar: False
    when variables are columns. bias: divide by n instead of n - 1. ddof: divide by n - ddof. fweights: how often each
    observation counts, ints. aweights: weight of each observation. dtype: type of the result.
    Returns: ndarray of shape (variables, variables), 0-d for one.
    Raises: ValueError for more than 2 dimensions or weights that do not fit; TypeError for a dtype of integers. Warns
    RuntimeWarning where no more observations are left than ddof takes away.
    Source: numpy.cov
    """
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    x = _variables(m, rowvar)
    if x.shape[0] == 0:
        return _base.zeros((0, 0), float)
    if y is not None:
        y = as_array(y)
        x = _joined(x, _variables(y, rowvar or y.shape[0] == 1))
    kind = np.dtype(dtype) if dtype is not None else _base.result_type(x.dtype, np.float64)
    x = as_array(x, kind)
    ddof = (0 if bias else 1) if ddof is None else ddof
    weights = _observation_weights(fweights, aweights, x.shape[1])
    if weights is None:
        mean, factor = reduce("mean", x, 1, keepdims=True), x.shape[1] - ddof
        if factor <= 0:
            warnings.warn("Degrees of freedom <= 0 for slice", RuntimeWarning, stacklevel=2)
            factor = 0.0
        _check_covariance(kind)
        right = x = x - mean
    else:
        _check_covariance(kind)
        total = reduce("sum", weights)
        mean = reduce("sum", x * weights, 1, keepdims=True) / total
        factor = _weighted_factor(weights, total, ddof, aweights)
        x = x - mean
        right = x * weights
    right = _u["conjugate"](right) if kind.kind == "c" else right
    result = _base.matrix_product(x, as_array(right, x.dtype).transpose()) / factor
    return result.reshape(()) if result.size == 1 else result


def _check_covariance(kind):
    """TypeError for a type that does not hold distances to a mean."""
    if kind.kind not in _base.INEXACT:
        raise TypeError(f"dtype must be a type of floats or complex numbers, not {kind}")


def _variables(m, rowvar):
    m = as_array(m)
    if m.ndim > 2:
        raise ValueError("m has more than 2 dimensions")
    if m.ndim < 2:
        return m.reshape(1, -1)
    return m if rowvar else m.transpose()


def _joined(x, y):
    from .._array.joining import concatenate
    return concatenate([x, y], 0)


def _observation_weights(fweights, aweights, count):
    weights = None
    for name, one in (("fweights", fweights), ("aweights", aweights)):
        if one is None:
            continue
        if not isinstance(one, ndarray):
            one = _known_weights(name, np.asarray(one, float))
        elif name == "fweights" and one.dtype.kind not in "iu":
            raise TypeError("fweights must be integer")
        one = as_array(one)
        if one.ndim > 1:
            raise RuntimeError(f"cannot handle multidimensional {name}")
        if one.size != count:
            raise RuntimeError(f"incompatible numbers of samples and {name}")
        one = as_array(one, float)
        weights = one if weights is None else weights * one
    return weights


def _known_weights(name, one):
    """Weights of this side, which can be looked at."""
    if name == "fweights" and (one != np.around(one)).any():
        raise TypeError("fweights must be integer")
    if (one < 0).any():
        raise ValueError(f"{name} cannot be negative")
    return one


def _weighted_factor(weights, total, ddof, aweights):
    if ddof == 0:
        return total
    if aweights is None:
        return total - ddof
    return total - ddof * reduce("sum", weights * as_array(aweights)) / total


def corrcoef(x, y=None, rowvar=True, *, dtype=None):
    """Correlation coefficients.

    Parameters: x, y, rowvar, dtype: as cov.
    Returns: ndarray of shape (variables, variables), 0-d for one.
    Raises: ValueError for more than 2 dimensions.
    Source: numpy.corrcoef
    """
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    deviation = _u["sqrt"](c.diagonal().real)
    c = c / deviation[:, None] / deviation[None, :]
    if c.dtype.kind == "c":
        for part in (c.real, c.imag):
            _u["clip"](part, -1, 1, out=part)
        return c
    return _u["clip"](c, -1, 1)


def bincount(x, /, weights=None, minlength=0):
    """How often each of 0, 1, 2, ... occurs; costs a round trip (the largest value).

    Parameters: x: 1-d array of ints that are not negative. weights: count these instead of ones. minlength: least
    length of the result.
    Returns: ndarray of shape (max(x.max() + 1, minlength),), int64, or float64 with weights unless x is empty.
    Raises: ValueError for more dimensions, negative ints or weights that do not fit; TypeError for other types.
    Source: numpy.bincount
    """
    given, x = x, as_array(x)
    minlength = operator.index(minlength)
    if minlength < 0:
        raise ValueError("'minlength' must not be negative")
    if x.ndim != 1:
        raise ValueError(f"object {'too deep' if x.ndim else 'of too small depth'} for desired array")
    if x.dtype.kind not in "biu":
        if x.size or isinstance(given, (ndarray, np.ndarray)):
            raise TypeError(f"Cannot cast array data from {x.dtype!r} to dtype('int64') according to the rule 'safe'")
    x = as_array(x, np.int64)
    if weights is not None:
        weights = as_array(weights)
        if weights.dtype.kind == "c":
            raise TypeError(f"Cannot cast array data from {weights.dtype!r} to dtype('float64') according to the rule "
                            "'safe'")
        weights = as_array(weights, float)
        if weights.shape != x.shape:
            raise ValueError("The weights and list don't have the same length.")
    if not x.size:
        return _base.zeros((minlength,), np.int64)
    low, high = _ends(x)
    if low < 0:
        raise ValueError("'list' argument must have no negative elements")
    return _counts(x, weights, max(minlength, high + 1))


def _ends(x):
    """Least and greatest element, by one round trip."""
    both = _base.zeros((2,), x.dtype)
    reduce("min", x, out=both[0])
    reduce("max", x, out=both[1])
    return both.get().tolist()


def _counts(x, weights, length):
    out = _base.zeros((length,), np.int64 if weights is None else np.float64)
    if x.size:
        call("bincount", (x,) if weights is None else (x, weights), out=out, dtype=out.dtype)
    return out


def digitize(x, bins, right=False):
    """For each element the number of the bin that it falls into.

    Parameters: x: real array. bins: edges, 1-d, ascending or descending (checked only when they are on this side).
    right: whether a bin holds its right edge instead of its left.
    Returns: int64 ndarray of x's shape.
    Raises: ValueError for bins that are not monotonic; TypeError for complex elements.
    Source: numpy.digitize
    """
    x = as_array(x)
    if x.dtype.kind == "c":
        raise TypeError("x may not be complex")
    from .sorting import searchsorted
    side = "left" if right else "right"
    if not isinstance(bins, ndarray):
        host = np.asarray(bins)
        np.digitize(0, host)
        if host.size > 1 and _falls(host[0], host[1:][np.argmax(host[1:] != host[0])]):
            return host.size - searchsorted(host[::-1], x, side)
        return searchsorted(host, x, side)
    if bins.size < 2:
        return searchsorted(bins, x, side)
    down = bins.size - searchsorted(bins[::-1], x, side)
    other = bins[1:][reduce("argmax", bins[1:] != bins[0])]
    return _u["where"](_falls(bins[0], other), down, searchsorted(bins, x, side))


def _falls(first, other):
    """Whether bins descend of which the first edge that is not equal to the first one is other: NaN comes last."""
    return (other != first) & ~(first < other)


def histogram_bin_edges(a, bins=10, range=None, weights=None):
    """The edges of the bins of a histogram.

    Parameters: a: array. bins: how many of equal width, or the edges. range: (least, greatest) edge; those of a
    unless given. weights: accepted, as numpy.
    Returns: ndarray of shape (bins + 1,).
    Raises: ValueError for fewer than 1 bin or edges that are not ascending.
    Source: numpy.histogram_bin_edges
    """
    a = _real(as_array(a)).reshape(-1)
    if isinstance(bins, str):
        raise TypeError("bins by the name of a rule: give a number or the edges")
    if not (isinstance(bins, ndarray) and bins.ndim) and np.ndim(bins) == 0:
        return _uniform_edges(a, operator.index(bins), range)
    if np.ndim(bins) != 1:
        raise ValueError("`bins` must be 1d, when an array")
    if not isinstance(bins, ndarray) and (np.asarray(bins)[:-1] > np.asarray(bins)[1:]).any():
        raise ValueError("`bins` must increase monotonically, when an array")
    return as_array(bins)


def _real(a):
    if a.dtype.kind == "c":
        raise TypeError("the elements of a histogram are real numbers, not complex ones")
    return a


def _uniform_edges(a, bins, range):
    """Edges of so many bins of equal width, in the type that they share with the elements."""
    low, high = _outer_edges(a, bins, range)
    kind = _base.result_type(low, high, a)
    kind = kind if kind.kind in _base.FLOATING else _base.result_type(kind, float)
    from .._array.creation import linspace
    return linspace(low, high, bins + 1, dtype=kind)


def _outer_edges(a, bins, range):
    """The first and the last edge of so many bins: numbers, or 0-d arrays where it is a that decides."""
    if bins < 1:
        raise ValueError("`bins` must be positive, when an integer")
    if range is not None:
        low, high = range
        if low > high:
            raise ValueError("max must be larger than min in range parameter.")
        if not np.isfinite([low, high]).all():
            raise ValueError(f"supplied range of [{low}, {high}] is not finite")
        return (low - 0.5, high + 0.5) if low == high else (low, high)
    if a.size == 0:
        return 0, 1
    kind = a.dtype if a.dtype.kind in _base.FLOATING else np.dtype(float)
    low, high = (as_array(reduce(name, a), kind) for name in ("min", "max"))
    half = (low == high) * kind.type(0.5)
    return low - half, high + half


def histogram(a, bins=10, range=None, density=None, weights=None):
    """How many elements fall into each bin.

    Parameters: a: real array. bins: how many of equal width, or the edges (ascending). range: (least, greatest) edge;
    those of a unless given. density: divide so that the integral is 1. weights: of a's shape: sum these instead.
    Returns: tuple of the counts, shape (bins,), and the edges, shape (bins + 1,). A bin holds its left edge, the last
    one both. Costs no round trip, so elements that are not finite are not refused, they are not counted.
    Raises: ValueError for bins, range or weights that do not fit.
    Source: numpy.histogram
    """
    a = as_array(a)
    if weights is not None:
        weights = as_array(weights)
        if weights.shape != a.shape:
            raise ValueError("weights should have the same shape as a.")
        weights = weights.reshape(-1)
    a = _real(a).reshape(-1)
    if a.dtype.kind == "b":
        a = a.astype(np.uint8)
    edges = histogram_bin_edges(a, bins, range)
    count, kind = edges.shape[0] - 1, _base.result_type(a, edges)
    if weights is None and kind in (np.float32, np.float64) and a.size and count > 0:
        result = call("histogram", (a, edges), dtype=kind)
    else:
        result = _weighted_counts(_bin_numbers(a, edges), weights, count + 2)[1:count + 1]
    if density:
        width = (edges[1:] - edges[:-1]).astype(float)
        return result / width / reduce("sum", result), edges
    return result, edges


def _weighted_counts(where, weights, length):
    if weights is None or weights.dtype == np.float64:
        return _counts(where, weights, length)
    if weights.dtype.kind == "c":
        result = _base.zeros((length,), weights.dtype)
        result.real[...] = _counts(where, weights.real.astype(float), length)
        result.imag[...] = _counts(where, weights.imag.astype(float), length)
        return result
    return _counts(where, weights.astype(float), length).astype(weights.dtype)


def histogramdd(sample, bins=10, range=None, density=None, weights=None):
    """How many points fall into each cell of a grid.

    Parameters: sample: array of shape (points, D), or a sequence of D arrays of shape (points,). bins: how many along
    every axis, or for each axis how many or the edges. range: for each axis (least, greatest) edge or None. density:
    divide so that the integral is 1. weights: array of shape (points,): sum these instead.
    Returns: tuple of the counts, float64 ndarray with D dimensions, and a tuple of D arrays of edges.
    Raises: ValueError when bins, range or weights do not fit.
    Source: numpy.histogramdd
    """
    columns = _columns(sample)
    n = len(columns)
    if n == 0:
        raise ValueError("points of no dimensions have no histogram")
    bins = list(bins) if isinstance(bins, (list, tuple, ndarray, np.ndarray)) else [bins] * n
    if len(bins) != n:
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    range = [None] * n if range is None else list(range)
    if len(range) != n:
        raise ValueError("range argument must have one entry per dimension")
    edges = [_edges_along(x, b, r) for x, b, r in zip(columns, bins, range)]
    sizes = [edge.shape[0] + 1 for edge in edges]
    cell = 0
    for x, edge, size in zip(columns, edges, sizes):
        cell = cell * size + _bin_numbers(x, edge)
    if weights is not None:
        weights = as_array(weights).astype(float)
    counts = _counts(cell, weights, _base.product(sizes)).astype(float).reshape(sizes)
    counts = counts[(slice(1, -1),) * n]
    if density:
        total = reduce("sum", counts)
        for axis, edge in enumerate(edges):
            counts = counts / (edge[1:] - edge[:-1]).reshape((-1,) + (1,) * (n - axis - 1))
        counts = counts / total
    return counts, tuple(edges)


def _edges_along(x, bins, range):
    """The edges of an axis of histogramdd: those that are counted are of the outer edges' type, whatever x's is."""
    if _real(x).ndim != 1:
        raise ValueError("the coordinates along each axis must be 1-d")
    if np.ndim(bins):
        return histogram_bin_edges(x, bins, range)
    from .._array.creation import linspace
    bins = operator.index(bins)
    return linspace(*_outer_edges(x, bins, range), bins + 1)


def _columns(sample):
    """The coordinates of points, an array for each dimension."""
    if isinstance(sample, (list, tuple)) and any(isinstance(part, ndarray) for part in sample):
        return [as_array(part) for part in sample]
    sample = as_array(np.asarray(sample).T if isinstance(sample, (list, tuple)) else sample)
    sample = sample.reshape(-1, 1) if sample.ndim < 2 else sample
    return [sample[:, i] for i in builtins.range(sample.shape[1])]


def _bin_numbers(x, edges):
    """For each element 0 when it is below all edges, else 1 + the number of its bin; beyond the last edge bins + 1."""
    from .sorting import searchsorted
    count = edges.shape[0] - 1
    return _u["where"](x == edges[-1], count, searchsorted(edges, x, "right"))


def histogram2d(x, y, bins=10, range=None, density=None, weights=None):
    """How many points of a plane fall into each cell of a grid.

    Parameters: x, y: coordinates, arrays of shape (points,). bins: how many along both axes, [for x, for y], or edges
    of both. range, density, weights: as histogramdd.
    Returns: tuple of the counts, float64 ndarray of shape (x bins, y bins), and the edges along x and along y.
    Raises: ValueError when x and y differ in length, or as histogramdd.
    Source: numpy.histogram2d
    """
    x, y = as_array(x), as_array(y)
    if x.shape != y.shape:
        raise ValueError("x and y must have the same length.")
    if isinstance(bins, (list, tuple, ndarray, np.ndarray)) and len(bins) not in (1, 2):
        bins = [bins, bins]
    counts, edges = histogramdd([x, y], bins, range, density, weights)
    return counts, *edges
