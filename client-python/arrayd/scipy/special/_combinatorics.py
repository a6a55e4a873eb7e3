"""Counting: binomial coefficients, permutations, factorials, the multivariate gamma function."""
import math
import operator

import numpy as np

from ... import _core
from ..._array.indexing import where
from ..._base import as_array

_u = _core.ufuncs


def multigammaln(a, d):
    """Logarithm of the multivariate gamma function.

    Parameters: a: array, above (d - 1) / 2. d: dimension, an int.
    Returns: array.
    Raises: ValueError: d is not a whole number above 0, or a is too small for it.
    Source: scipy.special.multigammaln
    """
    if not np.isscalar(d) or math.floor(d) != d:
        raise ValueError("d should be a positive integer (dimension)")
    a = as_array(a)
    if bool((a <= 0.5 * (d - 1)).any()):
        raise ValueError(f"condition a ({float(a)}) > 0.5 * (d-1) ({0.5 * (d - 1)}) not met" if a.ndim == 0 else
                         f"condition a > 0.5 * (d-1) ({0.5 * (d - 1)}) not met")
    total = _u["gammaln"](a)
    for j in range(1, int(d)):
        total = total + _u["gammaln"](a - j / 2)
    return total + np.float64(d * (d - 1) * 0.25 * math.log(math.pi))


def _check_whole(message, *values):
    """ValueError for a number that has a fraction, by its type; anything else is left to _exact."""
    if any(isinstance(value, float) for value in values):
        raise ValueError(message)


def _exact(function, *values):
    """function of ints, 0 where it is not defined."""
    values = [operator.index(value) for value in values]
    return function(*values) if min(values) >= 0 else 0


def comb(N, k, *, exact=False, repetition=False):
    """How many ways there are to choose k of N things.

    Parameters: N: number of things. k: how many are taken. exact: whether both are Python ints and the result is one.
        repetition: whether one may be taken several times.
    Returns: array of float64, or int.
    Raises: TypeError: exact, and not an int. ValueError: the shapes do not fit.
    Source: scipy.special.comb
    """
    if repetition:
        if exact:
            _check_whole("Non-integer `N` and `k` with `exact=True` is not supported.", N, k)
        if exact and N == k == 0:
            return 1
        if exact:
            return comb(N + k - 1, k, exact=True)
        N, k = as_array(N), as_array(k)
        ways = _u["binom"]((N + k - 1).astype(np.float64), k.astype(np.float64))
        return where((k == 0) & (N >= 0), 1.0, ways)
    if exact:
        _check_whole("Non-integer `N` and `k` with `exact=True` is not supported.", N, k)
        return _exact(math.comb, N, k)
    N, k = as_array(N), as_array(k)
    defined = (k <= N) & (N >= 0) & (k >= 0)
    return where(defined, _u["binom"](N.astype(np.float64), k.astype(np.float64)), 0.0)


def perm(N, k, exact=False):
    """How many ways there are to choose k of N things in an order.

    Parameters: N: number of things. k: how many are taken. exact: whether both are Python ints and the result is one.
    Returns: array of float64, or int.
    Raises: TypeError: exact, and not an int. ValueError: the shapes do not fit.
    Source: scipy.special.perm
    """
    if exact:
        return _exact(math.perm, N, k)
    N, k = as_array(N), as_array(k)
    defined = (k <= N) & (N >= 0) & (k >= 0)
    return where(defined, _u["poch"]((N - k + 1).astype(np.float64), k.astype(np.float64)), 0.0)


def factorial(n, exact=False):
    """n!, the product of the whole numbers from 1 to n; 0 for negative n.

    Parameters: n: array. exact: whether n is a Python int and the result is one.
    Returns: array of float64, or int.
    Raises: TypeError: exact, and not an int.
    Source: scipy.special.factorial
    Differs: exact takes one number; there is no extension.
    """
    if exact:
        _check_whole(f"`exact=True` only supports integers, cannot use data type {type(n)}", n)
        return _exact(math.factorial, n)
    n = as_array(n)
    kind = n.dtype if n.dtype.name in ("float32", "float64") else np.dtype(np.float64)
    n = n.astype(kind)
    return where(n < 0, kind.type(0), _u["gamma"](n + 1))
