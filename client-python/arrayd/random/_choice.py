"""Taking elements at random, and putting them in random order."""
import operator

import numpy as np

from .. import _base
from .._base import as_array, ndarray
from ._bits import permutation_of
from ._draw import draw, integers

_MANY = 1 << 24  # elements from which not all are put in order to take a few of them
_ROUNDS = 24  # of the network that a permutation is computed by
_HOST_MOST = 4096  # numbers that this process permutes at most: a small n takes many turns
_TRIALS = 1 << 26  # trials of multinomial from which they are not drawn one by one


def choice(bits, a, size, replace, p, axis, words):
    """Elements of a (or of range(a)). words: what is said about an empty number, an empty array."""
    array, n = _population(a, axis, words)
    shape = () if size is None else _base.shape_tuple(size)
    count = _base.product(shape)
    if n == 0 and count:
        raise ValueError(words[0] if array is None else words[1])
    p = None if p is None else _probabilities(p, n)
    if replace:
        index = _with_replacement(bits, n, shape, p)
    elif count > n:
        raise ValueError("Cannot take a larger sample than population when replace is False")
    elif p is None and array is None and hasattr(bits, "take_seed"):
        index = _by_bijection(n, count, bits.take_seed(_ROUNDS)).reshape(shape)
    else:
        index = _without_replacement(bits, n, count, p).reshape(shape)
    if array is None:
        return index
    from .._array.indexing import take
    return take(array, index, axis=axis)


def _population(a, axis, words):
    """The array to take from (None for range(n)), and n."""
    if not isinstance(a, (ndarray, np.ndarray, list, tuple)):
        try:
            n = operator.index(a)
        except TypeError:
            raise ValueError(f"a must be a sequence or an integer, not {type(a)}") from None
        if n < 0:
            raise ValueError(words[0])
        return None, n
    array = as_array(a)
    if array.ndim == 0:
        return _population(int(array), axis, words)
    return array, array.shape[_base.normalize_axis(axis, array.ndim)]


def _probabilities(p, n):
    """p, checked: an array of the server."""
    server = isinstance(p, ndarray)
    host = p if server else np.asarray(p, np.float64)
    if host.ndim != 1:
        raise ValueError("p must be 1-dimensional")
    if host.shape[0] != n:
        raise ValueError("a and p must have same size")
    if bool((host < 0).any()):
        raise ValueError("Probabilities are not non-negative")
    total = float(host.sum())
    if np.isnan(total):
        raise ValueError("Probabilities contain NaN")
    tolerance = max(1e-8, float(np.sqrt(np.finfo(host.dtype).eps)) if host.dtype.kind == "f" else 1e-8)
    if abs(total - 1) > tolerance:
        raise ValueError("Probabilities do not sum to 1. See Notes section of docstring for more information.")
    return as_array(host, np.float64)


def _with_replacement(bits, n, shape, p):
    if p is None:
        return integers(bits, 0, max(n, 1), shape, np.int64, False)
    from .._math.sorting import searchsorted
    steps = p.cumsum()
    u = draw(bits, "uniform", [0.0, 1.0], shape, np.dtype(np.float64))
    return searchsorted(steps / steps[-1], u, side="right")


def _without_replacement(bits, n, count, p):
    """Indices of the count smallest of n random keys: equal ones, or exponential ones divided by p."""
    if p is None:
        all_of_them = n < _MANY or count > n // 16 or hasattr(bits, "take_seed")
        return permutation_of(bits, (n,))[:count] if all_of_them else _few_of_many(bits, n, count)
    if int((p > 0).sum()) < count:
        raise ValueError("Fewer non-zero entries in p than size")
    keys = draw(bits, "exponential", [1.0], (n,), np.dtype(np.float64)) / p
    return _base.call("argsort", [keys], [0])[:count]


