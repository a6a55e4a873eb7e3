"""Distances of points, as scipy.spatial.distance has them, on the server: pairs are taken in blocks that fit its memory."""
import functools
import math
import operator

import numpy as np

import arrayd as ad

__all__ = ["cdist", "pdist", "squareform", "distance_matrix", "braycurtis", "canberra", "chebyshev", "cityblock",
           "correlation", "cosine", "euclidean", "hamming", "hellinger", "jensenshannon", "kl_divergence", "minkowski",
           "russellrao", "sqeuclidean"]
_BLOCK = 1 << 24       # elements of a block of differences
_MOST_COLUMNS = 64     # that are joined one by one
_TINY = float(np.finfo(np.float64).smallest_subnormal)
_PARTS = 8             # of the pairs of points of one array: of pairs of the points of a part half are made for nothing


# ---- metrics: of x (..., d) and y (..., d), which are broadcast ----

def _join(term, x, y, join=operator.add, reduce=ad.sum):
    """The terms of all columns, joined. Those of many pairs of points are never stored: each column's are one chain of
    operations with the columns before it."""
    if x.ndim < 3 or not 0 < x.shape[-1] <= _MOST_COLUMNS:
        return reduce(term(x, y), axis=-1)
    columns = ad.moveaxis(y, -1, 0).copy()
    return functools.reduce(join, (term(x[..., k], column) for k, column in enumerate(columns)))


def _multiply_pairs(x, y):
    """The sums of products of each pair of points."""
    return x[:, 0] @ y[0].T if x.ndim == 3 else (x * y).sum(axis=-1)


def _take_sqeuclidean(x, y):
    return _join(lambda x, y: ad.square(x - y), x, y)


def _take_euclidean(x, y):
    return ad.sqrt(_take_sqeuclidean(x, y))


def _take_cityblock(x, y):
    return _join(lambda x, y: abs(x - y), x, y)


def _take_chebyshev(x, y):
    return _join(lambda x, y: abs(x - y), x, y, ad.maximum, ad.max)


def _take_minkowski(x, y, p=2):
    if p <= 0:
        raise ValueError("p must be greater than 0")
    if p == math.inf:
        return _take_chebyshev(x, y)
    if p in (1, 2):
        return _take_cityblock(x, y) if p == 1 else _take_euclidean(x, y)
    return _join(lambda x, y: abs(x - y) ** p, x, y) ** (1.0 / p)


def _divide_by_sizes(x, y):
    return abs(x - y) / ad.maximum(abs(x) + abs(y), _TINY)  # where both are 0 the difference is, too


def _take_canberra(x, y):
    return _join(_divide_by_sizes, x, y)


def _take_braycurtis(x, y):
    return _join(lambda x, y: abs(x - y), x, y) / _join(lambda x, y: abs(x + y), x, y)


def _take_hamming(x, y):
    return _join(lambda x, y: (x != y).astype(x.dtype), x, y) / x.shape[-1]


def _take_cosine(x, y):
    return 1 - _multiply_pairs(x, y) / ad.sqrt((x * x).sum(axis=-1) * (y * y).sum(axis=-1))


def _take_correlation(x, y):
    return _take_cosine(x - x.mean(axis=-1, keepdims=True), y - y.mean(axis=-1, keepdims=True))


def _relative_entropy(x, y):
    """Elements of x * log(x / y), 0 where x is 0, infinite where y alone is."""
    zero, one = ad.zeros((), x.dtype), ad.ones((), x.dtype)
    value = x * ad.log(ad.where(x > 0, x, one) / ad.where(y > 0, y, one))
    return ad.where(x == 0, zero, ad.where(y > 0, value, ad.asarray(np.inf, dtype=x.dtype)))


def _take_jensenshannon(x, y):
    x, y = x / x.sum(axis=-1, keepdims=True), y / y.sum(axis=-1, keepdims=True)
    middle = (x + y) / 2
    both = (_relative_entropy(x, middle) + _relative_entropy(y, middle)).sum(axis=-1)
    return ad.sqrt(ad.maximum(both, 0) / 2)


