"""Averages, quantiles, covariance and counting against NumPy."""
import numpy as np
import pytest

import arrayd as ad
from oracle import INTEGERS, check, random, seed

METHODS = [
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    "interpolated_inverted_cdf",
    "hazen",
    "weibull",
    "linear",
    "median_unbiased",
    "normal_unbiased",
    "lower",
    "higher",
    "midpoint",
    "nearest",
    "nonsense",
]


@pytest.mark.parametrize("method", METHODS)
def test_quantile(method):
    for dtype in (np.float64, np.float32, np.int32, np.uint8):
        x = random(seed(method, dtype), dtype, (5, 7), "SMALL")
        for q in (0.0, 0.5, 1.0, 0.3, [0.1, 0.25, 0.9], [], 1.5, np.float64(0.2)):
            for axis in (None, 0, (0, 1), -1):
                check(lambda xp, a: xp.quantile(a, q, axis=axis, method=method), x, ulps=256)
                if method in ("linear", "hazen", "lower", "midpoint"):
                    check(
                        lambda xp, a: xp.percentile(
                            a, np.multiply(q, 100)[()], axis=axis, method=method, keepdims=True
                        ),
                        x,
                        ulps=256,
                    )


@pytest.mark.parametrize("method", METHODS[:-1])
def test_nanquantile(method):
    x = random(seed(method), np.float64, (5, 8), "SMALL")
    x[1, 2] = x[3] = x[0, ::2] = np.nan
    for q in (0.5, [0.1, 0.25, 0.9], 1):
        for axis in (0, 1, None):
            check(lambda xp, a: xp.nanquantile(a, q, axis=axis, method=method), x, ulps=64)
            check(lambda xp, a: xp.quantile(a, q, axis=axis, method=method), x, ulps=64)
            check(
                lambda xp, a: xp.nanpercentile(a, np.multiply(q, 100), axis=axis, method=method, keepdims=True),
                x,
                ulps=256,
            )


def test_average():
    x = random(seed("average"), float, (3, 4, 5), "POS")
    w = random(seed("weights"), float, (3, 4, 5), "POS")
    for axis in (None, 0, -1, (0, 2)):
        check(lambda xp, a, w: xp.average(a, axis), x, w, ulps=64)
        check(lambda xp, a, w: xp.average(a, axis, w), x, w, ulps=64)
        check(lambda xp, a, w: xp.average(a, axis, w, returned=True), x, w, ulps=64)
        check(lambda xp, a, w: xp.average(a, axis, keepdims=True, weights=w), x, w, ulps=64)
        check(lambda xp, a, w: xp.average(a, axis, returned=True), x, w, ulps=64)
        check(lambda xp, a, w: xp.average(a, axis, w[0, 0]), x, w, ulps=64)
    check(lambda xp, a, w: xp.average(a, (2, 0), w[:, 0].T), x, w, ulps=64)
    check(lambda xp, a, w: xp.average(xp.arange(5), weights=[1, 0, 2, 0, 1]), x, w)


def test_covariance():
    x = random(seed("cov"), float, (3, 20), "POS")
    y = random(seed("cov", 2), float, (2, 20), "POS")
    f = np.arange(20) % 3
    a = np.arange(20) / 7
    for options in ({}, {"bias": True}, {"ddof": 0}, {"ddof": 2}, {"rowvar": False}, {"dtype": np.float32}):
        loose = 2**33 if "dtype" in options else 4096
        check(lambda xp, x, y: xp.cov(x, **options), x, y, ulps=loose if "dtype" not in options else 4096)
        check(lambda xp, x, y: xp.cov(x[0], **options), x, y, ulps=4096)
        check(
            lambda xp, x, y: xp.cov(x + 1j * x[::-1] / 3, **options) if "dtype" not in options else None,
            x,
            y,
            ulps=4096,
        )
    check(lambda xp, x, y: xp.cov(x, y), x, y, ulps=4096)
    check(lambda xp, x, y: xp.cov(x, fweights=xp.asarray(f)), x, y, ulps=4096)
    check(lambda xp, x, y: xp.cov(x, aweights=xp.asarray(a)), x, y, ulps=4096)
    check(lambda xp, x, y: xp.cov(x, fweights=xp.asarray(f), aweights=xp.asarray(a)), x, y, ulps=4096)
    check(lambda xp, x, y: xp.corrcoef(x), x, y, ulps=4096)
    check(lambda xp, x, y: xp.corrcoef(x, y), x, y, ulps=4096)
    check(lambda xp, x, y: xp.corrcoef(x[0]), x, y, ulps=4096)
    check(lambda xp, x, y: xp.cov(xp.zeros((2, 2, 2))), x, y)


