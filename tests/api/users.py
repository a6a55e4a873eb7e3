"""Runs a program that knows only the standard, on NumPy's arrays and on arrayd's, and compares what comes out."""
import warnings

import numpy as np

import arrayd as ad

RNG = np.random.default_rng(7)
X = RNG.standard_normal((60, 4))
POSITIVE = np.abs(X) + 0.1
LABELS = (X[:, 0] + 0.3 * RNG.standard_normal(60) > 0).astype(np.int64)
GUESSED = (LABELS + (RNG.random(60) > 0.8)) % 2
CHANCES = np.clip(0.5 + 0.3 * X[:, 0], 0.01, 0.99)
TARGET = X @ np.array([1.0, 2, 3, 4]) + 0.1 * RNG.standard_normal(60)


def parts(result):
    """A result as a flat list; objects such as a test's result by their fields."""
    if isinstance(result, (list, tuple)):
        return [part for each in result for part in parts(each)]
    if hasattr(result, "statistic") and not hasattr(result, "dtype"):
        return parts((result.statistic, result.pvalue))
    return [result]


def agree(function, rtol=1e-7, atol=1e-10):
    """Check that function(arrayd.asarray) gives what function gives with NumPy's arrays, in arrayd's arrays."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        wanted = parts(function(np.asarray))
        found = parts(function(ad.asarray))
    assert len(found) == len(wanted)
    for mine, its in zip(found, wanted):
        if isinstance(its, np.ndarray):
            assert isinstance(mine, ad.ndarray), type(mine)
        mine = mine.get() if isinstance(mine, ad.ndarray) else mine
        assert np.shape(mine) == np.shape(its) and np.asarray(mine).dtype == np.asarray(its).dtype
        np.testing.assert_allclose(mine, its, rtol=rtol, atol=atol)