def _take_kl_divergence(x, y):
    return _relative_entropy(x, y).sum(axis=-1)


def _take_hellinger(x, y):
    return ad.sqrt(((ad.sqrt(x) - ad.sqrt(y)) ** 2).sum(axis=-1)) / math.sqrt(2)


def _take_russellrao(x, y):
    return 1 - _join(lambda x, y: ((x != 0) & (y != 0)).astype(x.dtype), x, y) / x.shape[-1]


_METRICS = {name[len("_take_"):]: function for name, function in list(globals().items()) if name.startswith("_take_")}
_ALIASES = {alias: name for name, aliases in {
    "cityblock": "cblock cb c", "chebyshev": "chebychev cheby cheb ch", "euclidean": "euclid eu e",
    "sqeuclidean": "sqe sqeuclid", "hamming": "matching hamm ha h", "minkowski": "mi m pnorm", "jensenshannon": "js",
    "cosine": "cos", "correlation": "co"}.items() for alias in aliases.split()}


def _find_metric(metric, kwargs):
    if callable(metric):
        raise NotImplementedError("a function as metric is not supported: give the name of one")
    if not isinstance(metric, str):
        raise TypeError("2nd argument metric must be a string identifier or a function.")
    name = _ALIASES.get(metric.lower(), metric.lower())
    if name not in _METRICS:
        raise ValueError(f"Unknown Distance Metric: {metric}")
    if set(kwargs) - ({"p"} if name == "minkowski" else set()):
        raise TypeError(f"{name} has no parameters {sorted(kwargs)}")
    return lambda x, y: _METRICS[name](x, y, **kwargs)


def _as_points(X, what):
    X = ad.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"{what} must be a 2-dimensional array.")
    return X.astype(X.dtype if X.dtype.char in "fd" else np.float64, copy=False)