def _by_bijection(n, count, seed):
    """The first count numbers of a permutation of range(n), as CuPy computes them: each by itself, by a Feistel network on
    the next power of two, again while it is not below n."""
    from .._array.creation import arange
    keys = np.random.default_rng(seed).integers(0, 1 << 32, size=_ROUNDS, dtype=np.uint32).tolist()
    bits = 8 if n <= 256 else (n - 1).bit_length()
    half = bits // 2
    more = bits - half
    low_half, low_more, word = (1 << half) - 1, (1 << more) - 1, (1 << 32) - 1

    def permuted(x):
        left, right = x >> more, x & low_more
        for key in keys:
            product = left * 0xD2B74407B1CE6E93
            left, right = (((product >> 32) ^ key ^ right) & low_half,
                           (((product & word) << (more - half)) | (right >> half)) & low_more)
        return (left << more) | right

    x = permuted(np.arange(count, dtype=np.uint64) if count <= _HOST_MOST else arange(count, dtype=np.uint64))
    while (wrong := (x >= n).nonzero()[0]).size:
        x[wrong] = permuted(x[wrong])
    return as_array(x.astype(np.int64))


def _few_of_many(bits, n, count):
    """The first count different ones among numbers below n that are equally probable: with memory for them alone."""
    from .._array.joining import concatenate
    from .._math.sorting import sort, unique
    drawn = integers(bits, 0, n, (count + count // 8 + 1,), np.int64, False)
    while (first := unique(drawn, return_index=True)[1]).size < count:
        drawn = concatenate([drawn, integers(bits, 0, n, (count,), np.int64, False)])
    return drawn[sort(first)[:count]]


def count_outcomes(bits, trials, p, shape):
    """How often each of len(p) outcomes comes in a number of trials, each of which is drawn as CuPy does; the last outcome
    has what the others leave. None: no trial, or too many."""
    rows, places = _base.product(shape), len(p)
    if not isinstance(trials, float) or not 0 < rows * places * trials < _TRIALS * places:
        return None
    if not np.allclose(p.sum(), 1):
        p[-1] = max(0.0, 1 - p[:-1].sum())
    from .._array.creation import arange
    from .._math.statistics import bincount
    index = _with_replacement(bits, places, (rows, int(trials)), as_array(p))
    index += arange(rows)[:, None] * places
    return bincount(index.reshape(-1), minlength=rows * places).reshape(*shape, places)


def shuffle(bits, x, axis):
    """x in random order, in place."""
    if not isinstance(x, ndarray):
        raise TypeError(f"only an arrayd.ndarray can be shuffled in place, not {type(x).__name__}")
    if x.ndim == 0:
        raise TypeError("len() of unsized object")
    axis = _base.normalize_axis(axis, x.ndim)
    if x.shape[axis]:
        from .._array.indexing import take
        x[...] = take(x, permutation_of(bits, (x.shape[axis],)), axis=axis)


def permutation(bits, x, axis):
    """x in random order along an axis, or range(x)."""
    if not isinstance(x, (ndarray, np.ndarray, list, tuple)):
        n = operator.index(x)
        return permutation_of(bits, (n,)) if n > 0 else _base.zeros((0,), np.int64)
    x = as_array(x)
    axis = _base.normalize_axis(axis, x.ndim)
    from .._array.indexing import take
    return take(x, permutation_of(bits, (x.shape[axis],)), axis=axis) if x.shape[axis] else x.copy()


def permuted(bits, x, axis, out):
    """Every lane of x in a random order of its own."""
    x = as_array(x)
    if axis is None:
        result = x.reshape(-1)[permutation_of(bits, (x.size,))].reshape(x.shape) if x.size else x.copy()
    else:
        from .._array.indexing import take_along_axis
        axis = _base.normalize_axis(axis, x.ndim)
        result = take_along_axis(x, permutation_of(bits, x.shape, axis), axis) if x.size else x.copy()
    return _base.give(result, out)


def as_bytes(bits, length):
    """A bytes object."""
    length = operator.index(length)
    if length <= 0:
        return b""
    return draw(bits, "bits", [], ((length + 3) // 4,), np.dtype(np.uint32)).get().tobytes()[:length]
