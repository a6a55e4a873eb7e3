"""Statistics that cupyx.scipy.stats has, with SciPy's names and results, on the server."""
import math

import numpy as np

import arrayd as ad

__all__ = ["boxcox_llf", "entropy", "trim_mean", "zmap", "zscore"]


def _floating(a):
    a = ad.asarray(a)
    return a if a.dtype.kind in "fc" else a.astype(np.float64)


def _check_policy(a, nan_policy):
    """Whether NaN is to be left out. ValueError for another policy, or NaN where it is refused (waits)."""
    if nan_policy not in ("propagate", "omit", "raise"):
        raise ValueError("nan_policy must be one of {'propagate', 'raise', 'omit'}")
    if nan_policy == "raise" and a.dtype.kind in "fc" and bool(ad.isnan(a).any()):
        raise ValueError("The input contains nan values")
    return nan_policy == "omit"


def zmap(scores, compare, axis=0, ddof=0, nan_policy="propagate"):
    """How many standard deviations of compare the scores are above its mean.

    Parameters: scores, compare: arrays. axis: int, or None for all. ddof: int. nan_policy: 'propagate', 'omit' or 'raise'.
    Returns: ndarray.
    Raises: ValueError for NaN where nan_policy is 'raise'.
    Source: scipy.stats.zmap
    """
    scores, a = _floating(scores), _floating(compare)
    omit = _check_policy(a, nan_policy)
    if a.size == 0:
        return ad.empty(scores.shape, scores.dtype)
    mean = (ad.nanmean if omit else ad.mean)(a, axis=axis, keepdims=True)
    deviation = (ad.nanstd if omit else ad.std)(a, axis=axis, ddof=ddof, keepdims=True)
    first = ad.take(a, 0, axis=axis if axis is not None else None)
    first = ad.expand_dims(first, axis) if axis is not None else first
    same = (a == first).all(axis=axis, keepdims=True)
    deviation = ad.where(same, ad.asarray(np.nan, dtype=deviation.dtype), deviation)
    return (scores - mean) / deviation


def zscore(a, axis=0, ddof=0, nan_policy="propagate"):
    """How many standard deviations each element is above the mean.

    Parameters: a: array. axis: int, or None for all. ddof: int. nan_policy: 'propagate', 'omit' or 'raise'.
    Returns: ndarray.
    Raises: ValueError for NaN where nan_policy is 'raise'.
    Source: scipy.stats.zscore
    """
    return zmap(a, a, axis=axis, ddof=ddof, nan_policy=nan_policy)


def trim_mean(a, proportiontocut, axis=0):
    """The mean without the smallest and the largest elements.

    Parameters: a: array. proportiontocut: part that is left out at either end. axis: int, or None for all.
    Returns: ndarray.
    Raises: ValueError where nothing would be left.
    Source: scipy.stats.trim_mean
    """
    a = ad.asarray(a)
    if a.size == 0:
        return ad.asarray(np.nan)
    if axis is None:
        a, axis = a.ravel(), 0
    length = a.shape[axis]
    cut = int(proportiontocut * length)
    if cut > length - cut:
        raise ValueError("Proportion too big.")
    ordered = ad.moveaxis(ad.sort(a, axis=axis), axis, -1)
    return ordered[..., cut:length - cut].mean(axis=-1)


def _normalized(a, axis):
    """a, made to sum up to 1 in its own type; of float16 as float32 then, as in SciPy."""
    a = a / a.sum(axis=axis, keepdims=True)
    return a.astype(np.float32) if a.dtype == np.float16 else a


def entropy(pk, qk=None, base=None, axis=0):
    """The entropy of distributions, or their relative entropy; they are made to sum up to 1.

    Parameters: pk: array. qk: array, what it is relative to. base: number, of the logarithm; e unless given. axis: int.
    Returns: ndarray.
    Raises: ValueError for a base of 0 or less, or shapes that do not fit; TypeError for complex numbers.
    Source: scipy.stats.entropy
    """
    if base is not None and base <= 0:
        raise ValueError("`base` must be a positive number or `None`.")
    pk = _floating(pk)
    if pk.dtype.kind == "c":
        raise TypeError("+entropy is not defined for complex numbers")
    pk = _normalized(pk, axis)
    zero, one = ad.zeros((), pk.dtype), ad.ones((), pk.dtype)
    if qk is None:
        terms = ad.where(pk == 0, zero, -pk * ad.log(ad.where(pk > 0, pk, one)))
        terms = ad.where(pk < 0, ad.asarray(-np.inf, dtype=pk.dtype), terms)
    else:
        qk = _floating(qk)
        np.broadcast_shapes(pk.shape, qk.shape)
        qk = _normalized(qk, axis)
        terms = pk * ad.log(ad.where(pk > 0, pk, one) / ad.where(qk > 0, qk, one))
        terms = ad.where(pk == 0, zero, ad.where(qk > 0, terms, ad.asarray(np.inf, dtype=terms.dtype)))
    total = terms.sum(axis=axis)
    return total if base is None else total / math.log(base)


def _log_variance(logs):
    """The logarithm of the variance along the first axis, of logarithms: of powers that may be beyond the type."""
    top = logs.real.max(axis=0, keepdims=True)
    return ad.log(ad.var(ad.exp(logs - top), axis=0)) + 2 * top[0]


def boxcox_llf(lmb, data):
    """The logarithm of the likelihood of Box and Cox's transformation.

    Parameters: lmb: number. data: array, of which the first axis is that of samples.
    Returns: ndarray. That of float16 is computed in single precision.
    Raises: nothing of its own.
    Source: scipy.stats.boxcox_llf
    """
    data = _floating(data)
    dtype = data.dtype
    if data.shape[0] == 0:
        return ad.asarray(np.nan, dtype)
    logs = ad.log(data.astype(np.float32) if dtype == np.float16 else data)
    if lmb == 0:
        spread = ad.log(logs.var(axis=0))
    else:
        spread = _log_variance(lmb * logs) - 2 * math.log(abs(lmb))
    return ((lmb - 1) * logs.sum(axis=0) - data.shape[0] / 2 * spread).astype(dtype, copy=False)