def test_bincount():
    for dtype in INTEGERS[:-1] + [np.dtype(bool)]:
        x = seed(dtype).integers(0, 2 if dtype.kind == "b" else 20, 1000).astype(dtype)
        check(lambda xp, a: xp.bincount(a), x)
        check(lambda xp, a: xp.bincount(a[::3], minlength=50), x)
        check(lambda xp, a: xp.bincount(a, a), x)
    check(lambda xp, a, w: xp.bincount(a, w), np.array([0, 3, 3]), np.array([0.5, 1, 2]))
    check(lambda xp, a, w: xp.bincount(a, w), np.array([0, 3, 3]), np.array([0.5, 1]))
    for bad in ([-1, 2], [[1]], 3, [1.5]):
        check(lambda xp: xp.bincount(xp.asarray(bad)))
    check(lambda xp: xp.bincount(xp.asarray([], dtype=int), minlength=3))
    check(lambda xp: xp.bincount(xp.asarray([1]), minlength=-1))


def test_digitize():
    x = np.array([-1, 0.0, 0.5, 1, 2.5, 10, np.nan])
    for bins in ([0.0, 1, 2.5], [2.5, 1, 0.0], [1.0], [], [0.0, 2, 1]):
        for right in (False, True):
            check(lambda xp, a: xp.digitize(a, bins, right), x)
            if bins != [0.0, 2, 1]:
                check(lambda xp, a: xp.digitize(a, xp.asarray(bins, dtype=float), right), x)
    check(lambda xp, a: xp.digitize(a * 1j, [1.0]), x)


def beside(edges):
    """Numbers on edges and next to them, outside, and none."""
    limits = np.array([np.inf, -np.inf, np.nan, -0.0, 0.0], edges.dtype)
    return np.concatenate([edges, np.nextafter(edges, edges.dtype.type(-9)), np.nextafter(edges, edges.dtype.type(9)), limits])


@pytest.mark.parametrize("n", [1, 70_001])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_number_is_in_its_bin(dtype, n):
    """Bins of equal width, nearly equal, of any, of no width; few and many; views that begin anywhere."""
    rng = seed("bins", dtype, n)
    uniform = np.linspace(-1, 2, 101, dtype=dtype)
    some = np.sort(rng.normal(size=50)).astype(dtype)
    for edges in (uniform, np.linspace(0.1, 0.7, 8, dtype=dtype), np.nextafter(uniform, dtype(9)), some, uniform**3, uniform[:2],
                  np.repeat(some, 2), np.zeros(4, dtype), np.linspace(-1, 2, 3001, dtype=dtype), np.array([-np.inf, 0, np.inf], dtype),
                  np.linspace(1e6, 1e6 + 1, 33, dtype=dtype), np.linspace(-1, 2, 70_001, dtype=dtype)):
        numbers = np.concatenate([rng.normal(size=n).astype(dtype), beside(edges)])
        rng.shuffle(numbers)
        finite = numbers[~np.isnan(numbers)]
        for x in (finite, finite[1:], finite[::-2]):
            check(lambda xp, a, e: xp.histogram(a, e), x, edges)
        assert (ad.histogram(ad.asarray(numbers), ad.asarray(edges))[0].get() == np.histogram(finite, edges)[0]).all()
    x = rng.random(n).astype(dtype)
    for bins in (1, 3, 100, 257, 5000):
        check(lambda xp, a: xp.histogram(a, bins, (0, 1)), x, ulps=4)
        check(lambda xp, a: xp.histogram(a, bins), x, ulps=4)