def cdist(XA, XB, metric="euclidean", *, out=None, **kwargs):
    """The distance of each row of XA from each row of XB.

    Parameters: XA, XB: arrays (m, d) and (n, d). metric: str. out: array for the result. kwargs: p of minkowski.
    Returns: ndarray (m, n) of float64.
    Raises: ValueError for another metric, or where shapes do not fit.
    Source: scipy.spatial.distance.cdist
    Differs: no function as metric, and no weights; metrics with parameters of the data (seuclidean, mahalanobis) are not there.
    """
    XA, XB = _as_points(XA, "XA"), _as_points(XB, "XB")
    if XA.shape[1] != XB.shape[1]:
        raise ValueError("XA and XB must have the same number of columns (i.e. feature dimension.)")
    function, (m, d), n = _find_metric(metric, kwargs), XA.shape, XB.shape[0]
    if out is not None and out.shape != (m, n):
        raise ValueError("Output array has incorrect shape.")
    result = ad.empty((m, n)) if out is None else out
    XA, XB = XA.astype(np.float64, copy=False), XB.astype(np.float64, copy=False)
    step = max(1, _BLOCK // max(1, n * d))
    for first in range(0, m, step):
        result[first:first + step] = function(XA[first:first + step, None, :], XB[None])
    return result


def pdist(X, metric="euclidean", *, out=None, **kwargs):
    """The distance of each two rows of X: of the first from all that follow, of the second, ...

    Parameters: X: array (m, d). metric: str. out: array for the result. kwargs: p of minkowski.
    Returns: ndarray (m*(m-1)/2,) of float64.
    Raises: ValueError for another metric, or other than two dimensions.
    Source: scipy.spatial.distance.pdist
    Differs: as cdist.
    """
    X = _as_points(X, "X").astype(np.float64, copy=False)
    function, (m, d), end = _find_metric(metric, kwargs), X.shape, 0
    shape = (m * (m - 1) // 2,)
    if out is not None and out.shape != shape:
        raise ValueError("Output array has incorrect shape.")
    result = ad.empty(shape) if out is None else out
    step = max(1, min(_BLOCK // max(1, m * d), -(-m // _PARTS)))
    for first in range(0, m - 1, step):
        last = min(first + step, m - 1)
        chosen = _choose_later(function(X[first:last, None, :], X[None, first + 1:]))
        result[end:end + chosen.size] = chosen
        end += chosen.size
    return result


def _choose_later(distances):
    """The elements on and right of the diagonal, row by row."""
    rows, n = np.arange(distances.shape[0]), distances.shape[1]
    counts = n - rows
    steps = ad.ones(int(counts.sum()), np.int64)  # from one place to the next; to a row's first one as many as are left out
    steps[np.cumsum(counts) - counts] = rows + (rows > 0)
    return distances.reshape(-1)[ad.cumsum(steps)]


def squareform(X):
    """Distances of pairs, as pdist gives them, as a symmetric matrix; or the other way round.

    Parameters: X: array of one or two dimensions.
    Returns: ndarray.
    Raises: ValueError for a length that no number of points has, or what is not square.
    Source: scipy.spatial.distance.squareform
    """
    X = ad.asarray(X)
    if X.ndim == 2:
        if X.shape[0] != X.shape[1]:
            raise ValueError("The matrix argument must be square.")
        return X[ad.triu_indices(X.shape[0], 1)]
    if X.ndim != 1:
        raise ValueError("The first argument must be one or two dimensional array.")
    n = int(math.ceil(math.sqrt(X.size * 2)))
    n = max(n, 1)
    if n * (n - 1) != X.size * 2:
        raise ValueError("Incompatible vector size. It must be a binomial coefficient n choose 2 for some integer n >= 2.")
    if X.size == 0:
        return ad.zeros((n, n), X.dtype)
    place = ad.arange(n)
    before = place * (2 * n - place - 1) // 2 - place - 1  # of the pairs of a row the place, but for the column
    upper = X[before[:, None] + place]  # right of the diagonal; what else is read is not used
    row, zero = place[:, None], ad.zeros((), X.dtype)
    return ad.where(row < place, upper, ad.where(row > place, upper.T, zero))


def distance_matrix(x, y, p=2.0, threshold=1000000):
    """The Minkowski distance of each row of x from each row of y.

    Parameters: x, y: arrays (m, d) and (n, d). p: number. threshold: ignored.
    Returns: ndarray (m, n).
    Raises: ValueError where the numbers of columns differ.
    Source: scipy.spatial.distance_matrix
    """
    x, y = _as_points(x, "x"), _as_points(y, "y")
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"x contains {x.shape[1]}-dimensional vectors but y contains {y.shape[1]}-dimensional vectors")
    return cdist(x, y, "minkowski", p=p)


def _as_vectors(u, v):
    u, v = (ad.asarray(a) for a in (u, v))
    u, v = (a.reshape(-1) if a.ndim == 2 and a.shape[0] == 1 else a for a in (u, v))
    if u.ndim != 1 or v.ndim != 1:
        raise ValueError("Input vector should be 1-D.")
    return u.astype(np.float64, copy=False), v.astype(np.float64, copy=False)


def _make_function(name):
    def function(u, v):
        return _METRICS[name](*_as_vectors(u, v))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""The {name} distance of two vectors.

    Parameters: u, v: arrays of one dimension.
    Returns: ndarray, without dimensions.
    Raises: ValueError for other than one dimension.
    Source: scipy.spatial.distance.{name}
    """
    return function


for _name in __all__:
    if _name in _METRICS and _name != "minkowski":
        globals()[_name] = _make_function(_name)
del _name


def minkowski(u, v, p=2):
    """The Minkowski distance of two vectors.

    Parameters: u, v: arrays of one dimension. p: number.
    Returns: ndarray, without dimensions.
    Raises: ValueError for other than one dimension, or p of 0 or less.
    Source: scipy.spatial.distance.minkowski
    """
    return _take_minkowski(*_as_vectors(u, v), p)
