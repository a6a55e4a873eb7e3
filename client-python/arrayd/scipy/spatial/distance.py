"""Distances of points, as scipy.spatial.distance has them, on the server: those of pairs are a call of it."""
import math

import numpy as np

import arrayd as ad

from ..._base import call

__all__ = ["cdist", "pdist", "squareform", "distance_matrix", "braycurtis", "canberra", "chebyshev", "cityblock",
           "correlation", "cosine", "euclidean", "hamming", "hellinger", "jensenshannon", "kl_divergence", "minkowski",
           "russellrao", "sqeuclidean"]
# As pair_distances numbers them.
_ROWS = {name: number for number, name in enumerate(
    "sqeuclidean euclidean cityblock chebyshev minkowski canberra braycurtis hamming russellrao cosine jensenshannon "
    "kl_divergence hellinger".split())}
_TINY = float(np.finfo(np.float64).smallest_subnormal)
_MANY_COLUMNS = 64  # beyond which products of matrices take less time than pair by pair


# ---- metrics of two vectors ----

def _take_sqeuclidean(x, y):
    return ad.square(x - y).sum()


def _take_euclidean(x, y):
    return ad.sqrt(_take_sqeuclidean(x, y))


def _take_cityblock(x, y):
    return abs(x - y).sum()


def _take_chebyshev(x, y):
    return abs(x - y).max()


def _name_minkowski(p):
    """The metric that minkowski is for this p."""
    if not p > 0:
        raise ValueError("p must be greater than 0")
    return {1: "cityblock", 2: "euclidean", math.inf: "chebyshev"}.get(p, "minkowski")


def _take_minkowski(x, y, p=2):
    name = _name_minkowski(p)
    return (abs(x - y) ** p).sum() ** (1.0 / p) if name == "minkowski" else _METRICS[name](x, y)


def _take_canberra(x, y):
    return (abs(x - y) / ad.maximum(abs(x) + abs(y), _TINY)).sum()  # where both are 0 the difference is, too


def _take_braycurtis(x, y):
    return abs(x - y).sum() / abs(x + y).sum()


def _take_hamming(x, y):
    return (x != y).mean()


def _take_cosine(x, y):
    return 1 - (x * y).sum() / ad.sqrt((x * x).sum() * (y * y).sum())


def _take_correlation(x, y):
    return _take_cosine(x - x.mean(), y - y.mean())


def _relative_entropy(x, y):
    """Elements of x * log(x / y), 0 where x is 0, infinite where y alone is."""
    zero, one = ad.zeros((), x.dtype), ad.ones((), x.dtype)
    value = x * ad.log(ad.where(x > 0, x, one) / ad.where(y > 0, y, one))
    return ad.where(x == 0, zero, ad.where(y > 0, value, ad.asarray(np.inf, dtype=x.dtype)))


def _take_jensenshannon(x, y):
    x, y = x / x.sum(), y / y.sum()
    middle = (x + y) / 2
    both = (_relative_entropy(x, middle) + _relative_entropy(y, middle)).sum()
    return ad.sqrt(ad.maximum(both, 0) / 2)


def _take_kl_divergence(x, y):
    return _relative_entropy(x, y).sum()


def _take_hellinger(x, y):
    return ad.sqrt(((ad.sqrt(x) - ad.sqrt(y)) ** 2).sum()) / math.sqrt(2)


def _take_russellrao(x, y):
    return 1 - ((x != 0) & (y != 0)).mean()


_METRICS = {name[len("_take_"):]: function for name, function in list(globals().items()) if name.startswith("_take_")}
_ALIASES = {alias: name for name, aliases in {
    "cityblock": "cblock cb c", "chebyshev": "chebychev cheby cheb ch", "euclidean": "euclid eu e",
    "sqeuclidean": "sqe sqeuclid", "hamming": "matching hamm ha h", "minkowski": "mi m pnorm", "jensenshannon": "js",
    "cosine": "cos", "correlation": "co"}.items() for alias in aliases.split()}


def _find_metric(metric, kwargs):
    """The name of a metric, and p of minkowski."""
    if callable(metric):
        raise NotImplementedError("a function as metric is not supported: give the name of one")
    if not isinstance(metric, str):
        raise TypeError("2nd argument metric must be a string identifier or a function.")
    name = _ALIASES.get(metric.lower(), metric.lower())
    if name not in _METRICS:
        raise ValueError(f"Unknown Distance Metric: {metric}")
    if set(kwargs) - ({"p"} if name == "minkowski" else set()):
        raise TypeError(f"{name} has no parameters {sorted(kwargs)}")
    p = kwargs.get("p", 2)
    return _name_minkowski(p) if name == "minkowski" else name, float(p)


def _prepare_rows(name, x):
    """Rows as pair_distances takes them for a metric."""
    if name == "correlation":
        x = x - x.mean(axis=-1, keepdims=True)
    if name in ("cosine", "correlation"):
        return x / ad.sqrt(ad.square(x).sum(axis=-1, keepdims=True))
    return x / x.sum(axis=-1, keepdims=True) if name == "jensenshannon" else x


def _measure_pairs(points, metric, kwargs, shape, out):
    """Distances of the rows of two arrays, or of each two rows of one."""
    name, p = _find_metric(metric, kwargs)
    if out is not None and out.shape != shape:
        raise ValueError("Output array has incorrect shape.")
    points = [_prepare_rows(name, x.astype(np.float64, copy=False)) for x in points]
    row = "cosine" if name == "correlation" else name
    if row == "cosine" and len(points) == 2 and points[0].shape[1] > _MANY_COLUMNS:
        far = 1 - ad.clip(points[0] @ points[1].T, -1, 1)
        if out is None:
            return far
        out[...] = far
        return out
    return call("pair_distances", tuple(points), (_ROWS[row], p), out=out, dtype=np.float64)


def _as_points(X, what):
    X = ad.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"{what} must be a 2-dimensional array.")
    if X.dtype.kind == "c":
        raise ValueError(f"Unsupported dtype {X.dtype}")
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
    return _measure_pairs((XA, XB), metric, kwargs, (XA.shape[0], XB.shape[0]), out)


def pdist(X, metric="euclidean", *, out=None, **kwargs):
    """The distance of each two rows of X: of the first from all that follow, of the second, ...

    Parameters: X: array (m, d). metric: str. out: array for the result. kwargs: p of minkowski.
    Returns: ndarray (m*(m-1)/2,) of float64.
    Raises: ValueError for another metric, or other than two dimensions.
    Source: scipy.spatial.distance.pdist
    Differs: as cdist.
    """
    X = _as_points(X, "X")
    m = X.shape[0]
    return _measure_pairs((X,), metric, kwargs, (m * (m - 1) // 2,), out)


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
    return call("squareform", (X,))


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
