"""Bits, histograms of several dimensions and other small functions, against NumPy."""
import numpy as np
import pytest

from oracle import check, random, seed

X = np.array([1.0, 2.5, -3.5, 0.125, 7, 1e-3])


@pytest.mark.parametrize("order", ["big", "little", "middle"])
def test_bits(order):
    bits = random(seed("bits"), bool, (3, 5, 19))
    numbers = random(seed("bytes"), np.uint8, (3, 5, 4))
    for axis in (None, 0, 1, -1, 3):
        check(lambda xp, a: xp.packbits(a, axis, order), bits)
        check(lambda xp, a: xp.packbits(a, axis, order), numbers.astype(np.int32) % 3)
        for count in (None, 0, 5, 13, 40, -3, -99):
            check(lambda xp, a: xp.unpackbits(a, axis, count, order), numbers)
    check(lambda xp, a: xp.packbits(a * 1.5), bits)
    check(lambda xp, a: xp.unpackbits(a), bits)


def test_histograms_of_several_dimensions():
    x = random(seed("histogramdd"), float, (200, 3))
    w = random(seed("weights"), float, (200,), "POS")
    e = [-50.0, 0, 20, 55]
    for options in (
        {},
        {"bins": 4},
        {"bins": [2, 3, 4]},
        {"bins": [2, e, 4]},
        {"range": [(-50, 50), None, (0, 10)]},
        {"density": True},
        {"bins": [1, 2]},
        {"range": [None]},
    ):
        check(lambda xp, x, w: xp.histogramdd(x, **options), x, w, ulps=64)
        check(lambda xp, x, w: xp.histogramdd(x, weights=w, **options), x, w, ulps=64)
    for bins in (5, [3, 4], e, [e, 3]):
        check(lambda xp, x, w: xp.histogram2d(x[:, 0], x[:, 1], bins), x, w, ulps=64)
    check(lambda xp, x, w: xp.histogram2d(x[:, 0], x[:5, 1]), x, w)


def test_unique_named():
    for a in (np.array([3, 1, 1, 2, 3]), np.array([[1.5, 0], [1.5, -1]])):
        for name in ("unique_all", "unique_counts", "unique_inverse"):
            check(lambda xp, a: tuple(getattr(xp, name)(a)), a)
            check(lambda xp, a: getattr(xp, name)(a)._fields, a)


def test_piecewise():
    for functions in ([lambda x: -x, 7], [lambda x: -x, 7, lambda x: x * 100], [1]):
        check(lambda xp, x: xp.piecewise(x, [x < 0, x > 2], functions), X)
    check(lambda xp, x: xp.piecewise(x, x < 0, [lambda x, by: x * by, 3], 2), X)


def test_small_ones():
    check(lambda xp, x: xp.mask_indices(4, xp.triu, 1), X)
    check(lambda xp, x: xp.astype(x, int), X)
    check(lambda xp, x: xp.astype([1, 2], int), X)
    check(lambda xp, x: (xp.base_repr(10, 3), xp.binary_repr(5)), X)