def test_histogram():
    for dtype in (np.float64, np.float32, np.int32, np.uint8, np.bool_):
        x = random(seed("histogram", dtype), dtype, (50, 20))
        for bins in (10, 1, 7):
            check(lambda xp, a: xp.histogram(a, bins), x, ulps=4)
        for bins in ([0, 1, 5, 20], [-10.5, 0.0, 3.25]):
            check(lambda xp, a: xp.histogram(a, bins), x)
            check(lambda xp, a: xp.histogram(a, xp.asarray(bins))[0], x)
        check(lambda xp, a: xp.histogram(a, 8, (-10, 33)), x, ulps=4)
        check(lambda xp, a: xp.histogram(a, 8, density=True), x, ulps=64)
    w = random(seed("w"), float, (100,), "POS")
    x = random(seed("x"), float, (100,))
    check(lambda xp, a, w: xp.histogram(a, 5, weights=w), x, w, ulps=64)
    check(lambda xp, a, w: xp.histogram(a, 5, weights=w.astype(int)), x, w)
    check(lambda xp, a, w: xp.histogram(a, 5, weights=w * 1j), x, w, ulps=64)
    check(lambda xp, a, w: xp.histogram(a, 5, weights=w, density=True), x, w, ulps=64)
    for a in (np.zeros(0), np.full(5, 3.0), np.array([1, 2, 3, 3, 3])):
        check(lambda xp, a: xp.histogram(a, 4), a)
        check(lambda xp, a: xp.histogram_bin_edges(a, 4), a)
    for bad in (0, -1, 1.5, [[1, 2]], [3, 1, 2]):
        check(lambda xp, a: xp.histogram(a, bad), x)
    for bad in ((3, 1), (0, np.inf)):
        check(lambda xp, a: xp.histogram(a, 4, bad), x)
    check(lambda xp, a: xp.histogram(a, 4, weights=xp.zeros(3)), x)
    assert ad.histogram(ad.asarray([1.0, np.nan, 2.0]), [0, 1.5, 3])[0].tolist() == [1, 1]


def test_quantiles_of_several_dimensions():
    a = random(seed("q"), float, (4, 5), "SMALL")
    for shape in ((2, 2), (1, 2, 3)):
        q = np.linspace(0, 1, int(np.prod(shape))).reshape(shape)
        for name in ("quantile", "nanquantile"):
            check(lambda xp, a, q: getattr(xp, name)(a, q, 1), a, q, ulps=64)


@pytest.mark.parametrize("name", ["quantile", "nanquantile", "median", "nanmedian"])
def test_input_that_may_be_overwritten(name):
    """The input has the same elements, in another order than before."""
    host = np.array([[5.0, 1, 4, 2], [9, 7, 8, 6]])
    a, q = ad.asarray(host), (0.4,) if "quantile" in name else ()
    result = getattr(ad, name)(a, *q, axis=1, overwrite_input=True)
    np.testing.assert_allclose(result.get(), getattr(np, name)(host, *q, axis=1), rtol=1e-14)
    np.testing.assert_array_equal(a.get(), np.sort(host, 1))


def test_covariance_of_types():
    a = random(seed("cov"), float, (2, 5), "SMALL")
    for name in ("cov", "corrcoef"):
        for kind in ("i4", "?", "f4", "c8"):
            check(lambda xp, a: getattr(xp, name)(a, dtype=kind), a, ulps=10_000)
    check(lambda xp, a: xp.cov(a[:0]), a)
    check(lambda xp, a: xp.cov(a[:0], a), a)
    check(lambda xp, a: xp.cov(a[:0], dtype=int), a)
    check(lambda xp, a: xp.cov(a[None], dtype=int), a)
    check(lambda xp, a: xp.cov(a, dtype=int, aweights=xp.ones(5)), a)
    with pytest.warns(RuntimeWarning, match="Degrees of freedom"), pytest.raises(TypeError, match="dtype must be"):
        ad.cov(ad.asarray(a), ddof=5, dtype=int)
    with pytest.warns(RuntimeWarning, match="Degrees of freedom"):
        ad.cov(ad.asarray(a), ddof=5)


def test_running_totals_in_bools():
    for name in ("cumulative_sum", "cumulative_prod"):
        for kind in (bool, np.uint8, float):
            check(lambda xp, a: getattr(xp, name)(a, axis=0, out=xp.zeros((4, 2), kind), include_initial=True),
                  np.array([[1, 0], [0, 1], [1, 1]], kind))
